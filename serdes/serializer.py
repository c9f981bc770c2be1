"""The base class of the serializers of all formats.

A record whose schema is cached takes `known` and `write`: plain calls without I/O, which `aio.py` makes too. On a cache
miss `target` asks the registry, one request for all threads that wait for it. It also loads the rules of the schema;
running them may block while their executors ask a server.

Rules of this file: it names subjects, calls the client and frames payloads; the bytes of a format are the format's.
"""

import math
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, cast
from uuid import UUID

from strata.serdes.base import Serde, T, is_fresh
from strata.serdes.client import Schema
from strata.serdes.compatibility import check_reads
from strata.serdes.errors import ErrorCode, NoSubject, RegistryError, SchemaError
from strata.serdes.framing import FRONTS, SchemaId
from strata.serdes.functions import Encode
from strata.serdes.model import RegisteredSchema, is_class, schema_given
from strata.serdes.observer import observe
from strata.serdes.registry_protocol import Registry, settings_of
from strata.serdes.serde_settings import SerializerSettings
from strata.serdes.subject_name_strategies import RecordContext, SubjectNameStrategy, context_of_topic
from strata.shared_cache import SharedCache

if TYPE_CHECKING:
    from strata.serdes.rules.contracts import Writing
    from strata.serdes.rules.fields import Values

__all__ = ["BentValueWarning", "Encode", "Serializer", "Target", "TextSerializer", "ToDict"]

ToDict = Callable[[Any, RecordContext], Any]

_NOT_REGISTERED = frozenset({ErrorCode.SUBJECT_NOT_FOUND, ErrorCode.SCHEMA_NOT_FOUND})
_MOST_WARNINGS = 1000
_INDEX = re.compile(r"\[[^\]]*\]")
_CHOICES = ("use.schema.id", "use.latest.with.metadata", "use.latest.version")


class BentValueWarning(UserWarning):
    """A value did not fit the schema and was changed, since `unfit.values` is `bend`."""


@dataclass(frozen=True, slots=True)
class Target:
    """The schema and encoder for one subject; fresh until `until`, in seconds of `time.monotonic`.

    `front` is what the frames have in front of the payload; None where the framing decides for each record.
    """

    schema: SchemaId
    encode: Encode
    until: float
    rules: "Writing | None" = None
    front: bytes | None = None


