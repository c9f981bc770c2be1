"""What exporters leave alone at a destination, and contexts that become one."""

import json

import pytest

from harness.waiting import until
from strata.registry.features.exporters.choice import Choice
from strata.registry.features.exporters.plan import since
from strata.storage.log import Entry
from strata.storage.record_json import encode
from strata.storage.records import SchemaKey, Subject, Version

FAST = {"exporter_seconds": 0.02}
ITEM = {"type": "record", "name": "Item", "fields": []}
BASKET = {"type": "record", "name": "Basket", "fields": [{"name": "i", "type": "Item"}]}


@pytest.fixture
def source(serve):
    """Return a registry whose exporters look at the log often."""
    return serve("memory:", **FAST)


@pytest.fixture
def target(serve):
    """Return a destination."""
    return serve("memory:")


def create(registry, destination, **more):
    """Create an exporter."""
    body = {"name": "e", "contextType": "NONE", "config": {"schema.registry.url": destination.url}, **more}
    assert {"name": "e"} == registry.call("POST", "/exporters", body)


def status(registry):
    """Return the status of the exporter."""
    return registry.call("GET", "/exporters/e/status")


def test_what_is_deleted_here_and_not_exported_stays_there():
    """Of what was deleted for good while an exporter rested, only what it copies is deleted at the destination."""
    keys = [SchemaKey(Subject(name), Version(1)) for name in ("a", "b", "c")]
    entries = [Entry(offset, 0, encode(key).key, None) for offset, key in enumerate(keys)]

    found = since(entries, Choice(("a*",), subject_format="x-${subject}"), {Subject("x-c")})

    assert {("x-a", 1), ("x-c", 1)} == found.gone


def test_contexts_become_the_default_context(source, target):
    """The type DEFAULT, of Confluent's command line, puts every subject into the default context, under its own id."""
    source.register("other", '"bytes"')
    source.register(":.staging:item", json.dumps(ITEM))
    references = [{"name": "Item", "subject": "item", "version": 1}]
    basket = source.register(":.staging:basket", json.dumps(BASKET), references=references)
    create(source, target, contextType="DEFAULT", subjects=[":.staging:*"], subjectRenameFormat="s_${subject}")
    until(lambda: target.subjects() == ["s_basket", "s_item"])
    found = target.call("GET", "/subjects/s_basket/versions/1")

    assert (basket, [{**references[0], "subject": "s_item"}]) == (found["id"], found["references"])
    assert "." == source.call("GET", "/exporters/e")["context"]

    source.call("DELETE", "/subjects/:.staging:basket")
    source.call("DELETE", "/subjects/:.staging:basket?permanent=true")
    until(lambda: target.subjects() == ["s_item"])


def test_two_subjects_that_would_become_one(source, target):
    """Nothing is copied, and the trace names both, if contexts hold the same name."""
    source.register("orders", '"int"')
    source.register(":.staging:orders", '"long"')
    create(source, target, contextType="DEFAULT", subjects=[":*:"])
    until(lambda: "would both be 'orders'" in status(source)["trace"])

    assert [] == target.subjects()
