"""Dividing a team's result among its members, and a member's share among its decisions."""
