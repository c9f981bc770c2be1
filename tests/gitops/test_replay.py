"""`strata replay` reads a topic on a real broker with a schema that is not registered yet."""

import json
from contextlib import closing
from functools import partial
from uuid import UUID, uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from strata.gitops.replay.messages import Messages
from strata.gitops.replay.outcome import Place
from strata.gitops.replay.start import Start
from strata.gitops.replay.topic import TopicReader
from strata.serdes import AvroSerializer
from strata.serdes.client import RegistryClient, Schema

pytestmark = pytest.mark.kafka
FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": {"type": "enum", "name": "Carrier", "symbols": ["UA", "AA"]}},
        {"name": "legs", "type": {"type": "array", "items": "long"}},
    ],
}


class Topic:
    """A topic of one or two partitions, and the registry that its records' schemas are in."""

    def __init__(self, kafka_broker, service, files):
        self.name, self.files, self.url = f"flights-{uuid4().hex[:12]}", files, service.url
        self.broker = kafka_broker.bootstrap
        self.client = RegistryClient(self.url)
        self._producer = Producer({"bootstrap.servers": self.broker})

    def put(self, frames, partition=0, headers=None):
        """Write records."""
        for frame in frames:
            self._producer.produce(self.name, frame, partition=partition, headers=headers)
        self._producer.flush(30)

    def avro(self, *values, schema=FLIGHT):
        """Write Avro records."""
        serialize = AvroSerializer(self.client, json.dumps(schema))
        self.put([serialize(value, topic=self.name) for value in values])

    def replay(self, candidate, *options, code, file="new.avsc"):
        """Run the command, and return its report."""
        self.files.put(file, candidate if isinstance(candidate, str) else json.dumps(candidate))
        common = ["--schema", file, "--broker", self.broker, "--url", self.url, "--output", "json"]
        return json.loads(self.files.run("replay", self.name, *common, *options, code=code))


@pytest.fixture
def topic(kafka_broker, service, files):
    """Return a topic without records."""
    return Topic(kafka_broker, service, files)


def changed(schema, **types):
    """Return a schema with other types of some fields."""
    fields = [{**field, "type": types.get(field["name"], field["type"])} for field in schema["fields"]]
    return {**schema, "fields": fields}


def told(report):
    """Return the findings of a report in short: kind, path, count and first offsets."""
    return [
        (found["kind"], found["path"], found["count"], [place["offset"] for place in found["first"]])
        for found in report["findings"]
    ]


def test_every_record_is_read(topic):
    """A candidate that reads every record as it was written is not a finding; tombstones count, and all partitions."""
    topic.avro(*[{"carrier": "UA", "legs": [number]} for number in range(10)])
    topic.put([None])

    report = topic.replay(FLIGHT | {"doc": "the same"}, code=0)

    assert (11, 1, True, []) == (report["records"], report["withoutValue"], report["complete"], report["findings"])
    assert [([f"{topic.name}-value:1"], 10)] == [(one["versions"], one["records"]) for one in report["schemas"]]


def test_an_empty_topic(topic):
    """A topic without records is not a finding."""
    admin = AdminClient({"bootstrap.servers": topic.broker})
    admin.create_topics([NewTopic(topic.name, 1)])[topic.name].result(60)

    report = topic.replay(FLIGHT, code=0)

    assert (0, True, []) == (report["records"], report["complete"], report["findings"])


def test_every_framing(topic):
    """Records name their schema by id or GUID, in the value or in a header; some have none, and some have no value."""
    topic.avro({"carrier": "AA", "legs": [1]})
    [row] = topic.client.get_versions(f"{topic.name}-value")
    version = topic.client.get_version(f"{topic.name}-value", row)
    guid = b"\1" + UUID(version.guid).bytes
    payload = b"\2\2\2\0"
    topic.put([guid + payload, None, b"\0" + version.schema_id.to_bytes(4, "big") + payload])
    topic.put([payload], headers={"__value_schema_id": guid})
    carrier = {"type": "enum", "name": "Carrier", "symbols": ["UA"]}

    report = topic.replay(changed(FLIGHT, carrier=carrier), code=1)

    refused = {(one["schema"], one["path"]): [at["offset"] for at in one["first"]] for one in report["findings"]}
    assert (5, 1) == (report["records"], report["withoutValue"])
    assert refused == {(version.guid, "carrier"): [1, 4], (str(version.schema_id), "carrier"): [0, 3]}
    versions = {one["schema"]: one["versions"] for one in report["schemas"]}
    assert {version.guid: [f"{topic.name}-value:1"], str(version.schema_id): [f"{topic.name}-value:1"]} == versions


