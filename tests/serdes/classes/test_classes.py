"""Classes as schemas: the schema of a class, and objects through frames and back, for each library of classes."""

import json
import pickle
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, NotRequired, TypedDict, TypeVar
from uuid import UUID

import attrs
import fastavro
import jsonschema_rs
import msgspec
import pydantic
import pytest

from strata.serdes import AvroDeserializer, AvroSerializer, JsonDeserializer, JsonSerializer
from strata.serdes.avro.decoder import compile_decoder
from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.classes import Digits, Field, Fixed, Float32, Int32, Millis, bound, named, schema_of
from strata.serdes.classes.conversion import is_assigned
from strata.serdes.classes.shapes import shape_of
from strata.serdes.errors import EncodeError, SchemaError

T = TypeVar("T")


class Carrier(StrEnum):
    """Who flies."""

    UA = "UA"
    AA = "AA"


class Level(Enum):
    """A level."""

    LOW = 1
    HIGH = 2


@dataclass
class Leg:
    """A part of a flight."""

    origin: str
    miles: Annotated[int, Int32] = 0


@dataclass
class Flight:
    """A flight."""

    id: int
    carrier: Carrier
    legs: list[Leg]
    price: Annotated[Decimal, Digits(9, 2)]
    at: datetime
    day: date
    gate: Annotated[str | None, Field(doc="Where it is boarding", aliases=("door",))] = None
    tags: dict[str, float] = field(default_factory=dict)
    level: Level = Level.LOW
    ratio: Annotated[float, Float32] = 0.5
    token: Annotated[bytes, Fixed(2, "Token")] = b"ab"
    kind: Literal["one_way", "round"] = "round"
    ids: tuple[UUID, ...] = ()
    leaves: Annotated[time, Millis] = time(1, 2)


@dataclass
class Short:
    """A part of a flight's fields."""

    id: int
    carrier: Carrier


FLIGHT = Flight(
    7, Carrier.AA, [Leg("JFK", 3), Leg("LAX")], Decimal("9.50"), datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    date(2026, 1, 2), None, {"a": 0.5}, Level.HIGH, 0.25, b"xy", "one_way", (UUID(int=5),), time(1, 2, 3),
)  # fmt: skip


def round_trip(cls: Any, value: Any, *, schema_format: str = "AVRO") -> Any:
    """Write an object under the schema of its class, and read it again."""
    one = bound(cls, schema_format)
    if schema_format == "JSON":
        document = json.loads(json.dumps(one.lower(value)))
        jsonschema_rs.validator_for(json.loads(one.schema.text), validate_formats=True).validate(document)
        return one.lift(document)
    fastavro.parse_schema(json.loads(one.schema.text))
    payload = compile_encoder(one.schema.text)(one.lower(value))
    return one.lift(compile_decoder(one.schema.text, named_records=one.names_records)(payload))


@pytest.mark.parametrize("schema_format", ["AVRO", "JSON"])
def test_a_dataclass(schema_format):
    """Every type of Python that has one in a schema goes through a frame and comes back equal."""
    assert FLIGHT == round_trip(Flight, FLIGHT, schema_format=schema_format)


def test_the_avro_schema():
    """Docs, defaults, aliases, logical types and names are in the schema."""
    schema = json.loads(schema_of(Flight).text)
    fields = {one["name"]: one for one in schema["fields"]}

    assert ("record", "Flight", "A flight.") == (schema["type"], schema["name"], schema["doc"])
    assert {"type": "enum", "name": "Carrier", "symbols": ["UA", "AA"], "doc": "Who flies."} == fields["carrier"][
        "type"
    ]
    assert {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2} == fields["price"]["type"]
    assert {
        "name": "gate", "type": ["null", "string"], "doc": "Where it is boarding", "aliases": ["door"], "default": None
    } == fields["gate"]  # fmt: skip
    assert ("LOW", ["LOW", "HIGH"]) == (fields["level"]["default"], fields["level"]["type"]["symbols"])
    assert ({"type": "fixed", "name": "Token", "size": 2}, "ab") == (
        fields["token"]["type"],
        fields["token"]["default"],
    )
    assert "default" not in fields["leaves"]


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


