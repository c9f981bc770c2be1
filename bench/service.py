"""Every kind of request on Kafka and SQLite, beside a bare ASGI application and bare commits of the same run."""

import base64
import socket
import sqlite3
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Producer

from bench.filled_logs import fill_topic, filled
from bench.node_costs import cpu_seconds, pss_mib
from bench.report import table
from bench.service_rows import BODY_FIELDS, REGISTER, SUBJECTS, Row, prepare
from bench.wrk import Load, Request, check_installed, start, waited_for
from harness.certificates import Authority
from harness.kafka import KafkaBroker
from harness.processes import free_port, start_tied, stop_process
from harness.registry import RegistryNode
from strata.registry.features.access.auth_file_edits import add_user
from strata.registry.features.access.passwords import hash_password

__all__ = ["Measured", "measured", "run", "warm_up"]

SECONDS = 2
WRITERS = 4
_ROUNDS = 2  # of what is slowest to warm
SCHEMAS = 1_000
_USER, _PASSWORD = "ada", "0pen-sesame"
_REFERENCE = Path(__file__).with_name("service_reference.toml")
_RECORD = 600
_ROOT = Request("GET", '"/"')
_Key = tuple[str, str, int]  # name, how it is answered, connections


@dataclass(frozen=True, slots=True)
class Setup:
    """A column of the table: a log, and how a node serves it."""

    name: str
    kafka: bool
    workers: int
    secured: bool = False
    lease: str = "100ms"


PRODUCTION = Setup("Kafka, 2 workers", kafka=True, workers=2)
SETUPS = (
    PRODUCTION,
    replace(PRODUCTION, name="Kafka, 2 workers, no lease", lease="0"),
    replace(PRODUCTION, name="Kafka, 2 workers, TLS and logins", secured=True),
    replace(PRODUCTION, name="Kafka, 1 worker", workers=1),
    Setup("SQLite, 2 workers", kafka=False, workers=2),
    Setup("SQLite, 1 worker", kafka=False, workers=1),
)


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
    """What was measured, with the better of two values for each setup."""

    loads: dict[_Key, dict[Setup, Measured]] = field(default_factory=dict)
    bare: dict[int, Measured] = field(default_factory=dict)
    beside: dict[Setup, float] = field(default_factory=dict)
    memory: dict[Setup, list[float]] = field(default_factory=dict)
    body: bytes = b""


def run() -> str:
    """Measure all rows, and return the tables."""
    check_installed()
    runs = _Runs()
    with tempfile.TemporaryDirectory() as name, KafkaBroker(lasting=True) as broker:
        folder = Path(name)
        warm_up(broker.bootstrap, folder)
        # Twice, the second time in the opposite order: other users of the machine, and a broker that still gets
        # faster, would favour one place in the order.
        for number, setup in enumerate([*SETUPS, *reversed(SETUPS)]):
            if number == len(SETUPS):
                _collect_bare(runs, folder)
            if setup.kafka:
                url = fill_topic(broker.bootstrap, f"service-{number}", SCHEMAS)
            else:
                url = filled(name, SCHEMAS, f"service-{number}")
            with _node(setup, url, folder / str(number)) as (node, headers):
                _collect(runs, setup, node, headers)
                runs.memory[setup] = pss_mib(node)
        _collect_bare(runs, folder)
        commits = {
            "fenced Kafka transactions of one record": _fenced_transaction(broker.bootstrap),
            "Kafka round trips with acks=all": _round_trip(broker.bootstrap),
            "SQLite commits (WAL, synchronous=FULL)": _sqlite_commit(folder / "bare.db"),
        }
        rates = {commit: _rate(call) for commit, call in commits.items()}
    return _report(runs, rates)


def warm_up(bootstrap: str, folder: Path) -> None:
    """Let the broker compile its code in a round of all rows, as before the reference was measured.

    Args:
        bootstrap: the broker's address.
        folder: an empty folder.
    """
    with _node(PRODUCTION, fill_topic(bootstrap, "service-warm", SCHEMAS), folder / "warm") as (node, headers):
        rows, _ = prepare(node, headers)
        for row in [*rows, *(_ROUNDS * [REGISTER])]:
            for connections in row.connections:
                measured(node, row, connections, headers=headers)


