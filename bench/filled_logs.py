"""Logs that hold a number of schemas, for measurements."""

import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

from confluent_kafka import Producer

from harness.registry import RegistryNode
from strata.storage.log import START, Record
from strata.storage.record_json import encode
from strata.storage.records import SchemaId, SchemaKey, SchemaValue, Subject, Version
from strata.storage.sql.log import SqlLog

__all__ = ["SHARED_EVERY", "VERSIONS", "fill_topic", "filled", "records"]

VERSIONS = 5
"""How many versions a subject has."""
SHARED_EVERY = 10
"""Of how many subjects one begins with a schema of another."""
_BATCH = 10_000
_STEMS = ("total", "unit", "net", "gross", "line")


def records(size: int) -> Iterator[Record]:
    """Yield the records of the schemas, in subjects of a few versions; some subjects begin with a shared schema."""
    schema_id, shared = 0, (SchemaId(1), _text(0, 1))
    for number in range(size // VERSIONS):
        subject = Subject(f"shop.orders-{number}-value")
        for version in range(1, VERSIONS + 1):
            if version == 1 and number % SHARED_EVERY == SHARED_EVERY - 1:
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


def filled(folder: str, size: int, name: str | None = None) -> str:
    """Return the URL of a new SQLite log that holds a number of schemas."""
    url = f"sqlite:///{folder}/{name or size}.db"
    source, end = records(size), START
    with closing(SqlLog(url)) as log:
        while batch := list(islice(source, _BATCH)):
            end = log.append(end, batch)[-1].offset
    return url


def fill_topic(bootstrap: str, topic: str, size: int) -> str:
    """Return the URL of a new Kafka log that holds a number of schemas."""
    url = f"kafka://{bootstrap}/{topic}"
    with RegistryNode(url):
        pass  # creates the topic
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": size + 1})
    for record in records(size):
        producer.produce(topic, record.value, record.key, 0)
    if producer.flush(120):
        sys.exit("the broker did not accept all records within 120 s")
    return url
