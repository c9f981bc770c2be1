"""Protobuf messages as rules see them: their fields by number, their JSON, and conversions between schemas.

A field has the full name and tags of the schema in the registry, even if a class names the field differently. JSON is
protobuf's JSON mapping, with the names of the schema.

Rules of this file: the caller's message never changes. It calls methods of the class, since fields may hide them.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError as ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from strata.compat.entities import EntityType
from strata.compat.protobuf.parser import parse
from strata.compat.protobuf.tags import tags_of
from strata.compat.schema import ResolvedReference
from strata.serdes.errors import DecodeError, DecodeReason, RuleError, SchemaError
from strata.serdes.functions import Decode
from strata.serdes.model import Metadata, Rule, Schema
from strata.serdes.protobuf.extra_fields import lacks_fields
from strata.serdes.protobuf.files import descriptor_of, entry_of
from strata.serdes.protobuf.json_mapping import dict_of, from_json, to_json
from strata.serdes.rules.executors import Convert, FieldTransform
from strata.serdes.rules.fields import Encode, Fields, Place, Values, Visit

__all__ = ["ProtobufShapes", "ProtobufValues", "inline_tags"]

Tags = Mapping[str, frozenset[str]]

_F = FieldDescriptor
_TYPE_NAMES = {
    _F.TYPE_STRING: "STRING",
    _F.TYPE_BYTES: "BYTES",
    _F.TYPE_BOOL: "BOOLEAN",
    _F.TYPE_FLOAT: "FLOAT",
    _F.TYPE_DOUBLE: "DOUBLE",
    _F.TYPE_ENUM: "ENUM",
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_UINT32, _F.TYPE_FIXED32, _F.TYPE_SFIXED32), "INT"),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_UINT64, _F.TYPE_FIXED64, _F.TYPE_SFIXED64), "LONG"),
}
_TIMESTAMP = "google.protobuf.Timestamp"
_FOREIGN = ("google.protobuf.", "google.type.", "confluent.type.")
"""Messages that count as values: rules do not visit their fields."""


def inline_tags(schema: Schema, references: Mapping[str, Schema]) -> Tags:
    """Return the tags in a schema and its references, by the full names of fields.

    Raises:
        SchemaParseError: If a text cannot be parsed; of `compat`.
    """
    tagged: dict[str, frozenset[str]] = {}
    resolved = [ResolvedReference(name, reference.text) for name, reference in references.items()]
    for text, before in [
        *((reference.text, resolved[:at]) for at, reference in enumerate(references.values())),
        (schema.text, resolved),
    ]:
        file = parse(text, strict=False, references=before).file
        front = f"{file.package}." if file.package else ""
        for entity, tags in tags_of(file).items():
            if entity.type is EntityType.FIELD:
                tagged[front + entity.path] = frozenset(tags)
    return tagged


class ProtobufValues(Values):
    """The messages of a schema's type, in a class that may be another one."""

    def __init__(
        self, described: Descriptor, message_class: type[Message], tags: Tags, metadata: Metadata | None
    ) -> None:
        self._described = described
        self._message_class = message_class
        self._tags = tags
        self._metadata = metadata

    def visitor(self, rule: Rule, *, loosely: bool = False) -> Visit:  # noqa: ARG002 - messages fit
        """Return the visitor of the fields that a rule selects."""
        steps, described = _Steps(Fields(self._metadata, rule), self._tags), self._described
        known: dict[type[Message], list[Step]] = {}

        def visit(transform: FieldTransform, value: Any) -> object:
            message_class = type(value)
            own = known.get(message_class)
            if own is None:
                if not isinstance(value, Message):
                    return value
                own = known[message_class] = steps.of(message_class, described)
            made = message_class()
            message_class.CopyFrom(made, value)
            for step in own:
                step(made, transform)
            return made

        return visit

    def direct(self, rule: Rule, converter: Callable[[str], Convert]) -> Encode | None:
        """Return an encoder that converts strings and bytes of the message itself; None if others are selected."""
        message_class, steps = self._message_class, _Steps(Fields(self._metadata, rule), self._tags)
        described = self._described
        fields = steps.texts(message_class, described)
        if (
            not fields
            or len(fields) != len(steps.of(message_class, described))
            or lacks_fields(described, descriptor_of(message_class))
        ):
            return None
        copy, serialize = message_class.CopyFrom, message_class.SerializeToString
        parts = [
            (field.name, converter(_TYPE_NAMES[field.type]), field.has_presence and message_class.HasField)
            for field in fields
        ]
        (name, convert, has), *others = parts
        if not has and not others:

            def write_single(message: Message) -> bytes:
                made = message_class()
                copy(made, message)  # raises TypeError for a message of another class
                setattr(made, name, convert(getattr(message, name)))
                return serialize(made)

            return write_single

        def write(message: Message) -> bytes:
            made = message_class()
            copy(made, message)
            for name, convert, has in parts:
                if not has or has(message, name):
                    setattr(made, name, convert(getattr(message, name)))
            return serialize(made)

        return write

    def lower(self, value: object) -> object:
        """Return a message as JSON."""
        return to_json(value) if isinstance(value, Message) else value

    def lift(self, value: object) -> object:
        """Convert the result of a rule to a message of the class; fields that it leaves out are not set.

        Raises:
            RuleError: If the result does not fit the class.
        """
        return message_of(self._message_class, value)