@contextmanager
def _node(setup: Setup, url: str, folder: Path) -> Iterator[tuple[RegistryNode, dict[str, str]]]:
    """Start a node; yield it with the headers that its requests need."""
    options, tls, headers = [f"--workers={setup.workers}"], None, {}
    if setup.kafka:
        options.append(f"--read-lease={setup.lease}")
    if setup.secured:
        folder.mkdir()
        authority = Authority(folder)
        own, auth_file = authority.issue("registry"), folder / "auth.yaml"
        add_user(auth_file, _USER, hash_password(_PASSWORD), role="admin")
        options += [f"--tls-certfile={own.cert}", f"--tls-keyfile={own.key}", f"--auth-file={auth_file}"]
        tls = authority.context()
        headers["Authorization"] = "Basic " + base64.b64encode(f"{_USER}:{_PASSWORD}".encode()).decode()
    with RegistryNode(url, *options, tls=tls) as node:
        yield node, headers


def _collect(runs: _Runs, setup: Setup, node: RegistryNode, headers: dict[str, str]) -> None:
    rows, runs.body = prepare(node, headers)
    for row in [*rows, REGISTER]:
        for connections in row.connections:
            load = measured(node, row, connections, headers=headers)
            of_row = runs.loads.setdefault((row.name, row.answer, connections), {})
            of_row[setup] = _better(of_row.get(setup), load)
    runs.beside[setup] = max(runs.beside.get(setup, 0.0), _beside_writers(node, rows[0], headers))


def _collect_bare(runs: _Runs, folder: Path) -> None:
    with _bare_app(folder, runs.body) as (address, pid):
        for count in (1, 16, 64):
            runs.bare[count] = _better(runs.bare.get(count), _measured(address, [pid], _ROOT, count))


def _better(before: Measured | None, load: Measured) -> Measured:
    return load if before is None or load.load.per_second > before.load.per_second else before


def measured(
    node: RegistryNode, row: Row, connections: int, seconds: int = SECONDS, *, headers: Mapping[str, str] | None = None
) -> Measured:
    """Measure one kind of request on a node."""
    return _measured(node.url, [node.pid, *node.workers], row.request, connections, seconds, headers or {})


def _measured(
    address: str,
    pids: list[int],
    request: Request,
    connections: int,
    seconds: int = SECONDS,
    headers: Mapping[str, str] | None = None,
) -> Measured:
    before = cpu_seconds(pids)
    load = waited_for(start(address, request, connections, seconds, headers or {}))
    return Measured(load, cpu_seconds(pids) - before)


def _beside_writers(node: RegistryNode, read: Row, headers: dict[str, str]) -> float:
    """Return the rate of a read while clients register, as a part of its rate alone."""
    alone = measured(node, read, 16, headers=headers).load.per_second
    writers = start(node.url, REGISTER.request, WRITERS, SECONDS + 1, headers)
    time.sleep(0.5)  # let the writers get going
    beside = measured(node, read, 16, headers=headers).load.per_second
    waited_for(writers)
    return beside / alone


@contextmanager
def _bare_app(folder: Path, body: bytes) -> Iterator[tuple[str, int]]:
    file, port = folder / "body.json", free_port()
    file.write_bytes(body)
    command = [sys.executable, "-m", "bench.bare_app", str(port), str(file)]
    process = start_tied(command, log=folder / "bare.log")
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}", process.pid
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


def _rate(call: Callable[[], None]) -> float:
    """Return how often one client can call a function in a second, one call after the other."""
    call()
    done, started = 0, time.perf_counter()
    while time.perf_counter() < started + SECONDS:
        call()
        done += 1
    return done / (time.perf_counter() - started)


def _fenced_transaction(bootstrap: str) -> Callable[[], None]:
    topic, value = f"bare-{uuid4().hex}", b"x" * _RECORD
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(30)

    def call() -> None:
        producer.begin_transaction()
        producer.produce(topic, value, key=b"k")
        producer.commit_transaction(30)

    return call


