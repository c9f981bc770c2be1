"""Registries with one planted bug each, which the harness must find.

Each mutant replaces a function or two in every node, once it has forked (`nursery.py`); the harness reads the log with
the real code. `python -m faults.trials` runs all mutants.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from strata.registry.api import schemas as schema_routes
from strata.registry.core import errors
from strata.registry.core.decide import delete, register
from strata.registry.core.effective_settings import Mode
from strata.registry.core.rights.request_access import Access
from strata.registry.core.writer import Writer
from strata.registry.http import forward
from strata.registry.http.forward import Forward
from strata.registry.http.pipeline import Pipeline
from strata.storage.associations import Associations
from strata.storage.encryption_keys import EncryptionKeys
from strata.storage.fold import Fold
from strata.storage.kafka import cursor, writers
from strata.storage.kafka.leader import Leader
from strata.storage.kafka.log import KafkaLog
from strata.storage.kafka.writers import Signatures
from strata.storage.lease import ReadLease
from strata.storage.log import START, Conflict, Entry, LogError
from strata.storage.sql import compaction, tables
from strata.storage.sql.log import SqlLog
from strata.storage.sql.sqlite_probe import SqliteProbe
from strata.storage.state import State

__all__ = ["BEFORE_LEASES", "MUTANTS", "Mutant", "apply"]

BEFORE_LEASES = "before-leases"
"""A registry that is not broken: one of a version that knows no read leases."""

_STALE_S = 0.1
_LATE_S = 0.05
_Make = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug: what it breaks, the logs on which it matters, and a function that plants it.

    `access` says whether only nodes with access control have it, `lease` whether it is sought among nodes with read
    leases, by the faults that aim at them, and `older` whether one of those is of a version without leases.
    `stops_writes` says whether a node that accepts no write shows the bug.
    """

    breaks: str
    logs: tuple[str, ...]
    apply: Callable[[], None]
    access: bool = False
    lease: bool = False
    older: bool = False
    stops_writes: bool = False


def apply(name: str) -> None:
    """Plant a bug in the registry of this process, or make it one of an older version.

    Raises:
        KeyError: there is no such mutant.
    """
    if name == BEFORE_LEASES:
        _know_no_leases()
    else:
        MUTANTS[name].apply()


def _swap(owner: Any, name: str, make: _Make) -> None:
    """Replace an existing attribute with the result of `make`."""
    setattr(owner, name, make(getattr(owner, name)))


def _nothing(_original: Any) -> Any:
    return lambda *_, **__: None


def _false(_original: Any) -> Any:
    return property(lambda _: False)


# --- the log


def _append_at_the_end() -> None:
    def make(original: Any) -> Any:
        def append(self: Any, after: int, records: Any) -> Any:
            while True:
                try:
                    return original(self, after, records)
                except Conflict:
                    after = self.end()

        return append

    _swap(SqlLog, "append", make)


def _append_later() -> None:
    def make(original: Any) -> Any:
        def append(self: Any, after: int, records: Any) -> Any:
            threading.Timer(_LATE_S, original, (self, after, records)).start()
            return _pretended_entries(after, records)

        return append

    _swap(SqlLog, "append", make)


def _acknowledge_failures() -> None:
    def make(original: Any) -> Any:
        def append(self: Any, after: int, records: Any) -> Any:
            try:
                return original(self, after, records)
            except LogError:
                return _pretended_entries(after, records)

        return append

    _swap(SqlLog, "append", make)
    _swap(KafkaLog, "append", make)


def _pretended_entries(after: int, records: Any) -> list[Entry]:
    now = time.time_ns() // 1_000_000
    return [Entry(offset, now, record.key, record.value) for offset, record in enumerate(records, after + 1)]


def _append_in_pieces() -> None:
    def make(original: Any) -> Any:
        def append(self: Any, after: int, records: Any) -> Any:
            done: list[Entry] = []
            for record in records:
                done += original(self, done[-1].offset if done else after, [record])
            return done

        return append

    _swap(SqlLog, "append", make)


def _leave_probe_in_transaction() -> None:
    def make(original: Any) -> Any:
        def opened(self: Any) -> Any:
            connection = original(self)
            if not connection.in_transaction:
                connection.execute("BEGIN")
            return connection

        return opened

    _swap(SqliteProbe, "_opened", make)


def _drop_tombstones_at_start() -> None:
    def make(original: Any) -> Any:
        def read(self: Any, after: int) -> Any:
            return (entry for entry in original(self, after) if after != START or entry.value is not None)

        return read

    _swap(SqlLog, "read", make)


