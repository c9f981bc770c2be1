"""Writes versions into a running registry in mode IMPORT, with their ids and numbers, in an order that it accepts."""

import heapq
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from strata.http.paths import segment
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import Connection, is_object
from strata.storage.record_json import properties_of
from strata.storage.records import context_of, qualified
from strata.storage.state import SchemaVersion, State

__all__ = ["Step", "in_order", "take"]

_POSTED = ("schema", "schemaType", "references", "metadata", "ruleSet", "id", "version")
_ALREADY_DELETED = (40401, 40404, 40406)
# (id, subject, version, 0 to register or 1 to soft-delete), which sorts in the order of registration.
Step = tuple[int, str, int, int]


def in_order(state: State) -> Iterator[Step]:
    """Yield the steps that build a State, each after the steps that it needs.

    A version needs those that it refers to. A soft-deleted version is deleted after its soft-deleted referrers, before
    its live referrers are registered, and before the same schema is registered again in its subject.
    """
    entries = [entry for versions in state.subjects.values() for entry in versions.values()]
    register: dict[tuple[str, int], Step] = {
        (entry.subject, entry.version): (entry.schema.schema_id, entry.subject, entry.version, 0) for entry in entries
    }
    graph: TopologicalSorter[Step] = TopologicalSorter(dict.fromkeys(register.values(), ()))
    for entry in entries:
        step = register[entry.subject, entry.version]
        if entry.deleted:
            graph.add((*step[:3], 1), step)
        for reference in entry.schema.value.references:
            place = qualified(reference.subject, context_of(entry.subject)), reference.version
            target = state.version(*place)
            if target is None or place == (entry.subject, entry.version):
                continue
            needed = register[target.subject, target.version]
            graph.add(step, needed)
            if target.deleted and entry.deleted:
                graph.add((*needed[:3], 1), (*step[:3], 1))
            elif target.deleted:
                graph.add(step, (*needed[:3], 1))
        for other in state.versions(entry.subject, include_deleted=True):
            if other.version < entry.version and other.schema.schema_id == step[0] and other.deleted:
                graph.add(step, (*register[other.subject, other.version][:3], 1))
    try:
        graph.prepare()
    except CycleError as error:
        raise TransferError(f"the references of the source form a cycle: {error.args[1]}") from None
    ready = list(graph.get_ready())
    heapq.heapify(ready)
    while ready:
        step = heapq.heappop(ready)
        yield step
        graph.done(step)
        for follower in graph.get_ready():
            heapq.heappush(ready, follower)


def take(target: Connection, state: State, step: Step) -> None:
    """Carry out a step in a registry.

    Raises:
        TransferError: if the registry rejects it.
    """
    schema_id, subject, version, deletes = step
    path = f"/subjects/{segment(subject)}/versions"
    if deletes:
        answer = target.ask("DELETE", f"{path}/{version}")
        if not answer.good and answer.code not in _ALREADY_DELETED:
            raise TransferError(
                f"{target.name} did not soft-delete {subject!r} version {version}: {answer.message} "
                f"(error {answer.code})"
            )
        return
    entry = state.version(subject, version)
    assert entry  # noqa: S101 - the steps come from this State
    placed = target.must("POST", path, _body(entry), is_object)
    if placed.get("id") != schema_id or placed.get("version", version) != version:
        raise TransferError(
            f"{target.name} registered {subject!r} under {placed}; expected version {version}, id {schema_id}"
        )


def _body(entry: SchemaVersion) -> dict[str, object]:
    content = properties_of(entry.schema.value) | {"id": entry.schema.schema_id, "version": entry.version}
    return {name: content[name] for name in _POSTED if content.get(name)}
