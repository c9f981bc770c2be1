"""The executors, actions and KMS drivers that the engine has, for programs that register them.

    FieldEncryptionExecutor.register()
    LocalKmsDriver.register()

Rules of this file: registering marks a name as known; the engine does the work, `strata.serdes.rules` and
`strata.serdes.encryption`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from strata.serdes.confluent.executors import (
    BuiltIn,
    FieldRuleExecutor,
    FieldTransform,
    RuleAction,
    RuleContext,
    RuleError,
    RuleExecutor,
)
from strata.serdes.confluent.rule_registry import RuleRegistry

__all__ = ["KnownAction", "KnownDriver", "KnownExecutor", "KnownFieldExecutor"]


class KnownExecutor(BuiltIn, RuleExecutor):
    """An executor of the engine."""

    TYPE: ClassVar[str]

    def type(self) -> str:
        """Return the type of the rules."""
        return self.TYPE

    def transform(self, ctx: RuleContext, message: object) -> Any:  # noqa: ARG002 - an interface
        """Refuse a call: serializers and deserializers run the rules of their schemas."""
        raise RuleError(f"rules of type {self.TYPE} run in serializers and deserializers")

    @classmethod
    def register(cls) -> Self:
        """Add it to the global registry, which changes nothing."""
        executor = cls()
        RuleRegistry.register_rule_executor(executor)
        return executor


class KnownFieldExecutor(BuiltIn, FieldRuleExecutor):
    """A field executor of the engine."""

    TYPE: ClassVar[str]

    def type(self) -> str:
        """Return the type of the rules."""
        return self.TYPE

    def new_transform(self, ctx: RuleContext) -> FieldTransform:  # noqa: ARG002 - an interface
        """Refuse a call: serializers and deserializers run the rules of their schemas."""
        raise RuleError(f"rules of type {self.TYPE} run in serializers and deserializers")

    @classmethod
    def register(cls) -> Self:
        """Add it to the global registry, which changes nothing."""
        executor = cls()
        RuleRegistry.register_rule_executor(executor)
        return executor


class KnownAction(BuiltIn, RuleAction):
    """An action of the engine.

    Args:
        conf: its settings.
    """

    TYPE: ClassVar[str]

    def __init__(self, conf: Mapping[str, object] | None = None) -> None:
        self.conf = dict(conf or {})

    def type(self) -> str:
        """Return the name of the action."""
        return self.TYPE

    def run(self, ctx: RuleContext, message: object, ex: Exception | None) -> None:  # noqa: ARG002 - an interface
        """Refuse a call: serializers and deserializers run the rules of their schemas."""
        raise RuleError(f"the action {self.TYPE} runs in serializers and deserializers")

    @classmethod
    def register(cls, conf: Mapping[str, object] | None = None) -> Self:
        """Add it to the global registry."""
        action = cls(conf)
        RuleRegistry.register_rule_action(action)
        return action


class KnownDriver:
    """A driver of a KMS; the engine finds its drivers by the type of the key."""

    PREFIX: ClassVar[str]

    def get_key_url_prefix(self) -> str:
        """Return the beginning of the URLs of its keys."""
        return self.PREFIX

    @classmethod
    def register(cls) -> None:
        """Do nothing: the engine knows the driver."""