def _open_without_fencing() -> None:
    from strata.registry.node import log_opening
    from strata.storage.kafka.fencing import Fencing

    def make(original: Any) -> Any:
        return lambda *args, **options: original(*args, **{**options, "fencing": Fencing.NONE})

    _swap(log_opening, "open_log", make)


def _read_uncommitted() -> None:
    def make(original: Any) -> Any:
        return lambda config: original({**config, "isolation.level": "read_uncommitted"})

    _swap(cursor, "Consumer", make)


def _compact_one_more() -> None:
    def make(original: Any) -> Any:
        def plan(read: Any, *args: Any, **options: Any) -> Any:
            chosen = original(read, *args, **options)
            live = (e.offset for e in read() if e.offset not in chosen.dropped and b'"SCHEMA"' in (e.key or b""))
            return replace(chosen, dropped=chosen.dropped | {next(live, START)})

        return plan

    _swap(compaction, "plan_compaction", make)


# --- the writer and its reads


def _skip_catch_up() -> None:
    def make(_original: Any) -> Any:
        async def catch_up(self: Any) -> Any:
            return self.state

        return catch_up

    _swap(Writer, "catch_up", make)


def _join_running_read() -> None:
    def make(original: Any) -> Any:
        async def catch_up(self: Any) -> Any:
            if self._reading is None or self._reading.done():
                return await original(self)
            await asyncio.wait([self._reading])
            return self.state

        return catch_up

    _swap(Writer, "catch_up", make)


def _join_sent_question() -> None:
    def make_send(original: Any) -> Any:
        def send(self: Any, link: Any) -> None:
            self.sent = self._callers[0] if self._callers else None
            original(self, link)

        return send

    def make_end(original: Any) -> Any:
        def end(self: Any) -> Any:
            sent = getattr(self, "sent", None)
            return original(self) if sent is None or sent.done() else asyncio.shield(sent)

        return end

    _swap(Leader, "_send", make_send)
    _swap(Leader, "end", make_end)


def _after_replay(change: Callable[[State], State]) -> None:
    def make(original: Any) -> Any:
        def replay(self: Any) -> None:
            original(self)
            self.state = change(self.state)

        return replay

    _swap(Writer, "replay", make)


def _forget_ids(state: State) -> State:
    contexts = state.contexts
    for name, context in contexts.items():
        contexts = contexts.set(name, replace(context, high_water=max(context.schemas, default=0)))
    return replace(state, contexts=contexts)


def _report_not_written() -> None:
    _swap(errors, "write_forwarding_failed", lambda _: lambda *_args: errors.not_written("it was not passed on"))


def _repeat_forwarded_write() -> None:
    def make(original: Any) -> Any:
        async def answered(self: Any, *args: Any) -> Any:
            try:
                return await original(self, *args)
            except errors.RegistryError:
                return None

        return answered

    _swap(Forward, "_ask_holder", make)


def _keep_answers(layer: type, cache: str) -> None:
    def make(original: Any) -> Any:
        def create(self: Any, *args: Any, **options: Any) -> None:
            original(self, *args, **options)
            getattr(self, cache)._current = lambda: 0

        return create

    _swap(layer, "__init__", make)


# --- decisions


def _check_against_old_state() -> None:
    seen: dict[str, tuple[float, State]] = {}

    def make(original: Any) -> Any:
        def check(state: State, subject: str, *args: Any) -> None:
            since, stale = seen.get(subject, (0.0, state))
            if time.monotonic() - since > _STALE_S:
                seen[subject] = time.monotonic(), state
                stale = state
            original(stale, subject, *args)

        return check

    _swap(register, "_check", make)


def _keep_ids_of_deleted_schemas() -> None:
    def make(original: Any) -> Any:
        known: dict[tuple[int, str], Any] = {}

        def schema_by_id(state: State, schema_id: int, subject: str) -> Any:
            found = original(state, schema_id, subject)
            if found:
                known[schema_id, subject] = found
            return found or known.get((schema_id, subject))

        return schema_by_id

    _swap(schema_routes, "schema_by_id", make)


def _count_live_versions() -> None:
    def make(_original: Any) -> Any:
        return lambda self, subject: len(self.versions(subject, include_deleted=False)) + 1

    _swap(State, "next_version", make)


def _show_deleted() -> None:
    _swap(State, "latest", lambda original: lambda self, subject, **_: original(self, subject, include_deleted=True))


