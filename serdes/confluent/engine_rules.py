"""How the engine calls the rule executors and actions of a program.

Rules of this file: conversions; what runs when is the engine's, `strata.serdes.rules`.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any

from strata.serdes.confluent.executors import (
    BuiltIn,
    FieldContext,
    FieldRuleExecutor,
    FieldType,
    RuleAction,
    RuleContext,
    RuleExecutor,
    get_original_key,
)
from strata.serdes.confluent.model import Rule, RuleMode, Schema
from strata.serdes.confluent.rule_registry import RuleRegistry
from strata.serdes.confluent.serialization import SerializationContext
from strata.serdes.rules import executors as engine

__all__ = ["DlqProducer", "engine_rules"]


def _context(known: engine.RuleContext) -> RuleContext:
    rule = Rule.from_dict(known.rule.to_request())
    topic: Any = known.topic
    field: Any = "key" if known.is_key else "value"
    record = SerializationContext(topic, field, known.headers)
    source = None if known.source is None else Schema.from_dict(known.source.to_request())
    target = Schema.from_dict(known.target.to_request())
    mode = RuleMode(known.mode)
    key = known.original_key if known.original_key is not None else get_original_key()
    return RuleContext(
        None, record, source, target, known.subject, mode, rule, 0, [rule], None, None, key, known.original_value
    )


class _Whole:
    """An executor of a program as the engine calls it."""

    def __init__(self, executor: RuleExecutor) -> None:
        self._given = executor

    def transform(self, context: engine.RuleContext, message: object) -> object:
        return self._given.transform(_context(context), message)


class _Fields:
    """A field executor of a program as the engine calls it."""

    def __init__(self, executor: FieldRuleExecutor) -> None:
        self._given = executor

    def field_transform(self, context: engine.RuleContext) -> engine.FieldTransform:
        own = _context(context)
        transform: Any = self._given.new_transform(own)
        call = transform.transform if hasattr(transform, "transform") else transform

        def transformed(field: engine.FieldContext, value: object) -> object:
            field_type = FieldType(field.type_name)
            return call(
                own, FieldContext(field.message, field.full_name, field.name, field_type, set(field.tags)), value
            )

        return transformed


def _action(action: RuleAction) -> engine.Action:
    return lambda context, value, error: action.run(_context(context), value, error)


_DLQ = {"dlq.topic": "dlq.topic", "dlq.auto.flush": "dlq.auto.flush", "dlq.redact.rule.types": "dlq.redact.rule.types"}
_DLQ["producer"] = "dlq.producer"
_OVERRIDES = {"on_success": "onSuccess", "on_failure": "onFailure", "disabled": "disabled"}


def engine_rules(
    registry: RuleRegistry, client_conf: Mapping[str, object], rule_conf: Mapping[str, object] | None
) -> dict[str, object]:
    """Return the engine's settings for rules, and configure what a program registered.

    Args:
        registry: the executors, actions and overrides.
        client_conf: the settings of the registry client.
        rule_conf: the settings of executors and actions, such as the secret of a KMS.
    """
    parameters = dict(rule_conf or {})
    for known in registry.get_actions():
        if isinstance(known, BuiltIn):
            parameters = _dead_letters(getattr(known, "conf", {})) | parameters
    conf: dict[str, object] = {_DLQ[name]: parameters[name] for name in _DLQ if parameters.get(name) is not None}
    conf |= {f"rule.executors._default_.param.{name}": value for name, value in parameters.items() if name not in _DLQ}
    executors = [executor for executor in registry.get_executors() if not isinstance(executor, BuiltIn)]
    actions = [action for action in registry.get_actions() if not isinstance(action, BuiltIn)]
    for member in (*executors, *actions):
        member.configure(dict(client_conf), parameters)
    if executors:
        conf["rule.executors"] = {executor.type().upper(): _factory(executor) for executor in executors}
    if actions:
        conf["rule.actions"] = {action.type(): _action(action) for action in actions}
    for override in registry.get_overrides():
        for name, setting in _OVERRIDES.items():
            if getattr(override, name) is not None:
                conf[f"rule.executors._{override.type.upper()}_.{setting}"] = getattr(override, name)
    return conf


def _dead_letters(conf: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of dead letters, with a producer that its other settings describe."""
    settings = {name: conf[name] for name in _DLQ if name in conf}
    others = {name: value for name, value in conf.items() if name not in _DLQ}
    if others and "producer" not in settings:
        settings["producer"] = DlqProducer(others)
    return settings


def _factory(executor: RuleExecutor) -> engine.ExecutorFactory:
    made: engine.Executor = _Fields(executor) if isinstance(executor, FieldRuleExecutor) else _Whole(executor)
    return lambda *_: made


class DlqProducer:
    """A producer of dead letters that is made when the first one is sent.

    Args:
        conf: settings of confluent-kafka's producer.
    """

    def __init__(self, conf: Mapping[str, object]) -> None:
        self._conf = dict(conf)
        self._lock = Lock()
        self._producer: object = None

    def _made(self) -> Any:
        from confluent_kafka import Producer

        with self._lock:
            if self._producer is None:
                self._producer = Producer(self._conf)
        return self._producer

    def produce(self, topic: str, **record: object) -> None:
        """Send a record."""
        self._made().produce(topic, **record)

    def poll(self, timeout: float) -> object:
        """Serve delivery reports."""
        return self._made().poll(timeout)

    def flush(self, *timeout: float) -> object:
        """Wait until all records are sent."""
        return self._made().flush(*timeout)
