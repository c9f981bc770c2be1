"""Flink SQL, the real one, writes and reads topics with its format avro-confluent, against a node and a broker."""

import json
import shutil
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.serialization import MessageField, SerializationContext

from harness.every_column import EVERYTHING, statement_of
from harness.jars import flink_sql_jars
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.skipif(not shutil.which("java"), reason="needs Java")]

SOURCE = Path(__file__).with_name("flink") / "Sql.java"
JVM = ["-Xmx768m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.util")]
RUN_S = 300
WAIT_S = 60
# What Flink makes of the columns, and a later version of it with one more field.
FIELDS = [
    '{"name":"id","type":"long"}',
    '{"name":"name","type":["null","string"],"default":null}',
    '{"name":"price","type":["null",{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}],"default":null}',
    '{"name":"placed","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null}',
]
MORE = '{"name":"coupon","type":["null","string"],"default":null}'


def record(*fields):
    """Return the record schema that Flink would make of some fields."""
    head = '"type":"record","name":"record","namespace":"org.apache.flink.avro.generated"'
    return f'{{{head},"fields":[{",".join(fields)}]}}'


@pytest.fixture(scope="module")
def flink():
    """Return the function that runs statements and returns the rows of their queries, and what went wrong."""
    class_path = ":".join(map(str, flink_sql_jars()))

    def run(*statements):
        command = ["java", *JVM, *OPENED, "-cp", class_path, str(SOURCE)]
        done = subprocess.run(
            command, input="\n;\n".join(statements), capture_output=True, text=True, timeout=RUN_S, check=False
        )
        return done.stdout.splitlines(), done.stderr if done.returncode else ""

    return run


@pytest.fixture
def table(kafka_broker, node):
    """Return a function that writes the statement of a table over a topic."""

    def create(name, columns, topic, connector="kafka", url=node.url, more=()):
        options = {
            "connector": connector,
            "topic": topic,
            "properties.bootstrap.servers": kafka_broker.bootstrap,
            "properties.group.id": topic,
            "scan.bounded.mode": "latest-offset",
            **({"scan.startup.mode": "earliest-offset"} if connector == "kafka" else {}),
            "value.format": "avro-confluent",
            "value.avro-confluent.url": url,
            **dict(more),
        }
        settings = ", ".join(f"'{option}' = '{value}'" for option, value in options.items())
        return f"CREATE TABLE {name} ({columns}) WITH ({settings})"

    return create


ORDERS = "id BIGINT NOT NULL, name STRING, price DECIMAL(9, 2), placed TIMESTAMP(3)"


def test_flink_and_our_serdes_read_each_other(flink, table, kafka_broker, node):
    """Flink registers the schema of an INSERT; our serdes read its frames; Flink reads ours of a later version."""
    topic = f"flink-{uuid4().hex[:8]}"
    first = table("orders", ORDERS, topic)

    rows, problem = flink(
        first,
        "INSERT INTO orders VALUES (1, 'a', 2.50, TIMESTAMP '2026-11-22 10:00:00'), "
        "(2, CAST(NULL AS STRING), CAST(NULL AS DECIMAL(9, 2)), TIMESTAMP '2026-11-22 11:00:00.123')",
    )

    assert ([], "") == (rows, problem)
    with RegistryClient(node.url) as client:
        assert record(*FIELDS) == client.get_version(f"{topic}-value", "latest").schema.text
        expected = [
            {"id": 1, "name": "a", "price": Decimal("2.50"), "placed": datetime(2026, 11, 22, 10, tzinfo=UTC)},
            {"id": 2, "name": None, "price": None, "placed": datetime(2026, 11, 22, 11, 0, 0, 123000, UTC)},
        ]
        read = AvroDeserializer(client)
        place = SerializationContext(topic, MessageField.VALUE)
        assert expected == [read(frame, place) for frame in frames(kafka_broker, topic, 2)]
        write = AvroSerializer(client, record(*FIELDS, MORE))
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
        producer.produce(topic, write({**expected[0], "id": 3, "coupon": "c"}, place))
        assert 0 == producer.flush(WAIT_S)

    rows, problem = flink(first, table("later", f"{ORDERS}, coupon STRING", topic),
                          "SELECT id, name FROM orders", "SELECT id, price, coupon FROM later")  # fmt: skip

    assert "" == problem
    assert ["+I[1, a]", "+I[2, null]", "+I[3, a]"] == rows[:3]
    assert ["+I[1, 2.50, null]", "+I[2, null, null]", "+I[3, 2.50, c]"] == rows[3:]


