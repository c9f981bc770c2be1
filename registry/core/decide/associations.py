"""Decide associations: the subjects under which a resource (a topic) keeps the schemas of its keys and values.

A WEAK association only says where to look. A STRONG one makes the subject the resource's own: no other resource may be
associated with it, no other subject may refer to it, and it is deleted with the resource. A STRONG association is
frozen: it is created together with the subject's first schema, or in mode IMPORT, and cannot be changed. All
associations of a resource have the same lifecycle. Logs of older registries may hold STRONG associations that are not
frozen.

The rules follow the reference's clients and error codes (docs/compatibility.md).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from strata.compat.limits import Limits, OutOfTime
from strata.registry.core import errors
from strata.registry.core.decide.association_requests import AssociationRequest, Resource, Wanted, check_request
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.delete import delete_with_association
from strata.registry.core.decide.register import Registered, Rules, register
from strata.registry.core.effective_settings import check_writable
from strata.registry.core.errors import RegistryError, TooExpensive
from strata.registry.core.subject_names import writable_subject
from strata.storage.associations import Association
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import AssociationKey, AssociationValue, Subject
from strata.storage.state import State

__all__ = [
    "Placed",
    "Settled",
    "change_associations",
    "change_batch",
    "default_subject",
    "delete_associations",
]


@dataclass(frozen=True, slots=True)
class Placed:
    """An association in its current form, and the registration of the schema that came with it."""

    association: Association
    registered: Registered | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of a request: the resource and its associations."""

    resource: Resource
    placed: Sequence[Placed]


_Step = Callable[[State, Resource, Wanted, Rules, int], Decision[Placed | None]]


def change_associations(state: State, request: AssociationRequest, rules: Rules, now: int) -> Decision[Settled]:
    """Return a resource's associations after some changes, and the records that make them (none in a dry run).

    If the request deletes associations, the answer lists the remaining ones too.

    Args:
        state: the State to decide on.
        request: the changes.
        rules: the rules for schemas that come with associations.
        now: the time of the changes, in milliseconds since the epoch.

    Raises:
        RegistryError: 40410 if an association to delete does not exist; 40903, 40904 or 40905 if the resource or
            subject already has another one; 40907 if the subject has no live version; 40908 if the association is
            frozen; 42205 if the mode forbids it; 42206 if another subject refers to the subject; 42208 if the subject's
            name is invalid; 42212 if the request is invalid; 40901, 42201 or 42210 if the schema is rejected.
    """
    check_request(request)
    resource = _known(state, request.resource)
    records: list[Record] = []
    placed: list[Placed] = []
    for wanted in request.wanted:
        _look_at_clock(request.limits)
        step = _STEPS[wanted.op](state, resource, wanted, rules, now)
        records.extend(step.records)
        state = state.drafted(step.records, now)
        if step.answer:
            placed.append(step.answer)
    remaining = _of_resource(state, resource)
    if any(wanted.op != "DELETE" for wanted in request.wanted):
        _check_one_lifecycle(remaining)
    if any(wanted.op == "DELETE" for wanted in request.wanted):
        known = {placement.association.key for placement in placed}
        placed += [Placed(association) for association in remaining if association.key not in known]
    if request.dry_run:
        return Decision(Settled(request.resource, []), [])
    return Decision(Settled(request.resource, placed), records)


def change_batch(
    state: State, requests: Sequence[AssociationRequest], rules: Rules, now: int
) -> Decision[list[Settled | RegistryError]]:
    """Carry out requests in order; a rejected one does not affect the others.

    Args:
        state: the State to decide on.
        requests: the requests, one per resource.
        rules: the rules for schemas that come with associations.
        now: the time of the changes, in milliseconds since the epoch.

    Returns:
        The outcome or the error of each request, in order, and the records of all.

    Raises:
        TooExpensive: if the time for all requests is used up.
    """
    records: list[Record] = []
    outcomes: list[Settled | RegistryError] = []
    for request in requests:
        try:
            decision = change_associations(state, request, rules, now)
        except TooExpensive:
            raise
        except RegistryError as error:
            outcomes.append(error)
            continue
        records.extend(decision.records)
        state = state.drafted(decision.records, now)
        outcomes.append(decision.answer)
    return Decision(outcomes, records)


def delete_associations(
    state: State, resource_id: str, resource_type: str, types: Sequence[str], now: int, *, cascade: bool, dry_run: bool
) -> Decision[None]:
    """Return the tombstones of a resource's associations, none if it has no associations.

    Args:
        state: the State to decide on.
        resource_id: the id of the resource.
        resource_type: the type of the resource.
        types: the association types to delete; empty means all.
        now: the time of the deletion, in milliseconds since the epoch.
        cascade: whether to hard-delete the subjects of STRONG associations too.
        dry_run: whether to check only.

    Raises:
        RegistryError: 40908 if an association is frozen and `cascade` is not set; 42205 if a subject is read-only;
            42206 if another subject refers to a subject.
    """
    records: list[Record] = []
    for association in state.associations.of_resource_id(resource_id):
        if association.key.resource_type == resource_type and (not types or association.key.association_type in types):
            going = _removal(state, association, now, cascade=cascade)
            records.extend(going)
            state = state.drafted(going, now)
    return Decision(None, [] if dry_run else records)


