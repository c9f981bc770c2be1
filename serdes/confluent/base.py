"""What the serializers and deserializers of all formats share: settings, errors, and the forms for asyncio.

Rules of this file: no format.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, Self

from strata.serdes.aio import AsyncDeserializer, AsyncSerializer, call
from strata.serdes.confluent.borrowed import engine_client
from strata.serdes.confluent.engine_rules import engine_rules
from strata.serdes.confluent.error import refuse_unknown, translated
from strata.serdes.confluent.rule_registry import RuleRegistry
from strata.serdes.confluent.schema_ids import engine_framing, engine_opening
from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient, SchemaRegistryClient
from strata.serdes.confluent.serialization import SerializationContext
from strata.serdes.confluent.strategies import KAFKA_CLUSTER_ID, SubjectNameStrategyType, engine_strategy
from strata.serdes.deserializer import Deserializer
from strata.serdes.errors import SerdeError
from strata.serdes.serde_settings import DeserializerSettings, SerializerSettings
from strata.serdes.serializer import Serializer
from strata.serdes.subject_name_strategies import Context, RecordContext, strategy_named

__all__ = [
    "AsyncBaseDeserializer",
    "AsyncBaseSerializer",
    "BaseDeserializer",
    "BaseSerde",
    "BaseSerializer",
    "ObjectFunction",
    "engine_conf",
]

_OFF = ("validation.rules.execution", "validation.rules.executor", "validation.rules.fail.fast")
_ALWAYS = frozenset({*_OFF, "use.deprecated.format"})
_SERIALIZER = {"latest.compatibility.strict": False, "id.compatibility.strict": False}
_NO_CONTEXT = Context()

ObjectFunction = Callable[[Any, Any], Any]
"""Converts between a value of a record and the program's object, `(value, context)`, with the program's own types."""


def engine_conf(
    conf: Mapping[str, Any] | None,
    client: object,
    schema_format: str,
    rule_conf: Mapping[str, object] | None,
    rule_registry: RuleRegistry | None,
    *,
    writes: bool,
) -> Any:
    """Return the settings of the engine's serializer or deserializer, which has a TypedDict for each of the two.

    Args:
        conf: the settings by confluent-kafka's names, and by ours.
        client: the registry client as given.
        schema_format: AVRO, JSON or PROTOBUF.
        rule_conf: the settings of rule executors.
        rule_registry: what the program registered; None is the global registry.
        writes: whether it is for a serializer.

    Raises:
        ValueError: If a setting is unknown, has a value that is not allowed, or contradicts another one.
    """
    settings = dict(conf or {})
    settings_class = SerializerSettings if writes else DeserializerSettings
    refuse_unknown(
        {name: 1 for name in settings if not name.startswith("rule.")}, settings_class.names(schema_format) | _ALWAYS
    )
    _check_refused(settings)
    settings = {name: value for name, value in settings.items() if value is not None and name not in _ALWAYS}
    if isinstance(settings.get("rule.executors"), Mapping):
        raise ValueError("rule.executors: pass rule_registry instead")  # noqa: TRY004 - a setting
    settings |= engine_strategy(settings, client)
    settings.pop("subject.name.strategy.type", None)
    ttl = getattr(getattr(client, "plain", client), "latest_ttl", None)
    if isinstance(ttl, int | float) and "latest.cache.ttl.sec" not in settings:
        settings["latest.cache.ttl.sec"] = ttl
    if writes:
        settings = _SERIALIZER | settings
        if "unfit.values" in settings_class.names(schema_format):
            settings.setdefault("unfit.values", "bend")
        if "schema.id.serializer" in settings:
            settings["schema.id.serializer"] = engine_framing(settings["schema.id.serializer"], schema_format)
    elif "schema.id.deserializer" in settings:
        settings["schema.id.deserializer"] = engine_opening(settings["schema.id.deserializer"], schema_format)
    registry = RuleRegistry.get_global_instance() if rule_registry is None else rule_registry
    config = getattr(client, "config", None)
    client_conf = config() if callable(config) else {}
    rules = engine_rules(registry, client_conf if isinstance(client_conf, Mapping) else {}, rule_conf)
    return rules | settings


def _check_refused(conf: Mapping[str, object]) -> None:
    """Raise ValueError for settings that can only be off."""
    if conf.get("use.deprecated.format"):
        raise ValueError("use.deprecated.format is no longer supported: expected False")
    execution = conf.get("validation.rules.execution")
    if str(getattr(execution, "value", execution) or "DISABLED").upper() != "DISABLED":
        raise ValueError("validation.rules.execution: expected DISABLED; write the rules as domain rules of type CEL")


class BaseSerde:
    """The base class of serializers and deserializers."""

    engine: Serializer | Deserializer
    _client: Any = None
    _registry: RuleRegistry | None = None
    _owns_client = False

    def _made(
        self,
        engine: Serializer | Deserializer,
        client: object,
        conf: Mapping[str, Any] | None,
        rule_registry: RuleRegistry | None,
    ) -> None:
        self.engine, self._client, self._registry = engine, client, rule_registry
        self._strategy_conf = dict(conf or {})
        plain = getattr(client, "plain", client)
        if isinstance(plain, SchemaRegistryClient):
            plain.watch(engine)

    def close(self) -> None:
        """Close the executors of a rule registry of its own, and the client if a builder made it."""
        registry = self._registry
        if registry is not None and registry is not RuleRegistry.get_global_instance():
            for part in (*registry.get_executors(), *registry.get_actions()):
                part.close()
        if self._owns_client and self._client is not None:
            self._client.close()

    def own_schema_registry_client(self) -> None:
        """Let `close` close the registry client too."""
        self._owns_client = True

    def set_cluster_id_resolver(self, resolver: Callable[[], str]) -> None:
        """Ask for the id of the Kafka cluster by a function, on the first use of an associated subject."""
        conf = self._strategy_conf.get("subject.name.strategy.conf") or {}
        strategy_type = self._strategy_conf.get("subject.name.strategy.type") or SubjectNameStrategyType.ASSOCIATED
        named = str(getattr(strategy_type, "value", strategy_type)) == SubjectNameStrategyType.ASSOCIATED.value
        if not named or self._strategy_conf.get("subject.name.strategy") is not None or conf.get(KAFKA_CLUSTER_ID):
            return
        client = engine_client(self._client)
        known: dict[str, str] = {}

        def strategy(context: RecordContext, record: str | None) -> str:
            if not known:
                known[KAFKA_CLUSTER_ID] = str(resolver())
            return strategy_named("ASSOCIATED", client, {**conf, **known})(context, record)

        self.engine.use_strategy(strategy)

    def configure_subject_name_strategy(
        self,
        subject_name_strategy_type: SubjectNameStrategyType | str | None = None,
        subject_name_strategy_conf: Mapping[str, object] | None = None,
        subject_name_strategy: Callable[..., str | None] | None = None,
    ) -> None:
        """Choose another subject name strategy.

        Raises:
            ValueError: If the strategy is not a function, or its type is unknown.
        """
        names = ("type", "conf", "")
        values = (subject_name_strategy_type, subject_name_strategy_conf, subject_name_strategy)
        chosen = {
            f"subject.name.strategy.{name}".rstrip("."): value
            for name, value in zip(names, values, strict=True)
            if value
        }
        strategy_conf = engine_strategy(chosen, self._client)
        strategy = strategy_conf["subject.name.strategy"]
        if not callable(strategy):
            client = engine_client(self._client)
            strategy = strategy_named(strategy, client, strategy_conf["subject.name.strategy.conf"])
        self._strategy_conf |= chosen
        self.engine.use_strategy(strategy)

    def configure_validation_rules(self, conf: dict[str, Any]) -> None:
        """Take the settings of inline validation rules out of `conf`.

        Raises:
            ValueError: If they are not off.
        """
        _check_refused(conf)
        for name in _OFF:
            conf.pop(name, None)


class BaseSerializer(BaseSerde):
    """A callable that turns values into frames."""

    engine: Serializer

    def __call__(self, obj: object, ctx: RecordContext | None = None) -> bytes | None:
        """Serialize a value to a frame.

        Args:
            obj: the value; None is a tombstone.
            ctx: the topic, field and headers of the record.

        Raises:
            SerializationError: If the value does not fit the schema, the schema cannot be used or a rule fails.
            SchemaRegistryError: If the registry rejects a request, or gives no usable answer after all retries.
            OAuthTokenError: If there is no OAuth token.
        """
        try:
            return self.engine(obj, ctx or _NO_CONTEXT)
        except SerdeError as error:
            raise translated(error) from error


class BaseDeserializer(BaseSerde):
    """A callable that turns frames into values."""

    engine: Deserializer

    def __call__(self, data: bytes | None, ctx: RecordContext | None = None) -> Any:
        """Deserialize a frame to a value.

        Args:
            data: the frame; None is a tombstone.
            ctx: the topic, field and headers of the record.

        Raises:
            SerializationError: If the bytes are not a frame, the payload does not decode, the schema cannot be used or
                a rule fails.
            SchemaRegistryError: If the registry rejects a request, or gives no usable answer after all retries.
            OAuthTokenError: If there is no OAuth token.
        """
        try:
            return self.engine(data, ctx or _NO_CONTEXT)
        except SerdeError as error:
            raise translated(error) from error


class _AsyncSerde:
    """What the forms for asyncio share: they are made in a thread, when they are awaited or first called."""

    _kind: type[BaseSerde]
    plain: BaseSerde

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._given = args, kwargs
        self._made: BaseSerde | None = None

    def __await__(self) -> Generator[object, None, Self]:
        yield from self._plain().__await__()
        return self

    async def _plain(self) -> Any:
        if self._made is None:
            args, kwargs = self._given
            self._made = await call(self._kind, *args, **kwargs)
            self._wrap(self._made)
        return self._made

    def _wrap(self, made: object) -> None:
        """Keep the awaitable form of the engine."""

    async def aclose(self) -> None:
        """Close what the serde owns."""
        made = await self._plain()
        if made._owns_client and isinstance(made._client, AsyncSchemaRegistryClient):
            await made._client.aclose()
            made._owns_client = False
        made.close()

    def own_schema_registry_client(self) -> None:
        """Let `aclose` close the registry client too."""
        if self._made is not None:
            self._made.own_schema_registry_client()

    def set_async_cluster_id_resolver(self, resolver: Callable[[], Awaitable[str]]) -> None:
        """Ask for the id of the Kafka cluster by a coroutine function, on the first use of an associated subject."""
        import asyncio

        def resolve() -> str:
            async def ask() -> str:
                return await resolver()

            return asyncio.run(ask())

        if self._made is not None:
            self._made.set_cluster_id_resolver(resolve)


class AsyncBaseSerializer(_AsyncSerde):
    """An awaitable form of a serializer: `serialize = await AsyncAvroSerializer(client, schema)`."""

    def _wrap(self, made: Any) -> None:
        self._serialize = AsyncSerializer(made.engine)

    async def __call__(self, obj: object, ctx: SerializationContext | RecordContext | None = None) -> bytes | None:
        """Serialize a value to a frame, with the errors of `BaseSerializer`."""
        await self._plain()
        context: Any = ctx or _NO_CONTEXT
        try:
            return await self._serialize(obj, context)
        except SerdeError as error:
            raise translated(error) from error


class AsyncBaseDeserializer(_AsyncSerde):
    """An awaitable form of a deserializer: `deserialize = await AsyncAvroDeserializer(client)`."""

    def _wrap(self, made: Any) -> None:
        self._deserialize = AsyncDeserializer(made.engine)

    async def __call__(self, data: bytes | None, ctx: SerializationContext | RecordContext | None = None) -> Any:
        """Deserialize a frame to a value, with the errors of `BaseDeserializer`."""
        await self._plain()
        context: Any = ctx or _NO_CONTEXT
        try:
            return await self._deserialize(data, context)
        except SerdeError as error:
            raise translated(error) from error
