"""What a JSON Schema's reader makes of a document, beside what the checker finds.

A validator changes no value, so only two things are left: keywords that no rule of compatibility compares, and numbers.
People read `integer` into integers and `number` into doubles, and a double has no room for all integers.
"""

from collections.abc import Iterator
from typing import Final

from strata.compat.difference import json_schema
from strata.compat.difference.edits import DOC_LIKE, Edit, EditKind
from strata.compat.difference.outcomes import Cause, Outcome
from strata.compat.json_schema.json_text import write_json
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import Limits

__all__ = ["outcomes"]

_FORMATS: Final = frozenset(
    {
        *("date", "date-time", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"),
        *("uri", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer", "relative-json-pointer"),
        *("regex", "uuid"),
    }
)
_NOT_COMPARED: Final = frozenset(
    {
        *("contains", "propertyNames", "patternProperties", "if", "then", "else"),
        *("dependencies", "dependentRequired", "dependentSchemas", "prefixItems"),
        *("unevaluatedItems", "unevaluatedProperties", "minContains", "maxContains"),
    }
)
_NAMED: Final = frozenset({"properties", "patternProperties", "dependencies", "definitions", "$defs", "required"})


def outcomes(reader: JsonSchema, writer: JsonSchema, limits: Limits, *, is_new: bool) -> Iterator[Outcome]:
    """Yield the parts that the reader may refuse, though no rule compares them, or does not read as they were written.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        limits: Bounds on time.
        is_new: Whether the reader's schema is the new one; the outcomes are the same.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    del is_new
    for edit in json_schema.edits(writer, reader, limits).found:
        limits.look_at_clock()
        if edit.kind not in DOC_LIKE:
            yield from _of(edit)


def _of(edit: Edit) -> Iterator[Outcome]:
    at, kinds = edit.new_at or edit.old_at, frozenset({edit.kind})
    within = next((step for step in _steps(at[0]) if step in _NOT_COMPARED), None)
    if edit.kind is EditKind.CONSTRAINT_CHANGED and edit.name == "format":
        if edit.after in {write_json(name) for name in _FORMATS}:
            yield Outcome(Cause.CONSTRAINT, at, name="format", kinds=kinds)
    elif within is not None:
        # Without the keyword a reader accepts more, except that a closed object accepts fewer properties.
        is_dropped = edit.name == within and edit.after is None and within != "patternProperties"
        if not is_dropped:
            yield Outcome(Cause.NOT_COMPARED, at, name=within, kinds=kinds)
    elif edit.kind is EditKind.TYPE_CHANGED and edit.name == "type":
        before, after = ((text or "").split(" | ") for text in (edit.before, edit.after))
        if "integer" in before and "number" in after and "number" not in before:
            yield Outcome(Cause.NUMBER_ROUNDED, at, "integer", "number", "2^53", kinds)


def _steps(at: str) -> Iterator[str]:
    """Yield the keywords of an address, without the names of properties."""
    steps = iter(at.split("/")[1:])
    for step in steps:
        yield step
        if step in _NAMED:
            next(steps, None)
