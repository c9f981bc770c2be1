"""Concurrent clients: a seeded mix of requests over few subjects, each recorded with its times and its answer.

Each client sends most requests to its own node, so that one silent node does not block every client, and some to other
nodes. Clients do not retry: a request without an answer (timeout, lost connection, 5xx) has an unknown outcome.
"""

import contextlib
import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from faults.kind import Wire
from faults.linear import WRITES
from faults.model import (
    CONTENTS,
    LEVELS,
    MANY_CONTENTS,
    MODES,
    NOT_WRITTEN,
    Answer,
    Operation,
    Request,
    content_of,
    context_of,
    text_of,
)
from faults.objects import KINDS, chosen_for_object

__all__ = ["IMPORTED", "SUBJECTS", "Client", "Recorder", "chosen"]

SUBJECTS = ("s1", "s2", "s3", ":.c:t1", ":.c:t2", ":.import:i1")
IMPORTED = ".import"
_HOST = "127.0.0.1"
_ELSEWHERE = 0.25
_JSON = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
_REGISTERS = {
    "register": 36,
    "look_up": 8,
    "latest": 9,
    "versions": 7,
    "all_versions": 4,
    "version": 8,
    "by_id": 8,
    "soft_delete": 8,
    "hard_delete": 5,
    "level": 2,
    "set_level": 5,
    "drop_level": 1,
    "mode": 1,
    "set_mode": 2,
    "drop_mode": 3,
}
_MANY = ":.c:t2"  # this subject gets new schemas, and so new ids, all the time
_WHOLE, _RECENT = 0.3, 5  # share of deletions that take the whole subject; the others take one of the last versions
_FOR_GOOD = 0.5  # share of soft deletions that are followed by a hard deletion
_OBJECTS = 0.22  # share of requests about objects other than a single subject


