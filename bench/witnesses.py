"""What the proofs of findings cost beside the check itself: CPU time of one check of schemas with 30 fields."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from bench.report import table
from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.compat.result import Finding
from strata.compat.schema import ParsedSchema, SchemaFormat
from strata.compat.witness.search import budget_within, proven, silent_changes

__all__ = ["run"]

_FIELDS = 30
_ROUNDS = 100


def run() -> str:
    """Return the table."""
    rows = [_row(name, change, old, new) for name, change, old, new in _pairs()]
    head = ("schemas of 30 fields", "change", "findings", "check", "with proofs", "more")
    note = (
        "CPU time of one thread in ms, median of 100 rounds. The check is that of BACKWARD between two parsed schemas; "
        "with proofs it also looks for changes of values.\n\n"
    )
    return note + table(head, rows)


def _row(name: str, change: str, old: ParsedSchema, new: ParsedSchema) -> Sequence[object]:
    previous = [Previous(1, old)]
    plain = _measured(lambda: check(new, previous, Level.BACKWARD))
    found = _proofs(new, previous)
    whole = _measured(lambda: _proofs(new, previous))
    return name, change, len(found), f"{plain:.2f}", f"{whole:.2f}", f"{whole - plain:.2f}"


def _proofs(new: ParsedSchema, previous: Sequence[Previous]) -> list[Finding]:
    refused = check(new, previous, Level.BACKWARD).incompatibilities
    budget = budget_within(Limits())
    return [
        *proven(new, previous, refused, budget),
        *silent_changes(new, previous, Level.BACKWARD, refused, budget),
    ]


def _measured(work: Callable[[], object]) -> float:
    """Return the median CPU time of a round in milliseconds."""
    times = []
    for _ in range(_ROUNDS):
        started = time.thread_time()
        work()
        times.append(time.thread_time() - started)
    return median(times) * 1000


def _pairs() -> Iterator[tuple[str, str, ParsedSchema, ParsedSchema]]:
    for name, make in (("Avro", _avro), ("Protobuf", _protobuf), ("JSON Schema", _json)):
        one, all_ = ["type"] * (_FIELDS - 1), ["type"] * _FIELDS
        yield name, "none", make(all_), make(all_)
        yield name, "one field refused", make(all_), make([*one, "refused"])
        yield name, "one value changed", make([*one, "wide"]), make([*one, "narrow"])
        yield name, "all values changed", make(["wide"] * _FIELDS), make(["narrow"] * _FIELDS)


def _parsed(schema_format: SchemaFormat, text: str) -> ParsedSchema:
    return FORMATS[schema_format].parse(text, strict=False)


def _avro(kinds: Sequence[str]) -> ParsedSchema:
    types = {"type": ["null", "string"], "refused": "int", "wide": "long", "narrow": "double"}
    fields: list[dict[str, Any]] = [{"name": f"field_{at}", "type": types[kind]} for at, kind in enumerate(kinds)]
    return _parsed(SchemaFormat.AVRO, json.dumps({"type": "record", "name": "Order", "fields": fields}))


def _protobuf(kinds: Sequence[str]) -> ParsedSchema:
    types = {"type": "string", "refused": "double", "wide": "int64", "narrow": "int32"}
    fields = " ".join(f"{types[kind]} field_{at} = {at + 1};" for at, kind in enumerate(kinds))
    return _parsed(SchemaFormat.PROTOBUF, f'syntax = "proto3"; message Order {{ {fields} }}')


def _json(kinds: Sequence[str]) -> ParsedSchema:
    types = {"type": "string", "refused": "boolean", "wide": "integer", "narrow": "number"}
    fields = {f"field_{at}": {"type": types[kind]} for at, kind in enumerate(kinds)}
    return _parsed(SchemaFormat.JSON, json.dumps({"type": "object", "properties": fields}))
