"""Kafka Connect with Confluent's converters, and Debezium's connector for PostgreSQL: serdes and Spark read them."""

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from google.protobuf.source_context_pb2 import SourceContext

from harness import spark_jar
from harness.connect import ConnectWorker
from harness.connect_jars import converter_jars, debezium_jars
from harness.jars import spark_kafka_jars
from harness.neighbours import Registry
from harness.postgres import Postgres
from harness.registry import RegistryNode
from harness.spark_servers import run_job, small
from harness.waiting import until
from strata.serdes import (
    AvroDeserializer,
    AvroSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryClient,
)

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

JOB = Path(__file__).parent / "jobs" / "topic_job.py"
AVRO, PROTOBUF = "io.confluent.connect.avro.AvroConverter", "io.confluent.connect.protobuf.ProtobufConverter"
DESERIALIZERS = {AVRO: AvroDeserializer, PROTOBUF: lambda client: ProtobufDeserializer(client, as_dict=True)}
CONVERTERS = [pytest.param(AVRO, id="avro"), pytest.param(PROTOBUF, id="protobuf")]


@pytest.fixture(scope="module")
def node() -> Iterator[RegistryNode]:
    """Yield the registry."""
    with RegistryNode("memory:") as node:
        yield node


@pytest.fixture(scope="module")
def registry(node) -> Registry:
    """Return a client of the registry."""
    return Registry(node.url, "")


@pytest.fixture(scope="module")
def worker(kafka_broker) -> Iterator[ConnectWorker]:
    """Yield a worker with the plugins."""
    with ConnectWorker(kafka_broker.bootstrap, [debezium_jars(), converter_jars()]) as worker:
        yield worker


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """Yield a server that lets others follow its log."""
    with Postgres(config={"wal_level": "logical"}) as server:
        yield server


@pytest.fixture
def shop(postgres) -> Iterator["Shop"]:
    """Yield a database with a table of orders."""
    url = postgres.new_database().replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        shop = Shop(url, connection)
        shop.run(
            "CREATE TABLE orders (id serial PRIMARY KEY, item text NOT NULL, price numeric(8, 2), packed boolean)",
            "ALTER TABLE orders REPLICA IDENTITY FULL",
        )
        yield shop


class Shop:
    """A database that a connector watches."""

    def __init__(self, url: str, connection: psycopg.Connection) -> None:
        self._url, self._connection = urlsplit(url), connection
        self.name = f"shop_{uuid4().hex[:8]}"
        self.topic = f"{self.name}.public.orders"
        self.subject = f"{self.topic}-value"

    def run(self, *statements: str) -> None:
        """Run statements."""
        for statement in statements:
            self._connection.execute(statement.encode())

    def connector(self, converter: str, registry_url: str) -> dict[str, str]:
        """Return the configuration of a connector that watches the table."""
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "tasks.max": "1",
            "database.hostname": str(self._url.hostname),
            "database.port": str(self._url.port),
            "database.user": "postgres",
            "database.password": "trusted",
            "database.dbname": self._url.path[1:],
            "topic.prefix": self.name,
            "slot.name": self.name,
            "publication.name": self.name,
            "plugin.name": "pgoutput",
            "table.include.list": "public.orders",
            **of_registry("key", converter, registry_url),
            **of_registry("value", converter, registry_url),
        }


def of_registry(part: str, converter: str, registry_url: str) -> dict[str, str]:
    """Return the settings of a converter."""
    return {f"{part}.converter": converter, f"{part}.converter.schema.registry.url": registry_url}