def _check_once(_original: Any) -> Any:
    async def reconsider(_access: Any, check: Callable[[], None], _newest: Any) -> None:
        check()

    return reconsider


def _name_an_older_holder() -> None:
    def has_pen(self: Any) -> bool:
        return self._pen is not None and self._pen.usable and self._signatures.newest <= self._pen_offset

    def await_signature(self: Any) -> None:
        after, ends = max(self._signatures.newest, self._pen_offset), time.monotonic() + 1.0
        with suppress(LogError):
            while self.holder() is None and time.monotonic() < ends:
                for entry in self._reader.entries(after, self._end.now(ends)):
                    after = entry.offset

    async def never(_writer: Any) -> None:
        pass

    _swap(Signatures, "sign", _nothing)
    _swap(KafkaLog, "_has_pen", lambda _: has_pen)
    _swap(KafkaLog, "_await_signature", lambda _: await_signature)
    _swap(Writer, "try_again", lambda _: never)
    _swap(forward, "_REFUSED_S", lambda _: 0.0)


# --- read leases


def _know_no_leases() -> None:
    """Sign without a length, wait for no lease, and release none, as all commits before leases did."""

    def make(original: Any) -> Any:
        def headers(self: Any, lease_ms: int) -> dict[str, bytes]:
            return {name: value for name, value in original(self, lease_ms).items() if name != "strata-lease"}

        return headers

    _swap(Signatures, "headers", make)
    _swap(KafkaLog, "_wait_for_leases", _nothing)
    _swap(KafkaLog, "_release", _nothing)
    _swap(ReadLease, "grant", _nothing)


def _wait_before_acknowledgement() -> None:
    def make_wait(_original: Any) -> Any:
        def wait(self: Any, ends: float) -> None:
            self.leases_end = ends

        return wait

    def make_append(original: Any) -> Any:
        def append(self: Any, *args: Any) -> Any:
            written = original(self, *args)
            time.sleep(max(0.0, getattr(self, "leases_end", 0.0) - time.monotonic()))
            return written

        return append

    _swap(KafkaLog, "_wait_for_leases", make_wait)
    _swap(KafkaLog, "append", make_append)


def _lease_from_receipt() -> None:
    def make(original: Any) -> Any:
        def grant(self: Any, log: int, offset: int, *, asked: float, revocations: int) -> bool:
            asked = max(asked, self.now())
            return bool(original(self, log, offset, asked=asked, revocations=revocations))

        return grant

    _swap(ReadLease, "grant", make)


def _lease_without_pen() -> None:
    def make(_original: Any) -> Any:
        return lambda self: self._lease.seconds > 0 and not self._unsettled

    _swap(KafkaLog, "_may_lease", make)


