"""The difference of two schemas lists what changed, and its words never disagree with the checker's verdict."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from harness.avro_schemas import Schemas
from strata.compat.check import Previous, check
from strata.compat.difference.compare import difference
from strata.compat.difference.edits import DOC_LIKE, EditKind
from strata.compat.difference.outcomes import Verdict
from strata.compat.difference.text import as_json, as_lines
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.limits import Limits, OutOfTime
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

RECORDED = Path(__file__).parents[1] / "conformance"
AVRO, JSON, PROTOBUF = SchemaFormat.AVRO, SchemaFormat.JSON, SchemaFormat.PROTOBUF


def parse(schema_format, text, references=()):
    """Parse a schema, which may be given as JSON values."""
    text = text if isinstance(text, str) else json.dumps(text)
    return FORMATS[schema_format].parse(text, strict=False, references=references)


def changes(schema_format, previous, new):
    """Return the changes between two texts in short."""
    found = difference(parse(schema_format, previous), parse(schema_format, new)).changes
    return [(one.kind.value, one.path, one.before, one.after, breaking(one)) for one in found]


def breaking(change):
    """Return what a change does to readers (R) and writers (W): a capital breaks, a small letter changes values.

    The check refuses what has a mark though values only change, and what is in brackets though nothing changes.
    """
    return "".join(map(short, ("r", "w"), (change.readers, change.writers)))


def short(letter, effect):
    """Return one direction in short."""
    shown = {Verdict.BREAKS: letter.upper(), Verdict.SILENT: letter, Verdict.SAFE: "", Verdict.UNKNOWN: "?"}
    if effect.refused and effect.verdict is not Verdict.BREAKS:
        return f"({letter})" if effect.verdict is Verdict.SAFE else f"{letter}!"
    return shown[effect.verdict]


def record(*fields, **more):
    """Return an Avro record R."""
    return {"type": "record", "name": "R", **more, "fields": [{"name": name, **rest} for name, rest in fields]}


def enum(*symbols, **more):
    """Return an Avro enum E."""
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def item(kind):
    """Return an Avro record I with a field x."""
    return record(("x", {"type": kind})) | {"name": "I"}


INT, LONG = {"type": "int"}, {"type": "long"}
AVRO_ROWS = [
    ("field added", record(("a", INT)), record(("a", INT), ("b", INT)), [("FIELD_ADDED", "b", None, "int", "R")]),
    (
        "field added with default",
        record(("a", INT)),
        record(("a", INT), ("b", INT | {"default": 7})),
        [("FIELD_ADDED", "b", None, "int = 7", "")],
    ),
    ("field removed", record(("a", INT), ("b", INT)), record(("a", INT)), [("FIELD_REMOVED", "b", "int", None, "W")]),
    (
        "renamed by alias",
        record(("a", INT)),
        record(("b", INT | {"aliases": ["a"]})),
        [("FIELD_RENAMED", "b", "a", "b", "W"), ("ALIASES_CHANGED", "b", "", "a", "")],
    ),
    ("promoted", record(("a", INT)), record(("a", LONG)), [("TYPE_CHANGED", "a", "int", "long", "W")]),
    (
        "default and doc",
        record(("a", INT | {"default": 1})),
        record(("a", INT | {"default": 2, "doc": "d"})),
        [("DEFAULT_CHANGED", "a", "1", "2", ""), ("DOC_CHANGED", "a", None, "d", "")],
    ),
    (
        "symbols",
        record(("e", {"type": enum("A", "B")})),
        record(("e", {"type": enum("A", "C")})),
        [("SYMBOL_REMOVED", "e", "B", None, "R"), ("SYMBOL_ADDED", "e", None, "C", "W")],
    ),
    (
        "branches",
        record(("u", {"type": ["null", "int"]})),
        record(("u", {"type": ["null", "string"]})),
        [("BRANCH_REMOVED", "u", "int", None, "R"), ("BRANCH_ADDED", "u", None, "string", "W")],
    ),
    (
        "order of a union",
        record(("u", {"type": ["null", "int"]})),
        record(("u", {"type": ["int", "null"]})),
        [("ORDER_CHANGED", "u", "null | int", "int | null", "")],
    ),
    (
        "inside an array in a union",
        record(("u", {"type": ["null", {"type": "array", "items": item("int")}]})),
        record(("u", {"type": ["null", {"type": "array", "items": item("string")}]})),
        [("TYPE_CHANGED", "u[].x", "int", "string", "RW")],
    ),
    (
        "type added and removed",
        record(("a", {"type": enum("A")})),
        record(("b", {"type": {"type": "fixed", "name": "F", "size": 2}})),
        [
            ("FIELD_ADDED", "b", None, "F", "R"),
            ("FIELD_REMOVED", "a", "E", None, "W"),
            ("TYPE_REMOVED", "E", "enum", None, ""),
            ("TYPE_ADDED", "F", None, "fixed", ""),
        ],
    ),
    ("namespace", record(), record(namespace="n"), [("NAMESPACE_CHANGED", "", "R", "n.R", "")]),
    ("type renamed", record(), record() | {"name": "S"}, [("TYPE_RENAMED", "", "R", "S", "RW")]),
    (
        "order of fields",
        record(("a", INT), ("b", INT)),
        record(("b", INT), ("a", INT)),
        [("ORDER_CHANGED", "", "a, b", "b, a", "")],
    ),
    (
        "size, tags and attributes",
        {"type": "fixed", "name": "F", "size": 2, "x": 1},
        {"type": "fixed", "name": "F", "size": 4, "x": 2, "confluent:tags": ["PII"]},
        [
            ("TAGS_CHANGED", "", None, '["PII"]', ""),
            ("ATTRIBUTE_CHANGED", "", "1", "2", ""),
            ("CONSTRAINT_CHANGED", "", "2", "4", "RW"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("previous", "new", "expected"), [row[1:] for row in AVRO_ROWS], ids=[row[0] for row in AVRO_ROWS]
)
def test_avro(previous, new, expected):
    """Each change has its kind, place and values, and breaks what the checker says it breaks."""
    assert expected == changes(AVRO, previous, new)


PROTO = 'syntax = "proto3"; message A { %s }'
PROTOBUF_ROWS = [
    ("field added", "", "int32 a = 1;", [("FIELD_ADDED", "#/A/1", None, "int32 = 1", "")]),
    ("renamed", "int32 a = 1;", "int32 b = 1;", [("FIELD_RENAMED", "#/A/1", "a", "b", "")]),
    ("retyped", "int32 a = 1;", "string a = 1;", [("TYPE_CHANGED", "#/A/1", "int32", "string", "r!w!")]),
    ("label", "int32 a = 1;", "repeated int32 a = 1;", [("REQUIRED_CHANGED", "#/A/1", "no label", "repeated", "rw")]),
    ("option", "int32 a = 1;", "int32 a = 1 [deprecated = true];", [("ATTRIBUTE_CHANGED", "#/A/1", None, "true", "")]),
    ("type removed", "message B {}", "", [("TYPE_REMOVED", "#/A/B", "message", None, "(r)")]),
    (
        "constants",
        "enum E { X = 0; Y = 1; }",
        "enum E { X = 0; Z = 1; W = 2; }",
        [("SYMBOL_RENAMED", "#/A/E/1", "Y", "Z", ""), ("SYMBOL_ADDED", "#/A/E/2", None, "W", "")],
    ),
    (
        "left a oneof",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; }",
        [
            ("CONSTRAINT_CHANGED", "#/A/o", "a, b", "a", ""),
            ("FIELD_REMOVED", "#/A/2", "int32 = 2 in oneof o", None, "(r)"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("previous", "new", "expected"), [row[1:] for row in PROTOBUF_ROWS], ids=[row[0] for row in PROTOBUF_ROWS]
)
def test_protobuf(previous, new, expected):
    """Fields are matched by tag, types by name."""
    assert expected == changes(PROTOBUF, PROTO % previous, PROTO % new)


def test_a_protobuf_package_is_a_namespace():
    """Another package changes the name of every type."""
    found = changes(PROTOBUF, 'syntax = "proto3"; package a;', 'syntax = "proto3"; package b;')

    assert [("NAMESPACE_CHANGED", "#/", "a", "b", "(r)(w)")] == found


def schema(properties, **more):
    """Return a JSON Schema of an object."""
    return {"type": "object", "properties": properties, **more}


STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}
JSON_ROWS = [
    (
        "property added to a closed object",
        schema({}, additionalProperties=False),
        schema({"a": STRING}, additionalProperties=False),
        [("FIELD_ADDED", "#/properties/a", None, "string", "W")],
    ),
    (
        "required",
        schema({"a": STRING}),
        schema({"a": STRING}, required=["a"]),
        [("REQUIRED_CHANGED", "#/required/a", "optional", "required", "R")],
    ),
    (
        "bound",
        schema({"a": STRING | {"maxLength": 5}}),
        schema({"a": STRING | {"maxLength": 3}}),
        [("CONSTRAINT_CHANGED", "#/properties/a/maxLength", "5", "3", "R")],
    ),
    (
        "title, default and tags",
        schema({"a": STRING}),
        schema({"a": STRING | {"title": "A", "default": "", "confluent:tags": ["PII"]}}),
        [
            ("DOC_CHANGED", "#/properties/a", None, "A", ""),
            ("TAGS_CHANGED", "#/properties/a", None, '["PII"]', ""),
            ("DEFAULT_ADDED", "#/properties/a", None, '""', ""),
        ],
    ),
    (
        "values behind $ref",
        schema({"a": {"$ref": "#/definitions/E"}}, definitions={"E": {"enum": ["x", "y"]}}),
        schema({"a": {"$ref": "#/definitions/E"}}, definitions={"E": {"enum": ["x"]}}),
        [("SYMBOL_REMOVED", "#/properties/a/enum", '"y"', None, "R")],
    ),
    (
        "branches",
        {"oneOf": [STRING]},
        {"oneOf": [STRING, {"type": "integer"}]},
        [("BRANCH_ADDED", "#", None, "integer", "W")],
    ),
]


@pytest.mark.parametrize(
    ("previous", "new", "expected"), [row[1:] for row in JSON_ROWS], ids=[row[0] for row in JSON_ROWS]
)
def test_json_schema(previous, new, expected):
    """Keywords are compared at the places that the rules name."""
    assert expected == changes(JSON, previous, new)


REFERRED = [
    (AVRO, record(("a", {"type": "E"})), "E", enum("A"), enum("A", "B"), "a"),
    (JSON, schema({"a": {"$ref": "e.json"}}), "e.json", {"enum": ["A"]}, {"enum": ["A", "B"]}, "#/properties/a/enum"),
    (
        PROTOBUF,
        'syntax = "proto3"; import "e.proto"; message A { E a = 1; }',
        "e.proto",
        'syntax = "proto3"; enum E { A = 0; }',
        'syntax = "proto3"; enum E { A = 0; B = 1; }',
        "#/E/1",
    ),
]


@pytest.mark.parametrize(("schema_format", "text", "name", "one", "other", "path"), REFERRED)
def test_references_are_resolved(schema_format, text, name, one, other, path):
    """Two schemas of the same text differ where their references do."""
    ours, theirs = (
        parse(schema_format, text, [ResolvedReference(name, it if isinstance(it, str) else json.dumps(it), str(it))])
        for it in (one, other)
    )

    assert [(EditKind.SYMBOL_ADDED, path)] == [(it.kind, it.path) for it in difference(ours, theirs).changes]


def test_another_format_is_a_change():
    """Schemas of two formats have one change, which breaks both directions."""
    found = difference(parse(AVRO, record()), parse(JSON, {"type": "object"}))

    assert [("FORMAT_CHANGED", "AVRO", "JSON", "RW")] == [
        (one.kind, one.before, one.after, breaking(one)) for one in found.changes
    ]


def pairs(step, size):
    """Yield pairs of schemas: one in `step` of the recorded answers, and random ones of Avro."""
    texts = []
    for schema_format in SchemaFormat:
        with gzip.open(RECORDED / f"{schema_format.value.lower()}_compat.jsonl.gz", "rt", encoding="utf-8") as lines:
            cases = [json.loads(line) for number, line in enumerate(lines) if number % step == 0]
        for case in cases:
            previous, new = case["previous"][-1:], case["new"]
            if not previous or "references" in previous[0] or "references" in new:
                continue
            yield schema_format, previous[0]["schema"], new["schema"]
            texts += [new["schema"]] if schema_format is AVRO else []
    made = Schemas(Random(17), texts)
    for _ in range(size):
        yield AVRO, *made.pair()


@pytest.mark.parametrize(("step", "size"), [(160, 15), pytest.param(5, 400, marks=pytest.mark.slow)])
def test_the_laws_of_a_difference(step, size):
    """The verdict is the checker's, a change is refused exactly if the verdict is, and nothing differs from itself."""
    seen = 0
    for schema_format, old, text in pairs(step, size):
        try:
            previous, new = parse(schema_format, old), parse(schema_format, text)
        except SchemaParseError:
            continue
        seen += 1
        found = difference(previous, new)
        verdicts = {level: check(new, [Previous(1, previous)], level).compatible for level in Level}
        refused = (any(one.readers.refused for one in found.changes), any(one.writers.refused for one in found.changes))
        assert verdicts == found.verdicts, (old, text)
        assert refused == (not verdicts[Level.BACKWARD], not verdicts[Level.FORWARD]), (old, text)
        itself = difference(new, new)
        assert itself.verdicts[Level.BACKWARD] == (not itself.changes), text  # ambiguous aliases: it cannot read itself
    assert seen > 2 * size


