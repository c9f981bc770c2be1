"""The checks of a new version that look at the settings in force: its history, and the names that it may not use.

With `validateFields`, a schema may not have a field at its top that its metadata reserves (`confluent:reserved`, a
list with commas), nor drop a reserved name that the version before it had, nor begin a field's name with `$$`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat.check import finding
from compat.fields import top_fields
from compat.levels import Level
from compat.result import Finding, Incompatibility
from registry import errors
from registry.decide.contracts import property_of
from registry.effective import config_in_force, flag_in_force, level_in_force, policy_in_force
from registry.schemas import Candidate, compare
from storage.records import Subject
from storage.state import SchemaVersion, State

__all__ = ["Verdict", "check_fields", "check_history"]

_RESERVED = "confluent:reserved"
_RESERVED_PREFIX = "$$"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands against a schema, as the server words it (nothing: it is compatible), and the reasons behind it."""

    messages: tuple[str, ...] = ()
    incompatibilities: tuple[Incompatibility, ...] = ()
    others: tuple[Finding, ...] = ()

    @property
    def findings(self) -> Iterator[Finding]:
        """The reasons, in the order of the messages, made as they are asked for."""
        yield from self.others
        yield from map(finding, self.incompatibilities)


def check_fields(state: State, subject: Subject, candidate: Candidate) -> None:
    """Refuse names that no schema may use.

    Raises:
        RegistryError: 42201.
    """
    for name in top_fields(candidate.parsed) if _validates_fields(state, subject) else ():
        if name.startswith(_RESERVED_PREFIX):
            raise errors.invalid_schema(f"Invalid schema, details: the name of the field {name!r} begins with $$")


def check_history(
    state: State, subject: Subject, candidate: Candidate, versions: Sequence[SchemaVersion], default: Level
) -> Verdict:
    """Check a schema against some versions of a subject, oldest first, as far as they are of its compatibility group.

    Raises:
        RegistryError: 42201 when a version cannot be parsed, 42203 when the policy in force is not supported.
    """
    level = level_in_force(state, subject, default)
    versions = _of_its_group(candidate, versions, config_in_force(state, subject, default).get("compatibilityGroup"))
    fields = _validates_fields(state, subject)
    reserved = list(_reserved_findings(candidate, versions[-1:])) if fields else []
    result = compare(state, candidate, versions, level, policy_in_force(state, subject))
    messages = [*(message for message, _ in reserved), *result.messages]
    if messages:
        messages.append(f"{{validateFields: '{str(fields).lower()}', compatibility: '{level.value}'}}")
    return Verdict(tuple(messages), result.incompatibilities, tuple(found for _, found in reserved))


def _validates_fields(state: State, subject: Subject) -> bool:
    return flag_in_force(state, subject, "validateFields", default=False)


def _of_its_group(candidate: Candidate, versions: Sequence[SchemaVersion], group: Any) -> Sequence[SchemaVersion]:
    """The versions whose metadata has the candidate's value of a property, or lacks it as the candidate does."""
    if not group:
        return versions
    ours = property_of(candidate.contract.metadata, group)
    return [entry for entry in versions if property_of(entry.schema.value.metadata, group) == ours]


def _reserved_findings(candidate: Candidate, latest: Sequence[SchemaVersion]) -> Iterator[tuple[str, Finding]]:
    """The message and the finding of each reserved name that was dropped or is used."""
    ours = _reserved(candidate.contract.metadata)
    used = top_fields(candidate.parsed)
    for entry in latest:
        before = _reserved(entry.schema.value.metadata)
        for name in before:
            if name not in ours:
                message = (
                    f"The new schema has reserved field {name} removed from its metadata "
                    "which is present in the old schema's metadata."
                )
                yield (
                    message,
                    Finding(
                        "RESERVED_FIELD_REMOVED",
                        f"The name {name!r} is reserved in version {entry.version} and not in the new schema. "
                        f"Keep it in the metadata's property {_RESERVED}.",
                        field=name,
                        version=entry.version,
                        previous=before,
                        new=ours,
                    ),
                )
    for name in ours:
        if name in used:
            yield (
                f"The new schema has field that conflicts with the reserved field {name}.",
                Finding(
                    "RESERVED_FIELD_CONFLICT",
                    f"The new schema has a field {name!r}, a name that its metadata reserves. Use another name.",
                    field=name,
                    new=name,
                ),
            )


def _reserved(metadata: Mapping[str, Any] | None) -> list[str]:
    names = (property_of(metadata, _RESERVED) or "").split(",")
    return [name.strip() for name in names if name.strip()]
