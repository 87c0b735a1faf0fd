"""What a deploy publishes: every workflow that this package imports."""

from workflows.greetings import greet, write_greeting

__all__ = ["greet", "write_greeting"]