def test_aliases_are_not_called_unseen():
    """An alias counts for the reader that has it: the new schema reads old data by it, the old one does not."""
    found = difference(parse(AVRO, record(("a", INT))), parse(AVRO, record(("b", INT | {"aliases": ["a"]}))))
    (change,) = [one for one in found.changes if one.kind is EditKind.ALIASES_CHANGED]
    assert [change.readers.words, change.writers.words] == [
        "Consumers with the new schema find old data under its name and these aliases.",
        "Consumers with the old schema use its own aliases, not these.",
    ]


DOCS = [
    (AVRO, record(("a", INT)), record(("a", INT | {"doc": "d", "x": 1, "confluent:tags": ["T"]}), doc="r")),
    (JSON, schema({"a": STRING}), schema({"a": STRING | {"title": "A", "x": 1}}, description="d")),
    (PROTOBUF, PROTO % "int32 a = 1;", PROTO % "option deprecated = true; int32 a = 1 [deprecated = true];"),
]


@pytest.mark.parametrize(("schema_format", "previous", "new"), DOCS)
def test_docs_and_attributes_break_nothing(schema_format, previous, new):
    """Changes of texts for people and of unknown attributes are safe in both directions."""
    found = difference(parse(schema_format, previous), parse(schema_format, new))

    assert found.changes
    assert {one.kind for one in found.changes} <= DOC_LIKE
    assert {(Verdict.SAFE, Verdict.SAFE)} == {(one.readers.verdict, one.writers.verdict) for one in found.changes}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


