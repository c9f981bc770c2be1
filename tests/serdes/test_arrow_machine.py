"""The batch decoder, which reads whole words and larger steps at once, reads the same values as the deserializer."""

import json
from itertools import product

import pyarrow as pa
import pytest

from strata.serdes.arrow import BatchDecoder
from strata.serdes.avro import compile_decoder, compile_encoder
from strata.serdes.errors import DecodeError

HEADER = b"\0\0\0\0\1"


def record(**fields):
    """Return a record of fields by name."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def told(decode, payload):
    """Return the deserializer's value of a payload, or reason and position."""
    try:
        return decode(payload)
    except DecodeError as error:
        return str(error.reason), error.offset


def found(batch, row):
    """Return the batch decoder's value of a row, or reason and position."""
    error = batch.column("error")[row].as_py()
    return (error["reason"], error["position"]) if error else batch.column(0)[row].as_py()


def check(writer, payloads, reader=None):
    """Assert that batch and deserializer agree, for a fifth of the payloads also with unterminated bytes behind it."""
    reader = writer if reader is None else reader
    decode = compile_decoder(json.dumps(writer), json.dumps(reader))
    expected = [told(decode, payload) for payload in payloads]
    decoder = BatchDecoder(json.dumps(reader), {1: json.dumps(writer)})
    for behind, step in ((0, 1), (3, 5), (8, 5), (16, 5)):
        actual = []
        for payload in payloads[::step]:
            batch = decoder.decode(pa.array([HEADER + payload, b"\xff" * behind], pa.binary()))
            batch.validate(full=True)
            actual.append(found(batch, 0))
        assert expected[::step] == actual, behind
    batch = decoder.decode([HEADER + payload for payload in payloads])
    batch.validate(full=True)
    assert expected == [found(batch, row) for row in range(len(payloads))]


@pytest.mark.parametrize("kind", ["int", "long"])
def test_numbers_of_every_length(kind):
    """Numbers of zero to eleven bytes agree: few and many bits, shortest and longer encodings, whole and cut off."""
    bodies = [bytes([128 + low] * size) for low, size in product((0, 1, 42, 127), range(11))]
    check(kind, [body + last for body in bodies for last in (b"", b"\x00", b"\x01", b"\x0f", b"\x10", b"\x7f")])


def test_texts_of_every_length():
    """Texts of any length agree, with a two-byte letter or invalid UTF-8 at any place."""
    plain = [b"x" * size for size in range(36)]
    texts = [
        text[:at] + middle + text[at:]
        for text in plain
        for at in range(len(text))
        for middle in ("é".encode(), b"\xff")
    ]
    sized = [bytes([2 * len(text)]) + text for text in [*plain, *texts[::3]]]

    check("string", [*sized, *(one[:-1] for one in sized[::7])])


@pytest.mark.parametrize(("precision", "scale"), [(4, 2), (18, 2), (19, 2), (38, 0), (50, 3)])
def test_decimals_of_every_length(precision, scale):
    """Decimals of up to 24 bytes agree, in the fewest bytes or more, within the precision and beyond."""
    schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    amounts = [0, 1, -1, 127, -128, 10**4, 10**precision - 1, -(10**precision) + 1, 10**precision, -(10**precision)]
    raw = [
        b"",
        *(one.to_bytes(size, "big", signed=True) for one, size in product(amounts, range(1, 25)) if _fits(one, size)),
    ]

    check(schema, [bytes([2 * len(one)]) + one for one in raw])


def _fits(number, size):
    return -(1 << (8 * size - 1)) <= number < 1 << (8 * size - 1)


OPTIONS = {
    "string": ("string", b"\x02a"),
    "long": ("long", b"\xc8\x01"),
    "double": ("double", bytes(8)),
    "boolean": ("boolean", b"\x01"),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02"),
    "fixed": ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
    "array": ({"type": "array", "items": ["int", "null"]}, b"\x04\x00\x02\x02\x00"),
    "map": ({"type": "map", "values": ["null", "string"]}, b"\x04\x02k\x02\x02v\x02l\x00\x00"),
    "record": (
        {
            "type": "record",
            "name": "I",
            "fields": [{"name": "i", "type": ["null", "int"]}, {"name": "s", "type": "string"}],
        },
        b"\x02\x02\x02s",
    ),
}


