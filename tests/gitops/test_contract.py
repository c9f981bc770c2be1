"""`strata contract` converts subjects to contracts of ODCS 3.1, and contracts to files that can be applied."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from google.protobuf.message_factory import GetMessageClass

from strata.gitops.contracts.quality import conditions_of
from strata.serdes.avro import AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import RuleError, SerdeError
from strata.serdes.json_schema import JsonSerializer
from strata.serdes.protobuf import ProtobufSerializer
from strata.serdes.protobuf.files import find_message, link

ORDER = {
    "type": "record", "name": "Order", "namespace": "shop", "doc": "An order",
    "fields": [
        {"name": "id", "type": "long", "doc": "the id", "confluent:tags": ["PII", "KEY"]},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}}},
    ],
}  # fmt: skip
RULES = {"domainRules": [
    {"name": "positive", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "message.id > 0", "doc": "why"},
    {"name": "secret", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": "WRITEREAD", "tags": ["PII"],
     "params": {"encrypt.kek.name": "k"}},
]}  # fmt: skip
METADATA = {"properties": {"owner": "shop-team", "status": "draft", "tier": "gold"}}

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
team: {name: shop-team}
description: {purpose: Orders of the shop}
schema:
  - name: orders
    logicalType: object
    properties:
      - name: id
        logicalType: integer
        required: true
        classification: restricted
        logicalTypeOptions: {minimum: 1}
      - name: state
        logicalType: string
        required: true
        quality: [{metric: invalidValues, mustBe: 0, arguments: {validValues: [NEW, PAID]}}]
      - name: email
        logicalType: string
        logicalTypeOptions: {pattern: "^.+@.+$", maxLength: 20}
      - name: day
        logicalType: date
    quality:
      - {name: fresh, type: sql, query: select 1, mustBe: 1}
      - {name: paid, type: custom, engine: cel, implementation: message.state != 'X'}
"""


def test_a_subject_as_a_contract_and_back(files, service):
    """Owner, status, descriptions, classifications, types and rules come out of a registry and back into files."""
    text = json.dumps(ORDER)
    service.register("orders-value", text, metadata=METADATA, ruleSet=RULES)

    files.run("contract", "export", "orders-value", "--url", service.url, "--out=odcs.yaml", code=0)
    contract = yaml.safe_load((files.root / "odcs.yaml").read_text())
    files.run("contract", "import", "odcs.yaml", code=0)

    assert ("v3.1.0", "draft", {"name": "shop-team"}) == tuple(contract[k] for k in ("apiVersion", "status", "team"))
    fields = {one["name"]: one for one in contract["schema"][0]["properties"]}
    assert ("PII", ["PII", "KEY"], "the id") == tuple(
        fields["id"][k] for k in ("classification", "tags", "description")
    )
    assert ("timestamp", True, False) == (
        fields["at"]["logicalType"],
        fields["at"]["required"],
        fields["note"]["required"],
    )
    schema = json.loads((files.root / "orders-value.avsc").read_text())
    assert ORDER == schema
    entry = yaml.safe_load((files.root / "strata.yaml").read_text())["subjects"][0]
    assert METADATA["properties"].items() <= entry["metadata"]["properties"].items()
    assert sorted(one["name"] for one in RULES["domainRules"]) == sorted(
        one["name"] for one in entry["rules"]["domainRules"]
    )


NONE = [
    ("AVRO", '"string"', "text cannot be a contract: it is not an Avro record"),
    ("JSON", '{"type": "string"}', "text cannot be a contract: it is not a JSON Schema of an object with properties"),
    ("PROTOBUF", 'syntax = "proto3";\nenum E { A = 0; }\n', "text cannot be a contract: it has no message"),
]


@pytest.mark.parametrize(("kind", "text", "message"), NONE, ids=[row[0] for row in NONE])
def test_a_schema_without_fields(files, service, kind, text, message):
    """A schema that has no named fields cannot be a contract, and the export says so."""
    service.register("text", text, schemaType=kind)
    assert message in files.run("contract", "export", "text", "--url", service.url, code=2)


