"""Random Protobuf schemas that Spark can express, changed versions of them, and messages."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from google.protobuf import any_pb2, duration_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.compat.formats import FORMATS
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.to_descriptor import file_to_descriptor
from strata.compat.schema import SchemaFormat

__all__ = ["Field", "Kind", "Maker", "fill", "message_class"]

_SCALARS = (
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64",
    "bool", "string", "bytes", "double", "float",
)  # fmt: skip
_KEYS = tuple(name for name in _SCALARS if name not in ("double", "float", "bytes"))
_WIDENED = {
    "int32": ("int64", "uint32", "bool"),
    "int64": ("int32", "uint64"),
    "uint64": ("int64", "uint32"),
    "sint64": ("sint32",),
    "fixed64": ("sfixed64",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_WELL_KNOWN = ("Timestamp", "Duration", "Int32Value", "UInt64Value", "StringValue", "BoolValue", "BytesValue", "Any")
_IMPORTS = "".join(f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "any"))
_ENUM = "enum E { E_ZERO = 0; E_ONE = 1; E_FAR = 100000; E_LOW = -1; }"


@dataclass(frozen=True)
class Field:
    """A field of a message; a label is empty, `optional`, `repeated`, `map KEY` or `oneof`."""

    number: int
    kind: str
    label: str = ""

    def text(self) -> str:
        """Return its declaration."""
        if self.label.startswith("map "):
            return f"map<{self.label[4:]}, {self.kind}> f{self.number} = {self.number};"
        label = "" if self.label == "oneof" else f"{self.label} "
        return f"{label}{self.kind} f{self.number} = {self.number};"


@dataclass(frozen=True)
class Kind:
    """A message type M, and those inside it."""

    fields: tuple[Field, ...]
    inner: dict[str, "Kind"] = field(default_factory=dict)

    def text(self) -> str:
        """Return the text of a file whose first message it is."""
        body = f"{self._message('M')} {_ENUM}"
        return f'syntax = "proto3"; package shop; {_IMPORTS}{body}'

    def _message(self, name: str) -> str:
        alone = " ".join(one.text() for one in self.fields if one.label != "oneof")
        members = " ".join(one.text() for one in self.fields if one.label == "oneof")
        nested = " ".join(one._message(inner) for inner, one in self.inner.items())
        return f"message {name} {{ {alone} {f'oneof choice {{ {members} }}' if members else ''} {nested} }}"


class Maker:
    """Makes message types and changed versions of them."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._count = 0

    def kind(self, depth: int = 2) -> Kind:
        """Return a message type."""
        inner: dict[str, Kind] = {}
        numbers = self._chance.sample([*range(1, 20), 900, 1500, 70000], self._chance.randint(1, 9))
        return Kind(tuple(self._field(number, inner, depth) for number in numbers), inner)

    def _field(self, number: int, inner: dict[str, Kind], depth: int) -> Field:
        kind = self._chance.choice([*_SCALARS, *_SCALARS, "E", "message", "message", "well-known"])
        if kind == "well-known":
            kind = f"google.protobuf.{self._chance.choice(_WELL_KNOWN)}"
        if kind == "message":
            if depth == 0:
                kind = "int64"
            else:
                self._count += 1
                kind = f"Inner{self._count}"
                inner[kind] = self.kind(depth - 1)
        label = self._chance.choice(["", "", "optional", "repeated", "map", "oneof"])
        return Field(number, kind, f"map {self._chance.choice(_KEYS)}" if label == "map" else label)

    def changed(self, kind: Kind) -> Kind:
        """Return another version of a message type: fields dropped, added and changed."""
        fields = [self._version(one) for one in kind.fields if self._chance.random() < 0.85]
        if self._chance.random() < 0.5:
            fields.append(Field(25, self._chance.choice(_SCALARS)))
        inner = {name: self.changed(one) if self._chance.random() < 0.5 else one for name, one in kind.inner.items()}
        return Kind(tuple(fields), inner)

    def _version(self, one: Field) -> Field:
        if self._chance.random() < 0.2 and one.kind in _WIDENED:
            return replace(one, kind=self._chance.choice(_WIDENED[one.kind]))
        if self._chance.random() < 0.03:
            return replace(one, kind=self._chance.choice(_SCALARS))
        return one


def message_class(text: str) -> type[Message]:
    """Return the class of the first message of a file, as Google's library makes it without Strata's serdes."""
    parsed = FORMATS[SchemaFormat.PROTOBUF].parse(text, strict=False)
    assert isinstance(parsed, ProtobufSchema)
    pool = DescriptorPool()
    for known in (any_pb2, duration_pb2, timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    made = file_to_descriptor(parsed.file, parsed.names)
    made.name = "schema.proto"
    pool.AddSerializedFile(made.SerializeToString())
    file = pool.FindFileByName("schema.proto")
    return GetMessageClass(next(iter(file.message_types_by_name.values())))


def fill(message: Any, chance: Random, depth: int = 4) -> Any:
    """Set random fields of a message; return it."""
    for one in type(message).DESCRIPTOR.fields:
        if chance.random() < 0.3 or depth == 0:
            continue
        inner = one.message_type
        if inner is not None and inner.GetOptions().map_entry:
            _fill_map(getattr(message, one.name), inner, chance, depth)
        elif one.is_repeated:
            values = getattr(message, one.name)
            for _ in range(chance.choice([0, 1, 2, 5])):
                if inner is None:
                    values.append(_scalar(one, chance))
                else:
                    fill(values.add(), chance, depth - 1)
        elif inner is not None:
            getattr(message, one.name).SetInParent()
            fill(getattr(message, one.name), chance, depth - 1)
        else:
            setattr(message, one.name, _scalar(one, chance))
    return message


def _fill_map(values: Any, entry: Any, chance: Random, depth: int) -> None:
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for _ in range(chance.choice([0, 1, 3, 30])):
        name = _scalar(key, chance)
        if value.message_type is None:
            values[name] = _scalar(value, chance)
        else:
            fill(values[name], chance, depth - 1)


def _scalar(one: Any, chance: Random) -> Any:
    if one.enum_type is not None:
        return chance.choice([0, 1, 100000, -1, 7])
    name = one.cpp_type
    if name == one.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if name == one.CPPTYPE_STRING:
        text = chance.choice(["", "a", "zürich", "x" * 70, "日本"]) + str(chance.randint(0, 99))
        return text.encode() if one.type == one.TYPE_BYTES else text
    if name in (one.CPPTYPE_DOUBLE, one.CPPTYPE_FLOAT):
        return chance.choice([0.0, -1.5, 0.1, 1e30])
    bits = chance.choice([0, 1, 7, 20, 31, 32, 62]) if "64" in str(_width(one)) else chance.choice([0, 1, 7, 20, 31])
    number = chance.getrandbits(bits) if bits else 0
    return number if _is_unsigned(one) else chance.choice([number, -number])


def _width(one: Any) -> str:
    return "64" if one.cpp_type in (one.CPPTYPE_INT64, one.CPPTYPE_UINT64) else "32"


def _is_unsigned(one: Any) -> bool:
    return one.cpp_type in (one.CPPTYPE_UINT32, one.CPPTYPE_UINT64)
