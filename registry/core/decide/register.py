"""Decide a registration: the id and version that a schema gets, or why it is rejected.

The order of checks is the reference's (docs/compatibility.md): look-up under the request's own contract, mode, strict
validation, look-up under the contract merged with the settings, compatibility, explicit version, id.

Two checks depend on the settings: compatibility with the subject's history, and reserved names. With `validateFields`,
a Protobuf file is rejected if protoc would refuse it, and any schema if a top-level field has a name that its metadata
reserves (`confluent:reserved`, separated by commas), if it drops a reserved name of the version before, or if a
top-level field's name begins with `$$`. A change that alters values without an error is compatible, unless the metadata
property `strata.silent` is `refuse`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from strata.compat.levels import Level
from strata.compat.result import Finding, Incompatibility
from strata.imports import deferred
from strata.registry.core import errors
from strata.registry.core.decide.content import (
    Found,
    equal_version,
    find,
    merged_contract,
    names_version,
    property_of,
    with_version,
    without_version,
)
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.highest_id import mark_highest
from strata.registry.core.effective_settings import EffectiveConfig, Mode, config_in_force, mode_in_force
from strata.registry.core.findings import findings_json
from strata.registry.core.parsing import (
    Candidate,
    compare,
    inline_tags,
    keep_as_stored,
    parse_request,
    prove,
    refusals,
    with_tags,
)
from strata.registry.core.references import check_not_owned
from strata.registry.core.rule_sets import check_rule_set, with_key_names
from strata.registry.core.schema_request import Contract, SchemaRequest
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import (
    DEFAULT_CONTEXT,
    MAX_VERSION,
    ContextKey,
    Metadata,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Version,
    context_of,
)
from strata.storage.state import SchemaVersion, State, StoredSchema

if TYPE_CHECKING:
    from strata.compat import check
    from strata.compat import fields as compat_fields
    from strata.compat.logical import advice as table_advice
    from strata.compat.logical.policy import TableCheck
else:
    check, compat_fields = deferred("strata.compat.check"), deferred("strata.compat.fields")
    table_advice = deferred("strata.compat.logical.advice")

__all__ = ["Registered", "Rules", "Verdict", "check_fields", "check_history", "register"]


_RESERVED = "confluent:reserved"
_RESERVED_PREFIX = "$$"
_SILENT, _REFUSE = "strata.silent", "refuse"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the request's flags and the service's settings demand of a registration.

    Attributes:
        default_level: the compatibility level of subjects that have none.
        normalize: whether to normalize the schema.
        force: whether to skip the compatibility check.
        check_id: raises an error if the request may not choose an id for a schema of a subject; None: it may.
    """

    default_level: Level
    normalize: bool = False
    force: bool = False
    check_id: Callable[[State, Subject, SchemaId], None] | None = None


@dataclass(frozen=True, slots=True)
class Registered:
    """The outcome of a registration.

    Attributes:
        entry: the version that holds the schema; a new one has no timestamp yet.
        is_new: whether the registration creates it.
        as_stored: whether the answer shows the version as stored instead of the request.
    """

    entry: SchemaVersion
    is_new: bool = True
    as_stored: bool = False


