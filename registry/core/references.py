"""Resolves the references of a schema: depth first, each version once, within limits.

A new schema may refer to live versions only, and -1 means the latest one; stored and imported schemas keep the
references that they have.
"""

from collections.abc import Sequence
from dataclasses import replace

from strata.compat.limits import Limits
from strata.compat.schema import ResolvedReference
from strata.registry.core import errors
from strata.registry.core.lookup import LATEST
from strata.storage.records import Reference, Subject, context_of, qualified
from strata.storage.state import SchemaVersion, State

__all__ = ["check_not_owned", "pinned", "resolved"]

_MAX_DEPTH = 100


def pinned(
    state: State, subject: str, references: Sequence[Reference], limits: Limits, *, include_deleted: bool
) -> tuple[Reference, ...]:
    """Return a request's references with -1 replaced by the latest version's number.

    Args:
        state: the State to search.
        subject: the subject, whose context plain references belong to.
        references: the references of the request.
        limits: the limit on their number.
        include_deleted: whether they may refer to soft-deleted versions.

    Raises:
        RegistryError: 42201 if a version does not exist or is soft-deleted, or if there are too many references.
    """
    if len(references) > limits.references:
        raise errors.invalid_schema(f"{len(references)} references, more than the {limits.references} allowed")
    versioned = []
    for reference in references:
        target = qualified(reference.subject, context_of(subject))
        entry = state.latest(target) if reference.version == LATEST else state.version(target, reference.version)
        if entry is None or (entry.deleted and not include_deleted):
            raise errors.no_such_reference(reference.subject, reference.version)
        versioned.append(replace(reference, version=entry.version))
    return tuple(versioned)


def check_not_owned(state: State, subject: str, references: Sequence[Reference]) -> None:
    """Reject references to a subject with a STRONG association, which is deleted together with its resource.

    Raises:
        RegistryError: 42205 if there is such a reference.
    """
    for reference in references:
        target = Subject(qualified(reference.subject, context_of(subject)))
        if target != subject and any(a.value.lifecycle == "STRONG" for a in state.associations.of_subject(target)):
            raise errors.strongly_associated(target)


def resolved(
    state: State, subject: str, references: Sequence[Reference], limits: Limits, *, one_place_a_name: bool = False
) -> tuple[ResolvedReference, ...]:
    """Return all schemas that references lead to, directly or not, dependencies first.

    Args:
        state: the State to search.
        subject: the subject, whose context plain references belong to.
        references: the references, with version numbers.
        limits: the limit on the number of schemas.
        one_place_a_name: whether a name may refer to one version only.

    Raises:
        RegistryError: 42201 if a version does not exist, or for a cycle, too many references, or (with
            `one_place_a_name`) a name that refers to two versions.
    """
    if not references:
        return ()
    walk = _Walk(state, limits, one_place_a_name)
    for reference in references:
        walk.follow(_target(state, subject, reference), reference.name, ())
    return tuple(walk.resolved.values())


class _Walk:
    """A walk over references; a nested function that calls itself would keep the State alive until a collection."""

    def __init__(self, state: State, limits: Limits, one_place_a_name: bool) -> None:
        self._state, self._limits, self._one_place_a_name = state, limits, one_place_a_name
        self._places: dict[str, tuple[str, int]] = {}
        self.resolved: dict[tuple[str, int], ResolvedReference] = {}

    def follow(self, entry: SchemaVersion, name: str, around: tuple[tuple[str, int], ...]) -> None:
        """Find a version, after those that it refers to; `around` has the versions that led to it."""
        place = (entry.subject, entry.version)
        first = self._places.setdefault(name, place)
        if first != place and self._one_place_a_name:
            raise errors.invalid_schema(
                f"The reference name {name!r} stands for {first[0]} version {first[1]} "
                f"and for {place[0]} version {place[1]}; give each version a name of its own"
            )
        most = self._limits.references
        if place in around or len(around) >= _MAX_DEPTH or len(self.resolved) >= most:
            raise errors.invalid_schema(
                f"The references of subject {entry.subject} version {entry.version} form a cycle, "
                f"are nested more than {_MAX_DEPTH} deep, or lead to more than {most} schemas"
            )
        if place in self.resolved:
            return
        for inner in entry.schema.value.references:
            self.follow(_target(self._state, entry.subject, inner), inner.name, (*around, place))
        self.resolved[place] = ResolvedReference(name, entry.schema.text, f"{entry.subject} {entry.version}")


def _target(state: State, subject: str, reference: Reference) -> SchemaVersion:
    entry = state.version(qualified(reference.subject, context_of(subject)), reference.version)
    if entry is None:
        raise errors.no_such_reference(reference.subject, reference.version)
    return entry