def records(broker, topic, count):
    """Return the keys and values of so many records of a topic with one partition."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": uuid4().hex, "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []

    def enough():
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value()))
        return len(found) >= count

    until(enough)
    consumer.close()
    return found


def in_spark(node, broker, topic, columns, folder):
    """Return the rows of a topic, as each path of Spark decodes them."""
    jars = ",".join(map(str, [spark_jar.build(), *spark_kafka_jars()]))
    conf = {**small(folder), "spark.master": "local[2]", "spark.jars": jars}
    options = {"conf": conf, "registry": node.url, "bootstrap": broker.bootstrap, "topic": topic, "columns": columns}
    found = run_job(JOB, options, {"PYSPARK_PYTHON": sys.executable})
    assert found["jvm"] == found["python"]
    return found["jvm"]


@pytest.mark.parametrize("converter", CONVERTERS)
def test_lines_of_a_file_are_read(worker, registry, node, kafka_broker, tmp_path, converter):
    """A file source registers its schema through the converter; the serdes and Spark read what it writes."""
    topic = f"lines-{uuid4().hex[:8]}"
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    worker.create(
        topic,
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(file),
            "topic": topic,
            "transforms": "hoist",
            "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms.hoist.field": "line",
            **of_registry("value", converter, node.url),
        },
    )
    expected = [{"line": "one"}, {"line": "two"}]

    with RegistryClient(node.url) as client:
        deserialize = DESERIALIZERS[converter](client)
        assert expected == [deserialize(value, topic=topic) for _, value in records(kafka_broker, topic, 2)]

    assert [1] == registry.call("GET", f"/subjects/{topic}-value/versions")
    assert expected == in_spark(node, kafka_broker, topic, ["value.*"], tmp_path)
    worker.delete(topic)


RECORD = '{"type": "record", "name": "Line", "fields": [{"name": "file_name", "type": "string"}]}'
# A serializer, and what makes a value of it.
SERIALIZERS = {
    AVRO: (lambda client: AvroSerializer(client, RECORD), dict),
    PROTOBUF: (lambda client: ProtobufSerializer(client, SourceContext), SourceContext),
}


@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_sink_reads_what_strata_writes(worker, node, kafka_broker, tmp_path, converter):
    """A converter decodes frames of Strata's serializers for a sink."""
    topic = f"written-{uuid4().hex[:8]}"
    file = tmp_path / "lines.txt"
    with RegistryClient(node.url) as client:
        make, value = SERIALIZERS[converter]
        serialize = make(client)
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
        for line in ("one", "two"):
            producer.produce(topic, serialize(value(file_name=line), topic=topic))
        producer.flush()

    worker.create(
        topic,
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "topics": topic,
            "file": str(file),
            **of_registry("value", converter, node.url),
        },
    )

    until(lambda: file.exists() and file.read_text() == "Struct{file_name=one}\nStruct{file_name=two}\n")
    worker.delete(topic)


# the change of the table, what is written then, before and after, and whether there is a new version
CHANGES = [
    ("", "INSERT INTO orders (item, price) VALUES ('pen', 1.5)",
     None, {"id": 1, "item": "pen", "price": Decimal("1.50"), "packed": None}, True),
    ("ALTER TABLE orders ADD COLUMN note text", "UPDATE orders SET note = 'gift' WHERE item = 'pen'",
     {"id": 1, "item": "pen", "price": Decimal("1.50"), "packed": None, "note": None},
     {"id": 1, "item": "pen", "price": Decimal("1.50"), "packed": None, "note": "gift"}, True),
    ("ALTER TABLE orders DROP COLUMN packed", "INSERT INTO orders (item, note) VALUES ('cap', 'blue')",
     None, {"id": 2, "item": "cap", "price": None, "note": "blue"}, True),
    ("ALTER TABLE orders ALTER COLUMN id TYPE bigint", "DELETE FROM orders WHERE item = 'cap'",
     {"id": 2, "item": "cap", "price": None, "note": "blue"}, None, True),
    ("", "INSERT INTO orders (item) VALUES ('mug')",
     None, {"id": 3, "item": "mug", "price": None, "note": None}, False),
]  # fmt: skip
OPERATIONS = ["c", "u", "c", "d", "c"]


def versions(registry, shop):
    """Return the versions of the values of the table's topic."""
    status, found = registry.ask("GET", f"/subjects/{shop.subject}/versions")
    return found if status == 200 else []


