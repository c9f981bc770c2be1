"""The base classes of the serializers and deserializers of all formats.

A record whose schema is cached goes through `known` and `write`, or `known` and `read`: plain calls without I/O, which
`aio.py` makes too. On a cache miss `target` or `source` asks the registry, one request for all threads that wait
for it. They also load the rules of the schema: the `rules` of a target or source may block while their executors ask a
server.

Rules of this file: it names subjects, calls the client and frames payloads; the bytes of a format are the format's.
"""

import copy
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from strata.serdes.cache import SharedCache
from strata.serdes.client import RegistryClient, Schema, context_of
from strata.serdes.compatibility import check_reads
from strata.serdes.configuration import Table, framing_of, settings_of, strategy_of
from strata.serdes.errors import (
    DecodeError,
    NoMessage,
    NoSubject,
    RegistryError,
    RuleError,
    SchemaError,
    SerdeError,
    wrong_argument,
)
from strata.serdes.framing import Frame, SchemaId, open_frame, read_header
from strata.serdes.model import RegisteredSchema
from strata.serdes.subject_name_strategies import Context, RecordContext

if TYPE_CHECKING:
    from strata.serdes.rules.contracts import Reading, Shapes, Writing
    from strata.serdes.rules.fields import Values
    from strata.serdes.rules.running import Runner

__all__ = ["Decode", "Deserializer", "Encode", "FromDict", "Serializer", "Source", "Target", "ToDict"]

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]
ToDict = Callable[[Any, RecordContext], Any]
FromDict = Callable[[Any, RecordContext], Any]

_NOT_FOUND = 404
_FROM_CONF = "make one by RegistryClient.from_settings(ClientSettings.from_conf(conf))"
_CHOICES = ("use.schema.id", "use.latest.with.metadata", "use.latest.version")


@dataclass(frozen=True, slots=True)
class Target:
    """The schema and encoder for one subject; fresh until `until`, in seconds of `time.monotonic`."""

    schema: SchemaId
    encode: Encode
    until: float
    rules: "Writing | None" = None


@dataclass(frozen=True, slots=True)
class Source:
    """The decoder for the frames of one schema from one topic; fresh until `until`, in seconds of `time.monotonic`."""

    decode: Decode
    until: float = math.inf
    rules: "Reading | None" = None


