"""Decide a batch: changes of settings, schemas and rights in order, of which the log gets all or none.

Each step is decided on the draft that the steps before it left. A registration asks for a schema to be the subject's
latest version: it changes nothing if the latest version holds it, and adds a version if only an older one does.

A dry run gives each step a basis: the digest of what the step depends on. A batch with these is rejected only after a
change that one of its steps depends on.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.registry.core import errors
from strata.registry.core.decide.acls import RulesChange, listed_rules, set_rules
from strata.registry.core.decide.config import set_config
from strata.registry.core.decide.content import equal_version, merged_contract
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.delete import delete_subject
from strata.registry.core.decide.mode import set_mode
from strata.registry.core.decide.register import Registered, Rules, register
from strata.registry.core.effective_settings import Mode, config_in_force, fields_in_force, mode_in_force
from strata.registry.core.lookup import LATEST
from strata.registry.core.parsing import parse_request
from strata.registry.core.rights.rules import Resource, Rule
from strata.registry.core.rule_sets import with_key_names
from strata.registry.core.schema_request import Contract, SchemaRequest
from strata.storage.log import Record
from strata.storage.records import Subject, context_of, qualified
from strata.storage.state import SchemaVersion, State

__all__ = [
    "Batch",
    "Outcome",
    "Permits",
    "Result",
    "Step",
    "StepKind",
    "decide_batch",
    "deletion",
    "registration",
    "rights",
    "settings",
]

_LEVEL = "compatibilityLevel"
_ABSENT: tuple[object, ...] = (None, "", {})
_DIGITS = 32


class StepKind(StrEnum):
    """What a step does, spelled as on the wire."""

    REGISTER = "register"
    SETTINGS = "settings"
    DELETE = "delete"
    RIGHTS = "rights"


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a batch.

    Attributes:
        kind: what the step does.
        subject: the subject or context; None for the registry as a whole, and for rights.
        decide: decides the change.
        facts: returns what a State says of all that the change depends on, as JSON.
        request: the schema of a registration.
        basis: the digest of the facts that the batch was planned on; None for any.
    """

    kind: StepKind
    subject: Subject | None
    decide: Callable[[State, Limits], Decision[object]]
    facts: Callable[[State], object]
    request: SchemaRequest | None = None
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class Permits:
    """The checks of what the request may do; each raises RegistryError."""

    step: Callable[[State, Step], None]
    records: Callable[[Sequence[Record]], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one step.

    Attributes:
        changed: whether it writes anything.
        entry: the version that holds the schema of a registration.
        error: why the step is rejected; only of a dry run.
        rules: what becomes of the rules of a resource.
        basis: the digest of what the step depends on; only of a dry run.
    """

    changed: bool
    entry: SchemaVersion | None = None
    error: errors.RegistryError | None = None
    rules: RulesChange | None = None
    basis: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The outcomes of all steps in their order, and the offset of the State that they were decided on."""

    offset: int
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The steps, and the offset after which nothing may have changed; None for any."""

    steps: Sequence[Step]
    offset: int | None = None


def decide_batch(
    state: State, batch: Batch, limits: Limits, permits: Permits, *, now: int, dry_run: bool
) -> Decision[Result]:
    """Return the outcome of each step, and the records of all of them.

    Args:
        state: the State to decide on.
        batch: the steps.
        limits: how much the processing of the whole batch may cost.
        permits: what the request may do.
        now: the time of the drafts, in milliseconds since the epoch.
        dry_run: whether to go on after a rejected step, as if it were not there, and to return its error.

    Raises:
        RegistryError: 40990 if anything has changed since the offset that the batch asks for, or if what a step depends
            on has changed since it got its basis; unless it is a dry run, the error of the first rejected step.
    """
    if batch.offset is not None and not state.changed <= batch.offset <= state.offset:
        raise errors.registry_moved(batch.offset, state.offset)
    for number, step in enumerate(batch.steps, 1):
        if step.basis is not None and step.basis != _basis(state, step):
            raise errors.in_step(number, errors.plan_outdated(step.subject or "the registry"))
    draft, records, outcomes = state, list[Record](), list[Outcome]()
    for number, step in enumerate(batch.steps, 1):
        try:
            permits.step(draft, step)
            decision = step.decide(draft, limits)
            permits.records(decision.records)
        except errors.TooExpensive:
            raise
        except errors.RegistryError as error:
            if not dry_run:
                raise errors.in_step(number, error) from None
            outcomes.append(Outcome(changed=False, error=error))
            continue
        answer = decision.answer
        entry = answer.entry if isinstance(answer, Registered) else None
        rules = answer if isinstance(answer, RulesChange) else None
        basis = _basis(state, step) if dry_run else None
        outcomes.append(Outcome(bool(decision.records), entry, rules=rules, basis=basis))
        records += decision.records
        draft = draft.drafted(decision.records, now)
    return Decision(Result(state.offset, tuple(outcomes)), records)


def registration(subject: Subject, request: SchemaRequest, rules: Rules) -> Step:
    """Return the step that makes a schema the latest version of a subject."""

    def facts(state: State) -> object:
        targets = (
            (qualified(reference.subject, context_of(subject)), reference.version) for reference in request.references
        )
        entries = [state.latest(name) if number == LATEST else state.version(name, number) for name, number in targets]
        return [_around(state, subject), rules.default_level, [entry and _identity(entry) for entry in entries]]

    return Step(StepKind.REGISTER, subject, partial(_set_latest, subject, request, rules), facts, request)


def settings(scope: Subject | None, config: dict[str, object] | None, mode: str | None, default: Level) -> Step:
    """Return the step that changes a scope's configuration, mode or both.

    A value that a read shows already, because it is the default, is not a change.

    Args:
        scope: a subject or context; None for the registry as a whole.
        config: the changed properties of the configuration; None leaves it alone.
        mode: the mode; None leaves it alone.
        default: the compatibility level of a scope's own configuration that has none.
    """
    shown_mode = Mode.READWRITE.value if scope is None else None

    def decide(state: State, _: Limits) -> Decision[None]:
        records: list[Record] = []
        if config is not None and not _shows(state, scope, config, default):
            records += set_config(state, scope, config).records
        if mode is not None and mode.upper() != state.modes.get(scope, shown_mode):
            records += set_mode(state, scope, mode, force=False).records
        return Decision(None, records)

    def facts(state: State) -> object:
        own = state.configs.get(scope)
        return [own and own.fields, state.modes.get(scope), mode_in_force(state, scope)]

    return Step(StepKind.SETTINGS, scope, decide, facts)


def deletion(subject: Subject) -> Step:
    """Return the step that soft-deletes a subject; a subject without live versions stays as it is."""

    def decide(state: State, _: Limits) -> Decision[None]:
        if state.latest(subject) is None:
            return Decision(None)
        return Decision(None, delete_subject(state, subject, permanent=False).records)

    return Step(StepKind.DELETE, subject, decide, lambda state: _around(state, subject))


def rights(resource: Resource, rules: Sequence[Rule], now: int, *, only: bool) -> Step:
    """Return the step that adds rules about one resource and, with `only`, deletes all others about it."""

    def decide(state: State, _: Limits) -> Decision[RulesChange]:
        return set_rules(state, resource, rules, now, only=only)

    def facts(state: State) -> object:
        return [str(rule) for rule in listed_rules(state) if rule.resource == resource]

    return Step(StepKind.RIGHTS, None, decide, facts)


def _basis(state: State, step: Step) -> str:
    text = json.dumps(step.facts(state), sort_keys=True, default=dict)
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:_DIGITS]


def _around(state: State, subject: Subject) -> object:
    """Return what a change of a subject's versions depends on: these, and the settings in force."""
    versions = [_identity(entry) for entry in state.versions(subject, include_deleted=True)]
    fields = {name: value for name, (value, _) in fields_in_force(state, subject).items()}
    return [versions, fields, mode_in_force(state, subject)]


def _identity(entry: SchemaVersion) -> object:
    return [entry.subject, entry.version, entry.schema.schema_id, entry.deleted]


def _shows(state: State, scope: Subject | None, config: Mapping[str, object], default: Level) -> bool:
    """Return whether the configuration that a scope itself has holds all properties of a change, as a read shows it."""
    own = state.configs.get(scope)
    shown: dict[str, object] = {} if own is None and scope is not None else {_LEVEL: default.value}
    shown |= own.fields if own else {}
    return all(_same(name, value, shown) for name, value in config.items())


def _same(name: str, value: object, shown: Mapping[str, object]) -> bool:
    if name == "compatibility":
        return str(value).upper() == shown.get(_LEVEL)
    shown_value = shown.get(name)
    return (None if value in _ABSENT else value) == (None if shown_value in _ABSENT else shown_value)


def _set_latest(
    subject: Subject, request: SchemaRequest, rules: Rules, state: State, limits: Limits
) -> Decision[Registered]:
    """Decide a registration whose schema must be the latest version afterwards.

    A plain registration would return an older version that holds the schema. The reference's way to add it again is to
    ask for version -1, which gives the metadata a `confluent:version`; so that way is taken only then.
    """
    request = request._replace(version=0, schema_id=None).under(limits)
    latest = state.latest(subject)
    if latest is None:
        return register(state, subject, request, rules)
    config = config_in_force(state, subject)
    completed = request._replace(rule_set=with_key_names(request.rule_set))
    normalize = rules.normalize or config.normalize
    candidate = parse_request(state, subject, completed, strict=False, normalize=normalize, new=False)
    # The latest version may be older than the defaults and overrides of the settings, which are for new versions.
    for contract in (_kept(completed, latest), merged_contract(completed, latest, config)):
        if equal_version(state, candidate.under(contract), [latest]):
            return Decision(Registered(latest, is_new=False))
    decision = register(state, subject, request, rules)
    if decision.answer.is_new or decision.answer.entry.version == latest.version:
        return decision
    return register(state, subject, request._replace(version=-1), rules)


def _kept(request: SchemaRequest, latest: SchemaVersion) -> Contract:
    """Return the contract of a request, completed by that of the latest version."""
    value = latest.schema.value
    metadata = value.metadata if request.metadata is None else request.metadata
    rule_set = value.rule_set if request.rule_set is None else request.rule_set
    return Contract(metadata or None, rule_set or None)
