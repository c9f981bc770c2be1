"""Protobuf frames are decoded to columns: values and damage of any kind; no Spark session is needed."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.examples import examples
from harness.payload_columns import PayloadColumn, kind_of, proto, proto_frame
from strata.serdes.client import RegistryClient
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

PROTO3 = 'syntax = "proto3"; package shop; '
IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "any", "struct")
)
KIND = "enum Kind { option allow_alias = true; A = 0; B = 1; C = 2; CC = 2; }"


def test_nullable(client: RegistryClient) -> None:
    """A field without presence is not nullable, one with presence is; columns are in the order of the numbers."""
    schema = proto(
        PROTO3 + "message M { int32 a = 1; optional int32 b = 2; oneof c { int32 d = 3; string e = 4; } M2 f = 5; "
        "repeated int32 g = 6; map<string, M2> h = 7; } message M2 { bool x = 1; }"
    )
    fields = PayloadColumn(client, schema).type.fields

    assert list("abdefgh") == [one.name for one in fields]
    assert {"b", "d", "e", "f"} == {one.name for one in fields if one.nullable}
    assert not fields[5].dataType.containsNull
    assert not fields[6].dataType.valueContainsNull
    assert [{"a": 0, "b": None, "d": None, "e": "x", "f": {"x": False}, "g": [], "h": []}] == [
        {**one, "h": list(one["h"])}
        for one in PayloadColumn(client, schema).read(proto_frame(client, schema, b"\x22\x01x\x2a\x00"))
    ]


# declarations, requested message, columns, error, its message
REFUSED: list[Any] = [
    pytest.param(
        "message A { B b = 1; } message B { repeated A a = 1; }", None, None, UnsupportedSchema,
        r"at b\.a\[\]: the message shop\.A contains itself", id="a message inside itself",
    ),
    pytest.param(
        "message A { map<string, A> a = 1; }", None, None, UnsupportedSchema, r"at a\{\}: the message", id="in a map"
    ),
    pytest.param(
        "message A {}", "shop.B", None, ValueError, r"no message shop\.B; the reader schema has shop\.A",
        id="no such message",
    ),
    pytest.param(
        "message A { int32 n = 1; }", None, ["x"], ValueError, r"no column x; the reader schema shop\.A has n",
        id="no such column",
    ),
    pytest.param("message A { int32 n = 1; }", None, [], ValueError, "no column is chosen", id="no columns"),
    pytest.param("message A { int32 n = 1; }", None, "n", TypeError, "list of field names", id="columns as a text"),
    pytest.param(
        "".join(f"message M{i} {{ {' '.join(f'M{i + 1} f{n} = {n};' for n in range(1, 9))} }} " for i in range(6))
        + "message M6 { int32 n = 1; }",
        None, None, UnsupportedSchema, "more than 10000 types", id="messages that multiply",
    ),
    pytest.param(
        "".join(f"message M{i} {{ M{i + 1} f = 1; }} " for i in range(500)) + "message M500 {}",
        None, None, UnsupportedSchema, "more than 100 levels deep", id="a long chain",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "columns", "error", "says"), REFUSED)
def test_refused(
    client: RegistryClient, text: str, message: str | None, columns: Any, error: type[Exception], says: str
) -> None:
    """A schema that cannot be a column is refused before any task runs, with the place."""
    with pytest.raises(error, match=says):
        _ = PayloadColumn(client, proto(PROTO3 + text), message=message, columns=columns).type


RICH = proto(
    PROTO3
    + IMPORTS
    + KIND
    + """
message Rich {
  int32 i = 1; uint64 u = 2; sint64 z = 3; double d = 4; string s = 5; bytes b = 6; Kind k = 7;
  optional string o = 8; oneof one { int32 p = 9; Inner q = 10; } repeated Inner many = 11;
  map<string, Inner> by = 12; google.protobuf.Timestamp at = 13; google.protobuf.Int64Value w = 14;
  repeated fixed32 packed = 15;
  message Inner { int64 n = 1; repeated string tags = 2; Deep deep = 3; message Deep { bool t = 1; } }
}
"""
)
ANY_STRING = st.text(max_size=5)
INNERS = st.fixed_dictionaries(
    {"n": st.integers(-(2**63), 2**63 - 1), "tags": st.lists(ANY_STRING, max_size=3)},
    optional={"deep": st.fixed_dictionaries({"t": st.booleans()})},
)
RICHES = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "u": st.integers(0, 2**64 - 1),
        "z": st.integers(-(2**63), 2**63 - 1),
        "d": st.floats(allow_nan=False),
        "s": ANY_STRING,
        "b": st.binary(max_size=5),
        "k": st.integers(-3, 3),
        "many": st.lists(INNERS, max_size=3),
        "by": st.dictionaries(ANY_STRING, INNERS, max_size=3),
        "packed": st.lists(st.integers(0, 2**32 - 1), max_size=3),
    },
    optional={"o": ANY_STRING, "p": st.integers(-9, 9), "w": st.builds(dict, value=st.integers(-9, 9))},
)


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return the column's value of the data that a message was made from."""

    def inner(one: dict[str, Any]) -> dict[str, Any]:
        return {"deep": None, **one}

    return {
        **dict.fromkeys(("o", "p", "q", "at")),
        **value,
        "u": Decimal(value["u"]),
        "k": {0: "A", 1: "B", 2: "C"}.get(value["k"], str(value["k"])),
        "many": [inner(one) for one in value["many"]],
        "by": {name: inner(one) for name, one in value["by"].items()},
        "w": value["w"]["value"] if "w" in value else None,
    }


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(RICHES, max_size=5))
def test_any_values(client: RegistryClient, values: list[dict[str, Any]]) -> None:
    """Columns hold any value that messages hold."""
    kind = kind_of(RICH)
    frames = [proto_frame(client, RICH, kind(**one).SerializeToString()) for one in values]

    assert [_plain(one) for one in values] == PayloadColumn(client, RICH).read(*frames)


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    value=RICHES,
    changes=st.lists(st.tuples(st.integers(0, 400), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])), max_size=4),
    end=st.integers(0, 400),
    tail=st.binary(max_size=3),
)
def test_any_bytes(
    client: RegistryClient, value: dict[str, Any], changes: list[tuple[int, int]], end: int, tail: bytes
) -> None:
    """A damaged frame is a value or a dead letter with its bytes, and its neighbours are not affected."""
    good = proto_frame(client, RICH, kind_of(RICH)(**value).SerializeToString())
    damaged = bytearray(good)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte

    first, _, last = PayloadColumn(client, RICH).read(good, bytes(damaged[: max(1, end)]) + tail, good)

    assert _plain(value) == first == last