class Serializer(ABC):
    """A callable that turns values into frames and registers or looks up their schema; safe to share among threads."""

    format: str
    table: Table

    def __init__(self, client: RegistryClient, to_dict: ToDict | None, conf: Mapping[str, Any] | None) -> None:
        _check_arguments(client, conf, to_dict=to_dict)
        self._client = client
        self._to_dict = to_dict
        self._conf = settings_of(self.table, conf)
        self._strategy = strategy_of(self._conf, client)
        self._own_strategy = callable(self._conf["subject.name.strategy"])
        self._frame = framing_of(self._conf)
        self._needs_guid = self._conf["schema.id.serializer"] in ("guid", "header")
        self._targets: SharedCache[Any, Target] = SharedCache(client.settings.cache_size)

    def __call__(
        self, value: Any, ctx: RecordContext | None = None, *, topic: str | None = None, field: str = "value"
    ) -> bytes | None:
        """Serialize a value to a frame.

        Args:
            value: the value; None is a tombstone.
            ctx: the topic and field of the record, such as confluent-kafka's `SerializationContext`.
            topic: the topic, where there is no `ctx`.
            field: `key` or `value`, where there is no `ctx`.

        Returns:
            The frame, or None for a tombstone.

        Raises:
            EncodeError: If the value does not fit the schema.
            NoSubject: If the subject name strategy lacks a topic or a record name.
            SchemaError: If the schema is of another format, cannot be used or cannot read values of the local one.
            RuleError: If a rule of the schema fails.
            FrameError: If the framing needs a GUID or headers that are not there.
            RegistryError: If the registry rejects a request, such as 409 for an incompatible schema.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
            TokenError: If the OAuth token endpoint gives no token.
        """
        if value is None:
            return None
        context = Context(topic, field) if ctx is None else ctx
        return self.write(value, context, self.known(context) or self.target(context))

    def known(self, context: RecordContext) -> Target | None:
        """Return the cached target for a context without I/O, or None on a cache miss.

        Raises:
            NoSubject: If the caller's own subject name strategy raises it.
        """
        target = self._targets.peek(self._key(context))
        return target if target is not None and _is_fresh(target) else None

    def target(self, context: RecordContext) -> Target:
        """Return the target for a context; ask the registry on a cache miss.

        Args:
            context: the topic and field of the record.

        Raises:
            NoSubject: If the subject name strategy lacks a topic or a record name.
            SchemaError: If the schema is of another format, cannot be used or cannot read values of the local one.
            RuleError: If the library of a rule's executor is not installed.
            RegistryError: If the registry rejects a request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        return self._targets.get(self._key(context), lambda: self._target(context), is_fresh=_is_fresh)

    def write(self, value: Any, context: RecordContext, target: Target) -> bytes:
        """Serialize a value to a frame with a target from `known` or `target`.

        Args:
            value: the value, before `to_dict`; not None.
            context: the topic and field of the record.
            target: the schema, encoder and rules.

        Raises:
            EncodeError: If the value does not fit the schema.
            RuleError: If a rule of the schema fails.
            FrameError: If the framing needs a GUID or headers that are not there.
        """
        fields = value if self._to_dict is None else self._to_dict(value, context)
        if target.rules is None:
            payload = target.encode(fields)
        else:
            payload = target.rules.payload(fields, context, target.encode)
        return self._frame(payload, context, target.schema)

    def _key(self, context: RecordContext) -> Any:
        """Return the cache key of a target: topic and field, or the subject if the strategy is the caller's own."""
        if self._own_strategy:
            return self._strategy(context, self._record_name())
        return context.topic, context.field

    def _target(self, context: RecordContext) -> Target:
        subject = self._strategy(context, self._record_name())
        if not subject:
            raise NoSubject("the subject name strategy gave no subject")
        found, schema = self._find(subject, context)
        if schema.format != self.format:
            raise SchemaError(f"the schema {found.schema_id} is in the format {schema.format}, not {self.format}")
        guid = found.guid
        if guid is None and self._needs_guid:
            guid = self._client.lookup(subject, schema).guid
        encode, indexes = self._writer(schema, subject, found.schema_id)
        identity = SchemaId(found.schema_id, None if guid is None else UUID(guid), indexes)
        return Target(identity, encode, _until(self._conf), self._rules(found, schema, subject))

    def _rules(self, found: RegisteredSchema, schema: Schema, subject: str) -> "Writing | None":
        """Return the rules for writing; the registry's copy of a schema may carry rules that the local one lacks."""
        contract = schema if found.schema.rule_set is None else found.schema
        if contract.rule_set is None:
            return None
        from strata.serdes.rules.contracts import writing_of

        ruled = replace(schema, metadata=contract.metadata, rule_set=contract.rule_set)
        return writing_of(self._runner, ruled, subject, lambda: self._values(ruled, subject))

    @cached_property
    def _runner(self) -> "Runner":
        from strata.serdes.rules.running import Runner

        return Runner(self._client, self._conf)

    def _find(self, subject: str, context: RecordContext) -> tuple[RegisteredSchema, Schema]:
        """Return the schema to write with; the first setting that applies decides."""
        conf, client = self._conf, self._client
        if conf["use.schema.id"] is not None:
            chosen = client.get_schema(conf["use.schema.id"], subject=subject)
            self._check(chosen, subject, strict=conf["id.compatibility.strict"])
            return RegisteredSchema(subject, None, conf["use.schema.id"], None, chosen), chosen
        if conf["use.latest.with.metadata"] is not None:
            latest = client.get_latest_with_metadata(subject, conf["use.latest.with.metadata"])
        elif conf["use.latest.version"]:
            latest = client.get_version(subject, "latest")
        else:
            ask = client.register if conf["auto.register.schemas"] else client.lookup
            local = self._local(context)
            return ask(subject, local, normalize=conf["normalize.schemas"]), local
        self._check(latest.schema, subject, strict=conf["latest.compatibility.strict"])
        return latest, latest.schema

    def _need_choice(self) -> None:
        """Raise ValueError if neither a local schema nor a setting says which schema to use."""
        if all(self._conf[name] in (None, False) for name in _CHOICES):
            raise ValueError(
                f"without a schema one of {', '.join(_CHOICES)} must say which one of the registry is meant"
            )

    def _check(self, schema: Schema, subject: str, *, strict: bool) -> None:
        """Raise SchemaError if a schema of the registry cannot read what the local one describes."""
        local = self._described()
        if strict and local is not None and local.bare != schema.bare and schema.format == self.format:
            check_reads(self._client, schema, local, subject, imports=self._imports())

    def _imports(self) -> Mapping[str, Schema] | None:
        """Return what the local schema refers to, or None where its references already say so."""
        return None

    @abstractmethod
    def _record_name(self) -> str | None:
        """Return the record name for the subject name strategy."""

    @abstractmethod
    def _local(self, context: RecordContext) -> Schema:
        """Return the schema to register, with its references registered."""

    @abstractmethod
    def _described(self) -> Schema | None:
        """Return the local schema without asking the registry, or None if only the registry has it."""

    @abstractmethod
    def _writer(self, schema: Schema, subject: str, schema_id: int) -> tuple[Encode, tuple[int, ...]]:
        """Return the encoder for a schema of the registry and, for Protobuf, the path to the message."""

    @abstractmethod
    def _values(self, schema: Schema, subject: str) -> "Values":
        """Return the values of a schema as rules see them."""


