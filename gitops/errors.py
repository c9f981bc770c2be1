"""The error that ends a command with exit code 2: what is wrong, where, and what is expected."""

__all__ = ["GitopsError"]


class GitopsError(Exception):
    """Something cannot be read or judged; the message is for people."""
