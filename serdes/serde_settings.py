"""The settings of serializers and deserializers.

A caller gives a dict with the names of Confluent's clients, such as `auto.register.schemas`. It is parsed once, into a
frozen dataclass: a field for each setting, with `_` for `.` in its name. An unknown setting is an error.

Rules of this file: to add a setting, add a field; one that is not a flag needs a row in `_CHECKS`.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, Self

from strata.serdes.errors import did_you_mean
from strata.serdes.framing import FRAMINGS, Frame, Framing
from strata.serdes.model import AVRO, JSON, PROTOBUF
from strata.serdes.registry_protocol import Registry
from strata.serdes.subject_name_strategies import SubjectNameStrategy, strategy_named

__all__ = ["DeserializerSettings", "Missing", "SerdeSettings", "SerializerSettings"]

_EXECUTOR_SETTING = re.compile(r"rule\.executors\.([^.]+\..+)")
"""Settings of rule executors: `rule.executors.<rule name, _TYPE_ or _default_>.<setting>`."""


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _is_functions(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and callable(function) for name, function in value.items()
    )


_FLAG = (lambda value: isinstance(value, bool), "True or False")
_TEXT = (lambda value: isinstance(value, str), "a string")
_FUNCTIONS = (_is_functions, "a dict of functions by name")
_CHECKS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "use.latest.with.metadata": (_is_texts, "a dict of strings"),
    "latest.cache.ttl.sec": (lambda value: isinstance(value, int | float), "seconds, or -1 to cache for ever"),
    "subject.name.strategy": (lambda value: callable(value) or isinstance(value, str), "a function or a name"),
    "subject.name.strategy.type": _TEXT,
    "subject.name.strategy.conf": (lambda value: isinstance(value, Mapping), "a dict"),
    "rule.conf": (lambda value: isinstance(value, Mapping), "a dict"),
    "rule.executors": _FUNCTIONS,
    "rule.actions": _FUNCTIONS,
    "dlq.topic": _TEXT,
    "dlq.producer": (lambda value: hasattr(value, "produce"), "a producer of confluent-kafka"),
    "dlq.redact.rule.types": _TEXT,
    "use.schema.id": (lambda value: type(value) is int and value >= 0, "a schema id"),
    "unknown.fields": (lambda value: value in ("refuse", "drop"), "refuse or drop"),
    "unfit.values": (lambda value: value in ("refuse", "bend"), "refuse or bend"),
    "schema.id.serializer": (
        lambda value: callable(value) or value in FRAMINGS,
        f"a function, {' or '.join(FRAMINGS)}",
    ),
    "reference.subject.name.strategy": (callable, "a function"),
    "use.deprecated.format": (lambda value: value is False, "False"),
    "schema.id.deserializer": (
        lambda value: callable(value) or value in ("dual", "prefix"),
        "a function, dual or prefix",
    ),
}
"""The check of each setting that is not a flag, and what it expects. None is allowed where it is the default."""

_FORMATS = {
    "round.times": AVRO,
    "validate.strict": AVRO,
    "validate.strict.allow.default": AVRO,
    "unfit.values": AVRO + JSON,
    "validate": JSON,
    "skip.known.types": PROTOBUF,
    "reference.subject.name.strategy": PROTOBUF,
    "use.deprecated.format": PROTOBUF,
}
"""The settings that not all formats have."""


Opening = Callable[[bytes, Any], Frame]
"""Splits a record into the parts of its frame, with the context of the record."""
Missing = Literal["default or null", "default", "error"]
"""What the value of a key that a record lacks may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SerdeSettings:
    """The settings that serializers and deserializers share.

    Attributes:
        executor_settings: the settings of rule executors, `<rule name, _TYPE_ or _default_>.<setting>`.
    """

    use_latest_with_metadata: Mapping[str, str] | None = None
    use_latest_version: bool = False
    latest_cache_ttl_sec: float = -1
    subject_name_strategy: SubjectNameStrategy | str | None = None
    subject_name_strategy_type: str | None = None
    subject_name_strategy_conf: Mapping[str, object] | None = None
    rule_conf: Mapping[str, object] | None = None
    rule_executors: Mapping[str, Callable[..., Any]] | None = None
    rule_actions: Mapping[str, Callable[..., Any]] | None = None
    dlq_topic: str | None = None
    dlq_producer: Any = None
    dlq_auto_flush: bool = False
    dlq_redact_rule_types: str = "ENCRYPT,ENCRYPT_PAYLOAD"
    executor_settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, conf: Mapping[str, object] | None, format: str) -> Self:  # noqa: A002 - the field's word
        """Return the settings in a dict; a missing one has its default.

        Args:
            conf: settings under the names of Confluent's clients.
            format: AVRO, JSON or PROTOBUF.

        Raises:
            ValueError: If a setting is unknown, has a value that is not allowed, or contradicts another one.
        """
        known = {name: field for name, field in cls._fields().items() if format in _FORMATS.get(name, format)}
        values: dict[str, Any] = {}
        executors: dict[str, object] = {}
        unknown = []
        for name, value in (conf or {}).items():
            if name in known:
                fits, expected = _CHECKS.get(name, _FLAG)
                optional = known[name].default is None
                if not fits(value) and not (optional and value is None):
                    raise ValueError(f"{name}: expected {expected}{' or None' if optional else ''}, got {value!r}")
                values[known[name].name] = value
            elif match := _EXECUTOR_SETTING.fullmatch(name):
                executors[match[1]] = value
            else:
                unknown.append(name)
        for name in sorted(unknown):
            advice = did_you_mean(name, known) or f"; expected {', '.join(known)}"
            raise ValueError(f"unknown setting {name!r}{advice}")
        common = {f"_default_.param.{name}": value for name, value in (values.get("rule_conf") or {}).items()}
        return cls(**values, executor_settings=common | executors)

    @classmethod
    def _fields(cls) -> "dict[str, Field[object]]":
        return {field.name.replace("_", "."): field for field in fields(cls) if field.default is not MISSING}

    @classmethod
    def names(cls, format: str) -> frozenset[str]:  # noqa: A002 - the field's word
        """Return the names of the settings that a format has, besides those of rule executors."""
        return frozenset(name for name in cls._fields() if format in _FORMATS.get(name, format))

    @property
    def wants_latest(self) -> bool:
        """Whether the latest version of a subject is used, not the writer's or the local schema."""
        return self.use_latest_version or self.use_latest_with_metadata is not None

    def strategy(self, client: Registry) -> SubjectNameStrategy:
        """Return the subject name strategy: the given function or name, else the type, else the associated strategy.

        Raises:
            ValueError: If the name of the strategy or a setting in its conf is unknown.
        """
        strategy = self.subject_name_strategy or self.subject_name_strategy_type or "ASSOCIATED"
        return strategy if callable(strategy) else strategy_named(strategy, client, self.subject_name_strategy_conf)

    def latest_until(self) -> float:
        """Return when to ask for the latest version again, in seconds of `time.monotonic`."""
        expires = self.latest_cache_ttl_sec >= 0 and self.wants_latest
        return time.monotonic() + self.latest_cache_ttl_sec if expires else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class SerializerSettings(SerdeSettings):
    """The settings of a serializer."""

    auto_register_schemas: bool = True
    normalize_schemas: bool = False
    use_schema_id: int | None = None
    id_compatibility_strict: bool = True
    latest_compatibility_strict: bool = True
    unknown_fields: str = "refuse"
    schema_id_serializer: Framing | str = "prefix"
    round_times: bool = False
    unfit_values: str = "refuse"
    validate_strict: bool = False
    validate_strict_allow_default: bool = False
    validate: bool = True
    skip_known_types: bool = True
    reference_subject_name_strategy: Callable[..., str] | None = None
    use_deprecated_format: bool = False

    def __post_init__(self) -> None:
        if self.use_latest_version and self.auto_register_schemas:
            raise ValueError("use.latest.version needs auto.register.schemas set to False")

    @property
    def chooses_schema(self) -> bool:
        """Whether a setting chooses a schema of the registry, so that no local schema is needed."""
        return self.use_schema_id is not None or self.wants_latest

    @property
    def drop_unknown(self) -> bool:
        """Whether fields that the schema lacks are dropped; else they are an error."""
        return self.unknown_fields == "drop"

    @property
    def bends(self) -> bool:
        """Whether values that do not fit are written as confluent-kafka writes them."""
        return self.unfit_values == "bend"

    @property
    def drops_bent(self) -> bool:
        """Whether `unfit.values=bend` drops fields that the schema lacks."""
        return not (self.validate_strict or self.validate_strict_allow_default)

    @property
    def missing(self) -> Missing:
        """What a missing key of a record may stand for."""
        if self.validate_strict:
            return "error"
        return "default" if self.validate_strict_allow_default else "default or null"

    @property
    def framing(self) -> Framing:
        """How a record carries its schema id or GUID."""
        framing = self.schema_id_serializer
        return framing if callable(framing) else FRAMINGS[framing]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeserializerSettings(SerdeSettings):
    """The settings of a deserializer."""

    schema_id_deserializer: Opening | str = "dual"
    validate: bool = True
