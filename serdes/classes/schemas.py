"""The schema of a shape, in Avro and in JSON Schema; `protobuf_schema.py` has Protobuf.

Rules of this file: shapes in, schema texts out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final
from uuid import UUID

from strata.serdes.classes.protobuf_schema import protobuf_text
from strata.serdes.classes.shapes import MISSING, Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import SchemaError
from strata.serdes.model import AVRO, JSON, PROTOBUF

__all__ = ["schema_text"]

_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
_AVRO: Final[Mapping[str, object]] = {
    "null": "null",
    "bool": "boolean",
    "int": "long",
    "int32": "int",
    "float": "double",
    "float32": "float",
    "str": "string",
    "bytes": "bytes",
    "datetime": {"type": "long", "logicalType": "timestamp-micros"},
    "datetime-millis": {"type": "long", "logicalType": "timestamp-millis"},
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "local-millis": {"type": "long", "logicalType": "local-timestamp-millis"},
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "time-millis": {"type": "int", "logicalType": "time-millis"},
    "uuid": {"type": "string", "logicalType": "uuid"},
}
_JSON: Final[Mapping[str, Mapping[str, object]]] = {
    "null": {"type": "null"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "int32": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "float": {"type": "number"},
    "float32": {"type": "number"},
    "str": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "fixed": {"type": "string", "contentEncoding": "base64"},
    "datetime": {"type": "string", "format": "date-time"},
    "datetime-millis": {"type": "string", "format": "date-time"},
    "local": {"type": "string"},  # the format `date-time` has an offset
    "local-millis": {"type": "string"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string"},  # the format `time` of JSON Schema has an offset, which Python's seldom has
    "time-millis": {"type": "string"},
    "uuid": {"type": "string", "format": "uuid"},
    "decimal": {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"},
}


def schema_text(shape: Shape, schema_format: str) -> str:
    """Return the schema of a shape as text.

    Args:
        shape: the shape of a class.
        schema_format: `AVRO`, `JSON` or `PROTOBUF`.

    Raises:
        SchemaError: If the format has no type for a part.
    """
    writers: Mapping[str, Callable[[Shape], str]] = {
        AVRO: lambda root: json.dumps(_Avro().type(root), ensure_ascii=False),
        JSON: lambda root: json.dumps(_json_document(root), ensure_ascii=False),
        PROTOBUF: protobuf_text,
    }
    if schema_format not in writers:
        raise SchemaError(f"a class has no schema in the format {schema_format}; expected {', '.join(writers)}")
    return writers[schema_format](shape)


class _Avro:
    def __init__(self) -> None:
        self._written: dict[str, Shape] = {}

    def type(self, shape: Shape) -> object:
        match shape:
            case Scalar(kind="decimal", numbers=(precision, scale)):
                return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            case Scalar(kind="fixed", numbers=(size,), name=name):
                return {"type": "fixed", "name": name, "size": size} if self._is_new(name, shape) else name
            case Scalar():
                return _AVRO[shape.kind]
            case Items():
                return {"type": "array", "items": self.type(shape.item)}
            case Values():
                return {"type": "map", "values": self.type(shape.value)}
            case Choice():
                return [self.type(branch) for branch in shape.branches]
            case Symbols():
                return self._enum(shape)
            case Object():
                return self._record(shape)
        raise AssertionError(shape)

    def _is_new(self, name: str, shape: Shape) -> bool:
        """Note a named type, and return whether it has not been written yet.

        Raises:
            SchemaError: If another type has the name.
        """
        known = self._written.get(name)
        if known is None:
            self._written[name] = shape
            return True
        if known is not shape and not _is_equal(known, shape):
            raise SchemaError(f"two types have the name {name}; give one another by @named")
        return False

    def _enum(self, shape: Symbols) -> object:
        if not self._is_new(shape.name, shape):
            return shape.name
        written: dict[str, object] = {"type": "enum", "name": shape.name, "symbols": list(shape.symbols)}
        return written | _about(shape.doc, shape.aliases) | ({"default": shape.default} if shape.default else {})

    def _record(self, shape: Object) -> object:
        if not self._is_new(shape.name, shape):
            return shape.name
        written: dict[str, object] = {"type": "record", "name": shape.name, **_about(shape.doc, shape.aliases)}
        return written | {"fields": [self._field(shape, member) for member in shape.members]}

    def _field(self, shape: Object, member: Member) -> dict[str, object]:
        inner, default = member.shape, member.default
        if shape.is_dict and member.attribute not in shape.required:
            branches = inner.branches if isinstance(inner, Choice) else (inner,)
            if not any(_is_null(branch) for branch in branches):
                inner = Choice((Scalar("null"), *branches))
            default = None
        if isinstance(inner, Choice) and default is not MISSING:
            inner = Choice(tuple(sorted(inner.branches, key=lambda branch: not _holds(branch, default))))
        written = {"name": member.name, "type": self.type(inner), **_about(member.doc, member.aliases)}
        if default is not MISSING and (plain := _plain(default)) is not MISSING:
            written["default"] = plain
        return written


def _is_equal(known: Shape, shape: Shape) -> bool:
    """Return whether two types of one name are written alike: two fixed ones of a size, or two equal Literals."""
    if isinstance(known, Symbols) and isinstance(shape, Symbols):
        return known.cls is shape.cls is None and known.symbols == shape.symbols
    return isinstance(shape, Scalar) and known == shape


def _is_null(shape: Shape) -> bool:
    return isinstance(shape, Scalar) and shape.kind == "null"


def _about(doc: str, aliases: Sequence[str]) -> dict[str, object]:
    return ({"doc": doc} if doc else {}) | ({"aliases": list(aliases)} if aliases else {})


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "int32": (int,),
    "float": (float,),
    "float32": (float,),
    "str": (str,),
    "bytes": (bytes,),
}


def _holds(branch: Shape, default: object) -> bool:
    """Return whether a default is a value of a branch, which then comes first."""
    match branch:
        case Scalar():
            return type(default) in _TYPES.get(branch.kind, ())
        case Items():
            return isinstance(default, list | tuple | set | frozenset)
        case Values():
            return isinstance(default, dict)
        case Symbols():
            return isinstance(default, branch.cls) if branch.cls else default in branch.symbols
    return False


def _plain(default: object) -> object:
    """Return a default as Avro's JSON has it; `MISSING` if it is a value of a class or of a logical type."""
    match default:
        case Enum():
            return default.value if isinstance(default.value, str) and default.value.isidentifier() else default.name
        case None | bool() | int() | float() | str():
            return default
        case bytes():
            return default.decode("latin-1")
        case UUID():
            return str(default)
        case list() | tuple() | set() | frozenset():
            items = [_plain(item) for item in default]
            return MISSING if MISSING in items else items
        case dict():
            values = {str(key): _plain(value) for key, value in default.items()}
            return MISSING if MISSING in values.values() else values
    return MISSING


