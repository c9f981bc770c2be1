"""The registry of a program's own rule executors and actions, by confluent-kafka's names.

The engine runs CEL, CEL_FIELD, JSONATA, ENCRYPT, ENCRYPT_PAYLOAD and DLQ without a registration.

Rules of this file: it holds what was registered; `executors.py` runs it.
"""

from typing import ClassVar

from strata.serdes.confluent.executors import RuleAction, RuleExecutor

__all__ = ["RuleOverride", "RuleRegistry"]


class RuleOverride:
    """What replaces the settings of all rules of a type.

    Args:
        type: the type of the rules.
        on_success: the action after success; None leaves that of the rule.
        on_failure: the action after failure; None leaves that of the rule.
        disabled: whether the rules are skipped; None leaves that of the rule.
    """

    def __init__(
        self,
        type: str,  # noqa: A002 - confluent-kafka's parameter
        on_success: str | None,
        on_failure: str | None,
        disabled: bool | None,
    ) -> None:
        self.type = type
        self.on_success = on_success
        self.on_failure = on_failure
        self.disabled = disabled


class RuleRegistry:
    """Executors and actions by the type of the rules that they run."""

    _global: ClassVar["RuleRegistry | None"] = None

    def __init__(self) -> None:
        self._executors: dict[str, RuleExecutor] = {}
        self._actions: dict[str, RuleAction] = {}
        self._overrides: dict[str, RuleOverride] = {}

    def register_executor(self, rule_executor: RuleExecutor) -> None:
        """Add an executor, in the place of another one of its type."""
        self._executors[rule_executor.type()] = rule_executor

    def get_executor(self, name: str) -> RuleExecutor | None:
        """Return the executor of a type, if there is one."""
        return self._executors.get(name)

    def get_executors(self) -> list[RuleExecutor]:
        """Return all executors."""
        return list(self._executors.values())

    def register_action(self, rule_action: RuleAction) -> None:
        """Add an action, in the place of another one of its name."""
        self._actions[rule_action.type()] = rule_action

    def get_action(self, name: str) -> RuleAction | None:
        """Return the action of a name, if there is one."""
        return self._actions.get(name)

    def get_actions(self) -> list[RuleAction]:
        """Return all actions."""
        return list(self._actions.values())

    def register_override(self, rule_override: RuleOverride) -> None:
        """Add what replaces the settings of the rules of a type."""
        self._overrides[rule_override.type] = rule_override

    def get_override(self, name: str) -> RuleOverride | None:
        """Return what replaces the settings of the rules of a type, if anything does."""
        return self._overrides.get(name)

    def get_overrides(self) -> list[RuleOverride]:
        """Return all overrides."""
        return list(self._overrides.values())

    def clear(self) -> None:
        """Remove everything."""
        for table in (self._executors, self._actions, self._overrides):
            table.clear()

    @staticmethod
    def get_global_instance() -> "RuleRegistry":
        """Return the registry of all serializers and deserializers that are made without one."""
        if RuleRegistry._global is None:
            RuleRegistry._global = RuleRegistry()
        return RuleRegistry._global

    @staticmethod
    def register_rule_executor(rule_executor: RuleExecutor) -> None:
        """Add an executor to the global registry."""
        RuleRegistry.get_global_instance().register_executor(rule_executor)

    @staticmethod
    def register_rule_action(rule_action: RuleAction) -> None:
        """Add an action to the global registry."""
        RuleRegistry.get_global_instance().register_action(rule_action)

    @staticmethod
    def register_rule_override(rule_override: RuleOverride) -> None:
        """Add an override to the global registry."""
        RuleRegistry.get_global_instance().register_override(rule_override)