JSON_ORDER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/order", "title": "Order",
    "description": "An order", "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1, "description": "the id", "confluent:tags": ["PII", "KEY"]},
        "price": {"type": "number", "exclusiveMinimum": 0.5, "multipleOf": 0.25},
        "state": {"type": "string", "enum": ["NEW", "PAID"]},
        "note": {"type": ["string", "null"], "maxLength": 20, "pattern": "^a"},
        "email": {"type": "string", "format": "email", "title": "Mail"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"type": ["integer", "null"]}},
                      "required": ["sku", "n"], "additionalProperties": True, "title": "Line"},
            "minItems": 1, "uniqueItems": True,
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "who": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/person"}]},
        "free": {"type": "object", "maxProperties": 3},
    },
    "required": ["id", "state", "note"], "additionalProperties": False,
    "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
}  # fmt: skip
PROTOBUF_ORDER = """\
syntax = "proto3";
package shop;

import "confluent/meta.proto";
import "google/protobuf/timestamp.proto";

message Order {
  option (confluent.message_meta) = {
    doc: "An order"
  };

  int64 id = 1 [(confluent.field_meta) = {
    doc: "the id",
    tags: [
      "PII",
      "KEY"
    ]
  }];
  optional string note = 2;
  State state = 5;
  repeated Line lines = 7;
  map<string, int64> counts = 8;
  map<string, Line> by_sku = 9;
  google.protobuf.Timestamp at = 10;
  repeated string names = 13;
  Order parent = 15;

  oneof pay {
    string card = 11;
    Order.Inner inner = 12;
  }

  message Inner {
    bytes b = 1;
    Order.Inner.Kind kind = 2;

    enum Kind {
      A = 0;
      B = 1;
    }
  }
}
message Line {
  string sku = 1;
  uint32 n = 2;
}
enum State {
  UNKNOWN = 0;
  NEW = 3;
}
"""


@pytest.mark.parametrize(
    ("kind", "ending", "text"),
    [("JSON", "json", json.dumps(JSON_ORDER)), ("PROTOBUF", "proto", PROTOBUF_ORDER),
     ("AVRO", "avsc", json.dumps({"type": "record", "name": "R", "fields": [
         {"name": "u", "type": ["string", "long"]}, {"name": "m", "type": {"type": "map", "values": "long"}},
         {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
         {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}}]}))],
)  # fmt: skip
def test_each_format_comes_back(files, service, kind, ending, text):
    """Types, nesting, descriptions, tags and options of each format go into a contract and come back the same."""
    service.register("orders", text, schemaType=kind, metadata=METADATA)
    output = files.run("contract", "export", "orders", "--url", service.url, "--out=odcs.yaml", code=0)
    files.run("contract", "import", "odcs.yaml", code=0)

    made = (files.root / f"orders.{ending}").read_text()
    assert service.get("/subjects/orders/versions/latest")["schema"] == made
    assert "left out" not in output
    files.run("plan", "--url", service.url, code=1)  # the id of the contract is new
    files.run("check", "--against", service.url, "--level=FULL", code=0)


