"""Avro through the registry: serializers and deserializers for whole frames.

    serialize = AvroSerializer(client, schema)
    frame = serialize({"id": 7}, topic="orders")
    value = AvroDeserializer(client)(frame)

Both fit confluent-kafka's `SerializingProducer` and `DeserializingConsumer` as `value.serializer`, `key.serializer` and
so on, and both may be shared between threads. None stands for no record at all, a tombstone, both ways.

Rules of this file: it asks the client, frames, and calls what `compile_encoder` and `compile_decoder` made; no bytes of
Avro here.
"""

import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from serdes.avro_decode import DEFAULT_LIMITS, Decoder, Limits, compile_decoder
from serdes.avro_encode import Encoder, compile_encoder
from serdes.avro_schema import Enum, Fixed, Record, parse
from serdes.avro_values import Branch
from serdes.cache import SharedCache
from serdes.client import RegistryClient, Schema
from serdes.errors import DecodeError, SchemaError
from serdes.framing import join, split
from serdes.model import AVRO
from serdes.strategies import STRATEGIES, Context, RecordContext, SubjectNameStrategy, topic_name

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "Branch",
    "Decoder",
    "Encoder",
    "Limits",
    "compile_decoder",
    "compile_encoder",
]

ToDict = Callable[[Any, RecordContext], Any]
FromDict = Callable[[Any, RecordContext], Any]

_DEFAULTS: Mapping[str, Any] = {
    "auto.register.schemas": True,
    "normalize.schemas": False,
    "use.schema.id": None,
    "use.latest.version": False,
    "latest.cache.ttl.sec": -1,
    "subject.name.strategy": topic_name,
}


@dataclass(frozen=True, slots=True)
class _Target:
    """What the values of one subject are written with, and until when that is believed."""

    schema_id: int
    encode: Encoder
    until: float


