"""`strata replay` beside a bare consumer of the same topic, and its judges on records in memory."""

import sys
import time
from collections.abc import Callable
from statistics import median
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.orders import frames, schema_text
from bench.report import table
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from strata.gitops.replay.run import Replay
from strata.gitops.replay.start import Start
from strata.serdes.client import RegistryClient
from strata.serdes.model import Schema

__all__ = ["run"]

RECORDS = 1_000_000
PARTITIONS = 2
ROUNDS = 7
_BATCH, _FEW = 10_000, 500
_TOPIC = "orders"
_FASTEST = "`consume` of confluent-kafka, 500 at a time, and `value()` of each"


def run() -> str:
    """Fill a topic, read it in each way in turn, and return the table."""
    with (
        RegistryNode("memory:") as node,
        RegistryClient(node.url) as client,
        KafkaBroker(config={"num.partitions": str(PARTITIONS)}) as broker,
    ):
        client.set_config("NONE", subject="orders-value")
        ids = {n: client.register("orders-value", Schema(schema_text(n))).schema_id for n in (1, 2, 3)}
        _fill(broker.bootstrap, ids)
        ways: dict[str, Callable[[], int]] = {
            "`consume` of confluent-kafka, 10,000 at a time": lambda: _consumed(
                broker.bootstrap, _BATCH, is_read=False
            ),
            "the same, and `value()` of each": lambda: _consumed(broker.bootstrap, _BATCH, is_read=True),
            _FASTEST: lambda: _consumed(broker.bootstrap, _FEW, is_read=True),
            "`strata replay`, 3 writer schemas": lambda: _replayed(broker.bootstrap, client),
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        costs: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, way in ways.items():
                began, used = time.perf_counter(), time.process_time()
                if way() != RECORDS:
                    sys.exit(f"{name} has not read every record")
                if number:
                    rates[name].append(RECORDS / (time.perf_counter() - began))
                    costs[name].append((time.process_time() - used) / RECORDS * 1e6)
    fastest = rates[_FASTEST]
    rows = [
        [name, f"{max(each):,.0f}", f"{_ratio(each, fastest):.2f}", f"{min(costs[name]):.2f}"]
        for name, each in rates.items()
    ]
    scale = (
        f"{RECORDS:,} records of 20 fields and some 200 bytes in {PARTITIONS} partitions, the broker on the same "
        f"machine, {ROUNDS} rounds in turn after one to warm up: the best of each, and the median of its ratio to "
        "the bare consumer of 500 at a time in the same round; CPU time is that of the process, the threads of "
        "librdkafka included"
    )
    return f"{scale}.\n\n{table(['way', 'records/s', 'to 500 at a time', 'CPU µs a record'], rows)}"


def _ratio(rates: list[float], others: list[float]) -> float:
    return median(rate / other for rate, other in zip(rates, others, strict=True))


def _fill(bootstrap: str, ids: dict[int, int]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": RECORDS + 1})
    for number, frame in enumerate(frames(ids, RECORDS)):
        producer.produce(_TOPIC, frame, partition=number % PARTITIONS)
        if not number % _BATCH:
            producer.poll(0)
    if producer.flush(300):
        sys.exit("the broker did not accept all records within 300 s")


def _consumed(bootstrap: str, number: int, *, is_read: bool) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": str(uuid4()), "enable.auto.commit": False})
    consumer.assign([TopicPartition(_TOPIC, number, 0) for number in range(PARTITIONS)])
    count = 0
    while count < RECORDS and (messages := consumer.consume(number, timeout=30)):
        count += len(messages)
        if is_read:
            for message in messages:
                message.value()
    consumer.close()
    return count


def _replayed(bootstrap: str, client: RegistryClient) -> int:
    replay = Replay(client, _TOPIC, {"bootstrap.servers": bootstrap}, "orders-value")
    replay.read(Schema(schema_text(2)), Start())
    if replay.outcome.findings:
        sys.exit("the candidate reads every record")
    return replay.outcome.records
