"""How large a schema may be, and how much work comparing two of them may take.

Schema text comes from strangers. Every bound turns what would be a crash, a hang or a bill for memory into one
sentence that names the bound. The defaults are far above any schema seen in the field.
"""

from dataclasses import dataclass

__all__ = ["DEFAULT_LIMITS", "Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds on one schema, and on one comparison of two."""

    text: int = 8 * 1024 * 1024  # characters
    depth: int = 200  # nested JSON objects and arrays; also keeps recursion below Python's own limit
    number: int = 1000  # digits of one number, as Jackson has it
    types: int = 20_000  # named types in one schema
    fields: int = 100_000  # fields in one schema
    branches: int = 10_000  # branches of one union
    symbols: int = 100_000  # symbols of one enum
    comparisons: int = 500_000  # pairs of reader and writer types looked at in one check
    incompatibilities: int = 1_000  # findings kept of one check


DEFAULT_LIMITS = Limits()
