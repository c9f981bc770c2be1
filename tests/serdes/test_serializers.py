"""AvroSerializer and AvroDeserializer work against the real registry."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import pytest

from strata.serdes.avro import AvroDeserializer, AvroSerializer, Limits
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import DecodeError, EncodeError, FrameError, RegistryError, SchemaError, SerdeError
from strata.serdes.framing import join, split
from strata.serdes.json_schema import JsonSerializer
from strata.serdes.subject_name_strategies import Context, record_name

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
ORDER_2 = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
NOW = datetime(2024, 5, 6, 7, 8, 9, 123_000, UTC)
VALUE = {"id": 7, "at": NOW}


def counted(client, monkeypatch):
    """Count the requests that a client sends from now on."""
    sent, request = [], client._transport.request
    monkeypatch.setattr(
        client._transport,
        "request",
        lambda method, path, **more: sent.append(f"{method} {path}") or request(method, path, **more),
    )
    return sent


def test_a_value_makes_the_round_trip(client):
    """A record is written to a frame and read back unchanged."""
    frame = AvroSerializer(client, ORDER)(VALUE, topic="trip")

    assert client.get_version("trip-value").schema_id == split(frame)[0]
    assert AvroDeserializer(client)(frame) == VALUE


def test_none_is_a_tombstone(client):
    """None is written as a null record, and nothing is registered for it."""
    assert AvroSerializer(client, ORDER)(None, topic="tombstone") is None
    assert AvroDeserializer(client)(None) is None
    with pytest.raises(RegistryError):
        client.get_version("tombstone-value")


def test_the_registry_is_asked_once_per_subject_and_id(registry_url, monkeypatch):
    """After the first record of a subject, and of an id, no request is sent."""
    with RegistryClient(registry_url) as client:
        sent = counted(client, monkeypatch)
        serialize, deserialize = AvroSerializer(client, ORDER), AvroDeserializer(client)
        for _ in range(3):
            for topic in ("once-a", "once-b"):
                deserialize(serialize(VALUE, topic=topic))

    registered = ["POST /subjects/once-a-value/versions", "POST /subjects/once-b-value/versions"]
    assert registered == [one for one in sent if one.startswith("POST")]
    assert len(sent) == 5  # and once for the subject associated with each topic, and for the id


def test_many_threads_share_them(client):
    """One pair serves all threads of a process."""
    serialize, deserialize = AvroSerializer(client, ORDER), AvroDeserializer(client)

    def trip(number):
        return deserialize(serialize({"id": number, "at": NOW}, topic=f"threads-{number % 4}"))["id"]

    with ThreadPoolExecutor(8) as pool:
        assert list(range(400)) == list(pool.map(trip, range(400)))


def test_a_reader_schema_gives_one_shape(client):
    """Records of all versions have one shape; each is read by the schema that it was written with."""
    old = AvroSerializer(client, ORDER)(VALUE, topic="shape")
    new = AvroSerializer(client, ORDER_2)({**VALUE, "note": "x"}, topic="shape")

    forward, backward = AvroDeserializer(client, ORDER), AvroDeserializer(client, Schema(ORDER_2))

    assert split(old)[0] != split(new)[0]
    assert [VALUE, VALUE] == [forward(old), forward(new)]
    assert [{**VALUE, "note": None}, {**VALUE, "note": "x"}] == [backward(old), backward(new)]


def test_options_of_the_decoder(client):
    """Limits and output options reach the decoder."""
    frame = AvroSerializer(client, ORDER)(VALUE, topic="options")
    nulls = AvroSerializer(client, '{"type": "array", "items": "null"}')([None] * 6, topic="options-nulls")

    assert AvroDeserializer(client, numeric_times=True)(frame) == {"id": 7, "at": 1714979289123}
    with pytest.raises(DecodeError, match="limit"):
        AvroDeserializer(client, limits=Limits(max_weightless=5))(nulls)


def test_objects_of_yours(client):
    """Two functions convert classes to mappings and back."""

    @dataclass
    class Order:
        id: int
        at: datetime

    serialize = AvroSerializer(client, ORDER, to_dict=lambda order, context: asdict(order) | {"id": len(context.topic)})
    deserialize = AvroDeserializer(client, from_dict=lambda value, context: (context.topic, Order(**value)))

    assert deserialize(serialize(Order(7, NOW), topic="objects"), topic="objects") == ("objects", Order(7, NOW))


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "strategies-key"),
        ("RecordNameStrategy", "shop.Order"),
        (record_name, "shop.Order"),
        ("TopicRecordNameStrategy", "strategies-shop.Order"),
        (lambda context, record: f"mine:{context.field}:{record}", "mine:key:shop.Order"),
    ],
)
def test_subject_name_strategies(client, strategy, subject):
    """The strategy decides where the schema is registered."""
    AvroSerializer(client, ORDER, conf={"subject.name.strategy": strategy})(VALUE, Context("strategies", "key"))

    assert subject in client.get_subjects()


def test_without_registering_the_schema_must_be_there(client):
    """With `auto.register.schemas` off the schema is looked up."""
    serialize = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False})
    with pytest.raises(RegistryError) as caught:
        serialize(VALUE, topic="lookup")
    client.register("lookup-value", ORDER)

    assert caught.value.error_code == 40401
    assert "auto.register.schemas is False: register this schema under 'lookup-value' before" in str(caught.value)
    assert VALUE == AvroDeserializer(client)(serialize(VALUE, topic="lookup"))


def test_writing_with_the_latest_version(client, monkeypatch):
    """With `use.latest.version` the subject's latest schema is used, and looked up again after a while."""
    client.register("latest-value", ORDER)
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    forever = AvroSerializer(client, ORDER, conf=conf)
    expiring = AvroSerializer(client, ORDER, conf={**conf, "latest.cache.ttl.sec": 0})
    first = [split(serialize(VALUE, topic="latest"))[0] for serialize in (forever, expiring)]

    newer = client.register("latest-value", ORDER_2).schema_id
    second = [split(serialize(VALUE, topic="latest"))[0] for serialize in (forever, expiring)]

    assert [first[0], newer] == second
    assert AvroDeserializer(client)(expiring(VALUE, topic="latest")) == {**VALUE, "note": None}


