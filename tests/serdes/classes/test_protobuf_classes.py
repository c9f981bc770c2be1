"""Classes as Protobuf schemas: the text, objects through frames and back, numbers, and what is refused."""

import math
import pickle
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar
from uuid import UUID, uuid4

import attrs
import msgspec
import pydantic
import pytest
from google.protobuf.message_factory import GetMessageClass

from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat
from strata.serdes import ProtobufDeserializer, ProtobufSerializer, RegistryClient, Schema
from strata.serdes.classes import Digits, Field, Fixed, Float32, Int32, Local, Wire, named, schema_of
from strata.serdes.errors import DecodeError, EncodeError, SchemaError
from strata.serdes.protobuf.files import find_message, link

T = TypeVar("T")


class Carrier(StrEnum):
    """Who flies."""

    UA = "UA"
    AA = "AA"


class Level(Enum):
    """A level."""

    LOW = 0
    HIGH = 5


@dataclass
class Leg:
    """A part of a flight."""

    origin: str
    miles: Annotated[int, Int32] = 0


@named("shop.Flight")
@dataclass
class Flight:
    """A flight.

    With legs.
    """

    id: int
    carrier: Carrier
    legs: list[Leg]
    price: Annotated[Decimal, Digits(9, 2)]
    at: datetime
    day: date
    first: Leg
    gate: Annotated[str | None, Field(doc="Where it is boarding")] = None
    tags: dict[str, float] = field(default_factory=dict)
    stops: dict[str, Leg] = field(default_factory=dict)
    level: Level = Level.LOW
    last: Carrier = Carrier.AA
    ratio: Annotated[float, Float32] = 0.5
    token: Annotated[bytes, Fixed(2, "Token")] = b"ab"
    kind: Literal["one_way", "round"] = "round"
    ids: tuple[UUID, ...] = ()
    leaves: time = time(1, 2)
    local: Annotated[datetime | None, Local] = None
    moments: list[datetime] = field(default_factory=list)
    shape: int | str | Leg | None = None
    back: Leg | None = None
    days: set[int] = field(default_factory=set)
    number: Annotated[int, Wire("sint64")] = -1
    carriers: list[Carrier] = field(default_factory=list)


AT = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
LOCAL = AT.replace(tzinfo=None)
FLIGHT = Flight(
    7, Carrier.AA, [Leg("JFK", 3), Leg("", 0)], Decimal("-9.50"), AT, date(2026, 1, 2), Leg("", 0), "", {"a": 0.5},
    {"x": Leg("x"), "": Leg("")}, Level.HIGH, Carrier.UA, 0.25, b"xy", "one_way", (UUID(int=5),), time(1, 2, 3, 4),
    LOCAL, [AT], Leg("z"), Leg(""), {1, 2}, 0, [Carrier.AA],
)  # fmt: skip
LEAST = Flight(0, Carrier.UA, [], Decimal("0.00"), datetime(1, 1, 1, tzinfo=UTC), date(1, 1, 1), Leg(""))


@pytest.fixture
def client():
    """Return a client of a registry in memory."""
    with RegistryClient(f"mock://{uuid4()}") as made:
        yield made


def round_trip(client: Any, cls: Any, value: Any, topic: str = "t") -> Any:
    """Write an object under the schema of its class, and read it again."""
    frame = ProtobufSerializer(client, cls)(value, topic=topic)
    return ProtobufDeserializer(client, cls)(frame, topic=topic)


@pytest.mark.parametrize("value", [FLIGHT, LEAST])
def test_a_dataclass(client, value):
    """Every type of Python that has one in Protobuf goes through a frame and comes back equal."""
    assert value == round_trip(client, Flight, value)


