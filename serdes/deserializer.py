"""The base class of the deserializers of all formats.

A record whose schema is cached takes `known` and `read`: plain calls without I/O, which `aio.py` makes too. On a cache
miss `source` asks the registry, one request for all threads that wait for it. It also loads the rules of the schema;
running them may block while their executors ask a server.

Rules of this file: it opens frames, calls the client and caches decoders; the bytes of a format are the format's.
"""

import copy
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from strata.frames import BadFrame, Frame, GlueVersion, MessagePath, SchemaName, open_frame
from strata.serdes.base import Serde, T, is_fresh
from strata.serdes.client import Schema, context_of, schema_named
from strata.serdes.errors import (
    DecodeError,
    FrameError,
    NoMessage,
    NoSubject,
    RegistryError,
    RuleError,
    SchemaError,
    SerdeError,
)
from strata.serdes.framing import read_header
from strata.serdes.functions import Decode
from strata.serdes.model import RegisteredSchema
from strata.serdes.observer import observe
from strata.serdes.registry_protocol import Registry, settings_of
from strata.serdes.serde_settings import DeserializerSettings
from strata.serdes.subject_name_strategies import Context, RecordContext, SubjectNameStrategy, context_of_topic
from strata.shared_cache import SharedCache

if TYPE_CHECKING:
    from strata.serdes.rules.contracts import Reading, Shapes

__all__ = ["Decode", "Deserializer", "FromDict", "Source"]

FromDict = Callable[[Any, RecordContext], T]

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Source:
    """The decoder for the frames of one schema from one topic; fresh until `until`, in seconds of `time.monotonic`."""

    decode: Decode
    until: float = math.inf
    rules: "Reading | None" = None


