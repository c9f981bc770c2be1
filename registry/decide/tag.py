"""Decide a change of tags: a new version that differs from another one in its tags, metadata or rules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compat.limits import Limits
from compat.tags import Tags
from registry.decide.contracts import merged_rules, with_version
from registry.decide.register import Registered, Rules, register
from registry.lookup import version_of
from registry.rule_sets import PHASES
from registry.schemas import Contract, SchemaRequest, with_tags
from registry.writer import Decision
from storage.records import Subject
from storage.state import State

__all__ = ["TagRequest", "change_tags"]

_Object = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class TagRequest:
    """What is to change; `version` 0 is the next one, and what is None stays as it is."""

    version: int
    add: Tags
    remove: Tags
    limits: Limits
    metadata: _Object = None
    rule_set: _Object = None
    rules_to_merge: _Object = None
    rules_to_remove: frozenset[str] | None = None

    def under(self, limits: Limits) -> "TagRequest":
        """Return the change under other limits."""
        return replace(self, limits=limits)


def change_tags(state: State, subject: Subject, version: int, change: TagRequest, rules: Rules) -> Decision[Registered]:
    """Return the place of the new version, and the records that put it there.

    Raises:
        RegistryError: 40401, 40402, and what a registration raises.
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


def _rules(state: State, subject: Subject, change: TagRequest) -> _Object:
    """The rules of the new version; None leaves them to the registration, which keeps those of the latest."""
    if change.rules_to_merge is None and change.rules_to_remove is None:
        return change.rule_set
    latest = state.latest(subject)
    merged = merged_rules(latest.schema.value.rule_set if latest else None, change.rules_to_merge) or {}
    gone = change.rules_to_remove or frozenset()
    left = {phase: [rule for rule in merged.get(phase, ()) if rule.get("name") not in gone] for phase in PHASES} | {
        "enableAt": merged.get("enableAt")
    }
    return {name: kept for name, kept in left.items() if kept}