def register(state: State, subject: Subject, request: SchemaRequest, rules: Rules) -> Decision[Registered]:
    """Return the place of a schema under a subject, and the records that put it there (none if it is registered).

    Args:
        state: the State to decide on.
        subject: the subject.
        request: the schema.
        rules: the request's flags and the service's settings.

    Raises:
        RegistryError: 40901 if the schema is incompatible; 42201 if it is invalid, out of version order or has too high
            an id; 42205 if the mode, another schema's id or a STRONG
            association forbids it; 42210 if the rule set is invalid.
        TooExpensive: if this takes too long.
    """
    request = request.started()
    config, mode = config_in_force(state, subject), mode_in_force(state, subject)
    normalize = rules.normalize or config.normalize
    if request.rule_set and config.validate_rules:
        check_rule_set(request.rule_set)
    candidate = None
    if request.text.strip() and not _changes_tags(request) and not config.adds_to_contracts:
        existing, candidate = _find_existing(state, subject, request, config, normalize)
        if existing and request.schema_id in (None, existing.entry.schema.schema_id):
            return _existing(existing)
    _check_mode(mode, subject, imports=request.schema_id is not None)
    completed = _completed(state, subject, request, mode)
    if mode.is_import:
        # Take another registry's schema as it is: do not normalize it or apply the rules for new schemas.
        as_given = parse_request(state, subject, completed, strict=False, normalize=False, new=False)
        check_not_owned(state, subject, as_given.references)
        existing = _under_id(state, subject, request.schema_id, as_given) if completed.version == 0 else None
        return _existing(existing) if existing else _import(state, subject, as_given, completed, rules)
    searched = candidate.contract if candidate and completed is request else None
    if candidate is None or completed is not request:
        candidate = _parse_new(state, subject, completed, config, normalize)
    return _register_new(state, subject, completed, candidate, rules, config, searched)


def _register_new(
    state: State,
    subject: Subject,
    request: SchemaRequest,
    candidate: Candidate,
    rules: Rules,
    config: EffectiveConfig,
    searched: Contract | None,
) -> Decision[Registered]:
    """Decide a registration in a writable scope, under the contract merged with the settings.

    `searched` is the contract under which a look-up of the candidate has already found nothing.
    """
    if candidate.references:
        check_not_owned(state, subject, candidate.references)
    version, latest = state.next_version(subject), state.latest(subject)
    contract = merged_contract(request, latest, config)
    if request.version == -1 and latest and _changes_tags(request):
        unversioned = candidate.under(without_version(contract))
        if equal_version(state, unversioned, [latest]):
            return _existing(Found(latest, identical=False))
    if request.version or names_version(contract):
        contract = with_version(contract, version)
    candidate = candidate.under(contract)
    if request.version == 0 and contract != searched:
        existing = find(state, subject, candidate, include_deleted=False)
        if existing:
            return _existing(existing)
    _check(state, subject, candidate, rules, config)
    if request.version not in (0, -1, version):
        raise errors.invalid_version_order()
    return _append_version(state, subject, version, candidate)


def _parse_new(
    state: State, subject: Subject, request: SchemaRequest, config: EffectiveConfig, normalize: bool
) -> Candidate:
    """Parse a schema under the rules for new ones.

    Raises:
        RegistryError: 42201 if it is invalid.
    """
    return parse_request(state, subject, request, strict=config.validate_new_schemas, normalize=normalize)


def _find_existing(
    state: State, subject: Subject, request: SchemaRequest, config: EffectiveConfig, normalize: bool
) -> tuple[Found | None, Candidate | None]:
    """Return the live version that answers the request without a write, whatever the subject's mode.

    This also finds a version stored under less strict validation whose text would be rejected as new. A request for
    version -1 is compared with the latest version only; a request for another explicit version is never answered this
    way.

    Returns:
        The version, if any; and the schema parsed under the rules for new ones, if it obeys them.

    Raises:
        RegistryError: 42201 if the text could never have been stored.
    """
    new: Candidate | None = None
    try:
        candidate = new = _parse_new(state, subject, request, config, normalize)
    except errors.TooExpensive:
        raise
    except errors.RegistryError:
        candidate = parse_request(state, subject, request, strict=False, normalize=normalize, new=False)
    if request.version == 0:
        existing = _under_id(state, subject, request.schema_id, candidate)
        return existing or find(state, subject, candidate, include_deleted=False), new
    latest = state.latest(subject) if request.version == -1 else None
    equal = latest and equal_version(state, candidate, [latest])
    return Found(equal, identical=False) if equal else None, new


