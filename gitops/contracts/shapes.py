"""What the schema formats share with a contract: an object with properties, tags, and what the contract cannot say.

A type that ODCS has no words for travels as text in the custom property `strata.type`, and comes back from there.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from strata.gitops.errors import GitopsError

__all__ = [
    "DEPTH",
    "EXACT",
    "MAP_VALUE",
    "NAME",
    "NAMED",
    "TAGS",
    "TYPE_NAME",
    "Format",
    "Made",
    "Shape",
    "custom_of",
    "customs",
    "described",
    "enum_check",
    "enum_values",
    "identifier",
    "is_required",
    "labels",
    "map_value",
    "tagged",
    "too_deep",
    "type_name",
]

DEPTH = 50
_NAMED_KINDS = ("record", "enum", "message")
TAGS, EXACT, NAMED, MAP_VALUE = "confluent:tags", "strata.type", "strata.typeName", "strata.mapValue"
NAME = re.compile(r"[^A-Za-z0-9_]")
TYPE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(slots=True)
class Shape:
    """A schema as the object of a contract.

    Attributes:
        name: its name.
        kind: what its format calls such a type.
        doc: its description.
        properties: its properties, as a contract has them.
        custom: its custom properties.
        left_out: what the contract does not say, each with its path.
    """

    name: str
    kind: str
    doc: str | None = None
    properties: list[dict[str, object]] = field(default_factory=list)
    custom: dict[str, object] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Made:
    """The text of a schema that a contract describes, and what the schema does not say."""

    text: str
    left_out: tuple[str, ...] = ()


class Format(NamedTuple):
    """How a schema format goes into contracts and out of them.

    Attributes:
        ending: the ending of its files.
        shape: returns the shape of a text; raises GitopsError.
        make: returns the schema of an object of a contract, with its custom properties and its description.
        has_options: whether the schema itself has bounds, lengths and patterns, so that rules need not.
        absent: an expression in CEL for an absent value.
    """

    ending: str
    shape: Callable[[str], Shape]
    make: Callable[[Mapping[str, object], Mapping[str, object], str | None], Made]
    has_options: bool
    absent: str


def described(text: object) -> dict[str, object]:
    """Return the description of a property, if there is one."""
    return {"description": text} if text else {}


def tagged(tags: object) -> dict[str, object]:
    """Return tags of a schema as those of a property, the first of which is the classification."""
    return {"classification": tags[0], "tags": list(tags)} if isinstance(tags, list | tuple) and tags else {}


def labels(element: Mapping[str, Any]) -> list[str]:
    """Return the tags of a property, the classification first."""
    return list(dict.fromkeys(str(tag) for tag in (element.get("classification"), *(element.get("tags") or ())) if tag))


def customs(values: Mapping[str, object]) -> dict[str, Any]:
    """Return custom properties, without those that have no value."""
    customs_ = [{"property": name, "value": value} for name, value in values.items() if value not in (None, "", {}, [])]
    return {"customProperties": customs_} if customs_ else {}


def custom_of(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the custom properties of a section of a contract."""
    return {custom["property"]: custom.get("value") for custom in section.get("customProperties") or ()}


def identifier(text: object) -> str:
    """Return a name of a contract as one that Avro and Protobuf allow."""
    name = NAME.sub("_", str(text))
    return f"_{name}" if name[:1].isdigit() else name


def is_required(element: Mapping[str, object]) -> bool:
    """Return whether a property must have a value."""
    return element.get("required") in (True, "true") or element.get("primaryKey") in (True, "true")


def enum_check(values: Iterable[object]) -> dict[str, Any]:
    """Return the check that a property has one of some values."""
    arguments = {"validValues": list(values)}
    return {"quality": [{"type": "library", "metric": "invalidValues", "mustBe": 0, "arguments": arguments}]}


def enum_values(element: Mapping[str, Any]) -> list[str]:
    """Return the values that a property may have; empty if no check says so."""
    checks = (check for check in element.get("quality") or () if check.get("arguments"))
    return next((list(check["arguments"].get("validValues") or ()) for check in checks), [])


def type_name(element: Mapping[str, object]) -> str | None:
    """Return the name of the type of a property; contracts of earlier exports have it as the physical name."""
    named = custom_of(element).get(NAMED)
    if named is None and element.get("physicalType") in _NAMED_KINDS:
        named = element.get("physicalName")
    return str(named) if named and TYPE_NAME.fullmatch(str(named)) else None


def map_value(element: Mapping[str, Any]) -> Mapping[str, object] | None:
    """Return the values of a map as a property, of ODCS 3.2 or as a Protobuf map is exported; None if not a map."""
    if element.get("logicalType") == "map":
        return (element.get("map") or {}).get("value") or {}
    if str(element.get("physicalType")).startswith("map<"):
        value = custom_of(element).get(MAP_VALUE)
        return value if isinstance(value, dict) else next(iter(element.get("properties") or ()), {})
    return None


def exact(schema: object) -> dict[str, object]:
    """Return the custom property that holds a type as it is."""
    return customs({EXACT: json.dumps(schema, ensure_ascii=False)})


def too_deep(depth: int) -> None:
    """Raise if a nesting is deeper than any contract needs.

    Raises:
        GitopsError: If it is.
    """
    if depth > DEPTH:
        raise GitopsError(f"the schema is nested more than {DEPTH} levels deep")
