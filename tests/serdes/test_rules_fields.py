"""Field rules apply to the tagged fields, and expressions see the right values."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Metadata, Reference, Rule, RuleSet, Schema
from strata.serdes.errors import EncodeError, RuleError
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.protobuf.files import link, text_of
from strata.serdes.protobuf.rule_values import inline_tags
from strata.serdes.rules.fields import matches

PII = frozenset({"PII"})


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "aXb", False),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.**", "a.b.c", True),
        ("**.c", "a.b.c", True),
        ("**.*", "a.b.c", True),
        ("a*", "a", True),
        ("a?c", "abc", True),
        ("a?c", "a.c", False),
        ("**", "anything.at.all", True),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        ("a(b|c)+$", "ab", False),
        ("*" * 5000 + "x", "a" * 5000, False),
        ("*a" * 1000 + "b", "a" * 1000, False),
        ("*?" * 1000, "a" * 1000, True),
        ("**x*y", "x.xy", True),
        ("***", "a.b", True),
        ("", "", True),
        ("", "a", False),
        ("a.**.*", "a.b", True),
        ("a\\", "a\\", True),
    ],
)
def test_wildcards(pattern, name, expected):
    """A path in the metadata's tags selects these fields; it may use wildcards, and other characters are literal."""
    assert expected is matches(pattern, name)


def seen(client, topic, make, schema, value, tags=(), **more):
    """Return names, types, tags and values of the fields that a rule applies to."""
    found = []

    class Look:
        def field_transform(self, context):
            def look(field, inner):
                found.append((field.full_name, field.type_name, sorted(field.tags), inner))
                return inner

            return look

    rule = Rule(name="look", type="LOOK", mode="WRITE", tags=frozenset(tags))
    text, form, references = schema
    ruled = Schema(text, form, references, more.get("metadata"), RuleSet(domain_rules=(rule,)))
    client.register(f"{topic}-value", ruled)
    conf = {"rule.executors": {"LOOK": lambda *_: Look()}, "auto.register.schemas": False, "use.latest.version": True}
    make(client, ruled, conf)(value, topic=topic)
    return found


NODE = {
    "type": "record",
    "name": "Node",
    "namespace": "a",
    "fields": [
        {"name": "id", "type": "int", "confluent:tags": ["ID", "PII"]},
        {"name": "raw", "type": {"type": "map", "values": "bytes"}, "confluent:tags": ["PII"]},
        {"name": "many", "type": {"type": "array", "items": ["null", "string", "Node"]}, "default": []},
        {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["A", "B"]}, "default": "A"},
        {"name": "other", "type": {"type": "record", "name": "b.Other", "fields": [{"name": "x", "type": "double"}]}},
        {"name": "next", "type": ["null", "Node"], "default": None, "confluent:tags": ["PII"]},
    ],
}


def node(number, **more):
    """Return a value of the node."""
    return {"id": number, "raw": {"k": b"x"}, "suit": "B", "other": {"x": 0.5}, **more}


AVRO_CASES = {
    "by inline tags": (
        {"tags": ["PII"]},
        [
            ("a.Node.id", "INT", ["ID", "PII"], 1),
            ("a.Node.raw", "BYTES", ["PII"], b"x"),
            ("a.Node.next", "NULL", ["PII"], None),
        ],
    ),
    "by wildcards of the metadata": (
        {"tags": ["X"], "metadata": Metadata(tags={"**.x": frozenset({"X"}), "a.Node.s*": frozenset({"X", "Y"})})},
        [("a.Node.suit", "ENUM", ["X", "Y"], "B"), ("b.Other.x", "DOUBLE", ["X"], 0.5)],
    ),
    "without tags": (
        {},
        [
            ("a.Node.id", "INT", ["ID", "PII"], 1),
            ("a.Node.raw", "BYTES", ["PII"], b"x"),
            ("a.Node.suit", "ENUM", [], "B"),
            ("b.Other.x", "DOUBLE", [], 0.5),
            ("a.Node.next", "NULL", ["PII"], None),
        ],
    ),
}


