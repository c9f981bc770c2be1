"""The search finds the latest versions by the words of names, fields, documentation, tags and metadata."""

import json
import time
from itertools import count
from types import SimpleNamespace

import pytest

from strata.registry.features.search import index
from strata.registry.features.search.index import SearchIndex
from strata.storage.log import Entry
from strata.storage.record_json import encode
from strata.storage.records import SchemaId, SchemaKey, SchemaValue, Subject, Version
from strata.storage.state import State

ORDER = json.dumps(
    {
        "type": "record",
        "name": "PurchaseOrder",
        "namespace": "shop.v1",
        "doc": "What a customer buys.",
        "fields": [
            {"name": "orderId", "type": "long", "confluent:tags": ["INTERNAL"]},
            {"name": "email", "type": "string", "doc": "Where the receipt goes", "confluent:tags": ["PII"]},
            {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
                {"name": "unit_price", "type": "double"}]}}},
            {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED"]}},
        ],
    }
)  # fmt: skip
PERSON = json.dumps(
    {
        "title": "A person",
        "type": "object",
        "properties": {"address": {"$ref": "#/$defs/Home"}, "bornOn": {"description": "day of birth"}},
        "$defs": {"Home": {"type": "object", "properties": {"zipCode": {"confluent:tags": ["PII"]}}}},
    }
)
EVENT = """syntax = "proto3";
package tracking;
message PageView { string visitor_id = 1 [(confluent.field_meta).tags = "PII"]; Device device = 2; }
enum Device { UNKNOWN = 0; PHONE = 1; }
"""


class Registry:
    """A State that grows."""

    def __init__(self):
        self.state, self.index, self._ids = State(), SearchIndex(), count(1)

    def put(self, subject, text, version=1, schema_type="AVRO", **more):
        """Store a version."""
        value = SchemaValue(Subject(subject), Version(version), SchemaId(next(self._ids)), text, schema_type, **more)
        self.write(SchemaKey(value.subject, value.version), value)

    def write(self, key, value):
        """Append a record."""
        record = encode(key, value)
        self.state = self.state.apply(Entry(self.state.offset + 1, 0, record.key, record.value))

    def find(self, query, **options):
        """Return the subjects that a query finds."""
        found = self.index.find(self.state, query, options.pop("visible", lambda _: True), **options)
        assert found.complete
        return [hit.entry.subject for hit in found.hits]


@pytest.fixture
def registry():
    """Return a registry of three schemas."""
    made = Registry()
    made.put("orders-value", ORDER, metadata={"properties": {"owner": "team-red"}, "tags": {"a.b": ["SECRET"]}})
    made.put("people-value", PERSON, schema_type="JSON")
    made.put("views-value", EVENT, schema_type="PROTOBUF")
    return made


