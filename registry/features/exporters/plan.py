"""What a destination lacks, and the requests that it takes: deletions first, then versions in the order of references.

Rules of this file: pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strata.registry.features.exporters.choice import Choice, Place
from strata.registry.transfer.contents import changed_subjects
from strata.registry.transfer.copies import TransferError, copy_of_records
from strata.registry.transfer.rest_versions import Step, in_order
from strata.storage.log import Entry
from strata.storage.record_json import RecordError, decode_key, encode, is_tombstone
from strata.storage.records import (
    ClearSubjectKey,
    DeleteSubjectKey,
    SchemaKey,
    SchemaValue,
    Subject,
)
from strata.storage.state import State

__all__ = ["Held", "Plan", "Since", "held_after", "plan", "removed", "since"]

_COPIED = SchemaKey | DeleteSubjectKey | ClearSubjectKey


class Held(NamedTuple):
    """A version at the destination: the id and the text of its schema, and whether it is soft-deleted."""

    schema_id: int
    text: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do at the destination.

    Attributes:
        drops: versions to delete for good, those that may refer to others first.
        steps: versions to register and to soft-delete, in order.
        state: what the steps are about.
    """

    drops: Sequence[Place]
    steps: Sequence[Step]
    state: State

    def __bool__(self) -> bool:
        """Return whether there is anything to do."""
        return bool(self.drops or self.steps)


@dataclass(frozen=True, slots=True)
class Since:
    """What the log says about the time after an offset.

    Attributes:
        is_empty: whether nothing changed that exporters copy.
        gone: versions that were deleted for good, by their names at the destination; only of what is copied.
    """

    is_empty: bool
    gone: frozenset[Place] = frozenset()


def since(entries: Iterable[Entry], choice: Choice, wanted: Collection[Subject]) -> Since:
    """Return what the entries of a log after an offset say.

    Args:
        entries: the entries.
        choice: what is copied.
        wanted: the subjects that the destination must hold, by their names there.
    """
    is_empty, gone = True, set[Place]()
    for entry in entries:
        try:
            key = decode_key(entry.key)
        except RecordError:
            continue
        if not isinstance(key, _COPIED):
            continue
        name = choice.renamed(key.subject or "")
        # A subject that the exporter does not copy may have its name at the destination for another one's.
        if name not in wanted and not choice.chooses(key.subject or ""):
            continue
        is_empty = False
        if isinstance(key, SchemaKey) and is_tombstone(entry.value):
            gone.add((name, key.version))
    return Since(is_empty, frozenset(gone))


def removed(before: State, after: State, choice: Choice) -> frozenset[Place]:
    """Return the versions that went for good, or are another schema now, between two States, by their new names."""
    return frozenset(
        (choice.renamed(subject), version)
        for subject in changed_subjects(before, after)
        for version, entry in before.subjects.get(subject, {}).items()
        if (now := after.version(subject, version)) is None or now.schema.schema_id != entry.schema.schema_id
    )


def held_after(wanted: Mapping[Place, SchemaValue]) -> dict[Place, Held]:
    """Return what a destination holds once it has everything."""
    return {place: Held(value.schema_id, value.text, value.deleted) for place, value in wanted.items()}


def plan(wanted: Mapping[Place, SchemaValue], held: Mapping[Place, Held], gone: Collection[Place]) -> Plan:
    """Return what a destination needs.

    What the destination holds beyond that stays, unless it is known to have been deleted for good here: others may have
    written it. Registries write a schema in their own ways, so a version with the right id and another text is
    registered again: if it is the same schema, that changes nothing there.

    Args:
        wanted: what the destination must hold.
        held: what it holds.
        gone: versions that were deleted for good here, by their names at the destination.

    Raises:
        TransferError: if the destination has another schema in the place of one.
    """
    drops = [
        place
        for place, version in held.items()
        if place in gone and (place not in wanted or wanted[place].schema_id != version.schema_id)
    ]
    left = dict(held)
    for place in drops:
        del left[place]
    unregistered = {place for place, value in wanted.items() if _is_unregistered(value, left.get(place))}
    missing = unregistered | {
        place for place, version in left.items() if place in wanted and _is_to_go(wanted[place], version)
    }
    state = copy_of_records("", [encode(SchemaKey(*place), wanted[place]) for place in missing]).state
    steps = [step for step in in_order(state) if step[3] or (step[1], step[2]) in unregistered]
    return Plan(sorted(drops, key=lambda place: -held[place].schema_id), steps, state)


def _is_unregistered(value: SchemaValue, version: Held | None) -> bool:
    """Return whether a version has to be registered.

    Raises:
        TransferError: if the destination has another id in its place.
    """
    if version is None:
        return True
    if version.schema_id != value.schema_id:
        raise TransferError(
            f"the destination holds another schema as {value.subject} version {value.version}: id {version.schema_id}, "
            f"expected {value.schema_id}. Delete it there for good, or choose another context or name"
        )
    return not value.deleted and (version.deleted or version.text != value.text)


def _is_to_go(value: SchemaValue, held: Held) -> bool:
    return value.deleted and not held.deleted