def _under_id(state: State, subject: Subject, schema_id: int | None, candidate: Candidate) -> Found | None:
    """Return the newest live version that holds a schema under an id; imports may store a schema under several ids."""
    held = None if schema_id is None else state.schema(context_of(subject), schema_id)
    if held is None or not _is_same(held.schema, candidate):
        return None
    live = reversed(state.versions(subject, include_deleted=False))
    entry = next((entry for entry in live if entry.schema is held.schema), None)
    return Found(entry, identical=True) if entry else None


def _is_same(schema: StoredSchema, candidate: Candidate) -> bool:
    return (schema.schema_type, schema.fingerprint) == (candidate.schema_type, candidate.digest)


def _existing(existing: Found) -> Decision[Registered]:
    return Decision(Registered(existing.entry, is_new=False, as_stored=not existing.identical))


def _changes_tags(request: SchemaRequest) -> bool:
    return bool(request.tags_to_add or request.tags_to_remove or request.propagate_tags)


def _completed(state: State, subject: Subject, request: SchemaRequest, mode: Mode) -> SchemaRequest:
    """Fill in what the request leaves open.

    A blank text becomes the latest version's text, encryption rules get key names, and tags are written into the text.
    A request that changes tags always asks for a new version. The request itself comes back if it leaves nothing open.
    """
    latest = state.latest(subject)
    if request.rule_set and not mode.is_import:
        rule_set = with_key_names(request.rule_set)
        request = request if rule_set is request.rule_set else request._replace(rule_set=rule_set)
    if not request.text.strip():
        if latest is None:
            raise errors.empty_schema()
        value = latest.schema.value
        request = request._replace(text=value.text, schema_type=value.schema_type, references=value.references)
    if request.tags_to_add or request.tags_to_remove:
        add, remove = request.tags_to_add, request.tags_to_remove
        request = with_tags(state, subject, request, add, remove, must_exist=True)
        request = request._replace(version=request.version or -1)
    if request.propagate_tags and latest and not mode.is_import:
        request = with_tags(state, subject, request, inline_tags(state, latest, request.limits), must_exist=False)
    return request


def _check(state: State, subject: Subject, candidate: Candidate, rules: Rules, config: EffectiveConfig) -> None:
    """Reject a schema that uses reserved names or is incompatible with earlier versions."""
    check_fields(candidate, config)
    if rules.force:
        return
    versions = state.versions(subject, include_deleted=False)
    verdict = check_history(state, candidate, versions, config, rules.default_level)
    if verdict.messages:
        advice = [check.explain(incompatibility) for incompatibility in verdict.incompatibilities]
        findings = findings_json(verdict.findings, candidate.limits.messages)
        raise errors.incompatible_schema(subject, verdict.messages, advice, findings)


def _check_mode(mode: Mode, subject: Subject, *, imports: bool) -> None:
    if mode.is_read_only:
        raise errors.read_only(subject)
    if imports and not mode.is_import:
        raise errors.not_import_mode(subject)
    if not imports and mode.is_import:
        raise errors.not_read_write(subject)


def _append_version(state: State, subject: Subject, version: Version, candidate: Candidate) -> Decision[Registered]:
    """Give a new version the id that its schema has in the context, or else the next one."""
    context = context_of(subject)
    known = state.id_of(context, candidate.schema_type, candidate.digest)
    schema_id = state.next_id(context) if known is None else known
    if schema_id > MAX_VERSION:
        raise errors.ids_used_up(context)
    replaced = [
        encode(SchemaKey(subject, entry.version))
        for entry in state.versions(subject, include_deleted=True)
        if entry.deleted and entry.schema.schema_id == schema_id and not state.referred_by(subject, entry.version)
    ]
    return _store(state, subject, version, schema_id, candidate, replaced)