_ANY, _SQL = ("sqlite", "kafka"), ("sqlite", "postgres")
_SQLITE, _POSTGRES, _KAFKA = ("sqlite",), ("postgres",), ("kafka",)
MUTANTS: Mapping[str, Mutant] = {
    "fencing-off": Mutant("two nodes may write to the topic at once", _KAFKA, _open_without_fencing),
    "offsets-not-checked": Mutant(
        "an append ignores records that another writer put before it",
        _KAFKA,
        lambda: _swap(KafkaLog, "_check_offsets", _nothing),
    ),
    "older-holder-named": Mutant(
        "a node whose own producers failed names an older holder of the pen",
        _KAFKA,
        _name_an_older_holder,
        stops_writes=True,
    ),
    "reads-uncommitted": Mutant("records of aborted transactions are read", _KAFKA, _read_uncommitted),
    "forwarded-write-done-twice": Mutant(
        "a forwarded write with an unknown outcome is repeated locally", _KAFKA, _repeat_forwarded_write
    ),
    "conflict-ignored": Mutant("an append decided on an old State is written", _SQLITE, _append_at_the_end),
    "acknowledged-before-append": Mutant("a write is acknowledged before its append ends", _SQLITE, _append_later),
    "failed-append-acknowledged": Mutant("a failed append is acknowledged", _SQL, _acknowledge_failures),
    "append-in-pieces": Mutant("a crash leaves only some records of a request", _SQLITE, _append_in_pieces),
    "own-append-not-recognized": Mutant(
        "an append whose answer was lost is repeated", _POSTGRES, lambda: _swap(tables, "has_landed", _nothing)
    ),
    "catch-up-skipped": Mutant("reads miss the writes of other nodes", _ANY, _skip_catch_up),
    "probe-sees-the-past": Mutant(
        "a read trusts a probe of the log that misses later appends", _SQLITE, _leave_probe_in_transaction
    ),
    "catch-up-joined-late": Mutant("a read reuses a log read that began before it", _POSTGRES, _join_running_read),
    "question-joined-late": Mutant(
        "a read uses the answer to a question that was sent before it", _KAFKA, _join_sent_question, lease=True
    ),
    "lease-not-waited-for": Mutant(
        "a new holder of the pen commits while the one before may answer from memory",
        _KAFKA,
        lambda: _swap(KafkaLog, "_wait_for_leases", _nothing),
        lease=True,
    ),
    "lease-waited-for-too-late": Mutant(
        "a new holder waits for leases between commit and acknowledgement",
        _KAFKA,
        _wait_before_acknowledgement,
        lease=True,
    ),
    "lease-from-receipt": Mutant(
        "a lease begins when the answer arrives, not when the question was asked",
        _KAFKA,
        _lease_from_receipt,
        lease=True,
    ),
    "lease-during-commit": Mutant(
        "a holder answers from memory while its own commit becomes readable",
        _KAFKA,
        lambda: _swap(ReadLease, "revoke", _nothing),
        lease=True,
    ),
    "lease-without-pen": Mutant(
        "a node that does not hold the pen answers from memory", _KAFKA, _lease_without_pen, lease=True
    ),
    "older-version-overlooked": Mutant(
        "a node has leases though it has read the signature of a version that does not wait for them",
        _KAFKA,
        lambda: _swap(writers, "suspend_lease", _nothing),
        lease=True,
        older=True,
    ),
    "says-nothing-was-written": Mutant(
        "a write with an unknown outcome is reported as not written", _KAFKA, _report_not_written
    ),
    "deletion-not-applied": Mutant(
        "soft deletions of a subject change nothing", _SQLITE, lambda: _swap(Fold, "_soft_delete", _nothing)
    ),
    "tombstone-dropped": Mutant("a restart restores hard-deleted versions", _SQLITE, _drop_tombstones_at_start),
    "cache-not-emptied": Mutant("cached answers outlive a deletion", _SQLITE, lambda: _keep_answers(Pipeline, "hot")),
    "kept-for-another-state": Mutant(
        "kept answers outlive the State that they were made from", _ANY, lambda: _keep_answers(Pipeline, "kept")
    ),
    "id-given-twice-after-restart": Mutant(
        "a restart forgets the ids of hard-deleted schemas", _SQLITE, lambda: _after_replay(_forget_ids)
    ),
    "version-given-twice": Mutant(
        "soft-deleted versions do not count for the next number", _SQLITE, _count_live_versions
    ),
    "hard-delete-keeps-the-id": Mutant(
        "a hard-deleted schema is still found by its id", _SQLITE, _keep_ids_of_deleted_schemas
    ),
    "soft-deleted-shown": Mutant("the latest version may be a deleted one", _SQLITE, _show_deleted),
    "checked-outside-the-turn": Mutant(
        "compatibility is checked against an older State", _SQLITE, _check_against_old_state
    ),
    "reference-check-skipped": Mutant(
        "a referenced version can be deleted", _SQLITE, lambda: _swap(delete, "check_unreferenced", _nothing)
    ),
    "read-only-ignored": Mutant(
        "a read-only subject can be written to",
        _SQLITE,
        lambda: setattr(Mode, "is_read_only", property(lambda _: False)),
    ),
    "association-lost": Mutant(
        "a restart forgets associations",
        _SQLITE,
        lambda: _after_replay(lambda state: replace(state, associations=Associations())),
    ),
    "key-in-use-deleted": Mutant(
        "a KEK can be deleted under its DEKs",
        _SQLITE,
        lambda: _swap(EncryptionKeys, "subjects", lambda _: lambda *_, **__: iter(())),
    ),
    "rights-of-an-old-state": Mutant(
        "a write is decided on the rights of the State when it arrived",
        _ANY,
        lambda: _swap(Access, "renew", _nothing),
        access=True,
    ),
    "refused-by-an-old-state": Mutant(
        "a node refuses what another node has permitted",
        _ANY,
        lambda: _swap(Access, "reconsider", _check_once),
        access=True,
    ),
    "compaction-drops-too-much": Mutant("compaction drops a record that is still needed", _SQL, _compact_one_more),
    "compaction-unnoticed": Mutant(
        "a node that fell behind misses what compaction dropped", _SQL, lambda: _swap(SqlLog, "_check_gap", _nothing)
    ),
}