def _round_trip(bootstrap: str) -> Callable[[], None]:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    topic, value = f"bare-{uuid4().hex}", b"x" * _RECORD

    def call() -> None:
        producer.produce(topic, value, key=b"k")
        if producer.flush(30):
            sys.exit("the broker did not acknowledge within 30 s")

    return call


def _sqlite_commit(file: Path) -> Callable[[], None]:
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, value BLOB)")

    def call() -> None:
        database.execute("INSERT INTO log (value) VALUES (?)", (b"x" * _RECORD,))

    return call


def _report(runs: _Runs, commits: Mapping[str, float]) -> str:
    reference = tomllib.loads(_REFERENCE.read_text())
    names = [setup.name for setup in SETUPS]
    first = ["what", "answer", "connections", "bare ASGI"]
    reads = f"GET /schemas/ids/{{id}} while {WRITERS} clients register ÷ alone"
    loads = {key: [runs.bare[key[2]], *(of_row[setup] for setup in SETUPS)] for key, of_row in runs.loads.items()}
    rates = [_rates(reference["per_bare_asgi"], key, each) for key, each in loads.items()]
    costs = [[*key, *map(_cost, each)] for key, each in loads.items()]
    beside = [f"{runs.beside[setup]:.2f}" for setup in SETUPS]
    memory = [[setup.name, " + ".join(f"{part:.0f}" for part in runs.memory[setup])] for setup in SETUPS]
    ratios = [f"{PRODUCTION.name} ÷ bare", "Confluent ÷ bare, another run", "÷ Confluent, by way of bare"]
    parts = [
        _conditions(reference["date"], len(runs.body)),
        table([*first, *names, *ratios], [*rates, [reads, "repeated", 16, "", *beside, "", "", ""]]),
        _beside_commits(runs, commits),
        "p50 / p99 in ms, and µs of CPU time of all server processes for a request:",
        table([*first, *names], costs),
        "Memory after the rows, in MiB of PSS, parent first:",
        table(["node", "processes"], memory),
    ]
    return "\n\n".join(parts)


def _conditions(date: str, size: int) -> str:
    return (
        f"{SCHEMAS:,} schemas at the start. wrk with one thread, {SECONDS} s a row, and the broker, on the same "
        "machine. Each column was measured twice, the second time in the opposite order, and the better of the two "
        f"is shown for each row. A schema by its id is an answer of {size} bytes; the bare ASGI application answers "
        "with as many from one process, without TLS. *Repeated*: one request again and again. "
        f"*{SUBJECTS} in turn*: the same request for {SUBJECTS} subjects. *Computed*: a query parameter without "
        "meaning keeps the answer out of the caches. New schemas are parsed as well; those that are registered have "
        f"{BODY_FIELDS} fields and a subject each. Confluent 8.5 was measured beside a bare ASGI application of its "
        f"own run ({date}, another machine), so the last column compares two runs by their ratios to that. "
        "Requests per second:"
    )


def _rates(reference: Mapping[str, Mapping[str, float]], key: _Key, each: Sequence[Measured]) -> list[object]:
    name, _, connections = key
    rates = [part.load.per_second for part in each]
    ours, theirs = rates[1] / rates[0], reference.get(name, {}).get(str(connections))
    compared = [f"{theirs}", f"{ours / theirs:.2f}"] if theirs else ["", ""]
    return [*key, *(f"{rate:,.0f}" for rate in rates), f"{ours:.3g}", *compared]


def _beside_commits(runs: _Runs, commits: Mapping[str, float]) -> str:
    alone = runs.loads[REGISTER.name, REGISTER.answer, 1]
    registered = ", ".join(f"{alone[setup].load.per_second:,.0f} ({setup.name})" for setup in SETUPS)
    bare = ", ".join(f"{rate:,.0f} {name}" for name, rate in commits.items())
    return f"One client of the bare logs makes, per second, {bare}; one client that registers makes {registered}."


def _cost(one: Measured) -> str:
    return f"{one.load.p50_ms:.2f} / {one.load.p99_ms:.2f}, {one.cpu_us:,.0f} µs"
