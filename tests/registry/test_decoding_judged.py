"""The page that decodes a record never calls good what the deserializer of the same schema refuses."""

import json
import uuid
import zlib
from random import Random

import pytest
from google.protobuf.message import DecodeError as ParseError

from harness.avro_cases import Maker as AvroMaker
from harness.avro_cases import zigzag
from harness.json_payloads import Maker as JsonMaker
from harness.protobuf_cases import Maker as ProtobufMaker
from harness.protobuf_cases import fill, message_class
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat
from strata.registry.features.decoding.frames import Frame, open_frame, open_header, unpacked
from strata.registry.features.decoding.parts import Broken
from strata.registry.features.decoding.view import MOST_BYTES, decoded
from strata.serdes.avro import AvroDeserializer, compile_decoder
from strata.serdes.client import RegistryClient
from strata.serdes.errors import DecodeError, SchemaError, SerdeError
from strata.serdes.json_schema import JsonDeserializer
from strata.serdes.json_schema.serializer import documents_of, validating
from strata.serdes.json_schema.validator import compiled
from strata.serdes.model import Schema
from strata.serdes.protobuf import ProtobufDeserializer
from strata.serdes.protobuf.wire_types import parsed_strictly
from strata.serdes.settings import ClientSettings


def is_good(kind, text, payload):
    """Return whether the page would call a payload without a frame good."""
    schema = FORMATS[kind].parse(text, strict=False)
    found = decoded(payload, Frame("none", None, 0), schema, text, ())
    return found.broken is None and found.refused is None and not found.note


def reads(decode, payload):
    """Return whether a deserializer reads a payload."""
    try:
        decode(payload)
    except (DecodeError, ParseError, ValueError, RecursionError):
        return False
    return True


def damaged(payload, chance):
    """Return a payload with some bytes changed, cut off or added."""
    made = bytearray(payload)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(made) + 1)
        match chance.randrange(4):
            case 0 if at < len(made):
                made[at] = chance.randrange(256)
            case 1 if at < len(made):
                made[at] ^= 1 << chance.randrange(8)
            case 2:
                made[at:at] = bytes([chance.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])])
            case _:
                del made[at : at + chance.randrange(3)]
    return bytes(made)


def test_a_block_of_negative_length():
    """A block of an array that states a negative length is broken, whether its items take bytes or not."""
    for items in ("int", "null"):
        text = json.dumps({"type": "array", "items": items})
        payload = bytes([1, 1, *([2] if items == "int" else []), 0])

        assert not reads(compile_decoder(text), payload)
        assert not is_good(SchemaFormat.AVRO, text, payload)


NULLS = {"type": "record", "name": "R", "fields": [{"name": name, "type": "null"} for name in "ab"]}
NOTHING = {"type": "fixed", "name": "F", "size": 0}


@pytest.mark.parametrize(("items", "most"), [("null", 10_000), (NOTHING, 10_000), (NULLS, 3_333)])
def test_items_of_no_bytes(items, most):
    """An array has as many items of no bytes as the deserializer reads, and no more; those of a record count too."""
    text = json.dumps({"type": "array", "items": items})
    blocks = [zigzag(count) + zigzag(1) + b"\0" for count in (most - 1, most)]

    assert [True, False] == [reads(compile_decoder(text), payload) for payload in blocks]
    assert [True, False] == [is_good(SchemaFormat.AVRO, text, payload) for payload in blocks]


