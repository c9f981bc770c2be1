"""Decide associations: which resource (a topic) keeps its keys' or its values' schemas under which subject.

A WEAK association only says where to look. A STRONG one makes the subject the resource's own: nothing else may be
associated with it or refer to it, and it goes with the resource. A frozen one is STRONG, is made together with the
subject's first schema, and cannot be changed.

The rules are those of the reference's clients and error codes (docs/compatibility.md).
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from compat.limits import DEFAULT_LIMITS, Limits, OutOfTime
from registry import errors
from registry.decide.delete import delete_with_association
from registry.decide.register import Registered, Rules, register
from registry.effective import mode_in_force
from registry.errors import RegistryError, TooExpensive
from registry.names import writable_subject
from registry.schemas import SchemaRequest
from registry.writer import Decision
from storage.associations import Association
from storage.log import Record
from storage.record_json import encode
from storage.records import AssociationKey, AssociationValue, Subject, context_of
from storage.state import State

__all__ = [
    "TOPIC",
    "AssociationRequest",
    "Placed",
    "Resource",
    "Settled",
    "Wanted",
    "change_associations",
    "change_batch",
    "check_lifecycle",
    "delete_associations",
]

TOPIC = "topic"
_TYPES = ("key", "value")
_LIFECYCLES = ("STRONG", "WEAK")
_MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class Resource:
    """What is associated with subjects: a topic, by its name in a namespace (a cluster) and by an id."""

    name: str
    namespace: str
    resource_id: str
    resource_type: str = TOPIC


@dataclass(frozen=True, slots=True)
class Wanted:
    """One change: `op` is CREATE, UPSERT or DELETE; None is what the request leaves open. `guid` is for a new one."""

    op: str
    association_type: str = "value"
    subject: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: SchemaRequest | None = None
    normalize: bool = False
    cascade: bool = False
    guid: str = ""


@dataclass(frozen=True, slots=True)
class AssociationRequest:
    """The changes of one resource's associations: all of them, or none."""

    resource: Resource
    wanted: Sequence[Wanted]
    dry_run: bool = False
    limits: Limits = DEFAULT_LIMITS

    def under(self, limits: Limits) -> "AssociationRequest":
        """Return the request under other limits, which count for all of its schemas together."""
        wanted = [replace(one, schema=one.schema.under(limits)) if one.schema else one for one in self.wanted]
        return replace(self, wanted=wanted, limits=limits)


@dataclass(frozen=True, slots=True)
class Placed:
    """An association as it stands now, and the place of the schema that came with it."""

    association: Association
    registered: Registered | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What a request came to."""

    resource: Resource
    placed: Sequence[Placed]


_Step = Callable[[State, Resource, Wanted, Rules, int], Decision[Placed | None]]


def change_associations(state: State, request: AssociationRequest, rules: Rules, now: int) -> Decision[Settled]:
    """Return what a resource's associations become, and the records that make it so (none in a dry run).

    `now` is in milliseconds since the epoch.

    Raises:
        RegistryError: 40410, 40901, 40903, 40904, 40905, 40907, 40908, 42201, 42205, 42206, 42208, 42212.
    """
    _check(request)
    records: list[Record] = []
    placed: list[Placed] = []
    for wanted in request.wanted:
        _look_at_clock(request.limits)
        step = _STEPS[wanted.op](state, request.resource, wanted, rules, now)
        records.extend(step.records)
        state = state.drafted(step.records, now)
        if step.answer:
            placed.append(step.answer)
    return Decision(Settled(request.resource, placed), [] if request.dry_run else records)


def change_batch(
    state: State, requests: Sequence[AssociationRequest], rules: Rules, now: int
) -> Decision[list[Settled | RegistryError]]:
    """Carry out some requests in order; one that is refused leaves the others alone.

    Raises:
        TooExpensive: the time for all of them is over.
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
    """Return the tombstones of a resource's associations; nothing is done, or refused, where there are none.

    `cascade`: subjects that belong to the resource alone (STRONG) are hard-deleted with it.

    Raises:
        RegistryError: 40908 for a frozen one without cascade, 42205, 42206.
    """
    records: list[Record] = []
    for found in state.associations.of_resource_id(resource_id):
        if found.key.resource_type == resource_type and (not types or found.key.association_type in types):
            going = _removal(state, found, now, cascade=cascade)
            records.extend(going)
            state = state.drafted(going, now)
    return Decision(None, [] if dry_run else records)


