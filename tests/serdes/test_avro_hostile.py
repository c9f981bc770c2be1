"""Hostile or damaged bytes are errors with a reason, at small cost."""

# ruff: noqa: E501 - a row of a table is a line
import gc
import json
import subprocess
import sys
import tracemalloc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.avro import Limits, compile_decoder
from strata.serdes.errors import DecodeError, DecodeReason

TREE = {"type": "record", "name": "T", "fields": [{"name": "kids", "type": {"type": "array", "items": "T"}}]}
CHAIN = {"type": "record", "name": "C", "fields": [{"name": "next", "type": ["null", "C"]}]}
SELF = {"type": "record", "name": "S", "fields": [{"name": "s", "type": "S"}]}
EMPTY = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "sku", "type": "string"},
            {"name": "kind", "type": ENUM},
            {"name": "ok", "type": "boolean"},
        ]}}},
        {"name": "tags", "type": {"type": "map", "values": ["int", "double", {"type": "fixed", "name": "F", "size": 3}]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "self", "type": ["null", "Order"]},
    ],
}  # fmt: skip
MINUS_ONE = b"\x01"
SMALLEST = b"\xff" * 9 + b"\x01"  # -2^63
LARGEST = b"\xfe" + b"\xff" * 8 + b"\x01"  # 2^63 - 1
LIST, MAP = {"type": "array", "items": "int"}, {"type": "map", "values": "int"}
DATE, MILLIS = {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-millis"}
TIME = {"type": "int", "logicalType": "time-millis"}
DECIMALS = {"type": "array", "items": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}}