@pytest.mark.parametrize(
    ("previous", "new", "line"),
    [
        (DECIMAL, DECIMAL | {"scale": 3}, "logical type changed: a decimal 9, 2 → decimal 9, 3"),
        (
            MILLIS,
            MILLIS | {"logicalType": "timestamp-micros"},
            "logical type changed: a timestamp-millis → timestamp-micros",
        ),
        (MILLIS, LONG, "logical type changed: a timestamp-millis → (none)"),
    ],
)
def test_what_changes_values_is_not_called_safe(previous, new, line):
    """No rule looks at logical types, but the same bytes become other values: neither direction is called safe."""
    found = difference(*(parse(AVRO, record(("a", {"type": kind}))) for kind in (previous, new)))
    shown = "\n".join(as_lines(found))

    assert line in shown
    assert "safe" not in shown
    assert (Verdict.SILENT, Verdict.SILENT) == (found.readers, found.writers)
    assert found.verdicts[Level.FULL]


def test_white_space_is_no_change():
    """Texts with the same canonical form do not differ."""
    text = json.dumps(record(("a", INT)))

    assert [] == changes(AVRO, text, text.replace(",", " ,\n"))


def test_every_use_of_a_repeated_type_leads_to_its_change():
    """A finding at any use of a type is attached to the change inside the type, whatever use came first."""
    inner, other = item("int"), item("string")
    previous = record(("a", {"type": inner}), ("b", {"type": "I"}))
    new = record(("n", {"type": other, "default": {"x": ""}}), ("b", {"type": "I"}), ("a", {"type": "I"}))

    assert [
        ("FIELD_ADDED", "n", None, 'I = {"x":""}', ""),
        ("ORDER_CHANGED", "", "a, b", "b, a", ""),
        ("TYPE_CHANGED", "b.x", "int", "string", "RW"),
    ] == changes(AVRO, previous, new)


