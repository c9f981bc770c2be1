"""What the serializers and deserializers of all formats have in common.

A record that needs nothing new of the registry goes through `known` and `write`, or `known` and `read`: plain calls
without I/O, which `serdes.aio` makes too. What is not known yet is found by `target` and `source`, which ask the
registry, once for however many threads. Rules of a schema are found then too: a target or source that has some, as its
`rules`, may wait for what their executors ask.

Rules of this file: it names subjects, asks the client, frames; no bytes of any format.
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

from serdes.cache import SharedCache
from serdes.client import RegistryClient, Schema, context_of
from serdes.compatibility import check_reads
from serdes.configuration import Table, framing_of, settings_of, strategy_of
from serdes.errors import (
    DecodeError,
    NoMessage,
    NoSubject,
    RegistryError,
    RuleError,
    SchemaError,
    SerdeError,
    wrong_argument,
)
from serdes.framing import Frame, SchemaId, open_frame, read_header
from serdes.model import RegisteredSchema
from serdes.strategies import Context, RecordContext

if TYPE_CHECKING:
    from serdes.rules.contracts import Reading, Shapes, Writing
    from serdes.rules.fields import Values
    from serdes.rules.running import Runner

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
    """What the values of one subject are written with, and until when that is believed."""

    schema: SchemaId
    encode: Encode
    until: float
    rules: "Writing | None" = None


@dataclass(frozen=True, slots=True)
class Source:
    """What reads the frames of one schema from one topic, and until when that is believed."""

    decode: Decode
    until: float = math.inf
    rules: "Reading | None" = None


class Serializer(ABC):
    """Turns values into frames, and sees to it that the registry knows their schema."""

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
        """The frame of a value; say where it goes by a context, or by topic and field."""
        if value is None:
            return None
        context = Context(topic, field) if ctx is None else ctx
        return self.write(value, context, self.known(context) or self.target(context))

    def known(self, context: RecordContext) -> Target | None:
        """What to write with, if that needs nothing of the registry."""
        target = self._targets.peek(self._key(context))
        return target if target is not None and _is_fresh(target) else None

    def target(self, context: RecordContext) -> Target:
        """What to write with, asked of the registry."""
        return self._targets.get(self._key(context), lambda: self._target(context), is_fresh=_is_fresh)

    def write(self, value: Any, context: RecordContext, target: Target) -> bytes:
        """The frame of a value."""
        fields = value if self._to_dict is None else self._to_dict(value, context)
        if target.rules is None:
            payload = target.encode(fields)
        else:
            payload = target.rules.payload(fields, context, target.encode)
        return self._frame(payload, context, target.schema)

    def _key(self, context: RecordContext) -> Any:
        """What decides on the subject: for a strategy that we do not know only the subject itself."""
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
        """The rules to write by: those of the registry, which may know more of a schema than who registers it."""
        contract = schema if found.schema.rule_set is None else found.schema
        if contract.rule_set is None:
            return None
        from serdes.rules.contracts import writing_of

        ruled = replace(schema, metadata=contract.metadata, rule_set=contract.rule_set)
        return writing_of(self._runner, ruled, subject, lambda: self._values(ruled, subject))

    @cached_property
    def _runner(self) -> "Runner":
        from serdes.rules.running import Runner

        return Runner(self._client, self._conf)

    def _find(self, subject: str, context: RecordContext) -> tuple[RegisteredSchema, Schema]:
        """The schema to write with; the first setting that says something decides."""
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
        """Refuse to go without a schema where no setting says which one of the registry is meant."""
        if all(self._conf[name] in (None, False) for name in _CHOICES):
            raise ValueError(
                f"without a schema one of {', '.join(_CHOICES)} must say which one of the registry is meant"
            )

    def _check(self, schema: Schema, subject: str, *, strict: bool) -> None:
        """Refuse a schema of the registry that could not read what the local one describes."""
        local = self._described()
        if strict and local is not None and local.bare != schema.bare and schema.format == self.format:
            check_reads(self._client, schema, local, subject, imports=self._imports())

    def _imports(self) -> Mapping[str, Schema] | None:
        """What the schema of the values refers to; None where its references tell that."""
        return None

    @abstractmethod
    def _record_name(self) -> str | None:
        """What the strategies call the record."""

    @abstractmethod
    def _local(self, context: RecordContext) -> Schema:
        """The schema to register, its references registered."""

    @abstractmethod
    def _described(self) -> Schema | None:
        """The schema of the values, as it is known without asking; None where only the registry has it."""

    @abstractmethod
    def _writer(self, schema: Schema, subject: str, schema_id: int) -> tuple[Encode, tuple[int, ...]]:
        """What writes values with a schema of the registry, and for Protobuf the path to the message."""

    @abstractmethod
    def _values(self, schema: Schema, subject: str) -> "Values":
        """The values of a schema, as rules see them."""


class Deserializer(ABC):
    """Turns frames into values, whatever schema of the registry they were written with."""

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
        """The value in a frame; say where it came from by a context, or by topic, field and headers."""
        if data is None:
            return None
        context = Context(topic, field, headers) if ctx is None else ctx
        frame = self.open(data, context)
        return self.read(frame, context, self.known(frame, context) or self.source(frame, context), data)

    def open(self, data: bytes, context: RecordContext) -> Frame:
        """Take a record apart."""
        header = read_header(context) if self._looks_at_headers else None
        return open_frame(data, header, indexed=self.indexed)

    def known(self, frame: Frame, context: RecordContext) -> Source | None:
        """What reads a frame, if that needs nothing of the registry."""
        source = self._sources.peek((frame.schema, frame.indexes, context.topic, context.field))
        return source if source is not None and _is_fresh(source) else None

    def source(self, frame: Frame, context: RecordContext) -> Source:
        """What reads a frame, asked of the registry."""
        key = (frame.schema, frame.indexes, context.topic, context.field)
        return self._sources.get(key, lambda: self._source(frame, context), is_fresh=_is_fresh)

    def read(self, frame: Frame, context: RecordContext, source: Source, data: bytes) -> Any:
        """The value in a frame; `data` is the record that was opened."""
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
        """The context of the subject to which a topic's records belong; without a subject the default one."""
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
        """What reads a frame, or what refuses it at once: a topic may be full of frames whose schema cannot be read.

        A text that cannot be read stays so (`lasts`). What depends on the latest version, on what is installed, or on a
        reference that is not there is tried again as unknown ids are. Paths to messages are not remembered: a damaged
        frame may have any.
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
        """What reads by the rules of the schemas on the way to the one wanted."""
        from serdes.rules.contracts import reading_of

        subject = self._subject(context, schema, frame.indexes, scope)
        latest = self._latest(subject)
        shapes = self._shapes(schema, frame.indexes, subject or None)
        rules = reading_of(self._runner, self._client, subject, schema, latest, shapes)
        plain = rules.plain
        return Source(plain or rules.decode, _until(self._conf), rules if plain is None else None)

    @cached_property
    def _runner(self) -> "Runner":
        from serdes.rules.running import Runner

        return Runner(self._client, self._conf)

    def _subject(self, context: RecordContext, schema: Schema, indexes: tuple[int, ...], scope: str | None) -> str:
        """The subject of a record; without a topic there may be none, and then there is no latest version."""
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
        """What reads payloads written with a schema of the registry."""

    @abstractmethod
    def _name_of(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> str | None:
        """What the strategies call records written with a schema."""

    @abstractmethod
    def _shapes(self, schema: Schema, indexes: tuple[int, ...], subject: str | None) -> "Shapes":
        """What the format knows of payloads written with a schema."""


def _check_arguments(client: Any, conf: Any, **functions: Any) -> None:
    """Refuse arguments of other types, such as those of another library in its own order."""
    if not hasattr(client, "settings"):  # what stands in for a client has them too
        advice = "make one by RegistryClient(url)" if isinstance(client, str) else _FROM_CONF
        raise wrong_argument("client", "a serdes.client.RegistryClient", client, advice)
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
    """When the latest version is to be asked for again."""
    ttl = conf["latest.cache.ttl.sec"]
    expires = ttl >= 0 and (conf["use.latest.version"] or conf["use.latest.with.metadata"])
    return time.monotonic() + ttl if expires else math.inf
