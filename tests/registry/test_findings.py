"""Findings: a verdict has rule, path, field, previous and new value and advice as JSON, along with its messages."""

import json
from decimal import Decimal

import pytest

from strata.compat.result import Finding
from strata.registry.core.findings import finding_json, findings_json


def record(*fields):
    """Return an Avro record with some fields, each a name, a type and optionally a default."""
    named = [dict(zip(("name", "type", "default"), field, strict=False)) for field in fields]
    return json.dumps({"type": "record", "name": "R", "fields": named})


def enum(*symbols):
    """Return an Avro enum."""
    return {"type": "enum", "name": "E", "symbols": list(symbols)}


def fixed(size):
    """Return an Avro fixed type of some bytes."""
    return {"type": "fixed", "name": "F", "size": size}


def closed(**properties):
    """Return a JSON object that allows only these properties."""
    return json.dumps({"type": "object", "properties": properties, "additionalProperties": False})


def wanting(*required):
    """Return a JSON object that requires some of its properties."""
    return json.dumps({"type": "object", "properties": {"a": {}, "b": {}}, "required": list(required)})


def plain(**keywords):
    """Return a JSON Schema with some keywords."""
    return json.dumps(keywords)


def proto(body, syntax="proto3"):
    """Return a .proto file with message M."""
    return f'syntax="{syntax}"; package p; message M {{ {body} }}'


