"""The JSON of configurations and modes."""

from pydantic import Field

from strata.registry.api.bodies.contracts import Answer, Body, Metadata, RuleSet, Text
from strata.registry.http.bodies import Truth, Word

__all__ = ["ConfigAnswer", "ConfigChange", "ModeAnswer", "ModeChange", "ScopeAnswer"]


class ConfigFields(Body):
    """The properties that a change and an answer share."""

    alias: Text | None = Field(None, description="the subject for which this one is an alias")
    alias_for_deks: Text | None = None
    normalize: Truth | None = None
    validate_fields: Truth | None = Field(None, description="reject reserved names and what protoc refuses")
    validate_new_schemas: Truth | None = None
    validate_rules: Truth | None = Field(None, description="true when absent")
    compatibility_policy: Word | None = Field(None, description="STRICT or LENIENT")
    compatibility_group: Text | None = Field(
        None, description="the property that must be equal for versions to be compared"
    )
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


class ConfigChange(ConfigFields):
    """A change of a configuration: an absent property keeps its value, null removes it. It is also the answer."""

    compatibility: Word | None = None

    def change(self) -> dict[str, object]:
        """Return the properties that the body holds by their JSON names, null ones included."""
        held = ((type(self).model_fields[name].alias or name, getattr(self, name)) for name in self.model_fields_set)
        return {name: value.value() if isinstance(value, Metadata | RuleSet) else value for name, value in held}


class ConfigAnswer(ConfigFields):
    """A configuration as read."""

    compatibility_level: str


class ModeChange(Body):
    """The mode to set; null removes the mode of the scope itself."""

    mode: Word | None = None


class ModeAnswer(Answer):
    """A mode."""

    mode: str | None = None


class OwnConfig(ConfigFields):
    """The configuration of a name itself, without what it inherits."""

    compatibility_level: str | None = None


class ScopeAnswer(Answer):
    """A subject or context (`:.name:`) with the settings of its own."""

    name: str
    config: OwnConfig | None = None
    mode: str | None = None