class Deserializer(ABC):
    """A callable that turns frames of any registered schema into values; safe to share among threads."""

    format: str
    table: Table
    indexed = False

    def __init__(self, client: RegistryClient, from_dict: FromDict | None, conf: Mapping[str, Any] | None) -> None:
        _check_arguments(client, conf, from_dict=from_dict)
        self._client = client
        self._from_dict = from_dict
        self._conf = settings_of(self.table, conf)
        self._strategy = strategy_of(self._conf, client)
        self._looks_at_headers = self._conf["schema.id.deserializer"] == "dual"
        self._keeps_latest = bool(self._conf["use.latest.version"] or self._conf["use.latest.with.metadata"])
        capacity = client.settings.cache_size
        self._sources: SharedCache[Any, Source] = SharedCache(capacity)
        self._scopes: SharedCache[tuple[str, str | None], str] = SharedCache(capacity)
        self._decoders: SharedCache[Any, Source] = SharedCache(capacity)

    def __call__(
        self,
        data: bytes | None,
        ctx: RecordContext | None = None,
        *,
        topic: str | None = None,
        field: str = "value",
        headers: Any = None,
    ) -> Any:
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
        context = Context(topic, field, headers) if ctx is None else ctx
        frame = self.open(data, context)
        return self.read(frame, context, self.known(frame, context) or self.source(frame, context), data)

    def open(self, data: bytes, context: RecordContext) -> Frame:
        """Split a record into schema id or GUID, message path and payload.

        Raises:
            FrameError: If the bytes are not a registry frame.
        """
        header = read_header(context) if self._looks_at_headers else None
        return open_frame(data, header, indexed=self.indexed)

    def known(self, frame: Frame, context: RecordContext) -> Source | None:
        """Return the cached source for a frame without I/O, or None on a cache miss."""
        source = self._sources.peek((frame.schema, frame.indexes, context.topic, context.field))
        return source if source is not None and _is_fresh(source) else None

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
        return self._sources.get(key, lambda: self._source(frame, context), is_fresh=_is_fresh)

    def read(self, frame: Frame, context: RecordContext, source: Source, data: bytes) -> Any:
        """Deserialize the payload of a frame with a source from `known` or `source`.

        Args:
            frame: the opened record.
            context: the topic, field and headers of the record.
            source: the decoder and rules.
            data: the record as it came, for dead letters.

        Raises:
            DecodeError: If the payload does not decode; it carries the schema id or GUID and the topic.
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
            if isinstance(frame.schema, int):
                error.schema_id = frame.schema
            else:
                error.guid = str(frame.schema)
            error.topic = context.topic
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
        if context.topic is not None:
            scope = self._scopes.get((context.topic, context.field), lambda: self._scope(context)) or None
        schema = self._written(frame.schema, scope)
        if self._keeps_latest or (schema.rule_set is not None and schema.rule_set.concerns("READ")):
            return self._or_refusal(frame, lambda: self._ruled(frame, context, schema, scope), lasts=False)
        return self._decoders.get(
            (frame.schema, frame.indexes, scope),
            lambda: self._or_refusal(frame, lambda: Source(self._reader(schema, frame.indexes, scope)), lasts=True),
            is_fresh=_is_fresh,
        )

    def _written(self, named: int | UUID, scope: str | None) -> Schema:
        if isinstance(named, int):
            schema = self._client.get_schema(named, subject=scope)
        else:
            schema = self._client.get_schema_by_guid(named)
        if schema.format != self.format:
            raise SchemaError(f"the schema {named} is in the format {schema.format}, not {self.format}")
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
            refusal = type(error)(f"the schema {frame.schema} cannot be read: {error}")
            if isinstance(error, NoMessage):
                raise refusal from None
        except RuleError as error:
            refusal, lasts = error, False
        except RegistryError as error:
            if error.status != _NOT_FOUND:
                raise
            refusal, lasts = error, False
        return Source(_refusing(refusal), math.inf if lasts else time.monotonic() + self._client.settings.missing_ttl)

    def _ruled(self, frame: Frame, context: RecordContext, schema: Schema, scope: str | None) -> Source:
        """Return the source that runs the rules of all schemas from the writer's to the wanted one."""
        from strata.serdes.rules.contracts import reading_of

        subject = self._subject(context, schema, frame.indexes, scope)
        latest = self._latest(subject)
        shapes = self._shapes(schema, frame.indexes, subject or None)
        rules = reading_of(self._runner, self._client, subject, schema, latest, shapes)
        plain = rules.plain
        return Source(plain or rules.decode, _until(self._conf), rules if plain is None else None)

    @cached_property
    def _runner(self) -> "Runner":
        from strata.serdes.rules.running import Runner

        return Runner(self._client, self._conf)

    def _subject(self, context: RecordContext, schema: Schema, indexes: tuple[int, ...], scope: str | None) -> str:
        """Return the subject of a record; empty without a topic, unless the latest version of it is wanted."""
        try:
            return self._strategy(context, self._name_of(schema, indexes, scope)) or ""
        except NoSubject:
            if self._keeps_latest:
                raise
            return ""

    def _latest(self, subject: str) -> RegisteredSchema | None:
        if self._conf["use.latest.with.metadata"] is not None:
            latest = self._client.get_latest_with_metadata(
                subject, self._conf["use.latest.with.metadata"], deleted=True
            )
        elif self._conf["use.latest.version"]:
            latest = self._client.get_version(subject, "latest")
        else:
            return None
        if latest.schema.format != self.format:
            raise SchemaError(f"the latest one of {subject} is in the format {latest.schema.format}, not {self.format}")
        return latest

    @abstractmethod
    def _reader(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> Decode:
        """Return the decoder for payloads of a schema of the registry."""

    @abstractmethod
    def _name_of(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> str | None:
        """Return the record name of a schema for the subject name strategy."""

    @abstractmethod
    def _shapes(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> "Shapes":
        """Return the format's conversions between schemas, for rules and migrations."""


def _check_arguments(client: Any, conf: Any, **functions: Any) -> None:
    """Raise TypeError for arguments of other types, such as those of another library in its own order."""
    if not hasattr(client, "settings"):  # stand-ins for a client have settings too
        advice = "make one by RegistryClient(url)" if isinstance(client, str) else _FROM_CONF
        raise wrong_argument("client", "a strata.serdes.client.RegistryClient", client, advice)
    if conf is not None and not isinstance(conf, Mapping):
        raise wrong_argument("conf", "a dict of settings", conf)
    for name, one in functions.items():
        if one is not None and not callable(one):
            raise wrong_argument(name, "a function", one, "settings are given as conf" if isinstance(one, dict) else "")


def _refusing(error: SerdeError) -> Decode:
    def refuse(payload: bytes) -> Any:  # noqa: ARG001 - an interface
        raise copy.copy(error) from error.__cause__

    return refuse


def _is_fresh(one: Target | Source) -> bool:
    return one.until == math.inf or time.monotonic() < one.until


def _until(conf: Mapping[str, Any]) -> float:
    """Return when to ask for the latest version again, in seconds of `time.monotonic`."""
    ttl = conf["latest.cache.ttl.sec"]
    expires = ttl >= 0 and (conf["use.latest.version"] or conf["use.latest.with.metadata"])
    return time.monotonic() + ttl if expires else math.inf