Step = Callable[[Message, FieldTransform], None]
"""Visits one field of a message."""


class _Steps:
    """The steps to the fields that a rule selects, compiled once for a class and the message of a schema.

    A field that is not selected has a step only if it may hold one that is.
    """

    def __init__(self, fields: Fields, tags: Tags) -> None:
        self._fields, self._tags = fields, tags
        self._known: dict[tuple[type[Message], str], list[Step]] = {}

    def of(self, message_class: type[Message], described: Descriptor) -> list[Step]:
        """Return the steps for the messages of a class.

        Args:
            message_class: the class.
            described: the message of the schema.
        """
        key = message_class, described.full_name
        steps = self._known.get(key)
        if steps is None:
            steps = self._known[key] = []
            pairs = (
                (field, described.fields_by_number.get(field.number)) for field in descriptor_of(message_class).fields
            )
            steps += [
                _where_set(message_class, field, step)
                for field, known in pairs
                if known is not None and (step := self._step(field, known)) is not None
            ]
        return steps

    def texts(self, message_class: type[Message], described: Descriptor) -> list[FieldDescriptor]:
        """Return the selected strings and bytes of a message that are not repeated."""
        return [
            field
            for field in descriptor_of(message_class).fields
            if field.type in (_F.TYPE_STRING, _F.TYPE_BYTES)
            and not field.is_repeated
            and (known := described.fields_by_number.get(field.number)) is not None
            and self._place(known).selected
        ]

    def _place(self, known: FieldDescriptor) -> Place:
        return self._fields.place(known.full_name, known.name, self._tags.get(known.full_name, frozenset()))

    def _step(self, field: FieldDescriptor, known: FieldDescriptor) -> Step | None:
        place = self._place(known)
        if entry_of(field) is not None:
            return self._map(field, known, place)
        inner = field.message_type
        if inner is None:
            return _scalar(field, place) if place.selected else None
        if field.type == _F.TYPE_MESSAGE and inner.full_name.startswith(_FOREIGN):
            is_stamp = inner.full_name == _TIMESTAMP and not field.is_repeated
            return _stamp(field, place) if is_stamp and place.selected else None
        return self._inner(field, inner, known)

    def _inner(self, field: FieldDescriptor, message_type: Descriptor, known: Any) -> Step | None:
        if not self._holds(known.message_type, set()):
            return None
        name, is_repeated = field.name, field.is_repeated
        message_class = GetMessageClass(message_type)
        steps = self.of(message_class, known.message_type)

        def visit(message: Message, transform: FieldTransform) -> None:
            inner = getattr(message, name)
            for message_ in inner if is_repeated else (inner,):
                for step in steps:
                    step(message_, transform)

        return visit

    def _map(self, field: Any, known: Any, place: Place) -> Step | None:
        """Return the step for a map; scalar values have the type MAP, as in every client, so few rules take them."""
        name, value = field.name, field.message_type.fields_by_name["value"]
        if value.type != _F.TYPE_MESSAGE:
            return _map_of_scalars(name, place) if place.selected else None
        described = known.message_type.fields_by_name["value"].message_type
        if not self._holds(described, set()):
            return None
        steps = self.of(GetMessageClass(value.message_type), described)

        def visit(message: Message, transform: FieldTransform) -> None:
            entries = getattr(message, name)
            for key in entries:
                for step in steps:
                    step(entries[key], transform)

        return visit

    def _holds(self, described: Descriptor, seen: set[str]) -> bool:
        """Return whether a message may hold a selected field."""
        if described.full_name in seen:
            return False
        seen.add(described.full_name)
        for known in described.fields:
            if self._place(known).selected or (
                known.message_type is not None and self._holds(known.message_type, seen)
            ):
                return True
        return False


def _where_set(message_class: type[Message], field: FieldDescriptor, step: Step) -> Step:
    """Return a step that passes over a field that is not set, where the field says so."""
    if not field.has_presence:
        return step
    name, has = field.name, message_class.HasField

    def visit(message: Message, transform: FieldTransform) -> None:
        if has(message, name):
            step(message, transform)

    return visit


def _scalar(field: FieldDescriptor, place: Place) -> Step:
    name, type_name, is_repeated = field.name, _TYPE_NAMES[field.type], field.is_repeated

    def visit(message: Message, transform: FieldTransform) -> None:
        context = place.context(type_name, message)
        value = getattr(message, name)
        if is_repeated:
            made = [transform(context, item) for item in value]
            if made != list(value):
                type(message).ClearField(message, name)
                getattr(message, name).extend(made)
            return
        changed = transform(context, value)
        if changed is None:
            type(message).ClearField(message, name)
        elif changed != value:
            setattr(message, name, changed)

    return visit


