"""Tags inside schema texts: find, add, remove, copy to the next version; and data contracts of a real client."""

import json

import pytest
from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaRegistryClient,
    ServerConfig,
)

from strata.compat.formats import FORMATS
from strata.compat.json_schema.tags import entities
from strata.compat.limits import Limits
from strata.compat.schema import SchemaFormat, SchemaParseError
from strata.compat.tags import Entity, EntityType, retagged, tags_of

VERSION = "confluent:version"
RECORD = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":"int"},{"name":"g","type":"int"}]}'


def code(answer):
    """Return the error code of an answer."""
    return answer[1]["error_code"]


def tagged(path, kind, *tags):
    """Return the tags of an entity in their wire format."""
    return {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(tags)}


INNER = {"type": "record", "name": "c.In", "fields": [{"name": "x", "type": "int"}]}
ITEM = {"type": "record", "name": "Item", "fields": [{"name": "y", "type": "R"}]}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "R",
        "namespace": "a.b",
        "fields": [
            {"name": "u", "type": ["null", INNER]},
            {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": ITEM}}},
        ],
    }
)
JSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
            "all": {"allOf": [{"type": "string"}, {"properties": {"y": {}}}]},
            "not": {"not": {"type": "object", "properties": {"z": {"enum": [1]}}}},
            "ref": {"$ref": "#/definitions/d"},
            "self": {"$ref": "#"},
        },
        "definitions": {"d": {"type": ["null", "object"], "properties": {"w": {"type": "integer"}}}},
    }
)
CONDITION = '{"type":"object","properties":{"a":{}},"if":{"properties":{"a":{"const":1}}},"then":{"type":"object"}}'
PROTO = """syntax = "proto3";
package p;
message M {
  int32 a = 1;
  oneof o { string b = 2; }
  map<string, In> c = 3;
  message In { int32 d = 1 [(confluent.field_meta) = { doc: "kept" }]; }
}"""