_Definitions = dict[str, dict[str, object]]


def _json_document(shape: Shape) -> object:
    definitions: _Definitions = {}
    root = _json(shape, definitions)
    name = shape.name if isinstance(shape, Object | Symbols) else ""
    if name and not _refers_to(definitions, name):
        root = definitions.pop(name)
    return {"$schema": _DRAFT_7, **root, **({"definitions": definitions} if definitions else {})}


def _refers_to(definitions: Mapping[str, object], name: str) -> bool:
    return f'"#/definitions/{name}"' in json.dumps(definitions)


def _json(shape: Shape, definitions: _Definitions) -> dict[str, object]:
    match shape:
        case Scalar():
            return dict(_JSON[shape.kind])
        case Items():
            written = {"type": "array", "items": _json(shape.item, definitions)}
            return written | ({"uniqueItems": True} if shape.make in (set, frozenset) else {})
        case Values():
            return {"type": "object", "additionalProperties": _json(shape.value, definitions)}
        case Choice():
            return {"oneOf": [_json(branch, definitions) for branch in shape.branches]}
        case Symbols():
            definitions.setdefault(shape.name, {"type": "string", "enum": list(shape.symbols)} | _described(shape.doc))
        case Object() if shape.name not in definitions:
            definitions[shape.name] = {}  # a class may contain itself
            definitions[shape.name] = _object(shape, definitions)
    return {"$ref": f"#/definitions/{shape.name}"}


def _object(shape: Object, definitions: _Definitions) -> dict[str, object]:
    properties, required = {}, []
    for member in shape.members:
        inner = _json(_present(member), definitions)
        about = _described(member.doc)
        has_default = member.default is not MISSING and not (member.is_absent and member.default is None)
        if has_default and (plain := _plain(member.default)) is not MISSING:
            about["default"] = plain
        # Draft 7 ignores what stands beside a $ref.
        properties[member.name] = {"allOf": [inner], **about} if "$ref" in inner and about else inner | about
        if member.attribute in shape.required or (not shape.is_dict and member.default is MISSING):
            required.append(member.name)
    written: dict[str, object] = {
        "type": "object",
        "title": shape.name,
        **_described(shape.doc),
        "properties": properties,
    }
    written |= {"required": required} if required else {}
    return written if shape.is_open else written | {"additionalProperties": False}


def _present(member: Member) -> Shape:
    """Return the type of a property that is there: without None, if None is a property that is not."""
    if not (member.is_absent and isinstance(member.shape, Choice)):
        return member.shape
    branches = tuple(branch for branch in member.shape.branches if not _is_null(branch))
    return branches[0] if len(branches) == 1 else Choice(branches)


def _described(doc: str) -> dict[str, object]:
    return {"description": doc} if doc else {}