def test_envelopes_evolve_with_the_table(worker, registry, node, kafka_broker, shop, tmp_path):
    """A column added, dropped and widened each make a version; every envelope is read, with before, after and source.

    A change of type that no reader can follow is refused: the connector fails with the reason, and goes on when the
    subject's level allows it.
    """
    worker.create(shop.name, shop.connector(AVRO, node.url))
    count = 0
    for written, (change, statement, _, _, is_new) in enumerate(CHANGES, 1):
        count += is_new
        shop.run(*filter(None, [change, statement]))
        # A deletion is followed by a tombstone.
        kept = records(kafka_broker, shop.topic, written + (written > 4))
        assert [*range(1, count + 1)] == versions(registry, shop)
    with RegistryClient(node.url) as client:
        deserialize = AvroDeserializer(client)
        found = [deserialize(value, topic=shop.topic) for _, value in kept if value is not None]
        keys = [deserialize(key, topic=shop.topic)["id"] for key, _ in kept]
    assert [(before, after) for _, _, before, after, _ in CHANGES] == [(e["before"], e["after"]) for e in found]
    assert OPERATIONS == [e["op"] for e in found]
    assert {("postgresql", "public", "orders")} == {
        tuple(e["source"][name] for name in ("connector", "schema", "table")) for e in found
    }
    assert [1, 1, 2, 2, 2, 3] == keys
    names = ("id", "item", "price", "note")
    expected = [
        {"op": operation, "before": latest(before, names), "after": latest(after, names), "table": "orders"}
        for operation, (_, _, before, after, _) in zip(OPERATIONS, CHANGES, strict=True)
    ]
    columns = ["value.op", "value.before", "value.after", "value.source.table"]
    assert expected == in_spark(node, kafka_broker, shop.topic, columns, tmp_path)

    shop.run("ALTER TABLE orders ALTER COLUMN note TYPE integer USING 7", "UPDATE orders SET note = 8")
    failure = worker.failure(shop.name)
    assert "error code: 40901" in failure
    assert f"{shop.name}.public.orders.Value" in failure
    registry.call("PUT", f"/config/{shop.subject}", {"compatibility": "NONE"})
    worker.restart(shop.name)
    last = records(kafka_broker, shop.topic, 7)[-1][1]
    with RegistryClient(node.url) as client:
        assert 8 == AvroDeserializer(client)(last, topic=shop.topic)["after"]["note"]
    worker.delete(shop.name)


def latest(value, names):
    """Return a row as a reader of the latest version gets it, in JSON."""
    if value is None:
        return None
    row = {name: value.get(name) for name in names}
    return row | {"price": None if row["price"] is None else float(row["price"])}


def test_protobuf_numbers_the_columns_by_position(worker, registry, node, kafka_broker, shop, tmp_path):
    """The Protobuf converter gives tags by position: a column at the end can be added, one before it not dropped."""
    worker.create(shop.name, shop.connector(PROTOBUF, node.url))
    shop.run("INSERT INTO orders (item, packed) VALUES ('pen', true)")
    records(kafka_broker, shop.topic, 1)
    shop.run("ALTER TABLE orders ADD COLUMN note text", "UPDATE orders SET note = 'gift'")
    kept = [value for _, value in records(kafka_broker, shop.topic, 2)]
    with RegistryClient(node.url) as client:
        deserialize = ProtobufDeserializer(client, as_dict=True)
        found = [deserialize(value, topic=shop.topic)["after"] for value in kept]
    assert [{"id": 1, "item": "pen", "packed": True}, {"id": 1, "item": "pen", "packed": True, "note": "gift"}] == found
    columns = ["value.op", "value.after.item", "value.after.note", "value.source.table"]
    rows = in_spark(node, kafka_broker, shop.topic, columns, tmp_path)
    assert [("c", "pen", "orders"), ("u", "pen", "orders")] == [(r["op"], r["item"], r["table"]) for r in rows]
    assert "gift" == rows[1]["note"]
    assert [1, 2] == versions(registry, shop)

    shop.run("ALTER TABLE orders DROP COLUMN price", "UPDATE orders SET note = 'late'")
    assert "error code: 40901" in worker.failure(shop.name)
    worker.delete(shop.name)