def test_the_schema():
    """Docs, presence, enums, unions, well-known types and names are in the schema."""
    text = schema_of(Flight, "PROTOBUF").text

    for line in (
        "package shop;",
        'import "google/protobuf/timestamp.proto";',
        "// A flight. With legs.\nmessage Flight {",
        "  // Where it is boarding\n  optional string gate = 8;",
        "  google.protobuf.Timestamp at = 5;",
        "  confluent.type.Decimal price = 4;",
        "  optional Carrier last = 12;",
        "  oneof shape {\n    int64 shape_int = 20;\n    string shape_str = 21;\n    Leg shape_leg = 22;\n  }",
        "  Leg back = 23;",
        "  optional sint64 number = 25;",
        "enum Carrier {\n  CARRIER_UNSPECIFIED = 0;\n  CARRIER_UA = 1;\n  CARRIER_AA = 2;\n}",
        "enum Level {\n  LEVEL_LOW = 0;\n  LEVEL_HIGH = 5;\n}",
    ):
        assert line in text
    parsed = FORMATS[SchemaFormat.PROTOBUF].parse(text, strict=True, references=())
    assert parsed.canonical


class Point(pydantic.BaseModel):
    """A model."""

    x: int
    label: str = pydantic.Field(default="none", description="A name")


@attrs.define
class Spot:
    """A class."""

    x: int
    label: str = "none"


class Mark(msgspec.Struct):
    """A struct."""

    x: int
    label: Annotated[str, msgspec.Meta(description="A name")] = "none"


class Place(TypedDict):
    """A dict."""

    x: int
    label: NotRequired[str]


@pytest.mark.parametrize("cls", [Point, Spot, Mark, Place])
def test_libraries(client, cls):
    """Pydantic models, attrs classes, msgspec structs and TypedDicts work as dataclasses do."""
    for value in (cls(x=5, label=""), cls(x=0)):
        assert value == round_trip(client, cls, value, cls.__name__)
        assert type(value) is type(round_trip(client, cls, value, cls.__name__))


@dataclass
class Tree:
    """A class that contains itself."""

    value: int
    children: list["Tree"] = field(default_factory=list)


@dataclass
class Page(Generic[T]):
    """A generic class."""

    items: list[T]
    total: int = 0


@named("shop.Order")
@dataclass
class Order:
    """An order with a nested class, numbers, and names that are words of Python."""

    @named("shop.Order.Line")
    @dataclass
    class Line:
        """A line."""

        from_: Annotated[str, Field(name="from", number=9)] = ""

    lines: Annotated[list[Line], Field(number=3)]
    choice: Annotated[str, Field(name="text", number=7)] | Annotated[int, Field(name="count", number=5)]


Order.__annotations__["lines"] = Annotated[list[Order.Line], Field(number=3)]


@pytest.mark.parametrize(
    ("cls", "value"),
    [
        (Tree, Tree(1, [Tree(2), Tree(3, [Tree(4)])])),
        (Page[Leg], Page([Leg("JFK")], 1)),
        (Page[int], Page([1, 2])),
        (Order, Order([Order.Line("x")], 4)),
    ],
)
def test_nested_classes(client, cls, value):
    """Classes that contain themselves or others, generic ones, and names that are words of Python come back equal."""
    assert value == round_trip(client, cls, value)


def test_a_class_reads_by_names(client):
    """A reader takes fields by name or former name, defaults for those that are not there, and ignores others."""

    @named("shop.Flight")
    @dataclass
    class Short:
        gate: str | None
        flight_id: Annotated[int, Field(aliases=("id",))]
        extra: str = "default"
        count: int = 3
        more: list[str] = field(default_factory=list)

    frame = ProtobufSerializer(client, Flight)(FLIGHT, topic="flights")

    assert Short("", 7) == ProtobufDeserializer(client, Short)(frame, topic="flights")
    assert pickle.loads(pickle.dumps(ProtobufDeserializer(client, Flight)))(frame, topic="flights") == FLIGHT
    assert {"id": "7"}.items() <= ProtobufDeserializer(client, as_dict=True)(frame, topic="flights").items()