def check_lifecycle(lifecycle: str | None) -> None:
    """Refuse a lifecycle that is none.

    Raises:
        RegistryError: 42212.
    """
    if lifecycle is not None and lifecycle not in _LIFECYCLES:
        raise errors.invalid_association("lifecycle", f"must be one of {', '.join(_LIFECYCLES)}")


def _look_at_clock(limits: Limits) -> None:
    try:
        limits.look_at_clock()
    except OutOfTime as error:
        raise TooExpensive(f"The associations cannot be changed: {error}") from None


# --- what a request may say


def _check(request: AssociationRequest) -> None:
    resource = request.resource
    _check_name("resourceName", resource.name)
    _check_name("resourceNamespace", resource.namespace)
    if not resource.resource_id and not request.dry_run:
        raise errors.invalid_association("resourceId", "cannot be null or empty")
    if resource.resource_type != TOPIC:
        raise errors.invalid_association("resourceType", f"must be '{TOPIC}'")
    if not request.wanted:
        raise errors.invalid_association("associations", "cannot be null or empty")
    for wanted in request.wanted:
        _check_wanted(resource, wanted)
    types = [wanted.association_type for wanted in request.wanted]
    if len(set(types)) < len(types):
        raise errors.invalid_association("associationType", "must be unique within a request")
    if len({wanted.frozen for wanted in request.wanted if wanted.frozen is not None}) > 1:
        raise errors.invalid_association(
            "frozen", "all associations for a resource must be consistently frozen or non-frozen"
        )


def _check_name(name: str, value: str) -> None:
    if not value:
        raise errors.invalid_association(name, "cannot be null or empty")
    if len(value) > _MAX_NAME:
        raise errors.invalid_association(name, f"exceeds max length of {_MAX_NAME}")
    # A colon would end the context in the default subject.
    bad = next((c for c in value if c == ":" or unicodedata.category(c)[0] == "C"), None)
    if bad:
        raise errors.invalid_association(name, f"illegal character {bad!r}")


def _check_wanted(resource: Resource, wanted: Wanted) -> None:
    if wanted.op not in _STEPS:
        raise errors.invalid_association("opType", f"must be one of {', '.join(_STEPS)}")
    if wanted.association_type not in _TYPES:
        raise errors.invalid_association("associationType", "must be either 'key' or 'value'")
    check_lifecycle(wanted.lifecycle)
    if wanted.subject is not None and not wanted.subject:
        raise errors.invalid_association("subject", "must not be empty")
    if wanted.lifecycle == "WEAK" and wanted.schema:
        raise errors.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
    if wanted.lifecycle == "WEAK" and wanted.frozen:
        raise errors.invalid_association("frozen", "association with lifecycle of WEAK cannot be frozen")
    default = _default_subject(resource, wanted)
    if wanted.frozen and wanted.subject not in (None, default):
        raise errors.invalid_association("subject", f"frozen associations must use subject '{default}'")
    if wanted.op == "CREATE" and wanted.schema and wanted.frozen is False:
        raise errors.invalid_association("frozen", "cannot be false when schema is provided for create")


def _default_subject(resource: Resource, wanted: Wanted) -> str:
    return f":.{resource.namespace}:{resource.name}-{wanted.association_type}"


# --- one change


def _create(state: State, resource: Resource, wanted: Wanted, rules: Rules, now: int) -> Decision[Placed | None]:
    if wanted.schema:
        wanted = replace(wanted, lifecycle="STRONG", frozen=True)
        _check_wanted(resource, wanted)
    if wanted.subject is None and not wanted.frozen:
        raise errors.invalid_association("subject", "must be provided for non-frozen associations")
    return _make(state, resource, wanted, rules, now)


