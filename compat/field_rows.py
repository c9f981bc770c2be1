"""The fields of a schema as rows of a table for people: path, type, default, documentation, tags.

Paths are those of tags (`tags.py`), so a row says how to tag its field. A record is followed by its own fields, and
then by the records inside it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from strata.compat.avro import json_text as avro_json
from strata.compat.avro import tags as avro_tags
from strata.compat.entities import TAGS, Entity, EntityType
from strata.compat.json_schema import json_text
from strata.compat.json_schema import tags as json_tags
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.protobuf import tags as protobuf_tags
from strata.compat.protobuf.model import Field, MapValue, Message, Options, Scalar
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.schema import ParsedSchema, SchemaFormat

__all__ = ["FieldRow", "field_rows"]

_LONGEST: Final = 300
_MOST_LISTED: Final = 20  # symbols of an enum, branches of a oneOf
_COMBINED: Final = {"allOf": " & ", "anyOf": " | ", "oneOf": " | "}


class FieldRow(NamedTuple):
    """A field, or the record that the following fields belong to.

    Attributes:
        path: the path by which tags name it.
        name: the name of the field, or of the record.
        is_record: whether it is a record.
        type: the type in short form; empty for a record.
        default: the default as text; None if it has none.
        doc: the documentation; empty if there is none.
        tags: the tags.
        required: whether the schema says that a value must be present.
        number: the number of a Protobuf field; None in other formats.
    """

    path: str
    name: str
    is_record: bool
    type: str = ""
    default: str | None = None
    doc: str = ""
    tags: tuple[str, ...] = ()
    required: bool = False
    number: int | None = None


def field_rows(schema: ParsedSchema, most: int) -> list[FieldRow]:
    """Return the first rows of a schema.

    Args:
        schema: The schema.
        most: The most rows to return.

    Raises:
        SchemaParseError: A JSON Schema has too many paths, since references multiply them.
    """
    return _by_record(islice(_ROWS[schema.format](schema), most))


def _by_record(rows: Iterable[FieldRow]) -> list[FieldRow]:
    """Return rows in the order in which records begin, so that no field follows a record that it does not belong to."""
    by_record: dict[str, list[FieldRow]] = {}
    for row in rows:
        record = row.path if row.is_record else row.path[: -len(row.name) - 1]
        by_record.setdefault(record, []).append(row)
    return [row for group in by_record.values() for row in group]


def _avro_rows(schema: ParsedSchema) -> Iterator[FieldRow]:
    for (path, entity_type), node in avro_tags.entities(avro_json.read_json(schema.canonical, DEFAULT_LIMITS)):
        doc, tags = _words(node.get("doc")), _tags(node)
        if entity_type is EntityType.RECORD:
            yield FieldRow(path, path, is_record=True, doc=doc, tags=tags)
        else:
            default = _value(node, "default", avro_json.write_json)
            yield FieldRow(path, node["name"], False, _cut(_avro_type(node["type"])), default, doc, tags)


def _avro_type(tree: object) -> str:
    if isinstance(tree, list):
        return " | ".join(map(_avro_type, tree))
    if not isinstance(tree, dict):
        return str(tree)
    match tree.get("type"):
        case "array":
            return f"array<{_avro_type(tree['items'])}>"
        case "map":
            return f"map<{_avro_type(tree['values'])}>"
        case "enum":
            return f"enum {tree['name']} ({_listed(tree['symbols'][:_MOST_LISTED], len(tree['symbols']))})"
        case "fixed":
            return f"fixed {tree['name']} of {tree['size']} bytes"
        case "record" | "error" as word:
            return f"{word} {tree['name']}"
    logical = tree.get("logicalType")
    scale = f" {tree.get('precision')}, {tree.get('scale', 0)}" if logical == "decimal" else ""
    suffix = f" ({logical}{scale})" if isinstance(logical, str) else ""
    return _avro_type(tree["type"]) + suffix


def _listed(first: Iterable[str], count: int, between: str = ", ") -> str:
    return between.join([*first, *["…"] * (count > _MOST_LISTED)])


def _json_rows(schema: ParsedSchema) -> Iterator[FieldRow]:
    required: dict[str, list[object]] = {}
    for (path, entity_type), node in json_tags.entities(
        json_text.read_json(schema.canonical, DEFAULT_LIMITS), DEFAULT_LIMITS
    ):
        doc, tags = _words(node.get("description")) or _words(node.get("title")), _tags(node)
        if entity_type is EntityType.RECORD:
            names = node.get("required")
            required[path] = names if isinstance(names, list) else []
            yield FieldRow(path, path, is_record=True, doc=doc, tags=tags)
            continue
        # A name may hold dots, so the record is the longest one that the path begins with.
        record = next(above for above in reversed(required) if path.startswith(f"{above}."))
        name = path.removeprefix(f"{record}.")
        default = _value(node, "default", json_text.write_json)
        yield FieldRow(path, name, False, _cut(_json_type(node)), default, doc, tags, name in required[record])


def _json_type(node: object) -> str:
    if not isinstance(node, dict):
        return "any" if node is True else "nothing"
    if isinstance(node.get("$ref"), str):
        return f"→ {node['$ref']}"
    if isinstance(node.get("enum"), list):
        return f"enum ({_listed(map(json_text.write_json, node['enum'][:_MOST_LISTED]), len(node['enum']))})"
    if "const" in node:
        return f"const {_value(node, 'const', json_text.write_json)}"
    for word, between in _COMBINED.items():
        if isinstance(node.get(word), list):
            return _listed(map(_json_type, node[word][:_MOST_LISTED]), len(node[word]), between)
    types = node.get("type", "any")
    text = " | ".join(map(str, types)) if isinstance(types, list) else str(types)
    if text == "array" and isinstance(node.get("items"), dict):
        text = f"array<{_json_type(node['items'])}>"
    return f"{text} ({node['format']})" if isinstance(node.get("format"), str) else text


def _protobuf_rows(schema: ParsedSchema) -> Iterator[FieldRow]:
    assert isinstance(schema, ProtobufSchema)  # noqa: S101 - the table pairs formats with their classes
    tags = protobuf_tags.tags_of(schema.file)
    waiting = [(message, message.name) for message in schema.file.messages]
    while waiting:
        message, path = waiting.pop(0)
        entity = Entity(path, EntityType.RECORD)
        yield FieldRow(path, path, True, doc=_meta_doc(message.options), tags=tuple(tags.get(entity, ())))
        yield from (_protobuf_field(field, f"{path}.{field.name}", tags) for field in _fields(message))
        waiting[:0] = [(inner, f"{path}.{inner.name}") for inner in message.messages]


def _fields(message: Message) -> Iterator[Field]:
    yield from message.all_fields
    yield from (Field(group.label, "group", group.name, group.tag) for group in message.groups)


def _protobuf_field(field: Field, path: str, tags: Mapping[Entity, list[str]]) -> FieldRow:
    field_tags = tuple(tags.get(Entity(path, EntityType.FIELD), ()))
    shown = f"{field.label} {field.type}" if field.label else field.type
    required = field.label == "required"
    doc = _meta_doc(field.options)
    return FieldRow(path, field.name, False, _cut(shown), field.default, doc, field_tags, required, field.tag)


def _meta_doc(options: Options) -> str:
    """Return the documentation in the options `confluent.field_meta` and `confluent.message_meta`."""
    for option in options:
        if option.custom and option.name.removeprefix(".").startswith("confluent."):
            entries = option.value.entries if isinstance(option.value, MapValue) else ()
            held = dict(entries) if not option.path else {option.path[-1]: option.value}
            doc = held.get("doc")
            if isinstance(doc, Scalar):
                return doc.text
    return ""


def _tags(node: Mapping[str, object]) -> tuple[str, ...]:
    tags = node.get(TAGS)
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def _words(value: object) -> str:
    return value if isinstance(value, str) else ""


def _value(node: Mapping[str, object], name: str, write: Callable[[Any], str]) -> str | None:
    return _cut(write(node[name])) if name in node else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


_ROWS: Final[Mapping[SchemaFormat, Callable[[ParsedSchema], Iterator[FieldRow]]]] = {
    SchemaFormat.AVRO: _avro_rows,
    SchemaFormat.JSON: _json_rows,
    SchemaFormat.PROTOBUF: _protobuf_rows,
}
