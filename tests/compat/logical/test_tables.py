"""The policy LOGICAL beyond the recorded answers: hostile schemas, and laws of the comparison."""

import gzip
import json
from pathlib import Path

import pytest

from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Level, Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.logical.comparison import compare
from strata.compat.logical.policy import translate
from strata.compat.logical.tables import ENGINES, POLICY
from strata.compat.logical.types import TranslationError
from strata.compat.schema import ResolvedReference, SchemaFormat

RECORDED = Path(__file__).parents[2] / "conformance" / "logical_compat.jsonl.gz"
AVRO, JSON, PROTOBUF = SchemaFormat.AVRO, SchemaFormat.JSON, SchemaFormat.PROTOBUF


def parse(schema_format, text, references=()):
    """Return a parsed schema; a text or a JSON value."""
    text = text if isinstance(text, str) else json.dumps(text)
    return FORMATS[schema_format].parse(text, strict=False, references=references)


def record(name, *fields):
    """Return an Avro record of fields, each a name and a type."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields]}


def messages(schema_format, text, level=Level.NONE, previous=(), limits=DEFAULT_LIMITS):
    """Return the messages of a check under LOGICAL."""
    versions = [Previous(number, parse(schema_format, old)) for number, old in enumerate(previous, start=1)]
    return check(parse(schema_format, text), versions, level, Policy.LOGICAL, limits).messages


NO_TYPE = "Schema cannot be represented as a logical type: "
CONNECT = "org.apache.kafka.connect.data."
NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
TIME = {"type": "integer", "connect.type": "int32", "title": f"{CONNECT}Time"}
DECIMAL = {"type": "number", "connect.type": "bytes", "title": f"{CONNECT}Decimal"}
ITSELF = {"$ref": "#/definitions/A"}
META = 'syntax = "proto3"; import "confluent/meta.proto"; '
WRAPPED = '[(confluent.field_meta).params = {key: "flink.wrapped", value: "true"}]'
BAD_DEFAULT = '[(confluent.field_meta).params = {key: "logical.default", value: "x"}]'
HOSTILE = [
    ("a length that is a text", AVRO, {"type": "string", "flink.maxLength": "x"}, "cannot be cast"),
    ("a precision as text", AVRO, {"type": "bytes", "logicalType": "decimal", "precision": "x"}, "JSON Integer"),
    ("a precision beyond every type", AVRO, {**NANOS, "flink.precision": 1e30}, "[0, 9]"),
    ("names of branches that are not a list", AVRO, record("R", ("a", ["int", "string"])), ""),
    ("a map whose key is not text", AVRO, {"type": "map", "values": "int", "logical.key.length": "x"}, ""),
    ("a connect.type that is an object", JSON, {"type": "integer", "connect.type": {}}, "Unsupported type"),
    ("a precision that is an object", JSON, {**TIME, "flink.precision": {}}, ""),
    ("a scale as text", JSON, {**DECIMAL, "connect.parameters": {"scale": "x"}}, 'For input string: "x"'),
    ("an enum that is empty", JSON, {"enum": []}, ""),
    ("an allOf of itself", JSON, {"allOf": [ITSELF], "definitions": {"A": {"allOf": [ITSELF]}}}, "criterion allOf"),
    ("a map without key", JSON, {"type": "array", "connect.type": "map", "items": {"type": "object"}}, NO_TYPE),
    ("a reference to itself", JSON, {"properties": {"a": {"$ref": "#/properties/a"}}}, ""),
    ("wrappers of themselves", PROTOBUF, f"{META}message W {{ W value = 1 {WRAPPED}; }}", "Found a cycle"),
    ("entries of themselves", PROTOBUF, f"{META}message AEntry {{ repeated AEntry key = 1; AEntry value = 2; }}", ""),
    ("a default as text", PROTOBUF, f"{META}message M {{ int32 a = 1 {BAD_DEFAULT}; }}", 'For input string: "x"'),
    ("an unknown type", PROTOBUF, f"{META}message M {{ map<string, Nothing> a = 1; }}", "UNRESOLVED_TYPE_REF"),
    ("no message", PROTOBUF, "enum E { A = 0; }", "no root descriptor"),
]


@pytest.mark.parametrize(("schema_format", "text", "expected"), [pytest.param(*row, id=name) for name, *row in HOSTILE])
def test_hostile_schemas_get_a_message(schema_format, text, expected):
    """There is a verdict for each value of an attribute and each cycle."""
    found = "\n".join(messages(schema_format, text))
    assert expected in found


def test_a_chain_of_types_is_bounded():
    """A chain of named types is refused beyond 100 levels, even if each text is flat and its end comes first."""
    count = 400
    names = [record(f"R{i}", ("next", f"R{i + 1}")) for i in range(count)] + [record(f"R{count}", ("a", "int"))]
    references = [ResolvedReference(one["name"], json.dumps(one), one["name"]) for one in reversed(names)]
    ends_first = record("Root", *((f"f{i}", f"R{i}") for i in reversed(range(count + 1))))
    for text in (names[0], ends_first):
        with pytest.raises(TranslationError, match="nesting depth exceeds the maximum of 100"):
            translate(parse(AVRO, text, references[:-1] if text is names[0] else references), "", DEFAULT_LIMITS)


def test_shared_types_are_compared_once():
    """Types that use the one below them twice, 45 levels deep, do not double the work with each level."""
    text = "".join(
        f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; map<string, M{i + 1}> c = 3; }}\n" for i in range(45)
    )
    text = f'syntax = "proto3";\n{text}message M45 {{ int32 a = 1; }}'
    limits = Limits(seconds=60).started()
    assert () == messages(PROTOBUF, text, Level.FULL, [text], limits)

    keyed = 'syntax = "proto3";\n' + "".join(
        f"message M{i}Entry {{ M{i + 1}Entry key = 1; M{i + 1}Entry value = 2; }}\n" for i in range(45)
    )
    keyed += "message M45Entry { int32 a = 1; }\nmessage Last { repeated M0Entry m = 1; }"
    assert () == messages(PROTOBUF, keyed, Level.FULL, [keyed], limits)


def test_branch_names_of_a_root_union_come_from_the_metadata():
    """`confluent:union` in the metadata names the branches of a union at the root, so renaming one is a deletion."""
    new = parse(AVRO, ["int", "string"])
    old = Previous(1, new, union='[{"name": "number"}, {"name": "text"}]')
    same = check(new, [old], Level.BACKWARD, Policy.LOGICAL, union='[{"name": "number"}, {"name": "text"}]')
    renamed = check(new, [old], Level.BACKWARD, Policy.LOGICAL, union='[{"name": "number"}, {"name": "word"}]')

    assert same.compatible
    assert ["FIELD_DELETED"] == [found.rule for table in renamed.tables for found in table.findings]


def test_a_schema_can_be_followed_to_itself():
    """No comparison of a schema with itself has a finding, for each recorded schema that has a logical type."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        texts = {(case["type"], case["new"]["schema"]) for case in map(json.loads, lines) if "references" not in case}
    compared = 0
    for name, text in sorted(texts)[::7]:
        try:
            schema = translate(parse(SchemaFormat(name), text), "", DEFAULT_LIMITS)
        except TranslationError:
            continue
        for rules in (*POLICY, *ENGINES.values()):
            assert [] == compare(schema, schema, rules, DEFAULT_LIMITS), text
            compared += 1
    assert compared > 300
