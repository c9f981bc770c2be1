"""The effect of many schemas on a node: start, memory, and every kind of request with 1,000, 100,000 and 1,000,000."""

import http.client
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.filled_logs import SHARED_EVERY, VERSIONS, fill_topic, filled, records
from bench.node_costs import cpu_seconds
from bench.report import table
from bench.service import measured
from bench.service_rows import REGISTER, prepare
from bench.wrk import check_installed
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode

__all__ = ["run"]

SIZES = 1_000, 100_000, 1_000_000
STARTS = 2
ROUNDS = 2
SECONDS = 2
AT_ONCE = 16


def run() -> str:
    """Fill the logs, measure on them, and return the tables."""
    check_installed()
    with tempfile.TemporaryDirectory() as folder:
        urls = [filled(folder, size) for size in SIZES]
        starts = [_started(f"SQLite, {size:,} schemas", url) for size, url in zip(SIZES, urls, strict=True)]
        with KafkaBroker() as broker:
            for size in SIZES[1:]:
                url = fill_topic(broker.bootstrap, f"schemas-{size}", size)
                starts.append(_started(f"Kafka, {size:,} schemas", url))
        growth = _growth(urls)
    head = ["log", "start to ready, s", "CPU s of it", "RSS, MiB", "peak, MiB"]
    mean = sum(len(record.value or b"") for record in records(SIZES[0])) / SIZES[0]
    return (
        f"Avro records under subjects of {VERSIONS} versions each, {mean:.0f} bytes a record of the log, every "
        f"{SHARED_EVERY}th subject begins with a schema of another. One worker. Best of {STARTS} starts.\n\n"
        f"{table(head, starts)}\n\n{growth}"
    )


def _started(name: str, url: str) -> list[str]:
    figures = [_start(url) for _ in range(STARTS)]
    seconds, cpu, resident, peak = (min(column) for column in zip(*figures, strict=True))
    return [name, f"{seconds:.2f}", f"{cpu:.2f}", f"{resident:.0f}", f"{peak:.0f}"]


def _start(url: str) -> tuple[float, float, float, float]:
    started = time.monotonic()
    with RegistryNode(url) as node:
        seconds = time.monotonic() - started
        _get(node.port, "/health/ready")
        process, cpu = Path(f"/proc/{node.pid}"), cpu_seconds([node.pid])
        status = dict(line.split(":", 1) for line in process.joinpath("status").read_text().splitlines())
        resident, peak = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return seconds, cpu, resident, peak


def _growth(urls: Sequence[str]) -> str:
    """Measure the rows of the table `service` on all nodes in turn, so that other load on the machine affects all."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(RegistryNode(url)) for url in urls]
        asked = [[*prepare(node, {})[0], REGISTER] for node in nodes]
        rows = []
        for each in zip(*asked, strict=True):
            means = [0.0] * len(nodes)
            for _ in range(ROUNDS):
                for i, (node, row) in enumerate(zip(nodes, each, strict=True)):
                    means[i] += measured(node, row, AT_ONCE, SECONDS).load.per_second / ROUNDS
            ratios = [f"{mean / means[0]:.2f}" for mean in means[1:]]
            rows.append([each[0].name, each[0].answer, *(f"{mean:,.0f}" for mean in means), *ratios])
    head = [
        "per second",
        "answer",
        *(f"with {size:,}" for size in SIZES),
        *(f"ratio of {size:,}" for size in SIZES[1:]),
    ]
    return (
        f"One worker on SQLite, {AT_ONCE} connections, all nodes in turn, means of {ROUNDS} runs of {SECONDS} s.\n\n"
        f"{table(head, rows)}"
    )


def _get(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"{path} answered {answer.status}: {json.loads(answer.read())}")
    connection.close()
