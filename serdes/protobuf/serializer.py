"""Protobuf serializers and deserializers, with or without generated classes when reading.

    serialize = ProtobufSerializer(client, Order)
    frame = serialize(Order(id=7), topic="orders")
    order = ProtobufDeserializer(client, Order)(frame)
    value = ProtobufDeserializer(client, as_dict=True)(frame)

Needs the extra `protobuf`.

Rules of this file: the protobuf library handles bytes, `strata.serdes.protobuf.files` descriptors.
"""

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError as ParseError
from google.protobuf.message import EncodeError as WriteError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.serdes import errors
from strata.serdes.base import T
from strata.serdes.client import Schema
from strata.serdes.conf_types import ProtobufDeserializerConf, ProtobufSerializerConf
from strata.serdes.deserializer import Decode, Deserializer, FromDict
from strata.serdes.framing import MessagePath
from strata.serdes.model import PROTOBUF, Reference, is_class
from strata.serdes.protobuf.extra_fields import lacks_fields, refuse_unknown
from strata.serdes.protobuf.files import (
    descriptor_of,
    find_message,
    imports_of,
    indexes_of,
    is_known,
    link,
    message_named,
    text_of,
)
from strata.serdes.protobuf.json_mapping import dict_of
from strata.serdes.protobuf.wire_types import parsed_strictly
from strata.serdes.references import resolve
from strata.serdes.registry_protocol import Registry, settings_of
from strata.serdes.serializer import Encode, Serializer
from strata.serdes.subject_name_strategies import RecordContext
from strata.shared_cache import SharedCache

if TYPE_CHECKING:
    from strata.serdes.classes.shapes import Object
    from strata.serdes.protobuf.rule_values import ProtobufShapes, ProtobufValues

C = TypeVar("C")
_NOT_FOUND = 404
_PLAIN = (str, bytes, int, float, bool, list, dict, tuple)

__all__ = ["ProtobufDeserializer", "ProtobufSerializer", "decoder_of"]