UNSAID = [
    ("JSON", {"type": "object", "properties": {"x": {"type": "string", "default": "a", "const": "a"}}, "if": {}}, []),
    ("AVRO", {"type": "record", "name": "R", "aliases": ["Q"], "fields": [
        {"name": "x", "type": "int", "default": 1, "aliases": ["y"], "order": "ignore"},
        {"name": "n", "type": ["null", "string"]}, {"name": "m", "type": ["string", "null"], "default": "a"},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"], "default": "A", "doc": "e"}},
        {"name": "o", "type": {"type": "record", "name": "other.Empty", "fields": []}},
        {"name": "self", "type": ["null", "R"], "default": None},
        {"name": "t", "type": {"type": "long", "x": 1}}]}, []),
    ("PROTOBUF", 'syntax = "proto3";\nmessage A { reserved 2; int32 x = 1 [deprecated = true]; }\nmessage B {}\n',
     ["A: reserved", "x: the option deprecated", "B: a type that A does not use"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "schema", "unsaid"), UNSAID, ids=[row[0] for row in UNSAID])
def test_an_edit_keeps_what_it_does_not_touch(files, service, kind, schema, unsaid):
    """An edited contract makes a schema with the edit, and what only the text of before said is named, both times."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    service.register("s", text, schemaType=kind)
    output = files.run("contract", "export", "s", "--url", service.url, "--out=odcs.yaml", code=0)
    assert [f"s: only strata.schema says {one}; an import of an edited contract leaves it out" for one in unsaid] == (
        output.splitlines()
    )
    contract = yaml.safe_load((files.root / "odcs.yaml").read_text())
    contract["schema"][0]["properties"][0]["description"] = "edited"
    files.put("odcs.yaml", yaml.safe_dump(contract, sort_keys=False))

    output = files.run("contract", "import", "odcs.yaml", code=0)

    assert [f"s: left out {one}, which its schema cannot express" for one in unsaid] == output.splitlines()[:-1]
    made = next(files.root.glob("s.*")).read_text()
    if kind == "PROTOBUF":
        assert 'doc: "edited"' in made
    elif kind == "JSON":
        schema["properties"]["x"]["description"] = "edited"
        assert schema == json.loads(made)
    else:
        schema["fields"][0]["doc"] = "edited"
        assert schema == json.loads(made)


def test_tags_outside_of_the_text_come_back(files, service):
    """Tags and sensitive names in metadata go along, so a rule that encrypts by tag still finds its fields."""
    metadata = {"properties": {"owner": "o"}, "tags": {"Order.note": ["PII"]}, "sensitive": ["owner"]}
    service.register("orders-value", json.dumps(ORDER), metadata=metadata, ruleSet=RULES)
    files.run("contract", "export", "orders-value", "--url", service.url, "--out=odcs.yaml", code=0)

    files.run("contract", "import", "odcs.yaml", code=0)
    files.run("apply", "--url", service.url, code=0)

    latest = service.get("/subjects/orders-value/versions/latest")
    assert [metadata["tags"], ["owner"]] == [latest["metadata"][name] for name in ("tags", "sensitive")]
    encrypting = next(one for one in latest["ruleSet"]["domainRules"] if one["type"] == "ENCRYPT")
    assert set(encrypting["tags"]) & {tag for tags in latest["metadata"]["tags"].values() for tag in tags}


REFERRING = [
    ("AVRO", {"name": "shop.Money", "subject": "part", "version": 1},
     '{"type": "record", "name": "Money", "namespace": "shop", "fields": []}',
     '{"type": "record", "name": "R", "fields": [{"name": "m", "type": "shop.Money"}, {"name": "n", "type": "int"}]}'),
    ("PROTOBUF", {"name": "part.proto", "subject": "part", "version": 1},
     'syntax = "proto3"; message Money {}', 'syntax = "proto3"; import "part.proto"; message R { Money m = 1; }'),
    ("JSON", {"name": "part.json", "subject": "part", "version": 1},
     '{"type": "object"}', '{"type": "object", "properties": {"m": {"$ref": "part.json"}}}'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "reference", "part", "text"), REFERRING, ids=[row[0] for row in REFERRING])
def test_references_come_back(files, service, kind, reference, part, text):
    """What a schema refers to is in the manifest of the import, and its plan changes no schema."""
    service.register("part", part, schemaType=kind)
    service.register("s", text, schemaType=kind, references=[reference])
    files.run("contract", "export", "s", "--url", service.url, "--out=odcs.yaml", code=0)

    files.run("contract", "import", "odcs.yaml", code=0)
    files.run("apply", "--url", service.url, code=0)

    latest = service.get("/subjects/s/versions/latest")
    assert [reference] == latest["references"]
    assert service.get("/subjects/s/versions/1")["schema"] == latest["schema"]


FOREIGN = """
apiVersion: v3.2.0
kind: DataContract
id: one
name: Orders
version: 2.0.0
servers: [{server: s, type: kafka}]
roles: [{role: reader}]
team: {name: shop, members: [{username: ada}]}
schema:
  - name: orders
    dataGranularityDescription: one row
    properties:
      - {name: id, logicalType: integer, primaryKey: true, unique: true, physicalName: ORDER_ID}
      - {name: state, logicalType: string, required: true, enum: [{value: NEW}, {value: PAID, label: Paid}]}
      - {name: level, logicalType: integer, required: true, enum: [{value: 1}, {value: 2}]}
      - {name: payload, logicalType: object, required: true}
      - name: counts
        logicalType: map
        required: true
        map: {key: {logicalType: string}, value: {logicalType: integer, required: true}}
      - {name: price, logicalType: number, logicalTypeOptions: {minimum: 0, multipleOf: 2}}
"""
UNTAKEN = ["team.members", "schema[0].dataGranularityDescription",
           "schema[0].properties[0].primaryKey", "schema[0].properties[0].unique",
           "schema[0].properties[0].physicalName", "schema[0].properties[1].enum[1].label"]  # fmt: skip


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_no_key_goes_unread_without_a_word(files, kind):
    """An import names each key that it does not take; values, maps and objects of ODCS 3.2 keep their meaning."""
    files.put("odcs.yaml", FOREIGN)

    output = files.run("contract", "import", "odcs.yaml", "--type", kind, code=0)

    more = [] if kind == "JSON" else ["schema[0].properties[5].logicalTypeOptions.multipleOf"]
    taken = [f"odcs.yaml: left out {path}, which an import does not take" for path in [*UNTAKEN, *more]]
    assert taken == [line for line in output.splitlines() if line.startswith("odcs.yaml")]
    text = next(files.root.glob("orders-value.*")).read_text()
    manifest = (files.root / "strata.yaml").read_text()
    if kind == "JSON":
        inner = json.loads(text)["properties"]
        assert [["NEW", "PAID"], [1, 2]] == [inner[name]["enum"] for name in ("state", "level")]
        assert [{"type": "object"}, {"type": "object", "additionalProperties": {"type": "integer"}}] == [
            inner["payload"], inner["counts"],
        ]  # fmt: skip
        return
    assert "message.level in [1, 2]" in manifest
    assert 'message.state in ["NEW", "PAID"]' in manifest
    assert "its object" in output
    if kind == "PROTOBUF":
        assert "map<string, int64> counts" in text
    else:
        fields = {one["name"]: one["type"] for one in json.loads(text)["fields"]}
        assert {"type": "map", "values": "long"} == fields["counts"]
        assert ("record", []) == (fields["payload"]["type"], fields["payload"]["fields"])


def faults_of(contract):
    """Return what the JSON Schema of the standard, as its own package has it, finds wrong in a contract."""
    standard = pytest.importorskip("open_data_contract_standard")
    judge = jsonschema_rs.validator_for(json.loads((Path(standard.__file__).with_name("schema.json")).read_text()))
    return [error.message for error in judge.iter_errors(contract)]


def test_an_export_is_a_contract_of_the_standard(files, service):
    """What is exported of each format is valid by the JSON Schema of the standard, as its own package has it."""
    texts = {"AVRO": json.dumps(ORDER), "JSON": json.dumps(JSON_ORDER), "PROTOBUF": PROTOBUF_ORDER}
    metadata = {**METADATA, "tags": {"**.note": ["PII"]}}
    for kind, text in texts.items():
        service.register(kind, text, schemaType=kind, metadata=metadata, ruleSet=RULES)
        made = yaml.safe_load(
            files.run("contract", "export", kind, "--url", service.url, code=0).partition("\nPROTOBUF: only")[0]
        )
        assert [] == faults_of(made)


def test_a_contract_of_others_is_enforced(files, service):
    """A contract's quality becomes rules that a serializer runs; what is about all rows is named and left out."""
    files.put("odcs.yaml", CONTRACT)

    output = files.run("contract", "import", "odcs.yaml", code=0)
    files.run("apply", "--url", service.url, code=0)

    assert "orders-value: left out the check fresh, which takes more than one record" in output
    value = {"id": 1, "state": "NEW", "email": None, "day": None}
    with RegistryClient(service.url) as client:
        serializer = AvroSerializer(client, conf={"auto.register.schemas": False, "use.latest.version": True})
        serializer(value, topic="orders")
        for wrong in (
            {"id": 0},
            {"state": "OLD"},
            {"email": "nobody"},
            {"email": "someone@example.example"},
            {"state": "X"},
        ):
            with pytest.raises(RuleError):
                serializer({**value, **wrong}, topic="orders")
        serializer({**value, "email": "a@b"}, topic="orders")
    latest = service.get("/subjects/orders-value/versions/latest")
    assert "Orders of the shop" == json.loads(latest["schema"])["doc"]
    assert ["restricted"] == json.loads(latest["schema"])["fields"][0]["confluent:tags"]


def test_a_contract_of_others_as_json_schema(files, service):
    """With --type=JSON the bounds, patterns and values of a contract are in the schema, and other checks are rules."""
    files.put("odcs.yaml", CONTRACT)
    files.run("contract", "import", "odcs.yaml", "--type=json", code=0)
    files.run("apply", "--url", service.url, code=0)

    tree = json.loads((files.root / "orders-value.json").read_text())
    assert {"type": "integer", "minimum": 1, "confluent:tags": ["restricted"]} == tree["properties"]["id"]
    assert (["NEW", "PAID"], ["id", "state"]) == (tree["properties"]["state"]["enum"], tree["required"])
    assert {"type": "string", "format": "date"} == tree["properties"]["day"]
    rules = service.get("/subjects/orders-value/versions/latest")["ruleSet"]["domainRules"]
    assert ["paid"] == [one["name"] for one in rules]
    with RegistryClient(service.url) as client:
        conf = {"auto.register.schemas": False, "use.latest.version": True}
        serializer = JsonSerializer(client, json.dumps(tree), conf=conf)
        serializer({"id": 1, "state": "NEW"}, topic="orders")
        for wrong in ({"id": 0}, {"state": "OLD"}, {"email": "nobody"}):
            with pytest.raises(SerdeError):
                serializer({"id": 1, "state": "NEW", **wrong}, topic="orders")


def test_a_contract_of_others_as_protobuf(files, service):
    """With --type=PROTOBUF the checks are rules, which hold for a field that is not set."""
    files.put("odcs.yaml", CONTRACT)
    files.run("contract", "import", "odcs.yaml", "--type=PROTOBUF", code=0)
    files.run("apply", "--url", service.url, code=0)

    text = (files.root / "orders-value.proto").read_text()
    assert "  string state = 2;\n  optional string email = 3;\n  google.type.Date day = 4;\n" in text
    order = message_of(text)
    with RegistryClient(service.url) as client:
        conf = {"auto.register.schemas": False, "use.latest.version": True}
        serializer = ProtobufSerializer(client, order, conf=conf)
        serializer(order(id=1, state="NEW"), topic="orders")
        serializer(order(id=1, state="NEW", email="a@b"), topic="orders")
        for wrong in ({"id": 0}, {"state": "OLD"}, {"email": "nobody"}, {"email": "someone@example.example"}):
            with pytest.raises(RuleError):
                serializer(order(**{"id": 1, "state": "NEW", **wrong}), topic="orders")


def message_of(text):
    """Return the class of the first message of a schema."""
    return GetMessageClass(find_message(link(Schema(text, "PROTOBUF"), {}), (0,)))


ODCS = "apiVersion: v3.1.0\nid: one\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [("a: b", "apiVersion of v3"), ("- a", "apiVersion of v3"), ("{", "odcs.yaml: "),
     (ODCS + "schema: [x]", "schema[0]: expected a mapping"), (ODCS + "schema: []", "at least one schema"),
     (ODCS + "schema: x", "schema: expected a list"), ("apiVersion: v3.1.0\nschema: []", "id: expected a text"),
     (ODCS + "schema: [{name: a, properties: [{logicalType: string}]}]", "schema[0].properties[0]: expected a `name`"),
     (ODCS + "schema: [{name: a, properties: [{name: b, tags: x}]}]", "schema[0].properties[0].tags: expected a list"),
     (ODCS + "schema: [{name: a, properties: [{name: b, logicalTypeOptions: {minLength: x}}]}]",
      "schema[0].properties[0].logicalTypeOptions.minLength: expected a number, got 'x'"),
     (ODCS + "schema: [{name: a, properties: [{name: b, items: [c]}]}]", "properties[0].items: expected a mapping"),
     (ODCS + "schema: [{name: a, quality: [{arguments: x}]}]", "schema[0].quality[0].arguments: expected a mapping"),
     (ODCS + "customProperties: [{value: x}]", "customProperties[0]: expected a `property`"),
     (ODCS + "schema: [{name: a, properties: [{name: b}, {name: b}]}]", "a-value: the contract makes no valid"),
     (ODCS + "schema: [{name: a, properties: [{name: b}]}, {name: a, properties: [{name: c}]}]", "subject a-value")],
)  # fmt: skip
def test_no_contract(files, text, message):
    """A file that is not a contract ends with exit code 2 and the reason."""
    files.put("odcs.yaml", text)
    assert message in files.run("contract", "import", "odcs.yaml", code=2)
    assert not (files.root / "strata.yaml").exists()


