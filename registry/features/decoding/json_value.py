"""Decodes a JSON value and says where its schema refuses it.

It reads text by `strata.strict_json`, as the deserializer (`strata.serdes.json_schema`) does, and refuses the values
that the deserializer refuses; a test compares the two on damaged records.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urljoin

import jsonschema_rs

from strata.compat.schema import ResolvedReference
from strata.registry.features.decoding.parts import Broken, Cursor
from strata.strict_json import Json, NotJson, load

__all__ = ["decode_json", "refusal"]

_BASE = "http://strata.invalid/"  # nothing is fetched
_DRAFT_7 = "http://json-schema.org/draft-07/schema#"
_DIALECTS = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?")
_MOST_WAYS = 100_000
_MOST_NESTED = 200


def decode_json(cursor: Cursor) -> Json:
    """Return the JSON value at the cursor.

    Raises:
        Broken: the bytes are not JSON; the offset is that of the byte.
    """
    try:
        value: Json = load(cursor.data[cursor.offset : cursor.end])
    except NotJson as fault:
        raise Broken(cursor.offset + (fault.offset or 0), "", f"not valid JSON: {fault.reason}") from None
    if _depth(value) > _MOST_NESTED:
        raise Broken(cursor.offset, "", f"the value is nested deeper than {_MOST_NESTED} levels; it is not shown")
    cursor.offset = cursor.end
    return value


def refusal(value: Json, text: str, references: Sequence[ResolvedReference]) -> tuple[str, str] | None:
    """Return the path of the value that a schema refuses, and why; None if it accepts the value.

    Args:
        value: the value.
        text: the schema.
        references: what the schema refers to.

    Raises:
        ValueError: the schema cannot be used, or trying its branches would take too long.
    """
    schema = _with_dialect(json.loads(text))
    own = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    base = urljoin(_BASE, own) if isinstance(own, str) else _BASE
    resources = {urljoin(base, reference.name): _with_dialect(json.loads(reference.text)) for reference in references}
    ways = max(map(_branches, (schema, *resources.values())))
    if ways > 1 and ways ** _depth(value) > _MOST_WAYS:
        raise ValueError("the schema has too many branches to be tried on so deep a value")
    registry = jsonschema_rs.Registry(list(resources.items()), draft=jsonschema_rs.Draft7) if resources else None
    validator = jsonschema_rs.validator_for(schema, registry=registry, base_uri=base, offline=True)
    error = next(iter(validator.iter_errors(value)), None)
    if error is None:
        return None
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    return path.lstrip("."), str(error.message)


def _with_dialect(schema: object) -> Any:
    """Return a schema that names its dialect; a missing or unknown one is draft 7, as in the registry."""
    if isinstance(schema, dict) and not _DIALECTS.fullmatch(str(schema.get("$schema"))):
        return {**schema, "$schema": _DRAFT_7}
    return schema


def _inner(value: object) -> Iterator[object]:
    return iter(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _inner(outer)]:
        depth += 1
    return depth


def _branches(schema: object) -> int:
    """Return the most branches that a schema has in one place."""
    most, stack = 1, [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            most = max(
                most,
                *(len(value[word]) for word in ("allOf", "anyOf", "oneOf") if isinstance(value.get(word), list)),
                1,
            )
        stack += _inner(value)
    return most
