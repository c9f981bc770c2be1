"""Batches of frames are decoded to Arrow and encoded back."""

# ruff: noqa: E501 - a row of a table is a line
import json
import subprocess
import sys
import threading
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from strata.serdes.arrow import (
    BatchDecoder,
    ColumnTooLarge,
    Limits,
    Style,
    UnsupportedSchema,
    columns,
    decode_batch,
    encode_batch,
    program_cache,
)
from strata.serdes.arrow import decode as decode_module
from strata.serdes.avro import AvroSerializer, compile_encoder
from strata.serdes.client import Reference, Schema
from strata.serdes.errors import EncodeError


def record(*fields, name="R", **more):
    """Return a record of fields given as (name, type) or (name, type, default)."""
    written = [{"name": one[0], "type": one[1], **({"default": one[2]} if len(one) > 2 else {})} for one in fields]
    return {"type": "record", "name": name, "fields": written, **more}


def logical(kind, logical_type, **more):
    """Return a schema with a logical type."""
    return {"type": kind, "logicalType": logical_type, **more}


def decimal(precision, scale):
    """Return a decimal in bytes."""
    return logical("bytes", "decimal", precision=precision, scale=scale)


def array(items):
    """Return an array."""
    return {"type": "array", "items": items}


def mapping(values):
    """Return a map."""
    return {"type": "map", "values": values}


def frame(schema_id, schema, value):
    """Return a frame."""
    return b"\0" + schema_id.to_bytes(4, "big") + compile_encoder(json.dumps(schema))(value)


def decoded(frames, reader, writers, **options):
    """Return the decoded batch after Arrow itself has validated it."""
    texts = {schema_id: json.dumps(one) for schema_id, one in writers.items()}
    batch = decode_batch(frames, json.dumps(reader), writer_schemas=texts, **options)
    batch.validate(full=True)
    return batch


COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"], "default": "RED"}
V1 = record(("carrier", "string"), ("delay", "int"), ("old", array("string")))
V2 = record(("carrier", "string"), ("delay", "long"), ("gate", ["null", "string"], None), ("colour", COLOURS, "GREEN"))
A = frame(1, V1, {"carrier": "UA", "delay": 11, "old": ["x", "y"]})
B = frame(2, V2, {"carrier": "AA", "delay": -4, "gate": "C7", "colour": "RED"})
ROW_A = {"carrier": "UA", "delay": 11, "gate": None, "colour": "GREEN", "error": None}
ROW_B = {"carrier": "AA", "delay": -4, "gate": "C7", "colour": "RED", "error": None}
NOTHING = dict.fromkeys(ROW_A)


def refused(reason, schema_id=None, position=None):
    """Return the row of a refused frame."""
    return {**NOTHING, "error": {"reason": reason, "schema_id": schema_id, "position": position}}


def test_what_is_no_record():
    """Values that are not records become the column `value`."""
    assert [{"value": 5, "error": None}] == decoded([frame(1, "int", 5)], ["null", "long"], {1: "int"}).to_pylist()


def test_versions_mixed_with_damage():
    """Rows keep the order of the frames; a damaged frame gives nulls and a reason, and its neighbours are intact."""
    frames = [A, B, A[:-1], None, b"\2oops", b"\0\0", B, b"\0\0\0\0\x09", A + b"!", b"\0\xff\0\0\0"]

    batch = decoded(frames, V2, {1: V1, 2: V2})

    assert [
        ROW_A, ROW_B, refused("truncated", 1, 9), NOTHING, refused("wrong magic byte 0x02"), refused("frame too short"), ROW_B,
        refused("unknown schema id", 9), refused("trailing bytes", 1, 10), refused("schema id 4278190080 is outside 0 to 2147483647"),
    ] == batch.to_pylist()  # fmt: skip


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda frames: frames, id="list"),
        pytest.param(lambda frames: pa.array(frames, pa.binary()), id="binary"),
        pytest.param(lambda frames: pa.array(frames, pa.large_binary()), id="large binary"),
        pytest.param(lambda frames: pa.array([A, *frames, A], pa.binary()).slice(1, len(frames)), id="slice"),
        pytest.param(lambda frames: pa.chunked_array([frames[:1], frames[1:]], pa.binary()), id="chunks"),
    ],
)
def test_shapes_of_frames(shape):
    """Frames may be any binary column or sequence."""
    assert [ROW_A, NOTHING, ROW_B] == decoded(shape([A, None, B]), V2, {1: V1, 2: V2}).to_pylist()


