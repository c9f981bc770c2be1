"""Protobuf messages as rules see them: their fields by number, their JSON, and conversions between schemas.

A field has the full name and tags of the schema in the registry, even if a class names the field differently. JSON is
protobuf's JSON mapping, with the names of the schema.

Rules of this file: the caller's message never changes. It calls methods of the class, since fields may hide them.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
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
from strata.serdes.model import Metadata, Rule, Schema
from strata.serdes.protobuf.files import entry_of
from strata.serdes.protobuf.json_mapping import dict_of, from_json, to_json
from strata.serdes.rules.executors import FieldTransform
from strata.serdes.rules.fields import Fields, Place, Values, Visit

__all__ = ["ProtobufShapes", "ProtobufValues", "inline_tags"]

Tags = Mapping[str, frozenset[str]]
Decode = Callable[[bytes], Any]

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
    found: dict[str, frozenset[str]] = {}
    resolved = [ResolvedReference(name, one.text) for name, one in references.items()]
    for text, before in [
        *((one.text, resolved[:at]) for at, one in enumerate(references.values())),
        (schema.text, resolved),
    ]:
        file = parse(text, strict=False, references=before).file
        front = f"{file.package}." if file.package else ""
        for entity, tags in tags_of(file).items():
            if entity.type is EntityType.FIELD:
                found[front + entity.path] = frozenset(tags)
    return found


class ProtobufValues(Values):
    """The messages of a schema's type, in a class that may be another one."""

    def __init__(self, described: Descriptor, kind: type[Message], tags: Tags, metadata: Metadata | None) -> None:
        self._described = described
        self._kind = kind
        self._tags = tags
        self._metadata = metadata

    def visitor(self, rule: Rule, *, loosely: bool = False) -> Visit:  # noqa: ARG002 - messages fit
        """Return the visitor of the fields that a rule selects."""
        fields = _Selected(Fields(self._metadata, rule), self._tags)

        def visit(transform: FieldTransform, value: Any) -> Any:
            if not isinstance(value, Message):
                return value
            made = type(value)()
            type(value).CopyFrom(made, value)
            self._message(made, self._described, fields, transform)
            return made

        return visit

    def lower(self, value: Any) -> Any:
        """Return a message as JSON."""
        return to_json(value) if isinstance(value, Message) else value

    def lift(self, value: Any) -> Any:
        """Convert the result of a rule to a message of the class; fields that it leaves out are not set.

        Raises:
            RuleError: If the result does not fit the class.
        """
        return message_of(self._kind, value)

    def _message(self, message: Any, described: Any, fields: "_Selected", transform: FieldTransform) -> None:
        kind = type(message)
        for field, known, place in fields.of(kind, described):
            if field.has_presence and not kind.HasField(message, field.name):
                continue
            if entry_of(field) is not None:
                self._map(message, field, known, place, fields, transform)
            elif field.type == _F.TYPE_MESSAGE and field.message_type.full_name.startswith(_FOREIGN):
                self._foreign(message, field, place, transform)
            elif field.type in (_F.TYPE_MESSAGE, _F.TYPE_GROUP):
                found = getattr(message, field.name)
                for one in found if field.is_repeated else (found,):
                    self._message(one, known.message_type, fields, transform)
            else:
                self._scalar(message, field, place, transform)

    def _scalar(self, message: Any, field: Any, place: Place, transform: FieldTransform) -> None:
        context = place.context(_TYPE_NAMES[field.type], message)
        value = getattr(message, field.name)
        if field.is_repeated:
            made = [transform(context, one) for one in value]
            if made != list(value):
                type(message).ClearField(message, field.name)
                getattr(message, field.name).extend(made)
            return
        changed = transform(context, value)
        if changed is None:
            type(message).ClearField(message, field.name)
        elif changed != value:
            setattr(message, field.name, changed)

    def _map(
        self, message: Any, field: Any, known: Any, place: Place, fields: "_Selected", transform: FieldTransform
    ) -> None:
        """Visit a map; scalar values get the type MAP, as in every client, so that few rules take them."""
        entries = getattr(message, field.name)
        inner = field.message_type.fields_by_name["value"]
        if inner.type == _F.TYPE_MESSAGE:
            described = known.message_type.fields_by_name["value"].message_type
            for key in entries:
                self._message(entries[key], described, fields, transform)
        elif place.selected:
            for key in list(entries):
                entries[key] = transform(place.context("MAP", message), entries[key])

    def _foreign(self, message: Any, field: Any, place: Place, transform: FieldTransform) -> None:
        """Visit a message that counts as a value; rules know only timestamps."""
        if field.message_type.full_name != _TIMESTAMP or field.is_repeated or not place.selected:
            return
        stamp = getattr(message, field.name)
        changed = transform(place.context("LONG", message), stamp)
        if isinstance(changed, datetime):
            stamp.FromDatetime(changed)