def test_a_check_that_gave_up_calls_nothing_safe():
    """Without a verdict on every part, changes are unknown instead of safe."""
    fields = [(f"f{number}", {"type": record(("x", INT)) | {"name": f"R{number}"}}) for number in range(50)]
    others = [(f"f{number}", {"type": record(("x", LONG)) | {"name": f"R{number}"}}) for number in range(50)]
    found = difference(parse(AVRO, record(*fields)), parse(AVRO, record(*others)), limits=Limits(comparisons=20))

    assert not found.verdicts[Level.BACKWARD]
    assert {Verdict.UNKNOWN} == {one.readers.verdict for one in found.changes if one.kind is EditKind.TYPE_CHANGED}


def nested(schema_format, levels, leaf):
    """Return a schema with levels of nesting, whose leaf has a type."""
    inner = {"type": leaf}
    for number in range(levels):
        if schema_format is AVRO:
            inner = {"type": record(("x", inner)) | {"name": f"R{number}"}}
        else:
            inner = schema({"x": inner})
    return inner["type"] if schema_format is AVRO else inner


def wide(schema_format, number, leaf):
    """Return a schema of many fields, all of which have a type; without one, it has no fields."""
    names = [f"f{field}" for field in range(1, number + 1) if leaf is not None]
    if schema_format is AVRO:
        return record(*((name, leaf) for name in names))
    if schema_format is JSON:
        return schema(dict.fromkeys(names, leaf))
    return PROTO % "".join(f"{leaf} {name} = {name[1:]};" for name in names)