def _map_of_scalars(name: str, place: Place) -> Step:
    def visit(message: Message, transform: FieldTransform) -> None:
        entries = getattr(message, name)
        for key in list(entries):
            entries[key] = transform(place.context("MAP", message), entries[key])

    return visit


def _stamp(field: FieldDescriptor, place: Place) -> Step:
    """Return the step for a message that counts as a value; rules know only timestamps."""
    name = field.name

    def visit(message: Message, transform: FieldTransform) -> None:
        stamp = getattr(message, name)
        changed = transform(place.context("LONG", message), stamp)
        if isinstance(changed, datetime):
            stamp.FromDatetime(changed)

    return visit


def message_of(message_class: type[Message], value: object) -> Message:
    """Convert a message of another class, or JSON, to a message of a class.

    Raises:
        RuleError: If it has a field that the class lacks, or a value that the field does not take.
    """
    if isinstance(value, message_class):
        return value
    try:
        if isinstance(value, Message):
            return message_class.FromString(type(value).SerializeToString(value))
        return from_json(message_class, _json(value))
    except Exception as error:
        raise RuleError(f"expected a {message_class.DESCRIPTOR.full_name} from the rule, got another value") from error


def _moved(old: type[Message], new: type[Message], value: object) -> Message:
    """Convert the result of migrations from the class of one schema to that of another."""
    try:
        return new.FromString(old.SerializeToString(message_of(old, value)))
    except (RuleError, ParseError) as error:
        name = old.DESCRIPTOR.full_name
        raise DecodeError(
            DecodeReason.INVALID_VALUE, f"expected a {name} from the rules, got another value"
        ) from error.__cause__


def _json(value: object) -> object:
    match value:
        case Mapping():
            return {key if isinstance(key, str) else str(key): _json(item) for key, item in value.items()}
        case list():
            return [_json(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            stamp = Timestamp()
            stamp.FromDatetime(value.astimezone(UTC))
            return stamp.ToJsonString()
        case timedelta():
            span = Duration()
            span.FromTimedelta(value)
            return span.ToJsonString()
        case Message():
            return to_json(value)
    return value


@dataclass(frozen=True, slots=True)
class ProtobufShapes:
    """Conversions of messages between schemas.

    Attributes:
        described: returns the message type in a schema that corresponds to the one in the frame.
        tags: returns the inline tags of a schema.
        parsed: returns the decoder of a class.
        message_type: the class that the caller wants, if any.
        as_dict: whether the caller wants dicts.
    """

    described: Callable[[Schema], Descriptor]
    tags: Callable[[Schema], Tags]
    parsed: Callable[[type[Message]], Decode]
    message_type: type[Message] | None
    as_dict: bool

    def _message_class(self, schema: Schema) -> type[Message]:
        return GetMessageClass(self.described(schema))

    def values(self, schema: Schema) -> ProtobufValues:
        """Return the values of a schema as rules see them.

        Raises:
            SchemaError: If the schema's message has another name than the caller's class.
        """
        described, wanted = self.described(schema), self.message_type
        if wanted is not None and wanted.DESCRIPTOR.name != described.name:
            raise SchemaError(f"expected the message {wanted.DESCRIPTOR.full_name}, got {described.full_name}")
        return ProtobufValues(described, wanted or self._message_class(schema), self.tags(schema), schema.metadata)

    def decoder(self, shape: Schema) -> Decode:
        """Return the decoder of payloads to messages of a schema, or of the caller's class.

        Raises:
            SchemaError: If the schema cannot be used or lacks the message.
        """
        return self.parsed(self.message_type or self._message_class(shape))

    def first(self, shape: Schema) -> Decode:
        """Return the decoder of payloads to JSON, for migrations.

        Raises:
            SchemaError: If the schema cannot be used or lacks the message.
        """
        parse_payload = self.parsed(self._message_class(shape))
        return lambda payload: dict_of(parse_payload(payload))

    def between(self, have: Schema, want: Schema) -> Convert:
        """Return the conversion of JSON of one schema to JSON of another.

        Raises:
            SchemaError: If a schema cannot be used or lacks the message.
            DecodeError: From the returned function, if the JSON does not fit the message.
        """
        old, new = self._message_class(have), self._message_class(want)
        return lambda value: dict_of(_moved(old, new, value))

    def adopted(self, have: Schema, want: Schema) -> Callable[[object], object]:
        """Return the conversion of JSON of one schema to a message of another, or of the caller's class.

        Raises:
            SchemaError: If a schema cannot be used or lacks the message.
            DecodeError: From the returned function, if the JSON does not fit the message.
        """
        old, new = self._message_class(have), self.message_type or self._message_class(want)
        return lambda value: _moved(old, new, value)

    def wanted(self, shape: Schema) -> Convert | None:  # noqa: ARG002 - an interface
        """Return the conversion of messages to dicts, if the caller wants dicts."""
        return dict_of if self.as_dict else None
