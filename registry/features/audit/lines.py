"""The audit: one line of JSON for each change and each refusal, and for each read if that is wanted.

A change is noted when the log has it, by the process that wrote it, with the offset of its last record; a refusal by
the node that refused. Lines hold no bodies, passwords, tokens or query strings, and of records only keys and digests,
levels and modes.
"""

import errno
import hashlib
import json
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import orjson

from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.core.rights.principal import Principal, RejectedCredentials
from strata.registry.core.rights.request_access import Access, Signing
from strata.registry.core.rights.rules import Rule
from strata.registry.http.exchange import Exchange, RequestFacts
from strata.registry.node.logs.changes import EVENTS
from strata.storage.log import Record
from strata.storage.record_json import decode_key, decode_value
from strata.storage.records import ConfigKey, ConfigValue, ModeKey, SchemaValue, Value
from strata.storage.state import State

__all__ = ["Audit", "open_sink"]

_STDOUT, _SYSLOG = "stdout", "syslog:"
_FACILITY_AUDIT, _NOTICE = 13, 5
_REFUSED = (401, 403, 429)
_MOST_PENDING = 10_000
_MOST_RECORDS = 100
_MOST_CHARACTERS, _MOST_ITEMS = 200, 5  # of the texts and lists of a line that is too long for a datagram
_log = logging.getLogger("strata.audit")

_REFUSALS = {401: "auth_failure", 403: "auth_forbidden", 429: "auth_throttled"}


class Sink(Protocol):
    """Where lines go."""

    def write(self, line: bytes) -> None:
        """Write one line, which ends with a newline.

        Raises:
            OSError: if it is not written.
        """

    def close(self) -> None:
        """Close what `open_sink` opened."""


