"""What metrics and usage cost a hot read: in process, as time of one call of the app, and for a load of wrk."""

import asyncio
import gc
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import wrk
from bench.report import table
from harness.registry import RegistryNode
from strata.registry.app import create_app
from strata.registry.http.asgi import App, Message
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog

__all__ = ["run"]

_KINDS = {
    "neither": {"metrics": "off", "usage": "off"},
    "metrics": {"metrics": "on", "usage": "off"},
    "metrics and usage (the default)": {"metrics": "on", "usage": "on"},
}
_PATH = "/schemas/ids/1"
_CALLS, _ROUNDS = 500, 400  # short, so that other processes leave some rounds alone
_CONNECTIONS, _SECONDS, _LOADS = 16, 2, 5


def run() -> str:
    """Measure all kinds in turn, and return the table with the best round of each."""
    wrk.check_installed()
    calls = asyncio.run(_calls())
    loads = _loads()
    rows = [
        [kind, f"{calls[kind]:.2f}", f"{calls[kind] - calls['neither']:+.2f}", f"{loads[kind]:.1f}",
         f"{loads[kind] - loads['neither']:+.1f}"]
        for kind in _KINDS
    ]  # fmt: skip
    head = ["counted", "µs in process", "difference", "µs of the node's CPU under wrk", "difference"]
    rounds = f"best of {_ROUNDS} rounds of {_CALLS} calls in process"
    rounds += f", and of {_LOADS} runs of {_SECONDS} s with {_CONNECTIONS} connections"
    return f"A hot read; {rounds}.\n\n{table(head, rows)}"


async def _calls() -> dict[str, float]:
    """Return the time of one call of the app by kind, in microseconds."""
    apps: dict[str, App] = {}
    for kind, settings in _KINDS.items():
        front = apps[kind] = create_app(MemoryLog(), Settings(log="memory:", **settings))
        await _ask(front, "POST", "/subjects/s/versions", b'{"schema":"\\"int\\""}')
        await _ask(front, "GET", _PATH)
    best = dict.fromkeys(apps, float("inf"))
    gc.disable()
    for _ in range(_ROUNDS):
        for kind, app in apps.items():
            scopes = [_scope("GET", _PATH) for _ in range(_CALLS)]
            began = time.perf_counter()
            for scope in scopes:
                await app(scope, _nothing, _drop)
            best[kind] = min(best[kind], (time.perf_counter() - began) / _CALLS * 1e6)
    gc.enable()
    return best


async def _ask(app: App, method: str, path: str, body: bytes = b"") -> None:
    """Send a request that must succeed."""
    bodies, answer = [body], list[Message]()

    async def receive() -> Message:
        if not bodies:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message: Message) -> None:
        answer.append(message)

    await app(_scope(method, path), receive, send)
    if answer[0]["status"] != 200:
        raise RuntimeError(f"{method} {path} failed: {answer}")


def _scope(method: str, path: str) -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"user-agent", b"bench/1.0"), (b"content-type", b"application/json")]
    return {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8081), "scheme": "http",
            "http_version": "1.1", "root_path": ""}  # fmt: skip


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _drop(_message: Message) -> None:
    pass


def _loads() -> dict[str, float]:
    """Return the CPU time of a request by kind, each of a node of one process, in microseconds."""
    request = wrk.Request("GET", f'"{_PATH}"')
    with tempfile.TemporaryDirectory() as folder, ExitStack() as nodes:
        log = f"sqlite:///{folder}/strata.db"
        found = {
            kind: nodes.enter_context(RegistryNode(log, *(f"--{name}={value}" for name, value in settings.items())))
            for kind, settings in _KINDS.items()
        }
        first = next(iter(found.values())).connect()
        first.request("POST", "/subjects/s/versions", '{"schema":"\\"int\\""}', {"Content-Type": "application/json"})
        first.getresponse().read()
        first.close()
        best = dict.fromkeys(found, float("inf"))
        for _ in range(_LOADS):
            for kind, node in found.items():
                before = _cpu_s(node.pid)
                load = wrk.waited_for(wrk.start(node.url, request, _CONNECTIONS, _SECONDS))
                best[kind] = min(best[kind], (_cpu_s(node.pid) - before) / load.requests * 1e6)
    return best


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, in seconds."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
