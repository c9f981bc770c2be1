"""The checks of a new version that depend on the settings: compatibility with its history, and reserved names.

With `validateFields`, a Protobuf file is rejected if protoc would refuse it, and any schema if a top-level field has a
name that its metadata reserves (`confluent:reserved`, separated by commas), if it drops a reserved name of the version
before, or if a top-level field's name begins with `$$`.

A change that alters values without an error is compatible, unless the metadata property `strata.silent` is `refuse`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strata.compat.check import finding
from strata.compat.fields import top_fields
from strata.compat.levels import Level
from strata.compat.logical.advice import table_findings
from strata.compat.logical.policy import TableCheck
from strata.compat.result import Finding, Incompatibility
from strata.registry.core import errors
from strata.registry.core.decide.contracts import property_of
from strata.registry.core.effective_settings import EffectiveConfig
from strata.registry.core.parsing import Candidate, compare, prove, refusals
from strata.storage.state import SchemaVersion, State

__all__ = ["Verdict", "check_fields", "check_history"]

_RESERVED = "confluent:reserved"
_RESERVED_PREFIX = "$$"
_SILENT, _REFUSE = "strata.silent", "refuse"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        messages: the reference's messages; empty if compatible.
        incompatibilities: what the format's rules refuse.
        others: what other rules refuse.
        tables: what the policy LOGICAL refuses.
        proven: `incompatibilities` as findings with their proofs, if the request asked for them.
        silent: changes of values that no rule of the format refuses, if the request or the metadata asked for them.
    """

    messages: tuple[str, ...] = ()
    incompatibilities: tuple[Incompatibility, ...] = ()
    others: tuple[Finding, ...] = ()
    tables: tuple[TableCheck, ...] = ()
    proven: tuple[Finding, ...] = ()
    silent: tuple[Finding, ...] = ()

    @property
    def findings(self) -> Iterator[Finding]:
        """The reasons in the order of the messages, made on demand."""
        yield from self.others
        yield from self.proven or map(finding, self.incompatibilities)
        for table in self.tables:
            yield from table_findings(table)
        yield from self.silent


def check_fields(candidate: Candidate, config: EffectiveConfig) -> None:
    """Reject what no schema may have in the eyes of its format's own tools, if the configuration asks for it.

    Raises:
        RegistryError: 42201 if protoc would refuse a Protobuf file, or the name of a top-level field begins with `$$`.
        TooExpensive: if this takes too long.
    """
    if not config.validate_fields:
        return
    for name in top_fields(candidate.parsed):
        if name.startswith(_RESERVED_PREFIX):
            raise errors.invalid_schema(f"Invalid schema, details: the name of the field {name!r} begins with $$")
    refused = refusals(candidate)
    if refused:
        raise errors.invalid_schema(f"Invalid schema, details: {'; '.join(map(str, refused))}")


def check_history(
    state: State,
    candidate: Candidate,
    versions: Sequence[SchemaVersion],
    config: EffectiveConfig,
    default: Level,
    *,
    witness: bool = False,
) -> Verdict:
    """Check a schema against versions of its subject, oldest first, that belong to its compatibility group.

    Args:
        state: the State that holds the references.
        candidate: the schema.
        versions: the versions to compare with, oldest first.
        config: the configuration in force.
        default: the level if the configuration has none.
        witness: whether to prove the findings, and to look for changes of values.

    Raises:
        RegistryError: 42201 if a version cannot be parsed.
        TooExpensive: if this takes too long.
    """
    level = config.level or default
    if config.group:
        ours = property_of(candidate.contract.metadata, config.group)
        versions = [entry for entry in versions if property_of(entry.schema.value.metadata, config.group) == ours]
    reserved = list(_reserved_findings(candidate, versions[-1:])) if config.validate_fields else []
    result = compare(state, candidate, versions, level, config.policy)
    messages = [*(message for message, _ in reserved), *result.messages]
    refuses_silent = property_of(candidate.contract.metadata, _SILENT) == _REFUSE
    proofs, silent = (
        prove(state, candidate, versions, level, result.incompatibilities) if witness or refuses_silent else ([], [])
    )
    if refuses_silent:
        messages += map(_refusal, silent)
    if messages:
        fields = str(config.validate_fields).lower()
        messages.append(f"{{validateFields: '{fields}', compatibility: '{level.value}'}}")
    others = tuple(found for _, found in reserved)
    return Verdict(tuple(messages), result.incompatibilities, others, result.tables, tuple(proofs), tuple(silent))


def _refusal(silent: Finding) -> str:
    """Return the message about a change that only the metadata refuses, in the form of the reference's messages."""
    return (
        f"{{errorType:'{silent.rule}', description:'{silent.advice} This is refused because the metadata property "
        f"{_SILENT} is {_REFUSE}', additionalInfo:'{silent.field}'}}"
    )


def _reserved_findings(candidate: Candidate, latest: Sequence[SchemaVersion]) -> Iterator[tuple[str, Finding]]:
    """Yield message and finding for each reserved name that is dropped or used."""
    ours = _reserved(candidate.contract.metadata)
    for entry in latest:
        before = _reserved(entry.schema.value.metadata)
        for name in (name for name in before if name not in ours):
            message = (
                f"The new schema has reserved field {name} removed from its metadata "
                "which is present in the old schema's metadata."
            )
            advice = (
                f"The name {name!r} is reserved in version {entry.version} and not in the new schema. "
                f"Keep it in the metadata's property {_RESERVED}."
            )
            rule, version = "RESERVED_FIELD_REMOVED", entry.version
            yield message, Finding(rule, advice, field=name, version=version, previous=before, new=ours)
    used = top_fields(candidate.parsed)
    for name in (name for name in ours if name in used):
        message = f"The new schema has field that conflicts with the reserved field {name}."
        advice = f"The new schema has a field {name!r}, a name that its metadata reserves. Use another name."
        yield message, Finding("RESERVED_FIELD_CONFLICT", advice, field=name, new=name)


def _reserved(metadata: Mapping[str, Any] | None) -> list[str]:
    names = (property_of(metadata, _RESERVED) or "").split(",")
    return [name.strip() for name in names if name.strip()]