class Audit:
    """The audit of one process.

    Args:
        sink: where lines go.
        refuses: whether changes are refused while lines cannot be written; otherwise those lines are dropped.
        reads: whether reads are noted too.
    """

    def __init__(self, sink: Sink, *, refuses: bool, reads: bool) -> None:
        self._sink, self._refuses, self.reads = sink, refuses, reads
        self._pending: deque[bytes] = deque()
        self._lock = threading.Lock()
        self.written = self.dropped = 0
        """How many lines were written and dropped since the start."""

    def check(self) -> None:
        """Check before a change that its line can be written.

        Raises:
            RegistryError: 50304 if not, and changes are to be refused then.
        """
        with self._lock:
            if self._refuses and self._pending and not self._flush():
                raise errors.audit_unavailable()

    @contextmanager
    def noting(self, exchange: Exchange) -> Iterator[None]:
        """Note in the audit what comes of a request, besides its change.

        Raises:
            RegistryError: 50304 if a change could not be noted and is refused for that.
        """
        facts, access, writes = exchange.facts_shown(), exchange.access, exchange.facts.writes
        if writes:
            self.check()
        try:
            yield
        except RegistryError as error:
            if error.status in _REFUSED:
                signing = exchange.signing
                tried = RejectedCredentials(signing.mechanism, signing.name) if signing else None
                tried = access.rejected if access.error is not None else tried
                self.refusal(facts, access, error.status, error.code, tried)
            raise
        if exchange.signing is not None:
            self.signing(facts, access, exchange.signing, exchange.status)
        elif exchange.status in _REFUSED and access.refusal is not None:
            self.refusal(facts, access, exchange.status, 40301 if exchange.status == 403 else exchange.status)
        elif self.reads and not writes:
            self.read(facts, access, exchange.status)

    def change(
        self, asked: RequestFacts, access: Access, offset: int, records: Sequence[Record], before: State
    ) -> None:
        """Note a change that the log has.

        Args:
            asked: the facts about the request.
            access: its rights.
            offset: the offset of the last record.
            records: the records.
            before: the State that it was decided on.
        """
        name = EVENTS.get((asked["method"], asked["route"]), "change")
        try:
            facts = {"allowed_by": _allowing(access), "offset": offset, **_schema_of(records)}
            more = facts | {"records": [_shown(record, before) for record in records[:_MOST_RECORDS]]}
            if (left_out := len(records) - _MOST_RECORDS) > 0:
                more["more_records"] = left_out
            self._note(name, "success", asked, access, more)
        except Exception:  # noqa: BLE001 - the log has the change, and its client must learn that
            _log.exception(
                "a change is missing from the audit, at offset %(offset)d of the log",
                {"event": "audit_line_missing", "offset": offset},
            )

    def refusal(
        self,
        asked: RequestFacts,
        access: Access,
        status: int,
        code: int,
        tried: RejectedCredentials | None = None,
    ) -> None:
        """Note a refusal.

        Args:
            asked: the facts about the request.
            access: its rights.
            status: the HTTP status of the answer.
            code: its error code.
            tried: the credentials that were rejected; None if they were not.
        """
        more: dict[str, object] = {"status": status, "error_code": code}
        if tried is not None:
            more["tried"] = tried._asdict()
        if access.refusal is not None:
            operation, resource_type, name, rule = access.refusal
            more |= {"operation": operation.value, "resource": {"type": resource_type.value, "name": name}}
            more["denied_by"] = _named(rule) if rule else None
        self._note(_REFUSALS.get(status, "refused"), "refused", asked, access, more)

    def signing(self, asked: RequestFacts, access: Access, signing: Signing, status: int) -> None:
        """Note that a person has signed in or out, or tried to.

        Args:
            asked: the facts about the request.
            access: its rights.
            signing: what the person did.
            status: the HTTP status of the answer.
        """
        more: dict[str, object] = {"status": status}
        if signing.mechanism:
            more |= {"error_code": status, "tried": {"mechanism": signing.mechanism, "user": signing.name}}
        outcome = "refused" if signing.mechanism else "success"
        self._note(signing.event, outcome, asked, access, more, signing.who)

    def read(self, asked: RequestFacts, access: Access, status: int) -> None:
        """Note a read."""
        self._note("read", "success" if status < 400 else "failure", asked, access, {"status": status})

    def close(self) -> None:
        """Write what waits, if that is possible now, and close the sink."""
        with self._lock:
            self._flush()
        self._sink.close()

    def _note(
        self,
        event: str,
        outcome: str,
        asked: RequestFacts,
        access: Access,
        more: Mapping[str, object],
        who: Principal | None = None,
    ) -> None:
        who = access.principal if who is None else who
        actor = {"id": who.name, "groups": sorted(who.groups), "mechanism": who.mechanism}
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        content = {"ts": now, "event": event, "outcome": outcome, "actor": actor, "source_ip": asked["source_ip"]}
        line = json.dumps(content | {**asked} | {**more}).encode() + b"\n"  # ASCII, whatever a name holds
        with self._lock:
            self._pending.append(line)
            if not self._flush() and (not self._refuses or len(self._pending) > _MOST_PENDING):
                self._pending.popleft()
                self.dropped += 1

    def _flush(self) -> bool:
        """Write what waits, and return whether nothing is left."""
        while self._pending:
            try:
                self._sink.write(self._pending[0])
            except OSError as error:
                reason = error.strerror or str(error)
                _log.error("the audit cannot be written: %(reason)s", {"event": "audit_unwritable", "reason": reason})
                return False
            self._pending.popleft()
            self.written += 1
        return True


def _schema_of(records: Sequence[Record]) -> dict[str, object]:
    """Return id and version of the schema that is written, if it is one."""
    values = [decode_value(decode_key(record.key), record.value) for record in records[:_MOST_RECORDS]]
    schemas = [value for value in values if isinstance(value, SchemaValue)]
    if len(schemas) != 1:
        return {}
    return {"subject": schemas[0].subject, "version": schemas[0].version, "schema_id": schemas[0].schema_id}