@pytest.mark.parametrize(("kind", "value"), OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("place", [0, 1])
def test_unions_with_null(kind, value, place):
    """Unions with null agree on a null, a value and a bad index, with null first or second, before another field."""
    union = ["null", kind] if place == 0 else [kind, "null"]
    null, there = bytes([2 * place]), bytes([2 - 2 * place])
    writer = {"type": "record", "name": "W", "fields": [{"name": "outer", "type": record(u=union, z="int")}]}
    payloads = [
        null + b"\x02",
        there + value + b"\x02",
        b"\x04" + value,
        b"\x01",
        b"\x80\x00\x02",
        b"",
        there + value[:-1],
        null,
    ]

    decoder = BatchDecoder(json.dumps(writer), {1: json.dumps(writer)})
    rows = decoder.decode([HEADER + payload for payload in payloads * 2]).to_pylist()

    decode = compile_decoder(json.dumps(writer))
    for row, payload in zip(rows, payloads * 2, strict=True):
        expected = told(decode, payload)
        error = row.pop("error")
        if error:
            assert expected == (error["reason"], error["position"])
        else:
            assert json.loads(json.dumps(expected, default=bytes.decode)) == json.loads(
                json.dumps(_plain(row, kind), default=bytes.decode)
            )


def _plain(row, kind):
    """Return a row with its maps as the deserializer has them."""
    value = row["outer"]["u"]
    if isinstance(kind, dict) and kind["type"] == "map" and value is not None:
        row["outer"]["u"] = dict(value)
    return row


def test_a_null_where_nothing_else_can_be():
    """A column of nulls takes the null of a writer's union and refuses other values."""
    check(["null", "int"], [b"\x00", b"\x02\x02", b"\x04"], ["null", "long"])
    rows = BatchDecoder('"null"', {1: '["null", "int"]'}).decode([HEADER + b"\x00", HEADER + b"\x02\x02"]).to_pylist()

    assert [None, "resolution: the reader schema has null where the writer schema has int"] == [
        row["error"] and row["error"]["reason"] for row in rows
    ]


def test_lists_that_are_defaults():
    """Default lists of lists and of records, and default maps, come between rows that have their own."""
    inner = {
        "type": "record",
        "name": "P",
        "fields": [{"name": "n", "type": ["null", "int"]}, {"name": "t", "type": "string"}],
    }
    kinds = {
        "lists": ({"type": "array", "items": {"type": "array", "items": "int"}}, [[1], [], [2, 3]], [[9, 8], [7]]),
        "map": (
            {"type": "map", "values": {"type": "array", "items": "string"}},
            {"a": ["x"], "b": []},
            {"c": ["y", "z"]},
        ),
        "points": ({"type": "array", "items": inner}, [{"n": None, "t": "é"}, {"n": 4, "t": ""}], [{"n": 5, "t": "u"}]),
        "maybe": (["null", {"type": "array", "items": inner}], None, [{"n": None, "t": "w"}]),
    }
    reader = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "z", "type": "int"},
            *({"name": name, "type": kind, "default": default} for name, (kind, default, _) in kinds.items()),
        ],
    }
    own = {"z": 2, **{name: value for name, (_, _, value) in kinds.items()}}
    frames = [HEADER + b"\x02", b"\0\0\0\0\2" + compile_encoder(json.dumps(reader))(own), HEADER + b"\x02"] * 50

    batch = BatchDecoder(json.dumps(reader), {1: json.dumps(record(z="int")), 2: json.dumps(reader)}).decode(frames)

    batch.validate(full=True)
    missing = {"z": 1, **{name: default for name, (_, default, _) in kinds.items()}}
    rows = [{**row, "map": dict(row["map"])} for row in batch.drop_columns(["error"]).to_pylist()]
    assert [missing, own, missing] * 50 == rows


def test_batches_of_all_sizes():
    """The sizes of one batch do not limit the next one."""
    schema = record(t="string", a={"type": "array", "items": {"type": "map", "values": "string"}})
    encode = compile_encoder(json.dumps(schema))
    decoder = BatchDecoder(json.dumps(schema), {1: json.dumps(schema)})
    for rows, length, items in ((3, 1000, 50), (0, 0, 0), (500, 0, 0), (1, 5000, 300), (200, 30, 3), (1, 0, 0)):
        values = [{"t": "é" * length, "a": [{"k": "v" * n} for n in range(items)]} for _ in range(rows)]

        batch = decoder.decode([HEADER + encode(value) for value in values])

        assert values == [
            {**row, "a": [dict(one) for one in row["a"]]} for row in batch.drop_columns(["error"]).to_pylist()
        ]
