"""Protobuf messages as objects of a contract, and back: the first message of a file, with those that it uses.

Numbers and names of types travel as custom properties. A field without presence always has a value, so it is required.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.protobuf.model import (
    SCALARS,
    Constant,
    Enum,
    Field,
    File,
    Kind,
    ListValue,
    MapValue,
    Message,
    OneOf,
    Option,
    Scalar,
)
from strata.compat.protobuf.printer import print_file
from strata.compat.protobuf.syntax import read_file
from strata.compat.schema import SchemaParseError
from strata.gitops.contracts.shapes import (
    MAP_VALUE,
    NAME,
    NAMED,
    Format,
    Made,
    Shape,
    custom_of,
    customs,
    described,
    enum_check,
    enum_values,
    identifier,
    is_required,
    labels,
    map_value,
    tagged,
    too_deep,
    type_name,
)
from strata.gitops.errors import GitopsError

__all__ = ["PROTOBUF"]

PACKAGE, NUMBER, ONEOF, NUMBERS = "protoPackageName", "strata.number", "strata.oneof", "enumValues"
_META_FILE, _FIELD_META, _MESSAGE_META = "confluent/meta.proto", "confluent.field_meta", "confluent.message_meta"
_REPEATED, _OPTIONAL, _REQUIRED = "repeated", "optional", "required"
_MAP = re.compile(r"map<\s*(\w+)\s*,\s*([\w.]+)\s*>")
_INTEGERS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
_TO_LOGICAL = {
    **dict.fromkeys(_INTEGERS, "integer"), "double": "number", "float": "number", "bool": "boolean",
    "string": "string", "bytes": "string", "google.protobuf.Timestamp": "timestamp", "google.type.Date": "date",
    "google.type.TimeOfDay": "time",
}  # fmt: skip
_FROM_LOGICAL = {"string": "string", "integer": "int64", "number": "double", "boolean": "bool",
                 "timestamp": "google.protobuf.Timestamp", "date": "google.type.Date",
                 "time": "google.type.TimeOfDay"}  # fmt: skip
_STRUCT = "google.protobuf.Struct"
_FILES = {
    **dict.fromkeys((_STRUCT, "google.protobuf.Value", "google.protobuf.ListValue"), "google/protobuf/struct.proto"),
    **{f"google.protobuf.{kind}Value": "google/protobuf/wrappers.proto"
       for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")},
    "google.protobuf.Any": "google/protobuf/any.proto", "google.protobuf.Duration": "google/protobuf/duration.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto", "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
}  # fmt: skip


def _shape(text: str) -> Shape:
    try:
        file = read_file(text, DEFAULT_LIMITS)
    except SchemaParseError as error:
        raise GitopsError(f"it is not a Protobuf schema: {error}") from None
    first = next((definition for definition in file.types if isinstance(definition, Message)), None)
    if first is None:
        raise GitopsError("it has no message")
    reader = _Reader(file, first.name)
    doc, _ = _meta(first.options, _MESSAGE_META)
    shape = reader.shape
    shape.name, shape.doc, shape.custom = first.name, doc, {PACKAGE: file.package, "syntax": file.syntax or "proto2"}
    shape.properties = list(reader.properties(first, first.name, ()))
    unused = (name for name, _ in _all_types(file.types, "") if name not in reader.used and name != first.name)
    shape.left_out += (f"{name}: a type that {first.name} does not use" for name in unused)
    shape.left_out += (f"the file: the option {option.name}" for option in file.options)
    shape.left_out += (f"the file: the import {name}" for name in (*file.public_imports, *file.weak_imports))
    shape.left_out += (f"the file: the extension of {extension.name}" for extension in file.extends)
    shape.left_out += (f"{service.name}: service" for service in file.services)
    return shape


class _Reader:
    """Reads the fields of messages, and the types of the same file that they name."""

    def __init__(self, file: File, root: str) -> None:
        self._package = file.package or ""
        self._types = dict(_all_types(file.types, ""))
        self.shape = Shape("", "message")
        self.used: set[str] = set()
        self._open: dict[tuple[str, ...], str] = {(): root}

    def properties(self, message: Message, name: str, path: tuple[str, ...]) -> Iterator[dict[str, object]]:
        """Yield the fields of a message in the order of the text, as far as the model keeps it."""
        too_deep(len(path))
        where = ".".join(path) or name
        self.shape.left_out += (f"{where}: reserved" for _ in message.reserved)
        self.shape.left_out += (f"{where}.{group.name}: group" for group in message.groups)
        self.shape.left_out += (f"{where}: extensions" for _ in message.extensions)
        self.shape.left_out += (f"{where}: the extension of {extend.name}" for extend in message.extends)
        self._note_options(where, message.options, _MESSAGE_META)
        for inner in message.fields:
            yield self._property(inner, name, path, None)
        for oneof in message.oneofs:
            self.shape.left_out += (f"{where}.{oneof.name}.{group.name}: group" for group in oneof.groups)
            self._note_options(f"{where}.{oneof.name}", oneof.options, "")
            for inner in oneof.fields:
                yield self._property(inner, name, path, oneof.name)

    def _property(self, inner: Field, around: str, path: tuple[str, ...], oneof: str | None) -> dict[str, object]:
        here = (*path, inner.name)
        typed, is_message = self._typed(inner.type, around, here)
        if inner.label == _REPEATED:
            typed = {"logicalType": "array", "physicalType": "repeated", "items": typed}
        has_presence = inner.label == _OPTIONAL or oneof is not None or (is_message and inner.label != _REPEATED)
        doc, tags = _meta(inner.options, _FIELD_META)
        self._note_options(".".join(here), inner.options, _FIELD_META)
        self.shape.left_out += (f"{'.'.join(here)}: {what}" for what, value in (("default", inner.default),
                                ("json_name", inner.json_name)) if value is not None)  # fmt: skip
        more = custom_of(typed) | {NUMBER: inner.tag, ONEOF: oneof}
        property_ = {"name": inner.name, **typed, "required": not has_presence or inner.label == _REQUIRED}
        return property_ | customs(more) | described(doc) | tagged(tags)

    def _typed(self, type_name: str, around: str, path: tuple[str, ...]) -> tuple[dict[str, object], bool]:
        """Return a type, and whether it is that of messages."""
        if type_name in SCALARS:
            return {"logicalType": _TO_LOGICAL[type_name], "physicalType": type_name}, False
        if match := _MAP.fullmatch(type_name):
            return self._map(match, around, path), False
        name, definition = self._found(type_name, around)
        if isinstance(definition, Enum):
            self.used.add(name)
            numbers = {symbol.name: symbol.tag for symbol in definition.constants}
            self._note_options(name, definition.options, "")
            self.shape.left_out += (f"{name}: reserved" for _ in definition.reserved)
            for constant in definition.constants:
                self._note_options(f"{name}.{constant.name}", constant.options, "")
            named = {"logicalType": "string", "physicalType": "enum"}
            return {**named, **enum_check(numbers), **customs({NAMED: name, NUMBERS: numbers})}, False
        if definition is None or name in self._inside(path):
            if definition is not None:
                self.shape.left_out.append(f"{'.'.join(path)}: the fields of {name}, which contains itself")
            plain = type_name.lstrip(".")
            return {"logicalType": _TO_LOGICAL.get(plain, "object"), "physicalType": plain}, True
        self.used.add(name)
        self._open[path] = name
        named = {"logicalType": "object", "physicalType": "message", **customs({NAMED: name})}
        doc, _ = _meta(definition.options, _MESSAGE_META)
        inner = list(self.properties(definition, name, path))
        return {**named, "properties": inner, **described(doc)}, True

    def _note_options(self, where: str, options: Iterable[Option], meta: str) -> None:
        self.shape.left_out += (
            f"{where}: the option {option.name}" for option in options if option.name.strip(".") != meta
        )

    def _map(self, match: re.Match[str], around: str, path: tuple[str, ...]) -> dict[str, object]:
        value, _ = self._typed(match[2], around, (*path, "value"))
        made = {"logicalType": "object", "physicalType": f"map<{match[1]}>"}
        if value.get("physicalType") in SCALARS:  # a property would be a key of the map, for other tools
            return {**made, **customs({MAP_VALUE: {**value, "required": True}})}
        return {**made, "properties": [{"name": "value", **value, "required": True}]}

    def _inside(self, path: tuple[str, ...]) -> Iterable[str]:
        return {name for place, name in self._open.items() if path[: len(place)] == place and place != path}

    def _found(self, type_name: str, around: str) -> tuple[str, "Message | Enum | None"]:
        """Return the type that a name means inside a message, with its name in the package."""
        plain = type_name.lstrip(".").removeprefix(f"{self._package}." if self._package else "")
        scopes = around.split(".")
        for depth in range(len(scopes), -1, -1):
            name = ".".join([*scopes[:depth], plain])
            if name in self._types:
                return name, self._types[name]
        return plain, None


def _all_types(types: Iterable[Message | Enum], around: str) -> Iterator[tuple[str, Message | Enum]]:
    for type_ in types:
        name = f"{around}{type_.name}"
        yield name, type_
        if isinstance(type_, Message):
            yield from _all_types(type_.types, f"{name}.")


def _meta(options: Iterable[Option], name: str) -> tuple[str | None, list[str]]:
    """Return the description and the tags in Confluent's option of a field or message."""
    doc, tags = None, list[str]()
    for option in options:
        if option.name.strip(".") != name:
            continue
        entries = (
            option.value.entries if isinstance(option.value, MapValue) else ((".".join(option.path), option.value),)
        )
        for key, value in entries:
            texts = [item.text for item in (value.items if isinstance(value, ListValue) else (value,))
                     if isinstance(item, Scalar)]  # fmt: skip
            doc = texts[0] if key == "doc" and texts else doc
            tags += texts if key == "tags" else []
    return doc, tags


