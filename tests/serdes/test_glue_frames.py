"""Frames of AWS Glue are read like ours: by versions that were migrated, or by Glue itself."""

import asyncio
import zlib
from uuid import UUID

import pytest

from harness.aws_sessions import shared_descriptions
from harness.glue_frames import SCHEMAS, VECTORS, glue_with, register
from harness.processes import free_port
from strata.serdes.aio import AsyncDeserializer
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient
from strata.serdes.errors import DecodeError, FrameError, NoMessage, RegistryError, RegistryUnavailable
from strata.serdes.framing import MAX_INFLATED, GlueVersion, open_frame
from strata.serdes.json_schema import JsonDeserializer
from strata.serdes.protobuf import ProtobufDeserializer
from strata.serdes.subject_name_strategies import Context

READERS = {
    "AVRO": AvroDeserializer,
    "JSON": JsonDeserializer,
    "PROTOBUF": lambda client: ProtobufDeserializer(client, as_dict=True),
}
UNKNOWN = UUID("00000000-0000-4000-8000-000000000001")
BY_NAME = {one.name: one for one in VECTORS}
AVRO = SCHEMAS["orders-avro"]
HEAD = b"\3\0" + AVRO.version.bytes
PACKED = b"\3\5" + AVRO.version.bytes


@pytest.fixture(scope="module")
def client(registry_url):
    """Return a client of a registry into which the versions were migrated."""
    with RegistryClient(registry_url, missing_ttl=600) as one:
        register(one)
        yield one


@pytest.mark.parametrize("vector", VECTORS, ids=BY_NAME)
def test_what_aws_framed_is_read(client, vector):
    """Each format is read, compressed or not, with a topic and without, and by asyncio."""
    read = READERS[vector.schema.schema.format](client)

    assert vector.value == read(vector.frame)
    assert vector.value == read(vector.frame, topic="orders")
    assert vector.value == asyncio.run(AsyncDeserializer(read)(vector.frame))


def test_one_deserializer_reads_a_mixed_topic(client):
    """Frames of Glue, frames with an id, and records with a GUID in their header share a topic."""
    value = {"id": 7, "name": "seven", "tags": ["a", "b"]}
    by_id = AvroSerializer(client, AVRO.schema.text)(value, topic="glue-mixed")
    headed = Context("glue-mixed", "value", [])
    payload = AvroSerializer(client, AVRO.schema.text, conf={"schema.id.serializer": "header"})(value, headed)
    read = AvroDeserializer(client)

    assert [value] * 4 == [
        read(BY_NAME["Avro NONE"].frame, topic="glue-mixed"),
        read(BY_NAME["Avro ZLIB"].frame, topic="glue-mixed"),
        read(by_id, topic="glue-mixed"),
        read(payload, headed),
    ]


def bomb(size):
    """Return a compressed frame whose payload has this many bytes."""
    return PACKED + zlib.compress(bytes(size), 1)


# what is wrong, frame, reason
REFUSED = [
    ("too short for a UUID", b"\3\0" + b"u" * 15, "frame too short"),
    ("compressed, too short for a UUID", b"\3\5" + b"u" * 15, "frame too short"),
    ("an unknown compression", b"\3\7" + AVRO.version.bytes, "unknown compression 0x07 in a frame of AWS Glue"),
    ("an unknown header version", b"\4\0" + AVRO.version.bytes, "wrong magic byte 0x04"),
    ("not compressed", PACKED + b"payload", "the compressed payload is damaged"),
    ("nothing compressed", PACKED, "the compressed payload is damaged"),
    ("cut off", BY_NAME["Avro ZLIB"].frame[:-3], "the compressed payload is damaged"),
    ("bytes behind the end", BY_NAME["Avro ZLIB"].frame + b"\0", "the compressed payload is damaged"),
    ("too large", bomb(MAX_INFLATED + 1), f"the payload has more than {MAX_INFLATED} bytes when it is inflated"),
]


@pytest.mark.parametrize(("frame", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_no_frame_of_glue(client, frame, reason):
    """Damage is refused with a reason that can be counted, and a small frame takes bounded memory."""
    with pytest.raises(FrameError) as caught:
        AvroDeserializer(client)(frame)

    assert reason == caught.value.reason


def test_the_largest_payload():
    """A payload of the largest size is inflated."""
    assert MAX_INFLATED == len(open_frame(bomb(MAX_INFLATED)).payload)


def test_a_header_of_a_record_is_never_of_glue():
    """Glue has no record headers: version 3 in one is refused."""
    with pytest.raises(FrameError, match="wrong magic byte 0x03"):
        open_frame(b"payload", HEAD)


def test_an_unknown_version_is_cached(client):
    """The error names the version, and the registry is asked once."""
    for _ in range(2):
        with pytest.raises(RegistryError, match=f"no schema with the version {UNKNOWN} in AWS Glue"):
            AvroDeserializer(client)(b"\3\0" + UNKNOWN.bytes + b"\0")


def test_a_damaged_payload_names_the_version(client):
    """The error has the version in Glue, and no schema id or GUID."""
    with pytest.raises(DecodeError, match=f"Glue schema version {AVRO.version}") as caught:
        AvroDeserializer(client)(HEAD + b"\x0e")

    error = caught.value
    assert (None, None, str(AVRO.version)) == (error.schema_id, error.guid, error.glue_version)


@pytest.mark.parametrize(
    ("index", "error"),
    [(b"\4", NoMessage), (b"\x80\x80\x80", FrameError), (b"", FrameError)],
    ids=["4", "long", "none"],
)
def test_a_message_that_is_not_there(client, index, error):
    """The schema has four messages, the entry of the map among them."""
    frame = b"\3\0" + SCHEMAS["orders-proto"].version.bytes + index
    with pytest.raises(error):
        ProtobufDeserializer(client)(frame)


def test_a_version_of_glue_is_no_guid():
    """A GUID with the same bits names another schema."""
    assert GlueVersion(UNKNOWN) != UNKNOWN


def test_glue_itself_is_asked(scripted_servers):
    """With the setting `glue_region`, Glue gives the schemas of its frames; the registry is not asked."""
    scripted = scripted_servers()
    live = RegistryClient(scripted.url, glue_region="eu-west-1")
    payload = BY_NAME["Avro NONE"].frame[18:]

    with glue_with(AVRO) as version:
        assert 7 == AvroDeserializer(live)(b"\3\0" + version.bytes + payload, topic="orders")["id"]
        with pytest.raises(RegistryError, match="AWS Glue does not know the schema version") as caught:
            AvroDeserializer(live)(b"\3\0" + UNKNOWN.bytes + payload)
    assert 40403 == caught.value.error_code
    assert [] == scripted.requests


def test_glue_does_not_answer(monkeypatch):
    """Without an answer or credentials, the error says that Glue is at fault."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", f"http://127.0.0.1:{free_port()}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    live = RegistryClient("http://nowhere.invalid", glue_region="eu-west-2", retries=0, timeout=5)
    with shared_descriptions(), pytest.raises(RegistryUnavailable, match="AWS Glue in eu-west-2 does not answer"):
        live.get_schema_by_glue_version(UNKNOWN)
