"""Rows are validated in the JVM as in Python workers: with the same words, for the keywords that the JVM knows."""

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type

from harness.json_rule_cases import ROWS
from harness.json_rules import RuleMaker
from strata.serdes.client import Schema
from strata.serdes.framing import SchemaId
from strata.serdes.model import JSON, Reference
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.encoding.jvm_function import function_name
from strata.spark_udfs.encoding.plan import EncodePlan, Target
from strata.spark_udfs.encoding.row_encoder import RowEncoder

pytestmark = pytest.mark.spark

RunJava = Callable[[str, Sequence[Any]], list[Any]]
Pair = tuple[EncodePlan, pa.DataType, list[Any]]


def _plan(schema: Any) -> EncodePlan:
    target = Target(Schema(json.dumps(schema), JSON), (), SchemaId(1))
    return EncodePlan(ClientSettings(urls=("http://nowhere",)), target, None, b"", Mode.DEADLETTER)


def _in_jvm(run_java: RunJava, pairs: Iterable[Pair]) -> list[list[list[str]]]:
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
    rows = 0
    while rows < count:
        kind = maker.column()
        plan = _plan(maker.schema(kind))
        try:
            function_name(plan)
        except OnlyInPython:
            continue
        pairs.append((plan, kind, [maker.value(kind, nullable=False) for _ in range(4)]))
        rows += 4

    jvm, python = _in_jvm(run_java, pairs), _in_python(pairs)

    different = [
        (plan.target.schema.text, str(kind), row, ours, theirs)
        for (plan, kind, values), our, their in zip(pairs, jvm, python, strict=True)
        for row, ours, theirs in zip(values, our, their, strict=True)
        if ours != theirs
    ]
    assert [] == different[:3], f"{len(different)} of {rows}"
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
]


def test_schemas_for_python_workers() -> None:
    """An error names the keyword that only Python workers know."""
    for schema, named in ONLY_IN_PYTHON:
        with pytest.raises(OnlyInPython) as error:
            function_name(_plan(schema))
        assert f"JSON with validation by {named} (validate=False leaves it out)" == str(error.value)


def test_hostile_schemas() -> None:
    """A schema that is deep, or grows with its references, is left to Python workers."""
    deep: Any = {}
    for _ in range(100):
        deep = {"items": deep}
    wide = {f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(40)}
    wide["d40"] = {"minimum": 1}  # type: ignore[dict-item]

    for schema, words in ((deep, "more than 64 levels"), ({"definitions": wide, "$ref": "#/definitions/d0"}, "rules")):
        with pytest.raises(OnlyInPython, match=words):
            function_name(_plan(schema))