def test_writing_with_a_chosen_id(client):
    """With `use.schema.id` the value is written with that schema."""
    chosen = client.register("chosen-value", ORDER_2).schema_id
    serialize = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False, "use.schema.id": chosen})

    frame = serialize(VALUE, topic="elsewhere")

    assert chosen == split(frame)[0]
    assert AvroDeserializer(client)(frame) == {**VALUE, "note": None}


def test_normalized_registration(client):
    """With `normalize.schemas` another spelling is the same schema."""
    conf = {"normalize.schemas": True}
    spellings = ['{"type":"string","a":1,"b":2}', '{"type":"string","b":2,"a":1}']

    assert len({AvroSerializer(client, one, conf=conf)("x", topic="spelling") for one in spellings}) == 1


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        (
            {"auto.register.schema": True},
            "unknown setting .auto.register.schema.; did you mean .auto.register.schemas.",
        ),
        ({"auto.register.schemas": "yes"}, "auto.register.schemas: expected True or False, got 'yes'"),
        ({"use.latest.version": True}, "use.latest.version needs auto.register.schemas set to False"),
        ({"subject.name.strategy": "Mine"}, "unknown subject name strategy 'Mine'; expected TOPIC"),
    ],
)
def test_bad_settings_are_refused(client, conf, says):
    """The error names the setting, its value and the allowed values."""
    with pytest.raises(ValueError, match=says):
        AvroSerializer(client, ORDER, conf=conf)


def test_bad_schemas_are_refused_when_made(client):
    """A schema text that cannot be parsed is refused in the constructor, not at the first record."""
    for make in (AvroSerializer, AvroDeserializer):
        with pytest.raises(SchemaError):
            make(client, "{")


def test_a_serializer_needs_to_know_the_topic(client):
    """Without a topic there is no subject."""
    with pytest.raises(SerdeError, match="needs a topic"):
        AvroSerializer(client, ORDER)(VALUE)


def test_a_value_that_does_not_fit_names_the_field(client):
    """The error names the field and comes before anything is sent to a topic."""
    with pytest.raises(EncodeError) as caught:
        AvroSerializer(client, ORDER)({"id": "7", "at": NOW}, topic="misfit")

    assert caught.value.path == "id"


