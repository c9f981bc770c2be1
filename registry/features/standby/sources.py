"""The registries that a standby copies: a log, read from where the last read ended, or a service, listed over REST.

A log shows everything, in order. A service shows what its lists show at the moment of each request, so a copy of it is
right only once the source rests; `ServiceSource` says what that costs and how it stays gentle.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from strata.http.paths import segment
from strata.registry.transfer.copies import Copy, TransferError, copy_of_records
from strata.registry.transfer.progress import Report, reported, silent
from strata.registry.transfer.rest import Answer, Connection, Shape, is_object, is_service
from strata.registry.transfer.rest_source import read_schemas, read_service
from strata.registry.transfer.tls_files import TlsFiles
from strata.storage.addresses import without_password
from strata.storage.log import START, Log, LogCompacted, LogReplaced
from strata.storage.open_log import open_log
from strata.storage.record_json import RecordError, decode_key
from strata.storage.records import AclKey, AssociationKey, ContextKey, HighWaterKey, Key, LoweredKey, SchemaKey
from strata.storage.state import State

__all__ = ["LogSource", "Reading", "ServiceSource", "Source", "source_at"]

_KINDS: Mapping[str, type] = {"association": AssociationKey, "rule of access": AclKey}
_FULL_EVERY_S = 300.0
_MOST_WORK = 0.2  # the share of the time that a source of many schemas may be busy with our lists
_SILENCE_S = 15.0  # after which a request is repeated; a standby should not wait long for a path that was cut
_STALL_S = 2.0  # what a request takes beyond that is not the source's work


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source held at one moment.

    Attributes:
        state: its content.
        position: the offset of the last record, if the source is a log; -1 otherwise.
        began_at: when the reading began, in milliseconds since the epoch.
        unlisted: the kinds of keys that the source cannot show, so that their absence means nothing.
    """

    state: State
    position: int
    began_at: int
    unlisted: tuple[type, ...] = ()


class Source(Protocol):
    """A registry to copy. Calls block; one thread at a time makes them."""

    name: str
    """Its address, without a password."""
    report: Report
    """Takes the progress of a `read` that needs many requests, in the thread of the read."""

    def read(self) -> Reading:
        """Return what the source holds now.

        Raises:
            LogError: if the source is a log that cannot be read.
            TransferError: if the source is a service that cannot be read.
        """
        ...

    def close(self) -> None:
        """Close connections, and end a `read` that is under way."""
        ...


class LogSource:
    """A log as source. It is opened by the first read and never written.

    Args:
        url: the URL of the log.
        kafka_config: librdkafka settings for a Kafka log.
    """

    def __init__(self, url: str, kafka_config: Mapping[str, str]) -> None:
        self.name = without_password(url)
        self.report: Report = silent
        self._url, self._kafka_config = url, kafka_config
        self._log: Log | None = None
        self._state = State()
        self._replaced = False

    def read(self) -> Reading:
        """Return what the log holds; see `Source.read`."""
        began = time.time_ns() // 1_000_000
        if self._log is None:
            self._log = open_log(self._url, kafka_config=self._kafka_config, must_exist=True)
        if not self._log.unchanged(self._state.offset):
            try:
                self._state = self._state.apply_all(self._log.read(self._state.offset))
            except LogReplaced:
                # Its start may be all that is there yet, such as during a restore.
                self._replaced = True
            except LogCompacted:
                self._state = State().apply_all(self._log.read(START))
        if self._replaced:
            raise TransferError(
                f"another log has taken the name of {self.name}. Nothing was copied; promote this standby, or start a "
                "new one on an empty log"
            )
        return Reading(self._state, self._state.offset, began)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()


class _Gentle(Connection):
    """A connection that spaces its requests, and can be stopped. Any thread may use it."""

    def __init__(
        self, url: str, auth: str | None, tls: TlsFiles | None, most_per_s: float, clock: Callable[[], float]
    ) -> None:
        super().__init__(url, auth, tls, timeout_s=_SILENCE_S)
        self._interval_s, self._clock = 1 / most_per_s, clock
        self._next = self.stalled_s = 0.0
        self._lock = threading.Lock()
        self.ended = threading.Event()

    def ask(
        self, method: str, path: str, body: object = None, shape: Shape = lambda _: True, /, **query: str | int
    ) -> Answer:
        """Send a request when it is due; see `Connection.ask`."""
        with self._lock:
            now = time.monotonic()
            due = max(now, self._next)
            self._next = due + self._interval_s
        if self.ended.wait(due - now):
            raise TransferError("the read was stopped")
        began = self._clock()
        try:
            return super().ask(method, path, body, shape, **query)
        finally:
            with self._lock:
                self.stalled_s += max(0.0, self._clock() - began - _STALL_S)


