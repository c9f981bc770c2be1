"""Judges of JSON documents that are not ours: jsonschema-rs as clients use it, and Python's jsonschema."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urljoin

import jsonschema
import jsonschema_rs
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

__all__ = ["judges"]

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


def judges(text: str, references: Mapping[str, str]) -> list[Callable[[Any], bool]]:
    """Return two functions that say whether a document is valid under a schema.

    Formats count in the dialects that assert them. A schema without a known dialect is draft 7, as in the registry.

    Args:
        text: The schema.
        references: The texts of the schemas that it refers to, by name.
    """
    schema = _with_dialect(json.loads(text))
    own = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    base = urljoin(_BASE, own) if isinstance(own, str) else _BASE
    others = {urljoin(base, name): _with_dialect(json.loads(other)) for name, other in references.items()}
    return [_fast(schema, others, base), _slow(schema, others)]


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
