"""Associations over REST: read from a running registry, and written to one.

A target assigns its own GUIDs. A STRONG association is frozen and can be written because its subject is in mode IMPORT.
The target rejects a STRONG association that is not frozen, which older registries allowed.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.progress import track
from strata.registry.transfer.rest import THREADS, Connection, segment
from strata.storage.associations import Association
from strata.storage.log import Record
from strata.storage.record_json import encode
from strata.storage.records import AssociationKey, AssociationValue, Subject
from strata.storage.state import State

__all__ = ["read_associations", "write_associations"]

Resource = tuple[str, str, str, str]


def read_associations(connection: Connection, subjects: Sequence[str]) -> list[Record] | None:
    """Return the associations of subjects as records; None if the registry does not support associations.

    Raises:
        TransferError: if the registry does not respond, or with something else than associations.
    """

    def of(subject: str) -> list[Mapping[str, Any]] | None:
        answer = connection.ask("GET", f"/associations/subjects/{segment(subject)}")
        return list(answer.body) if answer.good else None

    if not subjects or of(subjects[0]) is None:
        return None
    with ThreadPoolExecutor(THREADS) as pool:
        found = track(f"reading {connection.name}, associations", pool.map(of, subjects), len(subjects))
        return [_record(body, connection) for bodies in found for body in bodies or ()]


def write_associations(state: State, held: State, target: Connection) -> None:
    """Write the associations of a State that a registry lacks.

    Args:
        state: the State to copy.
        held: the State of the target.
        target: the connection to the target.

    Raises:
        TransferError: if the registry rejects one.
    """
    wanted = [one for key, one in sorted(state.associations.by_key.items()) if not _is_held(held, key, one.value)]
    for (name, namespace, resource_id, kind), group in track(f"associations in {target.name}", list(_grouped(wanted))):
        body = {
            "resourceName": name,
            "resourceNamespace": namespace,
            "resourceId": resource_id,
            "resourceType": kind,
            "associations": [
                {
                    "subject": one.key.subject,
                    "associationType": one.key.association_type,
                    "lifecycle": one.value.lifecycle,
                    "frozen": one.value.frozen,
                }
                for one in group
            ],
        }
        target.must("PUT", f"/associations/resources/{segment(resource_id)}", body)


def _is_held(held: State, key: AssociationKey, value: AssociationValue) -> bool:
    found = held.associations.by_key.get(key)
    return found is not None and (found.value.resource_id, found.value.lifecycle) == (
        value.resource_id,
        value.lifecycle,
    )


def _grouped(associations: Sequence[Association]) -> Iterator[tuple[Resource, list[Association]]]:
    def resource(one: Association) -> Resource:
        return one.key.resource_name, one.key.resource_namespace, one.value.resource_id, one.key.resource_type

    for key, group in groupby(sorted(associations, key=resource), resource):
        yield key, list(group)


def _record(body: Mapping[str, Any], connection: Connection) -> Record:
    try:
        key = AssociationKey(
            body["resourceNamespace"],
            body["resourceName"],
            body["resourceType"],
            body["associationType"],
            Subject(body["subject"].removeprefix(":.:")),
        )
        created = body.get("createTs") or 0
        frozen = body.get("frozen", body.get("lifecycle") == "STRONG") is True
        value = AssociationValue(body.get("guid") or "", body["resourceId"], body["lifecycle"], frozen, created)
    except (AttributeError, KeyError, TypeError):
        raise TransferError(f"{connection.name} returned an invalid association: {body}") from None
    return encode(key, value)
