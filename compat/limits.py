"""Bounds on the size of a schema and on the work of reading and comparing schemas.

Schema text comes from strangers. Each bound replaces a crash, a hang or exhausted memory by one sentence that names the
bound. The defaults are far above any schema seen in the field.

Sizes bound linear work. Other work (unions against unions, defaults inside unions, names in deep scopes) checks a
clock: `limits.started()` sets the deadline, and loops call `look_at_clock`.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from strata.compat.schema import ResolvedReference, SchemaParseError

__all__ = ["DEFAULT_LIMITS", "Limits", "NotAtOnce", "OutOfTime", "check_printed", "check_references"]

_BRIEF_S = 0.005  # of CPU time that an event loop computes by itself; passing a computation to a thread takes 0.1 ms
_BRIEF_CHARACTERS = 32 * 1024  # a text that JSON decoders read in a fraction of that


class OutOfTime(SchemaParseError):
    """Reading or comparing schemas took too long; there is no result."""


class NotAtOnce(Exception):
    """A computation takes longer than an event loop can wait for it; another thread must start it again."""


@dataclass(frozen=True)
class Limits:
    """Bounds on one schema, on one comparison of two schemas, and on the total time of one request."""

    text: int = 8 * 1024 * 1024  # characters of a schema, and of all schemas that it refers to together
    depth: int = 200  # nested JSON objects and arrays; also keeps recursion below Python's own limit
    number: int = 1000  # digits of one number, as in Jackson
    types: int = 20_000  # named types in one schema
    fields: int = 100_000  # fields in one schema
    branches: int = 10_000  # branches of one union, of one combined schema
    symbols: int = 100_000  # symbols of one enum
    references: int = 1_000  # schemas that one schema refers to, directly or not
    pattern: int = 10_000  # characters of a pattern, and of a name that is matched with it
    backtracks: int = 1_000  # backtracking steps in matching a pattern
    comparisons: int = 500_000  # pairs of reader and writer types in one check
    incompatibilities: int = 1_000  # findings that one check keeps
    messages: int = 1_000_000  # characters of all messages of one comparison
    seconds: float = 5.0  # CPU time of the computing thread
    ends: float = math.inf  # the deadline, on the CPU clock of the thread that called `started`
    earliest: float = math.inf  # on the monotonic clock, before which the deadline cannot pass
    at_once: bool = False  # whether an event loop waits for the result

    def started(self) -> "Limits":
        """Return the same bounds with a deadline for the calling thread; keep a deadline that is already set."""
        return self if self.ends != math.inf else self.ending_in(self.seconds)

    def ending_in(self, seconds: float) -> "Limits":
        """Return the same bounds with a deadline after this much CPU time of the calling thread, in seconds."""
        return self._with(ends=time.thread_time() + seconds, earliest=time.monotonic() + seconds)

    def briefly(self) -> "Limits":
        """Return the same bounds for a computation by an event loop, which ends it with `NotAtOnce` after a moment."""
        # By the CPU clock: to start again what another process has interrupted would take longer than to end it.
        return self._with(ends=time.thread_time() + _BRIEF_S, earliest=time.monotonic() + _BRIEF_S, at_once=True)

    def _with(self, **changes: float) -> "Limits":
        # Each request needs this; `dataclasses.replace` takes ten times as long.
        limits = object.__new__(Limits)
        own = limits.__dict__
        own |= self.__dict__
        own |= changes
        return limits

    def look_at_clock(self) -> None:
        """Check the deadline.

        Raises:
            OutOfTime: The deadline has passed.
            NotAtOnce: A computation by an event loop has used up its moment of CPU time.
        """
        # The CPU clock of a thread takes ten times as long to read, and never runs faster than the monotonic clock.
        if time.monotonic() >= self.earliest and time.thread_time() > self.ends:
            if self.at_once:
                raise NotAtOnce
            raise OutOfTime(f"The request needs more than {self.seconds:g} s of computing")

    def look_at_text(self, characters: int) -> None:
        """Check that a text may be read now: parts of that do not look at the clock.

        Raises:
            NotAtOnce: It is too long for a computation by an event loop.
        """
        if self.at_once and characters > _BRIEF_CHARACTERS:
            raise NotAtOnce


DEFAULT_LIMITS = Limits()


def check_printed(text: str, limits: Limits) -> None:
    """Check that a text, once stored, is short enough to be read again.

    Raises:
        SchemaParseError: The text is too long.
    """
    if len(text) > limits.text:
        raise SchemaParseError(f"The printed schema has {len(text)} characters; at most {limits.text} are allowed")


def check_references(references: Sequence[ResolvedReference], limits: Limits) -> None:
    """Check the number and the total length of a schema's references.

    Raises:
        SchemaParseError: There are too many, or their texts are too long together.
    """
    if len(references) > limits.references:
        raise SchemaParseError(f"The schema has {len(references)} references; at most {limits.references} are allowed")
    total = sum(len(reference.text) for reference in references)
    if total > limits.text:
        raise SchemaParseError(f"The referenced schemas have {total} characters; at most {limits.text} are allowed")
