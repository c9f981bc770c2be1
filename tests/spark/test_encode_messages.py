"""Columns are encoded to Protobuf messages with every kind of field, by Python workers."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.model import PROTOBUF, Reference
from strata.serdes.protobuf import ProtobufDeserializer
from strata.spark_udfs import encoder
from strata.spark_udfs.encoding.row_encoder import RowEncoder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]


def _frames(registry: RegistryClient, values: pa.Array, **options: Any) -> list[Any]:
    """Return a worker's frames of an array."""
    plan = encoder(registry=registry.settings, **options).plan
    made: list[Any] = RowEncoder(plan).encode(values).to_pylist()
    return made


PROTO = """
syntax = "proto3";
package acme;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "acme/money.proto";
message Other { message Inner { int32 x = 1; } }
message Order {
  enum Kind { NONE = 0; BIG = 1; }
  int64 id = 1;
  uint32 small = 2;
  uint64 large = 3;
  double weight = 4;
  bytes data = 5;
  Kind kind = 6;
  repeated string tags = 7;
  map<string, Inner> by = 8;
  repeated Inner inner = 9;
  google.protobuf.Timestamp at = 10;
  google.protobuf.Duration span = 11;
  google.protobuf.StringValue note = 12;
  oneof choice { string left = 13; int32 right = 14; }
  optional bool flag = 15;
  acme.Money price = 16;
  message Inner { optional int32 x = 1; }
}
"""
ORDER: dict[str, tuple[pa.DataType, Any, Any]] = {
    "id": (pa.int64(), 2**62, str(2**62)),
    "small": (pa.int64(), 2**32 - 1, 2**32 - 1),
    "large": (pa.decimal128(20, 0), Decimal(2**64 - 1), str(2**64 - 1)),
    "weight": (pa.float64(), float("inf"), "Infinity"),
    "data": (pa.binary(), b"\0\xff", "AP8="),
    "kind": (pa.string(), "BIG", "BIG"),
    "tags": (pa.list_(pa.string()), ["a", ""], ["a", ""]),
    "by": (pa.map_(pa.string(), pa.struct([("x", pa.int32())])), [("k", {"x": 0})], {"k": {"x": 0}}),
    "inner": (pa.list_(pa.struct([("x", pa.int32())])), [{"x": 1}, {"x": None}], [{"x": 1}, {}]),
    "at": (pa.timestamp("us", "UTC"), datetime(1969, 12, 31, 23, 59, 59, 5, UTC), "1969-12-31T23:59:59.000005Z"),
    "span": (pa.duration("us"), timedelta(seconds=-1.5), "-1.500s"),
    "note": (pa.string(), "n", "n"),
    "left": (pa.string(), "l", "l"),
    "right": (pa.int32(), None, None),
    "flag": (pa.bool_(), None, None),
    "price": (pa.struct([("cents", pa.int32())]), {"cents": 5}, {"cents": 5}),
}
"""Field, its column's type, a value, and its form in protobuf's JSON."""


@pytest.fixture
def orders(registry: RegistryClient) -> Schema:
    """Return a Protobuf schema with an import that is registered."""
    money = 'syntax = "proto3"; package acme; message Money { int32 cents = 1; }'
    registry.register("acme/money.proto", Schema(money, PROTOBUF))
    return Schema(PROTO, PROTOBUF, (Reference("acme/money.proto", "acme/money.proto", 1),))


def _order(**changed: tuple[pa.DataType, Any]) -> pa.Array:
    """Return a column with one order, some of its fields replaced."""
    fields: dict[str, Any] = {name: one[:2] for name, one in ORDER.items()} | changed
    columns = [pa.array([value], kind) for kind, value in fields.values()]
    return pa.StructArray.from_arrays(columns, names=list(fields))


def test_values_of_protobuf(registry: RegistryClient, orders: Schema) -> None:
    """Each field takes its column; the message is named, and its path is in the frame."""
    options: dict[str, Any] = {"subject": "orders", "schema": orders, "message": "acme.Order"}

    [frame] = _frames(registry, _order(), **options)
    [inner] = _frames(registry, pa.array([{"x": 7}]), **options | {"message": "acme.Other.Inner"})
    [first] = _frames(registry, pa.array([{}], pa.struct([])), **options | {"message": None})

    read = ProtobufDeserializer(registry, as_dict=True)
    assert {name: value for name, (_, _, value) in ORDER.items() if value is not None} == read(frame)
    assert b"\x02\x02" == frame[5:7]
    assert {"x": 7} == read(inner)
    assert b"\x04\x00\x00" == inner[5:8]
    assert b"\x00" == first[5:]


# the difference, reason, path
BAD_ORDERS: list[tuple[dict[str, tuple[pa.DataType, Any]], str, str]] = [
    ({"small": (pa.int64(), -1)}, "out of range", "small"),
    ({"large": (pa.decimal128(20, 0), Decimal(2**64))}, "out of range", "large"),
    ({"id": (pa.int64(), None)}, "expected a value, got null: the field has no presence", "id"),
    ({"tags": (pa.list_(pa.string()), ["a", None])}, "expected a value, got null", "tags[]"),
    ({"kind": (pa.string(), "HUGE")}, "expected a name of the enum Kind", "kind"),
    ({"right": (pa.int32(), 1)}, "expected one member of the oneof, got several", "right"),
    ({"at": (pa.timestamp("us", "UTC"), 2**62)}, "expected a year from 1 to 9999", "at"),
    (
        {"by": (pa.map_(pa.string(), pa.struct([("x", pa.int64())])), [("k", {"x": 2**40})])},
        "out of range",
        "by{}.x",
    ),
]


@pytest.mark.parametrize(("changed", "reason", "path"), BAD_ORDERS, ids=[one[2] for one in BAD_ORDERS])
def test_values_that_are_no_message(
    registry: RegistryClient, orders: Schema, changed: dict[str, Any], reason: str, path: str
) -> None:
    """A value that does not fit is refused, not coerced."""
    [letter] = _frames(
        registry, _order(**changed), subject="orders", schema=orders, message="acme.Order", mode="DEADLETTER"
    )

    assert {"frame": None, "error": {"reason": reason, "path": path}} == letter
