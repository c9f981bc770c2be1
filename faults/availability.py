"""Measure whether clients can keep writing: they retry on failure, as real clients do, while nodes stop and start.

A client tries its request on one node after the other: after a 5xx answer, a lost connection or a timeout it tries the
next node. The result is the time from the first try to the answer, and whether there was an answer at all.
"""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import quote

from faults.scene import Member, Scene

__all__ = ["Waited", "longest_gap", "rolling_restart", "under_load"]

_TRIES_S = 30.0
_TRY_TIMEOUT_S = 5.0
_PAUSE_S = 0.02
_REST_S = 0.3


@dataclass(frozen=True, slots=True)
class Waited:
    """A completed write: the times of its first try and of its answer, the number of tries, the last status.

    `codes` are the error codes of all tries.
    """

    start: float
    end: float
    tries: int
    status: int
    codes: tuple[int, ...] = ()

    @property
    def seconds(self) -> float:
        """The seconds that the client waited."""
        return self.end - self.start


def under_load(scene: Scene, act: Callable[[], None], *, clients: int = 4, pause_s: float = 0.0) -> list[Waited]:
    """Let clients write continuously during an action, and for a moment before and after it.

    Args:
        scene: the running nodes.
        act: the action.
        clients: the number of clients that write.
        pause_s: how long a client rests after each write, in seconds.

    Returns:
        All writes of all clients.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(clients) as pool:
        working = [pool.submit(_write_on, scene.ports, number, stop, pause_s) for number in range(clients)]
        try:
            threading.Event().wait(_REST_S)
            act()
            threading.Event().wait(_REST_S)
        finally:
            stop.set()
        return [waited for future in working for waited in future.result()]


def rolling_restart(members: Iterable[Member]) -> None:
    """Stop each node gracefully and start it again, one after the other."""
    for member in members:
        member.node.terminate()
        member.node.restart()


def longest_gap(writes: Sequence[Waited]) -> float:
    """Return the longest time without an acknowledged write, in seconds."""
    times = sorted(write.end for write in writes if write.status == 200)
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


def _write_on(ports: Sequence[int], client: int, stop: threading.Event, pause_s: float) -> list[Waited]:
    written = []
    for number in itertools.count():
        if stop.is_set():
            break
        schema = json.dumps({"type": "record", "name": f"R{client}n{number}", "fields": []})
        written.append(_insist(ports, client, f"/subjects/{quote(f'c{client}-{number}')}/versions", schema))
        stop.wait(pause_s)
    return written


def _insist(ports: Sequence[int], first: int, path: str, schema: str) -> Waited:
    start, status, codes = time.monotonic(), 0, list[int]()
    for tries in itertools.count(1):
        status, code = _post(ports[(first + tries - 1) % len(ports)], path, schema)
        if code:
            codes.append(code)
        if 0 < status < 500 or time.monotonic() - start > _TRIES_S:
            break
        threading.Event().wait(_PAUSE_S)
    return Waited(start, time.monotonic(), tries, status, tuple(codes))


def _post(port: int, path: str, schema: str) -> tuple[int, int]:
    """Return the status and the error code of one try, 0 if there was no answer or no error."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_TRY_TIMEOUT_S)) as connection:
        try:
            connection.request("POST", path, json.dumps({"schema": schema}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = json.loads(answer.read())
        except (OSError, http.client.HTTPException):
            return 0, 0
        return answer.status, content.get("error_code", 0)
