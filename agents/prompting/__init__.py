"""From observation to chat messages, and from a model's reply to an action or a typed failure."""

from agents.prompting.parse import Answer, Failure, Parsed, parse_reply, without_thoughts

__all__ = ["Answer", "Failure", "Parsed", "parse_reply", "without_thoughts"]
