"""The answers of a registry on disk, so that a program can start again while the registry is down.

    client = RegistryClient(url, cache_dir="/var/cache/orders")

The registry is always asked first; an answer from disk takes the place of no answer. After no answer, what is on disk
is used at once for a few seconds, since each attempt takes its time.

Kept are schemas, versions, look-ups and registrations, and which subjects belong to a topic: nothing that a registry
decides again, and neither keys nor credentials. A file holds one answer with its checksum; a damaged one counts as
missing. Files are written to a temporary name first and then renamed. The oldest are removed beyond a bound.

Rules of this file: it knows paths that may be kept, and no errors but the two that it passes on.
"""

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from strata.serdes.errors import RegistryError, RegistryUnavailable
from strata.serdes.settings import ClientSettings

__all__ = ["CachingTransport", "DiskCache"]

_KEPT = ("/schemas/", "/subjects/", "/associations/")
_NOT_FOUND = 404
_FILES_PER_SCHEMA = 4
"""Files for each schema of `cache_size`: a schema has its id, its version, a look-up and a topic."""
_MOST_BYTES = 8 * 1024 * 1024
_WRITES_BETWEEN_BOUNDS = 100


class _Transport(Protocol):
    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object: ...

    def close(self) -> None: ...


class DiskCache:
    """Answers by request, in a folder of their own for each registry.

    Args:
        settings: the folder, the addresses of the registry and the number of schemas.
    """

    def __init__(self, settings: ClientSettings) -> None:
        registry = hashlib.sha256(json.dumps(sorted(settings.urls)).encode()).hexdigest()[:16]
        self._folder = Path(settings.cache_dir or ".") / registry
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._most = _FILES_PER_SCHEMA * settings.cache_size
        self._written: dict[str, str] = {}
        self._writes = 0
        self._lock = Lock()

    def _path(self, request: str) -> Path:
        return self._folder / f"{hashlib.sha256(request.encode()).hexdigest()}.json"

    def get(self, request: str) -> Any:
        """Return what was kept for a request.

        Raises:
            KeyError: If nothing was, or the file is damaged.
        """
        try:
            with self._path(request).open("rb") as file:
                kept = json.loads(file.read(_MOST_BYTES))
            text, checksum = kept["answer"], kept["sha256"]
            if kept["request"] != request or _checksum(text) != checksum:
                raise KeyError(request)
            return json.loads(text)
        except (OSError, ValueError, TypeError, RecursionError):
            raise KeyError(request) from None

    def put(self, request: str, answer: object) -> None:
        """Keep an answer; a disk that is full or read-only changes nothing."""
        text = json.dumps(answer)
        checksum = _checksum(text)
        if self._written.get(request) == checksum or len(text) > _MOST_BYTES // 2:
            return
        content = json.dumps({"request": request, "answer": text, "sha256": checksum})
        try:
            self._write(self._path(request), content.encode())
            if self._writes % _WRITES_BETWEEN_BOUNDS == 0:
                self._bound()
        except OSError:
            return
        with self._lock:
            self._writes += 1
            while len(self._written) >= self._most:
                del self._written[next(iter(self._written))]
            self._written[request] = checksum

    def _write(self, path: Path, content: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self._folder, suffix=".tmp")  # readable by its owner only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise

    def _bound(self) -> None:
        """Remove the oldest files beyond the bound, and what a killed process left half written."""
        files = sorted(self._folder.iterdir(), key=lambda file: file.stat().st_mtime)
        complete = [file for file in files if file.suffix == ".json"]
        stale = [file for file in files if file.suffix == ".tmp" and time.time() - file.stat().st_mtime > 60]
        for file in (*stale, *complete[: max(0, len(complete) - self._most)]):
            with contextlib.suppress(OSError):
                file.unlink()


class CachingTransport:
    """Sends requests, keeps answers on disk, and uses them while the registry is down.

    Args:
        transport: sends the requests.
        settings: with `cache_dir`.
        clock: returns seconds that never go back.
    """

    def __init__(
        self, transport: _Transport, settings: ClientSettings, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._transport, self._clock = transport, clock
        self._cache = DiskCache(settings)
        self._pause = settings.max_backoff
        self._down_until = 0.0

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
        """Return the parsed JSON of an answer, or of the one that was kept if there is none.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If there is no usable answer after all retries, and none was kept.
            TokenError: If the OAuth token endpoint gives no token.
            SerdeError: If the answer is not JSON or is too long.
        """
        if method not in ("GET", "POST") or not path.startswith(_KEPT):
            return self._transport.request(method, path, query=query, body=body)
        request = json.dumps([method, path, query or {}, body], sort_keys=True)
        if self._clock() < self._down_until:
            with contextlib.suppress(KeyError):
                return self._kept(request)
        try:
            answer = self._transport.request(method, path, query=query, body=body)
        except RegistryUnavailable:
            try:
                kept = self._kept(request)
            except KeyError:
                pass
            else:
                self._down_until = self._clock() + self._pause
                return kept
            raise
        except RegistryError as error:
            if error.status == _NOT_FOUND and path.startswith("/associations/"):  # a registry without this route
                self._cache.put(request, {"error": [error.status, error.error_code, error.message]})
            raise
        self._down_until = 0.0
        self._cache.put(request, {"answer": answer})
        return answer

    def _kept(self, request: str) -> object:
        kept = self._cache.get(request)
        if "error" in kept:
            status, code, message = kept["error"]
            raise RegistryError(int(status), int(code), str(message))
        return kept["answer"]


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
