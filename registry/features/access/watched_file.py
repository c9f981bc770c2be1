"""The auth file as it changes: read when it changes, all or nothing.

A file that cannot be used leaves the last good one in force. The file is looked at, not subscribed to: polling also
works on network file systems and for files that an orchestrator replaces by links, and costs one `stat` a second. A
changed file is read once two looks in a row find it the same: the first part of a file that is being written may be
valid, and lack the denials of the rest.
"""

import asyncio
import logging
import stat
from collections.abc import Callable
from pathlib import Path

from strata.registry.features.access.auth_file import MOST_BYTES, AuthFile, AuthFileError, parse_auth_file

__all__ = ["WatchedFile", "is_exposed", "read_bytes"]

_EVERY_S = 1.0
_log = logging.getLogger("strata.access")


class WatchedFile:
    """The auth file in force.

    Attributes:
        content: the content of the last file that could be used.
        failure: why the newest file is not in force; None if it is.
        failures: how many files could not be used since the start.

    Args:
        path: the file, which is read at once.
        changed: is called when there is new content.
        every_s: the interval between two looks at it, in seconds.

    Raises:
        AuthFileError: if the file cannot be used.
    """

    def __init__(self, path: Path, changed: Callable[[], None] = lambda: None, *, every_s: float = _EVERY_S) -> None:
        self._path, self._changed, self._every_s = path, changed, every_s
        self._mark = self._seen = self._stamp()
        self.content: AuthFile = self._parsed(read_bytes(path))
        self.failure: str | None = None
        self.failures = 0

    async def watch(self) -> None:
        """Read the file when it changes, until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.refresh()

    async def refresh(self) -> None:
        """Read the file if it has changed, and this look finds it as the one before did."""
        mark, before = self._stamp(), self._seen
        self._seen = mark
        if mark == self._mark or mark != before:
            return
        try:
            content = await asyncio.to_thread(self._read_again)
        except AuthFileError as error:
            if mark == self._stamp():  # else it is being written, and read again after the next two looks
                self._mark = mark
                self._reject(str(error))
            return
        except Exception:  # noqa: BLE001 - the watch must survive any failure
            self._mark = mark
            self.failure, self.failures = "reading it failed", self.failures + 1
            _log.exception(
                "the auth file is not used, and the last good one stays in force", {"event": "auth_file_broken"}
            )
            return
        if mark != self._stamp():
            return
        self._mark, self.content, self.failure = mark, content, None
        self._changed()
        _log.info(
            "read the auth file: %(users)d users, %(rules)d rules",
            {"event": "auth_file_read", "users": len(content.users), "rules": len(content.rules)},
        )

    def _reject(self, reason: str) -> None:
        self.failure, self.failures = reason, self.failures + 1
        _log.error(
            "the auth file is not used, and the last good one stays in force: %(reason)s",
            {"event": "auth_file_rejected", "reason": reason},
        )

    def _stamp(self) -> tuple[int, ...] | None:
        """Return what changes with the file; None if there is none."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev

    def _read_again(self) -> AuthFile:
        data = read_bytes(self._path)
        if _is_void(data):  # a disk was full, or the file is being written
            raise AuthFileError(
                f"{self._path}: the file is empty or has comments only; to remove all users, write `users: []`"
            )
        return self._parsed(data)

    def _parsed(self, data: bytes) -> AuthFile:
        try:
            return parse_auth_file(data)
        except AuthFileError as error:
            raise AuthFileError(f"{self._path}: {error}") from None


def is_exposed(path: Path) -> bool:
    """Return whether users other than the owner and the group of a file may read or change it."""
    return bool(path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH))


def _is_void(data: bytes) -> bool:
    """Return whether a file holds nothing but spaces, comments and YAML's marks of documents."""
    lines = (line.strip() for line in data.splitlines())
    return all(line in (b"", b"---", b"...") or line.startswith(b"#") for line in lines)


def read_bytes(path: Path) -> bytes:
    """Return an auth file's bytes, and at most one more than it may have.

    Raises:
        AuthFileError: if it cannot be read, or is not a regular file, of which reading could wait for ever.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise AuthFileError(f"{path}: expected a regular file")
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise AuthFileError(f"{path}: {error.strerror}") from None
