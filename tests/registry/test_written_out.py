"""Look-up and registration over HTTP of schemas with their references written out, in every format."""

import json

import pytest

AVRO_INNER = '{"type":"record","name":"Inner","namespace":"n","fields":[]}'
AVRO = (
    '{"type":"record","name":"Outer","namespace":"n","fields":'
    '[{"name":"i","type":"Inner"},{"name":"j","type":"Inner"}]}'
)
AVRO_WRITTEN = AVRO.replace('"Inner"', '{"type":"record","name":"Inner","fields":[]}', 1)

JSON_INNER = (
    '{"definitions":{"n":{"type":"string","maxLength":3}},'
    '"type":"object","properties":{"name":{"$ref":"#/definitions/n"}}}'
)
JSON = '{"properties":{"i":{"$ref":"inner"},"n":{"$ref":"inner#/definitions/n"}},"required":["i","n"]}'
JSON_NAME = {"type": "string", "maxLength": 3}
JSON_WHOLE = {"definitions": {"n": JSON_NAME}, "type": "object", "properties": {"name": JSON_NAME}}
JSON_WRITTEN = json.dumps({"required": ["i", "n"], "properties": {"i": JSON_WHOLE, "n": JSON_NAME}})

PROTO_INNER = 'syntax="proto3"; package p; message Inner { Kind k = 1; message Deep {} } enum Kind { Z = 0; }'
PROTO = 'syntax="proto3"; package p; import "inner"; message Outer { Inner i = 1; Inner.Deep d = 2; } message Other {}'
PROTO_OWN = 'syntax="proto3"; package p; message Outer { Inner i = 1; .p.Inner.Deep d = 2; } message Other {}'
PROTO_WRITTEN = PROTO_OWN + "message Inner { Kind k = 1; message Deep {} } enum Kind { Z = 0; }"

ROWS = [
    pytest.param("AVRO", "n.Inner", AVRO_INNER, AVRO, AVRO_WRITTEN, id="Avro"),
    pytest.param("JSON", "inner", JSON_INNER, JSON, JSON_WRITTEN, id="JSON Schema"),
    pytest.param("PROTOBUF", "inner", PROTO_INNER, PROTO, PROTO_WRITTEN, id="Protobuf"),
]


def _body(schema_type, text, *references):
    return {"schema": text, "schemaType": schema_type, "references": list(references)}


def _changed(inner):
    """Return the referenced schema with a change, in each of the formats."""
    return inner.replace('"fields":[]', '"fields":[],"doc":"x"').replace("maxLength", "minLength").replace("k =", "l =")


def _to(name, version=1):
    return {"name": name, "subject": "inner", "version": version}


@pytest.mark.parametrize(("schema_type", "name", "inner", "text", "written"), ROWS)
def test_written_out_finds_what_refers(api, schema_type, name, inner, text, written):
    """Look-ups and registrations of written-out text find the version with references, and return the stored one."""
    api.placed("inner", inner, schemaType=schema_type)
    stored = api.placed("s", **{"schema": text, **_body(schema_type, text, _to(name))})

    status, found = api.post("/subjects/s", _body(schema_type, written))

    assert (200, *stored) == (status, found["id"], found["version"])
    assert [_to(name)] == found["references"]
    assert stored == api.placed("s", written, schemaType=schema_type)


@pytest.mark.parametrize(("schema_type", "name", "inner", "text", "written"), ROWS)
def test_what_refers_does_not_find_written_out(api, schema_type, name, inner, text, written):
    """A request with references finds only a version with the same references."""
    api.placed("inner", inner, schemaType=schema_type)
    api.placed("s", written, schemaType=schema_type)

    assert 40403 == api.post("/subjects/s", _body(schema_type, text, _to(name)))[1]["error_code"]


@pytest.mark.parametrize(("schema_type", "name", "inner", "text", "written"), ROWS)
def test_latest_stands_for_its_number(api, schema_type, name, inner, text, written):
    """A reference to -1 finds the version that refers to the current latest version, and no older one."""
    api.put("/config", {"compatibility": "NONE"})
    api.placed("inner", inner, schemaType=schema_type)
    stored = api.placed("s", **{"schema": text, **_body(schema_type, text, _to(name, -1))})
    asked = _body(schema_type, text, _to(name, -1))

    assert stored[0] == api.post("/subjects/s", asked)[1]["id"]
    api.placed("inner", _changed(inner), schemaType=schema_type)
    assert (404, 40403) == (lambda status, answer: (status, answer.get("error_code")))(*api.post("/subjects/s", asked))


AVRO_OTHER = AVRO_WRITTEN.replace("[]", '[{"name":"x","type":"int"}]')
PROTO_FIRST = PROTO_OWN.replace("message Outer", "message Inner { Kind k = 1; message Deep {} } message Outer")
OTHERWISE = [
    pytest.param("AVRO", "n.Inner", AVRO_INNER, AVRO, AVRO_OTHER, id="Avro"),
    pytest.param("JSON", "inner", JSON_INNER, JSON, JSON_WRITTEN.replace("3", "4", 1), id="JSON Schema"),
    pytest.param("JSON", "inner", JSON_INNER, '{"const":{"$ref":"inner"}}', f'{{"const":{JSON_INNER}}}', id="a value"),
    pytest.param("PROTOBUF", "inner", PROTO_INNER, PROTO, PROTO_WRITTEN.replace("Z =", "Y ="), id="Protobuf"),
    pytest.param(
        "PROTOBUF",
        "inner",
        PROTO_INNER,
        PROTO,
        PROTO_FIRST + "enum Kind { Z = 0; }",
        id="Protobuf, with the reference's message first",
    ),
]


@pytest.mark.parametrize(("schema_type", "name", "inner", "text", "written"), OTHERWISE)
def test_written_out_otherwise_is_another_schema(api, schema_type, name, inner, text, written):
    """Written-out text must equal the reference, and must not change the indexes of messages."""
    api.placed("inner", inner, schemaType=schema_type)
    api.placed("s", **{"schema": text, **_body(schema_type, text, _to(name))})

    assert 40403 == api.post("/subjects/s", _body(schema_type, written))[1]["error_code"]
