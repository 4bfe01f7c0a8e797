"""Agents that decide at once, by rules or by chance."""