class AvroSerializer:
    """Turns values into frames, and sees to it that the registry knows their schema.

    Args:
        client: the registry.
        schema: the schema text of the values.
        to_dict: turns an object of yours into what the schema describes; called with the object and the context.
        conf: settings under the names that Confluent's clients use:
            `auto.register.schemas` (true) registers the schema at the first record of a subject, otherwise it must be
            there; `normalize.schemas` (false) does either with the normalized text; `use.schema.id` writes with the
            schema of that id; `use.latest.version` (false) writes with the subject's latest schema, asked for again
            after `latest.cache.ttl.sec` (-1, never); `subject.name.strategy` is a function of context and record name,
            or one of the usual names such as `TopicRecordNameStrategy`.
    """

    def __init__(
        self,
        client: RegistryClient,
        schema: str | Schema,
        to_dict: ToDict | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self._given = (client, schema, to_dict, conf)
        self._conf = _settings(conf)
        self._client = client
        self._schema = Schema(schema) if isinstance(schema, str) else schema
        self._to_dict = to_dict
        node = parse(self._schema.text)
        self._record_name = node.name if isinstance(node, Record | Enum | Fixed) else None
        self._strategy = _strategy(self._conf["subject.name.strategy"])
        capacity = client.settings.cache_size
        self._targets: SharedCache[str, _Target] = SharedCache(capacity)
        self._encoders: SharedCache[str, Encoder] = SharedCache(capacity)
        self._encoders.get(self._schema.text, lambda: compile_encoder(self._schema.text))

    def __reduce__(self) -> tuple[type["AvroSerializer"], tuple[Any, ...]]:
        return type(self), self._given

    def __call__(
        self, value: Any, ctx: RecordContext | None = None, *, topic: str | None = None, field: str = "value"
    ) -> bytes | None:
        """The frame of a value; say where it goes by a context, or by topic and field."""
        if value is None:
            return None
        context = Context(topic, field) if ctx is None else ctx
        subject = self._strategy(context, self._record_name)
        target = self._targets.get(subject, lambda: self._target(subject), is_fresh=_is_fresh)
        fields = value if self._to_dict is None else self._to_dict(value, context)
        return join(target.schema_id, target.encode(fields))

    def _target(self, subject: str) -> _Target:
        schema_id, schema = self._find(subject)
        if schema.format != AVRO:
            raise SchemaError(f"the schema {schema_id} is in the format {schema.format}, not Avro")
        encode = self._encoders.get(schema.text, lambda: compile_encoder(schema.text))
        ttl = self._conf["latest.cache.ttl.sec"]
        expires = self._conf["use.latest.version"] and ttl >= 0
        return _Target(schema_id, encode, time.monotonic() + ttl if expires else math.inf)

    def _find(self, subject: str) -> tuple[int, Schema]:
        """The schema to write with; the first setting that says something decides."""
        conf, client = self._conf, self._client
        if conf["auto.register.schemas"]:
            registered = client.register(subject, self._schema, normalize=conf["normalize.schemas"])
            return registered.schema_id, self._schema
        if conf["use.schema.id"] is not None:
            return conf["use.schema.id"], client.get_schema(conf["use.schema.id"], subject=subject)
        if conf["use.latest.version"]:
            latest = client.get_version(subject, "latest")
            return latest.schema_id, latest.schema
        found = client.lookup(subject, self._schema, normalize=conf["normalize.schemas"])
        return found.schema_id, self._schema


class AvroDeserializer:
    """Turns frames into values, whatever schema of the registry they were written with.

    Args:
        client: the registry.
        reader_schema: the schema text of the values wanted; without it each value has the shape it was written in.
        from_dict: turns what the schema describes into an object of yours; called with the value and the context.
        limits: bounds for hostile payloads.
        numeric_times: see `compile_decoder`.
        tagged_unions: see `compile_decoder`.
    """

    def __init__(
        self,
        client: RegistryClient,
        reader_schema: str | Schema | None = None,
        from_dict: FromDict | None = None,
        *,
        limits: Limits = DEFAULT_LIMITS,
        numeric_times: bool = False,
        tagged_unions: bool = False,
    ) -> None:
        self._client = client
        self._reader = reader_schema.text if isinstance(reader_schema, Schema) else reader_schema
        self._from_dict = from_dict
        self._options: dict[str, Any] = {
            "limits": limits,
            "numeric_times": numeric_times,
            "tagged_unions": tagged_unions,
        }
        if self._reader is not None:
            parse(self._reader)
        self._decoders: SharedCache[int, Decoder] = SharedCache(client.settings.cache_size)

    def __reduce__(self) -> tuple[Callable[..., "AvroDeserializer"], tuple[Any, ...]]:
        make = functools.partial(type(self), **self._options)
        return make, (self._client, self._reader, self._from_dict)

    def __call__(self, data: bytes | None, ctx: RecordContext | None = None, *, topic: str | None = None) -> Any:
        """The value in a frame."""
        if data is None:
            return None
        schema_id, payload = split(data)
        decode = self._decoders.get(schema_id, lambda: self._compile(schema_id))
        try:
            value = decode(payload)
        except DecodeError as error:
            error.schema_id = schema_id
            error.topic = topic if ctx is None else ctx.topic
            raise
        return value if self._from_dict is None else self._from_dict(value, Context(topic) if ctx is None else ctx)

    def _compile(self, schema_id: int) -> Decoder:
        schema = self._client.get_schema(schema_id)
        if schema.format != AVRO:
            raise SchemaError(f"the schema {schema_id} is in the format {schema.format}, not Avro")
        try:
            return compile_decoder(schema.text, self._reader, **self._options)
        except SchemaError as error:
            raise SchemaError(f"the schema {schema_id} cannot be read: {error}") from None


def _is_fresh(target: _Target) -> bool:
    return time.monotonic() < target.until


def _settings(conf: Mapping[str, Any] | None) -> dict[str, Any]:
    given = dict(conf or {})
    unknown = sorted(given.keys() - _DEFAULTS.keys())
    if unknown:
        raise ValueError(f"unknown settings {', '.join(unknown)}; allowed are {', '.join(_DEFAULTS)}")
    settings = {**_DEFAULTS, **given}
    for name in ("auto.register.schemas", "normalize.schemas", "use.latest.version"):
        if settings[name] not in (True, False):
            raise ValueError(f"{name} is {settings[name]!r}; allowed are True and False")
    if settings["use.latest.version"] and settings["auto.register.schemas"]:
        raise ValueError(
            "use.latest.version needs auto.register.schemas set to False: only one can say what is written"
        )
    return settings


def _strategy(given: SubjectNameStrategy | str) -> SubjectNameStrategy:
    if callable(given):
        return given
    if given not in STRATEGIES:
        raise ValueError(f"the subject name strategy {given!r} is unknown; allowed are {', '.join(STRATEGIES)}")
    return STRATEGIES[given]