def test_names_that_begin_with_a_digit(files):
    """A name of a contract becomes one that the format allows, in the schema and its rules."""
    files.put("odcs.yaml", ODCS + "schema: [{name: 1a, properties: [{name: 2b, logicalType: integer, "
              "logicalTypeOptions: {minimum: 0}}]}]")  # fmt: skip
    for kind in ("avro", "protobuf"):
        files.run("contract", "import", "odcs.yaml", "--folder", kind, "--type", kind, code=0)
        files.run("check", f"{kind}/strata.yaml", code=0)
        assert "message._2b" in (files.root / kind / "strata.yaml").read_text()


def test_checks_that_one_record_decides():
    """Checks of missing and null values have conditions; those that some rows may fail are about all rows."""
    field = {"logicalType": "string", "quality": [
        {"metric": "nullValues", "mustBe": "0"},
        {"metric": "missingValues", "mustBe": 0, "arguments": {"missingValues": ["", "n/a"]}},
        {"metric": "nullValues", "mustBeLessThan": 5, "unit": "percent"},
        {"metric": "nullValues", "mustBeLessThan": "1"},
        {"metric": "nullValues", "mustBeLessThan": 1, "unit": "percent"},
        {"metric": "nullValues", "mustBeLessOrEqualTo": 0, "unit": "percent"},
        {"metric": "rowCount", "mustBeGreaterThan": 1},
        {"type": "text", "description": "nice"},
    ]}  # fmt: skip
    rules, left_out = conditions_of(("a", "b"), field, nullable=True)
    missing = 'message.a.b == null || !(message.a.b in ["", "n/a"])'
    assert ["message.a.b != null", missing, *["message.a.b != null"] * 2] == [rule["expr"] for rule in rules]
    assert ["a.b.nullValues", "a.b.nullValues", "a.b.rowCount", "a.b.quality8"] == left_out


