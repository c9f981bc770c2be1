"""Rows are validated in the JVM as in Python workers: with the same words, for the keywords that the JVM knows."""

import json
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import jsonschema_rs
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type

from harness.java_probes import RunJava
from harness.json_rule_cases import ROWS
from harness.json_rules import RuleMaker
from strata.compat.json_schema.documents import metaschema_of
from strata.serdes.client import Schema
from strata.serdes.errors import SchemaError
from strata.serdes.framing import SchemaId
from strata.serdes.json_schema.serializer import documents_of
from strata.serdes.json_schema.validator import compiled
from strata.serdes.model import JSON, Reference
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.encoding.jvm_function import function_name
from strata.spark_udfs.encoding.plan import EncodePlan, Target
from strata.spark_udfs.encoding.row_encoder import RowEncoder

pytestmark = pytest.mark.spark

Pair = tuple[EncodePlan, pa.DataType, list[Any]]

DRAFT_7 = "http://json-schema.org/draft-07/schema"
DRAFT_2019, DRAFT_2020 = (f"https://json-schema.org/draft/{date}/schema" for date in ("2019-09", "2020-12"))
CORE_2020 = "https://json-schema.org/draft/2020-12/meta/core"


def metaschema(uri: str) -> Any:
    """Return a metaschema of json-schema.org."""
    found = metaschema_of(uri)
    assert found is not None
    return found[1]


def _plan(schema: Any) -> EncodePlan:
    target = Target(Schema(json.dumps(schema), JSON), (), SchemaId(1))
    return EncodePlan(ClientSettings(urls=("http://nowhere",)), target, None, b"", Mode.DEADLETTER)


def _in_jvm(run_java: RunJava, pairs: Iterable[Pair]) -> list[Any]:
    """Return the frame or the error of each row, or a text: what of the schema only Python encodes."""
    return run_java(
        "strata.spark.EncodeProbe",
        [
            {
                "plan": function_name(plan),
                "type": from_arrow_type(kind, prefer_timestamp_ntz=True).json(),
                "values": [_line(v, kind) for v in rows],
            }
            for plan, kind, rows in pairs
        ],
    )


