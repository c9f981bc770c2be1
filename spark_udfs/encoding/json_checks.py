"""What a JSON Schema requires of rows, written out for the executors in the JVM.

Each part of the schema becomes a list of checks, each with the words of its error, and each reference is replaced by
what it refers to. The JVM drops the checks that the type of the column already guarantees. It knows fewer keywords than
the Python path, which validates with the rest.

Rules of this file: schemas in, a JSON value out; the words are those of `strata.serdes.json_schema.explanations`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

import jsonschema_rs

from strata.serdes.client import Schema
from strata.serdes.errors import SchemaError
from strata.serdes.json_schema.explanations import detail_of, property_part
from strata.serdes.json_schema.serializer import documents_of
from strata.serdes.json_schema.validator import base_uri, compiled
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.encoding.json_patterns import UnknownPattern, automaton

__all__ = ["checks_of"]

_MOST_CHECKS = 10_000
_DEEPEST = 64
_EXACT = 2**53
"""Doubles hold every integer up to it."""
_LONGS = range(-(2**63), 2**63)
_DRAFT = re.compile(r"draft-0\d|draft/[\d-]+")
_OLD: Final = {"draft-06", "draft-07"}
_SAMPLES: Final[tuple[Any, ...]] = (None, True, "", [], {}, 0.5, 1)
"""A value of each type."""
_NEVER: Final = detail_of("falseSchema", None)
_MISSING: Final = "expected a value, got none: the property is required"
_NOT_ALLOWED: Final = "the schema does not allow the value"
_ASSERTED: Final = frozenset({"date", "date-time", "time"})
_IGNORED_FORMATS: Final = frozenset(
    {"int32", "int64", "float", "double", "decimal", "byte", "binary", "password", "uuid"}
)
"""Formats that no draft up to 7 knows."""
_ANNOTATIONS_SINCE_2019: Final = frozenset({"format", "contentEncoding", "contentMediaType", "contentSchema"})
_REFUSED: Final = frozenset(
    {
        "patternProperties", "propertyNames", "uniqueItems", "contains", "minContains", "maxContains", "if",
        "then", "else", "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
        "unevaluatedItems", "prefixItems", "additionalItems", "contentMediaType", "$dynamicRef", "$recursiveRef",
        "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "discriminator",
    }
)  # fmt: skip


def checks_of(schema: Schema, references: Mapping[str, Schema]) -> list[Any]:
    """Return the checks of a schema, as JSON for `strata.spark.ValidCompiler`.

    Args:
        schema: the JSON Schema.
        references: the schemas that it refers to, by name, and those that they refer to.

    Raises:
        OnlyInPython: If only Python workers can validate with the schema, or the schema cannot be used at all.
    """
    try:
        documents = documents_of(schema, references)
        (base, document), *others = documents.items()
        compiled(document, dict(others), base)
    except SchemaError:
        raise OnlyInPython("a JSON Schema that cannot be used") from None
    drafts = {_draft(one) for one in documents.values()}
    if len(drafts) > 1 or "draft-04" in drafts:
        raise _unknown("$schema", "of draft 4" if len(drafts) == 1 else "of several drafts")
    if any(_has_resource(one, is_root=True) for one in documents.values()):
        raise _unknown("$id", "inside a schema")
    return _Writer(documents, is_old=drafts <= _OLD).checks(_At(base, (), document))


def _unknown(keyword: str, how: str = "") -> OnlyInPython:
    return OnlyInPython(f"JSON with validation by `{keyword}`{how and f' {how}'} (validate=False leaves it out)")


def _draft(document: Any) -> str:
    found = _DRAFT.search(str(document["$schema"])) if isinstance(document, dict) else None
    return found.group() if found else "draft-07"


def _has_resource(tree: Any, *, is_root: bool = False) -> bool:
    """Return whether a part of a document has a base URI of its own."""
    if isinstance(tree, list):
        return any(_has_resource(one) for one in tree)
    if not isinstance(tree, dict):
        return False
    return ("$id" in tree and not is_root) or any(_has_resource(one) for one in tree.values())


class _At(NamedTuple):
    """A part of a document."""

    uri: str
    pointer: tuple[str, ...]
    tree: Any

    def down(self, *steps: str | int) -> "_At":
        tree = self.tree
        for step in steps:
            tree = tree[step]
        return _At(self.uri, (*self.pointer, *map(str, steps)), tree)

    def rule(self, *keyword: str) -> str:
        return "/".join((*self.pointer, *keyword)) or "false"


class _Writer:
    """Writes the checks of one schema and of what it refers to."""

    def __init__(self, documents: Mapping[str, Any], *, is_old: bool) -> None:
        self._documents = documents
        self._is_old = is_old
        self._count = 0
        self._depth = 0
        self._busy: list[tuple[str, tuple[str, ...]]] = []

    def checks(self, at: _At) -> list[Any]:
        """Return the checks of a part."""
        if at.tree is True:
            return []
        if at.tree is False:
            return [{"check": "never", "rule": at.rule(), "detail": _NEVER}]
        if self._is_old and "$ref" in at.tree:  # whose siblings older drafts ignore
            return self.referred(at)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise OnlyInPython(f"JSON with validation by a schema of more than {_DEEPEST} levels")
        made: list[Any] = []
        for keyword, value in at.tree.items():
            made += self._of_keyword(at, keyword, value)
        self._depth -= 1
        self._count += sum(len(one.get("table", ".")) for one in made)
        if self._count > _MOST_CHECKS:
            raise OnlyInPython(f"JSON with validation by a schema of more than {_MOST_CHECKS} rules")
        return made

    def _of_keyword(self, at: _At, keyword: str, value: Any) -> list[Any]:
        if keyword in _ANNOTATIONS_SINCE_2019 and not self._is_old:
            return []
        if keyword in _LEAVES:
            made = _LEAVES[keyword](keyword, value)
            return [] if made is None else [{"check": keyword, "rule": at.rule(keyword), **made}]
        if keyword in _REFUSED:
            raise _unknown(keyword)
        if keyword not in _APPLICATORS:
            return []
        return _APPLICATORS[keyword](self, at)

    def referred(self, at: _At) -> list[Any]:
        target = self._target(at, at.tree["$ref"])
        mark = (target.uri, target.pointer)
        if mark in self._busy:
            raise _unknown("$ref", "to a schema around it")
        self._busy.append(mark)
        made = self.checks(target)
        self._busy.pop()
        return made

    def all_of(self, at: _At) -> list[Any]:
        return [one for checks in self._listed(at, "allOf") for one in checks]

    def one_of(self, at: _At) -> list[Any]:
        return [{"check": "oneOf", "rule": at.rule("oneOf"), "branches": self._listed(at, "oneOf")}]

    def any_of(self, at: _At) -> list[Any]:
        return [{"check": "anyOf", "rule": at.rule("anyOf"), "branches": self._listed(at, "anyOf")}]

    def _listed(self, at: _At, keyword: str) -> list[list[Any]]:
        return [self.checks(at.down(keyword, place)) for place in range(len(at.tree[keyword]))]

    def negated(self, at: _At) -> list[Any]:
        return [{"check": "not", "rule": at.rule("not"), "detail": _NOT_ALLOWED, "checks": self.checks(at.down("not"))}]

    def items(self, at: _At) -> list[Any]:
        if isinstance(at.tree["items"], list):
            raise _unknown("items", "with several schemas")
        return [{"check": "items", "checks": self.checks(at.down("items"))}]

    def properties(self, at: _At) -> list[Any]:
        properties = [
            {"name": name, "part": property_part(name), "checks": self.checks(at.down("properties", name))}
            for name in at.tree["properties"]
        ]
        return [{"check": "properties", "properties": properties}]

    def required(self, at: _At) -> list[Any]:
        forbidden = {*at.tree["required"]} - {*_known(at)}
        if forbidden and "properties" in at.tree and at.tree.get("additionalProperties") is False:
            raise _unknown("required", "of a property that `additionalProperties` forbids")  # whose errors vary
        written = {"rule": at.rule("required"), "detail": _MISSING, "names": at.tree["required"], "known": _known(at)}
        return [{"check": "required", **written}]

    def additional(self, at: _At) -> list[Any]:
        rule, is_closed = at.rule("additionalProperties"), at.tree["additionalProperties"] is False
        if is_closed and "properties" in at.tree:
            return [{"check": "closed", "rule": rule, "known": _known(at)}]
        if is_closed:
            return [{"check": "empty", "rule": rule, "detail": _NEVER}]
        return [{"check": "additional", "known": _known(at), "checks": self.checks(at.down("additionalProperties"))}]

    def _target(self, at: _At, reference: str) -> _At:
        uri, fragment = urldefrag(urljoin(base_uri(self._documents[at.uri], at.uri), reference))
        uri = at.uri if reference.startswith("#") else uri
        found = next((one for one, tree in self._documents.items() if uri in (one, base_uri(tree, one))), None)
        if found is None or (fragment and not fragment.startswith("/")):
            raise _unknown("$ref", "to an anchor" if fragment else "to another document")
        target = _At(found, (), self._documents[found])
        try:
            for step in fragment.split("/")[1:]:
                name = unquote(step).replace("~1", "/").replace("~0", "~")
                target = target.down(int(name) if isinstance(target.tree, list) else name)
        except (LookupError, TypeError, ValueError):
            raise _unknown("$ref", "that is unusual") from None
        return target


def _known(at: _At) -> list[str]:
    return list(at.tree.get("properties", ()))


_APPLICATORS: Final[Mapping[str, Callable[[_Writer, _At], list[Any]]]] = {
    "$ref": _Writer.referred,
    "allOf": _Writer.all_of,
    "oneOf": _Writer.one_of,
    "anyOf": _Writer.any_of,
    "not": _Writer.negated,
    "items": _Writer.items,
    "properties": _Writer.properties,
    "required": _Writer.required,
    "additionalProperties": _Writer.additional,
}


# The keywords that concern one value; each returns the fields of its check, or None if it checks nothing.


def _type(_: str, value: Any) -> dict[str, Any] | None:
    allows = jsonschema_rs.validator_for({"type": value})
    error: Any = next((one for sample in _SAMPLES for one in allows.iter_errors(sample)), None)
    if error is None:
        return None
    types = error.kind.types  # in the order of the validator, which the words follow
    return {"types": list(types), "detail": detail_of("type", None, types=types).removesuffix("null")}


def _enum(_: str, value: list[Any]) -> dict[str, Any]:
    detail = detail_of("enum", None, options=value).removesuffix("null")
    return {"values": [_scalar("enum", one) for one in value], "detail": detail}


def _const(_: str, value: Any) -> dict[str, Any]:
    detail = detail_of("const", None, expected_value=value).removesuffix("null")
    return {"values": [_scalar("const", value)], "detail": detail, "mark": str(value)}


def _scalar(keyword: str, value: Any) -> Any:
    if isinstance(value, dict | list):
        raise _unknown(keyword, "with an object or array")
    if isinstance(value, int | float) and not -_EXACT < value < _EXACT:
        raise _unknown(keyword, "with a long number")
    return value


def _limit(keyword: str, value: Any) -> dict[str, Any]:
    if not (value in _LONGS if isinstance(value, int) else -_EXACT < value < _EXACT):
        raise _unknown(keyword, "with a long number")
    return {"limit": repr(value), "detail": detail_of(keyword, None, value=value)}


def _multiple(keyword: str, value: Any) -> dict[str, Any]:
    if value != int(value) or value >= _EXACT:
        raise _unknown(keyword, "with a fraction" if value < _EXACT else "with a long number")
    return {"limit": str(int(value)), "detail": detail_of(keyword, None, value=value)}


def _length(keyword: str, value: Any) -> dict[str, Any]:
    if value >= _EXACT:
        raise _unknown(keyword, "with a long number")
    return {"limit": str(int(value)), "detail": detail_of(keyword, None, value=int(value))}


def _pattern(keyword: str, value: Any) -> dict[str, Any]:
    try:
        found = automaton(value)
    except UnknownPattern:
        raise _unknown(keyword, f"{value[:40]!r}") from None
    table = {"classes": found.classes, "table": found.table, "accepting": sorted(found.accepting)}
    return {**table, "open": found.is_open, "detail": detail_of(keyword, None, pattern=value)}


def _format(_: str, value: Any) -> dict[str, Any] | None:
    if value in _IGNORED_FORMATS:
        return None
    if value not in _ASSERTED:
        raise _unknown("format", f"{str(value)[:40]!r}")
    return {"name": value, "detail": detail_of("format", None, format=value)}


def _encoding(_: str, value: Any) -> dict[str, Any]:
    if value != "base64":
        raise _unknown("contentEncoding", f"{str(value)[:40]!r}")
    return {"detail": _NOT_ALLOWED}


_LEAVES: Final[Mapping[str, Callable[[str, Any], dict[str, Any] | None]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "format": _format,
    "contentEncoding": _encoding,
    "pattern": _pattern,
    "multipleOf": _multiple,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _limit),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _length),
}
