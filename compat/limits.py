"""How large a schema may be, and how much work reading and comparing schemas may take.

Schema text comes from strangers. Every bound turns what would be a crash, a hang or a bill for memory into one
sentence that names the bound. The defaults are far above any schema seen in the field.

Sizes bound what is linear. What is not (unions against unions, defaults inside unions, names in deep scopes) looks at
a clock on its way: `limits.started()` sets the end, and whoever loops calls `look_at_clock`.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compat.schema import ResolvedReference, SchemaParseError

__all__ = ["DEFAULT_LIMITS", "Limits", "OutOfTime", "check_printed", "check_references"]


class OutOfTime(SchemaParseError):
    """Reading or comparing schemas took longer than it may; nothing is known of the result."""


@dataclass(frozen=True)
class Limits:
    """Bounds on one schema, on one comparison of two, and on the time of all that one request asks for."""

    text: int = 8 * 1024 * 1024  # characters of a schema, and of all that it refers to together
    depth: int = 200  # nested JSON objects and arrays; also keeps recursion below Python's own limit
    number: int = 1000  # digits of one number, as Jackson has it
    types: int = 20_000  # named types in one schema
    fields: int = 100_000  # fields in one schema
    branches: int = 10_000  # branches of one union, of one combined schema
    symbols: int = 100_000  # symbols of one enum
    references: int = 1_000  # schemas that one schema refers to, directly or not
    pattern: int = 10_000  # characters of a pattern, and of a name that it is matched with
    backtracks: int = 1_000  # steps back that matching a pattern may take
    comparisons: int = 500_000  # pairs of reader and writer types looked at in one check
    incompatibilities: int = 1_000  # findings kept of one check
    messages: int = 1_000_000  # characters of the messages on one comparison
    seconds: float = 5.0  # of the computing thread's own time, however busy the machine is
    ends: float = math.inf  # when the seconds are over, on the clock of the thread that started them

    def started(self) -> "Limits":
        """Return the same bounds with the time running, for the thread that calls this; time that runs runs on."""
        return self if self.ends != math.inf else replace(self, ends=time.thread_time() + self.seconds)

    def look_at_clock(self) -> None:
        """Give up when the time is over.

        Raises:
            OutOfTime: it is.
        """
        if time.thread_time() > self.ends:
            raise OutOfTime(f"It takes more than {self.seconds:g} s of computing")


DEFAULT_LIMITS = Limits()


def check_printed(text: str, limits: Limits) -> None:
    """Refuse a text that, stored, would be too long to be read again.

    Raises:
        SchemaParseError: it is.
    """
    if len(text) > limits.text:
        raise SchemaParseError(f"Printed, the schema has {len(text)} characters, more than the {limits.text} allowed")


def check_references(references: Sequence[ResolvedReference], limits: Limits) -> None:
    """Refuse more to read than a schema may refer to.

    Raises:
        SchemaParseError: there are too many, or their texts are too long together.
    """
    if len(references) > limits.references:
        raise SchemaParseError(f"{len(references)} referenced schemas, more than the {limits.references} allowed")
    total = sum(len(reference.text) for reference in references)
    if total > limits.text:
        raise SchemaParseError(f"Referenced schemas of {total} characters, more than the {limits.text} allowed")