def test_an_upsert_table_in_a_context(flink, table, node):
    """An upsert table registers both schemas, in a context that its URL names, and reads its changes back."""
    topic = f"flink-{uuid4().hex[:8]}"
    url = f"{node.url}/contexts/.flink"
    keyed = {"key.format": "avro-confluent", "key.avro-confluent.url": url}
    columns = "id BIGINT NOT NULL, name STRING, PRIMARY KEY (id) NOT ENFORCED"
    people = table("people", columns, topic, "upsert-kafka", url, keyed)

    rows, problem = flink(people, "INSERT INTO people VALUES (1, 'a'), (2, 'b'), (1, 'c')", "SELECT * FROM people")

    assert "" == problem
    assert "+U[1, c]" in rows
    with RegistryClient(node.url) as client:
        assert {f":.flink:{topic}-key", f":.flink:{topic}-value"} <= {*client.get_subjects()}


def test_what_the_registry_refuses_fails_the_job(flink, table, node):
    """An INSERT whose schema is incompatible fails with the registry's words."""
    topic = f"flink-{uuid4().hex[:8]}"
    with RegistryClient(node.url) as client:
        client.register(f"{topic}-value", record('{"name":"id","type":"string"}'))

    rows, problem = flink(table("orders", ORDERS, topic), "INSERT INTO orders VALUES (1, 'a', 1.00, LOCALTIMESTAMP)")

    assert [] == rows
    assert "is incompatible with an earlier schema" in problem
    assert "error code: 409" in problem


def frames(broker, topic, count):
    """Return the values of a topic's first records."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": uuid4().hex, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        found = consumer.consume(count, timeout=WAIT_S)
        assert count == len(found)
        return [message.value() for message in found]
    finally:
        consumer.close()


def test_flink_makes_the_table_of_a_schema(flink):
    """Flink takes the statement of `strata table-ddl` for a schema with every type, and refuses another one."""
    statement = statement_of(EVERYTHING, "orders", "flink")

    assert ([], "") == flink(statement)
    assert "SqlParserException" in flink(statement.replace("ROW<", "STRUCT<"))[1]


def test_the_remark_above_the_statement_is_true(flink, table, kafka_broker, node):
    """Flink's avro-confluent does not read the column as `strata table-ddl` declares it, and reads it as it remarks."""
    topic = f"flink-{uuid4().hex[:8]}"
    placed = {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    schema = {"type": "record", "name": "Order", "fields": [placed]}
    printed = statement_of(schema, "orders", "flink")
    columns = printed.partition("(\n")[2].rpartition("\n)")[0]
    with RegistryClient(node.url) as client:
        frame = AvroSerializer(client, json.dumps(schema))({"placed": datetime(2026, 11, 22, tzinfo=UTC)}, topic=topic)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    producer.produce(topic, frame)
    assert 0 == producer.flush(WAIT_S)

    rows, problem = flink(table("orders", columns, topic), "SELECT * FROM orders")
    assert [] == rows
    assert "TIMESTAMP_LTZ(3)" in problem

    declared = columns.replace("TIMESTAMP_LTZ(3)", "TIMESTAMP(3)")
    assert (["+I[2026-11-22T00:00]"], "") == flink(table("orders", declared, topic), "SELECT * FROM orders")