@pytest.mark.parametrize("case", AVRO_CASES)
def test_fields_of_avro(client, case):
    """Each leaf counts as its record's field, through any number of arrays, maps and unions."""
    more, expected = AVRO_CASES[case]
    make = lambda client, schema, conf: AvroSerializer(client, schema, conf=conf)  # noqa: E731

    found = seen(client, f"avro-{case}", make, (json.dumps(NODE), "AVRO", ()), node(1, next=None), **more)

    assert expected == found


def test_fields_of_avro_inside_unions(client):
    """Values in unions are followed, with their branch hints, and keep their form."""
    make = lambda client, schema, conf: AvroSerializer(client, schema, conf=conf)  # noqa: E731
    value = node(1, many=[None, "x", ("a.Node", node(2)), node(3)], next=node(4))

    found = seen(client, "avro-unions", make, (json.dumps(NODE), "AVRO", ()), value, ["ID"])

    assert [1, 2, 3, 4] == [one for *_, one in found]


def test_a_value_of_no_union(client):
    """Rules skip a value that fits no type of a union; the encoder refuses it."""
    text = '{"type": "record", "name": "U", "fields": [{"name": "u", "type": ["null", "string"]}]}'
    rule = Rule(name="all", type="CEL_FIELD", mode="WRITE", expr="value + 'x'")

    with pytest.raises(EncodeError, match="expected a string, got int"):
        AvroSerializer(client, Schema(text, rule_set=RuleSet(domain_rules=(rule,))))({"u": 5}, topic="no-union")


