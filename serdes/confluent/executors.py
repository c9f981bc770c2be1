"""The interface of a program's rule executors and actions, by confluent-kafka's names.

Rules of this file: names; `engine_rules.py` calls them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from typing import Any

from strata.serdes.confluent.error import RuleFailed
from strata.serdes.confluent.model import Rule, RuleMode, Schema
from strata.serdes.rules.fields import matches

__all__ = [
    "DLQ_HEADER_PREFIX",
    "DLQ_RULE_EXCEPTION_HEADER",
    "DLQ_RULE_MODE_HEADER",
    "DLQ_RULE_NAME_HEADER",
    "DLQ_RULE_SUBJECT_HEADER",
    "DLQ_RULE_TOPIC_HEADER",
    "BuiltIn",
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

_original_key: ContextVar[object] = ContextVar("original_key", default=None)


def set_original_key(key: object) -> None:
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
        containing_message: object,
        full_name: str,
        name: str,
        field_type: FieldType,
        tags: set[str],
        field_descriptor: object = None,
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
        ser_ctx: object,
        source: Schema | None,
        target: Schema | None,
        subject: str,
        rule_mode: RuleMode,
        rule: Rule,
        index: int,
        rules: list[Rule],
        inline_tags: dict[str, set[str]] | None,
        field_transformer: object,
        original_key: object = None,
        original_value: object = None,
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
        containing_message: object,
        full_name: str,
        name: str,
        field_type: FieldType,
        tags: set[str] | None,
        field_descriptor: object = None,
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
    def transform(self, ctx: RuleContext, message: object) -> Any:
        """Return the new value or, for a condition, whether it holds."""


class FieldRuleExecutor(RuleExecutor):
    """An executor for the fields that a rule selects by tags."""

    @abstractmethod
    def new_transform(self, ctx: RuleContext) -> FieldTransform:
        """Return the function to call with each field of one record."""

    def transform(self, ctx: RuleContext, message: object) -> Any:  # noqa: ARG002 - an interface
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
    def run(self, ctx: RuleContext, message: object, ex: Exception | None) -> None:
        """Act on a rule that succeeded, or failed with an error; it may raise."""


class ErrorAction(RuleAction):
    """Raise an error; the engine does so without a registration."""

    def type(self) -> str:
        """Return the name of the action."""
        return "ERROR"

    def run(self, ctx: RuleContext, message: object, ex: Exception | None) -> None:  # noqa: ARG002 - an interface
        """Raise the error of the rule."""
        raise RuleError(f"rule {ctx.rule.name} failed") from ex


class NoneAction(RuleAction):
    """Do nothing; the engine does so without a registration."""

    def type(self) -> str:
        """Return the name of the action."""
        return "NONE"

    def run(self, ctx: RuleContext, message: object, ex: Exception | None) -> None:
        """Do nothing."""


class BuiltIn:
    """Marks an executor or action that the engine has: a registration of it changes nothing."""
