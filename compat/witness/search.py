"""The search for proofs: the table of formats, and one call for the findings of one comparison.

A format's module has two functions. `breaks` proves findings of the checker, which refuse a change. `alters` proves
outcomes of the difference, which say that a value becomes another one although the change is accepted. Both return one
proof for each finding, in order, and may raise `OutOfTime`, after which the proofs that they have yielded count.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from strata.compat.difference.outcomes import Outcome
from strata.compat.limits import OutOfTime
from strata.compat.proofs import Budget, NoWitness, Proof
from strata.compat.result import Incompatibility
from strata.compat.schema import ParsedSchema, SchemaFormat
from strata.compat.witness import avro

__all__ = ["alters", "breaks"]


class _Format(NamedTuple):
    """The searches of a format; the schemas are of the format's own class."""

    breaks: Callable[[Any, Any, Sequence[Incompatibility], Budget], Iterator[Proof]]  # reader, writer
    alters: Callable[[Any, Any, Sequence[Outcome], Budget], Iterator[Proof]]  # reader, writer


_FORMATS: Final[Mapping[SchemaFormat, _Format]] = {SchemaFormat.AVRO: _Format(avro.breaks, avro.alters)}


def breaks(
    reader: ParsedSchema, writer: ParsedSchema, findings: Sequence[Incompatibility], budget: Budget
) -> list[Proof]:
    """Return a proof for each finding of the check of two schemas.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        findings: The findings of the check of these two, in the order of the check.
        budget: Bounds on time and size.
    """
    form = _FORMATS.get(writer.format) if reader.format is writer.format else None
    return _within(form.breaks(reader, writer, findings, budget) if form else iter(()), len(findings), bool(form))


def alters(reader: ParsedSchema, writer: ParsedSchema, outcomes: Sequence[Outcome], budget: Budget) -> list[Proof]:
    """Return a proof for each outcome of reading data of the writer's schema with the reader's.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        outcomes: The outcomes for these two.
        budget: Bounds on time and size.
    """
    form = _FORMATS.get(writer.format) if reader.format is writer.format else None
    return _within(form.alters(reader, writer, outcomes, budget) if form else iter(()), len(outcomes), bool(form))


def _within(proofs: Iterator[Proof], number: int, is_decided: bool) -> list[Proof]:
    """Return the proofs that a search yields in its time, and the reason why for the others."""
    made: list[Proof] = []
    missing = NoWitness("time" if is_decided else "undecided")
    with suppress(OutOfTime):
        made.extend(proofs)
    return made + [missing] * (number - len(made))
