"""JsonSerializer and JsonDeserializer work against the real registry."""

import json
import pickle
from dataclasses import dataclass

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.errors import DecodeError, EncodeError, RegistryError, SchemaError
from strata.serdes.framing import join, split
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer

SCHEMA = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
)
VALUE = {"id": 7, "lines": [{"sku": "é"}]}


@dataclass
class LineData:
    """A line."""

    sku: str


@dataclass
class OrderData:
    """An order."""

    id: int
    lines: list[LineData]


@attrs.define
class LineAttrs:
    """A line."""

    sku: str


@attrs.define
class OrderAttrs:
    """An order."""

    id: int
    lines: list[LineAttrs]


class LineModel(pydantic.BaseModel):
    """A line."""

    sku: str


class OrderModel(pydantic.BaseModel):
    """An order."""

    number: int = pydantic.Field(alias="id")
    lines: list[LineModel]


class LineStruct(msgspec.Struct):
    """A line."""

    sku: str
    note: str | msgspec.UnsetType = msgspec.UNSET


class OrderStruct(msgspec.Struct, rename={"number": "id"}):
    """An order."""

    number: int
    lines: list[LineStruct]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(VALUE, id="dict"),
        pytest.param(OrderData(7, [LineData("é")]), id="dataclass"),
        pytest.param(OrderAttrs(7, [LineAttrs("é")]), id="attrs"),
        pytest.param(OrderModel(id=7, lines=[LineModel(sku="é")]), id="pydantic"),
        pytest.param(OrderStruct(7, [LineStruct("é")]), id="msgspec"),
    ],
)
def test_values_of_many_kinds(client, value):
    """Values of each kind are written as the same text, and read as plain values."""
    frame = JsonSerializer(client, SCHEMA)(value, topic="json-kinds")

    assert '{"id":7,"lines":[{"sku":"é"}]}'.encode() == split(frame)[1]
    assert VALUE == JsonDeserializer(client)(frame)


def test_objects_of_yours(client):
    """A function makes objects of decoded values."""
    frame = JsonSerializer(client, SCHEMA)(VALUE, topic="json-objects")

    made = JsonDeserializer(client, from_dict=lambda value, _: OrderModel.model_validate(value))(frame)

    assert OrderModel(id=7, lines=[LineModel(sku="é")]) == made


@pytest.mark.parametrize(
    ("value", "path", "rule"),
    [
        pytest.param({"id": "7"}, "id", "properties/id/type", id="a wrong type"),
        pytest.param({}, "id", "required", id="nothing"),
        pytest.param({"id": 1, "lines": [{}, {"sku": 5}]}, "lines[1].sku", "type", id="deep inside"),
        pytest.param({"id": 1, "more": "secret"}, "more", "additionalProperties", id="too much"),
    ],
)
def test_values_that_the_schema_does_not_allow(client, value, path, rule):
    """In both directions the error names the place and the rule, and never the value."""
    with pytest.raises(EncodeError, match=rule) as unsent:
        JsonSerializer(client, SCHEMA)(value, topic="json-bad")
    loose = JsonSerializer(client, SCHEMA, conf={"validate": False})(value, topic="json-bad")
    with pytest.raises(DecodeError, match=rule) as unread:
        JsonDeserializer(client)(loose)

    assert [path, path] == [unsent.value.path, unread.value.path]
    assert "secret" not in f"{unsent.value}{unread.value}"
    assert value == JsonDeserializer(client, conf={"validate": False})(loose)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(b"", "malformed", id="nothing"),
        pytest.param(b"{", "malformed", id="cut off"),
        pytest.param(b"NaN", "malformed", id="no number of JSON"),
        pytest.param(b'{"d": -1e400}', "out of range", id="beyond doubles"),
        pytest.param(b'"\xff"', "malformed", id="no UTF-8"),
        pytest.param(b"[" * 200_000 + b"]" * 200_000, "malformed", id="nested without end"),
    ],
)
def test_hostile_payloads(client, payload, reason):
    """A hostile payload is an error with a reason and the schema's id."""
    found = client.register("json-hostile", Schema("{}", "JSON")).schema_id
    with pytest.raises(DecodeError) as caught:
        JsonDeserializer(client)(join(found, payload))

    assert (reason, found) == (caught.value.reason, caught.value.schema_id)