class ProtobufSerializer(Serializer[T]):
    """A serializer of messages of one type, which registers or looks up their file and its imports.

    Call it as `Serializer.__call__` says.

    Args:
        client: the registry.
        message_type: the class of the messages, or a class as schema (`strata.serdes.classes`).
        conf: settings under the names of Confluent's clients, see `strata.serdes.serde_settings`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is unknown or not allowed.
    """

    format = PROTOBUF

    def __init__(self, client: Registry, message_type: type[T], conf: ProtobufSerializerConf | None = None) -> None:
        super().__init__(client, None, conf)
        self._given = (client, message_type, conf)
        self._shape = _shape_of(message_type)
        self._own_text: str | None = None
        made: Any = message_type
        if self._shape is not None:
            from strata.serdes.classes.protobuf_schema import protobuf_text
            from strata.serdes.protobuf.objects import lowering

            self._own_text = protobuf_text(self._shape)
            descriptor = find_message(link(Schema(self._own_text, PROTOBUF), {}), (0,))
            made, self._to_dict = GetMessageClass(descriptor), lowering(self._shape, descriptor)
        self._type: type[Message] = made
        self._message = descriptor_of(made)
        self._serialize: Any = made.SerializeToString  # the class's: a field of that name hides the method
        self._initialization_errors: Any = made.FindInitializationErrors
        self._reference_subject = self._settings.reference_subject_name_strategy

    def _record_name(self) -> str:
        return str(self._message.full_name)

    def _local(self, context: RecordContext) -> Schema:
        if self._shape is not None and self._settings.auto_register_schemas:
            self._check_latest(self._strategy(context, self._record_name()) or "")
        schema = self._registered(self._message.file, context, {})
        return schema if self._own_text is None else replace(schema, text=self._own_text)

    def _check_latest(self, subject: str) -> None:
        """Check the numbers of a class's fields with the latest version, if there is one."""
        try:
            latest = self._client.get_version(subject, "latest").schema
        except errors.RegistryError as error:
            if error.status != _NOT_FOUND:
                raise
            return
        if latest.format == PROTOBUF and latest.text != self._own_text:
            registered = message_named(link(latest, resolve(self._client, latest, subject)), self._message.full_name)
            if registered is not None:
                self._check_numbers(registered)

    def _check_numbers(self, registered: Descriptor) -> None:
        from strata.serdes.protobuf.objects import check_numbers

        if self._shape is not None:
            check_numbers(self._shape, registered)

    def _registered(self, file: FileDescriptor, context: RecordContext, known: dict[str, Reference]) -> Schema:
        """Return the schema of a file; register or look up each of its imports once, under a subject of its own."""
        references = []
        for dependency in file.dependencies:
            if self._settings.skip_known_types and is_known(dependency.name):
                continue
            if dependency.name not in known:
                known[dependency.name] = self._reference(dependency, context, known)
            references.append(known[dependency.name])
        return Schema(text_of(file), PROTOBUF, tuple(references))

    def _reference(self, file: FileDescriptor, context: RecordContext, known: dict[str, Reference]) -> Reference:
        schema = self._registered(file, context, known)
        subject = file.name if self._reference_subject is None else self._reference_subject(context, file)
        normalize, version = self._settings.normalize_schemas, None
        if self._settings.auto_register_schemas:
            version = self._client.register(subject, schema, normalize=normalize).version
        if version is None:
            version = self._client.lookup(subject, schema, normalize=normalize).version
        if version is None:
            raise errors.SchemaError(f"the registry returned no version for {file.name}")
        return Reference(file.name, subject, version)

    def _described(self) -> Schema:
        return Schema(self._own_text or text_of(self._message.file), PROTOBUF)

    def _imports(self) -> Mapping[str, Schema]:
        return imports_of(self._message.file)

    def _writer(self, schema: Schema, subject: str, schema_id: int) -> tuple[Encode, tuple[int, ...]]:
        if schema.text == self._described().text:
            path = indexes_of(self._message)
            if len(path) == 1:
                return self._encode, path
            # The id may be that of a text whose message indexes do not count map entries.
            schema = self._client.get_schema(schema_id, subject=subject)
        file = link(schema, resolve(self._client, schema, subject))
        registered = message_named(file, self._message.full_name)
        if registered is None or registered.file.name != file.name:
            raise errors.SchemaError(f"the schema of subject {subject} has no message {self._message.full_name}")
        self._check_numbers(registered)
        return self._closed(registered), indexes_of(registered)

    def _closed(self, registered: Descriptor) -> Encode:
        """Return the encoder for a schema that may lack some fields of the messages."""
        if not lacks_fields(registered, self._message):
            return self._encode
        message_class = GetMessageClass(registered)

        def drop(message: object) -> bytes:
            made = message_class.FromString(self._encode(message))
            message_class.DiscardUnknownFields(made)
            return message_class.SerializeToString(made)

        def refuse(message: Any) -> bytes:
            payload = self._encode(message)
            refuse_unknown(message, registered)
            return payload

        return drop if self._settings.drop_unknown else refuse

    def _values(self, schema: Schema, subject: str) -> "ProtobufValues":
        from strata.serdes.protobuf.rule_values import ProtobufValues, inline_tags

        references = resolve(self._client, schema, subject)
        described = _found(link(schema, references), self._message)
        return ProtobufValues(described, self._type, inline_tags(schema, references), schema.metadata)

    def _encode(self, message: object) -> bytes:
        if not isinstance(message, self._type):
            advice = f"; make one by {self._type.__name__}(**fields)" if isinstance(message, dict) else ""
            raise errors.expected(f"a message {self._message.full_name}", message, advice)
        try:
            payload: bytes = self._serialize(message)
        except (WriteError, ValueError) as error:
            missing = self._initialization_errors(message)
            raise errors.missing_field(missing[0]) if missing else errors.EncodeError(str(error)) from None
        return payload


