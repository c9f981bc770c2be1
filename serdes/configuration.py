"""The settings of serializers and deserializers, under the names that Confluent's clients use.

One table: name, default, what is allowed. A setting that is not in the table is an error.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from strata.serdes.client import RegistryClient
from strata.serdes.framing import FRAMINGS, Framing
from strata.serdes.subject_name_strategies import SubjectNameStrategy, strategy_named

__all__ = [
    "DESERIALIZER",
    "JSON_DESERIALIZER",
    "JSON_SERIALIZER",
    "PROTOBUF_SERIALIZER",
    "SERIALIZER",
    "Table",
    "framing_of",
    "settings_of",
    "strategy_of",
]


@dataclass(frozen=True, slots=True)
class _Setting:
    default: Any
    fits: Callable[[Any], bool]
    allowed: str


Table = Mapping[str, _Setting]


def _flag(default: bool) -> _Setting:
    return _Setting(default, lambda value: value is True or value is False, "True and False")


def _is_functions(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) and callable(one) for name, one in value.items())


def _is_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for pair in value.items() for one in pair)


_SUBJECT: Table = {
    "subject.name.strategy": _Setting(
        None, lambda value: value is None or callable(value) or isinstance(value, str), "a function or a name"
    ),
    "subject.name.strategy.type": _Setting(None, lambda value: value is None or isinstance(value, str), "a name"),
    "subject.name.strategy.conf": _Setting(None, lambda value: value is None or isinstance(value, Mapping), "a dict"),
}

_LATEST: Table = {
    "use.latest.with.metadata": _Setting(
        None, lambda value: value is None or _is_texts(value), "None and a dict of strings"
    ),
    "use.latest.version": _flag(default=False),
    "latest.cache.ttl.sec": _Setting(-1, lambda value: isinstance(value, int | float), "-1, never, and seconds"),
}

_RULES: Table = {
    "rule.executors": _Setting(
        None, lambda value: value is None or _is_functions(value), "None and a dict of functions by the type of rule"
    ),
    "rule.actions": _Setting(
        None, lambda value: value is None or _is_functions(value), "None and a dict of functions by name"
    ),
    "dlq.topic": _Setting(None, lambda value: value is None or isinstance(value, str), "None and a topic"),
    "dlq.producer": _Setting(
        None, lambda value: value is None or hasattr(value, "produce"), "None and a producer of confluent-kafka"
    ),
    "dlq.auto.flush": _flag(default=False),
    "dlq.redact.rule.types": _Setting(
        "ENCRYPT,ENCRYPT_PAYLOAD", lambda value: isinstance(value, str), "types of rules with commas between"
    ),
}
_EXECUTOR_SETTING = re.compile(r"rule\.executors\.[^.]+\..+")
"""Settings of rule executors: `rule.executors.<rule name, _TYPE_ or _default_>.<setting>`."""

SERIALIZER: Table = {
    "auto.register.schemas": _flag(default=True),
    "normalize.schemas": _flag(default=False),
    "use.schema.id": _Setting(
        None, lambda value: value is None or (type(value) is int and value >= 0), "None and a schema id"
    ),
    "id.compatibility.strict": _flag(default=True),
    "latest.compatibility.strict": _flag(default=True),
    **_LATEST,
    "unknown.fields": _Setting("refuse", lambda value: value in ("refuse", "drop"), "refuse and drop"),
    "schema.id.serializer": _Setting(
        "prefix", lambda value: callable(value) or value in FRAMINGS, f"a function, {', '.join(FRAMINGS)}"
    ),
    **_SUBJECT,
    **_RULES,
}

JSON_SERIALIZER: Table = {**SERIALIZER, "validate": _flag(default=True)}

PROTOBUF_SERIALIZER: Table = {
    **SERIALIZER,
    "skip.known.types": _flag(default=True),
    "reference.subject.name.strategy": _Setting(None, lambda value: value is None or callable(value), "a function"),
    "use.deprecated.format": _Setting(False, lambda value: value is False, "False"),
}

DESERIALIZER: Table = {
    "schema.id.deserializer": _Setting("dual", lambda value: value in ("dual", "prefix"), "dual and prefix"),
    **_LATEST,
    **_SUBJECT,
    **_RULES,
}

JSON_DESERIALIZER: Table = {**DESERIALIZER, "validate": _flag(default=True)}


def settings_of(table: Table, conf: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all settings of a table, given or default.

    Args:
        table: the allowed settings.
        conf: the caller's settings.

    Raises:
        ValueError: If a setting is unknown, has a value that is not allowed, or contradicts another one.
    """
    given = dict(conf or {})
    unknown = sorted(name for name in given.keys() - table.keys() if not _EXECUTOR_SETTING.fullmatch(name))
    if unknown:
        raise ValueError(f"unknown settings {', '.join(unknown)}; allowed are {', '.join(table)}")
    for name, value in given.items():
        if name in table and not table[name].fits(value):
            raise ValueError(f"{name} is {value!r}; allowed are {table[name].allowed}")
    settings = {name: setting.default for name, setting in table.items()} | given
    if settings["use.latest.version"] and settings.get("auto.register.schemas"):
        raise ValueError(
            "use.latest.version needs auto.register.schemas set to False: only one can say what is written"
        )
    return settings


def strategy_of(settings: Mapping[str, Any], client: RegistryClient) -> SubjectNameStrategy:
    """Return the subject name strategy: the given function or name, else the type, else the associated strategy.

    Raises:
        ValueError: If the name of the strategy or a setting in its conf is unknown.
    """
    given = settings["subject.name.strategy"] or settings["subject.name.strategy.type"] or "ASSOCIATED"
    return given if callable(given) else strategy_named(given, client, settings["subject.name.strategy.conf"])


def framing_of(settings: Mapping[str, Any]) -> Framing:
    """Return how a record carries its schema id or GUID."""
    given = settings["schema.id.serializer"]
    return given if callable(given) else FRAMINGS[given]