@pytest.mark.parametrize("depth", [255, 256, 1000])
def test_deep_values_that_the_schema_does_not_allow(client, depth):
    """A wrong value is refused at any depth, also beyond the 255 levels that the validator can put into an error."""
    found = client.register("json-depth", Schema(json.dumps({"type": "object"}), "JSON")).schema_id

    with pytest.raises(DecodeError, match=r"expected an object|the schema does not allow the value") as caught:
        JsonDeserializer(client)(join(found, b"[" * depth + b"]" * depth))

    assert ("invalid value", found) == (caught.value.reason, caught.value.schema_id)


def test_long_integers_are_kept(client):
    """A long integer is read exactly, not as a float; the serializer refuses integers of more than 64 bits."""
    found = client.register("json-long", Schema("{}", "JSON")).schema_id

    assert 2**80 == JsonDeserializer(client)(join(found, str(2**80).encode()))
    with pytest.raises(EncodeError, match="at most 64 bits, got one of 81 bits"):
        JsonSerializer(client, "{}")(2**80, topic="json-long")


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {1}}, "\ud800"])
def test_values_that_are_no_json(client, value):
    """Values that are not JSON are refused before anything is sent to a topic."""
    with pytest.raises(EncodeError):
        JsonSerializer(client, "{}")(value, topic="json-none")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


def test_any_value_makes_the_round_trip(client):
    """Any value that a schema without constraints accepts makes the round trip."""
    serialize, deserialize = JsonSerializer(client, "{}"), JsonDeserializer(client)

    @settings(max_examples=examples(100), deadline=None)
    @given(JSON_VALUES.filter(lambda value: value is not None))
    def law(value):
        assert value == deserialize(serialize(value, topic="json-any"))

    law()


def test_any_bytes_give_a_value_or_an_error(client):
    """Any bytes give a value or a DecodeError."""
    deserialize = JsonDeserializer(client)
    found = client.register("json-bytes", Schema('{"type": ["array", "integer"]}', "JSON")).schema_id

    @settings(max_examples=examples(100), deadline=None)
    @given(st.binary(max_size=30) | st.text('[]1,{}"', max_size=30).map(str.encode))
    def law(data):
        try:
            value = deserialize(join(found, data))
        except DecodeError:
            return
        assert isinstance(value, list | int)

    law()


def test_an_unknown_dialect_is_draft_7(client):
    """An unknown dialect is read as draft 7, as in the registry; nothing is looked up under its name."""
    text = '{"$schema": "http://127.0.0.1:1/mine", "type": "integer"}'

    assert 5 == JsonDeserializer(client)(JsonSerializer(client, text)(5, topic="json-dialect"))
    with pytest.raises(EncodeError):
        JsonSerializer(client, text)("5", topic="json-dialect")


def test_nothing_is_fetched(client):
    """A `$ref` that no reference resolves is an error, and nothing is fetched."""
    for ref in ("http://127.0.0.1:1/x.json", "file:///etc/passwd", "other.json"):
        text = json.dumps({"$ref": ref})
        with pytest.raises(SchemaError, match="cannot be used"):
            JsonDeserializer(client, Schema(text, "JSON"))


def test_references_of_references(client):
    """References are found under their names, relative to the document that uses them."""
    leaf = client.register("json-leaf", Schema('{"type": "string"}', "JSON")).version
    middle = Schema(
        '{"$id": "http://shop.example/middle.json", "items": {"$ref": "leaf.json"}}',
        "JSON",
        (Reference("leaf.json", "json-leaf", leaf),),
    )
    version = client.register("json-middle", middle).version
    root = Schema(
        '{"properties": {"a": {"$ref": "middle.json"}}}', "JSON", (Reference("middle.json", "json-middle", version),)
    )
    serialize = JsonSerializer(client, root)

    assert {"a": ["x"]} == JsonDeserializer(client)(serialize({"a": ["x"]}, topic="json-deep"))
    with pytest.raises(EncodeError) as caught:
        serialize({"a": [5]}, topic="json-deep")
    assert "a[0]" == caught.value.path