def test_a_moved_field(client):
    """A field that takes the number of another is an error before it is registered, unless it is a former name."""
    one = dataclass(type("Row", (), {"__annotations__": {"a": int, "b": int}}))
    swapped = dataclass(type("Row", (), {"__annotations__": {"b": int, "a": int}}))
    renamed = dataclass(type("Row", (), {"__annotations__": {"a": int, "c": Annotated[int, Field(aliases=("b",))]}}))
    longer = dataclass(type("Row", (), {"__annotations__": {"a": int, "b": int, "c": int}}))
    ProtobufSerializer(client, one)(one(1, 2), topic="rows")

    with pytest.raises(SchemaError, match=r"Row\.b: 1 is the number of a in the registry"):
        ProtobufSerializer(client, swapped)(swapped(1, 2), topic="rows")
    with pytest.raises(SchemaError, match=r"Row\.b: 1 is the number of a in the registry"):
        ProtobufSerializer(client, swapped, {"auto.register.schemas": False, "use.latest.version": True})(
            swapped(1, 2), topic="rows"
        )
    assert renamed(1, 2) == round_trip(client, renamed, renamed(1, 2), "rows")
    assert longer(1, 2, 3) == round_trip(client, longer, longer(1, 2, 3), "longer")


# hint, part of the error
NO_TYPE = [
    (list[list[int]], "use a class"),
    (list[int | None], "use a class"),
    (list[int] | None, "cannot tell an empty list"),
    (int | list[int], "cannot tell an empty list"),
    (type(None), "None has no type"),
    (Annotated[int, Field(number=19_000)], "19000 is not a field number"),
    (Annotated[int, Wire("double")], "double is not a type for int"),
    (Annotated[int, Field(name="a-b")], "not a name of Protobuf"),
]


@pytest.mark.parametrize(("hint", "words"), NO_TYPE)
def test_types_without_a_schema(hint, words):
    """A type that Protobuf cannot have is an error that names the field."""
    cls = dataclass(type("Bad", (), {"__annotations__": {"field": hint}}))

    with pytest.raises(SchemaError, match=words) as caught:
        schema_of(cls, "PROTOBUF")

    assert str(caught.value).startswith("Bad.")


def test_numbers_and_names_that_two_fields_share(client):
    """Two fields of one number, and branches of one type, are errors."""
    cls = dataclass(type("Bad", (), {"__annotations__": {"a": int, "b": Annotated[int, Field(number=1)]}}))
    with pytest.raises(SchemaError, match=r"Bad\.b: the number 1 is that of a"):
        schema_of(cls, "PROTOBUF")
    union = dataclass(type("Bad", (), {"__annotations__": {"a": int | Annotated[int, Int32]}}))
    with pytest.raises(SchemaError, match=r"two branches of the union are of the type int"):
        ProtobufSerializer(client, union)
    with pytest.raises(TypeError, match="expected a message class made by protoc, or a class with fields"):
        ProtobufSerializer(client, str)


# how the value is damaged, path, part of the error
UNFIT = [
    ({"id": "x"}, "id", "expected an integer, got str"),
    ({"id": True}, "id", "expected an integer, got bool"),
    ({"id": 2**70}, "id", "value out of range"),
    ({"carrier": "UB"}, "carrier", "expected Carrier, got str"),
    ({"legs": [Leg("JFK", 2**40)]}, "legs.miles", "value out of range"),
    ({"at": LOCAL}, "at", "without"),
    ({"price": Decimal("1.234")}, "price", "at most 2 digits"),
    ({"day": AT}, "day", "expected a date"),
    ({"token": b"abc"}, "token", "expected 2 bytes"),
    ({"shape": 1.5}, "shape", "expected int or str or Leg"),
    ({"kind": "other"}, "kind", "expected a symbol"),
    ({"gate": b"x"}, "gate", "expected text, got bytes"),
    ({"ratio": 1e300}, "ratio", "32 bits"),
    ({"first": None}, "first", "expected an object of Leg, got None"),
    ({"ids": ("x",)}, "ids", "expected a UUID"),
]