def _line(value: Any, kind: pa.DataType) -> Any:
    """Return a value as `EncodeProbe` reads it."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return [_line(value[one.name], one.type) for one in kind]
    if pa.types.is_list(kind):
        return [_line(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [[_line(key, kind.key_type), _line(one, kind.item_type)] for key, one in value]
    if isinstance(value, str | bytes):
        return (value.encode() if isinstance(value, str) else value).hex()
    if pa.types.is_floating(kind):
        return struct.unpack("<q", struct.pack("<d", value))[0]
    return format(value, "f") if isinstance(value, Decimal) else value


def _in_python(pairs: Iterable[Pair]) -> list[list[list[str]]]:
    made = []
    for plan, kind, rows in pairs:
        letters = RowEncoder(plan).encode(pa.array(rows, kind)).to_pylist()
        made.append([_shown(one["frame"], one["error"]) for one in letters])
    return made


def _shown(frame: bytes | None, error: dict[str, str] | None) -> list[str]:
    if error is not None:
        return [error["reason"], error["path"]]
    return [] if frame is None else [frame.hex()]


@pytest.mark.parametrize("count", [200, pytest.param(6000, marks=pytest.mark.slow)])
def test_random_rows(run_java: RunJava, count: int) -> None:
    """Both paths write the same frames, or refuse rows with the same words and path."""
    chance = Random(41)
    maker = RuleMaker(chance)
    pairs: list[Pair] = []
    while 4 * len(pairs) < count * 1.2:
        kind = maker.column()
        pairs.append((_plan(maker.schema(kind)), kind, [maker.value(kind, nullable=False) for _ in range(4)]))

    made = [
        (pair, rows) for pair, rows in zip(pairs, _in_jvm(run_java, pairs), strict=True) if not isinstance(rows, str)
    ]
    python = _in_python(pair for pair, _ in made)

    assert 4 * len(made) > count
    different = [
        (plan.target.schema.text, str(kind), row, ours, theirs)
        for ((plan, kind, values), our), their in zip(made, python, strict=True)
        for row, ours, theirs in zip(values, our, their, strict=True)
        if ours != theirs
    ]
    assert [] == different[:3], f"{len(different)} of {4 * len(made)}"
    lengths = [len(one) for rows_of in python for one in rows_of]
    assert lengths.count(1) > count / 5
    assert lengths.count(2) > count / 5


def test_named_rows(run_java: RunJava) -> None:
    """Each kind of rule has one wording, on both paths."""
    pairs: list[Pair] = [(_plan(schema), kind, [value]) for _, schema, kind, value, _, _ in ROWS]

    jvm, referred = _split(_in_jvm(run_java, [*pairs, _referring()]))
    python = _in_python(pairs)

    def shown(rows: list[list[list[str]]]) -> dict[str, tuple[str | None, str]]:
        return {
            case[0]: (one[0], one[1]) if len(one) == 2 else (None, "") for case, [one] in zip(ROWS, rows, strict=True)
        }

    expected = {name: (reason, path) for name, _, _, _, reason, path in ROWS}
    assert expected == shown(python)
    assert expected == shown(jvm)
    assert [
        [b'{"total":0}'.hex()],
        ["expected a number of at least 0, got a smaller one (rule definitions/m/minimum)", "total"],
    ] == referred


def _split(rows: list[Any]) -> tuple[list[Any], Any]:
    return rows[:-1], rows[-1]


def _referring() -> Pair:
    """Return a schema that refers to another, which refers to a third, and two rows."""
    money = Schema(json.dumps({"definitions": {"m": {"minimum": 0}}, "$ref": "#/definitions/m"}), JSON)
    order = Schema(
        json.dumps({"properties": {"total": {"$ref": "money.json"}}}), JSON, (Reference("money.json", "money", 1),)
    )
    branches = {"allOf": [{"$ref": "order.json"}, {"$ref": "order.json#/properties/total"}]}
    schema = Schema(json.dumps(branches), JSON, (Reference("order.json", "order", 1),))
    target = Target(schema, (("money.json", money), ("order.json", order)), SchemaId(1))
    plan = EncodePlan(ClientSettings(urls=("http://nowhere",)), target, None, b"", Mode.DEADLETTER)
    return plan, pa.struct([("total", pa.int64())]), [{"total": 0}, {"total": -1}]


ONLY_IN_PYTHON: list[tuple[dict[str, Any], str]] = [
    ({"pattern": "^.+$"}, "`pattern` '^.+$'"),
    ({"pattern": "^(?!a)"}, "`pattern` '^(?!a)'"),
    ({"properties": {"a": {"uniqueItems": True}}}, "`uniqueItems`"),
    ({"if": {}, "then": False}, "`if`"),
    ({"patternProperties": {"a": {}}}, "`patternProperties`"),
    ({"format": "email"}, "`format` 'email'"),
    ({"contentEncoding": "base16"}, "`contentEncoding` 'base16'"),
    ({"const": {}}, "`const` with an object or array"),
    ({"enum": [2**60]}, "`enum` with a long number"),
    ({"minimum": 1e20}, "`minimum` with a long number"),
    ({"multipleOf": 0.1}, "`multipleOf` with a fraction"),
    ({"items": [{}, {}]}, "`items` with several schemas"),
    (
        {"properties": {}, "required": ["a"], "additionalProperties": False},
        "`required` of a property that `additionalProperties` forbids",
    ),
    ({"properties": {"a": {"$ref": "#"}}}, "`$ref` to a schema around it"),
    ({"definitions": {"a": {"$id": "#b"}}, "properties": {"a": {"$ref": "#b"}}}, "`$id` inside a schema"),
    ({"$schema": "http://json-schema.org/draft-04/schema#"}, "`$schema` of draft 4"),
    ({"$ref": DRAFT_7}, "`$ref` to another document"),
    ({"$schema": DRAFT_2019, "properties": {"a": {"$ref": DRAFT_2019}}}, "`$ref` to another document"),
    ({"$schema": DRAFT_2020, "$ref": CORE_2020}, "`$ref` to another document"),
    (metaschema(DRAFT_7), "`$id` inside a schema"),
    (metaschema(DRAFT_2019), "`$vocabulary`"),
    (metaschema(DRAFT_2020), "`$vocabulary`"),
    ({"$schema": DRAFT_2020, "$defs": {"a": {"$dynamicAnchor": "m"}}, "$dynamicRef": "#m"}, "`$dynamicRef`"),
    ({"$schema": DRAFT_2019, "properties": {"a": {"$recursiveRef": "#"}}}, "`$recursiveRef`"),
]


def test_metaschemas_in_python_workers() -> None:
    """Python workers, which the JVM leaves metaschemas to, validate by them and by schemas that refer to them."""
    kind = pa.struct([("$id", pa.string()), ("$comment", pa.int64())])
    rows = [{"$id": "a", "$comment": None}, {"$id": "a", "$comment": 1}]
    schemas = [metaschema(uri) for uri in (DRAFT_7, DRAFT_2019, DRAFT_2020)]
    schemas += [{"$schema": uri, "$ref": uri} for uri in (DRAFT_7, DRAFT_2019, DRAFT_2020)]
    schemas += [{"$schema": DRAFT_2020, "$ref": CORE_2020}]
    pairs: list[Pair] = [(_plan(schema), kind, rows) for schema in schemas]

    assert [[[], ["['$comment']"]]] * 7 == [[one[1:] for one in made] for made in _in_python(pairs)]


UNUSABLE: list[dict[str, Any]] = [
    {"type": "text"},
    {"type": []},
    {"type": ["null", "null"]},
    {"minimum": "1"},
    {"minLength": -1},
    {"minLength": 1.5},
    {"multipleOf": 0},
    {"required": ["a", "a"]},
    {"properties": {"a": 1}},
    {"definitions": {"a": {"maxItems": "1"}}},
    {"allOf": []},
    {"$id": 5},
    {"$ref": "#/properties/a/minLength", "properties": {"a": {"minLength": 5}}},
    {"title": 3},
]


def _only_in_python(run_java: RunJava, schemas: Sequence[Any]) -> list[Any]:
    return _in_jvm(run_java, [(_plan(schema), pa.string(), []) for schema in schemas])


def test_schemas_for_python_workers(run_java: RunJava) -> None:
    """The JVM names the keyword that only Python workers know."""
    made = _only_in_python(run_java, [schema for schema, _ in ONLY_IN_PYTHON])

    assert [f"JSON with validation by {named}" for _, named in ONLY_IN_PYTHON] == made


def test_schemas_that_cannot_be_used(run_java: RunJava) -> None:
    """What the validator of Python does not take for a schema, the JVM does not either."""
    assert ["a JSON Schema that cannot be used"] * len(UNUSABLE) == _only_in_python(run_java, UNUSABLE)
    for schema in UNUSABLE:
        with pytest.raises(ValueError, match=r"\w"):
            jsonschema_rs.validator_for({"$schema": "http://json-schema.org/draft-07/schema#", **schema})


# name of a reference, `$id` of the schema
UNUSUAL_NAMES = [("a//b.json", None), ("a.json", "urn:x:y"), ("urn:x:y", None)]


def test_names_that_the_validator_reads_in_another_way(run_java: RunJava) -> None:
    """References whose names the validator of Python joins in another way than Python make a schema unusable."""
    plans = []
    for name, own in UNUSUAL_NAMES:
        other = Schema(json.dumps({"$id": "other.json", "minimum": 0}), JSON)
        text = json.dumps({"properties": {"a": {"$ref": name}}, **({} if own is None else {"$id": own})})
        target = Target(Schema(text, JSON, (Reference(name, "s", 1),)), ((name, other),), SchemaId(1))
        plans.append(EncodePlan(ClientSettings(urls=("http://nowhere",)), target, None, b"", Mode.DEADLETTER))

    made = _in_jvm(run_java, [(plan, pa.string(), []) for plan in plans])

    assert ["a JSON Schema that cannot be used"] * len(plans) == made
    for plan in plans:
        documents = documents_of(plan.target.schema, dict(plan.target.references))
        (base, document), *others = documents.items()
        with pytest.raises(SchemaError, match="cannot be used"):
            compiled(document, dict(others), base)


def test_hostile_schemas(run_java: RunJava) -> None:
    """A schema that is deep, grows with its references or has costly patterns is left to Python workers."""
    deep: Any = {}
    for _ in range(100):
        deep = {"items": deep}
    wide = {f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(40)}
    empty, full = ({"definitions": {**wide, "d40": leaf}, "$ref": "#/definitions/d0"} for leaf in ({}, {"minimum": 1}))
    costly = {"allOf": [{"pattern": f"(a|b){{{n % 9}}}{'[a-z]?' * 40}{n}"} for n in range(2000)]}

    made = _only_in_python(run_java, [deep, empty, full, costly])

    said = ("more than 64 levels", "more than 50000 parts", "more than 10000 rules", "by `pattern`")
    assert [] == [(words, one) for words, one in zip(said, made, strict=True) if words not in str(one)]