def _shown(record: Record, before: State) -> dict[str, object]:
    """Return the key of a record, the digest of its value, null for a tombstone, and the level or mode it changes."""
    shown = {
        "key": orjson.loads(record.key),
        "sha256": None if record.value is None else hashlib.sha256(record.value).hexdigest(),
    }
    key = decode_key(record.key)
    if isinstance(key, ConfigKey | ModeKey):
        former = (before.configs if isinstance(key, ConfigKey) else before.modes).get(key.subject)
        shown |= {"before": _level(former), "after": _level(decode_value(key, record.value))}
    return shown


def _level(value: Value) -> object:
    return value.get("compatibilityLevel") if isinstance(value, ConfigValue) else value


def _allowing(access: Access) -> list[str]:
    """Return what allowed a change: rules with the place where they are kept, or being a superuser."""
    if access.is_unlimited:
        return [] if access.is_off else ["superuser"]
    return [_named(rule) for rule in access.allowed_by]


def _named(rule: Rule) -> str:
    return f"{rule} ({rule.source})"


# --- sinks


def open_sink(where: str) -> Sink:
    """Return the sink that a setting names: a file, `stdout`, `syslog:/dev/log` or `syslog:HOST:PORT`.

    Raises:
        OSError: if it cannot be opened.
    """
    if where == _STDOUT:
        return _Stdout()
    if where.startswith(_SYSLOG):
        return _Syslog(where.removeprefix(_SYSLOG))
    return _File(Path(where))


class _Stdout:
    def write(self, line: bytes) -> None:
        _write_all(1, line)

    def close(self) -> None:
        pass


class _File:
    """A file that only its owner may read. It is opened again if it was moved, so any rotation works."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()
        self._is_torn = False

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, line: bytes) -> None:
        if self._is_moved():
            opened = self._opened()
            os.close(self._file)
            self._file = opened
        try:
            _write_all(self._file, b"\n" + line if self._is_torn else line)
        except OSError:
            self._is_torn = True
            raise
        self._is_torn = False

    def close(self) -> None:
        os.close(self._file)

    def _is_moved(self) -> bool:
        try:
            there, mine = self._path.stat(), os.fstat(self._file)
        except FileNotFoundError:
            return True
        return (there.st_ino, there.st_dev) != (mine.st_ino, mine.st_dev)


class _Syslog:
    """Messages of RFC 5424 as datagrams, to a unix socket or over UDP."""

    def __init__(self, place: str) -> None:
        host, colon, port = place.rpartition(":")
        self._address: tuple[str, int] | str = (host.strip("[]"), int(port)) if colon and port.isdecimal() else place
        family = socket.AF_UNIX
        if isinstance(self._address, tuple):
            family = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0][0]
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def write(self, line: bytes) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        head = f"<{_FACILITY_AUDIT * 8 + _NOTICE}>1 {now} {socket.gethostname()} strata {os.getpid()} audit - ".encode()
        try:
            self._socket.sendto(head + line.rstrip(b"\n"), self._address)
        except OSError as error:
            if error.errno != errno.EMSGSIZE:
                raise
            short = {name: _shortened(item) for name, item in json.loads(line).items()}
            # Otherwise one change with many records would stop the audit, and all changes with it.
            self._socket.sendto(head + json.dumps(short | {"truncated": True}).encode(), self._address)

    def close(self) -> None:
        self._socket.close()


def _shortened(content: object) -> object:
    """Return the content of a line with its first characters and items only."""
    match content:
        case str():
            return content[:_MOST_CHARACTERS]
        case dict():
            return {name: _shortened(item) for name, item in content.items()}
        case list():
            return [_shortened(item) for item in content[:_MOST_ITEMS]]
        case _:
            return content


def _write_all(file: int, line: bytes) -> None:
    """Write a line in one call, so that lines of several processes do not mix.

    Raises:
        OSError: if not all of it was written.
    """
    if os.write(file, line) < len(line):
        raise OSError("no space left for a whole line")
