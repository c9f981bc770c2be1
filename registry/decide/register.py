"""Decide a registration: which id and version a schema gets, or why it is refused.

The order of checks is the reference's (docs/compatibility.md): look-up, mode, strict validation, identity, the
weaker equality of look-ups, compatibility, explicit version, id.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from compat.check import CheckResult, explain
from compat.levels import Level
from registry import errors
from registry.decide.high_water import mark_highest
from registry.effective import Mode, flag_in_force, level_in_force, mode_in_force, policy_in_force
from registry.schemas import Candidate, SchemaRequest, compare, equivalent, parse_request
from registry.writer import Decision
from storage.log import Record
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
    encode,
)
from storage.state import SchemaVersion, State, StoredSchema

__all__ = ["Registered", "Rules", "find", "messages_of", "register"]


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


def register(state: State, subject: Subject, request: SchemaRequest, rules: Rules) -> Decision[Registered]:
    """Return the place of a schema under a subject, and the records that put it there.

    Raises:
        RegistryError: 40901, 42201, 42205, 42207.
    """
    if not request.text.strip():
        return Decision(_copied(state, subject))
    normalize = rules.normalize or flag_in_force(state, subject, "normalize", default=False)
    strict = flag_in_force(state, subject, "validateNewSchemas", default=True)
    candidate, found = _look_up(state, subject, request, normalize=normalize, strict=strict)
    if found and request.schema_id in (None, found.schema.schema_id):
        return Decision(Registered(subject, found.version, found.schema, found))
    mode = mode_in_force(state, subject)
    _check_mode(mode, subject, imports=request.schema_id is not None)
    if mode.is_import:
        as_given = parse_request(state, subject, request, strict=False, normalize=False)
        return _imported(state, subject, as_given, request)
    if isinstance(candidate, errors.RegistryError):
        raise candidate
    if not rules.force:
        _check_level(state, subject, candidate, rules.default_level)
    version = state.next_version(subject)
    if request.version not in (0, -1, version):
        raise errors.invalid_version_order()
    return _stored(state, subject, version, candidate)


def find(
    state: State, subject: Subject, candidate: Candidate, *, include_deleted: bool = False
) -> SchemaVersion | None:
    """Return the version of a subject that holds a schema, by identity or else by the weaker equality of look-ups."""
    versions = state.versions(subject, include_deleted=include_deleted)
    for entry in versions:
        if (entry.schema.fingerprint, entry.schema.schema_type) == (candidate.digest, candidate.schema_type):
            return entry
    return next((entry for entry in reversed(versions) if equivalent(state, candidate, entry)), None)


def messages_of(result: CheckResult, level: Level, *, validate_fields: bool) -> list[str]:
    """Return the messages of a check as the server words them: its own settings come last."""
    if result.compatible:
        return []
    flag = "true" if validate_fields else "false"
    return [*result.messages, f"{{validateFields: '{flag}', compatibility: '{level.value}'}}"]


def _copied(state: State, subject: Subject) -> Registered:
    """A blank schema stands for the latest version."""
    latest = state.latest(subject)
    if latest is None:
        raise errors.empty_schema()
    return Registered(subject, latest.version, latest.schema, latest)


def _look_up(
    state: State, subject: Subject, request: SchemaRequest, *, normalize: bool, strict: bool
) -> tuple[Candidate | errors.RegistryError, SchemaVersion | None]:
    """Parse the schema, and find it among the live versions.

    One stored before validation was strict is found all the same, though it would be refused as new.
    """
    try:
        candidate = parse_request(state, subject, request, strict=strict, normalize=normalize)
    except errors.RegistryError as error:
        if not strict:
            return error, None
        refusal = error
    else:
        return candidate, find(state, subject, candidate)
    try:
        lenient = parse_request(state, subject, request, strict=False, normalize=normalize)
    except errors.RegistryError as error:
        return error, None
    return refusal, find(state, subject, lenient)


def _check_mode(mode: Mode, subject: Subject, *, imports: bool) -> None:
    context = context_of(subject)
    if mode.is_read_only:
        raise errors.read_only(subject, context)
    if imports and not mode.is_import:
        raise errors.not_import_mode(subject, context)
    if not imports and mode.is_import:
        raise errors.not_read_write(subject, context)


def _check_level(state: State, subject: Subject, candidate: Candidate, default: Level) -> None:
    level = level_in_force(state, subject, default)
    policy = policy_in_force(state, subject)
    result = compare(state, candidate, state.versions(subject, include_deleted=False), level, policy)
    if not result.compatible:
        fields = flag_in_force(state, subject, "validateFields", default=False)
        advice = [explain(found) for found in result.incompatibilities]
        raise errors.incompatible_schema(subject, messages_of(result, level, validate_fields=fields), advice)


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
    value = SchemaValue(
        subject, version, schema_id, candidate.text, candidate.schema_type, references=candidate.references
    )
    schema = StoredSchema(schema_id, candidate.schema_type, candidate.text, candidate.digest, value)
    records = [*_new_context(state, subject), *before, encode(SchemaKey(subject, version), value)]
    return Decision(Registered(subject, version, schema), records)


def _new_context(state: State, subject: Subject) -> Iterator[Record]:
    context = context_of(subject)
    if context != DEFAULT_CONTEXT and context not in state.contexts:
        yield encode(ContextKey(context))
