"""The effect of many schemas on a node: start, memory, registrations and reads with 1,000, 100,000 and 1,000,000."""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count, islice
from pathlib import Path

from confluent_kafka import Producer

from bench.report import table
from bench.writes import registration
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from strata.storage.log import START, Record
from strata.storage.record_json import encode
from strata.storage.records import SchemaId, SchemaKey, SchemaValue, Subject, Version
from strata.storage.sql.log import SqlLog

__all__ = ["run"]

VERSIONS = 5
SMALL, LARGE, HUGE = 1_000, 100_000, 1_000_000
STARTS = 2
ROUNDS = 4
SECONDS = 4.0
AT_ONCE = 4
_SHARED_EVERY = 10
_BATCH = 10_000
_STEMS = ("total", "unit", "net", "gross", "line")
_TICKS_PER_S = 100


def run() -> str:
    """Fill the logs, measure on them, and return the tables."""
    with tempfile.TemporaryDirectory() as folder:
        urls = {size: _filled(folder, size) for size in (SMALL, LARGE, HUGE)}
        starts = [_started(f"SQLite, {size:,} schemas", urls[size]) for size in (SMALL, LARGE, HUGE)]
        with KafkaBroker() as broker:
            _fill_topic(broker.bootstrap, LARGE)
            starts.append(_started(f"Kafka, {LARGE:,} schemas", f"kafka://{broker.bootstrap}/_schemas"))
        rates = _interleaved(urls[SMALL], urls[LARGE])
    head = ["log", "start to ready, s", "CPU s of it", "RSS, MiB", "peak, MiB"]
    mean = sum(len(record.value or b"") for record in _records(SMALL)) / SMALL
    return (
        f"Avro records under subjects of {VERSIONS} versions each, {mean:.0f} bytes a record of the log, every "
        f"{_SHARED_EVERY}th subject begins with a schema of another. Best of {STARTS} starts.\n\n{table(head, starts)}"
        f"\n\n{rates}"
    )


def _records(size: int) -> Iterator[Record]:
    """Yield the records of the schemas, in subjects of a few versions; some subjects begin with a shared schema."""
    schema_id, shared = 0, (SchemaId(1), _text(0, 1))
    for number in range(size // VERSIONS):
        subject = Subject(f"shop.orders-{number}-value")
        for version in range(1, VERSIONS + 1):
            if version == 1 and number % _SHARED_EVERY == _SHARED_EVERY - 1:
                used, text = shared
            else:
                schema_id += 1
                used, text = SchemaId(schema_id), _text(number, version)
            yield encode(SchemaKey(subject, Version(version)), SchemaValue(subject, Version(version), used, text))


def _text(number: int, version: int) -> str:
    fields = ['{"name":"id","type":"long"}', '{"name":"customer","type":"string","doc":"who ordered"}']
    for i in range(2 + version + number % 3):
        name = f"{_STEMS[(number + i) % len(_STEMS)]}_price_{i}"
        fields.append(f'{{"name":"{name}","type":["null","double"],"default":null}}')
    return f'{{"type":"record","name":"Order{number}","namespace":"com.example","fields":[{",".join(fields)}]}}'


def _filled(folder: str, size: int) -> str:
    url = f"sqlite:///{folder}/{size}.db"
    records, end = _records(size), START
    with closing(SqlLog(url)) as log:
        while batch := list(islice(records, _BATCH)):
            end = log.append(end, batch)[-1].offset
    return url


def _fill_topic(bootstrap: str, size: int) -> None:
    with RegistryNode(f"kafka://{bootstrap}/_schemas"):
        pass  # creates the topic
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": size + 1})
    for record in _records(size):
        producer.produce("_schemas", record.value, record.key, 0)
    if producer.flush(120):
        sys.exit("the broker did not accept all records within 120 s")


def _started(name: str, url: str) -> list[str]:
    figures = [_start(url) for _ in range(STARTS if str(HUGE) not in url else 1)]
    seconds, cpu, resident, peak = (min(column) for column in zip(*figures, strict=True))
    return [name, f"{seconds:.2f}", f"{cpu:.2f}", f"{resident:.0f}", f"{peak:.0f}"]


def _start(url: str) -> tuple[float, float, float, float]:
    started = time.monotonic()
    with RegistryNode(url) as node:
        seconds = time.monotonic() - started
        _get(node.port, "/health/ready")
        process = Path(f"/proc/{node.pid}")
        times = process.joinpath("stat").read_text().rpartition(")")[2].split()
        status = dict(line.split(":", 1) for line in process.joinpath("status").read_text().splitlines())
        resident, peak = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return seconds, (int(times[11]) + int(times[12])) / _TICKS_PER_S, resident, peak


def _interleaved(small_url: str, large_url: str) -> str:
    """Measure registrations and reads on both nodes in turn, so that other load on the machine affects both."""
    with RegistryNode(small_url) as small, RegistryNode(large_url) as large:
        nodes = (small, large)
        registered: list[list[float]] = [[], []]
        read: list[list[float]] = [[], []]
        calls = [registration(node.port) for node in nodes]
        for _ in range(ROUNDS):
            for i, call in enumerate(calls):
                registered[i].append(_rate(call))
            for i, node in enumerate(nodes):
                read[i].append(_reads(node.port))
    rows = [
        _compared(f"registrations, {AT_ONCE} at once", registered),
        _compared("GET /schemas/ids/7, 16 at once", read),
    ]
    head = ["per second", f"with {SMALL:,}", f"with {LARGE:,}", "ratio"]
    return f"Both nodes in turn, {ROUNDS} rounds of {SECONDS:.0f} s, means.\n\n{table(head, rows)}"


def _compared(name: str, rates: Sequence[Sequence[float]]) -> list[str]:
    small, large = (sum(each) / len(each) for each in rates)
    return [name, f"{small:,.0f}", f"{large:,.0f}", f"{large / small:.2f}"]


def _rate(call: Callable[[], None]) -> float:
    started, done = time.perf_counter(), count()

    def repeat(_: int) -> None:
        while time.perf_counter() < started + SECONDS:
            call()
            next(done)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(repeat, range(AT_ONCE)))
    return next(done) / (time.perf_counter() - started)


def _reads(port: int) -> float:
    command = [sys.executable, "-m", "bench.load", str(port), "/schemas/ids/7", "16", str(SECONDS)]
    requests, seconds, *_ = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()
    return int(requests) / float(seconds)


def _get(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"{path} answered {answer.status}: {json.loads(answer.read())}")
    connection.close()
