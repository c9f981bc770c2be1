"""Decide a registration: which id and version a schema gets, or why it is refused.

The order of checks is the reference's (docs/compatibility.md): look-up, mode, strict validation, identity, the
weaker equality of look-ups, compatibility, explicit version, id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compat.check import explain
from compat.levels import Level
from registry import errors
from registry.decide.checks import check_fields, check_history
from registry.decide.contracts import (
    agrees,
    has_defaults_or_overrides,
    merged_contract,
    names_version,
    with_version,
    without_version,
)
from registry.decide.high_water import mark_highest
from registry.effective import Mode, config_in_force, flag_in_force, mode_in_force
from registry.findings import findings_json
from registry.references import check_not_owned
from registry.rule_sets import check_rule_set, with_key_names
from registry.schemas import (
    Candidate,
    Contract,
    SchemaRequest,
    equivalent,
    inline_tags,
    parse_request,
    with_tags,
)
from registry.writer import Decision
from storage.log import Record
from storage.record_json import encode
from storage.records import (
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
from storage.state import SchemaVersion, State, StoredSchema

__all__ = ["Registered", "Rules", "contracts_to_find", "find", "register"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a request and the service's settings ask of a registration."""

    default_level: Level
    normalize: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema's place, and the version that already held it, if one did."""

    subject: Subject
    version: Version
    schema: StoredSchema
    existing: SchemaVersion | None = None

    @property
    def entry(self) -> SchemaVersion:
        """The version, which for a new one is without the time of its record."""
        return self.existing or SchemaVersion(self.subject, self.version, self.schema, 0, deleted=False)


def register(state: State, subject: Subject, request: SchemaRequest, rules: Rules) -> Decision[Registered]:
    """Return the place of a schema under a subject, and the records that put it there.

    Raises:
        RegistryError: 40901, 42201, 42203, 42205, 42207, 42210.
    """
    request = request.started()
    config = config_in_force(state, subject, rules.default_level)
    mode = mode_in_force(state, subject)
    if request.rule_set and config.get("validateRules") is not False:
        check_rule_set(request.rule_set)
    request = _prepared(state, subject, request, mode)
    previous = None if mode.is_import else state.latest(subject)
    candidate, found = _look_up(state, subject, request, contracts_to_find(request, previous, config, mode), rules)
    if found and request.schema_id in (None, found.schema.schema_id):
        return Decision(Registered(subject, found.version, found.schema, found))
    _check_mode(mode, subject, imports=request.schema_id is not None)
    if mode.is_import:
        # What another registry has stored is taken as it is: neither normalized nor held to the rules for new schemas.
        as_given = parse_request(state, subject, request, strict=False, normalize=False)
        check_not_owned(state, subject, as_given.references)
        return _imported(state, subject, as_given, request)
    if isinstance(candidate, errors.RegistryError):
        raise candidate
    check_not_owned(state, subject, candidate.references)
    candidate = candidate.under(merged_contract(request, previous, config))
    _check(state, subject, candidate, rules)
    version = state.next_version(subject)
    if request.version not in (0, -1, version):
        raise errors.invalid_version_order()
    if request.version or names_version(candidate.contract):
        candidate = candidate.under(with_version(candidate.contract, version))
    return _stored(state, subject, version, candidate)


def find(state: State, candidate: Candidate, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """Return the one of some versions that holds a schema, by identity or else by the weaker equality of look-ups."""
    for entry in versions:
        if (entry.schema.fingerprint, entry.schema.schema_type) == (candidate.digest, candidate.schema_type):
            return entry
    return next(
        (
            entry
            for entry in reversed(versions)
            if agrees(candidate.contract, entry) and equivalent(state, candidate, entry)
        ),
        None,
    )


def contracts_to_find(
    request: SchemaRequest, previous: SchemaVersion | None, config: Mapping[str, Any], mode: Mode = Mode.READWRITE
) -> list[Contract]:
    """Return the contracts under which a request's schema counts as standing already, in the order of their weight.

    That is the request's own, unless something is to be added to it, and the one that it would be registered with.
    """
    if mode.is_import:
        return [request.contract]
    merged = merged_contract(request, previous, config)
    if request.metadata is None:
        merged = without_version(merged)
    changes = request.tags_to_add or request.tags_to_remove or request.propagate_tags
    own = [] if changes or has_defaults_or_overrides(config) else [request.contract]
    return [*own, *([merged] if merged not in own else [])]


def _prepared(state: State, subject: Subject, request: SchemaRequest, mode: Mode) -> SchemaRequest:
    """Complete what the request leaves open.

    A blank text is the latest one's, encryption rules name their keys, tags are put into the text. A request that
    changes tags is one for a version of its own.
    """
    latest = state.latest(subject)
    if not mode.is_import:
        request = replace(request, rule_set=with_key_names(request.rule_set))
    if not request.text.strip():
        if latest is None:
            _check_mode(mode, subject, imports=request.schema_id is not None)
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


def _look_up(
    state: State, subject: Subject, request: SchemaRequest, contracts: Sequence[Contract], rules: Rules
) -> tuple[Candidate | errors.RegistryError, SchemaVersion | None]:
    """Parse the schema, and find it among the live versions.

    One stored before validation was strict is found all the same, though it would be refused as new.
    """
    normalize = rules.normalize or flag_in_force(state, subject, "normalize", default=False)
    strict = flag_in_force(state, subject, "validateNewSchemas", default=True)
    refusal: errors.RegistryError | None = None
    try:
        candidate = parse_request(state, subject, request, strict=strict, normalize=normalize)
    except errors.RegistryError as error:
        if not strict or isinstance(error, errors.TooExpensive):
            return error, None
        refusal = error
        try:
            candidate = parse_request(state, subject, request, strict=False, normalize=normalize)
        except errors.RegistryError as failure:
            return failure, None
    versions = _asked_for(state, subject, request)
    found = (find(state, candidate.under(contract), versions) for contract in contracts)
    return refusal or candidate, next(filter(None, found), None)


def _asked_for(state: State, subject: Subject, request: SchemaRequest) -> list[SchemaVersion]:
    """The versions that may answer a request: all, only the latest for -1, only the one that it names.

    An import may put the same schema under another version, as it stands where it comes from.
    """
    versions = state.versions(subject, include_deleted=False)
    if request.version == 0:
        return versions
    return versions[-1:] if request.version == -1 else [entry for entry in versions if entry.version == request.version]


def _check(state: State, subject: Subject, candidate: Candidate, rules: Rules) -> None:
    """Refuse a schema that uses reserved names, or may not follow the versions before it."""
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
    known = state.id_of(context, candidate.schema_type, candidate.digest)
    if known not in (None, schema_id):
        raise errors.schema_id_mismatch(schema_id, known or 0)
    held = state.schema(context, schema_id)
    if held and known is None:
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