def test_what_the_candidate_cannot_read(topic):
    """Records that the candidate refuses are counted by path and reason, with the first offsets."""
    topic.avro(*[{"carrier": carrier, "legs": [1]} for carrier in ("UA", "AA", "UA", "AA")])
    topic.put([b"junk", b"\0\0\x0f\x42\x40rest"])
    carrier = {"type": "enum", "name": "Carrier", "symbols": ["UA"]}

    report = topic.replay(changed(FLIGHT, carrier=carrier), code=1)

    assert [
        ("unreadable", "carrier", 2, [1, 3]),
        ("unreadable", "", 1, [4]),
        ("unknown schema", "", 1, [5]),
    ] == told(report)
    assert "1000000" == report["findings"][2]["schema"]


def test_values_that_change_without_an_error(topic):
    """A long beyond 2^53 that is read as a double is shown as it was written and as it is read."""
    topic.avro({"carrier": "UA", "legs": [1, 2**53]}, {"carrier": "UA", "legs": [7, 2**53 + 1]})

    report = topic.replay(changed(FLIGHT, legs={"type": "array", "items": "double"}), code=1)

    assert [("changed", "legs[]", 1, [1])] == told(report)
    assert ("9007199254740993", "9007199254740992.0") == (
        report["findings"][0]["writtenAs"],
        report["findings"][0]["readAs"],
    )


def test_an_enum_that_falls_to_its_default(topic):
    """A symbol that the candidate replaces by its default is another value."""
    topic.avro(*[{"carrier": carrier, "legs": []} for carrier in ("UA", "AA")])
    carrier = {"type": "enum", "name": "Carrier", "symbols": ["UA"], "default": "UA"}

    assert [("changed", "carrier", 1, [1])] == told(topic.replay(changed(FLIGHT, carrier=carrier), code=1))


def test_what_the_candidate_could_not_have_written(topic):
    """Where old readers must read new records, a field that the candidate lacks is a finding."""
    topic.avro({"carrier": "UA", "legs": [1]})
    candidate = {**FLIGHT, "fields": FLIGHT["fields"][:1]}

    assert topic.replay(candidate, code=0)["findings"] == []
    topic.client.set_config("FULL", f"{topic.name}-value")
    report = topic.replay(candidate, code=1)
    assert [("not writable", "legs", 1, [0])] == told(report)
    assert "the schema has no such field" == report["findings"][0]["reason"]


def test_parts_of_a_topic(topic):
    """The last records of each partition, those since a time, and a sample can be read."""
    serialize = AvroSerializer(topic.client, json.dumps(FLIGHT))
    frames = [serialize({"carrier": "UA", "legs": [number]}, topic=topic.name) for number in range(3000)]
    topic.put(frames)

    assert 7 == topic.replay(FLIGHT, "--from", "-7", code=0)["records"]
    assert 3000 == topic.replay(FLIGHT, "--from", "2026-01-01", code=0)["records"]
    assert 0 == topic.replay(FLIGHT, "--from", "2100-01-01T00:00+02:00", code=0)["records"]
    assert 2000 == topic.replay(FLIGHT, "--sample", "2000", code=0)["records"]
    options = ["--schema", "new.avsc", "--broker", topic.broker, "--url", topic.url, "--from", "soon"]
    assert "expected earliest, a time" in topic.files.run("replay", topic.name, *options, code=2)