def test_no_frames():
    """An empty batch has all columns."""
    for frames in ([], pa.array([], pa.binary())):
        assert ["carrier", "delay", "gate", "colour", "error"] == decoded(frames, V2, {}).schema.names


def test_what_is_no_binary_column():
    """A text column is refused, since its bytes are no longer frames."""
    with pytest.raises(TypeError, match="expected a binary column of frames, got string"):
        decoded(pa.array(["a"]), V2, {})


def test_columns_asked_for():
    """The batch has only the requested columns, in that order; the bytes of the others are skipped."""
    batch = decoded([A, B], V2, {1: V1, 2: V2}, columns=["gate", "carrier"])

    assert [
        {"gate": None, "carrier": "UA", "error": None},
        {"gate": "C7", "carrier": "AA", "error": None},
    ] == batch.to_pylist()
    with pytest.raises(ValueError, match="no column nope"):
        decoded([], V2, {}, columns=["nope"])


TYPES = [
    ("date", logical("int", "date"), pa.date32()),
    ("time-millis", logical("int", "time-millis"), pa.time32("ms")),
    ("time-micros", logical("long", "time-micros"), pa.time64("us")),
    ("timestamp-millis", logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC")),
    ("timestamp-nanos", logical("long", "timestamp-nanos"), pa.timestamp("ns", "UTC")),
    ("local-timestamp-micros", logical("long", "local-timestamp-micros"), pa.timestamp("us")),
    ("decimal", decimal(38, 2), pa.decimal128(38, 2)),
    ("large decimal", decimal(39, 2), pa.decimal256(39, 2)),
    ("uuid", logical("string", "uuid"), pa.string()),
    ("duration", logical({"type": "fixed", "name": "F", "size": 12}, "duration"), pa.binary()),
    ("enum", COLOURS, pa.string()),
    ("nullable", ["null", "float"], pa.float32()),
    ("two numbers", ["int", "null", "long"], pa.int64()),
    ("array", array("boolean"), pa.list_(pa.field("element", pa.bool_(), False))),
    ("map", mapping(["null", "int"]), pa.map_(pa.field("key", pa.string(), False), pa.field("value", pa.int32()))),
    ("record", record(("x", "int"), ("y", ["null", "int"]), name="P"), pa.struct([pa.field("x", pa.int32(), False), pa.field("y", pa.int32())])),
    ("union", ["int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
    ("null", "null", pa.null()),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), [row[1:] for row in TYPES], ids=[row[0] for row in TYPES])
def test_types(schema, expected):
    """Each type of the reader schema has its Arrow type."""
    assert expected == decoded([], record(("f", schema)), {}).schema.field("f").type


VALUES = [
    ("defaults of every kind", record(), {}, record(("a", array(mapping("int")), [{"k": 1}, {}]), ("r", record(("x", "double", 1), ("y", decimal(40, 1), "\u0001"), name="P"), {}), ("u", ["string", "int"], "é"), ("n", ["null", "int"], None), ("d", logical("int", "date"), 1), ("b", "boolean", True), ("e", COLOURS, "RED"), ("w", ["int", "long"], 5)), {"a": [[("k", 1)], []], "r": {"x": 1.0, "y": Decimal("0.1")}, "u": {"member0": "é", "member1": None}, "n": None, "d": date(1970, 1, 2), "b": True, "e": "RED", "w": 5}),
    ("enum default", record(("e", {**COLOURS, "symbols": ["BLUE", "GREEN"]})), {"e": "BLUE"}, record(("e", COLOURS)), {"e": "RED"}),
    ("promotions", record(("a", "int"), ("b", "long"), ("c", "float"), ("d", "string")), {"a": 3, "b": 2**53 + 1, "c": 0.5, "d": "é"}, record(("d", "bytes"), ("c", "double"), ("b", "float"), ("a", "double")), {"d": "é".encode(), "c": 0.5, "b": float(2**53), "a": 3.0}),
    ("a long as a float in a wider column", record(("f", "long")), {"f": 2**24 + 1}, record(("f", ["float", "double"])), {"f": float(2**24)}),
    ("another unit in a column of two kinds of integers", record(("t", ["int", logical("long", "timestamp-micros")])), {"t": datetime(1969, 12, 31, 23, 59, 59, 999936, UTC)}, record(("t", ["int", logical("long", "timestamp-millis")])), {"t": -1}),
    ("decimal moved to another scale", record(("d", decimal(20, 1))), {"d": Decimal("-123456789012345678.9")}, record(("d", decimal(40, 12))), {"d": Decimal("-123456789012345678.900000000000")}),
    ("decimal moved back", record(("d", decimal(40, 12))), {"d": Decimal("-1234567890123456789.5")}, record(("d", decimal(30, 1))), {"d": Decimal("-1234567890123456789.5")}),
    ("one field for two of the reader's", record(("a", array("int")), ("z", "int")), {"a": [1, 2], "z": 3}, {**record(("b", array("int")), ("c", array("long"))), "fields": [{"name": "b", "type": array("int"), "aliases": ["a"]}, {"name": "c", "type": array("long"), "aliases": ["a"]}]}, {"b": [1, 2], "c": [1, 2]}),
    ("records with nulls in arrays", record(("a", array(["null", record(("x", "int"), ("s", "string"), name="P")]))), {"a": [None, {"x": 1, "s": "p"}, None]}, None, {"a": [None, {"x": 1, "s": "p"}, None]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES]
)
def test_resolution(writer, value, reader, expected):
    """A row has the shape of the reader schema for any writer schema."""
    batch = decoded([frame(7, writer, value)] * 2, reader or writer, {7: writer})

    assert [{**expected, "error": None}] * 2 == batch.to_pylist()


LIST, MAP = array("int"), mapping("int")
SMALLEST = b"\xff" * 9 + b"\x01"
LARGEST = b"\xfe" + b"\xff" * 8 + b"\x01"
CHAIN = record(("next", ["null", "C"]), name="C")
HOSTILE = [
    ("300 million nulls in five bytes", array("null"), b"\x80\x8c\x8d\x9e\x02\x00", "limit", 5),
    ("2^63 nulls", array("null"), SMALLEST + b"\x00\x00", "limit", 11),
    ("many arrays of nulls", array(array("null")), b"\x80\x02" + b"\xd0\x0f\x00" * 128 + b"\x00", "limit", 34),
    ("2^63 ints", LIST, SMALLEST + b"\x02\x02", "truncated", 11),
    ("2^63 - 1 entries", MAP, LARGEST + b"\x02", "truncated", 10),
    ("a block of negative length", LIST, b"\x01\x01\x02\x00", "negative length", 1),
    ("union index -1", ["int", "string"], b"\x01\x02a", "invalid index", 1),
    ("empty union", [], b"\x00", "invalid index", 1),
    ("enum index 2 of 2", COLOURS, b"\x04", "invalid index", 1),
    ("int beyond 32 bits", "int", b"\xff\xff\xff\xff\x1f", "out of range", 1),
    ("endless number", "long", b"\xff" * 100_000, "out of range", 1),
    ("string of length 2^63 - 1", "string", LARGEST, "truncated", 10),
    ("string of length -2^63", "string", SMALLEST, "negative length", 10),
    ("a lone surrogate", "string", b"\x06\xed\xa0\x80", "invalid utf-8", 1),
    ("overlong UTF-8", "string", b"\x04\xc0\x80", "invalid utf-8", 1),
    ("boolean 2", "boolean", b"\x02", "invalid boolean", 1),
    ("a day after the last", logical("int", "date"), b"\xc2\x82\xe6\x02", "out of range", 4),
    ("a time after midnight", logical("int", "time-millis"), b"\x80\xf0\xb2\x52", "out of range", 4),
    ("decimal of too many digits", array(decimal(4, 2)), b"\x02\x04\x27\x10\x00", "out of range", 4),
    ("decimal of a million bytes", array(decimal(4, 2)), b"\x02\x80\x89\x7a" + b"\x7f" * 1_000_000 + b"\x00", "out of range", 1_000_004),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "payload", "reason", "position"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE]
)
def test_hostile_payloads(schema, payload, reason, position):
    """Each hostile payload is an error with its reason and place, between two rows that are decoded."""
    reader = record(("u", ["null", {"type": "int"}], None), ("f", ["null", "string", record(("f", schema), name="In")]))
    good, bad = b"\0\0\0\0\1\2\2a", b"\0\0\0\0\1\4" + payload
    writer = record(("f", ["null", "string", record(("f", schema), name="In")]))

    batch = decoded([good, bad, good], reader, {1: writer})

    told = batch.column("error").to_pylist()
    assert [None, {"reason": reason, "schema_id": 1, "position": position + 1}, None] == told
    assert [{"member0": "a", "member1": None}, None, {"member0": "a", "member1": None}] == batch.column("f").to_pylist()


def test_depth_of_what_is_skipped():
    """A recursive field that is not requested is skipped, down to the depth limit of the deserializer."""
    writer = record(("c", CHAIN), ("z", "int"))
    frames = [b"\0\0\0\0\1" + b"\x02" * deep + b"\x00\x0e" for deep in (0, 3, 199, 200, 20_000)]

    rows = decoded(frames, record(("z", "int")), {1: writer}).to_pylist()

    assert [7, 7, 7, None, None] == [row["z"] for row in rows]
    assert [None, None, None, "limit", "limit"] == [row["error"] and row["error"]["reason"] for row in rows]
    shallow = decoded(frames, record(("z", "int")), {1: writer}, limits=Limits(max_depth=2)).to_pylist()
    assert [7, None, None, None, None] == [row["z"] for row in shallow]


@pytest.mark.parametrize("keys", [2, 9, 500])
def test_a_key_twice(keys):
    """If a map has a key twice, the last value counts, as in Python; other rows do not change."""
    schema = record(("m", mapping(["null", "int"])), ("z", "string"))
    entries = b"".join(b"\x06" + f"{n:03}".encode() + b"\x02\x02" for n in range(keys)) + b"\x06000\x02\x08"
    count = (keys + 1) * 2
    head = bytes([count]) if count < 128 else bytes([count & 127 | 128, count >> 7])
    twice = b"\0\0\0\0\1" + head + entries + b"\x00\x02z"
    once = frame(1, schema, {"m": {"a": None}, "z": "y"})

    rows = decoded([once, twice, twice[:-1], once], schema, {1: schema}).to_pylist()

    assert [("000", 4), *((f"{n:03}", 1) for n in range(1, keys))] == rows[1]["m"]
    assert [[("a", None)], "truncated", [("a", None)]] == [rows[0]["m"], rows[2]["error"]["reason"], rows[3]["m"]]


def test_many_rows_with_a_key_twice(monkeypatch):
    """Such rows are decoded by code and programs that are made once, not for each row: hostile ones may be many."""
    made = []
    for module, name in ((decode_module, "compile_decoder"), (decode_module, "compile_encoder")):
        make = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *what, make=make, **how: made.append(make) or make(*what, **how))
    compiled = program_cache.Compiler.compile
    monkeypatch.setattr(program_cache.Compiler, "compile", lambda *what: made.append(compiled) or compiled(*what))
    schema = '{"type": "map", "values": "int"}'
    decoder = BatchDecoder(schema, {1: schema})

    for _ in range(2):
        values = decoder.decode([b"\0\0\0\0\1\4\2a\2\2a\4\0"] * 20).column("value").to_pylist()

    assert [[("a", 2)]] * 20 == values
    assert 4 == len(made)


def test_columns_grow():
    """Columns grow when many items or long texts exceed the initial capacity."""
    schema = record(("a", array(record(("s", "string"), ("n", ["null", "long"]), name="P"))), ("t", "string"))
    values = [
        {"a": [{"s": "é" * n, "n": None if n % 2 else n} for n in range(size)], "t": "x" * 100 * size}
        for size in (0, 300, 1, 90)
    ]

    batch = decoded([frame(1, schema, one) for one in values] + [b"\0\0\0\0\1\xff"], schema, {1: schema})

    assert values == batch.slice(0, 4).drop_columns(["error"]).to_pylist()


def test_a_column_that_is_too_large(monkeypatch):
    """A batch too large for Arrow's offsets makes the call fail with an error that says so."""
    monkeypatch.setattr(columns, "MAX_OFFSET", 10_000)
    reader = record(("f", "string", "x" * 1000))

    with pytest.raises(ColumnTooLarge, match=r"column f .* decode fewer frames at once"):
        decoded([b"\0\0\0\0\1"] * 11, reader, {1: record()})


def test_many_writer_schemas(monkeypatch):
    """A decoder decodes more schema ids than it keeps programs for."""
    monkeypatch.setattr(program_cache, "_MAX_PROGRAMS", 200)
    frames = [frame(n, "int", n) for n in range(300)]
    asked = []

    def find(schema_id):
        asked.append(schema_id)
        return '"int"' if schema_id % 2 else '["null", "int"]'

    batch = BatchDecoder('"long"', find).decode(
        [one if n % 2 else one[:5] + b"\x02" + one[5:] for n, one in enumerate(frames)]
    )

    assert list(range(300)) == batch.column("value").to_pylist()
    assert list(range(300)) == asked


def test_schemas_of_a_registry(client):
    """A decoder takes writer schemas from a registry client; an unknown id is an error of its own frame."""
    text = json.dumps(V1)
    encoded = AvroSerializer(client, text)({"carrier": "UA", "delay": 1, "old": []}, topic="arrow")
    unknown = encoded[:1] + (987654).to_bytes(4, "big") + encoded[5:]

    rows = decode_batch([encoded, unknown], json.dumps(V2), writer_schemas=client).to_pylist()

    assert ["UA", None] == [row["carrier"] for row in rows]
    assert [None, "unknown schema id"] == [row["error"] and row["error"]["reason"] for row in rows]


def test_schemas_that_refer_to_others(client):
    """A writer schema from a registry is read with all its references."""
    point = record(("x", "int"), name="geo.Point")
    client.register("arrow-point", json.dumps(point))
    refers = Schema(json.dumps(record(("to", "geo.Point"))), references=(Reference("geo.Point", "arrow-point", 1),))
    schema_id = client.register("arrow-refers", refers).schema_id

    whole = record(("to", point))
    batch = decode_batch([frame(schema_id, whole, {"to": {"x": 7}})], json.dumps(whole), writer_schemas=client)

    assert [{"to": {"x": 7}, "error": None}] == batch.to_pylist()


UNUSABLE = [
    ("no schema", '{"type": "nonsense"}', "unusable writer schema"),
    ("a schema that does not fit", '"string"', "resolution: the reader schema has record R where the writer schema has string"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_unusable_writer_schemas(text, reason):
    """An unusable writer schema makes errors of its own frames only."""
    batch = decode_batch([b"\0\0\0\0\1\2a", B], json.dumps(V2), writer_schemas={1: text, 2: json.dumps(V2)})

    assert [reason, None] == [one and one["reason"] for one in batch.column("error").to_pylist()]
    assert "AA" == batch.column("carrier")[1].as_py()


REFUSED = [
    ("a record inside itself", record(("a", array(CHAIN))), r"at a\[\]\.next: the record C contains itself"),
    ("a decimal beyond Arrow's", record(("d", decimal(77, 1))), "at d: a decimal of precision 77"),
]


@pytest.mark.parametrize(("schema", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_arrow_has_no_type_for(schema, says):
    """A schema without an Arrow type is refused when the decoder is made, with the place."""
    with pytest.raises(UnsupportedSchema, match=says):
        BatchDecoder(json.dumps(schema), {})


def test_a_field_called_error():
    """A field called `error` is refused, since it would hide the column of errors."""
    with pytest.raises(ValueError, match="has a field `error`"):
        decoded([], record(("error", "int")), {})


def test_spark_types():
    """The Spark types have instants in microseconds only, and no times of day."""
    schema = record(
        ("t", logical("long", "timestamp-millis")),
        ("d", logical("int", "time-millis")),
        ("n", logical("long", "timestamp-nanos")),
    )
    decoder = BatchDecoder(json.dumps(schema), {1: json.dumps(schema)}, style=Style.SPARK)
    raw = record(("t", "long"), ("d", "int"), ("n", "long"))

    batch = decoder.decode([frame(1, raw, {"t": at, "d": -1, "n": 3}) for at in (1500, 2**62)])

    assert [pa.timestamp("us", "UTC"), pa.int32(), pa.int64()] == [batch.schema.field(n).type for n in "tdn"]
    assert [1_500_000, None] == batch.column("t").cast(pa.int64()).to_pylist()
    assert "out of range" == batch.column("error")[1].as_py()["reason"]


def test_threads_share_a_decoder():
    """Threads that share a decoder while it learns schemas get intact batches."""
    texts = {n: json.dumps(V1 if n % 2 else V2) for n in range(40)}
    decoder = BatchDecoder(json.dumps(V2), texts)
    frames = [(A if n % 2 else B)[:1] + n.to_bytes(4, "big") + (A if n % 2 else B)[5:] for n in range(40)] * 50
    expected = [ROW_A if n % 2 else ROW_B for n in range(40)] * 50
    found = []

    threads = [threading.Thread(target=lambda: found.append(decoder.decode(frames).to_pylist())) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert [expected] * 4 == found


ENCODED = [
    ("numbers", record(("a", "int"), ("b", "long"), ("c", "float"), ("d", "double"), ("e", "boolean")), {"a": -(2**31), "b": 2**63 - 1, "c": 0.5, "d": -1e300, "e": True}),
    ("bytes", record(("a", "bytes"), ("b", {"type": "fixed", "name": "F", "size": 3}), ("c", "string"), ("d", COLOURS)), {"a": b"\0" * 200, "b": b"abc", "c": "zürich", "d": "GREEN"}),
    ("decimals", record(("a", decimal(20, 2)), ("b", logical("fixed", "decimal", precision=76, scale=0, name="G", size=40)), ("c", decimal(3, 0))), {"a": Decimal("-1.29"), "b": Decimal(-(10**70)), "c": Decimal(128)}),
    ("unions", record(("a", ["null", "string"]), ("b", ["string", "null", "int"]), ("c", ["int"])), {"a": None, "b": 7, "c": 3}),
    ("nested", record(("a", array(array("int"))), ("m", mapping(["null", record(("x", "int"), name="P")]))), {"a": [[1, 2], [], [3]], "m": {"k": None, "l": {"x": 1}}}),
    ("nothing", record(), {}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), [row[1:] for row in ENCODED], ids=[row[0] for row in ENCODED])
def test_frames_are_those_of_the_serializer(schema, value):
    """Encoding a decoded batch gives the same frames byte for byte."""
    frames = [frame(1, schema, value)] * 3

    batch = decoded(frames, schema, {1: schema})

    assert frames == encode_batch(batch, json.dumps(schema), schema_id=1).to_pylist()
    assert [one[5:] for one in frames] == encode_batch(batch, json.dumps(schema), schema_id=None).to_pylist()


def test_columns_of_other_types():
    """Columns are found by name and cast if nothing is lost; a missing one is null, an unknown one is dropped."""
    table = pa.table(
        {
            "delay": pa.chunked_array([[1], [2]], pa.int8()),
            "carrier": pa.array(["UA", "AA"]).dictionary_encode(),
            "more": [1, 2],
            "colour": ["RED", "GREEN"],
        }
    )

    frames = encode_batch(table.slice(1), json.dumps(V2), schema_id=2, drop_unknown=True)

    assert [{**ROW_B, "delay": 2, "gate": None, "colour": "GREEN"}] == decoded(frames, V2, {2: V2}).to_pylist()


UNFIT = [
    ("null", record(("a", "int")), {"a": [1, None]}, "row 1: expected a value, got null (at field a)"),
    ("null in a list", record(("a", array("int"))), {"a": [[1], [2, None]]}, "row 1: expected a value, got null (at field a[])"),
    ("too large", record(("a", "int")), {"a": [1, 2, 2**31]}, "row 2: a value does not fit int32 (at field a)"),
    ("too large, nested", record(("a", array("int"))), {"a": [[1], [], [5, 2**40]]}, "row 2: a value does not fit int32 (at field a[])"),
    ("a fraction", record(("a", "int")), {"a": [1.0, 1.5]}, "row 1: a value does not fit int32 (at field a)"),
    ("no symbol", record(("e", COLOURS)), {"e": ["RED", "PINK"]}, "row 1: expected a symbol of the enum (at field e)"),
    ("bytes of another size", record(("f", {"type": "fixed", "name": "F", "size": 2})), {"f": [b"ab", b"abc"]}, "row 1: expected bytes of another size (at field f)"),
    ("two members", record(("u", ["int", "string"])), {"u": [{"member0": 1, "member1": "a"}]}, "row 0: expected one member of the union, got several (at field u)"),
    ("no member", record(("u", ["int", "string"])), {"u": [{"member0": None, "member1": None}]}, "row 0: expected one member of the union, got none (at field u)"),
    ("no column", record(("a", "int"), ("b", "int")), {"a": [1]}, "no such column, and null is not allowed (at field b)"),
    ("unknown column", record(("gate", "int")), {"gate": [1], "gat": [1]}, "the schema has no such field; did you mean 'gate'? (at field gat)"),
    ("unknown field of a struct", record(("a", array(record(("x", "int"), name="P")))), {"a": [[{"x": 1, "y": 2}]]}, "the schema has no such field (at field a[].y)"),
    ("no list", record(("a", array("int"))), {"a": [1]}, "expected a list, got int64 (at field a)"),
    ("digits", record(("d", decimal(3, 0))), {"d": [Decimal(1), Decimal(1000)]}, "row 1: "),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "given", "says"), [row[1:] for row in UNFIT], ids=[row[0] for row in UNFIT])
def test_values_that_do_not_fit(schema, given, says):
    """The error for a value that does not fit names row and field."""
    with pytest.raises(EncodeError) as caught:
        encode_batch(pa.table(given), json.dumps(schema), schema_id=1)

    assert str(caught.value).startswith(says)


def test_without_numba():
    """Without numba, the error says what to install."""
    program = "import sys; sys.modules['numba'] = None\nfrom strata.serdes.arrow import encode_batch"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "install strata-registry[arrow]" in done.stderr