RECORDS = [
    *(pytest.param("AVRO", AVRO, path, "sr_record", id=f"Avro {path}") for path in ("a.b.R", "c.In", "a.b.Item")),
    *(pytest.param("AVRO", AVRO, path, "sr_field", id=f"Avro {path}") for path in ("a.b.R.u", "c.In.x", "a.b.Item.y")),
    *(
        pytest.param("JSON", JSON, path, "sr_record", id=f"JSON {path}")
        for path in ("object", "object.list.array.object", "object.all.allof.1.object", "object.not.not.object",
                     "object.ref.anyof.1.object")
    ),
    *(
        pytest.param("JSON", JSON, path, "sr_field", id=f"JSON {path}")
        for path in ("object.list", "object.list.array.object.x", "object.all.allof.1.object.y",
                     "object.not.not.object.z", "object.ref.anyof.1.object.w", "object.self")
    ),
    *(
        pytest.param("JSON", CONDITION, path, "sr_record", id=f"JSON {path}")
        for path in ("allof.0.conditional.if.object", "allof.0.conditional.then.object", "allof.1.object")
    ),
    *(pytest.param("PROTOBUF", PROTO, path, "sr_record", id=f"Protobuf {path}") for path in ("M", "M.In")),
    *(
        pytest.param("PROTOBUF", PROTO, path, "sr_field", id=f"Protobuf {path}")
        for path in ("M.a", "M.b", "M.c", "M.In.d")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema_type", "text", "path", "kind"), RECORDS)
def test_every_record_and_field_can_be_tagged(schema_type, text, path, kind):
    """Added tags are found at their path, and removing them restores the text."""
    known = FORMATS[SchemaFormat(schema_type)]
    before, entity = known.parse(text, strict=True), Entity(path, EntityType(kind))
    after = known.parse(retagged(before, {entity: ("PII", "X", "PII")}, {entity: ("X",)}), strict=True)

    assert {} == tags_of(before)
    assert ["PII"] == tags_of(after)[entity]
    assert before.canonical == known.parse(retagged(after, {}, {entity: ("PII",)}), strict=True).canonical


def test_tags_of_protobuf_are_written_as_the_reference_writes_them():
    """A list of tags is in braces, one tag per line, and other metadata stays."""
    schema = FORMATS[SchemaFormat.PROTOBUF].parse(PROTO, strict=True)
    text = retagged(
        schema, {Entity("M.a", EntityType.FIELD): ("A", "B"), Entity("M.In.d", EntityType.FIELD): ("C",)}, {}
    )

    assert '  int32 a = 1 [(confluent.field_meta) = {\n    tags: [\n      "A",\n      "B"\n    ]\n  }];' in text
    assert 'doc: "kept",' in text


def test_json_schema_with_too_many_paths():
    """References that multiply the paths through a document give an error instead of an endless search."""
    definitions = {f"d{i}": {"allOf": [{"$ref": f"#/definitions/d{i + 1}"}] * 2} for i in range(60)}
    text = json.dumps({"$ref": "#/definitions/d0", "definitions": {**definitions, "d60": {"type": "object"}}})

    with pytest.raises(SchemaParseError, match="more than 1000 paths"):
        list(entities(json.loads(text), Limits(fields=1000)))


def test_find_tags(api):
    """`findTags` returns the records and fields with one of the tags, or with any for `*`; without it, none."""
    f, r = tagged("n.R.f", "sr_field", "PII", "X"), tagged("n.R", "sr_record", "Y")
    api.register("s", RECORD, schemaTagsToAdd=[f, r])

    for path in ("/subjects/s/versions/1", "/schemas/ids/1"):
        assert "schemaTags" not in api.get(path)[1]
        assert [f] == api.get(f"{path}?findTags=X&findTags=Z")[1]["schemaTags"]
        assert sorted([f, r], key=str) == sorted(api.get(f"{path}?findTags=*")[1]["schemaTags"], key=str)
        assert "schemaTags" not in api.get(f"{path}?findTags=Z")[1]


def test_registration_changes_tags(api):
    """Adding and removing tags changes the text and records the version; a repeated request changes nothing."""
    api.placed("s", RECORD)
    change = {"schemaTagsToAdd": [tagged(".n.R.f", "sr_field", "PII"), tagged("n.R.f", "sr_field", "X")]}
    place = api.placed("s", RECORD, **change)
    answer = api.get("/subjects/s/versions/2")[1]

    assert '{"name":"f","type":"int","confluent:tags":["PII","X"]}' in answer["schema"]
    assert "2" == answer["metadata"]["properties"][VERSION]
    assert (2, 2) == place == api.placed("s", RECORD, **change)
    removed = api.register("s", answer["schema"], schemaTagsToRemove=[tagged("n.R.f", "sr_field", "PII", "X")])[1]
    assert RECORD == removed["schema"]


def test_tags_are_passed_on(api):
    """`propagateSchemaTags` copies the latest version's tags to the new text, where its fields still exist."""
    api.register("s", RECORD, schemaTagsToAdd=[tagged("n.R.f", "sr_field", "A"), tagged("n.R.g", "sr_field", "B")])
    less = RECORD.replace(',{"name":"g","type":"int"}', "")
    answer = api.register("s", less, propagateSchemaTags=True)[1]

    assert [tagged("n.R.f", "sr_field", "A")] == api.get("/subjects/s/versions/2?findTags=*")[1]["schemaTags"]
    assert 2 == answer["version"]


def test_tags_route_makes_a_version(api):
    """`POST …/tags` makes a new version with changed tags, the same or other metadata, and merged rules."""
    rules = {"domainRules": [{"name": name, "type": "T"} for name in ("a", "b", "c")]}
    api.placed("s", RECORD, metadata={"properties": {"owner": "me"}}, ruleSet=rules)
    path, add = "/subjects/s/versions/latest/tags", [tagged("n.R", "sr_record", "T1", "T2")]
    first = api.post(path, {"tagsToAdd": add})[1]
    merged = {"rulesToMerge": {"domainRules": [{"name": "b", "type": "U"}]}, "rulesToRemove": ["a"]}
    second = api.post(path, {"newVersion": 3, "tagsToRemove": [tagged("n.R", "sr_record", "T2")], **merged})[1]
    third = api.post("/subjects/s/versions/1/tags", {"ruleSet": {}, "metadata": {}})[1]

    assert first["schema"].endswith('"confluent:tags":["T1","T2"]}')
    assert {"owner": "me", VERSION: "2"} == first["metadata"]["properties"]
    assert rules["domainRules"][0]["name"] == first["ruleSet"]["domainRules"][0]["name"]
    assert second["schema"].endswith('"confluent:tags":["T1"]}')
    assert [("c", "T"), ("b", "U")] == [(rule["name"], rule["type"]) for rule in second["ruleSet"]["domainRules"]]
    assert (RECORD, {"properties": {VERSION: "4"}}) == (third["schema"], third["metadata"])
    assert "ruleSet" not in third


REFUSED = [
    pytest.param("s/versions/1/tags", {"tagsToAdd": [tagged("n.R.x", "sr_field", "T")]}, 42201, id="no such field"),
    pytest.param("s/versions/1/tags", {"tagsToAdd": [tagged("n.R", "sr_field", "T")]}, 42201, id="a record, no field"),
    pytest.param("s/versions/1/tags", {"tagsToAdd": [tagged("n.R", "sr_table", "T")]}, 400, id="no such kind"),
    pytest.param("s/versions/1/tags", {"newVersion": 1}, 42201, id="a version that stands"),
    pytest.param("s/versions/1/tags", {"newVersion": 3}, 42201, id="a version too far"),
    pytest.param("s/versions/2/tags", {}, 40402, id="no such version"),
    pytest.param("t/versions/1/tags", {}, 40401, id="no such subject"),
    pytest.param("s/versions/x/tags", {}, 42202, id="no version"),
    pytest.param("s/versions/1/tags", {"rulesToMerge": {"domainRules": [{"name": "a"}]}}, 42210, id="a bad rule"),
]


@pytest.mark.parametrize(("path", "body", "error_code"), REFUSED)
def test_bad_changes_of_tags_are_refused(shared_log, path, body, error_code):
    """The registry refuses invalid tags and versions, and writes nothing."""
    log, api = shared_log
    api.placed("s", RECORD)
    end = log.end()

    assert error_code == code(api.post(f"/subjects/{path}", body))
    assert end == log.end()


@pytest.fixture
def client(api):
    """Yield Confluent's Python client."""
    with SchemaRegistryClient({"url": f"http://127.0.0.1:{api.port}"}) as client:
        yield client


def test_confluent_client_round_trip(client):
    """The client's own objects survive a round trip: metadata, rules, and both in a configuration."""
    params = RuleParams({"p": "1"})
    rule = Rule("r", "a doc", RuleKind.CONDITION, RuleMode.WRITE, "CEL", ["PII"], params, "true", "NONE", "DLQ", True)
    rules = RuleSet([], [rule], [])
    metadata = Metadata(None, MetadataProperties({"owner": "me"}), ["owner"])
    schema_id = client.register_schema("s", Schema(RECORD, metadata=metadata, rule_set=rules))
    stored = client.get_schema(schema_id, "s")
    latest = client.get_latest_with_metadata("s", {"owner": "me"})

    assert (metadata, rules) == (stored.metadata, stored.rule_set)
    assert (1, 1) == (latest.version, client.lookup_schema("s", Schema(RECORD)).version)
    tags = Metadata(MetadataTags({"**.f": ["PII"]}), None, [])
    client.set_config("s", ServerConfig(compatibility_group="major", default_metadata=tags, override_rule_set=rules))
    config = client.get_config("s")
    assert ("major", tags, rules) == (config.compatibility_group, config.default_metadata, config.override_rule_set)
