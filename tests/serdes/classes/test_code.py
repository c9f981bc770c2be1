"""Source of classes for a schema: it runs, and its classes make the schema again."""

import json
import subprocess
import sys
import types
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.class_sources import ORDER_JSON, ORDER_PROTO, json_source, proto_source
from harness.examples import examples
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat
from strata.serdes.avro.decoder import compile_decoder
from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.classes import bound, schema_of
from strata.serdes.classes.avro_shapes import avro_shape
from strata.serdes.classes.code import STYLES, class_source
from strata.serdes.errors import SchemaError

ROOT = Path(__file__).resolve().parents[3]
_modules = count()
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "doc": 'An "order"',
    "aliases": ["shop.Purchase"],
    "fields": [
        {"name": "id", "type": "long", "doc": "It's the id"},
        {"name": "from", "type": "string", "aliases": ["origin"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "None"], "default": "NEW"},
         "default": "NEW"},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "sku", "type": "string"},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "parent", "type": ["null", "Line"], "default": None}]}}},
        {"name": "count", "type": "int", "default": 1},
        {"name": "ratio", "type": "float", "default": 0.5},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "key", "type": {"type": "fixed", "name": "Key", "size": 2}, "default": "\u00ff\u0000"},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "numbers", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "choice", "type": ["int", "string"]},
    ],
}  # fmt: skip
VALUE = {
    "id": 1, "from": "x", "state": "None", "lines": [{"sku": "a", "price": "1.50", "parent": None}], "count": 3,
    "ratio": 0.25, "note": "n", "at": 5, "local": 7, "day": 9, "key": b"ab", "tags": {"a": "b"}, "numbers": [],
    "uid": "00000000-0000-0000-0000-000000000005", "choice": "c",
}  # fmt: skip


def parsed(schema):
    """Return a parsed schema."""
    return FORMATS[SchemaFormat.AVRO].parse(json.dumps(schema), strict=False, references=())


def sources_of(schema, style, title):
    """Return the source of the classes of an Avro schema."""
    return class_source([avro_shape(schema)], style, title)


def run(source):
    """Run the source of a module, and return the module."""
    module = types.ModuleType(f"generated_{next(_modules)}")
    sys.modules[module.__name__] = module  # hints are resolved in the module of a class
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    return module


def plain(node):
    """Return a schema without the parts that a class does not have, and with full names."""
    return json.loads(parsed(node).canonical)


@pytest.mark.parametrize("style", STYLES)
def test_the_schema_again(style):
    """The class of each library makes the very schema, with docs, defaults, aliases and logical types."""
    module = run(sources_of(parsed(ORDER), style, "orders-value, version 1"))

    assert plain(ORDER) == plain(json.loads(schema_of(module.Order).text))


@pytest.mark.parametrize("style", STYLES)
def test_values(style):
    """Objects of the classes are written under the schema, and read again."""
    one = bound(run(sources_of(parsed(ORDER), style, "orders-value")).Order, "AVRO")
    encode, decode = compile_encoder(json.dumps(ORDER)), compile_decoder(json.dumps(ORDER))
    raw = compile_encoder(json.dumps(ORDER))
    value = decode(raw(VALUE | {"lines": []}))

    again = one.lift(value)

    assert value == decode(encode(one.lower(again)))
    assert again.from_ == "x"


def test_the_source_is_formatted_and_typed(tmp_path):
    """The formatter, the linter and the type checker have nothing to say."""
    for style in STYLES:
        sources = {
            "avro": sources_of(parsed(ORDER), style, "orders-value, version 1"),
            "json": json_source(ORDER_JSON, style),
            "protobuf": proto_source(ORDER_PROTO, style),
        }
        for name, source in sources.items():
            (tmp_path / f"{name}_{style}.py").write_text(source)
    for command in (
        ["ruff", "format", "--check", "--isolated", "--line-length", "180"],
        ["ruff", "check", "--isolated", "--select", "E,F,I", "--line-length", "180"],
        ["mypy", "--strict", "--no-error-summary"],  # with the cache of `make check`
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command, *map(str, tmp_path.glob("*.py"))],
            cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert 0 == done.returncode, f"{command}\n{done.stdout}{done.stderr}"


# type, part of the error
NO_CLASS = [
    ({"type": "long", "logicalType": "timestamp-nanos"}, "R.f: timestamp-nanos"),
    ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, "R.f: a fixed with a logical type"),
]


@pytest.mark.parametrize(("type_", "words"), NO_CLASS)
def test_types_without_a_class(type_, words):
    """A type that no Python type holds is an error that names the field."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}]}

    with pytest.raises(SchemaError, match=words):
        sources_of(parsed(schema), "dataclass", "r")
    with pytest.raises(SchemaError, match="a class needs a record or an enum"):
        sources_of(parsed("int"), "dataclass", "r")


TYPES = st.recursive(
    st.sampled_from(["boolean", "int", "long", "float", "double", "string", "bytes"]),
    lambda inner: st.one_of(
        inner.map(lambda one: {"type": "array", "items": one}),
        inner.map(lambda one: {"type": "map", "values": one}),
        inner.filter(lambda one: not isinstance(one, list)).map(lambda one: ["null", one]),
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(["a", "class", "items", "None", "dataclass", "field", "Annotated", "self", "date", "cls", "o"])


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, TYPES, max_size=5), st.text(min_size=1, max_size=20), st.sampled_from(sorted(STYLES)))
def test_any_names_and_docs(fields, doc, style):
    """Whatever fields are called and docs say, the source runs and makes the schema again."""
    made = [{"name": name, "type": type_, "doc": doc} for name, type_ in fields.items()]
    schema = {"type": "record", "name": "R", "fields": made}

    module = run(sources_of(parsed(schema), style, "r"))

    assert plain(schema) == plain(json.loads(schema_of(module.R).text))
