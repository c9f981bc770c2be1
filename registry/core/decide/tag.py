"""Decide a change of tags: a new version that differs from another one in tags, metadata or rules."""

from dataclasses import dataclass, replace

from strata.compat.entities import Tags
from strata.compat.limits import Limits
from strata.registry.core.decide.content import merged_rules, rule_set_of, with_version
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.register import Registered, Rules, register
from strata.registry.core.lookup import version_of
from strata.registry.core.parsing import with_tags
from strata.registry.core.rule_sets import PHASES
from strata.registry.core.schema_request import Contract, SchemaRequest
from strata.storage.records import Metadata, RuleSet, Subject
from strata.storage.state import State

__all__ = ["TagRequest", "change_tags"]


@dataclass(frozen=True, slots=True)
class TagRequest:
    """A change of tags, metadata or rules; `version` 0 means the next version, and None leaves a property unchanged."""

    version: int
    add: Tags
    remove: Tags
    limits: Limits
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: frozenset[str] | None = None

    def under(self, limits: Limits) -> "TagRequest":
        """Return the change with other limits."""
        return replace(self, limits=limits)


def change_tags(state: State, subject: Subject, version: int, change: TagRequest, rules: Rules) -> Decision[Registered]:
    """Return the place of the new version, and the records that put it there.

    Args:
        state: the State to decide on.
        subject: the subject.
        version: the version to start from.
        change: the change.
        rules: the service's settings for registrations.

    Raises:
        RegistryError: 40401 if the subject does not exist; 40402 if the version does not exist; or any error of
            `register`.
    """
    entry = version_of(state, subject, version, include_deleted=False)
    value = entry.schema.value
    new = change.version or state.next_version(subject)
    metadata = value.metadata if change.metadata is None else change.metadata
    request = SchemaRequest(
        value.text,
        value.schema_type,
        value.references,
        version=new,
        metadata=with_version(Contract(metadata), new).metadata,
        rule_set=_rules(state, subject, change),
        limits=change.limits,
    ).started()
    tagged = with_tags(state, subject, request, change.add, change.remove, must_exist=True)
    return register(state, subject, tagged, rules)


def _rules(state: State, subject: Subject, change: TagRequest) -> RuleSet | None:
    """Return the rules of the new version; None makes the registration keep those of the latest version."""
    if change.rules_to_merge is None and change.rules_to_remove is None:
        return change.rule_set
    latest = state.latest(subject)
    merged = merged_rules(latest.schema.value.rule_set if latest else None, change.rules_to_merge) or {}
    gone = change.rules_to_remove or frozenset()
    left = {phase: [rule for rule in merged.get(phase) or () if rule.get("name") not in gone] for phase in PHASES}
    return rule_set_of(left, merged.get("enableAt"))
