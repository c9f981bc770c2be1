"""Every kind of request with 1, 2 and 4 workers, beside a bare ASGI application and the numbers of other registries."""

import socket
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer

from bench.filled_logs import filled
from bench.load import Load
from bench.node_costs import cpu_seconds, pss_mib
from bench.report import table
from bench.service_rows import BODY_FIELDS, REGISTER, Row, prepare
from bench.wrk import Request, check_installed, start, waited_for
from harness.kafka import KafkaBroker
from harness.processes import free_port, start_tied, stop_process
from harness.registry import RegistryNode

__all__ = ["Measured", "measured", "run"]

WORKERS = (1, 2, 4)
SECONDS = 3
WRITERS = 4
SCHEMAS = 1_000
_PEERS = Path(__file__).with_name("service_peers.toml")
_Peers = Mapping[str, Any]
_BODY = 600
_ROOT = Request("GET", '"/"')
_Key = tuple[str, str, int]  # name, how it is answered, connections


@dataclass(frozen=True, slots=True)
class Measured:
    """The load of a run, and the CPU time of the server's processes in seconds."""

    load: Load
    cpu_s: float

    @property
    def cpu_us(self) -> float:
        """The CPU time of a request in microseconds."""
        return self.cpu_s / max(self.load.requests, 1) * 1e6


@dataclass(slots=True)
class _Runs:
    """What was measured, with a value for each number of workers."""

    loads: dict[_Key, list[Measured]] = field(default_factory=dict)
    ratios: dict[_Key, list[float]] = field(default_factory=dict)
    memory: list[list[object]] = field(default_factory=list)
    body: bytes = b""


def run() -> str:
    """Measure all rows, and return the tables."""
    check_installed()
    runs = _Runs()
    with tempfile.TemporaryDirectory() as folder, KafkaBroker() as broker:
        for workers in WORKERS:
            url = filled(folder, SCHEMAS, f"service-{workers}")
            with RegistryNode(url, f"--workers={workers}") as node:
                rows, runs.body = prepare(node.port)
                _collect(runs, node, rows)
                runs.memory.append([workers, " + ".join(f"{one:.0f}" for one in pss_mib(node))])
                _collect_writes(runs, node, rows[0], "SQLite")
        for workers in WORKERS:
            with RegistryNode(f"kafka://{broker.bootstrap}/_schemas_{workers}", f"--workers={workers}") as node:
                rows, _ = prepare(node.port)
                _collect_writes(runs, node, rows[0], "Kafka")
        fenced = _fenced_round_trips(broker.bootstrap)
        with _bare_app(folder, runs.body) as (port, pid):
            bare = {connections: _measured(port, [pid], _ROOT, connections) for connections in (1, 16, 64)}
    return _report(runs, bare, fenced)


def measured(node: RegistryNode, row: Row, connections: int, seconds: int = SECONDS) -> Measured:
    """Measure one kind of request on a node."""
    return _measured(node.port, [node.pid, *node.workers], row.request, connections, seconds)


def _measured(port: int, pids: list[int], request: Request, connections: int, seconds: int = SECONDS) -> Measured:
    before = cpu_seconds(pids)
    load = waited_for(start(port, request, connections, seconds))
    return Measured(load, cpu_seconds(pids) - before)


def _collect(runs: _Runs, node: RegistryNode, rows: Sequence[Row]) -> None:
    for row in rows:
        for connections in row.connections:
            key = row.name, row.answered, connections
            runs.loads.setdefault(key, []).append(measured(node, row, connections))


def _collect_writes(runs: _Runs, node: RegistryNode, read: Row, log: str) -> None:
    _collect(runs, node, [replace(REGISTER, name=f"{REGISTER.name}, {log}")])
    name = f"{read.name} while {WRITERS} clients register ÷ alone, {log}"
    runs.ratios.setdefault((name, read.answered, 16), []).append(_beside_writers(node, read))


def _beside_writers(node: RegistryNode, read: Row) -> float:
    """Return the rate of a read while clients register, as a part of its rate alone."""
    alone = measured(node, read, 16).load.per_second
    writers = start(node.port, REGISTER.request, WRITERS, SECONDS + 1)
    time.sleep(0.5)  # let the writers get going
    beside = measured(node, read, 16).load.per_second
    waited_for(writers)
    return beside / alone


