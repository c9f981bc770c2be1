"""The places of a schema where people search: names, fields, documentation, tags and metadata. Pure.

The texts are read as they are, without the parsers of `compat`: an index of 100,000 schemas takes seconds, not minutes,
and a stored schema that no longer parses is found as well.
"""

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from strata.storage.records import Metadata
from strata.storage.state import SchemaVersion

__all__ = ["Kind", "Place", "places"]

_TAGS = "confluent:tags"
_DEFINITIONS = ("properties", "definitions", "$defs")
_DOCS = ("doc", "title", "description")
_TYPE = re.compile(r"\b(?:message|enum|service|rpc|oneof)\s+(\w+)")
_FIELD = re.compile(r"\b(\w+)\s*=\s*\d+\s*[;\[]")
_TAGGED = re.compile(r"\btags\s*[:=]\s*(\[[^\]]*\]|\"[^\"]*\")")
_QUOTED = re.compile(r"\"([^\"\n]{1,10000})\"")
_COMMENT = re.compile(r"//([^\n]*)|/\*(.*?)\*/", re.DOTALL)


class Kind(StrEnum):
    """What a place is, spelled as in a query."""

    NAME = "name"
    FIELD = "field"
    DOC = "doc"
    TAG = "tag"
    METADATA = "meta"


class Place(NamedTuple):
    """A text of a schema, and where it is; the path is empty for the schema as a whole."""

    kind: Kind
    path: str
    text: str


def places(entry: SchemaVersion) -> Iterator[Place]:
    """Yield the places of a version, its name first; of a text that cannot be read, only those around it."""
    yield Place(Kind.NAME, "", entry.subject)
    value = entry.schema.value
    yield from _metadata(value.metadata)
    if entry.schema.schema_type == "PROTOBUF":
        yield from _in_protobuf(entry.schema.text)
        return
    try:
        tree = json.loads(entry.schema.text)
    except (ValueError, RecursionError):
        return
    yield from _in_json(tree)


def _metadata(metadata: Metadata | None) -> Iterator[Place]:
    properties, tags = (metadata or {}).get("properties"), (metadata or {}).get("tags")
    if isinstance(properties, Mapping):
        for name, value in properties.items():
            yield Place(Kind.METADATA, str(name), f"{name} {value}")
    if isinstance(tags, Mapping):
        for path, names in tags.items():
            for name in names if isinstance(names, list) else ():
                yield Place(Kind.TAG, str(path), str(name))


def _in_json(tree: object) -> Iterator[Place]:
    """Yield the places of an Avro schema or a JSON Schema."""
    stack: list[tuple[object, str]] = [(tree, "")]
    while stack:
        value, path = stack.pop()
        if isinstance(value, list):
            stack += ((item, path) for item in reversed(value))
        if not isinstance(value, dict):
            continue
        name = value.get("name")
        here = path
        if isinstance(name, str):
            is_field = "type" in value and not ({"fields", "symbols", "size"} & value.keys())
            yield Place(Kind.FIELD if is_field else Kind.NAME, here := f"{path}.{name}".lstrip(".")[:500], name)
        yield from _attributes(value, here)
        for word, inner in value.items():
            if word in _DEFINITIONS and isinstance(inner, dict):
                place_kind = Kind.FIELD if word == "properties" else Kind.NAME
                for key in reversed(inner):
                    yield Place(place_kind, below := f"{here}.{key}".lstrip(".")[:500], key)
                    stack.append((inner[key], below))
            elif isinstance(inner, dict | list) and word not in ("default", "enum", "const", "examples", _TAGS):
                stack.append((inner, here))


def _attributes(value: dict[str, object], path: str) -> Iterator[Place]:
    for word in _DOCS:
        if isinstance(text := value.get(word), str):
            yield Place(Kind.DOC, path, text)
    for word, place_kind in (("symbols", Kind.FIELD), ("aliases", Kind.NAME), (_TAGS, Kind.TAG)):
        names = value.get(word)
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str):
                yield Place(place_kind, path, name)


def _in_protobuf(text: str) -> Iterator[Place]:
    for match in _COMMENT.finditer(text):
        yield Place(Kind.DOC, "", (match[1] or match[2] or "").strip())
    for match in _TYPE.finditer(text):
        yield Place(Kind.NAME, match[1], match[1])
    for match in _FIELD.finditer(text):
        yield Place(Kind.FIELD, match[1], match[1])
    for match in _TAGGED.finditer(text):
        for name in _QUOTED.findall(match[1]):
            yield Place(Kind.TAG, "", name)
    for name in _QUOTED.findall(text):
        yield Place(Kind.DOC, "", name)
