"""The structure of a contract, as far as the import reads it: every mistake is named with its place."""

from collections.abc import Iterator, Mapping
from typing import Any

from strata.gitops.errors import GitopsError

__all__ = ["check_structure"]

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems")


def check_structure(contract: Mapping[str, object]) -> None:
    """Raise if a part of a contract is of another kind than the standard has there.

    Raises:
        GitopsError: If it is.
    """
    if not isinstance(contract.get("id"), str):
        raise GitopsError("id: expected a text")
    _custom(contract, "")
    schemas = list(_mappings(contract, "", "schema"))
    if not schemas:
        raise GitopsError("schema: expected a list with at least one schema")
    for where, schema in schemas:
        _element(schema, where, named=True)


def _element(element: Mapping[str, Any], where: str, *, named: bool) -> None:
    """Check a schema, a property or the items of an array."""
    if named and not (isinstance(element.get("name"), str) and element["name"]):
        raise GitopsError(f"{where}: expected a `name`")
    _custom(element, where)
    tags = element.get("tags")
    if tags is not None and not isinstance(tags, list):
        raise GitopsError(f"{where}.tags: expected a list")
    options = _mapping(element, where, "logicalTypeOptions")
    for name in (*_NUMBERS, *_LENGTHS):
        if name in options and not _is_number(options[name], whole=name in _LENGTHS):
            raise GitopsError(f"{where}.logicalTypeOptions.{name}: expected a number, got {options[name]!r}")
    for place, check in _mappings(element, where, "quality"):
        _mapping(check, place, "arguments")
    for place, property_ in _mappings(element, where, "properties"):
        _element(property_, place, named=True)
    for place, value in _mappings(element, where, "enum"):
        if "value" not in value:
            raise GitopsError(f"{place}: expected a `value`")
    for name, inner in (
        ("items", element),
        ("key", _mapping(element, where, "map")),
        ("value", element.get("map") or {}),
    ):
        mapping = _mapping(inner, where if name == "items" else f"{where}.map", name)
        if mapping:
            _element(mapping, f"{where}.{name}" if name == "items" else f"{where}.map.{name}", named=False)


def _custom(section: Mapping[str, object], where: str) -> None:
    for place, custom in _mappings(section, where, "customProperties"):
        if not isinstance(custom.get("property"), str):
            raise GitopsError(f"{place}: expected a `property`")


def _mappings(section: Mapping[str, object], where: str, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the items of a list, which must be mappings, with their places; none if it is absent."""
    place = f"{where}.{name}".lstrip(".")
    values = section.get(name) or []
    if not isinstance(values, list):
        raise GitopsError(f"{place}: expected a list")
    for index, mapping in enumerate(values):
        if not isinstance(mapping, dict):
            raise GitopsError(f"{place}[{index}]: expected a mapping")
        yield f"{place}[{index}]", mapping


def _mapping(section: Mapping[str, object], where: str, name: str) -> Mapping[str, object]:
    value = section.get(name) or {}
    if not isinstance(value, dict):
        raise GitopsError(f"{where}.{name}: expected a mapping")
    return value


def _is_number(value: Any, *, whole: bool) -> bool:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return number - number == 0 and (not whole or str(value).isdigit())
