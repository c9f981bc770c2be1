"""GET /schemas/ids/{id} against a bare ASGI application that returns the same bytes, at 1, 16 and 64 connections.

Strata answers once without access control, and once to a user who may read the schema by a prefix of its subject.
"""

import base64
import http.client
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.load import Load
from bench.report import table
from harness.processes import free_port, start_tied, stop_process
from harness.registry import RegistryNode
from strata.registry.access.passwords import hash_password

__all__ = ["run"]

CONNECTIONS = (1, 16, 64)
SCHEMAS = 1000
SECONDS = 4.0
USER, PASSWORD = "alice", "correct horse"
CREDENTIALS = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
ROUNDS = 3
_FIELDS = [{"name": f"field_{i}", "type": ["null", "string"], "default": None} for i in range(20)]


def run() -> str:
    """Measure both in turn, and return the table with the best run of each."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as nodes:
        log, path = f"sqlite:///{folder}/strata.db", "/schemas/ids/7"
        node = nodes.enter_context(RegistryNode(log))
        for number in range(SCHEMAS):
            _register(node.port, number)
        guarded = nodes.enter_context(RegistryNode(log, f"--auth-file={_auth_file(Path(folder))}"))
        body_file = Path(folder) / "body.json"
        body_file.write_bytes(_get(node.port, path))
        port = free_port()
        bare = start_tied(
            [sys.executable, "-m", "bench.bare_app", str(port), str(body_file)], log=Path(folder) / "bare.log"
        )
        try:
            _wait_for(port)
            rows = [_row(connections, node.port, guarded.port, port, path) for connections in CONNECTIONS]
        finally:
            stop_process(bare, grace_s=5)
        size = body_file.stat().st_size
    head = ["connections", "Strata, req/s", "p50 / p99 ms", "with access control, req/s", "p50 / p99 ms"]
    head += ["bare ASGI, req/s", "p50 / p99 ms", "ratio of Strata"]
    scale = (
        f"{SCHEMAS} schemas, body of {size} bytes, one server process each, best of {ROUNDS} runs of {SECONDS:.0f} s"
    )
    return f"{scale}.\n\n{table(head, rows)}"


def _auth_file(folder: Path) -> Path:
    path = folder / "auth.yaml"
    user = f"users: [{{name: {USER}, password: '{hash_password(PASSWORD)}', groups: [shop]}}]"
    path.write_text(f"{user}\nroles: [{{principal: 'Group:shop', role: consumer, on: 'orders-*'}}]\n")
    return path


def _row(connections: int, strata: int, guarded: int, bare: int, path: str) -> list[object]:
    rounds = [
        (
            _load(strata, path, connections),
            _load(guarded, path, connections, CREDENTIALS),
            _load(bare, path, connections),
        )
        for _ in range(ROUNDS)
    ]
    ours, ours_guarded, theirs = (max(loads, key=lambda load: load.per_second) for loads in zip(*rounds, strict=True))
    ratio = f"{ours.per_second / theirs.per_second:.2f}"
    return [connections, *_cells(ours), *_cells(ours_guarded), *_cells(theirs), ratio]


def _cells(load: Load) -> tuple[str, str]:
    return f"{load.per_second:,.0f}", f"{load.p50_ms:.2f} / {load.p99_ms:.2f}"


def _load(port: int, path: str, connections: int, *credentials: str) -> Load:
    command = [sys.executable, "-m", "bench.load", str(port), path, str(connections), str(SECONDS), *credentials]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    requests, seconds, p50, p99 = output.split()
    return Load(int(requests), float(seconds), float(p50), float(p99))


def _register(port: int, number: int) -> None:
    schema = json.dumps({"type": "record", "name": f"Order{number}", "namespace": "shop", "fields": _FIELDS})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(
        "POST",
        f"/subjects/orders-{number}/versions",
        json.dumps({"schema": schema}),
        {"Content-Type": "application/json"},
    )
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"registration answered {answer.status}: {answer.read().decode()}")
    connection.close()


def _get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body


def _wait_for(port: int) -> None:
    for _ in range(500):
        try:
            _get(port, "/")
        except OSError:
            time.sleep(0.02)
        else:
            return
    sys.exit("the bare application did not start")