def _import(
    state: State, subject: Subject, candidate: Candidate, request: SchemaRequest, rules: Rules
) -> Decision[Registered]:
    """Give a version the id that the request names."""
    schema_id = SchemaId(request.schema_id or 0)
    if not 0 < schema_id <= MAX_VERSION:
        raise errors.invalid_schema(f"The schema id {schema_id} is out of range")
    if rules.check_id is not None:
        rules.check_id(state, subject, schema_id)
    held = state.schema(context_of(subject), schema_id)
    if held and not _is_same(held.schema, candidate):
        raise errors.id_overwrite(schema_id, subject)
    version = Version(request.version if request.version > 0 else state.next_version(subject))
    overwritten = state.version(subject, version)
    marks = list(mark_highest(state, [overwritten] if overwritten else []))
    return _store(state, subject, version, schema_id, candidate, marks)


def _store(
    state: State,
    subject: Subject,
    version: Version,
    schema_id: SchemaId,
    candidate: Candidate,
    before: list[Record],
) -> Decision[Registered]:
    """Return a version and the records that store it, after those that must come before."""
    if version > MAX_VERSION:
        raise errors.invalid_schema(f"The version {version} of subject {subject} is out of range")
    value = SchemaValue(
        subject,
        version,
        schema_id,
        candidate.text,
        candidate.schema_type,
        candidate.references,
        candidate.contract.metadata,
        candidate.contract.rule_set,
    )
    keep_as_stored(candidate)
    schema = StoredSchema(schema_id, candidate.schema_type, candidate.text, candidate.digest, value)
    records = [*before, encode(SchemaKey(subject, version), value)]
    context = context_of(subject)
    if context != DEFAULT_CONTEXT and not state.context(context).recorded:
        records.insert(0, encode(ContextKey(context), context))
    return Decision(Registered(SchemaVersion(subject, version, schema, 0, deleted=False)), records)


class Verdict(NamedTuple):
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
    tables: tuple["TableCheck", ...] = ()
    proven: tuple[Finding, ...] = ()
    silent: tuple[Finding, ...] = ()

    @property
    def findings(self) -> Iterator[Finding]:
        """The reasons in the order of the messages, made on demand."""
        yield from self.others
        yield from self.proven or map(check.finding, self.incompatibilities)
        for table in self.tables:
            yield from table_advice.table_findings(table)
        yield from self.silent


_ACCEPTED: Final = Verdict()


def check_fields(candidate: Candidate, config: EffectiveConfig) -> None:
    """Reject what no schema may have in the eyes of its format's own tools, if the configuration asks for it.

    Raises:
        RegistryError: 42201 if protoc would refuse a Protobuf file, or the name of a top-level field begins with `$$`.
        TooExpensive: if this takes too long.
    """
    if not config.validate_fields:
        return
    for name in compat_fields.top_fields(candidate.parsed):
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
    refuses_silent = property_of(candidate.contract.metadata, _SILENT) == _REFUSE
    if result.compatible and not (reserved or witness or refuses_silent):
        return _ACCEPTED
    messages = [*(message for message, _ in reserved), *result.messages]
    proofs, silent = (
        prove(state, candidate, versions, level, result.incompatibilities) if witness or refuses_silent else ([], [])
    )
    if refuses_silent:
        messages += map(_refusal, silent)
    if messages:
        fields = str(config.validate_fields).lower()
        messages.append(f"{{validateFields: '{fields}', compatibility: '{level.value}'}}")
    others = tuple(finding for _, finding in reserved)
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
    used = compat_fields.top_fields(candidate.parsed)
    for name in (name for name in ours if name in used):
        message = f"The new schema has field that conflicts with the reserved field {name}."
        advice = f"The new schema has a field {name!r}, a name that its metadata reserves. Use another name."
        yield message, Finding("RESERVED_FIELD_CONFLICT", advice, field=name, new=name)


def _reserved(metadata: Metadata | None) -> list[str]:
    names = (property_of(metadata, _RESERVED) or "").split(",")
    return [name.strip() for name in names if name.strip()]