JSON = {
    "type": "object",
    "properties": {
        "id": {"type": ["null", "integer"], "confluent:tags": ["PII"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "confluent:tags": ["L"]},
        "money": {"$ref": "money.json"},
        "by": {"oneOf": [{"$ref": "#/$defs/mail"}, {"type": "string"}], "confluent:tags": ["PII"]},
        "any": {"anyOf": [{"type": "number"}, {"type": "boolean"}]},
        "pair": {"type": "array", "items": [{"type": "string"}, {"type": "boolean"}]},
        "kind": {"enum": ["a", "b"]},
        "free": {"type": "object"},
        "gone": {"type": "string"},
        "nothing": {"type": ["null", "string"]},
        "mixed": {"type": ["integer", "string"]},
    },
    "allOf": [{"properties": {"extra": {"type": "string"}}}],
    "$defs": {
        "line": {"type": "object", "properties": {"a~/b": {"type": "number"}}},
        "mail": {
            "type": "object",
            "properties": {"to": {"type": "string", "confluent:tags": ["PII"]}},
            "required": ["to"],
        },
    },
}
ORDER = {
    "id": 1,
    "lines": [{"a~/b": 1.5}, {"a~/b": 2}],
    "money": {"cents": 5},
    "by": {"to": "x"},
    "any": True,
    "pair": ["p", False, 3],
    "kind": "a",
    "free": {"a": 1},
    "nothing": None,
    "mixed": "m",
    "extra": "e",
    "unknown": "u",
}


def test_fields_of_json(client):
    """Properties are fields by their path, through references, branches and arrays; a null is not a field."""
    money = Schema('{"properties": {"cents": {"type": "integer"}}}', "JSON")
    references = (Reference("money.json", "fields-money", client.register("fields-money", money).version),)
    make = lambda client, schema, conf: JsonSerializer(client, schema, conf=conf)  # noqa: E731

    found = seen(client, "json-fields", make, (json.dumps(JSON), "JSON", references), ORDER)

    assert [
        ("$.any", "BOOLEAN", [], True),
        ("$.by.to", "STRING", ["PII"], "x"),
        ("$.extra", "STRING", [], "e"),
        ("$.id", "INT", ["PII"], 1),
        ("$.kind", "ENUM", [], "a"),
        ("$.lines.a~/b", "DOUBLE", [], 1.5),
        ("$.lines.a~/b", "DOUBLE", [], 2),
        ("$.mixed", "STRING", [], "m"),
        ("$.money.cents", "INT", [], 5),
        ("$.pair", "BOOLEAN", [], False),
        ("$.pair", "STRING", [], "p"),
    ] == sorted(found)


@pytest.mark.parametrize(
    ("key", "uri"), [("$id", "https://x.org/a/order.json"), ("$id", "order.json"), ("id", "http://x.org/o")]
)
def test_json_under_a_name_of_its_own(client, key, uri):
    """References that use the schema's own name are followed too, also out of branches."""
    text = {"type": "string"}
    by = {"oneOf": [{"$ref": "#/definitions/mail"}, {"$ref": f"{uri}#/definitions/name"}]}
    definitions = {
        "mail": {"type": "object", "properties": {"to": text}, "required": ["to"]},
        "name": {"type": "object", "properties": {"name": {"$ref": "#/definitions/text"}}, "required": ["name"]},
        "text": text,
    }
    dialect = {"$schema": "http://json-schema.org/draft-04/schema#"} if key == "id" else {}
    document = {key: uri, **dialect, "type": "object", "properties": {"by": by}, "definitions": definitions}
    rules = RuleSet(domain_rules=(Rule(name="all", type="CEL_FIELD", mode="WRITE", expr="value + '!'"),))
    serialize = JsonSerializer(client, Schema(json.dumps(document), "JSON", rule_set=rules))
    read = JsonDeserializer(client)

    for inner in ("to", "name"):
        assert {"by": {inner: "x!"}} == read(serialize({"by": {inner: "x"}}, topic=f"named-{uri[-1]}"))


def test_a_reference_of_json_that_leads_nowhere(client):
    """A reference that rules cannot follow fails the record: it might lead to a tagged field."""
    text = '{"properties": {"a": {"$ref": "#name"}}, "definitions": {"x": {"$id": "#name", "type": "string"}}}'
    rule = Rule(name="all", type="CEL_FIELD", mode="WRITE", expr="value")
    schema = Schema(text, "JSON", rule_set=RuleSet(domain_rules=(rule,)))

    with pytest.raises(RuleError, match=r"cannot resolve the \$ref '#name'"):
        JsonSerializer(client, schema)({"a": "x"}, topic="anchors")


PROTO = """syntax = "proto3"; package shop; import "confluent/meta.proto"; import "google/protobuf/timestamp.proto";
message Order {
  int32 id = 1 [(confluent.field_meta) = {tags: ["ID", "PII"]}];
  optional string note = 2 [(confluent.field_meta).tags = "PII"];
  repeated bytes raw = 3 [(confluent.field_meta).tags = "PII"];
  map<string, Line> lines = 4;
  map<string, string> names = 5 [(confluent.field_meta).tags = "PII"];
  google.protobuf.Timestamp at = 6 [(confluent.field_meta).tags = "PII"];
  enum Kind { A = 0; B = 1; }
  Kind kind = 7;
  oneof by { string mail = 8 [(confluent.field_meta).tags = "PII"]; int32 phone = 9; }
  message Line { double sum = 1 [(confluent.field_meta).tags = "PII"]; }
}
"""


def order(**fields):
    """Return a message of the class that generated code would have."""
    kind = GetMessageClass(link(Schema(PROTO, "PROTOBUF"), {}).message_types_by_name["Order"])
    return ParseDict(fields, kind())


def test_fields_of_protobuf(client):
    """Fields that are set are visited, in maps and lists too; the caller's message does not change."""
    message = order(
        id=1, raw=["eA=="], lines={"k": {"sum": 0.5}}, names={"a": "b"}, kind="B", mail="m", at="2026-01-01T00:00:00Z"
    )
    before = message.SerializeToString(deterministic=True)
    make = lambda client, schema, conf: ProtobufSerializer(client, type(message), conf=conf)  # noqa: E731

    found = seen(client, "proto-fields", make, (PROTO, "PROTOBUF", ()), message, ["PII"])

    assert [
        ("shop.Order.Line.sum", "DOUBLE", ["PII"], 0.5),
        ("shop.Order.at", "LONG", ["PII"], message.at),
        ("shop.Order.id", "INT", ["ID", "PII"], 1),
        ("shop.Order.mail", "STRING", ["PII"], "m"),
        ("shop.Order.names", "MAP", ["PII"], "b"),
        ("shop.Order.raw", "BYTES", ["PII"], b"x"),
    ] == sorted(found, key=lambda one: one[0])
    assert before == message.SerializeToString(deterministic=True)


def test_tags_in_a_descriptor():
    """A schema registered as a descriptor, as Confluent's serializer does, has its tags too."""
    file = link(Schema(PROTO, "PROTOBUF"), {})

    expected = {
        "shop.Order.id": {"ID", "PII"},
        **{f"shop.Order.{name}": {"PII"} for name in ("note", "raw", "names", "at", "mail", "Line.sum")},
    }
    assert expected == inline_tags(Schema(PROTO, "PROTOBUF"), {}) == inline_tags(Schema(text_of(file), "PROTOBUF"), {})


LOGICAL = {
    "type": "record",
    "name": "Times",
    "fields": [
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "millis", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {
            "name": "fix",
            "type": {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 1},
        },
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "two", "type": {"type": "fixed", "name": "Two", "size": 2}},
        {"name": "n", "type": "int"},
    ],
}
TIMES = {
    "on": date(2026, 3, 1),
    "at": datetime(2026, 3, 1, 12, 30, 0, 7, UTC),
    "millis": datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
    "local": datetime(2026, 3, 1, 12, 30),  # noqa: DTZ001 - local
    "clock": time(9, 30),
    "sum": Decimal("12.34"),
    "fix": Decimal("-0.5"),
    "key": UUID(int=5),
    "raw": b"\x00\xff",
    "two": b"\xfe\x01",
    "n": 4,
}


