"""Rule executors and actions of a program, by confluent-kafka's interface, and how the engine calls them.

Rules of this file: names and calls; what runs when is the engine's, `strata.serdes.rules`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any

from strata.serdes.confluent.error import RuleFailed
from strata.serdes.confluent.model import Rule, RuleMode, Schema
from strata.serdes.confluent.serialization import SerializationContext
from strata.serdes.rules import executors as engine
from strata.serdes.rules.fields import matches

if TYPE_CHECKING:
    from strata.serdes.confluent.rule_registry import RuleRegistry

__all__ = [
    "DLQ_HEADER_PREFIX",
    "DLQ_RULE_EXCEPTION_HEADER",
    "DLQ_RULE_MODE_HEADER",
    "DLQ_RULE_NAME_HEADER",
    "DLQ_RULE_SUBJECT_HEADER",
    "DLQ_RULE_TOPIC_HEADER",
    "ErrorAction",
    "FieldContext",
    "FieldRuleExecutor",
    "FieldTransform",
    "FieldType",
    "NoneAction",
    "RuleAction",
    "RuleBase",
    "RuleConditionError",
    "RuleContext",
    "RuleError",
    "RuleExecutor",
    "clear_original_key",
    "engine_rules",
    "get_original_key",
    "set_original_key",
]

DLQ_HEADER_PREFIX = "__rule."
DLQ_RULE_NAME_HEADER = DLQ_HEADER_PREFIX + "name"
DLQ_RULE_MODE_HEADER = DLQ_HEADER_PREFIX + "mode"
DLQ_RULE_SUBJECT_HEADER = DLQ_HEADER_PREFIX + "subject"
DLQ_RULE_TOPIC_HEADER = DLQ_HEADER_PREFIX + "topic"
DLQ_RULE_EXCEPTION_HEADER = DLQ_HEADER_PREFIX + "exception"

RuleError = RuleFailed
"""The error of a rule."""

_original_key: ContextVar[Any] = ContextVar("original_key", default=None)


def set_original_key(key: Any) -> None:
    """Set the key of the record whose value is serialized next, for dead letters."""
    _original_key.set(key)


def get_original_key() -> Any:
    """Return the key from `set_original_key`."""
    return _original_key.get()


def clear_original_key() -> None:
    """Forget the key from `set_original_key`."""
    _original_key.set(None)


class RuleConditionError(RuleFailed):
    """The condition of a rule does not hold.

    Args:
        rule: the rule.
    """

    def __init__(self, rule: Rule) -> None:
        super().__init__(self.error_message(rule))

    @staticmethod
    def error_message(rule: Rule) -> str:
        """Return the documentation of a rule, or its expression, as an error."""
        said = rule.doc or rule.expr
        return f"the condition does not hold: {said}" if said else f"the condition of rule {rule.name} does not hold"


class FieldType(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
    """The types of fields."""

    RECORD = "RECORD"
    ENUM = "ENUM"
    ARRAY = "ARRAY"
    MAP = "MAP"
    COMBINED = "COMBINED"
    FIXED = "FIXED"
    STRING = "STRING"
    BYTES = "BYTES"
    INT = "INT"
    LONG = "LONG"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    NULL = "NULL"


_PRIMITIVES = frozenset({"STRING", "BYTES", "INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "NULL"})


class FieldContext:
    """The field that a rule runs over."""

    def __init__(
        self,
        containing_message: Any,
        full_name: str,
        name: str,
        field_type: FieldType,
        tags: set[str],
        field_descriptor: Any = None,
    ) -> None:
        self.containing_message = containing_message
        self.full_name = full_name
        self.name = name
        self.field_type = field_type
        self.tags = tags
        self.field_descriptor = field_descriptor

    def is_primitive(self) -> bool:
        """Return whether the field has no fields or items of its own."""
        return self.field_type.value in _PRIMITIVES

    def type_name(self) -> str:
        """Return the name of the field's type."""
        return self.field_type.value


FieldTransform = Callable[["RuleContext", FieldContext, Any], Any]