QUERIES = [
    # query, the subjects that it finds
    ("orders", "orders-value"),
    ("name:purchase", "orders-value"),
    ("order", "orders-value"),
    ("VALUE", "orders-value people-value views-value"),
    ("unit_price", "orders-value"),
    ("price", "orders-value"),
    ("field:email", "orders-value"),
    ("field:receipt", ""),
    ("doc:receipt", "orders-value"),
    ("receipt customer", "orders-value"),
    ("receipt person", ""),
    ("tag:PII", "orders-value people-value views-value"),
    ("tag:PII field:zip", "people-value"),
    ("tag:secret", "orders-value"),
    ("meta:owner meta:red", "orders-value"),
    ("birth", "people-value"),
    ("field:born", "people-value"),
    ("name:home", "people-value"),
    ("visitorid", ""),
    ("visitor_id", "views-value"),
    ("name:pageview", "views-value"),
    ("field:red", "orders-value"),
    ("", ""),
    (": - !", ""),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_what_a_query_finds(registry, query, expected):
    """A schema is found by all words together, each the beginning of one of its own."""
    assert expected.split() == registry.find(query)


def test_hits_say_where(registry):
    """A hit names the places that fit, with their paths."""
    (hit,) = registry.index.find(registry.state, "email", lambda _: True).hits

    assert [("field", "PurchaseOrder.email", "email")] == [tuple(one) for one in hit.matches]


def test_names_come_first(registry):
    """Subjects with the words in their names come before those with them elsewhere."""
    registry.put("a-note", ORDER.replace("customer", "people"))

    assert ["people-value", "a-note"] == registry.find("people")


def test_the_index_follows_the_state(registry):
    """New, changed, deleted and removed subjects are found as they are now."""
    assert [] == registry.find("fresh")
    registry.put("fresh-value", ORDER)
    registry.put("orders-value", '"string"', version=2)
    assert ["fresh-value"] == registry.find("fresh")
    assert ["fresh-value"] == registry.find("email")
    registry.put("fresh-value", ORDER, deleted=True)
    assert [] == registry.find("fresh")
    registry.write(SchemaKey(Subject("people-value"), Version(1)), None)
    assert [] == registry.find("birth")


def test_pages_and_rights(registry):
    """Hits come in pages, and only of what may be seen."""
    found = registry.index.find(registry.state, "value", lambda _: True, offset=1, limit=1)
    assert (["people-value"], True) == ([hit.entry.subject for hit in found.hits], found.more)
    assert ["views-value"] == registry.find("value", visible=lambda name: name.startswith("v"))


@pytest.mark.parametrize(
    "text", ["{", "[" * 5000, "1", '{"name": 1, "fields": {"name": []}}', '{"properties": []}', "\x00"]
)
@pytest.mark.parametrize("schema_type", ["AVRO", "JSON", "PROTOBUF", "OTHER"])
def test_a_text_that_cannot_be_read_is_found_by_its_name(text, schema_type):
    """Whatever is stored, the search goes on."""
    registry = Registry()
    registry.put("odd", text, schema_type=schema_type)

    assert ["odd"] == registry.find("odd")


def test_many_words_are_bounded():
    """A schema with more words than are kept is found by its first ones and named; the rest is searched completely."""
    registry = Registry()
    fields = [{"name": f"field{number}", "type": "int"} for number in range(5_000)]
    registry.put("large", json.dumps({"type": "record", "name": "R", "fields": fields}))
    registry.put("small", ORDER)

    def found(query, visible=lambda _: True):
        answer = registry.index.find(registry.state, query, visible)
        return [hit.entry.subject for hit in answer.hits], answer.complete, answer.partial

    assert (["large"], True, ("large",)) == found("large")
    assert (["large"], True, ("large",)) == found("field17")
    assert ([], True, ("large",)) == found("field4999")
    assert (["small"], True, ("large",)) == found("email")
    assert (["small"], True, ()) == found("email", visible=lambda name: name == "small")
    registry.put("large", ORDER, version=2)
    assert (["large", "small"], True, ()) == found("email")


@pytest.mark.parametrize("gone", ["deleted", "removed"])
def test_a_large_schema_that_is_gone_is_not_named(gone):
    """Only subjects with a live version are named as searched in part."""
    registry = Registry()
    large = json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "int"} for n in range(5_000)]}
    )
    registry.put("large", large)
    assert ("large",) == registry.index.find(registry.state, "x", lambda _: True).partial
    if gone == "deleted":
        registry.put("large", large, deleted=True)
    else:
        registry.write(SchemaKey(Subject("large"), Version(1)), None)

    assert () == registry.index.find(registry.state, "x", lambda _: True).partial


def test_a_full_index_is_not_complete(monkeypatch):
    """Beyond the bound of the whole index, subjects are found by their names only, and no search is complete."""
    monkeypatch.setattr(index, "_MOST_WORDS", 3)
    registry = Registry()
    for subject in ("first", "second"):
        registry.put(subject, ORDER)
    found = registry.index.find(registry.state, "second", lambda _: True)

    assert (1, False) == (len(found.hits), found.complete)


def test_the_index_rests_while_it_grows(monkeypatch):
    """It never works for long without a rest, in which other threads of the process run."""
    registry, rests = Registry(), []
    for number in range(20):
        registry.put(f"s{number}", ORDER)
    clock = SimpleNamespace(monotonic=count(0, index._SLICE_S * 1.5).__next__, sleep=rests.append)
    monkeypatch.setattr(index, "time", clock)
    registry.index._follow(registry.state)

    assert [index._PAUSE_S] * 20 == rests


def test_a_pause_of_the_machine_makes_no_search_incomplete(registry, monkeypatch):
    """A search waits for the index in short looks, so a pause that is longer than its patience changes nothing."""
    clock = SimpleNamespace(monotonic=count(0, 10).__next__, sleep=time.sleep)
    monkeypatch.setattr(index, "time", clock)

    assert ["orders-value"] == registry.find("email")


def test_the_route(api):
    """`GET /v1/search` answers with hits and their places."""
    _, version = api.placed("found-value", json.loads(ORDER.replace("email", "surprise")))
    status, answer = api.get("/v1/search?query=field:surprise")

    assert 200 == status
    assert (False, True, []) == (answer["more"], answer["complete"], answer["partial"])
    assert [("found-value", version, "AVRO")] == [
        (hit["subject"], hit["version"], hit["schemaType"]) for hit in answer["hits"]
    ]
    assert [{"kind": "field", "path": "PurchaseOrder.surprise", "text": "surprise"}] == answer["hits"][0]["matches"]
    assert [] == api.get("/v1/search")[1]["hits"]
