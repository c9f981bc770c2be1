"""Mutants."""

MUTANTS: dict[str, str] = {}


def apply(name: str) -> None:
    """Apply."""