class RuleContext:
    """A rule and the record that it runs over."""

    def __init__(
        self,
        enabled_env: str | None,
        ser_ctx: Any,
        source: Schema | None,
        target: Schema | None,
        subject: str,
        rule_mode: RuleMode,
        rule: Rule,
        index: int,
        rules: list[Rule],
        inline_tags: dict[str, set[str]] | None,
        field_transformer: Any,
        original_key: Any = None,
        original_value: Any = None,
    ) -> None:
        self.enabled_env = enabled_env
        self.ser_ctx = ser_ctx
        self.source = source
        self.target = target
        self.subject = subject
        self.rule_mode = rule_mode
        self.rule = rule
        self.index = index
        self.rules = rules
        self.inline_tags = inline_tags
        self.field_transformer = field_transformer
        self.original_key = original_key
        self.original_value = original_value
        self._fields: list[FieldContext] = []

    def get_parameter(self, name: str) -> str | None:
        """Return a parameter of the rule, else the property of that name in the target's metadata, else None."""
        params = {} if self.rule.params is None else self.rule.params.params
        metadata = None if self.target is None else self.target.metadata
        properties = {} if metadata is None or metadata.properties is None else metadata.properties.properties
        return params.get(name, properties.get(name))

    def get_tags(self, full_name: str) -> set[str]:
        """Return the tags of a field, in the schema and in the metadata of the target."""
        tags = set((self.inline_tags or {}).get(full_name, ()))
        metadata = None if self.target is None else self.target.metadata
        if metadata is not None and metadata.tags is not None:
            for pattern, more in metadata.tags.tags.items():
                if matches(pattern, full_name):
                    tags.update(more)
        return tags

    def current_field(self) -> FieldContext | None:
        """Return the innermost field that was entered."""
        return self._fields[-1] if self._fields else None

    def enter_field(
        self,
        containing_message: Any,
        full_name: str,
        name: str,
        field_type: FieldType,
        tags: set[str] | None,
        field_descriptor: Any = None,
    ) -> FieldContext:
        """Enter a field and return its context."""
        known = (tags or set()) | self.get_tags(full_name)
        self._fields.append(FieldContext(containing_message, full_name, name, field_type, known, field_descriptor))
        return self._fields[-1]

    def exit_field(self) -> None:
        """Leave the innermost field."""
        if self._fields:
            self._fields.pop()


class RuleBase(ABC):
    """The base class of executors and actions."""

    def configure(self, client_conf: dict[str, Any], rule_conf: dict[str, Any]) -> None:  # noqa: B027 - optional
        """Take the settings of the client and those of rules; called before the first record."""

    @abstractmethod
    def type(self) -> str:
        """Return the type of the rules, or the name of the action."""

    def close(self) -> None:  # noqa: B027 - optional
        """Release what the object holds."""


class RuleExecutor(RuleBase):
    """An executor for whole values."""

    @abstractmethod
    def transform(self, ctx: RuleContext, message: Any) -> Any:
        """Return the new value or, for a condition, whether it holds."""


class FieldRuleExecutor(RuleExecutor):
    """An executor for the fields that a rule selects by tags."""

    @abstractmethod
    def new_transform(self, ctx: RuleContext) -> FieldTransform:
        """Return the function to call with each field of one record."""

    def transform(self, ctx: RuleContext, message: Any) -> Any:  # noqa: ARG002 - an interface
        """Refuse whole values: the engine calls `new_transform`."""
        raise RuleError(f"a rule of type {self.type()} runs over fields")

    @staticmethod
    def are_transforms_with_same_tag(rule1: Rule, rule2: Rule) -> bool:
        """Return whether two rules transform the fields of the same tags, so that one of them is a repetition."""
        return (
            bool(rule1.tags)
            and rule1.kind == rule2.kind
            and rule1.kind is not None
            and rule1.kind.value == "TRANSFORM"
            and (rule1.mode, rule1.type, rule1.tags) == (rule2.mode, rule2.type, rule2.tags)
        )


class RuleAction(RuleBase):
    """An action after a rule."""

    @abstractmethod
    def run(self, ctx: RuleContext, message: Any, ex: Exception | None) -> None:
        """Act on a rule that succeeded, or failed with an error; it may raise."""