@contextmanager
def _bare_app(folder: str, body: bytes) -> Iterator[tuple[int, int]]:
    file, port = Path(folder) / "body.json", free_port()
    file.write_bytes(body)
    command = [sys.executable, "-m", "bench.bare_app", str(port), str(file)]
    process = start_tied(command, log=Path(folder) / "bare.log")
    try:
        _wait_for(port)
        yield port, process.pid
    finally:
        stop_process(process, grace_s=5)


def _wait_for(port: int) -> None:
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    sys.exit("the bare application did not start")


def _fenced_round_trips(bootstrap: str) -> float:
    """Return how many transactions of one record one producer commits per second, one after the other."""
    topic, value = f"bare-{uuid4().hex}", b"x" * _BODY
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(30)

    def commit() -> None:
        producer.begin_transaction()
        producer.produce(topic, value, key=b"k")
        producer.commit_transaction(30)

    commit()
    done, started = 0, time.perf_counter()
    while time.perf_counter() < started + SECONDS:
        commit()
        done += 1
    return done / (time.perf_counter() - started)


def _report(runs: _Runs, bare: Mapping[int, Measured], fenced: float) -> str:
    peers = tomllib.loads(_PEERS.read_text())
    workers = [f"{count} worker{'s'[: count > 1]}" for count in WORKERS]
    rates = [_rates(peers, key, bare, [one.load.per_second for one in each]) for key, each in runs.loads.items()]
    rates += [_ratios(peers, key, values) for key, values in runs.ratios.items()]
    costs = [[*key, *map(_cost, (bare[key[2]], *each))] for key, each in runs.loads.items()]
    alone = runs.loads[f"{REGISTER.name}, Kafka", REGISTER.answered, 1][0].load.per_second
    first = ["what", "answer", "connections"]
    parts = [
        _conditions(peers, len(runs.body)),
        table([*first, "Karapace", "Confluent", "bare ASGI", *workers, "best ÷ Confluent", "best ÷ bare"], rates),
        _compared_with_bare(alone, fenced),
        "p50 / p99 in ms, and µs of CPU time of all server processes for a request:",
        table([*first, "bare ASGI", *workers], costs),
        "Memory after the rows on SQLite, in MiB of PSS, parent first:",
        table(["workers", "processes"], runs.memory),
    ]
    return "\n\n".join(parts)


def _compared_with_bare(alone: float, fenced: float) -> str:
    return (
        f"One producer commits {fenced:,.0f} bare fenced Kafka transactions of one record per second. The rate of one "
        f"client that registers with 1 worker is {alone / fenced:.2f} of that."
    )


def _conditions(peers: _Peers, size: int) -> str:
    return (
        f"{SCHEMAS:,} schemas at the start; SQLite, except in rows that name Kafka. wrk with one thread, {SECONDS} s a "
        f"row, on the same machine. A schema by its id is an answer of {size} bytes; the bare ASGI application answers "
        "with as many from one process. A hit repeats one request, which a cache answers. A miss differs in a query "
        "parameter without meaning, so the route runs; it has seen the texts of the schemas before. New schemas are "
        f"parsed as well; those that are registered have {BODY_FIELDS} fields and a subject each. Karapace and "
        f"Confluent 8.5: another run, of {peers['date']}: {peers['machine']}; its rate of bare ASGI is "
        f"{peers['bare_asgi_per_second']}. Requests per second:"
    )


def _rates(peers: _Peers, key: _Key, bare: Mapping[int, Measured], values: Sequence[float]) -> list[object]:
    karapace, confluent = _others(peers, key)
    upper, best = bare[key[2]].load.per_second, max(values)
    numbers = (f"{value:,.0f}" if value else "" for value in (karapace, confluent, upper, *values))
    return [*key, *numbers, f"{best / confluent:.1f}" if confluent else "", f"{best / upper:.2f}"]


def _ratios(peers: _Peers, key: _Key, values: Sequence[float]) -> list[object]:
    karapace, confluent = (f"{value:.2f}" if value else "" for value in _others(peers, key))
    return [*key, karapace, confluent, "", *(f"{value:.2f}" for value in values), "", ""]


def _others(peers: _Peers, key: _Key) -> tuple[float | None, float | None]:
    """Return the numbers of Karapace and Confluent for a row."""
    name, _, connections = key
    karapace, confluent = peers["per_second"].get(name, {}).get(str(connections), (None, None))
    return karapace, confluent


def _cost(one: Measured) -> str:
    return f"{one.load.p50_ms:.2f} / {one.load.p99_ms:.2f}, {one.cpu_us:,.0f} µs"