@pytest.mark.parametrize("mode", ["WRITE", "READ"])
@pytest.mark.parametrize(
    ("kind", "expr"),
    [
        pytest.param("CEL", "message", id="CEL"),
        pytest.param("CEL", "{" + ", ".join(f"'{name}': message.{name}" for name in TIMES) + "}", id="CEL, each"),
        pytest.param("JSONATA", "$", id="JSONATA"),
        pytest.param("JSONATA", "$merge([$, {'n': n / 2 * 2}])", id="JSONATA, merged"),
    ],
)
def test_logical_types_come_through(client, kind, expr, mode):
    """A value that an expression returns unchanged keeps its type, whatever the language converts it to meanwhile."""
    rule = Rule(name="same", type=kind, mode=mode, expr=expr)
    schema = Schema(json.dumps(LOGICAL), rule_set=RuleSet(domain_rules=(rule,)))

    frame = AvroSerializer(client, schema)(TIMES, topic=f"logical-{mode}-{abs(hash(expr))}")

    assert TIMES == AvroDeserializer(client)(frame)
    assert list(map(type, TIMES.values())) == [type(AvroDeserializer(client)(frame)[name]) for name in TIMES]


@pytest.mark.parametrize(
    ("kind", "expr"),
    [
        ("CEL", "message.at > timestamp('2026-01-01T00:00:00Z') && message.at < now"),
        ("CEL", "message.at.getFullYear() == 2026 && message.local.getHours() == 12"),
        ("CEL", "message.clock == duration('9h30m') && message.on == 20513"),
        ("CEL", "double(message.sum) > 12.3 && message.key.isUuid() && message.raw == b'\\x00\\xff'"),
        (
            "CEL",
            "'a@b.org'.isEmail() && !'a@'.isEmail() && 'x.org'.isHostname() && '::1'.isIpv6() && !'1.2.3'.isIpv4()",
        ),
        ("CEL", "'https://x.org/a'.isUri() && !'a'.isUri() && 'a'.isUriRef() && 'Ab'.lowerAscii() == 'ab'"),
        ("CEL", "';' == ';' ; ';' != ''"),
        ("JSONATA", "$toMillis('2026-03-01T12:30:00.000Z') = millis and on = 20513 and clock = 34200000"),
        ("JSONATA", "$number(sum) = 12.34 and fix = '-0.5' and $length(raw) = 2 and $contains(key, /5$/)"),
    ],
)
def test_what_expressions_see(client, kind, expr):
    """CEL sees values in its own types where it has them; JSONata sees numbers and strings."""
    rule = Rule(name="seen", type=kind, kind="CONDITION", mode="WRITE", expr=expr)
    serialize = AvroSerializer(client, Schema(json.dumps(LOGICAL), rule_set=RuleSet(domain_rules=(rule,))))

    assert serialize(TIMES, topic=f"seen-{abs(hash(expr))}") is not None


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        pytest.param("shop.Order{id: message.id + 1}", {"id": 8}, id="a message"),
        pytest.param("{'id': message.id, 'raw': [b'x']}", {"id": 7, "raw": ["eA=="]}, id="a map"),
        pytest.param("{'at': message.at}", {"at": "2026-01-01T00:00:00Z"}, id="a timestamp"),
        pytest.param("{'id': null, 'note': 'x'}", {"note": "x"}, id="null is not set"),
        pytest.param("has(message.note) ? message : {'note': 'none'}", {"note": "none"}, id="what is not set"),
        pytest.param("{'nosuch': 1}", None, id="a field that is not there"),
        pytest.param("{'id': 'x'}", None, id="a value that does not fit"),
    ],
)  # fmt: skip
def test_messages_in_cel(client, expr, expected):
    """CEL sees a Protobuf message as a message; the expression returns the whole new message."""
    message, topic = order(id=7, at="2026-01-01T00:00:00Z"), f"messages-{abs(hash(expr))}"
    rule = Rule(name="made", type="CEL", mode="WRITE", expr=expr)
    client.register(f"{topic}-value", Schema(PROTO, "PROTOBUF", rule_set=RuleSet(domain_rules=(rule,))))
    serialize = ProtobufSerializer(client, type(message), {"auto.register.schemas": False, "use.latest.version": True})

    if expected is None:
        with pytest.raises(RuleError, match=r"expected a shop\.Order"):
            serialize(message, topic=topic)
    else:
        read = ProtobufDeserializer(client)(serialize(message, topic=topic))
        assert expected == MessageToDict(read)