class ErrorAction(RuleAction):
    """Raise an error; the engine does so without a registration."""

    def type(self) -> str:
        """Return the name of the action."""
        return "ERROR"

    def run(self, ctx: RuleContext, message: Any, ex: Exception | None) -> None:  # noqa: ARG002 - an interface
        """Raise the error of the rule."""
        raise RuleError(f"rule {ctx.rule.name} failed") from ex


class NoneAction(RuleAction):
    """Do nothing; the engine does so without a registration."""

    def type(self) -> str:
        """Return the name of the action."""
        return "NONE"

    def run(self, ctx: RuleContext, message: Any, ex: Exception | None) -> None:
        """Do nothing."""


class BuiltIn:
    """Marks an executor or action that the engine has: a registration of it changes nothing."""


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

    def __init__(self, given: RuleExecutor) -> None:
        self._given = given

    def transform(self, context: engine.RuleContext, message: Any) -> Any:
        return self._given.transform(_context(context), message)


class _Fields:
    """A field executor of a program as the engine calls it."""

    def __init__(self, given: FieldRuleExecutor) -> None:
        self._given = given

    def field_transform(self, context: engine.RuleContext) -> engine.FieldTransform:
        own = _context(context)
        transform: Any = self._given.new_transform(own)
        call = transform.transform if hasattr(transform, "transform") else transform

        def one(field: engine.FieldContext, value: Any) -> Any:
            kind = FieldType(field.type_name)
            return call(own, FieldContext(field.message, field.full_name, field.name, kind, set(field.tags)), value)

        return one


def _action(given: RuleAction) -> engine.Action:
    return lambda context, value, error: given.run(_context(context), value, error)


_DLQ = {"dlq.topic": "dlq.topic", "dlq.auto.flush": "dlq.auto.flush", "dlq.redact.rule.types": "dlq.redact.rule.types"}
_DLQ["producer"] = "dlq.producer"
_OVERRIDES = {"on_success": "onSuccess", "on_failure": "onFailure", "disabled": "disabled"}


def engine_rules(
    registry: "RuleRegistry", client_conf: Mapping[str, Any], rule_conf: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the engine's settings for rules, and configure what a program registered.

    Args:
        registry: the executors, actions and overrides.
        client_conf: the settings of the registry client.
        rule_conf: the settings of executors and actions, such as the secret of a KMS.
    """
    given = dict(rule_conf or {})
    for known in registry.get_actions():
        if isinstance(known, BuiltIn):
            given = _dead_letters(getattr(known, "conf", {})) | given
    conf: dict[str, Any] = {_DLQ[name]: given[name] for name in _DLQ if given.get(name) is not None}
    conf |= {f"rule.executors._default_.param.{name}": value for name, value in given.items() if name not in _DLQ}
    executors = [one for one in registry.get_executors() if not isinstance(one, BuiltIn)]
    actions = [one for one in registry.get_actions() if not isinstance(one, BuiltIn)]
    for member in (*executors, *actions):
        member.configure(dict(client_conf), given)
    if executors:
        conf["rule.executors"] = {one.type().upper(): _factory(one) for one in executors}
    if actions:
        conf["rule.actions"] = {one.type(): _action(one) for one in actions}
    for one in registry.get_overrides():
        for name, setting in _OVERRIDES.items():
            if getattr(one, name) is not None:
                conf[f"rule.executors._{one.type.upper()}_.{setting}"] = getattr(one, name)
    return conf


def _dead_letters(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of dead letters, with a producer that its other settings describe."""
    settings = {name: conf[name] for name in _DLQ if name in conf}
    others = {name: value for name, value in conf.items() if name not in _DLQ}
    if others and "producer" not in settings:
        from strata.serdes.confluent.rules.built_in import DlqProducer

        settings["producer"] = DlqProducer(others)
    return settings


def _factory(given: RuleExecutor) -> engine.ExecutorFactory:
    made: engine.Executor = _Fields(given) if isinstance(given, FieldRuleExecutor) else _Whole(given)
    return lambda *_: made