class ProtobufDeserializer(Deserializer[T]):
    """A deserializer of Protobuf frames.

    Call it as `Deserializer.__call__` says.

    Args:
        client: the registry.
        message_type: the class of the messages wanted, or a class as schema (`strata.serdes.classes`), which finds its
            fields by name; without it the classes are made from the schemas in the registry.
        from_dict: a function from the message, or dict, and the context to your object; its errors pass through.
        conf: settings under the names of Confluent's clients, see `strata.serdes.serde_settings`.
        as_dict: return dicts in protobuf's JSON mapping, with field names as in the schema.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is unknown or not allowed.
    """

    format = PROTOBUF
    indexed = True

    @overload
    def __init__(
        self: "ProtobufDeserializer[C]",
        client: Registry,
        message_type: type[C],
        from_dict: None = None,
        conf: ProtobufDeserializerConf | None = None,
        *,
        as_dict: Literal[False] = False,
    ) -> None: ...

    @overload
    def __init__(
        self,
        client: Registry,
        message_type: type[Message] | None = None,
        from_dict: FromDict[T] | None = None,
        conf: ProtobufDeserializerConf | None = None,
        *,
        as_dict: bool = False,
    ) -> None: ...

    def __init__(
        self,
        client: Registry,
        message_type: type[Any] | None = None,
        from_dict: Callable[[Any, RecordContext], Any] | None = None,
        conf: ProtobufDeserializerConf | None = None,
        *,
        as_dict: bool = False,
    ) -> None:
        super().__init__(client, from_dict, conf)
        shape = None if message_type is None else _shape_of(message_type)
        if shape is not None:
            if as_dict:
                raise ValueError("as_dict: objects of a class are not dicts")
            from strata.serdes.protobuf.objects import lifting

            self._from_dict = from_dict or lifting(shape)
        self._given = (client, message_type, from_dict, conf)
        self._options = {"as_dict": as_dict}
        self._type = message_type if shape is None else None
        self._as_dict = as_dict
        self._files: SharedCache[tuple[Schema, str | None], FileDescriptor | errors.SchemaError] = SharedCache(
            settings_of(client).cache_size
        )

    def _reader(self, schema: Schema, indexes: MessagePath, subject: str | None) -> Decode:
        written = find_message(self._file(schema, subject), indexes)
        wanted = self._type
        if wanted is None:
            return decoder_of(GetMessageClass(written), as_dict=self._as_dict)
        if wanted.DESCRIPTOR.name != written.name:
            raise errors.SchemaError(f"expected the message {wanted.DESCRIPTOR.full_name}, got {written.full_name}")
        return decoder_of(wanted, as_dict=self._as_dict)

    def _file(self, schema: Schema, subject: str | None) -> FileDescriptor:
        """Return the linked schema; cached for all message paths, since every frame of a topic may have a bad one."""
        file = self._files.get((schema.bare, subject), lambda: self._linked(schema, subject))
        if isinstance(file, errors.SchemaError):
            raise copy.copy(file)
        return file

    def _linked(self, schema: Schema, subject: str | None) -> FileDescriptor | errors.SchemaError:
        try:
            return link(schema, resolve(self._client, schema, subject))
        except errors.SchemaError as error:
            return error

    def _name_of(self, schema: Schema, indexes: MessagePath, subject: str | None) -> str:
        return str(find_message(self._file(schema, subject), indexes).full_name)

    def _shapes(self, schema: Schema, indexes: MessagePath, subject: str | None) -> "ProtobufShapes":
        from strata.serdes.protobuf.rule_values import ProtobufShapes, inline_tags

        written = find_message(self._file(schema, subject), indexes)

        @functools.cache
        def described(shape: Schema) -> Descriptor:
            if shape.bare == schema.bare:
                return written
            return _found(self._file(shape, subject), written)

        return ProtobufShapes(
            described,
            lambda schema_: inline_tags(schema_, resolve(self._client, schema_, subject)),
            functools.partial(decoder_of, as_dict=False),
            self._type,
            as_dict=self._as_dict,
        )


def _shape_of(message_type: object) -> "Object | None":
    """Return the shape of a class as schema; None for a message class.

    Raises:
        TypeError: If it is neither.
        SchemaError: If a part of it has no type in a schema.
    """
    if isinstance(message_type, Message):
        raise errors.wrong_argument("message_type", "a message class", message_type, "pass type(message)")
    if isinstance(message_type, type) and issubclass(message_type, Message):
        return None
    from strata.serdes.classes.shapes import Object, shape_of

    shape = shape_of(message_type) if is_class(message_type) and message_type not in _PLAIN else None
    if not isinstance(shape, Object):
        raise errors.wrong_argument(
            "message_type", "a message class made by protoc, or a class with fields", message_type
        )
    return shape


def _found(file: FileDescriptor, wanted: Descriptor) -> Descriptor:
    """Return the message of the same name in a file."""
    path = wanted.full_name.removeprefix(f"{wanted.file.package}." if wanted.file.package else "").split(".")
    message: Descriptor | None = file.message_types_by_name.get(path[0])
    for name in path[1:]:
        message = None if message is None else message.nested_types_by_name.get(name)
    if message is None:
        raise errors.SchemaError(f"the schema has no message {'.'.join(path)}")
    return message


def decoder_of(message_class: type[Message], *, as_dict: bool) -> Decode:
    """Return the decoder of payloads to messages of a class, or to dicts; it raises `DecodeError`."""
    name, parse = message_class.DESCRIPTOR.full_name, message_class.FromString

    def decode(payload: bytes) -> object:
        try:
            message = parsed_strictly(parse, payload)
        except (ParseError, ValueError, RecursionError) as error:
            raise errors.DecodeError(errors.DecodeReason.MALFORMED, f"not a {name}: {error}") from None
        return dict_of(message) if as_dict else message

    return decode