def test_damaged_frames_say_what_is_wrong(client):
    """Each kind of damage has its own error, with schema id and topic where they are known."""
    frame = AvroSerializer(client, ORDER)(VALUE, topic="damage")
    schema_id, payload = split(frame)
    deserialize = AvroDeserializer(client)

    with pytest.raises(FrameError, match="wrong magic byte 0x7b"):
        deserialize(b'{"id": 7}')
    with pytest.raises(FrameError, match="frame too short"):
        deserialize(b"\x00\x00")
    with pytest.raises(RegistryError, match="Schema 999999 not found"):
        deserialize(join(999_999, payload))
    with pytest.raises(DecodeError) as truncated:
        deserialize(frame[:-1], topic="damage")
    with pytest.raises(DecodeError) as trailing:
        deserialize(frame + b"\x00", Context("damage"))

    for caught, reason in ((truncated, "truncated"), (trailing, "trailing bytes")):
        assert (reason, schema_id, "damage") == (caught.value.reason, caught.value.schema_id, caught.value.topic)
    assert VALUE == deserialize(frame)


def test_a_setting_rounds_times(client):
    """`round.times` reaches the encoder of an Avro serializer; the other formats do not have it."""
    schema = '{"type": "long", "logicalType": "timestamp-millis"}'
    fine = datetime(2024, 3, 1, 12, 0, 0, 5999, UTC)
    frame = AvroSerializer(client, schema, conf={"round.times": True})(fine, topic="rounded")

    assert fine.replace(microsecond=5000) == AvroDeserializer(client)(frame)
    with pytest.raises(EncodeError, match=r"or set round\.times"):
        AvroSerializer(client, schema)(fine, topic="rounded")
    with pytest.raises(ValueError, match=r"unknown setting 'round\.times"):
        JsonSerializer(client, "{}", conf={"round.times": True})


class ForeignContext:
    """A context with a topic, a field and headers only, as confluent-kafka's."""

    topic, field = "orders", "value"

    def __init__(self, headers=None):
        self.headers = headers


BAD_HEADER = [("__value_schema_id", "text")]


@pytest.mark.parametrize(
    ("data", "context", "place", "sentence"),
    [
        (b"\x00", Context(), (None, None, None), "frame too short"),
        (b"\x00", Context("orders"), ("orders", None, None), "frame too short (topic orders)"),
        (
            b"\x00",
            Context("orders", partition=0, offset=0),
            ("orders", 0, 0),
            "frame too short (topic orders, partition 0, offset 0)",
        ),
        (b"\x00", ForeignContext(), ("orders", None, None), "frame too short (topic orders)"),
        (
            b"",
            ForeignContext(BAD_HEADER),
            ("orders", None, None),
            "header __value_schema_id: expected bytes, got str (topic orders)",
        ),
        (
            b"",
            Context("orders", headers=BAD_HEADER, partition=3, offset=41),
            ("orders", 3, 41),
            "header __value_schema_id: expected bytes, got str (topic orders, partition 3, offset 41)",
        ),
    ],
    ids=["nothing known", "topic", "all", "another context", "header of another context", "header"],
)
def test_bytes_that_are_no_frame_name_their_record(client, data, context, place, sentence):
    """A `FrameError` has the topic, partition and offset that the context has, and its text names them."""
    with pytest.raises(FrameError) as caught:
        AvroDeserializer(client)(data, context)
    error = caught.value
    assert (place, sentence) == ((error.topic, error.partition, error.offset), str(error))


def test_a_schema_of_another_format_is_named(scripted_servers, answer):
    """The error names the format of a schema that is not Avro, and the undefined type of an incomplete one."""
    server = scripted_servers(answer(body={"schema": "{}", "schemaType": "JSON"}), answer(body={"schema": '"a.Other"'}))
    deserialize = AvroDeserializer(RegistryClient(server.url))

    with pytest.raises(SchemaError, match="schema 5: expected the format AVRO, got JSON"):
        deserialize(join(5, b""))
    with pytest.raises(SchemaError, match=r"schema 6: the type a\.Other is not defined"):
        deserialize(join(6, b""))


def test_both_pickle(client):
    """Serializer and deserializer work in another process after pickling."""
    serialize = pickle.loads(pickle.dumps(AvroSerializer(client, ORDER, conf={"normalize.schemas": True})))
    deserialize = pickle.loads(pickle.dumps(AvroDeserializer(client, ORDER, numeric_times=True)))

    assert deserialize(serialize(VALUE, topic="pickled")) == {"id": 7, "at": 1714979289123}