@pytest.mark.parametrize("schema_format", ["AVRO", "JSON"])
@pytest.mark.parametrize("cls", [Point, Spot, Mark, Place])
def test_libraries(cls, schema_format):
    """Pydantic models, attrs classes, msgspec structs and TypedDicts work as dataclasses do."""
    value = cls(x=5, label="here")

    assert value == round_trip(cls, value, schema_format=schema_format)
    assert type(value) is type(round_trip(cls, value, schema_format=schema_format))


def test_descriptions_of_libraries():
    """The description that a library keeps of a field becomes its documentation."""
    for cls in (Point, Mark):
        [_, label] = json.loads(schema_of(cls).text)["fields"]
        assert {"name": "label", "type": "string", "doc": "A name", "default": "none"} == label


def test_a_key_that_a_typed_dict_may_lack():
    """A key that is not required is null in Avro and absent in JSON, and absent again when it is read."""
    assert {"x": 1} == round_trip(Place, {"x": 1})
    assert {"x": 1} == round_trip(Place, {"x": 1}, schema_format="JSON")


@dataclass
class Tree:
    """A class that contains itself."""

    value: int
    children: list["Tree"] = field(default_factory=list)


@dataclass
class Circle:
    """A branch."""

    radius: float


@dataclass
class Square:
    """Another branch."""

    side: float


@dataclass
class Drawing:
    """A union."""

    shape: Circle | Square | None
    note: int | str = "none"


@dataclass
class Page(Generic[T]):
    """A generic class."""

    items: list[T]
    total: int = 0


@pytest.mark.parametrize("schema_format", ["AVRO", "JSON"])
@pytest.mark.parametrize(
    ("cls", "value"),
    [
        (Tree, Tree(1, [Tree(2), Tree(3, [Tree(4)])])),
        (Drawing, Drawing(Circle(1.5), 3)),
        (Drawing, Drawing(Square(2.0))),
        (Drawing, Drawing(None)),
        (Page[Leg], Page([Leg("JFK")], 1)),
        (Page[int], Page([1, 2])),
    ],
)
def test_nested_classes(cls, value, schema_format):
    """Classes that contain themselves, unions of classes, and generic classes come back equal."""
    assert value == round_trip(cls, value, schema_format=schema_format)


def test_names():
    """`named` gives a class its full name, aliases and default symbol; a field may have another name."""

    @named("shop.State", default="NEW")
    class State(StrEnum):
        NEW = "NEW"

    @named("shop.Order", aliases=("Purchase",), doc="An order")
    @dataclass
    class Order:
        state: State
        from_: Annotated[str, Field(name="from")] = ""

    schema = json.loads(schema_of(Order).text)

    assert ("shop.Order", ["Purchase"], "An order") == (schema["name"], schema["aliases"], schema["doc"])
    assert ("shop.State", "NEW") == (schema["fields"][0]["type"]["name"], schema["fields"][0]["type"]["default"])
    assert Order(State.NEW, "x") == round_trip(Order, Order(State.NEW, "x"))
    assert "from" == schema["fields"][1]["name"]


# hint, part of the error
NO_TYPE = [
    (tuple[int, str], "a tuple of several types"),
    (dict[int, str], "expected str as keys of a map"),
    (complex, "has no type in a schema"),
    (Decimal, "has no type in a schema"),
    (list, "expected the type of the items"),
    (Literal[1, 2], "expected names as values of the Literal"),
]


@pytest.mark.parametrize(("hint", "words"), NO_TYPE)
def test_types_without_a_schema(hint, words):
    """A type that a schema cannot have is an error that names the field."""
    cls = dataclass(type("Bad", (), {"__annotations__": {"field": hint}}))

    with pytest.raises(SchemaError, match=words) as caught:
        schema_of(cls)

    assert str(caught.value).startswith("Bad.field: ")


def test_two_types_of_one_name():
    """Two classes of one name are an error instead of one of them."""
    other = dataclass(type("Leg", (), {"__annotations__": {"x": int}}))
    both = dataclass(type("Both", (), {"__annotations__": {"a": Leg, "b": other}}))

    with pytest.raises(SchemaError, match="two types have the name Leg"):
        schema_of(both)