def _make(schema: Mapping[str, object], custom: Mapping[str, Any], doc: str | None) -> Made:
    syntax = str(custom.get("syntax") or "proto3")
    builder = _Builder(needs_labels=syntax == "proto2")
    name = identifier(schema["name"])
    builder.add(name, schema, doc)
    imports = sorted(builder.imports)
    package = custom.get(PACKAGE) or custom.get("namespace")
    file = File(package=package, syntax=syntax, imports=tuple(imports), types=tuple(_nested(builder.types, "")))
    return Made(print_file(file), tuple(builder.left_out))


@dataclass(slots=True)
class _Builder:
    """Builds messages; a type that occurs twice under one name is built once."""

    types: dict[str, Message | Enum] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)
    needs_labels: bool = False

    def add(self, name: str, element: Mapping[str, Any], doc: str | None) -> None:
        """Add a message with the fields of a property."""
        if name in self.types:
            return
        too_deep(name.count("."))
        self.types[name] = Message(name)  # keeps its place before the types inside it
        fields: list[Field] = []
        oneofs: dict[str, list[Field]] = {}
        inner = list(element.get("properties") or ())
        numbers = _numbers(inner)
        for each, number in zip(inner, numbers, strict=True):
            made = self._field(each, name, number)
            group = custom_of(each).get(ONEOF)
            (oneofs.setdefault(str(group), []) if group else fields).append(made)
        self.types[name] = Message(
            name.rpartition(".")[2],
            tuple(fields),
            tuple(OneOf(group, tuple(members)) for group, members in oneofs.items()),
            options=self._options(_MESSAGE_META, doc, []),
        )

    def _field(self, element: Mapping[str, Any], around: str, number: int) -> Field:
        name = identifier(element["name"])
        label: str | None = None
        typed = element
        if element.get("logicalType") == "array":
            label, typed = _REPEATED, element.get("items") or {}
        type_name = self._kind(typed, f"{around}.{_camel(name)}")
        is_plain = type_name in SCALARS or isinstance(self.types.get(type_name), Enum)
        if label is None and is_plain and not is_required(element) and not custom_of(element).get(ONEOF):
            label = _OPTIONAL
        if (
            label is None
            and self.needs_labels
            and not type_name.startswith("map<")
            and not custom_of(element).get(ONEOF)
        ):
            label = _REQUIRED if is_required(element) else _OPTIONAL
        doc = element.get("description")
        return Field(label, type_name, name, number, self._options(_FIELD_META, doc, labels(element)))

    def _kind(self, element: Mapping[str, Any], own: str) -> str:
        """Return the type of a property, which is `own` if it needs one of its own and has no name."""
        physical, logical = str(element.get("physicalType") or ""), str(element.get("logicalType") or "string")
        name = type_name(element) or own
        numbers = custom_of(element).get(NUMBERS) or {}
        value = map_value(element)
        if value is not None:
            key = physical[4:-1].partition(",")[0] if physical.startswith("map<") else "string"
            return f"map<{key}, {self._kind(value, own)}>"
        if physical == "enum" and (numbers or enum_values(element)):
            self._add_enum(name, numbers, enum_values(element))
            return name
        if (physical in SCALARS and _TO_LOGICAL[physical] == logical) or physical in self.types:
            return physical
        if element.get("properties"):
            self.add(name, element, None)
            return name
        if logical == "array":
            self.left_out.append(f"{own}: an array in an array")
            return self._kind(element.get("items") or {}, own)
        built = physical if physical in _FILES else _FROM_LOGICAL.get(logical, _STRUCT)
        if built == _STRUCT != physical:
            self.left_out.append(f"{own}: that its object has no properties (it is a {_STRUCT})")
        self.imports |= {_FILES[built]} if built in _FILES else set()
        return built

    def _add_enum(self, name: str, numbers: Mapping[str, Any], values: list[str]) -> None:
        known = {str(value): int(number) for value, number in numbers.items()}
        if not known:
            prefix = NAME.sub("_", name.rpartition(".")[2]).upper()
            known = {f"{prefix}_UNSPECIFIED": 0, **{NAME.sub("_", symbol): at for at, symbol in enumerate(values, 1)}}
        constants = tuple(Constant(value, number) for value, number in known.items())
        self.types.setdefault(name, Enum(name.rpartition(".")[2], constants))

    def _options(self, name: str, doc: object, tags: list[str]) -> tuple[Option, ...]:
        entries = (("doc", Scalar(Kind.STRING, str(doc))),) if doc else ()
        many = ListValue(tuple(Scalar(Kind.STRING, tag) for tag in tags))
        meta = MapValue((*entries, *((("tags", many),) if tags else ())))
        if not meta.entries:
            return ()
        self.imports.add(_META_FILE)
        return (Option(name, meta, custom=True),)


def _numbers(inner: list[Mapping[str, object]]) -> list[int]:
    """Return the numbers of fields: those that the contract gives, and for others the lowest that are free."""
    numbers = [custom_of(element).get(NUMBER) for element in inner]
    taken = {int(number) for number in numbers if number}
    free = (number for number in range(1, 1 << 29) if number not in taken and not 19_000 <= number < 20_000)
    return [int(number) if number else next(free) for number in numbers]


def _nested(types: Mapping[str, Message | Enum], around: str) -> Iterator[Message | Enum]:
    """Yield the types directly inside a message, or of the file, with the types inside them."""
    for name, type_ in types.items():
        if name.startswith(around) and "." not in name[len(around) :]:
            inner = tuple(_nested(types, f"{name}."))
            yield replace(type_, types=inner) if isinstance(type_, Message) else type_


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


PROTOBUF = Format("proto", _shape, _make, has_options=False, absent="!has({})")