def _make(state: State, resource: Resource, wanted: Wanted, rules: Rules, now: int) -> Decision[Placed | None]:
    """Create an association, or (UPSERT) change the lifecycle of the one that stands."""
    held = _held(state, resource, wanted.association_type)
    inherited = held.key.subject if held else _default_subject(resource, wanted)
    subject = writable_subject(inherited if wanted.subject is None else wanted.subject)
    if mode_in_force(state, subject).is_read_only:
        raise errors.read_only(subject, context_of(subject))
    if not wanted.schema and not state.latest(subject):
        raise errors.no_active_version(subject)
    if held:
        _check_change(held, subject, wanted)
        value = held.value
    else:
        _check_frozen(state, subject, wanted)
        strong = wanted.schema or wanted.frozen
        value = AssociationValue(
            wanted.guid, resource.resource_id, "STRONG" if strong else "WEAK", bool(wanted.frozen), now
        )
    value = replace(value, lifecycle=wanted.lifecycle or value.lifecycle)
    if value.lifecycle == "WEAK" and wanted.schema:
        raise errors.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
    key = AssociationKey(resource.namespace, resource.name, resource.resource_type, wanted.association_type, subject)
    _check_subject(state, key, value)
    records: list[Record] = []
    placed = None
    if wanted.schema:
        registration = register(state, subject, wanted.schema, replace(rules, normalize=wanted.normalize))
        placed, records = registration.answer, list(registration.records)
        if held and wanted.op == "CREATE" and placed.existing is None:
            raise errors.association_for_resource_exists(wanted.association_type, resource.resource_id)
    if held is None or value != held.value:
        records.append(encode(key, value))
    return Decision(Placed(Association(key, value, now), placed), records)


def _delete(state: State, resource: Resource, wanted: Wanted, _rules: Rules, now: int) -> Decision[Placed | None]:
    held = _held(state, resource, wanted.association_type)
    if held is None:
        raise errors.association_not_found(resource.resource_id or resource.name)
    return Decision(None, _removal(state, held, now, cascade=wanted.cascade))


_STEPS: Mapping[str, _Step] = {"CREATE": _create, "UPSERT": _make, "DELETE": _delete}


def _held(state: State, resource: Resource, association_type: str) -> Association | None:
    """Return the association of this type that the resource has; a name that another id holds is taken."""
    known: list[Association] = [
        *(state.associations.of_resource_id(resource.resource_id) if resource.resource_id else ()),
        *state.associations.of_name(resource.name, resource.namespace),
    ]
    for found in known:
        key = found.key
        if (key.resource_type, key.association_type) != (resource.resource_type, association_type):
            continue
        if resource.resource_id not in ("", found.value.resource_id):
            raise errors.association_for_resource_exists(association_type, resource.name)
        if (key.resource_name, key.resource_namespace) != (resource.name, resource.namespace):
            raise errors.invalid_association(
                "resourceName", f"the resource id names '{key.resource_name}' in '{key.resource_namespace}'"
            )
        return found
    return None


def _check_change(held: Association, subject: Subject, wanted: Wanted) -> None:
    """Only the lifecycle of an association may change, and of a frozen one nothing."""
    value = held.value
    same_subject = held.key.subject == subject
    same_frozen = wanted.frozen in (None, value.frozen)
    if same_subject and same_frozen and wanted.lifecycle in (None, value.lifecycle):
        return
    if wanted.op == "CREATE":
        raise errors.association_for_resource_exists(wanted.association_type, value.resource_id)
    if not same_subject:
        raise errors.invalid_association("subject", "subject of association cannot be changed")
    if not same_frozen:
        raise errors.invalid_association("frozen", "frozen attribute of association cannot be changed")
    if value.frozen:
        raise errors.association_frozen(wanted.association_type, subject)


def _check_frozen(state: State, subject: Subject, wanted: Wanted) -> None:
    if not wanted.frozen:
        return
    if not wanted.schema:
        raise errors.invalid_association("schema", "must be provided when creating a frozen association")
    if state.latest(subject):
        raise errors.invalid_association(
            "frozen", "cannot create a frozen association when schemas already exist in the subject"
        )


def _check_subject(state: State, key: AssociationKey, value: AssociationValue) -> None:
    """A subject belongs to one resource strongly, or to any number weakly."""
    others = [found for found in state.associations.of_subject(key.subject) if found.key != key]
    if others and value.lifecycle == "STRONG":
        raise errors.association_for_subject_exists(key.subject)
    if any(found.value.lifecycle == "STRONG" for found in others):
        raise errors.strong_association_exists(key.subject)
    if value.lifecycle == "STRONG":
        for entry in state.versions(key.subject, include_deleted=True):
            referrers = state.referred_by(entry.subject, entry.version)
            if any(referrer.subject != key.subject for referrer in referrers):
                raise errors.strongly_associated(key.subject)


def _removal(state: State, found: Association, now: int, *, cascade: bool) -> list[Record]:
    subject = found.key.subject
    if found.value.frozen and not cascade:
        raise errors.association_frozen(found.key.association_type, subject)
    if mode_in_force(state, subject).is_read_only:
        raise errors.read_only(subject, context_of(subject))
    records = [encode(found.key)]
    if cascade and found.value.lifecycle == "STRONG":
        records += delete_with_association(state, subject, now)
    return records
