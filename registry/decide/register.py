"""Decide a registration: the id and version that a schema gets, or why it is rejected.

The order of checks is the reference's (docs/compatibility.md): look-up under the request's own contract, mode, strict
validation, look-up under the contract merged with the settings, compatibility, explicit version, id.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from strata.compat.check import explain
from strata.compat.levels import Level
from strata.registry import errors
from strata.registry.content_lookup import Found, equal_version, find, parsed
from strata.registry.decide.checks import check_fields, check_history
from strata.registry.decide.contracts import (
    has_defaults_or_overrides,
    merged_contract,
    names_version,
    with_version,
    without_version,
)
from strata.registry.decide.decision import Decision
from strata.registry.decide.highest_id import mark_highest
from strata.registry.effective_settings import Mode, config_in_force, flag_in_force, mode_in_force
from strata.registry.findings import findings_json
from strata.registry.parsing import Candidate, Contract, SchemaRequest, inline_tags, parse_request, with_tags
from strata.registry.references import check_not_owned
from strata.registry.rule_sets import check_rule_set, with_key_names
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import (
    DEFAULT_CONTEXT,
    MAX_VERSION,
    ContextKey,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Version,
    context_of,
)
from strata.storage.state import SchemaVersion, State, StoredSchema

__all__ = ["Registered", "Rules", "register"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the request's flags and the service's settings demand of a registration.

    Attributes:
        default_level: the compatibility level of subjects that have none.
        normalize: whether to normalize the schema.
        force: whether to skip the compatibility check.
    """

    default_level: Level
    normalize: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """The subject, version and schema of a registration, and the version that already held the schema, if any."""

    subject: Subject
    version: Version
    schema: StoredSchema
    existing: SchemaVersion | None = None
    as_stored: bool = False  # whether the answer shows the existing version instead of the request

    @property
    def entry(self) -> SchemaVersion:
        """The registered version; a new one has no timestamp yet."""
        return self.existing or SchemaVersion(self.subject, self.version, self.schema, 0, deleted=False)


def register(state: State, subject: Subject, request: SchemaRequest, rules: Rules) -> Decision[Registered]:
    """Return the place of a schema under a subject, and the records that put it there (none if it is registered).

    Args:
        state: the State to decide on.
        subject: the subject.
        request: the schema.
        rules: the request's flags and the service's settings.

    Raises:
        RegistryError: 40901 if the schema is incompatible; 42201 if it is invalid, out of version order or has too high
            an id; 42203 if the policy in force is not supported; 42205 if the mode, another schema's id or a STRONG
            association forbids it; 42210 if the rule set is invalid.
        TooExpensive: if this takes too long.
    """
    request = request.started()
    config = config_in_force(state, subject, rules.default_level)
    mode = mode_in_force(state, subject)
    if request.rule_set and config.get("validateRules") is not False:
        check_rule_set(request.rule_set)
    sought = None
    if request.text.strip() and not _changes_tags(request) and not has_defaults_or_overrides(config):
        sought = request.contract
        found = _standing(state, subject, request, rules)
        if found and request.schema_id in (None, found.entry.schema.schema_id):
            return _placed_before(found)
    _check_mode(mode, subject, imports=request.schema_id is not None)
    request = _completed(state, subject, request, mode)
    if mode.is_import:
        # Take another registry's schema as it is: do not normalize it or apply the rules for new schemas.
        as_given = parse_request(state, subject, request, strict=False, normalize=False, new=False)
        check_not_owned(state, subject, as_given.references)
        found = _under_id(state, subject, request.schema_id, as_given) if request.version == 0 else None
        return _placed_before(found) if found else _imported(state, subject, as_given, request)
    return _registered(state, subject, request, rules, config, sought)


def _registered(
    state: State,
    subject: Subject,
    request: SchemaRequest,
    rules: Rules,
    config: Mapping[str, Any],
    sought: Contract | None,
) -> Decision[Registered]:
    """Decide a registration in a writable scope, under the contract merged with the settings.

    `sought` is the contract under which a look-up has already found nothing.
    """
    candidate = _new(state, subject, request, rules)
    check_not_owned(state, subject, candidate.references)
    version, latest = state.next_version(subject), state.latest(subject)
    contract = merged_contract(request, latest, config)
    if request.version == -1 and latest and _changes_tags(request):
        unversioned = candidate.under(without_version(contract))
        if equal_version(state, unversioned, [latest]):
            return _placed_before(Found(latest, identical=False))
    if request.version or names_version(contract):
        contract = with_version(contract, version)
    candidate = candidate.under(contract)
    if request.version == 0 and contract != sought:
        found = find(state, subject, candidate, include_deleted=False)
        if found:
            return _placed_before(found)
    _check(state, subject, candidate, rules)
    if request.version not in (0, -1, version):
        raise errors.invalid_version_order()
    return _stored(state, subject, version, candidate)


def _new(state: State, subject: Subject, request: SchemaRequest, rules: Rules) -> Candidate:
    """Parse a schema under the rules for new ones.

    Raises:
        RegistryError: 42201 if it is invalid.
    """
    strict = flag_in_force(state, subject, "validateNewSchemas", default=True)
    normalize = rules.normalize or flag_in_force(state, subject, "normalize", default=False)
    return parse_request(state, subject, request, strict=strict, normalize=normalize)