LARGE = [(AVRO, INT, LONG), (JSON, STRING, BOOLEAN), (PROTOBUF, "int32", None)]


@pytest.mark.parametrize("number", [100, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("schema_format", "previous", "new"), LARGE)
def test_large_schemas_are_compared(schema_format, previous, new, number):
    """Ten thousand fields are compared within the time of one request."""
    old, young = (parse(schema_format, wide(schema_format, number, leaf)) for leaf in (previous, new))

    assert number == len(difference(old, young, limits=Limits().started()).changes)


@pytest.mark.parametrize(
    ("schema_format", "levels", "previous", "new"), [(AVRO, 60, "int", "string"), (JSON, 90, "string", "integer")]
)
def test_deep_schemas_are_compared(schema_format, levels, previous, new):
    """Deep nesting is compared within the time of one request."""
    old, young = (parse(schema_format, nested(schema_format, levels, leaf)) for leaf in (previous, new))

    assert 1 == len(difference(old, young, limits=Limits().started()).changes)


def test_the_clock_ends_a_comparison():
    """A difference ends when the time of its limits has run out."""
    one = parse(AVRO, record(("a", INT)))

    with pytest.raises(OutOfTime):
        difference(one, one, limits=Limits().ending_in(-1))


def test_hostile_names_stay_bounded():
    """Long names and lone surrogates give short texts that UTF-8 can encode."""
    name = "\ud800" * 30_000
    found = difference(parse(JSON, schema({name: STRING})), parse(JSON, schema({name: {"type": "null"}})))

    text = json.dumps(as_json(found), ensure_ascii=False)
    assert len(text.encode()) < 20_000


def test_text_and_json():
    """A difference is shown as lines and as JSON values, up to a number of changes."""
    found = difference(parse(AVRO, record(("a", INT))), parse(AVRO, record(("a", LONG), ("b", INT))), version=3)

    assert [
        "BACKWARD incompatible, FORWARD incompatible, FULL incompatible",
        "Consumers with the new schema cannot read all old data.",
        "Consumers with the old schema cannot read all new data.",
        "field added: b int",
        (
            "  readers (breaks): Field 'b' is in the new schema but not in version 3, and it has no default, so what "
            "version 3 wrote could not be read. Add a default to field 'b'."
        ),
        "  writers (safe): Consumers with the old schema skip this field of new data.",
        "and 1 more changes",
    ] == list(as_lines(found, most=1))
    shown = as_json(found, most=1)
    assert (False, 1, 1) == (shown["verdicts"]["BACKWARD"], len(shown["changes"]), shown["more"])
    words = "Consumers with the old schema skip this field of new data."
    assert {"verdict": "safe", "refused": False, "causes": [], "words": words} == shown["changes"][0]["writers"]