def message(type_):
    """Return the class of a message with one field."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    field = file.message_type.add(name="M").field.add(name="n", number=1, label=1)
    field.type = getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{type_.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))


def test_protobuf(topic):
    """A number that the candidate cuts is a finding, and so is a field whose bytes it skips."""
    text = 'syntax = "proto3"; message M { int64 n = 1; }'
    schema_id = topic.client.register(f"{topic.name}-value", Schema(text, "PROTOBUF")).schema_id
    frames = [message("int64")(n=number).SerializeToString() for number in (5, 2**40 + 1)]
    topic.put([b"\0" + schema_id.to_bytes(4, "big") + b"\0" + frame for frame in frames])

    narrow = topic.replay(text.replace("int64", "int32"), code=1, file="new.proto")
    other = topic.replay(text.replace("int64", "string"), code=1, file="new.proto")

    assert [("changed", "n", 1, [1])] == told(narrow)
    assert ("1099511627777", "1") == (narrow["findings"][0]["writtenAs"], narrow["findings"][0]["readAs"])
    assert [("changed", "n", 2, [0, 1])] == told(other)


def test_json(topic):
    """Documents that the candidate does not allow are counted by place and rule."""
    text = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    schema_id = topic.client.register(f"{topic.name}-value", Schema(text, "JSON")).schema_id
    topic.put([b"\0" + schema_id.to_bytes(4, "big") + json.dumps({"n": number}).encode() for number in (5, 50)])

    report = topic.replay(text.replace('"integer"', '"integer", "maximum": 9'), code=1, file="new.schema.json")

    assert [("unreadable", "n", 1, [1])] == told(report)


def test_an_interruption_shows_what_was_seen(topic, monkeypatch):
    """Ctrl-C prints the report of the records that were read until then, and says that it is not whole."""
    topic.avro({"carrier": "UA", "legs": []})
    read = TopicReader.read

    def interrupted(self, ranges):
        yield from read(self, ranges)
        raise KeyboardInterrupt

    monkeypatch.setattr(TopicReader, "read", interrupted)
    topic.files.put("new.avsc", json.dumps(FLIGHT))
    printed = topic.files.run(
        "replay", topic.name, "--schema", "new.avsc", "--broker", topic.broker, "--url", topic.url, code=130
    )

    assert "1 records; interrupted, this is what was seen until then" in printed


def test_an_apply_that_the_data_refuses(topic):
    """`strata apply --replay` writes nothing if a new schema does not read the records, and says which."""
    topic.avro({"carrier": "AA", "legs": []})
    topic.client.set_config("NONE")
    carrier = {"type": "enum", "name": "Carrier", "symbols": ["UA"]}
    topic.files.put("strata.yaml", f"subjects: [{{name: {topic.name}-value, file: new.avsc}}]")
    options = ["--url", topic.url, "--replay", topic.name, "--broker", topic.broker]

    topic.files.put("new.avsc", json.dumps(changed(FLIGHT, carrier=carrier)))
    refused = topic.files.run("apply", *options, code=2)
    report = topic.files.run("apply", *options, "--output", "json", code=2)
    topic.files.put("new.avsc", json.dumps(FLIGHT | {"doc": "more"}))
    accepted = topic.files.run("apply", *options, code=0)

    unchanged = topic.files.run("apply", *options, code=0)
    unknown = topic.files.run("apply", *options, "--replay", "flihgts", code=2)

    assert "every record as it was written" in accepted
    assert f"{topic.name}-value gets no new schema, so the records of {topic.name} are not read" in unchanged
    assert "flihgts-value is neither in the plan nor in the registry" in unknown
    assert "1  carrier: resolution: the reader's enum has no symbol AA" in refused
    assert "nothing was written" in refused
    assert '"path": "carrier"' in report
    assert "1 changed" in accepted
    assert [1, 2] == topic.client.get_versions(f"{topic.name}-value")


def test_nothing_is_committed(topic):
    """No consumer group is left behind."""
    topic.avro({"carrier": "UA", "legs": []})
    topic.replay(FLIGHT, code=0)

    groups = AdminClient({"bootstrap.servers": topic.broker}).list_consumer_groups(request_timeout=30).result()
    assert [] == [group.group_id for group in groups.valid if "replay" in group.group_id]


def test_errors(topic, files):
    """A missing topic, a broker that does not answer and a candidate that is not a schema are named."""
    topic.avro({"carrier": "UA", "legs": []})
    files.put("new.avsc", json.dumps(FLIGHT))
    files.put("bad.avsc", '{"type": "recrod"}')
    url = ["--url", topic.url]

    no_broker = files.run("replay", topic.name, "--schema", "new.avsc", *url, code=2)
    bad = files.run("replay", topic.name, "--schema", "bad.avsc", "--broker", topic.broker, *url, code=2)
    missing = files.run("replay", "no-such-topic", "--schema", "new.avsc", "--broker", topic.broker, *url, code=2)

    files.put("kafka.properties", "error_cb=secret")
    options = ["--broker", "127.0.0.1:1", *url]
    callback = files.run("replay", "t", "--schema", "new.avsc", "--kafka-config", "kafka.properties", *options, code=2)

    assert "strata: the settings of Kafka are not usable: expected error_cb property as a callable" in callback
    files.put(
        "kafka.properties", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=a\nsasl.password=b"
    )
    options = ["--broker", topic.broker, *url]
    refused = files.run("replay", "t", "--schema", "new.avsc", "--kafka-config", "kafka.properties", *options, code=2)

    assert "the topic t cannot be read: sasl_plaintext://" in refused
    assert "SASL PLAIN mechanism handshake failed" in refused
    assert "no broker: name one" in no_broker
    assert "the candidate cannot be used" in bad
    assert "no-such-topic" in missing


def batches(topic, **options):
    """Return the records of a topic as batches show them: offset, value or key, and header."""
    with closing(TopicReader(topic.name, {"bootstrap.servers": topic.broker}, **options)) as reader:
        return [
            (batch.place(row), frame, batch.headers and batch.headers[row])
            for batch in reader.read(reader.plan(Start(), None))
            for row, frame in enumerate(batch.frames())
        ]


def consumed(topic, header, *, is_key=False):
    """Return the same as confluent-kafka reads them."""
    consumer = Consumer({"bootstrap.servers": topic.broker, "group.id": "g", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    records = []
    while not (message := consumer.poll(30)).error():
        headers = dict(message.headers() or ()).get(header)
        records.append((Place(0, message.offset()), message.key() if is_key else message.value(), headers))
    consumer.close()
    return records


def test_the_records_of_a_topic(topic):
    """Values, keys, headers and offsets are those that confluent-kafka reads."""
    sizes = [None, 0, 1, 7, 8, 9, 63, 100_000, *range(200)]
    put = partial(topic._producer.produce, topic.name, partition=0)
    for number, size in enumerate(sizes):
        value = None if size is None else bytes(number * place % 251 for place in range(size))
        put(
            value=value,
            key=None if number % 3 else value and value[:5],
            headers={"other": b"x"} if number % 5 else None,
        )
    topic._producer.flush(30)
    plain = batches(topic)
    for header in ([("__value_schema_id", b"old"), ("__value_schema_id", b"new")], [("__value_schema_id", None)]):
        put(value=b"v", headers=header)
    put(value=b"v", key=b"k", headers={"__key_schema_id": b"", "__value_schema_id": b"guid"})
    topic._producer.flush(30)

    assert {None} == {header for *_, header in plain}
    assert consumed(topic, "__value_schema_id") == batches(topic)
    assert consumed(topic, "__key_schema_id", is_key=True) == batches(topic, is_key=True)
    assert [b"new", None, b"guid"] == [header for *_, header in batches(topic)][-3:]


def test_records_that_are_not_committed(topic):
    """Aborted records are left out, and an open transaction is the end of its partition."""
    producer = Producer({"bootstrap.servers": topic.broker, "transactional.id": topic.name})
    producer.init_transactions(30)
    for value, end in ((b"a", producer.commit_transaction), (b"b", producer.abort_transaction), (b"c", producer.flush)):
        producer.begin_transaction()
        producer.produce(topic.name, value, partition=0)
        end(30)
    read = batches(topic)
    producer.abort_transaction(30)

    assert [(Place(0, 0), b"a", None)] == read


def test_records_written_meanwhile(topic):
    """Reading ends at the end that the topic had at the start."""
    topic.put([b"a", b"b"])
    with closing(TopicReader(topic.name, {"bootstrap.servers": topic.broker})) as reader:
        topic.put([b"c"])
        read = [frame for batch in reader.read(reader.plan(Start(), None)) for frame in batch.frames()]

    assert [b"a", b"b"] == read


def test_what_a_ctrl_c_leaves_behind(topic, monkeypatch):
    """An interruption between two steps with messages does not keep the reader from closing."""

    def interrupted(self, count, end):
        assert count == 2
        raise KeyboardInterrupt

    topic.put([b"a", b"b"])
    monkeypatch.setattr(Messages, "_taken", interrupted)

    with pytest.raises(KeyboardInterrupt):
        batches(topic)


def test_settings_of_a_program_with_a_group(topic):
    """A file of settings that belongs to a program cannot make the reading commit."""
    topic.put([b"a"])
    settings = {"group.id": topic.name, "enable.auto.commit": "true", "enable.auto.offset.store": "true"}
    with closing(TopicReader(topic.name, {"bootstrap.servers": topic.broker, **settings})) as reader:
        assert 1 == sum(map(len, reader.read(reader.plan(Start(), None))))
    groups = AdminClient({"bootstrap.servers": topic.broker}).list_consumer_groups(request_timeout=30).result()

    assert topic.name not in {group.group_id for group in groups.valid}


def test_a_plan_of_blocks(topic):
    """A sample is taken in blocks that are spread evenly over all partitions."""
    reader = TopicReader.__new__(TopicReader)
    reader._topic, reader._ends = "t", {0: (100, 10_100), 1: (0, 10_000)}

    assert [(0, 100, 1100), (0, 5100, 6100), (1, 0, 1000), (1, 5000, 6000)] == reader.plan(Start(), 4000)
    assert [(0, 100, 10_100), (1, 0, 10_000)] == reader.plan(Start(), None)
    assert [(0, 10_090, 10_100), (1, 9990, 10_000)] == reader.plan(Start(last=10), None)
