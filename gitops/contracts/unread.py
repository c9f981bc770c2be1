"""What an import does not take from a contract, by its path: no key of a contract is dropped silently."""

from collections.abc import Iterator, Mapping
from typing import Any

from strata.gitops.contracts.kept import KEPT
from strata.gitops.contracts.shapes import custom_of, type_name

__all__ = ["unread"]

_CONTRACT = ("apiVersion", "kind", "id", "status", "team", "owner", "description", "customProperties", "schema")
_ELEMENT = ("name", "physicalType", "logicalType", "description", "properties", "quality", "customProperties")
_SCHEMA = (*_ELEMENT, "physicalName")
_PROPERTY = (*_ELEMENT, "required", "classification", "tags", "items", "map", "enum", "logicalTypeOptions")
_CHECK = ("name", "type", "engine", "implementation", "metric", "arguments", "mustBe", "description")
_BOUNDS = ("mustBeLessThan", "mustBeLessOrEqualTo", "unit")
_OF_RULES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern")
_OURS = ("namespace", "protoPackageName", "syntax", "enumValues", "additionalProperties", "$schema", "$id")


def unread(contract: Mapping[str, Any], *, has_options: bool) -> Iterator[str]:
    """Yield the paths of what an import does not take.

    Args:
        contract: the contract, whose structure is checked.
        has_options: whether the schemas have the options of types and the titles of properties.
    """
    yield from _others(contract, "", (*_CONTRACT, *KEPT))
    for name, known in (("team", ("name",)), ("description", ("purpose",))):
        value = contract.get(name)
        if isinstance(value, dict):
            yield from _others(value, name, known)
        elif value and not (name == "description" and isinstance(value, str)):
            yield name
    for index, schema in enumerate(contract["schema"]):
        yield from _element(schema, f"schema[{index}]", _SCHEMA, has_options=has_options)


def _others(section: Mapping[str, object], where: str, known: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{where}.{name}".lstrip(".") for name in section if name not in known)


def _element(element: Mapping[str, Any], where: str, known: tuple[str, ...], *, has_options: bool) -> Iterator[str]:
    known = (*known, "businessName") if has_options and known is not _SCHEMA else known
    # The name of a type, in contracts of earlier exports.
    known = (*known, "physicalName") if type_name(element) and known is not _SCHEMA else known
    yield from _others(element, where, known)
    for name in custom_of(element):
        if not name.startswith("strata.") and name not in _OURS:
            yield f"{where}.customProperties.{name}"
    if not has_options:
        yield from _others(element.get("logicalTypeOptions") or {}, f"{where}.logicalTypeOptions", _OF_RULES)
    for index, check in enumerate(element.get("quality") or ()):
        yield from _others(check, f"{where}.quality[{index}]", (*_CHECK, *_BOUNDS))
    for index, value in enumerate(element.get("enum") or ()):
        yield from _others(value, f"{where}.enum[{index}]", ("value",))
    for index, one in enumerate(element.get("properties") or ()):
        yield from _element(one, f"{where}.properties[{index}]", _PROPERTY, has_options=has_options)
    inner = {"items": element.get("items"), **{f"map.{name}": one for name, one in (element.get("map") or {}).items()}}
    for name, one in inner.items():
        if isinstance(one, dict) and one:
            yield from _element(one, f"{where}.{name}", _PROPERTY, has_options=has_options)
