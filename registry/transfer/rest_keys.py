"""Encryption keys over REST: read from a running registry, and written to one.

Encrypted records are lost without their keys, so the keys are transferred like schemas. Plaintext keys, which a
registry shows for shared ones, and credentials are ignored. A registry reports the age of a key, but a target does not
accept it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from strata.http.paths import segment
from strata.registry.core.decide.deks import ALGORITHMS
from strata.registry.core.decide.keks import without_credentials
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.progress import track
from strata.registry.transfer.rest import THREADS, Connection, is_list, is_names, parsed
from strata.storage.log import Record
from strata.storage.record_json import encode, properties_of
from strata.storage.records import DekKey, DekValue, KekKey, KekValue, Subject
from strata.storage.state import State

__all__ = ["missing_keys", "read_keys", "write_keys"]

_KEKS = "/dek-registry/v1/keks"
_ALL = {"deleted": "true"}
# The path to call with what identifies the key, and the body.
Step = tuple[tuple[str, ...], dict[str, object]]


def read_keys(connection: Connection) -> Iterator[Record]:
    """Yield the keys of a registry, soft-deleted ones included, as records; nothing if it does not support keys.

    Raises:
        TransferError: if the registry does not respond, or with something other than keys.
    """
    names = connection.ask("GET", _KEKS, None, is_names, **_ALL)
    if not names.good:
        return
    for name in names.body:
        path = f"{_KEKS}/{segment(name)}"
        body = connection.get(path, **_ALL)
        key, value = parsed(connection.name, KekKey, KekValue, body, lambda body: {"createTs": body.get("ts")})
        yield encode(key, replace(value, kms_props=without_credentials(value.kms_props)))
        for subject in connection.get(f"{path}/deks", is_names, **_ALL):
            yield from _deks(connection, name, subject)


def missing_keys(state: State, held: State, name: str) -> list[Step]:
    """Return the requests that give a registry the keys that it lacks.

    Args:
        state: the State to copy.
        held: the State of the target.
        name: the name of the target, for error messages.

    Raises:
        TransferError: if the target has a different key in the place of one.
    """
    known = dict(_steps(held))
    for place, body in (steps := list(_steps(state))):
        if known.get(place, body) != body:
            raise TransferError(
                f"{name} is not empty: its key {place[0]} {body} differs from that of the source. Nothing was written; "
                "migrate into an empty registry"
            )
    return [step for step in steps if step[0] not in known]


def write_keys(steps: Sequence[Step], target: Connection) -> None:
    """Send the requests that create keys.

    Raises:
        TransferError: if the registry rejects one.
    """
    for (path, *_), body in track(f"keys for {target.name}", steps):
        target.must("POST", path, body)


def _deks(connection: Connection, kek: str, subject: str) -> Iterator[Record]:
    path = f"{_KEKS}/{segment(kek)}/deks/{segment(subject)}/versions"
    keys = [
        DekKey(kek, Subject(subject), algorithm, int(version))
        for algorithm in ALGORITHMS
        for version in connection.get(path, is_list, algorithm=algorithm, **_ALL)
    ]

    def record(key: DekKey) -> Record:
        body = connection.get(f"{path}/{key.version}", algorithm=key.algorithm, **_ALL)
        _, value = parsed(connection.name, DekKey, DekValue, body, lambda body: {"createTs": body.get("ts")})
        if value.material is None:
            raise TransferError(f"{connection.name} returned a data encryption key without encryptedKeyMaterial")
        return encode(key, value)

    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(record, keys)


def _steps(state: State) -> Iterator[Step]:
    """Yield the requests that create the keys of a State, KEKs first."""
    keys = state.encryption_keys
    for name, kek in sorted(keys.keks.items()):
        yield (_KEKS, name), _body({"name": name}, kek)
    for name, series in sorted(keys.deks.items()):
        for (subject, algorithm), versions in sorted(series.items()):
            for number, dek in sorted(versions.items()):
                path = f"{_KEKS}/{segment(name)}/deks/{segment(subject)}"
                body = _body({"subject": subject, "version": number, "algorithm": algorithm}, dek)
                yield (path, algorithm, str(number)), body


def _body(key: dict[str, object], value: KekValue | DekValue) -> dict[str, object]:
    return key | {name: property_ for name, property_ in properties_of(value).items() if name != "createTs"}
