"""How long answers take on Kafka: below the highest rate, far from the broker, and with three nodes."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.filled_logs import fill_topic
from bench.node_costs import waited_seconds
from bench.report import table
from bench.service import SCHEMAS, measured, warm_up
from bench.service_rows import REGISTER, Row, prepare
from bench.wrk import Load, check_installed, start, waited_for
from faults.proxy import Proxy
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode

__all__ = ["run"]

_SECONDS, _SHARE = 4, 0.7
_LEASES = ("", "100ms")
_DISTANCES_MS = (0, 1, 5)
_NODES, _CONNECTIONS, _WRITES = 3, 4, 20.0
_LATEST = "GET /subjects/{s}/versions/latest"

_BELOW = (
    f"p99 at {_SHARE:.0%} of the highest rate, in ms, and for how many µs the threads of the node were ready and "
    "waited for a core, for each request:"
)
_FAR = (
    f"`{_LATEST}`, repeated, on a node of one worker; a round trip to the broker takes so many ms more. Requests per "
    "second / p50 in ms:"
)
_THREE = (
    f"{_NODES} nodes of one worker on one broker. Each is asked for `{_LATEST}` on {_CONNECTIONS} connections, while "
    f"one of them registers {_WRITES:.0f} schemas a second. The sum of the reads per second, and the highest p99 of a "
    "node in ms:"
)


def run() -> str:
    """Measure, and return the tables."""
    check_installed()
    with ExitStack() as stack:
        proxy = Proxy()
        stack.callback(proxy.close)
        broker = stack.enter_context(KafkaBroker(proxied={"FAR": [proxy.port]}, lasting=True))
        proxy.lead_to(broker.listener_port("FAR", 0))
        warm_up(broker.bootstrap, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        parts = [_BELOW, _below_saturation(broker), _FAR, _distances(broker, proxy), _THREE, _three_nodes(broker)]
        return "\n\n".join(parts)


@contextmanager
def _node(bootstrap: str, name: str, *options: str, lease: str = "100ms", fill: str = "") -> Iterator[RegistryNode]:
    url = fill_topic(fill, name, SCHEMAS) if fill else f"kafka://{bootstrap}/{name}"
    url = f"kafka://{bootstrap}/{url.rpartition('/')[2]}"
    with RegistryNode(url, *options, f"--read-lease={lease or 0}") as node:
        yield node


def _below_saturation(broker: KafkaBroker) -> str:
    lines = []
    with _node(broker.bootstrap, "steady", "--workers=2", fill=broker.bootstrap) as node:
        reads, _ = prepare(node, {})
        for row in [*(row for row in reads if row.answer in {"repeated", "new schema"}), REGISTER]:
            for connections in row.connections:
                highest = measured(node, row, connections, _SECONDS).load
                load, waited = _paced(node, row, connections, highest.per_second * _SHARE)
                numbers = [f"{highest.per_second:,.0f}", f"{load.per_second:,.0f}", f"{load.p50_ms:.2f}"]
                lines.append([row.name, row.answer, connections, *numbers, f"{load.p99_ms:.2f}", f"{waited:.0f}"])
    return table(["what", "answer", "connections", "highest rate", "rate", "p50", "p99", "waited, µs"], lines)


def _paced(node: RegistryNode, row: Row, connections: int, rate: float) -> tuple[Load, float]:
    pids = [node.pid, *node.workers]
    before = waited_seconds(pids)
    load = waited_for(start(node.url, row.request, connections, _SECONDS, rate=rate))
    return load, (waited_seconds(pids) - before) / max(load.requests, 1) * 1e6


def _distances(broker: KafkaBroker, proxy: Proxy) -> str:
    lines = []
    for lease in _LEASES:
        with _node(broker.bootstrap_by("FAR"), f"far-{lease or 'off'}", "--workers=1", lease=lease) as node:
            reads, _ = prepare(node, {})
            row = next(row for row in reads if row.name == _LATEST)
            for distance in _DISTANCES_MS:
                proxy.slow(distance / 2000)
                loads = [measured(node, row, connections, _SECONDS).load for connections in row.connections]
                cells = [f"{load.per_second:,.0f} / {load.p50_ms:.2f}" for load in loads]
                lines.append([lease or "off", distance, *cells])
            proxy.slow(0.0)
    return table(["lease", "ms more", "1 connection", "16 connections"], lines)


def _three_nodes(broker: KafkaBroker) -> str:
    lines = []
    for lease in _LEASES:
        name = f"three-{lease or 'off'}"
        with ExitStack() as stack:
            nodes = [
                stack.enter_context(_node(broker.bootstrap, name, "--workers=1", lease=lease)) for _ in range(_NODES)
            ]
            reads, _ = prepare(nodes[0], {})
            row = next(row for row in reads if row.name == _LATEST)
            writer = start(nodes[0].url, REGISTER.request, 1, _SECONDS + 1, rate=_WRITES)
            asking = [start(node.url, row.request, _CONNECTIONS, _SECONDS) for node in nodes]
            loads = [waited_for(each) for each in asking]
            written = waited_for(writer)
        rates = [f"{sum(load.per_second for load in loads):,.0f}", f"{max(load.p99_ms for load in loads):.2f}"]
        lines.append([lease or "off", *rates, f"{written.per_second:.0f}", f"{written.p99_ms:.2f}"])
    return table(["lease", "reads", "p99", "registrations", "their p99"], lines)