@pytest.mark.parametrize(("change", "path", "words"), UNFIT)
def test_values_that_do_not_fit(client, change, path, words):
    """A value of another type is an error that names the field."""
    value = Flight(**{name: getattr(FLIGHT, name) for name in Flight.__annotations__} | change)

    with pytest.raises(EncodeError, match=words) as caught:
        ProtobufSerializer(client, Flight)(value, topic="flights")

    assert path == caught.value.path


def test_another_object(client):
    """Another object than one of the class is an error that names the class."""
    with pytest.raises(EncodeError, match="expected Flight, got dict"):
        ProtobufSerializer(client, Flight)({"id": 7}, topic="flights")


FOREIGN = """syntax = "proto3";
import "google/protobuf/wrappers.proto";
import "google/protobuf/timestamp.proto";
message Foreign {
  google.protobuf.StringValue note = 1;
  Status status = 2;
  google.protobuf.Timestamp at = 3;
  uint32 count = 4;
  enum Status { STATUS_UNSPECIFIED = 0; NEW = 1; STATUS_OLD = 2; STATUS_LATE = 3; }
}"""


class Status(StrEnum):
    """A status."""

    NEW = "NEW"
    OLD = "OLD"


@dataclass
class Foreign:
    """A class for a schema that others wrote."""

    note: str | None
    status: Status
    at: datetime
    count: int


def foreign(client, **fields):
    """Return a frame of the foreign message."""
    schema = Schema(FOREIGN, "PROTOBUF")
    message = GetMessageClass(find_message(link(schema, {}), (0,)))(**fields)
    schema_id = client.register("foreign-value", schema).schema_id
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0" + message.SerializeToString()


def test_a_schema_of_others(client):
    """Wrappers, other integer types and names of values with and without their prefix are read."""
    read = ProtobufDeserializer(client, Foreign)
    at = {"seconds": 1, "nanos": 2_999}

    assert Foreign("x", Status.NEW, datetime(1970, 1, 1, 0, 0, 1, 2, UTC), 4) == read(
        foreign(client, note={"value": "x"}, status=1, at=at, count=4)
    )
    assert read(foreign(client, status=2, at=at)).status is Status.OLD


# fields of the message, path, part of the error
DAMAGED = [
    ({"status": 2}, "at", "it is not there"),
    ({"at": {}}, "status", "0 is not a symbol"),
    ({"status": 3, "at": {}}, "status", "3 is not a symbol"),
    ({"status": 9, "at": {}}, "status", "9 is not a symbol"),
    ({"status": 1, "at": {"seconds": 2**50}}, "at", "beyond the years"),
]


@pytest.mark.parametrize(("fields", "path", "words"), DAMAGED)
def test_values_that_the_class_cannot_have(client, fields, path, words):
    """A value without a place in the class is an error that names the field."""
    with pytest.raises(DecodeError, match=words) as caught:
        ProtobufDeserializer(client, Foreign)(foreign(client, **fields))

    assert path == caught.value.path


def test_types_that_do_not_match(client):
    """A field of another type than the class has is an error that names both."""
    wrong = dataclass(type("Foreign", (), {"__annotations__": {"count": str}}))
    with pytest.raises(SchemaError, match="count: expected text, the schema has uint32"):
        ProtobufDeserializer(client, wrong)(foreign(client, count=4))
    listed = dataclass(type("Foreign", (), {"__annotations__": {"count": list[int]}}))
    with pytest.raises(SchemaError, match="count: expected a list of an integer, the schema has uint32"):
        ProtobufDeserializer(client, listed)(foreign(client, count=4))


def test_infinite_floats(client):
    """An infinite float of 32 bits is written, since it is one."""
    cls = dataclass(type("Number", (), {"__annotations__": {"x": Annotated[float, Float32]}}))

    assert cls(math.inf) == round_trip(client, cls, cls(math.inf), "numbers")
