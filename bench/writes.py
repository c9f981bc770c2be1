"""Registrations, one at a time and 16 at once, against a bare round trip of the log.

On Kafka the round trip is one record produced with acks=all and flushed; on SQLite, one row committed by the standard
library.
"""

import http.client
import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from statistics import median
from uuid import uuid4

from confluent_kafka import Producer

from bench.report import table
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode

__all__ = ["registration", "run"]

SECONDS = 6.0
AT_ONCE = 16
_BODY = 600
_numbers = count()


def run() -> str:
    """Measure on both logs, and return the table."""
    with tempfile.TemporaryDirectory() as folder, KafkaBroker() as broker:
        rows = [
            ["bare Kafka round trip, acks=all", 1, *_timed(_kafka_round_trip(broker.bootstrap), 1)],
            *_registrations("Kafka", f"kafka://{broker.bootstrap}/_schemas"),
            ["bare SQLite commit, WAL, synchronous=FULL", 1, *_timed(_sqlite_commit(f"{folder}/bare.db"), 1)],
            *_registrations("SQLite", f"sqlite:///{folder}/strata.db"),
        ]
    head = ["what", "at once", "per second", "p50 ms", "p95 ms"]
    return (
        f"A new schema each time, each under a subject of its own (records of about {_BODY} bytes), "
        f"{SECONDS:.0f} s a row, one node.\n\n{table(head, rows)}"
    )


def _registrations(name: str, log_url: str) -> list[list[object]]:
    with RegistryNode(log_url) as node:
        call = registration(node.port)
        call()
        return [[f"registration on {name}", n, *_timed(call, n)] for n in (1, AT_ONCE)]


def _timed(call: Callable[[], None], at_once: int) -> tuple[str, str, str]:
    end = time.perf_counter() + SECONDS

    def repeat(_: int) -> list[float]:
        taken = []
        while (started := time.perf_counter()) < end:
            call()
            taken.append(time.perf_counter() - started)
        return taken

    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as threads:
        times = sorted(t for part in threads.map(repeat, range(at_once)) for t in part)
    rate = len(times) / (time.perf_counter() - started)
    return f"{rate:,.0f}", f"{median(times) * 1000:.2f}", f"{times[int(len(times) * 0.95)] * 1000:.2f}"


def _kafka_round_trip(bootstrap: str) -> Callable[[], None]:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    topic, value = f"bare-{uuid4().hex}", b"x" * _BODY
    producer.produce(topic, value)
    producer.flush(30)

    def call() -> None:
        producer.produce(topic, value, key=b"k")
        if producer.flush(30):
            sys.exit("the broker did not acknowledge within 30 s")

    return call


def _sqlite_commit(file: str) -> Callable[[], None]:
    database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, value BLOB)")
    value = b"x" * _BODY

    def call() -> None:
        database.execute("INSERT INTO log (value) VALUES (?)", (value,))

    return call


def registration(port: int) -> Callable[[], None]:
    """Return a thread-safe function that registers one more new schema, under a new subject."""
    local = threading.local()

    def call() -> None:
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        number = next(_numbers)
        fields = [{"name": f"field_{i}", "type": "string", "doc": "x" * 20} for i in range(8)]
        schema = json.dumps({"type": "record", "name": f"Order{number}", "fields": fields})
        body = json.dumps({"schema": schema})
        local.connection.request("POST", f"/subjects/s{number}/versions", body, {"Content-Type": "application/json"})
        answer = local.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            sys.exit(f"registration answered {answer.status}: {content.decode()}")

    return call
