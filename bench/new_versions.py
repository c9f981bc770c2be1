"""What a new version costs: CPU time of a check and of its parts, in process. Schemas differ in each request.

`python -m bench.new_versions TREE …` measures several checkouts in turn, each in processes of its own, so that two
commits can be compared on one machine under one load.
"""

import asyncio
import gc
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.report import table

__all__ = ["run"]

_ROUNDS, _CALLS, _TURNS = 8, 100, 5  # short rounds, so that other processes leave some of them alone
_HERE = Path(__file__).resolve().parents[1]
_ARRAY, _TIME = {"type": "array", "items": "string"}, {"type": "long", "logicalType": "timestamp-millis"}
_FLAT = [{"name": f"field_{n}", "type": ["null", "string"], "default": None} for n in range(30)]


def _types(number: int) -> Any:
    """Return the type of a field of the mixed record: every fifth one defines names."""
    inner = [{"name": "a", "type": "string"}, {"name": "b", "type": ["null", "int"], "default": None}]
    named: list[Any] = [
        {"type": "enum", "name": f"Enum{number}", "symbols": ["A", "B"]},
        {"type": "record", "name": f"Record{number}", "fields": inner},
    ]
    return ["string", "long", _ARRAY, _TIME, named[number % 2]][number % 5]


_MIXED = [{"name": f"field_{n}", "type": _types(n), "doc": f"field {n}"} for n in range(20)]


def _extra(fields: list[Any], number: int) -> list[Any]:
    return [*fields, {"name": f"extra_{number}", "type": ["null", "string"], "default": None}]


def _changed(fields: list[Any], number: int) -> list[Any]:
    return [{**field, "doc": f"changed {number}"} for field in fields]


_KINDS: dict[str, tuple[list[Any], Callable[[list[Any], int], list[Any]]]] = {
    "30 optional strings, one more": (_FLAT, _extra),
    "20 fields of many types, one more": (_MIXED, _extra),
    "20 fields of many types, all changed": (_MIXED, _changed),
}


def run(trees: Sequence[Path] = (_HERE,)) -> str:
    """Measure the checkouts in turn, and return the table of their best rounds."""
    best: dict[tuple[Path, str], float] = {}
    for _ in range(_TURNS):
        for tree in trees:
            for name, found in _measured(tree).items():
                best[tree, name] = min(found, best.get((tree, name), found))
    names = list(dict.fromkeys(name for _, name in best))
    rows = [[name, *(f"{best[tree, name]:.0f}" for tree in trees)] for name in names]
    columns = [_commit(tree) for tree in trees]
    if len(trees) > 1:
        columns.append("ratio")
        rows = [[*row, f"{best[trees[-1], row[0]] / best[trees[0], row[0]]:.2f}"] for row in rows]
    note = f"µs of CPU time, best of {_TURNS * _ROUNDS} rounds of {_CALLS} calls"
    return f"{note}, without HTTP.\n\n{table(['a new schema each time', *columns], rows)}"


def _commit(tree: Path) -> str:
    command = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _measured(tree: Path) -> dict[str, float]:
    """Return what a process finds that imports a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, str(Path(__file__).resolve()), "--measure"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


# --- in the process that imports the checkout


async def _measure() -> dict[str, float]:
    from strata.registry.app import create_app
    from strata.registry.settings import Settings

    try:
        from strata.storage.log import MemoryLog
    except ImportError:  # an early commit
        from strata.storage.memory_log import MemoryLog  # type: ignore[import-not-found,no-redef]

    app = create_app(MemoryLog(), Settings(log="memory:"))
    numbers, found = itertools.count(), dict[str, float]()
    for name, (fields, new) in _KINDS.items():
        subject = name.replace(" ", "-").replace(",", "")
        await _ask(app, f"/subjects/{subject}/versions", _body(subject, fields))
        bodies = (_body(subject, new(fields, number)) for number in numbers)
        found[f"check: {name}"] = await _best(app, partial(_path, subject), bodies)
    bodies = (_body("S", _extra(_MIXED, number)) for number in numbers)
    found["register under a new subject: 21 fields of many types"] = await _best(
        app, lambda: f"/subjects/new-{next(numbers)}/versions", bodies, clock=time.process_time
    )
    await _ask(app, "/subjects/chain/versions", _body("C", _MIXED))
    bodies = (_body("C", _extra(_MIXED, number)) for number in numbers)
    found["register the next version of one subject: 21 fields of many types"] = await _best(
        app, lambda: "/subjects/chain/versions", bodies, clock=time.process_time
    )
    return found


def _path(subject: str) -> str:
    return f"/compatibility/subjects/{subject}/versions/latest"


async def _best(
    app: Any, path: Callable[[], str], bodies: Iterator[bytes], clock: Callable[[], float] = time.thread_time
) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        calls = [(path(), body) for body in itertools.islice(bodies, _CALLS)]
        gc.collect()
        gc.disable()
        began = clock()
        for target, body in calls:
            await _ask(app, target, body)
        best = min(best, (clock() - began) / _CALLS * 1e6)
        gc.enable()
    return best


def _body(name: str, fields: list[Any]) -> bytes:
    name = f"R_{name}".replace("-", "_")
    text = json.dumps({"type": "record", "name": name, "namespace": "bench", "fields": fields})
    return json.dumps({"schema": text}).encode()


async def _ask(app: Any, path: str, body: bytes) -> None:
    """Send a request that must succeed."""
    bodies, answer = [body], list[Any]()

    async def receive() -> Any:
        if not bodies:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message: Any) -> None:
        answer.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8081), "scheme": "http",
             "http_version": "1.1", "root_path": ""}  # fmt: skip
    await app(scope, receive, send)
    if answer[0]["status"] != 200 or b'"is_compatible":false' in answer[1]["body"]:
        raise RuntimeError(f"POST {path} failed: {answer}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(asyncio.run(_measure())))
    else:
        print(run([Path(tree).resolve() for tree in sys.argv[1:]] or [_HERE]))