class ServiceSource:
    """A service as source.

    A short reading lists the schemas, a thousand per request, which shows what was registered and deleted. A full
    reading also lists the settings, the keys and the associations, or asks for those of every subject if the service
    does not list them. The pauses between readings grow with the time that they take, so that the source is busy with
    us for a fifth of its time at most.

    Args:
        url: the URL of the service.
        auth: `USER:PASSWORD` or a bearer token.
        tls: the files for https.
        most_per_s: the most requests per second; as many as the source answers by default.
        full_every_s: how often settings, keys and associations are read.
        clock: the clock for that, in seconds.
    """

    def __init__(
        self,
        url: str,
        auth: str | None = None,
        tls: TlsFiles | None = None,
        *,
        most_per_s: float = math.inf,
        full_every_s: float = _FULL_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = _Gentle(url, auth, tls, most_per_s, clock)
        self.name = self._connection.name
        self._full_every_s, self._clock = full_every_s, clock
        self._full: Copy | None = None
        self._last: State | None = None
        self._full_at = self._rests_until = 0.0
        self.report: Report = silent

    def read(self) -> Reading:
        """Return what the service shows; see `Source.read`."""
        if self._connection.ended.wait(self._rests_until - self._clock()):
            raise TransferError("the read was stopped")
        began, began_at = self._clock(), time.time_ns() // 1_000_000
        stalled_s = self._connection.stalled_s
        try:
            with reported(self.report):
                copy = self._read(began)
                self._check_gone(copy.state)
        finally:
            took = max(0.0, self._clock() - began - (self._connection.stalled_s - stalled_s))
            self._rests_until = self._clock() + took / _MOST_WORK - took
        # The same State while nothing has changed, which then need not be compared with what was copied.
        state = self._last = copy.state if self._last is None or copy.state != self._last else self._last
        unlisted = (self._full or copy).unlisted
        kinds = (LoweredKey, *(_KINDS[name] for name in unlisted if name in _KINDS))
        return Reading(state, START, began_at, kinds)

    def _read(self, now: float) -> Copy:
        if self._full is not None and now - self._full_at < self._full_every_s:
            kept = [record for record in self._full.records if not _is_listed(record.key)]
            return copy_of_records(self.name, [*read_schemas(self._connection), *kept])
        copy = read_service(self._connection)
        self._full, self._full_at = copy, now
        if self._last is None:
            self._last = copy_of_records(self.name, read_schemas(self._connection)).state
        return copy

    def _check_gone(self, state: State) -> None:
        """Ask for each version that was listed before and is not now: pages can miss one while others go.

        A subject that the default context lacks is answered from another context, whose version proves nothing.

        Raises:
            TransferError: if one is still there.
        """
        for subject, versions in (self._last or state).subjects.items():
            for number in versions.keys() - state.subjects.get(subject, {}).keys():
                path = f"/subjects/{segment(subject)}/versions/{number}"
                answer = self._connection.ask("GET", path, None, is_object, deleted="true")
                if not answer.missing and (answer.body or {}).get("subject", subject).removeprefix(":.:") == subject:
                    raise TransferError(f"{self.name} changed while it was read; it is read again")

    def close(self) -> None:
        """End a reading."""
        self._connection.ended.set()


def source_at(url: str, auth: str | None, tls: TlsFiles, kafka_config: Mapping[str, str]) -> Source:
    """Return the source at the URL of a service or a log, for one reading."""
    if is_service(url):
        return ServiceSource(url, auth, tls)
    return LogSource(url, kafka_config)


def _is_listed(data: bytes) -> bool:
    """Return whether the list of schemas shows a record of this key again."""
    try:
        key: Key = decode_key(data)
    except RecordError:
        return False
    return isinstance(key, SchemaKey | ContextKey | HighWaterKey)