class Serializer(Serde[SerializerSettings], Generic[T]):
    """A callable that turns values into frames and registers or looks up their schema; safe to share among threads.

    It is generic in the type of the values.
    """

    def __init__(self, client: Registry, to_dict: ToDict | None, conf: Mapping[str, object] | None) -> None:
        super().__init__(client, SerializerSettings, conf, to_dict=to_dict)
        self._to_dict = to_dict
        self._own_strategy = callable(self._settings.subject_name_strategy)
        self._frame = self._settings.framing
        self._needs_guid = self._settings.schema_id_serializer in ("guid", "header")
        self._targets: SharedCache[object, Target] = SharedCache(settings_of(client).cache_size)
        self._warned: set[tuple[str, str]] = set()
        if (observer := getattr(client, "observer", None)) is not None:
            observe(self, observer, "encode", ["target"], "write")

    def __call__(
        self, value: T | None, ctx: RecordContext | None = None, *, topic: str | None = None, field: str = "value"
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
        context = context_of_topic(topic, field) if ctx is None else ctx
        return self.write(value, context, self.known(context) or self.target(context))

    def known(self, context: RecordContext) -> Target | None:
        """Return the cached target for a context without I/O, or None on a cache miss.

        Raises:
            NoSubject: If the caller's own subject name strategy raises it.
        """
        key = self._key(context) if self._own_strategy else (context.topic, context.field)
        target = self._targets.peek(key)
        return target if target is not None and (target.until == math.inf or is_fresh(target)) else None

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
        return self._targets.get(self._key(context), lambda: self._target(context), is_fresh=is_fresh)

    def write(self, value: object, context: RecordContext, target: Target) -> bytes:
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
        rules = target.rules
        if rules is None:
            payload = target.encode(fields)
        elif rules.direct is None:
            payload = rules.payload(fields, context, target.encode)
        else:
            try:
                payload = rules.direct(fields)
            except Exception:  # noqa: BLE001 - it fails again, where the error gets its words and the rule its action
                payload = rules.payload(fields, context, target.encode)
        front = target.front
        return self._frame(payload, context, target.schema) if front is None else front + payload

    def use_strategy(self, strategy: SubjectNameStrategy) -> None:
        """Use another subject name strategy."""
        self._strategy, self._own_strategy = strategy, True
        self.forget()

    def forget(self) -> None:
        """Forget the schemas of all topics, so that the registry is asked again."""
        self._targets.discard(lambda _: True)

    def _bent(self, detail: str, path: str) -> None:
        """Warn of a value that was changed, once for each field and kind of change."""
        change = detail, _INDEX.sub("[]", path)
        if change in self._warned or len(self._warned) >= _MOST_WARNINGS:
            return
        self._warned.add(change)
        where = f"field {path}: " if path else ""
        warnings.warn(f'{where}{detail}; unfit.values is "bend"', BentValueWarning, stacklevel=2)

    def _key(self, context: RecordContext) -> object:
        """Return the cache key of a target: topic and field, or the subject if the strategy is the caller's own."""
        if self._own_strategy:
            return self._strategy(context, self._record_name())
        return context.topic, context.field

    def _target(self, context: RecordContext) -> Target:
        subject = self._strategy(context, self._record_name())
        if not subject:
            raise NoSubject("the subject name strategy returned no subject")
        registered, schema = self._find(subject, context)
        if schema.format != self.format:
            raise SchemaError(f"schema {registered.schema_id}: expected the format {self.format}, got {schema.format}")
        guid = registered.guid
        if guid is None and self._needs_guid:
            guid = self._client.lookup(subject, schema).guid
        encode, indexes = self._writer(schema, subject, registered.schema_id)
        identity = SchemaId(registered.schema_id, None if guid is None else UUID(guid), indexes)
        front = FRONTS.get(self._frame)
        return Target(
            identity,
            encode,
            self._settings.latest_until(),
            self._rules(registered, schema, subject),
            None if front is None else front(identity),
        )

    def _rules(self, registered: RegisteredSchema, schema: Schema, subject: str) -> "Writing | None":
        """Return the rules for writing; the registry's copy of a schema may carry rules that the local one lacks."""
        contract = schema if registered.schema.rule_set is None else registered.schema
        if contract.rule_set is None:
            return None
        from strata.serdes.rules.contracts import writing_of

        ruled = replace(schema, metadata=contract.metadata, rule_set=contract.rule_set)
        return writing_of(self._runner, ruled, subject, lambda: self._values(ruled, subject))

    def _find(self, subject: str, context: RecordContext) -> tuple[RegisteredSchema, Schema]:
        """Return the schema to write with; the first setting that applies decides."""
        settings, client = self._settings, self._client
        if settings.use_schema_id is not None:
            chosen = client.get_schema(settings.use_schema_id, subject=subject)
            self._check(chosen, subject, strict=settings.id_compatibility_strict)
            return RegisteredSchema(subject, None, settings.use_schema_id, None, chosen), chosen
        if settings.wants_latest:
            latest = self._latest(subject)
            self._check(latest.schema, subject, strict=settings.latest_compatibility_strict)
            return latest, latest.schema
        local = self._local(context)
        if settings.auto_register_schemas:
            return client.register(subject, local, normalize=settings.normalize_schemas), local
        try:
            return client.lookup(subject, local, normalize=settings.normalize_schemas), local
        except RegistryError as error:
            if error.error_code not in _NOT_REGISTERED:
                raise
            advice = (
                f"{error.message.rstrip('.')}; auto.register.schemas is False: register this schema under "
                f"{subject!r} before, or write with a registered one by use.latest.version or use.schema.id"
            )
            raise RegistryError(error.status, error.error_code, advice) from None

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


class TextSerializer(Serializer[T]):
    """The base class of serializers whose local schema is a text, or None if a setting chooses one of the registry."""

    def __init__(
        self,
        client: Registry,
        schema: str | Schema | type[T] | None = None,
        to_dict: Callable[[T, RecordContext], object] | None = None,
        conf: Mapping[str, object] | None = None,
    ) -> None:
        arguments = (client, schema, to_dict, conf)
        if is_class(schema):
            from strata.serdes.classes import bound

            binding = bound(schema, self.format)
            schema, to_dict = binding.schema, to_dict or binding.to_dict
        super().__init__(client, to_dict, conf)
        self._given = arguments
        self._schema = None if schema is None else schema_given(schema, self.format)
        if self._schema is None and not self._settings.chooses_schema:
            raise ValueError(f"expected a schema or one of the settings {', '.join(_CHOICES)}")
        self._name = None if self._schema is None else self._checked(self._schema)

    def _record_name(self) -> str | None:
        return self._name

    def _local(self, context: RecordContext) -> Schema:  # noqa: ARG002 - an interface
        return cast("Schema", self._schema)

    def _described(self) -> Schema | None:
        return self._schema

    @abstractmethod
    def _checked(self, schema: Schema) -> str | None:
        """Return the record name of the local schema; raise SchemaError if it cannot be used."""