def _look_at_clock(limits: Limits) -> None:
    try:
        limits.look_at_clock()
    except OutOfTime as error:
        raise TooExpensive(f"The associations cannot be changed: {error}") from None


def default_subject(resource: Resource, wanted: Wanted) -> str:
    """Return the subject of an association whose request names none."""
    return f":.{resource.namespace}:{resource.name}-{wanted.association_type}"


def _make(state: State, resource: Resource, wanted: Wanted, rules: Rules, now: int) -> Decision[Placed | None]:
    """Create an association, or check and apply a change of an existing one; register the schema that comes with it."""
    held = _held(state, resource, wanted.association_type)
    if held is None or (wanted.op == "CREATE" and wanted.schema):
        wanted = _with_defaults(wanted)
    inherited = held.key.subject if held else default_subject(resource, wanted)
    subject = writable_subject(inherited if wanted.subject is None else wanted.subject)
    mode = check_writable(state, subject)
    if held is None:
        _check_new(state, resource, subject, wanted, imported=mode.is_import)
    if wanted.schema and mode.is_import:
        raise errors.not_read_write(subject)
    if not wanted.schema and not state.latest(subject):
        raise errors.no_active_version(subject)
    if held:
        value = _changed(held, subject, wanted)
    else:
        value = AssociationValue(wanted.guid, resource.resource_id, str(wanted.lifecycle), bool(wanted.frozen), now)
    key = AssociationKey(resource.namespace, resource.name, resource.resource_type, wanted.association_type, subject)
    _check_subject(state, key, value)
    decision = _registered(state, held, subject, wanted, rules)
    changed = held is None or value != held.value
    records = [*decision.records, encode(key, value)] if changed else decision.records
    return Decision(Placed(Association(key, value, now), decision.answer), records)


def _with_defaults(wanted: Wanted) -> Wanted:
    """Fill in the defaults: STRONG if a schema comes with the association, else WEAK; frozen if STRONG."""
    strong = wanted.lifecycle == "STRONG" or wanted.schema is not None
    frozen = strong if wanted.frozen is None else wanted.frozen
    return replace(wanted, frozen=frozen, lifecycle=wanted.lifecycle or ("STRONG" if strong or frozen else "WEAK"))


def _registered(
    state: State, held: Association | None, subject: Subject, wanted: Wanted, rules: Rules
) -> Decision[Registered | None]:
    """Register the schema that came with an association.

    A subject that has schemas gets no new one with a new association, so nothing is compared with them: the answer is
    that it has some.
    """
    if not wanted.schema:
        return Decision(None, [])
    force = rules.force or (held is None and state.latest(subject) is not None)
    decision = register(state, subject, wanted.schema, replace(rules, normalize=wanted.normalize, force=force))
    if wanted.op == "CREATE" and decision.answer.is_new and state.latest(subject):
        if held:
            raise errors.association_for_resource_exists(wanted.association_type, held.value.resource_id)
        raise _has_schemas()
    return Decision(decision.answer, decision.records)


def _delete(state: State, resource: Resource, wanted: Wanted, _rules: Rules, now: int) -> Decision[Placed | None]:
    held = _held(state, resource, wanted.association_type)
    if held is None:
        raise errors.association_not_found(resource.resource_id or resource.name)
    return Decision(None, _removal(state, held, now, cascade=wanted.cascade))


_STEPS: Mapping[str, _Step] = {"CREATE": _make, "UPSERT": _make, "DELETE": _delete}


def _held(state: State, resource: Resource, association_type: str) -> Association | None:
    """Return the resource's association of a type, if any; reject a resource name that another id has."""
    known: list[Association] = [
        *(state.associations.of_resource_id(resource.resource_id) if resource.resource_id else ()),
        *state.associations.of_name(resource.name, resource.namespace),
    ]
    for association in known:
        key = association.key
        if (key.resource_type, key.association_type) != (resource.resource_type, association_type):
            continue
        if resource.resource_id not in ("", association.value.resource_id):
            raise errors.association_for_resource_exists(association_type, resource.name)
        if (key.resource_name, key.resource_namespace) != (resource.name, resource.namespace):
            raise errors.invalid_association(
                "resourceName", f"the resource id names '{key.resource_name}' in '{key.resource_namespace}'"
            )
        return association
    return None