AROUND = """
apiVersion: v3.1.0
kind: DataContract
id: one
status: active
name: Orders
version: 2.0.0
domain: sales
tags: [gold]
servers:
  - {server: production, type: kafka, host: "broker:9092", format: avro}
  - {server: copy, type: postgres, host: db, port: 5432, database: shop, schema: public}
roles: [{role: reader, access: read, firstLevelApprovers: ada}]
slaProperties: [{property: latency, value: 4, unit: d, element: orders.id}]
price: {priceAmount: 9.95, priceCurrency: EUR, priceUnit: megabyte}
support: [{channel: "#orders", url: "https://chat.example/orders"}]
schema:
  - {name: orders, properties: [{name: id, logicalType: integer, required: true}]}
"""


def test_what_is_around_a_schema_is_kept(files, service):
    """Servers, roles, service levels, prices and the like go into metadata, and an export has them again."""
    files.put("odcs.yaml", AROUND)
    output = files.run("contract", "import", "odcs.yaml", code=0)
    entry = yaml.safe_load((files.root / "strata.yaml").read_text())["subjects"][0]
    metadata = entry["metadata"]
    service.register("orders-value", (files.root / "orders-value.avsc").read_text(), metadata=metadata)

    files.run("contract", "export", "orders-value", "--url", service.url, "--out=again.yaml", code=0)

    assert "left out" not in output
    again = yaml.safe_load((files.root / "again.yaml").read_text())
    before = yaml.safe_load(AROUND)
    around = [name for name in before if name != "schema"]
    assert {name: before[name] for name in around} == {name: again[name] for name in around}
    assert [] == faults_of(again)