def test_serializers_take_classes(client):
    """A class stands for a schema, in serializers and deserializers of Avro and JSON, also while schemas evolve."""
    for serializer, deserializer in ((AvroSerializer, AvroDeserializer), (JsonSerializer, JsonDeserializer)):
        topic = f"flights-{serializer.format}"
        frame = serializer(client, Flight)(FLIGHT, topic=topic)

        assert FLIGHT == deserializer(client, Flight)(frame, topic=topic)
        assert Short(7, Carrier.AA) == deserializer(client, Short)(frame, topic=topic)
        assert FLIGHT == pickle.loads(pickle.dumps(deserializer(client, Flight)))(frame, topic=topic)
    drawing = Drawing(Square(2.0))
    frame = AvroSerializer(client, Drawing)(drawing, topic="drawings")
    assert drawing == AvroDeserializer(client, Drawing)(frame)
    with pytest.raises(EncodeError, match=r"expected Flight, got dict: 'dict' object has no attribute 'id'"):
        AvroSerializer(client, Flight)({"id": 7}, topic="flights")


@dataclass
class Counted:
    """Counts its objects."""

    made: ClassVar[int] = 0
    id: int

    def __post_init__(self):
        Counted.made += 1


@dataclass
class OwnInit:
    """Is made as its author says."""

    id: int
    made: ClassVar[int] = 0

    def __init__(self, id: int):  # noqa: A002 - the name of the field
        self.id = id
        OwnInit.made += 1


@dataclass
class OwnSetting:
    """Counts what is assigned."""

    made: ClassVar[int] = 0
    id: int

    def __setattr__(self, name, value):
        OwnSetting.made += 1
        super().__setattr__(name, value)


@dataclass
class OwnNew:
    """Counts what is allocated."""

    made: ClassVar[int] = 0
    id: int

    def __new__(cls, *_arguments, **_more):  # noqa: D102 - the subject of the test
        OwnNew.made += 1
        return super().__new__(cls)


class Below(Short):
    """Is a dataclass's subclass with an `__init__` of its own."""

    made: ClassVar[int] = 0

    def __init__(self, id: int, carrier: Carrier):  # noqa: A002 - the name of the field
        super().__init__(id, carrier)
        Below.made += 1


OWN = {one.__name__: one for one in (Counted, OwnInit, OwnSetting, OwnNew, Below)}


@pytest.mark.parametrize("schema_format", ["AVRO", "JSON"])
@pytest.mark.parametrize("cls", OWN.values(), ids=OWN)
def test_a_class_is_made_as_it_says(cls, schema_format):
    """What a class does when an object is made is done when one is read."""
    value = cls(7, Carrier.AA) if cls is Below else cls(7)
    before = cls.made

    assert value == round_trip(cls, value, schema_format=schema_format)
    assert before < cls.made


@dataclass(frozen=True)
class Frozen:
    """Cannot be assigned."""

    id: int
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    """Has no `__dict__`."""

    id: int
    note: str | None = None


@dataclass(kw_only=True)
class Named:
    """Takes names only."""

    id: int
    note: str = "none"


PLAIN = {
    "frozen": (Frozen, False),
    "with slots": (Slotted, True),
    "with names only": (Named, False),
    "with a default": (Leg, True),
}


@pytest.mark.parametrize("schema_format", ["AVRO", "JSON"])
@pytest.mark.parametrize(("cls", "is_made"), PLAIN.values(), ids=PLAIN)
def test_dataclasses_that_only_assign(cls, is_made, schema_format):
    """The fields of a plain dataclass are assigned without its `__init__`; fields that JSON lacks get their default."""
    value = cls("JFK") if cls is Leg else cls(id=7)
    one = bound(cls, schema_format)

    assert is_made == is_assigned(shape_of(cls))
    assert value == round_trip(cls, value, schema_format=schema_format)
    if schema_format == "JSON":
        assert value == one.lift({key: inner for key, inner in one.lower(value).items() if key in ("id", "origin")})