def _changed(held: Association, subject: Subject, wanted: Wanted) -> AssociationValue:
    """Return the association's new value; all that may change is a STRONG association that is not frozen, to WEAK."""
    value = held.value
    if value.lifecycle == "WEAK" and wanted.schema:
        raise errors.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
    same_subject = held.key.subject == subject
    same_frozen = wanted.frozen in (None, value.frozen)
    if same_subject and same_frozen and wanted.lifecycle in (None, value.lifecycle):
        return value
    if wanted.op == "CREATE":
        raise errors.association_for_resource_exists(wanted.association_type, value.resource_id)
    if not same_subject:
        raise errors.invalid_association("subject", "subject of association cannot be changed")
    if not same_frozen:
        raise errors.invalid_association("frozen", "frozen attribute of association cannot be changed")
    if value.frozen:
        raise errors.association_frozen(wanted.association_type, subject)
    if wanted.lifecycle == "STRONG":
        raise _not_frozen()
    return replace(value, lifecycle=wanted.lifecycle or value.lifecycle)


def _check_new(state: State, resource: Resource, subject: Subject, wanted: Wanted, *, imported: bool) -> None:
    """Reject a new association that its lifecycle, its subject or the operation does not allow."""
    default = default_subject(resource, wanted)
    if wanted.op == "UPSERT" and wanted.schema:
        raise errors.invalid_association(
            "schema",
            "cannot be provided when adding an association to an existing topic; "
            "an association with a schema must be created with the topic",
        )
    if wanted.op == "UPSERT" and wanted.lifecycle == "STRONG" and not imported:
        if subject != default:
            raise errors.invalid_association("subject", f"frozen associations must use subject '{default}'")
        raise errors.invalid_association("lifecycle", "an upsert can create WEAK associations only")
    if wanted.lifecycle == "STRONG" and not wanted.frozen:
        raise _not_frozen()
    if wanted.lifecycle == "WEAK" and wanted.subject is None:
        raise errors.invalid_association("subject", "must be provided for non-frozen associations")
    if wanted.lifecycle == "WEAK" and subject == default:
        raise errors.invalid_association("subject", f"WEAK associations cannot use subject '{default}'")
    if wanted.frozen and subject != default:
        raise errors.invalid_association("subject", f"frozen associations must use subject '{default}'")
    if wanted.frozen and not imported:
        if not wanted.schema:
            raise errors.invalid_association("schema", "must be provided when creating a frozen association")
        if [entry.version for entry in state.versions(subject, include_deleted=False)] not in ([], [1]):
            raise _has_schemas()


def _not_frozen() -> RegistryError:
    return errors.invalid_association("frozen", "association with lifecycle of STRONG cannot be frozen=false")


def _has_schemas() -> RegistryError:
    return errors.invalid_association(
        "frozen", "cannot create a frozen association when schemas already exist in the subject"
    )


def _check_subject(state: State, key: AssociationKey, value: AssociationValue) -> None:
    """Reject a second association of a subject if either is STRONG, and a STRONG one if other subjects refer to it."""
    others = [association for association in state.associations.of_subject(key.subject) if association.key != key]
    if others and value.lifecycle == "STRONG":
        raise errors.association_for_subject_exists(key.subject)
    if any(association.value.lifecycle == "STRONG" for association in others):
        raise errors.strong_association_exists(key.subject)
    if value.lifecycle == "STRONG":
        for entry in state.versions(key.subject, include_deleted=True):
            referrers = state.referred_by(entry.subject, entry.version)
            if any(referrer.subject != key.subject for referrer in referrers):
                raise errors.subject_referenced(key.subject)


def _check_one_lifecycle(associations: Sequence[Association]) -> None:
    """Reject a mix of STRONG and WEAK associations of a resource."""
    if len({association.value.lifecycle for association in associations}) > 1:
        lifecycles = ", ".join(
            f"{association.key.association_type}={association.value.lifecycle}" for association in associations
        )
        raise errors.invalid_association(
            "lifecycle", f"all associations for a resource must have the same lifecycle, but got {lifecycles}"
        )


def _known(state: State, resource: Resource) -> Resource:
    """Return a resource with its id; if only its name is given, take the resource of that name that changed last."""
    if resource.resource_id:
        return resource
    named = [
        (association.updated, association.value.resource_id)
        for association in state.associations.of_name(resource.name, resource.namespace)
        if association.key.resource_type == resource.resource_type
    ]
    return replace(resource, resource_id=max(named)[1]) if named else resource


def _of_resource(state: State, resource: Resource) -> list[Association]:
    associations = state.associations.of_resource_id(resource.resource_id)
    return [association for association in associations if association.key.resource_type == resource.resource_type]


def _removal(state: State, association: Association, now: int, *, cascade: bool) -> list[Record]:
    subject = association.key.subject
    if association.value.frozen and not cascade:
        raise errors.association_frozen(association.key.association_type, subject)
    check_writable(state, subject)
    records = [encode(association.key)]
    if cascade and association.value.lifecycle == "STRONG":
        records += delete_with_association(state, subject, now)
    return records