INT, TEXT = {"type": "integer"}, {"type": "string"}
# name, the type, the previous schema, the new one, the level, then: rule, path, field, previous, new
ROWS = [
    ("a type", "AVRO", record(("a", "int")), record(("a", "string")), "BACKWARD",
     "TYPE_MISMATCH", "/fields/0/type", "a", "int", "string"),
    ("a type, read by the old", "AVRO", record(("a", "int")), record(("a", "string")), "FORWARD",
     "TYPE_MISMATCH", "/fields/0/type", "a", "int", "string"),
    ("a field that is new", "AVRO", record(("a", "int")), record(("a", "int"), ("b", ["null", "long"])), "BACKWARD",
     "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1", "b", None, ["null", "long"]),
    ("a field that is gone", "AVRO", record(("a", "int"), ("b", "long")), record(("a", "int")), "FORWARD",
     "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1", "b", "long", None),
    ("symbols that are gone", "AVRO", record(("e", enum("A", "B"))), record(("e", enum("A"))), "BACKWARD",
     "MISSING_ENUM_SYMBOLS", "/fields/0/type/symbols", "e", ["A", "B"], ["A"]),
    ("symbols that are new", "AVRO", record(("e", enum("A"))), record(("e", enum("A", "B"))), "FORWARD",
     "MISSING_ENUM_SYMBOLS", "/fields/0/type/symbols", "e", ["A"], ["A", "B"]),
    ("a size", "AVRO", record(("f", fixed(4))), record(("f", fixed(8))), "BACKWARD",
     "FIXED_SIZE_MISMATCH", "/fields/0/type/size", "f", 4, 8),
    ("a name", "AVRO", record(), record().replace("R", "S"), "BACKWARD",
     "NAME_MISMATCH", "/name", "", "record R", "record S"),
    ("a branch", "AVRO", record(("u", ["null", "int", "string"])), record(("u", ["null", "int"])), "BACKWARD",
     "MISSING_UNION_BRANCH", "/fields/0/type/2", "u", "string", ["null", "int"]),
    ("another format", "AVRO", '"int"', '{"type": "object"}', "BACKWARD",
     "SCHEMA_TYPE_CHANGED", "", "", "AVRO", "JSON"),
    ("a limit", "JSON", plain(maxLength=9), plain(maxLength=5), "BACKWARD",
     "MAX_LENGTH_DECREASED", "#/maxLength", "maxLength", 9, 5),
    ("a limit, read by the old", "JSON", plain(maxLength=5), plain(maxLength=9), "FORWARD",
     "MAX_LENGTH_DECREASED", "#/maxLength", "maxLength", 5, 9),
    ("a limit with a point", "JSON", plain(maximum=1.5), plain(maximum=0.5), "BACKWARD",
     "MAXIMUM_DECREASED", "#/maximum", "maximum", 1.5, 0.5),
    ("a limit that is new", "JSON", plain(type="string"), plain(type="string", minLength=1), "BACKWARD",
     "MIN_LENGTH_ADDED", "#/minLength", "minLength", None, 1),
    ("a pattern", "JSON", plain(pattern="a"), plain(pattern="b"), "BACKWARD",
     "PATTERN_CHANGED", "#/pattern", "pattern", "a", "b"),
    ("a multiple", "JSON", plain(multipleOf=2), plain(multipleOf=3), "BACKWARD",
     "MULTIPLE_OF_CHANGED", "#/multipleOf", "multipleOf", 2, 3),
    ("a kind", "JSON", plain(**TEXT), plain(type="array"), "BACKWARD",
     "TYPE_CHANGED", "#/", "", "string", "array"),
    ("integers only", "JSON", plain(type="number"), plain(**INT), "BACKWARD",
     "TYPE_NARROWED", "#/", "", "number", "integer"),
    ("values that are gone", "JSON", plain(enum=["a", {"b": [1]}]), plain(enum=["a"]), "BACKWARD",
     "ENUM_ARRAY_NARROWED", "#/enum", "enum", ["a", {"b": [1]}], ["a"]),
    ("a constant", "JSON", plain(const=None), plain(const=[1]), "BACKWARD",
     "ENUM_ARRAY_CHANGED", "#/const", "const", None, [1]),
    ("a demand", "JSON", wanting(), wanting("a"), "BACKWARD",
     "REQUIRED_ATTRIBUTE_ADDED", "#/required/a", "required.a", False, True),
    ("an object that closes", "JSON", plain(type="object"), plain(type="object", additionalProperties=False),
     "BACKWARD", "ADDITIONAL_PROPERTIES_REMOVED", "#/additionalProperties", "additionalProperties", True, False),
    ("a property in an open object", "JSON", plain(type="object"), plain(type="object", properties={"a": INT}),
     "BACKWARD", "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/a", "properties.a", None, "integer"),
    ("a property that is gone", "JSON", closed(a=INT, b=TEXT), closed(a=INT), "BACKWARD",
     "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/b", "properties.b", "string", None),
    ("items that are all different", "JSON", plain(type="array"), plain(type="array", uniqueItems=True), "BACKWARD",
     "UNIQUE_ITEMS_ADDED", "#/uniqueItems", "uniqueItems", False, True),
    ("branches that are gone", "JSON", plain(oneOf=[INT, TEXT]), plain(oneOf=[INT]), "BACKWARD",
     "SUM_TYPE_NARROWED", "#/", "", "oneOf of 2", "oneOf of 1"),
    ("a dependency", "JSON", plain(type="object"), plain(type="object", dependencies={"a": ["c", "b"]}), "BACKWARD",
     "DEPENDENCY_ARRAY_ADDED", "#/dependencies/a", "dependencies.a", None, ["b", "c"]),
    ("a scalar", "PROTOBUF", proto("int32 a = 1;"), proto("string a = 1;"), "BACKWARD",
     "FIELD_SCALAR_KIND_CHANGED", "#/M/1", "M.a (tag 1)", "int32", "string"),
    ("a scalar, read by the old", "PROTOBUF", proto("int32 a = 1;"), proto("string a = 1;"), "FORWARD",
     "FIELD_SCALAR_KIND_CHANGED", "#/M/1", "M.a (tag 1)", "int32", "string"),
    ("a map", "PROTOBUF", proto("int32 a = 1;"), proto("map<string, int32> a = 1;"), "BACKWARD",
     "FIELD_KIND_CHANGED", "#/M/1", "M.a (tag 1)", "int32", "map<string, int32>"),
    ("a package", "PROTOBUF", proto("int32 a = 1;"), proto("int32 a = 1;").replace("package p", "package q"),
     "BACKWARD", "PACKAGE_CHANGED", "#/", "", "p", "q"),
    ("a message", "PROTOBUF", proto("message N {}"), proto(""), "BACKWARD",
     "MESSAGE_REMOVED", "#/M/N", "M.N", "message N", None),
    ("a required field", "PROTOBUF", proto("", "proto2"), proto("required int32 a = 1;", "proto2"), "BACKWARD",
     "REQUIRED_FIELD_ADDED", "#/M/1", "M.a (tag 1)", None, "required int32"),
    ("a required field that is gone", "PROTOBUF", proto("required int32 a = 1;", "proto2"), proto("", "proto2"),
     "BACKWARD", "REQUIRED_FIELD_REMOVED", "#/M/1", "M.a (tag 1)", "required int32", None),
    ("a label", "PROTOBUF", proto("optional int32 a = 1;", "proto2"), proto("repeated int32 a = 1;", "proto2"),
     "BACKWARD", "FIELD_NUMERIC_LABEL_CHANGED", "#/M/1", "M.a (tag 1)", "optional", "repeated"),
    ("a field of a oneof", "PROTOBUF", proto("oneof o { int32 a = 1; string b = 2; }"),
     proto("oneof o { int32 a = 1; }"), "BACKWARD",
     "ONEOF_FIELD_REMOVED", "#/M/o/2", "M.o.b (tag 2)", "string", None),
    ("fields that go into a oneof", "PROTOBUF", proto("int32 a = 1; int32 b = 2; int32 c = 3;"),
     proto("int32 c = 3; oneof o { int32 a = 1; int32 b = 2; }"), "BACKWARD",
     "MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o", "M.o", ["a", "b"], ["a", "b"]),
    ("another message", "PROTOBUF", proto("message N {} message O {} N a = 1;"),
     proto("message N {} message O {} O a = 1;"), "BACKWARD",
     "FIELD_NAMED_TYPE_CHANGED", "#/M/1", "M.a (tag 1)", "M.N", "M.O"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema_type", "previous", "new", "level", "rule", "path", "field", "was", "now"),
    [pytest.param(*row, id=f"{row[0]} {name}") for name, *row in ROWS],
)
def test_finding(shared_api, request, schema_type, previous, new, level, rule, path, field, was, now):
    """A check with `verbose` and the 409 of a registration have equal findings; messages name the same rules."""
    subject = request.node.name.translate({ord(c): "-" for c in "[] ,"})
    new_type = "JSON" if rule == "SCHEMA_TYPE_CHANGED" else schema_type
    assert 200 == shared_api.put(f"/config/{subject}", {"compatibility": level})[0]
    shared_api.placed(subject, previous, schemaType=schema_type)
    body = {"schema": new, "schemaType": new_type}
    checked = shared_api.post(f"/compatibility/subjects/{subject}/versions?verbose=true", body)[1]
    status, refused = shared_api.register(subject, new, schemaType=new_type)

    direction = None if rule == "SCHEMA_TYPE_CHANGED" else level
    found = {
        "rule": rule,
        "path": path,
        "field": field,
        "direction": direction,
        "version": 1,
        "previous": was,
        "new": now,
    }
    shown = [{name: one[name] for name in found} for one in checked["findings"] if one["rule"] == rule]
    assert [found] == shown
    assert (409, checked["findings"]) == (status, refused["findings"])
    assert all(finding["advice"] for finding in checked["findings"])
    named = [message for message in checked["messages"] if message.startswith("{errorType")]
    assert len(named) == len([one for one in checked["findings"] if one["direction"]])
    assert {"is_compatible": False} == shared_api.post(f"/compatibility/subjects/{subject}/versions", body)[1]


# name, the type, the previous schema, the new one, the level, the rule, the advice
ADVICE = [
    ("an upper bound", "JSON", plain(maxLength=9), plain(maxLength=5), "BACKWARD", "Set it to 9 or higher."),
    ("an upper bound, read by the old", "JSON", plain(maxLength=5), plain(maxLength=9), "FORWARD",
     "Set it to 5 or lower."),
    ("a lower bound", "JSON", plain(minimum=1), plain(minimum=2), "BACKWARD", "Set it to 1 or lower."),
    ("a lower bound, read by the old", "JSON", plain(minimum=2), plain(minimum=1), "FORWARD", "Set it to 2 or higher."),
    ("a keyword", "JSON", plain(type="string"), plain(type="string", pattern="a"), "BACKWARD",
     "Keep the previous value of the keyword (none)."),
    ("a keyword that is gone, read by the old", "JSON", plain(type="string", pattern="a"), plain(type="string"),
     "FORWARD", "Keep the previous value of the keyword (a)."),
    ("a multiple", "JSON", plain(multipleOf=2), plain(multipleOf=4), "BACKWARD", "Use 2 or a number that divides it."),
    ("a multiple, read by the old", "JSON", plain(multipleOf=4), plain(multipleOf=2), "FORWARD",
     "Use 4 or a multiple of it."),
    ("values", "JSON", plain(enum=["a", "b"]), plain(enum=["a"]), "BACKWARD", "Keep them; you can add others."),
    ("values, read by the old", "JSON", plain(enum=["a"]), plain(enum=["a", "b"]), "FORWARD", "Do not add values."),
    ("a constant", "JSON", plain(const="a"), plain(const="b"), "BACKWARD", "you can add others."),
    ("a type", "JSON", plain(**TEXT), plain(type="array"), "BACKWARD", "or use one that includes it."),
    ("a property that is new, read by the old", "JSON", closed(a=INT), closed(a=INT, b=TEXT), "FORWARD",
     "Remove it."),
    ("a message, read by the old", "PROTOBUF", proto(""), proto("message N {}"), "FORWARD",
     "Remove the message: the check treats a new message as one that version 1 cannot read."),
    ("a required field, read by the old", "PROTOBUF", proto("required int32 a = 1;", "proto2"), proto("", "proto2"),
     "FORWARD", "Keep the field."),
    ("a required field that is new, read by the old", "PROTOBUF", proto("", "proto2"),
     proto("required int32 a = 1;", "proto2"), "FORWARD", "Remove the field, or make it optional."),
    ("a field of a oneof, read by the old", "PROTOBUF", proto("oneof o { int32 a = 1; }"),
     proto("oneof o { int32 a = 1; string b = 2; }"), "FORWARD", "Move the field out of the oneof."),
    ("a oneof that is gone, read by the old", "PROTOBUF", proto("int32 c = 3; oneof o { int32 a = 1; int32 b = 2; }"),
     proto("int32 a = 1; int32 b = 2; int32 c = 3;"), "FORWARD", "Keep the fields in the oneof."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema_type", "previous", "new", "level", "expected"),
    [pytest.param(*row, id=f"{row[0]} {name}") for name, *row in ADVICE],
)
def test_advice_says_what_would_be_accepted(shared_api, request, schema_type, previous, new, level, expected):
    """The advice is about the new schema, in either direction."""
    subject = request.node.name.translate({ord(c): "-" for c in "[] ,"})
    assert 200 == shared_api.put(f"/config/{subject}", {"compatibility": level})[0]
    shared_api.placed(subject, previous, schemaType=schema_type)
    findings = shared_api.register(subject, new, schemaType=schema_type)[1]["findings"]

    assert [expected] == [one["advice"][-len(expected) :] for one in findings]


def test_findings_of_both_directions(api):
    """FULL checks both directions; each finding names the reader."""
    api.put("/config/s", {"compatibility": "FULL"})
    api.placed("s", record(("a", "int")))
    findings = api.register("s", record(("a", "string")))[1]["findings"]

    assert [("FORWARD", "int", "string"), ("BACKWARD", "int", "string")] == [
        (one["direction"], one["previous"], one["new"]) for one in findings
    ]


def test_findings_name_the_version_that_was_compared(api):
    """Under a transitive level, an older version may cause the refusal."""
    api.put("/config/s", {"compatibility": "NONE"})
    for fields in ([("a", "int")], [("a", "int"), ("b", "int")]):
        api.placed("s", record(*fields))
    api.put("/config/s", {"compatibility": "BACKWARD_TRANSITIVE"})
    findings = api.register("s", record(("a", "int"), ("b", "int"), ("c", "int", 0)))[1]["findings"]

    assert [(1, "b")] == [(one["version"], one["field"]) for one in findings]


def test_findings_of_reserved_names(api):
    """Findings report the use of a reserved name, and a name that is no longer reserved."""
    api.put("/config/s", {"validateFields": True})
    api.placed("s", record(("a", "int")), metadata={"properties": {"confluent:reserved": "x, y"}})
    new = record(("a", "int"), ("y", "int", 0))
    findings = api.register("s", new, metadata={"properties": {"confluent:reserved": "y"}})[1]["findings"]

    assert [("RESERVED_FIELD_REMOVED", "x", ["x", "y"], ["y"]), ("RESERVED_FIELD_CONFLICT", "y", None, "y")] == [
        (one["rule"], one["field"], one["previous"], one["new"]) for one in findings
    ]


def test_finding_of_an_invalid_schema(api):
    """With `verbose` an invalid schema gives a verdict with a finding."""
    answer = api.post("/compatibility/subjects/s/versions?verbose=true", {"schema": "{"})[1]

    assert ["INVALID_SCHEMA"] == [one["rule"] for one in answer["findings"]]
    assert answer["messages"] == [one["advice"] for one in answer["findings"]]


def test_other_errors_have_no_findings(api):
    """Only a verdict has findings."""
    assert {"error_code", "message"} == api.register("s", "{")[1].keys()


VALUES = [
    ("a long text", "x" * 1001, "x" * 1000 + "…"),
    ("a long list", list(range(101)), [*range(100), "…"]),
    ("an integer of 64 bits", 2**63 - 1, 2**63 - 1),
    ("an integer beyond", 2**63, str(2**63)),
    ("a decimal that a double holds", Decimal("0.5"), 0.5),
    ("a decimal that none holds", Decimal("0.1234567890123456789"), "0.1234567890123456789"),
    ("a decimal beyond doubles", Decimal("1E+400"), "1E+400"),
    ("a whole decimal", Decimal("1E+2"), 100),
    ("a double written out", Decimal(int(1e300)), 1e300),
    ("an infinity", float("inf"), "inf"),
    ("an integer of thousands of digits", 10**5000, "a number out of range"),
    ("half a character", "a\ud800", "a?"),
    ("values in values", {"a": [2**64, {"b": None}]}, {"a": [str(2**64), {"b": None}]}),
]


@pytest.mark.parametrize(("value", "expected"), [pytest.param(*row, id=name) for name, *row in VALUES])
def test_values_are_shown_as_json_can_hold_them(value, expected):
    """Numbers keep their digits, and long values are cut."""
    assert expected == finding_json(Finding("RULE", "advice", new=value))["new"]


def test_half_a_character_in_a_name_is_answered(api):
    """Messages and findings print a name that UTF-8 cannot encode as a question mark, as Java does."""
    old, new = (f'{{"properties": {{"\\ud800": {{"type": "{kind}"}}}}}}' for kind in ("string", "array"))
    api.placed("s", old, schemaType="JSON")
    body = {"schema": new, "schemaType": "JSON"}
    status, answer = api.post("/compatibility/subjects/s/versions?verbose=true", body)

    assert (200, ["#/properties/?"]) == (status, [one["path"] for one in answer["findings"]])
    assert "path '#/properties/?'" in answer["messages"][0]
    assert 409 == api.register("s", new, schemaType="JSON")[0]


def test_findings_are_bounded():
    """A verdict lists findings up to a total length, and always the first one."""
    many = (Finding("RULE", "x" * 1000) for _ in range(100))

    assert 9 == len(findings_json(many, 10_500))
    assert 1 == len(findings_json([Finding("RULE", "x" * 1000)], 10))