def _standing(state: State, subject: Subject, request: SchemaRequest, rules: Rules) -> Found | None:
    """Return the live version that answers the request without a write, whatever the subject's mode.

    This also finds a version stored under less strict validation whose text would be rejected as new. A request for
    version -1 is compared with the latest version only; a request for another explicit version is never answered this
    way.

    Raises:
        RegistryError: 42201 if the text could never have been stored.
    """
    try:
        candidate = _new(state, subject, request, rules)
    except errors.TooExpensive:
        raise
    except errors.RegistryError:
        candidate = parsed(state, subject, request, normalize=rules.normalize)
    if request.version == 0:
        found = _under_id(state, subject, request.schema_id, candidate)
        return found or find(state, subject, candidate, include_deleted=False)
    latest = state.latest(subject) if request.version == -1 else None
    return Found(latest, identical=False) if latest and equal_version(state, candidate, [latest]) else None


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


def _placed_before(found: Found) -> Decision[Registered]:
    entry = found.entry
    return Decision(Registered(entry.subject, entry.version, entry.schema, entry, as_stored=not found.identical))


def _changes_tags(request: SchemaRequest) -> bool:
    return bool(request.tags_to_add or request.tags_to_remove or request.propagate_tags)


def _completed(state: State, subject: Subject, request: SchemaRequest, mode: Mode) -> SchemaRequest:
    """Fill in what the request leaves open.

    A blank text becomes the latest version's text, encryption rules get key names, and tags are written into the text.
    A request that changes tags always asks for a new version.
    """
    latest = state.latest(subject)
    if not mode.is_import:
        request = replace(request, rule_set=with_key_names(request.rule_set))
    if not request.text.strip():
        if latest is None:
            raise errors.empty_schema()
        value = latest.schema.value
        request = replace(request, text=value.text, schema_type=value.schema_type, references=value.references)
    if request.tags_to_add or request.tags_to_remove:
        add, remove = request.tags_to_add, request.tags_to_remove
        request = with_tags(state, subject, request, add, remove, must_exist=True)
        request = replace(request, version=request.version or -1)
    if request.propagate_tags and latest and not mode.is_import:
        request = with_tags(state, subject, request, inline_tags(state, latest, request.limits), must_exist=False)
    return request


def _check(state: State, subject: Subject, candidate: Candidate, rules: Rules) -> None:
    """Reject a schema that uses reserved names or is incompatible with earlier versions."""
    check_fields(state, subject, candidate)
    if rules.force:
        return
    versions = state.versions(subject, include_deleted=False)
    verdict = check_history(state, subject, candidate, versions, rules.default_level)
    if verdict.messages:
        advice = [explain(found) for found in verdict.incompatibilities]
        findings = findings_json(verdict.findings, candidate.limits.messages)
        raise errors.incompatible_schema(subject, verdict.messages, advice, findings)


def _check_mode(mode: Mode, subject: Subject, *, imports: bool) -> None:
    context = context_of(subject)
    if mode.is_read_only:
        raise errors.read_only(subject, context)
    if imports and not mode.is_import:
        raise errors.not_import_mode(subject, context)
    if not imports and mode.is_import:
        raise errors.not_read_write(subject, context)


def _stored(state: State, subject: Subject, version: Version, candidate: Candidate) -> Decision[Registered]:
    context = context_of(subject)
    known = state.id_of(context, candidate.schema_type, candidate.digest)
    schema_id = SchemaId(state.context(context).high_water + 1) if known is None else known
    if schema_id > MAX_VERSION:
        raise errors.operation_not_permitted(f"The ids of context {context} are used up")
    replaced = [
        encode(SchemaKey(subject, entry.version))
        for entry in state.versions(subject, include_deleted=True)
        if entry.deleted and entry.schema.schema_id == schema_id and not state.referred_by(subject, entry.version)
    ]
    return _placed(state, subject, version, schema_id, candidate, replaced)


def _imported(state: State, subject: Subject, candidate: Candidate, request: SchemaRequest) -> Decision[Registered]:
    context = context_of(subject)
    schema_id = SchemaId(request.schema_id if request.schema_id is not None else 0)
    if not 0 < schema_id <= MAX_VERSION:
        raise errors.invalid_schema(f"The schema id {schema_id} is out of range")
    held = state.schema(context, schema_id)
    if held and not _is_same(held.schema, candidate):
        raise errors.id_overwrite(schema_id, context)
    version = Version(request.version if request.version > 0 else state.next_version(subject))
    overwritten = state.version(subject, version)
    marks = list(mark_highest(state, [overwritten] if overwritten else []))
    return _placed(state, subject, version, schema_id, candidate, marks)


def _placed(
    state: State,
    subject: Subject,
    version: Version,
    schema_id: SchemaId,
    candidate: Candidate,
    before: list[Record],
) -> Decision[Registered]:
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
    schema = StoredSchema(schema_id, candidate.schema_type, candidate.text, candidate.digest, value)
    records = [*_new_context(state, subject), *before, encode(SchemaKey(subject, version), value)]
    return Decision(Registered(subject, version, schema), records)


def _new_context(state: State, subject: Subject) -> Iterator[Record]:
    context = context_of(subject)
    if context != DEFAULT_CONTEXT and not state.context(context).recorded:
        yield encode(ContextKey(context), context)
