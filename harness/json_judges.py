"""Judges of JSON documents that are not ours: jsonschema-rs as clients use it, and Python's jsonschema.

`refused` attacks the claim that a reader schema allows all that a writer schema allows, with random documents.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final
from urllib.parse import urljoin

import jsonschema
import jsonschema_rs
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from harness.json_pairs import documents
from strata.compat.json_schema.containment.decision import Containment, Counterexample
from strata.compat.json_schema.model import JsonSchema
from strata.compat.json_schema.parser import parse

__all__ = ["judges", "refused", "verdict"]

_BASE: Final = "http://strata.invalid/"
_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
_SPECIFICATIONS: Final[Mapping[Any, Any]] = {
    jsonschema.Draft4Validator: DRAFT4,
    jsonschema.Draft6Validator: DRAFT6,
    jsonschema.Draft7Validator: DRAFT7,
    jsonschema.Draft201909Validator: DRAFT201909,
    jsonschema.Draft202012Validator: DRAFT202012,
}
_ASSERTING: Final = (jsonschema.Draft4Validator, jsonschema.Draft6Validator, jsonschema.Draft7Validator)


_OTHERS: Final = (  # whose counterexamples are documents to begin with
    "false",
    '{"type": "null"}',
    '{"not": {"type": "object", "minProperties": 1}}',
    '{"maxProperties": 1}',
    '{"maxItems": 0}',
)


def judges(parsed: JsonSchema) -> list[Callable[[Any], bool]]:
    """Return functions that say whether a document is valid under a schema: two, unless one is known to err.

    Formats count in the dialects that assert them. A schema without a known dialect is draft 7, as in the registry.

    Args:
        parsed: The schema, with those that it refers to.
    """
    references = parsed.documents.texts
    schema = _with_dialect(json.loads(parsed.canonical))
    own = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    base = urljoin(_BASE, own) if isinstance(own, str) else _BASE
    others = {urljoin(base, name): _with_dialect(json.loads(other)) for name, other in references.items()}
    fast = _fast(schema, others, base)
    # In 2019-09, jsonschema 4.26 forgets that `additionalProperties` evaluates properties.
    is_misjudged = "2019-09" in parsed.canonical and "unevaluatedProperties" in parsed.canonical
    return [fast] if is_misjudged else [fast, _slow(schema, others)]


def verdict(judged: Sequence[Callable[[Any], bool]], document: Any) -> bool | None:
    """Return what judges say about a document: True, False, or None if they differ or give up."""
    try:
        verdicts = {is_valid(document) for is_valid in judged}
    except RecursionError:
        return None
    return verdicts.pop() if len(verdicts) == 1 else None


def refused(writer: JsonSchema, reader: JsonSchema, number: int, seed: int) -> list[Any]:
    """Return a random document that both judges find valid under the writer schema and not under the reader's, if any.

    Args:
        writer: The writer schema.
        reader: The reader schema.
        number: How many documents to try.
        seed: The source of chance.
    """
    writes, reads = judges(writer), judges(reader)
    found = [Containment(writer, parse(other, strict=False)).decide(seconds=0.05) for other in _OTHERS]
    valid = [one.document for one in found if isinstance(one, Counterexample)]
    texts = [text for one in (writer, reader) for text in (one.canonical, *one.documents.texts.values())]
    for document in documents(texts, valid, number, Random(seed)):  # noqa: S311 - the same documents each time
        if verdict(writes, document):
            valid.append(document)
            if verdict(reads, document) is False:
                return [document]
    return []


def _fast(schema: Any, others: Mapping[str, Any], base: str) -> Callable[[Any], bool]:
    registry = jsonschema_rs.Registry(list(others.items()), draft=jsonschema_rs.Draft7) if others else None
    validator = jsonschema_rs.validator_for(schema, registry=registry, base_uri=base, offline=True)
    return lambda document: bool(validator.is_valid(document))


def _slow(schema: Any, others: Mapping[str, Any]) -> Callable[[Any], bool]:
    validator_class = jsonschema.validators.validator_for(schema, default=jsonschema.Draft7Validator)
    specification = _SPECIFICATIONS[validator_class]
    resources = {
        name: Resource.from_contents(other, default_specification=specification)
        for uri, other in others.items()
        for name in (uri, uri.removeprefix(_BASE))  # a schema without a name has no base
    }
    registry: Any = Registry().with_resources(resources.items())
    formats = validator_class.FORMAT_CHECKER if validator_class in _ASSERTING else None
    validator = validator_class(schema, registry=registry, format_checker=formats)
    return lambda document: bool(validator.is_valid(document))


def _with_dialect(schema: Any) -> Any:
    if isinstance(schema, dict) and "json-schema.org/" not in str(schema.get("$schema")):
        return {**schema, "$schema": _DRAFT_7}
    return schema