HOSTILE = [
    ("a tree 20,000 records deep", TREE, b"\x02" * 20_000, "limit"),
    ("a chain 20,000 records deep", CHAIN, b"\x02" * 20_000, "limit"),
    ("a record that is always inside itself", SELF, b"", "limit"),
    ("an array of records that are always inside themselves", {"type": "array", "items": SELF}, b"\x02\x00", "limit"),
    ("300 million nulls in five bytes", {"type": "array", "items": "null"}, b"\x80\x8c\x8d\x9e\x02\x00", "limit"),
    ("2^63 nulls", {"type": "array", "items": "null"}, SMALLEST + b"\x00\x00", "limit"),
    ("many blocks of nulls", {"type": "array", "items": "null"}, b"\xd0\x0f" * 100 + b"\x00", "limit"),
    ("many arrays of nulls", {"type": "array", "items": {"type": "array", "items": "null"}}, b"\x80\x02" + b"\xd0\x0f\x00" * 128 + b"\x00", "limit"),
    ("300 million empty records", {"type": "array", "items": EMPTY}, b"\x80\x8c\x8d\x9e\x02\x00", "limit"),
    ("300 million empty fixed", {"type": "array", "items": {"type": "fixed", "name": "Z", "size": 0}}, b"\x80\x8c\x8d\x9e\x02\x00", "limit"),
    ("300 million ints in five bytes", LIST, b"\x80\x8c\x8d\x9e\x02\x00", "truncated"),
    ("2^63 ints", LIST, SMALLEST + b"\x02\x02", "truncated"),
    ("2^63 - 1 ints", LIST, LARGEST + b"\x02", "truncated"),
    ("2^63 - 1 entries", MAP, LARGEST + b"\x02", "truncated"),
    ("a block of negative length", LIST, b"\x01\x01\x02\x00", "negative length"),
    ("union index -1", ["int", "string"], MINUS_ONE + b"\x02a", "invalid index"),
    ("union index 2 of 2", ["int", "string"], b"\x04\x02a", "invalid index"),
    ("union index of 2^31 - 1", ["int", "string"], b"\xfe\xff\xff\xff\x0f", "invalid index"),
    ("empty union", [], b"\x00", "invalid index"),
    ("enum index -1", ENUM, MINUS_ONE, "invalid index"),
    ("enum index 2 of 2", ENUM, b"\x04", "invalid index"),
    ("int beyond 32 bits", "int", b"\xff\xff\xff\xff\x1f", "out of range"),
    ("int of six bytes", "int", b"\x80\x80\x80\x80\x80\x00", "out of range"),
    ("long beyond 64 bits", "long", b"\xff" * 9 + b"\x02", "out of range"),
    ("long of eleven bytes", "long", b"\x80" * 10 + b"\x00", "out of range"),
    ("endless number", "long", b"\xff" * 100_000, "out of range"),
    ("endless length", "string", b"\xff" * 100_000, "out of range"),
    ("string of length -1", "string", MINUS_ONE, "negative length"),
    ("string of length -2^63", "string", SMALLEST, "negative length"),
    ("string of length 2^63 - 1", "string", LARGEST, "truncated"),
    ("bytes of length -1", {"type": "array", "items": "bytes"}, b"\x02\x01\x00", "negative length"),
    ("map key of length -1", MAP, b"\x02\x01", "negative length"),
    ("invalid UTF-8", "string", b"\x04\xc3\x28", "invalid utf-8"),
    ("UTF-8 of a lone surrogate", "string", b"\x06\xed\xa0\x80", "invalid utf-8"),
    ("invalid UTF-8 in a key", MAP, b"\x02\x02\xff\x02\x00", "invalid utf-8"),
    ("boolean 2", "boolean", b"\x02", "invalid boolean"),
    ("trailing byte", "int", b"\x02\x00", "trailing bytes"),
    ("nothing at all", "int", b"", "truncated"),
    ("a day after the last", DATE, b"\xc2\x82\xe6\x02", "out of range"),
    ("the largest day", DATE, b"\xfe\xff\xff\xff\x0f", "out of range"),
    ("the largest instant", MILLIS, LARGEST, "out of range"),
    ("a time before midnight", TIME, MINUS_ONE, "out of range"),
    ("a time after midnight", TIME, b"\x80\xf0\xb2\x52", "out of range"),
    ("decimal of too many digits", DECIMALS, b"\x02\x04\x27\x10\x00", "out of range"),
    ("decimal of a million bytes", DECIMALS, b"\x02\x80\x89\x7a" + b"\x7f" * 1_000_000 + b"\x00", "out of range"),
    ("no uuid", {"type": "string", "logicalType": "uuid"}, b"\x04ab", "invalid uuid"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "payload", "reason"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_each_is_an_error_with_its_reason(schema, payload, reason):
    """A payload has the same reason with and without a reader schema."""
    text = json.dumps(schema)

    for reader in (None, f" {text}"):
        with pytest.raises(DecodeError) as caught:
            compile_decoder(text, reader)(payload)
        assert reason == caught.value.reason


def test_no_process_dies_of_them():
    """A process with 600 MB of memory survives all of them together."""
    program = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (600 * 2**20, 600 * 2**20))
from strata.serdes.avro import compile_decoder
from strata.serdes.errors import DecodeError
for schema, payload in json.load(sys.stdin):
    try:
        compile_decoder(schema)(bytes.fromhex(payload))
    except DecodeError:
        print("refused")
"""
    rows = json.dumps([(json.dumps(schema), payload.hex()) for _, schema, payload, _ in HOSTILE])

    done = subprocess.run(
        [sys.executable, "-c", program], input=rows, text=True, capture_output=True, timeout=120, check=False
    )

    assert "refused\n" * len(HOSTILE) == done.stdout
    assert (0, "") == (done.returncode, done.stderr)


def test_limits_can_be_chosen():
    """The caller can choose the limits."""
    chain, nulls = json.dumps(CHAIN), '{"type": "array", "items": "null"}'

    assert compile_decoder(chain, limits=Limits(max_depth=3))(b"\x02\x02\x00") == {"next": {"next": {"next": None}}}
    with pytest.raises(DecodeError, match="limit"):
        compile_decoder(chain, limits=Limits(max_depth=3))(b"\x02\x02\x02\x00")
    assert compile_decoder(nulls, limits=Limits(max_weightless=5))(b"\x06\x00") == [None] * 3
    with pytest.raises(DecodeError, match="limit"):
        compile_decoder(nulls, limits=Limits(max_weightless=5))(b"\x0c\x00")


def test_a_depth_beyond_the_stack_is_still_an_error():
    """A limit beyond Python's own recursion limit still ends as an error of the payload."""
    with pytest.raises(DecodeError) as caught:
        compile_decoder(json.dumps(CHAIN), limits=Limits(max_depth=10**9))(b"\x02" * 200_000)

    assert caught.value.reason == "limit"


def test_a_refusal_takes_little_memory():
    """The decoder never reserves the memory that a payload merely claims to need."""
    decode = compile_decoder(json.dumps(LIST))
    tracemalloc.start()

    with pytest.raises(DecodeError):
        decode(LARGEST + b"\x02" * 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 1_000_000


def test_errors_hold_nothing_once_they_are_gone():
    """Errors are freed without the garbage collector, so that millions of damaged payloads do not stay in memory."""
    decode = compile_decoder('"int"')
    gc.disable()
    try:
        with pytest.raises(DecodeError) as caught:
            decode(b"")
        watched = weakref.ref(caught.value)
        del caught

        assert watched() is None
    finally:
        gc.enable()


def test_the_place_of_damage_is_told():
    """The error names the field and the byte, and stays short at any depth."""
    damaged = b"\x02\x00\x04\x02a\x00\x01\x02\xff\x00\x01\x00" + UUID

    with pytest.raises(DecodeError) as caught:
        compile_decoder(json.dumps(ORDER))(damaged)
    with pytest.raises(DecodeError) as deep:
        compile_decoder(json.dumps(CHAIN))(b"\x02" * 150 + b"\x07")

    assert ("invalid utf-8", "lines[1].sku", 8) == (caught.value.reason, caught.value.path, caught.value.offset)
    assert len(deep.value.path) < 120


ORDER_TEXT = json.dumps(ORDER)
ORDER_DECODERS = [
    compile_decoder(ORDER_TEXT),
    compile_decoder(ORDER_TEXT, json.dumps({**ORDER, "fields": ORDER["fields"][::-1]})),
    compile_decoder(ORDER_TEXT, json.dumps({**ORDER, "fields": ORDER["fields"][4:5]})),
]
UUID = b"00000000-0000-0000-0000-000000000001"
REASONS = {None, *DecodeReason}


def reason_of(decode, payload):
    """Return the reason why a payload is refused, or None."""
    try:
        decode(payload)
    except DecodeError as error:
        return error.reason
    return None


@settings(max_examples=examples(200), deadline=None)
@given(
    st.binary(max_size=200) | st.lists(st.sampled_from([0, 1, 2, 3, 4, 6, 0x7F, 0x80, 0xFF]), max_size=300).map(bytes)
)
def test_random_bytes_give_a_value_or_a_reason(payload):
    """Random bytes give a value or a DecodeError with a known reason."""
    for decode in ORDER_DECODERS:
        assert reason_of(decode, payload) in REASONS


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_damaged_records_give_a_value_or_a_reason(data):
    """Real records with a few bytes changed, cut or added give a value or a known reason."""
    good = (
        b"\x54\x02\x06abc\x04\x02x\x02\x01\x02y\x00\x00\x00\x02\x02k\x00\x0e\x00\xd0\x0f\x04\x01\x00H" + UUID + b"\x00"
    )
    compile_decoder(ORDER_TEXT)(good)
    payload = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        payload = payload or bytearray(b"\x00")

    for decode in ORDER_DECODERS:
        assert reason_of(decode, bytes(payload)) in REASONS


def test_buffers_are_taken_like_bytes():
    """A view or a bytearray gives the same values as bytes; any other type is an error of the caller."""
    decode = compile_decoder('{"type": "array", "items": "bytes"}')

    for kind in (bytes, bytearray, memoryview):
        assert [b"a"] == decode(kind(b"\x02\x02a\x00"))
    with pytest.raises(TypeError):
        decode("\x02")
