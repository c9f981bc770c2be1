"""What a schema says of its fields beside their types: documentation, and former names.

Rules of this file: a schema in, notes by column path out; the same path as that of the decoded column.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from strata.serdes.avro.schema import Array, Enum, Field, Kind, Map, Node, Primitive, Record, Union, parse
from strata.serdes.model import AVRO, JSON, Schema
from strata.spark_udfs.tables.changes import ELEMENT, VALUE, Path

__all__ = ["Notes", "notes_of"]

_DEEPEST: Final = 32
_LONGEST: Final = 1000
"""Characters of a comment; the rest of a longer text is left out."""


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of a schema by column path.

    Attributes:
        docs: the documentation of a field.
        aliases: the former names of a field.
        defaults: the default of an Avro field of a boolean, a number, a string or an enum: older records are read so.
    """

    docs: dict[Path, str] = field(default_factory=dict)
    aliases: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    defaults: dict[Path, bool | int | float | str] = field(default_factory=dict)


def notes_of(schema: Schema, references: tuple[str, ...] = ()) -> Notes:
    """Return the notes of a schema; a Protobuf schema has none.

    Args:
        schema: the reader schema.
        references: the texts of the Avro schemas that it refers to.

    Raises:
        SchemaError: If an Avro schema cannot be read.
    """
    notes = Notes()
    if schema.format == AVRO:
        for path, inner in _avro(parse(schema.text, references), (), 0):
            _note(notes, path, inner.doc, inner.aliases)
            if _has_plain_default(inner) and isinstance(inner.default, bool | int | float | str):
                notes.defaults[path] = inner.default
    elif schema.format == JSON:
        for path, doc in _json(json.loads(schema.text), (), 0):
            _note(notes, path, doc, ())
    return notes


def _note(notes: Notes, path: Path, doc: str, aliases: tuple[str, ...]) -> None:
    if doc:
        notes.docs[path] = doc[:_LONGEST]
    if aliases:
        notes.aliases[path] = aliases


def _avro(node: Node, path: Path, depth: int) -> Iterator[tuple[Path, Field]]:
    if depth > _DEEPEST:
        return
    if isinstance(node, Record):
        for inner in node.fields:
            yield (*path, inner.name), inner
            yield from _avro(inner.type, (*path, inner.name), depth + 1)
    elif isinstance(node, Array):
        yield from _avro(node.items, (*path, ELEMENT), depth + 1)
    elif isinstance(node, Map):
        yield from _avro(node.values, (*path, VALUE), depth + 1)
    elif isinstance(node, Union):
        branches = [branch for branch in node.branches if not _is_null(branch)]
        if len(branches) == 1:
            yield from _avro(branches[0], path, depth + 1)


_PLAIN: Final = {
    Kind.BOOLEAN: (bool,),
    Kind.INT: (int,),
    Kind.LONG: (int,),
    Kind.FLOAT: (int, float),
    Kind.DOUBLE: (int, float),
    Kind.STRING: (str,),
}


def _has_plain_default(inner: Field) -> bool:
    """Return whether a field has a default that is a value of its column as it is written."""
    first = inner.type.branches[0] if isinstance(inner.type, Union) and inner.type.branches else inner.type
    if isinstance(first, Enum):
        return isinstance(inner.default, str)
    if not isinstance(first, Primitive) or first.logical is not None:
        return False
    return type(inner.default) in _PLAIN.get(first.kind, ())


def _is_null(node: Node) -> bool:
    return isinstance(node, Primitive) and node.kind is Kind.NULL


def _json(node: object, path: Path, depth: int) -> Iterator[tuple[Path, str]]:
    """Yield the descriptions of properties that are written in place; references are not followed."""
    if depth > _DEEPEST or not isinstance(node, dict):
        return
    properties = node.get("properties")
    if isinstance(properties, dict):
        for name, inner in properties.items():
            if isinstance(inner, dict):
                doc = inner.get("description")
                yield (*path, name), doc if isinstance(doc, str) else ""
                yield from _json(inner, (*path, name), depth + 1)
    yield from _json(node.get("items"), (*path, ELEMENT), depth + 1)
