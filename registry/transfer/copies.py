"""A whole registry as a value: its live records, and the State that results from them.

The live records are those that compaction leaves: the newest record of each key in log order, without tombstones. They
include record kinds that State does not know, byte for byte.

Rules of this file: pure. Entries in, a Copy out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from strata.registry.core.decide.exporters import at_rest, is_credential
from strata.registry.transfer.facts import facts_of, is_unknown
from strata.storage.log import START, Entry, Record
from strata.storage.record_json import RecordError, decode_key, encode
from strata.storage.records import ExporterKey, ExportKey, HighWaterKey, LoweredKey, StandbyKey
from strata.storage.state import State

__all__ = ["Copy", "TransferError", "copy_of_entries", "copy_of_records", "missing_marks"]

_CHUNK = 1000  # State remembers this many rejections


class TransferError(Exception):
    """A transfer that cannot be done; the message says why, and what would help."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A registry as read from one place.

    Attributes:
        source: the place, without a password.
        end: the offset of the log's last record; `START` if it was not read from a log.
        records: the live records in order, with unique keys.
        state: the State that results from the records.
        served_guids: the GUIDs that a service reported, by subject and version.
        over_rest: whether it was read from a service, which shows defaults as if they were set.
        unlisted: the kinds of facts that the source does not list.
        notes: remarks for the user.
    """

    source: str
    end: int
    records: tuple[Record, ...]
    state: State
    served_guids: Mapping[tuple[str, int], str] = field(default_factory=dict)
    over_rest: bool = False
    unlisted: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """Return the numbers of records, subjects, versions and contexts."""
        versions = sum(len(versions) for versions in self.state.subjects.values())
        return {
            "records": len(self.records),
            "subjects": len(self.state.subjects),
            "versions": versions,
            "contexts": len(self.state.contexts),
        }


def copy_of_entries(source: str, entries: Iterable[Entry]) -> Copy:
    """Return a copy of the live records of a log.

    Args:
        source: the name of the log.
        entries: all entries of the log, in order.

    Raises:
        TransferError: if the live records give another State than the whole log.
    """
    state, newest = State(), dict[bytes, Entry]()
    left_out = 0
    for chunk in _chunks(entries):
        state = state.apply_all(chunk)
        refused = {item.offset for item in state.set_aside if item.offset >= chunk[0].offset}
        for entry in chunk:
            # A record that State rejected must not replace the accepted one under the same key.
            if entry.key is None or (entry.offset in refused and not is_unknown(entry.key)):
                left_out += 1
                continue
            newest.pop(entry.key, None)
            newest[entry.key] = entry
    # Content only: a restored backup of a standby is a registry of its own, and one of a registry with exporters must
    # not write to their destinations before a client resumes it. A highest id that was lowered is kept as it is now.
    kept = (
        _kept(Record(key, entry.value, entry.timestamp), state)
        for key, entry in newest.items()
        if entry.value is not None
    )
    records = [record for record in kept if not _is_of_one_log(record.key, state)]
    records += missing_marks(state, copy_of_records(source, records).state, state.contexts)
    notes = (f"left out {left_out} invalid records, which registries ignore",) if left_out else ()
    notes = (*notes, *_exporters(state))
    copy = replace(copy_of_records(source, records), end=state.offset, notes=notes)
    if facts_of(copy.state, copy.records, {}) != facts_of(state, copy.records, {}):
        raise TransferError(
            f"{source}: the newest records of all keys give another state than the whole log; this log cannot be copied"
        )
    return copy


def _is_of_one_log(data: bytes, state: State) -> bool:
    try:
        key = decode_key(data)
    except RecordError:
        return False
    if isinstance(key, HighWaterKey):
        return key.context in state.lowered
    return isinstance(key, StandbyKey | ExportKey | LoweredKey)


def _kept(record: Record, state: State) -> Record:
    """Return a record as a copy holds it: an exporter paused and without credentials."""
    try:
        key = decode_key(record.key)
    except RecordError:
        return record
    if isinstance(key, ExporterKey) and key.name in state.exporters:
        return encode(key, at_rest(state.exporters[key.name]))
    return record


def _exporters(state: State) -> Iterator[str]:
    """Yield a remark on each exporter that a copy holds in another way than the log."""
    for name, exporter in sorted(state.exporters.items()):
        credentials = sorted(filter(is_credential, exporter.config))
        differs = [*([] if exporter.paused else ["paused"]), *(f"without {credential}" for credential in credentials)]
        if differs:
            yield f"exporter {name}: a copy holds it {' and '.join(differs)}"


def copy_of_records(source: str, records: Sequence[Record]) -> Copy:
    """Return a copy of records, read as a log."""
    entries = (Entry(offset, record.timestamp or 0, record.key, record.value) for offset, record in enumerate(records))
    return Copy(source, START, tuple(records), State().apply_all(entries))


def missing_marks(whole: State, compacted: State, contexts: Iterable[str]) -> Iterator[Record]:
    """Yield high-water records for contexts whose highest id is known only from records that are gone.

    Args:
        whole: the State of all records.
        compacted: the State of the remaining records.
        contexts: the contexts to check.
    """
    for name in sorted(contexts):
        highest = whole.context(name).high_water
        if highest > compacted.context(name).high_water:
            yield encode(HighWaterKey(name), highest)


def _chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    rest = iter(entries)
    while chunk := list(islice(rest, _CHUNK)):
        yield chunk