class Deserializer(Serde[DeserializerSettings], Generic[T]):
    """A callable that turns frames of any registered schema into values; safe to share among threads.

    It is generic in the type of the values.

    Args:
        client: the registry.
        from_dict: a function from the value and the context to your object; its errors pass through.
        conf: settings under the names of Confluent's clients, see `strata.serdes.serde_settings`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a setting is unknown or not allowed.
        SchemaError: If the reader schema of a subclass cannot be used.
        RegistryError: If the registry does not know a reference of that schema.
    """

    indexed = False

    def __init__(self, client: Registry, from_dict: FromDict | None, conf: Mapping[str, object] | None) -> None:
        super().__init__(client, DeserializerSettings, conf, from_dict=from_dict)
        self._from_dict = from_dict
        opening = self._settings.schema_id_deserializer
        self._opening = opening if callable(opening) else None
        self._looks_at_headers = opening == "dual"
        capacity = settings_of(client).cache_size
        self._sources: SharedCache[object, Source] = SharedCache(capacity)
        self._scopes: SharedCache[tuple[str, str | None], str] = SharedCache(capacity)
        self._decoders: SharedCache[object, Source] = SharedCache(capacity)
        if (observer := getattr(client, "observer", None)) is not None:
            observe(self, observer, "decode", ["open", "source"], "read")

    def __call__(
        self,
        data: bytes | None,
        ctx: RecordContext | None = None,
        *,
        topic: str | None = None,
        field: str = "value",
        headers: Any = None,
    ) -> T | None:
        """Deserialize a frame to a value.

        Args:
            data: the frame; None is a tombstone.
            ctx: the topic, field and headers of the record, such as confluent-kafka's `SerializationContext`.
            topic: the topic, where there is no `ctx`.
            field: `key` or `value`, where there is no `ctx`.
            headers: the record headers, as pairs or a mapping, where there is no `ctx`.

        Returns:
            The value, or None for a tombstone.

        Raises:
            FrameError: If the bytes are not a registry frame.
            DecodeError: If the payload does not decode; `reason` says why.
            SchemaError: If the schema is of another format or cannot be used; `NoMessage` for a bad message path.
            RuleError: If a rule of the schema fails.
            NoSubject: If the latest version is wanted and the subject name strategy lacks a topic or a record name.
            RegistryError: If the registry rejects a request, such as 404 for an unknown schema id.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
            TokenError: If the OAuth token endpoint gives no token.
        """
        if data is None:
            return None
        if ctx is None:
            context: RecordContext = Context(topic, field, headers) if headers else context_of_topic(topic, field)
        else:
            context = ctx
        frame = self.open(data, context)
        value: T = self.read(frame, context, self.known(frame, context) or self.source(frame, context), data)
        return value

    def use_strategy(self, strategy: SubjectNameStrategy) -> None:
        """Use another subject name strategy."""
        self._strategy = strategy
        self._scopes.discard(lambda _: True)
        self.forget()

    def forget(self) -> None:
        """Forget the schemas of all topics, so that the registry is asked again."""
        self._sources.discard(lambda _: True)

    def open(self, data: bytes, context: RecordContext) -> Frame:
        """Split a record into the name of its schema, message path and payload.

        Raises:
            FrameError: If the bytes are not a registry frame; it has the topic, partition and offset of the context.
        """
        try:
            if self._opening is not None:
                return self._opening(data, context)
            has_headers = self._looks_at_headers and getattr(context, "headers", None)
            return open_frame(data, read_header(context) if has_headers else None, indexed=self.indexed)
        except (BadFrame, FrameError) as error:
            # the contexts of other clients need not have partition and offset
            raise FrameError(
                error.reason,
                topic=context.topic,
                partition=getattr(context, "partition", None),
                offset=getattr(context, "offset", None),
            ) from None

    def known(self, frame: Frame, context: RecordContext) -> Source | None:
        """Return the cached source for a frame without I/O, or None on a cache miss."""
        source = self._sources.peek((frame.schema, frame.indexes, context.topic, context.field))
        return source if source is not None and (source.until == math.inf or is_fresh(source)) else None

    def source(self, frame: Frame, context: RecordContext) -> Source:
        """Return the source for a frame; ask the registry on a cache miss.

        Raises:
            SchemaError: If the schema is of another format.
            NoMessage: If the message path leads to no message of the schema.
            NoSubject: If the latest version is wanted and the subject name strategy lacks a topic or a record name.
            RegistryError: If the registry rejects a request with a status other than 404, or does not know the schema.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        key = (frame.schema, frame.indexes, context.topic, context.field)
        return self._sources.get(key, lambda: self._source(frame, context), is_fresh=is_fresh)

    def read(self, frame: Frame, context: RecordContext, source: Source, data: bytes) -> Any:
        """Deserialize the payload of a frame with a source from `known` or `source`.

        Args:
            frame: the opened record.
            context: the topic, field and headers of the record.
            source: the decoder and rules.
            data: the record as it came, for dead letters.

        Raises:
            DecodeError: If the payload does not decode; it carries the name of the schema and the topic.
            SchemaError: If the schema cannot be used.
            RuleError: If a rule of the schema fails.
            RegistryError: If a reference of the schema is missing in the registry.
        """
        try:
            if source.rules is None:
                value = source.decode(frame.payload)
            else:
                value = source.rules.value(frame.payload, context, data)
        except DecodeError as error:
            _place(error, frame, context)
            raise
        return value if self._from_dict is None else self._from_dict(value, context)

    def _scope(self, context: RecordContext) -> str:
        """Return the context of the subject of a topic's records; the default one if there is no subject."""
        try:
            return context_of(self._strategy(context, None))
        except NoSubject:
            return ""

    def _source(self, frame: Frame, context: RecordContext) -> Source:
        scope = None
        if context.topic is not None and not isinstance(frame.schema, GlueVersion):  # Glue has no references
            scope = self._scopes.get((context.topic, context.field), lambda: self._scope(context)) or None
        schema = self._written(frame.schema, scope)
        if self._settings.wants_latest or (schema.rule_set is not None and schema.rule_set.concerns("READ")):
            return self._or_refusal(frame, lambda: self._ruled(frame, context, schema, scope), lasts=False)
        return self._decoders.get(
            (frame.schema, frame.indexes, scope),
            lambda: self._or_refusal(frame, lambda: Source(self._reader(schema, frame.indexes, scope)), lasts=True),
            is_fresh=is_fresh,
        )

    def _written(self, named: SchemaName, scope: str | None) -> Schema:
        schema = schema_named(self._client, named, subject=scope)
        self._check_format(schema, f"schema {named}")
        return schema

    def _or_refusal(self, frame: Frame, make: Callable[[], Source], *, lasts: bool) -> Source:
        """Return the source for a frame, or one that refuses it without I/O, since a topic may be full of them.

        A schema text that cannot be used never becomes usable, so its refusal `lasts`. A refusal that depends on the
        latest version, on installed packages or on a missing reference expires after `missing_ttl`, like an unknown id.
        Bad message paths are not cached, since a damaged frame may have any path.
        """
        refusal: SerdeError
        try:
            return make()
        except SchemaError as error:
            refusal = type(error)(f"cannot use schema {frame.schema}: {error}")
            if isinstance(error, NoMessage):
                raise refusal from None
        except RuleError as error:
            refusal, lasts = error, False
        except RegistryError as error:
            if error.status != _NOT_FOUND:
                raise
            refusal, lasts = error, False
        return Source(
            _refusing(refusal), math.inf if lasts else time.monotonic() + settings_of(self._client).missing_ttl
        )

    def _ruled(self, frame: Frame, context: RecordContext, schema: Schema, scope: str | None) -> Source:
        """Return the source that runs the rules of all schemas from the writer's to the wanted one."""
        rules = self._reading(frame, context, schema, scope)
        plain = rules.plain
        return Source(plain or rules.decode, self._settings.latest_until(), rules if plain is None else None)

    def reading(self, frame: Frame, context: RecordContext) -> "Reading":
        """Return the steps for payloads of a frame's schema, not cached: for readers that keep them themselves.

        Args:
            frame: the opened record.
            context: the topic, field and headers of the record.

        Raises:
            SchemaError: If a schema is of another format or cannot be used.
            RuleError: If the library of a rule's executor is not installed.
            RegistryError: If the registry rejects a request, such as 404 for an unknown schema id.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        return self._reading(frame, context, self._written(frame.schema, None), None)

    def _reading(self, frame: Frame, context: RecordContext, schema: Schema, scope: str | None) -> "Reading":
        from strata.serdes.rules.contracts import reading_of

        subject = self._subject(context, schema, frame.indexes, scope)
        latest = self._migration_target(subject)
        shapes = self._shapes(schema, frame.indexes, subject or None)
        return reading_of(self._runner, self._client, subject, schema, latest, shapes)

    def _subject(self, context: RecordContext, schema: Schema, indexes: MessagePath, scope: str | None) -> str:
        """Return the subject of a record; empty without a topic, unless the latest version of it is wanted."""
        try:
            return self._strategy(context, self._name_of(schema, indexes, scope)) or ""
        except NoSubject:
            if self._settings.wants_latest:
                raise
            return ""

    def _migration_target(self, subject: str) -> RegisteredSchema | None:
        """Return the latest version if the settings ask for it.

        Raises:
            SchemaError: If it is of another format.
        """
        if not self._settings.wants_latest:
            return None
        latest = self._latest(subject, deleted=True)
        self._check_format(latest.schema, f"the latest version of {subject}")
        return latest

    def _check_format(self, schema: Schema, name: object) -> None:
        if schema.format != self.format:
            raise SchemaError(f"{name}: expected the format {self.format}, got {schema.format}")

    @abstractmethod
    def _reader(self, schema: Schema, indexes: MessagePath, subject: str | None) -> Decode:
        """Return the decoder for payloads of a schema of the registry."""

    @abstractmethod
    def _name_of(self, schema: Schema, indexes: MessagePath, subject: str | None) -> str | None:
        """Return the record name of a schema for the subject name strategy."""

    @abstractmethod
    def _shapes(self, schema: Schema, indexes: MessagePath, subject: str | None) -> "Shapes":
        """Return the format's conversions between schemas, for rules and migrations."""


def _place(error: DecodeError, frame: Frame, context: RecordContext) -> None:
    """Add to an error which schema its frame names, and the topic."""
    named = frame.schema
    if isinstance(named, int):
        error.schema_id = named
    elif isinstance(named, GlueVersion):
        error.glue_version = str(named)
    else:
        error.guid = str(named)
    error.topic = context.topic


def _refusing(error: SerdeError) -> Decode:
    def refuse(payload: bytes) -> object:  # noqa: ARG001 - an interface
        raise copy.copy(error) from error.__cause__

    return refuse