def test_both_pickle(client):
    """Serializer and deserializer work in another process after pickling."""
    serialize, deserialize = pickle.loads(
        pickle.dumps((JsonSerializer(client, SCHEMA), JsonDeserializer(client, SCHEMA)))
    )

    assert VALUE == deserialize(serialize(VALUE, topic="json-pickle"))


def test_a_bad_schema_is_refused_when_made(client):
    """A bad schema is refused in the constructor, before the first record."""
    with pytest.raises(SchemaError):
        JsonSerializer(client, "{")
    with pytest.raises(SchemaError):
        JsonDeserializer(client, '{"type": 5}')


@pytest.mark.parametrize("guid", [False, True])
def test_unknown_schemas_are_asked_for_once(scripted_servers, answer, guid):
    """An unknown schema is requested once, by id and by GUID."""
    server = scripted_servers(answer(404, {"error_code": 40403, "message": "not found"}))
    frame = b"\x01" + bytes(16) if guid else join(5, b"")
    with RegistryClient(server.url) as client:
        for _ in range(3):
            with pytest.raises(RegistryError, match="not found"):
                JsonDeserializer(client)(frame)

    assert ["/schemas/guids/" + "00000000-0000-0000-0000-000000000000" if guid else "/schemas/ids/5"] == [
        one.path for one in server.requests
    ]


def tree(kind):
    """Return a schema of trees whose nodes are of several kinds, like many a syntax tree."""
    kinds = [
        {"properties": {"kind": {"const": name}, "left": {"$ref": "#/definitions/tree"}}, "required": ["kind"]}
        for name in ("node", "leaf", "other")
    ]
    return json.dumps({"$ref": "#/definitions/tree", "definitions": {"tree": {kind: kinds}}})


def deep(depth, kind):
    """Return a tree that is valid, or wrong at its end."""
    value = {"kind": kind}
    for _ in range(depth):
        value = {"kind": "node", "left": value}
    return value


def test_branches_that_are_not_recursive_are_explained(client):
    """However many branches a schema has, an error names the path that failed if no branch contains itself."""
    kinds = [{"$ref": f"#/definitions/k{n}"} for n in range(12)]
    leaf = {"minimum": 1}
    for name in "dcba":
        leaf = {"properties": {name: leaf}}
    definitions = {f"k{n}": {"properties": {"kind": {"const": f"k{n}"}}, "allOf": [leaf]} for n in range(12)}
    serialize = JsonSerializer(client, json.dumps({"oneOf": kinds, "definitions": definitions}))

    with pytest.raises(EncodeError, match=r"at least 1, got a smaller one .*a\.b\.c\.d"):
        serialize({"kind": "k7", "a": {"b": {"c": {"d": 0}}}}, topic="kinds")


@pytest.mark.parametrize("kind", ["oneOf", "anyOf"])
def test_what_is_wrong_deep_in_a_tree_is_told_soon(client, kind):
    """A deep error is reported soon: no payload makes the validator explain each branch at each level."""
    serialize, schema_id = (
        JsonSerializer(client, tree(kind)),
        client.register(f"tree-{kind}", Schema(tree(kind), "JSON")),
    )
    deserialize = JsonDeserializer(client)

    assert deep(100, "leaf") == deserialize(serialize(deep(100, "leaf"), topic=f"tree-{kind}"))
    for depth, says in (
        (2, f"in the nearest branch of {kind}"),
        (100, "does not allow the value; too many branches"),
    ):
        with pytest.raises(DecodeError, match=says):
            deserialize(join(schema_id.schema_id, json.dumps(deep(depth, "nothing")).encode()))
