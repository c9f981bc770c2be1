"""Associations over REST: read from a running registry, and written to one.

A target assigns its own GUIDs. A STRONG association is frozen and can be written because its subject is in mode IMPORT.
The target rejects a STRONG association that is not frozen, which older registries allowed.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from operator import itemgetter

from strata.http.paths import segment
from strata.registry.transfer.progress import track
from strata.registry.transfer.rest import THREADS, Connection, is_list, parsed
from strata.storage.log import Record
from strata.storage.record_json import encode, properties_of
from strata.storage.records import AssociationKey, AssociationValue
from strata.storage.state import State

__all__ = ["read_associations", "write_associations"]

_RESOURCE = ("resourceName", "resourceNamespace", "resourceId", "resourceType")
_ASSOCIATION = ("subject", "associationType", "lifecycle", "frozen")


_EVERY, _PAGE = "/associations/resources/-/-", 1000


def read_associations(connection: Connection, subjects: Sequence[str], *, at_once: bool = False) -> list[Record] | None:
    """Return the associations of subjects as records; None if the registry does not support associations.

    Args:
        connection: the connection to the registry.
        subjects: the subjects.
        at_once: whether the registry lists those of all subjects, as Strata does.

    Raises:
        TransferError: if the registry does not respond, or with something other than associations.
    """

    def of(subject: str) -> list[Mapping[str, object]] | None:
        answer = connection.ask("GET", f"/associations/subjects/{segment(subject)}", None, is_list)
        return list(answer.body) if answer.good else None

    if at_once:
        return [_record(body, connection) for body in _every(connection)]
    if not subjects or of(subjects[0]) is None:
        return None
    with ThreadPoolExecutor(THREADS) as pool:
        answers = track(f"reading {connection.name}, associations", pool.map(of, subjects), len(subjects))
        return [_record(body, connection) for bodies in answers for body in bodies or ()]


def _every(connection: Connection) -> Iterator[Mapping[str, object]]:
    offset = 0
    while page := connection.get(_EVERY, is_list, offset=offset, limit=_PAGE):
        yield from page
        offset += len(page)


def write_associations(state: State, held: State, target: Connection) -> None:
    """Write the associations of a State that a registry lacks.

    Args:
        state: the State to copy.
        held: the State of the target.
        target: the connection to the target.

    Raises:
        TransferError: if the registry rejects one.
    """
    contents = [
        properties_of(key) | properties_of(association.value)
        for key, association in state.associations.by_key.items()
        if not _is_held(held, key, association.value)
    ]
    of_resource = itemgetter(*_RESOURCE)
    groups = [list(group) for _, group in groupby(sorted(contents, key=of_resource), of_resource)]
    for group in track(f"associations in {target.name}", groups):
        body = {name: group[0][name] for name in _RESOURCE}
        body["associations"] = [{name: properties[name] for name in _ASSOCIATION} for properties in group]
        target.must("PUT", f"/associations/resources/{segment(str(body['resourceId']))}", body)


def _is_held(held: State, key: AssociationKey, value: AssociationValue) -> bool:
    association = held.associations.by_key.get(key)
    return association is not None and (association.value.resource_id, association.value.lifecycle) == (
        value.resource_id,
        value.lifecycle,
    )


def _record(body: Mapping[str, object], connection: Connection) -> Record:
    def known(body: Mapping[str, object]) -> Mapping[str, object]:
        frozen = body.get("frozen", body.get("lifecycle") == "STRONG")
        return {"subject": str(body["subject"]).removeprefix(":.:"), "frozen": frozen}

    return encode(*parsed(connection.name, AssociationKey, AssociationValue, body, known))