class Recorder:
    """The growing history of a run, safe for threads; times are seconds since the run began."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._numbers = itertools.count()
        self._began = time.monotonic()
        self._ids: dict[str, int] = {}
        self._versions: dict[str, int] = {}

    def now(self) -> float:
        """Return the seconds since the run began."""
        return time.monotonic() - self._began

    def add(self, client: str, node: int, request: Request, start: float, answer: Answer | None) -> None:
        """Record an operation that ends now."""
        self.operations.append(Operation(next(self._numbers), client, node, request, start, self.now(), answer))
        if answer is not None and answer[0] == 200 and request.kind in ("register", "import"):
            context = context_of(request.subject)
            self._ids[context] = max(self._ids.get(context, 1), answer[1][0])
            self._versions[request.subject] = max(self._versions.get(request.subject, 1), answer[1][1])

    def highest_id(self, context: str) -> int:
        """Return the highest id of a context in any answer so far."""
        return self._ids.get(context, 1)

    def highest_version(self, subject: str) -> int:
        """Return the highest version of a subject in any answer so far."""
        return self._versions.get(subject, 1)


class Client:
    """A client that sends requests to nodes by their ports, with one connection to each.

    Args:
        name: its name in the history.
        ports: the ports of the nodes.
        recorder: the history.
        headers: its credentials; empty without access control.
        timeout_s: how long it waits for an answer, in seconds.
        only_read: the nodes to which `work` and `send_each` send no writes at the moment.
    """

    def __init__(
        self,
        name: str,
        ports: Sequence[int],
        recorder: Recorder,
        headers: Mapping[str, str],
        *,
        timeout_s: float = 2.5,
        only_read: Collection[int] = (),
    ) -> None:
        self._only_read = only_read
        self._name, self._ports, self._recorder, self._timeout_s = name, ports, recorder, timeout_s
        self._headers = {**_JSON, **headers}
        self._connections: dict[int, http.client.HTTPConnection] = {}

    def work(self, seed: str, home: int, until: Callable[[], bool], pause_s: float) -> None:
        """Send random requests, mostly to one node, until `until()` is true.

        Args:
            seed: determines the requests.
            home: the index of the node that gets most requests.
            until: returns whether to stop.
            pause_s: the average pause between requests, in seconds.
        """
        rng = random.Random(seed)
        while not until():
            node = rng.randrange(len(self._ports)) if rng.random() < _ELSEWHERE else home
            request = chosen(rng, self._recorder)
            answer = None if self._spares(node, request) else self.send(node, request)
            if request.kind == "soft_delete" and answer and answer[0] == 200 and rng.random() < _FOR_GOOD:
                self.send(node, replace(request, kind="hard_delete"))
            threading.Event().wait(rng.uniform(0, 2 * pause_s))
        self.close()

    def send_each(
        self,
        seed: str,
        requests: Iterable[Request],
        until: Callable[[], bool],
        pause_s: float,
        nodes: Sequence[int] | None = None,
    ) -> None:
        """Send requests to random nodes, until `until()` is true.

        Args:
            seed: determines the nodes.
            requests: the requests.
            until: returns whether to stop.
            pause_s: the average pause between requests, in seconds.
            nodes: the nodes to choose from; by default all.
        """
        rng = random.Random(seed)
        for request in requests:
            if until():
                break
            node = rng.choice(nodes or range(len(self._ports)))
            if not self._spares(node, request):
                self.send(node, request)
            threading.Event().wait(rng.uniform(0, 2 * pause_s))
        self.close()

    def _spares(self, node: int, request: Request) -> bool:
        return node in self._only_read and request.kind in WRITES

    def send(self, node: int, request: Request) -> Answer | None:
        """Send a request, record it, and return its answer; None if there was no answer."""
        method, path, body = _wire(request)
        start = self._recorder.now()
        try:
            status, content = self._call(node, method, path, body)
            answer = _answer(request, status, content)
        except ConnectionRefusedError:
            return None  # nothing was sent, so nothing happened
        except (OSError, http.client.HTTPException, ValueError):
            answer = None
        self._recorder.add(self._name, node, request, start, answer)
        return answer

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _call(self, node: int, method: str, path: str, body: Any) -> tuple[int, Any]:
        connection = self._connections.get(node)
        if connection is None:
            connection = http.client.HTTPConnection(_HOST, self._ports[node], timeout=self._timeout_s)
            self._connections[node] = connection
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        except BaseException:
            with contextlib.suppress(OSError):
                connection.close()
            self._connections.pop(node, None)
            raise


def chosen(rng: random.Random, known: Recorder) -> Request:
    """Return a random request of the mix."""
    if rng.random() < _OBJECTS:
        return chosen_for_object(rng)
    subject = rng.choice(SUBJECTS)
    content = rng.choice(MANY_CONTENTS if subject == _MANY else CONTENTS)
    context = context_of(subject)
    kind = rng.choices(list(_REGISTERS), list(_REGISTERS.values()))[0]
    if kind == "register" and context == IMPORTED:
        return _import(subject, CONTENTS.index(content))
    if kind in ("register", "look_up"):
        return Request(kind, subject, content)
    if kind == "by_id":
        return Request(kind, subject, schema_id=rng.randint(1, known.highest_id(context) + 1))
    highest = known.highest_version(subject)
    if kind == "version":
        return Request(kind, subject, version=rng.randint(1, highest + 1))
    if kind in ("soft_delete", "hard_delete"):
        some = rng.randint(max(1, highest - _RECENT), highest + 1)
        return Request(kind, subject, version=0 if rng.random() < _WHOLE else some)
    if kind == "set_level":
        return Request(kind, subject, level=rng.choice(LEVELS))
    if kind == "set_mode":
        # A mode of the subject's own would end the imports.
        return Request(kind, subject, level=MODES[0] if context == IMPORTED else rng.choice(MODES))
    return Request(kind, subject)


def _import(subject: str, number: int) -> Request:
    """Return an import under a fixed id and a fixed version (or the next one), which other contents use too.

    If one content were stored under two versions, the order of the imports would determine which one a lookup finds.
    """
    version = 0 if number % 2 else 1 + number % 7
    return Request("import", subject, CONTENTS[number], schema_id=1 + number % 6, version=version)


def _wire(request: Request) -> Wire:
    if request.kind in KINDS:
        return KINDS[request.kind].wire(request)
    subject = quote(request.subject, safe="")
    versions, config, mode = f"/subjects/{subject}/versions", f"/config/{subject}", f"/mode/{subject}"
    deleted = f"{versions}/{request.version}" if request.version else f"/subjects/{subject}"
    schema = {"schema": text_of(request.content)}
    # Requests to the default context name no subject: with a subject, the registry would search other contexts too.
    context = context_of(request.subject)
    where = "" if context == "." else f"?subject=:{context}:"
    place = {"id": request.schema_id, "version": request.version} if request.version else {"id": request.schema_id}
    wire: dict[str, Wire] = {
        "register": ("POST", versions, schema),
        "import": ("POST", versions, {**schema, **place}),
        "look_up": ("POST", f"/subjects/{subject}", schema),
        "latest": ("GET", f"{versions}/latest", None),
        "version": ("GET", f"{versions}/{request.version}", None),
        "versions": ("GET", versions, None),
        "all_versions": ("GET", f"{versions}?deleted=true", None),
        "by_id": ("GET", f"/schemas/ids/{request.schema_id}{where}", None),
        "soft_delete": ("DELETE", deleted, None),
        "hard_delete": ("DELETE", f"{deleted}?permanent=true", None),
        "level": ("GET", config, None),
        "set_level": ("PUT", config, {"compatibility": request.level}),
        "drop_level": ("DELETE", config, None),
        "mode": ("GET", mode, None),
        "set_mode": ("PUT", mode, {"mode": request.level}),
        "drop_mode": ("DELETE", mode, None),
    }
    return wire[request.kind]


def _answer(request: Request, status: int, content: Any) -> Answer | None:
    if status >= 500:
        says_so = "nothing was written" in str(content.get("message", "")).lower()
        return (NOT_WRITTEN, None) if says_so else None
    if status == HTTPStatus.REQUEST_TIMEOUT:  # the node shut down before it had the whole request
        return NOT_WRITTEN, None
    if status not in (200, 201, 204):
        return int(content["error_code"]), None
    read = KINDS[request.kind].read if request.kind in KINDS else _READ[request.kind]
    return 200, read(content)


def _place(content: Any) -> tuple[int, int]:
    return content["id"], content["version"]


def _shown(content: Any) -> tuple[int, int, str]:
    return content["id"], content["version"], content_of(content["schema"])


def _whole(content: Any) -> Any:
    return tuple(content) if isinstance(content, list) else content


_READ: Mapping[str, Callable[[Any], Any]] = {
    "register": _place,
    "import": _place,
    "look_up": _place,
    "latest": _shown,
    "version": _shown,
    "versions": _whole,
    "all_versions": _whole,
    "by_id": lambda content: content_of(content["schema"]),
    "soft_delete": _whole,
    "hard_delete": _whole,
    "level": lambda content: content["compatibilityLevel"],
    "set_level": lambda content: content["compatibility"],
    "drop_level": lambda content: content["compatibilityLevel"],
    "mode": lambda content: content["mode"],
    "set_mode": lambda content: content["mode"],
    "drop_mode": lambda content: content["mode"],
}