class _Selected:
    """The fields of messages that a rule selects, or that may hold some that it does."""

    def __init__(self, fields: Fields, tags: Tags) -> None:
        self._fields, self._tags = fields, tags
        self._known: dict[tuple[type[Message], str], list[tuple[Any, Any, Place]]] = {}

    def of(self, kind: type[Message], described: Any) -> list[tuple[Any, Any, Place]]:
        """Return fields of a class, each with that of the schema and its place.

        Args:
            kind: the class.
            described: the message of the schema.
        """
        key = kind, described.full_name
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = list(self._found(kind, described))
        return found

    def _found(self, kind: type[Message], described: Any) -> Iterator[tuple[Any, Any, Place]]:
        for field in kind.DESCRIPTOR.fields:
            known = described.fields_by_number.get(field.number)
            if known is not None:
                place = self._fields.place(known.full_name, known.name, self._tags.get(known.full_name, frozenset()))
                if place.selected or field.type in (_F.TYPE_MESSAGE, _F.TYPE_GROUP):
                    yield field, known, place


def message_of(kind: type[Message], value: Any) -> Message:
    """Convert a message of another class, or JSON, to a message of a class.

    Raises:
        RuleError: If it has a field that the class lacks, or a value that the field does not take.
    """
    if isinstance(value, kind):
        return value
    try:
        if isinstance(value, Message):
            return kind.FromString(type(value).SerializeToString(value))
        return from_json(kind, _json(value))
    except Exception as error:
        raise RuleError(f"expected a {kind.DESCRIPTOR.full_name} from the rule, got another value") from error


def _moved(old: type[Message], new: type[Message], value: Any) -> Message:
    """Convert the result of migrations from the class of one schema to that of another."""
    try:
        return new.FromString(old.SerializeToString(message_of(old, value)))
    except (RuleError, ParseError) as error:
        name = old.DESCRIPTOR.full_name
        raise DecodeError(
            DecodeReason.INVALID_VALUE, f"expected a {name} from the rules, got another value"
        ) from error.__cause__


def _json(value: Any) -> Any:
    match value:
        case Mapping():
            return {key if isinstance(key, str) else str(key): _json(one) for key, one in value.items()}
        case list():
            return [_json(one) for one in value]
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

    def _kind(self, schema: Schema) -> type[Message]:
        return GetMessageClass(self.described(schema))

    def values(self, schema: Schema) -> ProtobufValues:
        """Return the values of a schema as rules see them.

        Raises:
            SchemaError: If the schema's message has another name than the caller's class.
        """
        described, wanted = self.described(schema), self.message_type
        if wanted is not None and wanted.DESCRIPTOR.name != described.name:
            raise SchemaError(f"expected the message {wanted.DESCRIPTOR.full_name}, got {described.full_name}")
        return ProtobufValues(described, wanted or self._kind(schema), self.tags(schema), schema.metadata)

    def decoder(self, shape: Schema) -> Decode:
        """Return the decoder of payloads to messages of a schema, or of the caller's class.

        Raises:
            SchemaError: If the schema cannot be used or lacks the message.
        """
        return self.parsed(self.message_type or self._kind(shape))

    def first(self, shape: Schema) -> Decode:
        """Return the decoder of payloads to JSON, for migrations.

        Raises:
            SchemaError: If the schema cannot be used or lacks the message.
        """
        parse_payload = self.parsed(self._kind(shape))
        return lambda payload: dict_of(parse_payload(payload))

    def between(self, have: Schema, want: Schema) -> Callable[[Any], Any]:
        """Return the conversion of JSON of one schema to JSON of another.

        Raises:
            SchemaError: If a schema cannot be used or lacks the message.
            DecodeError: From the returned function, if the JSON does not fit the message.
        """
        old, new = self._kind(have), self._kind(want)
        return lambda value: dict_of(_moved(old, new, value))

    def adopted(self, have: Schema, want: Schema) -> Callable[[Any], Any]:
        """Return the conversion of JSON of one schema to a message of another, or of the caller's class.

        Raises:
            SchemaError: If a schema cannot be used or lacks the message.
            DecodeError: From the returned function, if the JSON does not fit the message.
        """
        old, new = self._kind(have), self.message_type or self._kind(want)
        return lambda value: _moved(old, new, value)

    def wanted(self, shape: Schema) -> Callable[[Any], Any] | None:  # noqa: ARG002 - an interface
        """Return the conversion of messages to dicts, if the caller wants dicts."""
        return dict_of if self.as_dict else None