@pytest.mark.parametrize("size", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_avro(size):
    """Random schemas, with random damage to their values."""
    maker, chance = AvroMaker(Random(7)), Random(7)
    worse, good = [], 0
    for _ in range(size):
        case = maker.case()
        if "a top-level bytes" in case.changes:
            continue
        decode = compile_decoder(case.writer)
        for payload in (case.payload, *(damaged(case.payload, chance) for _ in range(6))):
            shown = is_good(SchemaFormat.AVRO, case.writer, payload)
            good += shown
            if shown and not reads(decode, payload):
                worse.append((case.writer, payload))

    assert [] == worse
    assert good > size / 2


ODD = (
    b'"\\ud800"',
    b"1e400",
    b"-1e999",
    b"NaN",
    b'{"a":1,"a":2}',
    b"\xef\xbb\xbf1",
    b"1" * 400,
    b"[" * 150 + b"]" * 150,
)


@pytest.mark.parametrize("size", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_json(size):
    """Random schemas, with random damage to the texts of their values, and texts that readers disagree on."""
    maker, chance = JsonMaker(Random(7)), Random(7)
    worse, good = [], 0
    for _ in range(size):
        schema = maker.schema()
        text = json.dumps(schema)
        (base, document), *_ = documents_of(Schema(text, "JSON"), {}).items()
        try:
            decode = validating(compiled(document, {}, base))
        except SchemaError:
            continue
        payload = maker.text(maker.value(schema))
        texts = [payload, maker.text(maker.value(maker.changed(schema))), *(damaged(payload, chance) for _ in range(6))]
        for one in (*texts, chance.choice(ODD)):
            shown = is_good(SchemaFormat.JSON, text, one)
            good += shown
            if shown and not reads(decode, one):
                worse.append((text, one))

    assert [] == worse
    assert good > size / 2


@pytest.mark.parametrize("dialect", [None, "http://json-schema.org/draft-07/schema#", "tag:unknown"])
def test_the_dialect_of_a_schema_that_names_none(dialect):
    """A schema without a known dialect is draft 7, as for the deserializer."""
    schema = {"items": [{"type": "string"}]} | ({"$schema": dialect} if dialect else {})

    assert not is_good(SchemaFormat.JSON, json.dumps(schema), b"[1]")


@pytest.mark.parametrize("size", [60, pytest.param(4000, marks=pytest.mark.slow)])
def test_protobuf(size):
    """Random messages, with random damage."""
    maker, chance = ProtobufMaker(Random(7)), Random(7)
    worse, good = [], 0
    for _ in range(size):
        text = maker.kind().text()
        kind = message_class(text)
        payload = fill(kind(), chance).SerializeToString()
        for one in (payload, *(damaged(payload, chance) for _ in range(8))):
            shown = is_good(SchemaFormat.PROTOBUF, text, one)
            good += shown
            if shown and not reads(lambda raw, kind=kind: parsed_strictly(kind.FromString, raw), one):
                worse.append((text, one))

    assert [] == worse
    assert good > size / 2


class Anything:
    """A registry that has one schema under every id and GUID, and among the versions of AWS Glue."""

    def __init__(self, text, kind):
        self._schema = {"schema": text, "schemaType": kind}

    def request(self, method, path, **_):
        """Answer a request."""
        assert method == "GET"
        return [self._schema] if path.startswith("/v1/glue/") else self._schema

    def close(self):
        """Do nothing."""


def shown_good(kind, schema, text, data, header):
    """Return whether the page calls a whole record good."""
    frame = open_frame(data) if header is None else open_header(header)
    if frame is None or (frame.schema is None and frame.glue is None):
        return False
    if frame.glue is not None and kind == "PROTOBUF":
        return False
    try:
        data = unpacked(data, frame, MOST_BYTES)
    except Broken:
        return False
    found = decoded(data, frame, schema, text, ())
    return found.broken is None and found.refused is None and not found.note


GUID = uuid.UUID(int=7).bytes
TEXTS = {
    "AVRO": ('{"type":"record","name":"R","fields":[{"name":"a","type":["null","string"]}]}', b"\x02\x02x"),
    "JSON": ('{"type":"object","properties":{"a":{"type":"string"}}}', b'{"a":"x"}'),
    "PROTOBUF": ('syntax = "proto3"; message A { message B { string b = 1; } string a = 1; }', b"\x0a\x01x"),
}
PATHS = [b"\0", b"\2\0", b"\4\0\0"]


def framed(payload, kind, chance):
    """Return a record with its header, in one of the ways to frame it."""
    path = chance.choice(PATHS) if kind == "PROTOBUF" else b""
    return chance.choice(
        [
            (b"\0\0\0\0\7" + path + payload, None),
            (b"\1" + GUID + path + payload, None),
            (payload, b"\1" + GUID + path),
            (b"\3\0" + GUID + payload, None),
            (b"\3\5" + GUID + zlib.compress(payload), None),
        ]
    )


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("size", [700, pytest.param(40_000, marks=pytest.mark.slow)])
def test_whole_frames(kind, size):
    """Frames of every kind, with random damage to the record, to its header, and to both."""
    (text, payload), chance = TEXTS[kind], Random(7)
    schema = FORMATS[SchemaFormat(kind)].parse(text, strict=False)
    settings = ClientSettings.of("http://nowhere.invalid")
    client = RegistryClient.from_settings(settings, transport=Anything(text, kind))
    read = {"AVRO": AvroDeserializer, "JSON": JsonDeserializer, "PROTOBUF": ProtobufDeserializer}[kind](client)
    worse, good = [], 0
    for _ in range(size):
        data, header = framed(payload, kind, chance)
        data = damaged(data, chance) if chance.randrange(3) else data
        if header is not None and chance.randrange(2):
            header = damaged(header, chance)
        shown = shown_good(kind, schema, text, data, header)
        good += shown
        if shown:
            try:
                read(data, field="value", headers=[] if header is None else [("__value_schema_id", header)])
            except SerdeError as error:
                worse.append((data, header, str(error)))

    assert [] == worse
    assert good > size / 10