def test_rules_before_the_reader_schema(client):
    """The writer schema's rules run over the written value; then the value is resolved to the reader schema."""
    rule = Rule(name="mask", type="CEL_FIELD", mode="READ", tags=PII, expr="value + '!'")
    tagged, n = {"name": "a", "type": "string", "confluent:tags": ["PII"]}, {"name": "n", "type": "int"}
    text = json.dumps({"type": "record", "name": "R", "fields": [tagged, n]})
    renamed = {"name": "b", "type": "string", "aliases": ["a"]}
    wanted = json.dumps({"type": "record", "name": "R", "fields": [n, renamed]})
    frame = AvroSerializer(client, Schema(text, rule_set=RuleSet(domain_rules=(rule,))))(
        {"a": "x", "n": 1}, topic="first"
    )

    assert {"n": 1, "b": "x!"} == AvroDeserializer(client, wanted)(frame, topic="first")


def test_json_is_validated_after_its_rules(client):
    """The schema validates the result of a rule, in writing and in reading."""
    text = '{"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}'
    rules = (Rule(name="more", type="CEL_FIELD", expr="value + 5"),)
    serialize = JsonSerializer(client, Schema(text, "JSON", rule_set=RuleSet(domain_rules=rules)))
    read = JsonDeserializer(client)

    assert {"n": 9} == read(serialize({"n": -1}, topic="valid"))
    for call, value in ((serialize, {"n": 5}), (lambda frame, topic: read(frame), serialize({"n": 4}, topic="valid"))):
        with pytest.raises(Exception, match="expected a number of at most 9"):
            call(value, topic="valid")
