"""Command-line tools and engines: the calls of Confluent's command line, Terraform's provider, ksqlDB, kcat and others.

The sources and versions from which the calls were taken are in README.md.
"""

import re

import pytest

from harness.consoles import ANY, Holds, Saved, Step, Tool, Without, replay
from strata.registry.core.errors import access_denied

VND = "application/vnd.schemaregistry.v1+json"
# Generated Go clients write quality as `qs`, which is not a parameter of HTTP.
GENERATED = f"{VND},application/vnd.schemaregistry+json; qs=0.9,application/json; qs=0.5"
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
ORDER_2 = ORDER.replace("]}", ',{"name":"note","type":"string","default":""}]}')
BROKEN = ORDER.replace("long", "string")
BASKET = '{"type":"record","name":"Basket","fields":[{"name":"order","type":"Order"}]}'
RULE = {"name": "positive", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "message.id > 0"}
TO_ORDER = [{"name": "Order", "subject": "cli-order", "version": 1}]
DEK = "/dek-registry/v1/keks/tf/deks/tf%2Forder/versions/1"
KEK = {"name": "tf", "kmsType": "aws-kms", "kmsKeyId": "arn:aws:kms:1"}


def error(code):
    """Return what tools read of an error: a number of an exact value, and a text."""
    return {"error_code": code, "message": str}


CLI = Tool(
    "Confluent's command line",
    headers={"Accept": GENERATED, "User-Agent": "Confluent-CLI/v4.0 (https://confluent.cloud)",
             "Accept-Encoding": "gzip"},
    with_body={"Content-Type": "application/json"},
    steps=[
        Step("reach the registry", "GET /", {}),
        Step("cluster list", "GET /v1/metadata/id", {"scope": {"clusters": dict}}),
        Step("schema create", "POST /subjects/cli-order/versions?normalize=false", {"id": int}, 200,
             {"schema": ORDER, "schemaType": "AVRO", "references": [], "metadata": None, "ruleSet": None},
             save="order"),
        Step("schema create --references", "POST /subjects/%3A.cli%3Abasket/versions?normalize=true", error(42201), 422,
             {"schema": BASKET, "schemaType": "AVRO", "references": TO_ORDER}),
        Step("schema create --references", "POST /subjects/cli-basket/versions?normalize=true", {"id": int}, 200,
             {"schema": BASKET, "schemaType": "AVRO", "references": TO_ORDER}),
        Step("schema create in a context", "POST /subjects/:.cli:order/versions?normalize=false", {"id": 1}, 200,
             {"schema": ORDER}),
        Step("schema describe ID", "GET /schemas/ids/{order}?subject=", {"schema": ORDER}),
        Step("schema describe --subject --version", "GET /subjects/cli-order/versions/latest?deleted=false",
             {"id": Saved("order"), "schema": str, "version": 1, "subject": "cli-order"}),
        Step("schema describe --show-references", "GET /subjects/cli-basket/versions/latest?deleted=true",
             {"references": [{"name": "Order", "subject": "cli-order", "version": 1}]}),
        Step("schema list", "GET /schemas?deleted=false&subjectPrefix=", [{"id": int, "subject": str, "version": int}]),
        Step("schema list --all", "GET /schemas?deleted=true&subjectPrefix=cli-b",
             [{"id": int, "subject": "cli-basket", "version": 1}]),
        Step("schema list of a context", "GET /schemas?deleted=false&subjectPrefix=%3A.cli%3A",
             [{"id": 1, "subject": ":.cli:order", "version": 1}]),
        Step("subject list", "GET /subjects?deleted=false&subjectPrefix=%3A%2A%3A", Holds("cli-order", ":.cli:order")),
        Step("subject describe", "GET /subjects/cli-order/versions?deleted=false", [int]),
        Step("subject describe of none", "GET /subjects/cli-none/versions?deleted=false", error(40401), 404),
        Step("configuration describe", "GET /config", {"compatibilityLevel": str}),
        Step("configuration describe --subject", "GET /config/cli-order?defaultToGlobal=true",
             {"compatibilityLevel": str}),
        Step("subject update --compatibility", "PUT /config/cli-order", {"compatibility": "FULL"}, 200,
             {"compatibility": "full"}),
        Step("subject update --compatibility-group", "PUT /config/cli-order",
             {"compatibility": "FULL", "compatibilityGroup": "application.version"}, 200,
             {"compatibility": "FULL", "compatibilityGroup": "application.version", "defaultMetadata": None,
              "overrideMetadata": None, "defaultRuleSet": None, "overrideRuleSet": None}),
        Step("configuration delete --subject", "DELETE /config/cli-order", {"compatibilityLevel": "FULL"}),
        Step("subject update --mode", "PUT /mode/cli-order", {"mode": "READONLY"}, 200, {"mode": "READONLY"}),
        Step("subject update --mode", "PUT /mode/cli-order?force=false", {"mode": "READWRITE"}, 200,
             {"mode": "READWRITE"}),
        Step("cluster describe", "GET /mode", {"mode": str}),
        Step("schema compatibility validate", "POST /compatibility/subjects/cli-order/versions/latest?verbose=false",
             {"is_compatible": False}, 200, {"schema": BROKEN, "schemaType": "AVRO", "references": []}),
        Step("kek create", "POST /dek-registry/v1/keks", {"name": "cli", "shared": False}, 200, {**KEK, "name": "cli"}),
        Step("kek list", "GET /dek-registry/v1/keks?deleted=false", Holds("cli")),
        Step("kek delete", "DELETE /dek-registry/v1/keks/cli?permanent=false", ANY, 204),
        Step("kek undelete", "POST /dek-registry/v1/keks/cli/undelete", ANY, 204),
        Step("schema delete", "DELETE /subjects/cli-order/versions/1?permanent=false", error(42206), 422),
        Step("schema delete --version all", "DELETE /subjects/cli-basket?permanent=false", [1]),
        Step("is it deleted softly?", "GET /subjects/cli-basket/versions/1?deleted=true", {"id": int, "version": 1}),
        Step("is it deleted softly?", "GET /subjects/cli-basket/versions/1?deleted=false", error(40401), 404),
        Step("schema delete --permanent", "DELETE /subjects/cli-basket/versions/1?permanent=true", 1),
        Step("schema delete", "DELETE /subjects/cli-order/versions/latest?permanent=false", 1),
    ],
)  # fmt: skip

TERRAFORM = Tool(
    "Terraform, Confluent's provider",
    headers={"Accept": GENERATED, "User-Agent": "terraform-provider-confluent/2.0", "Accept-Encoding": "gzip"},
    with_body={"Content-Type": "application/json"},
    steps=[
        Step("plan: check", "POST /compatibility/subjects/tf%2Forder/versions?verbose=true",
             {"is_compatible": True, "messages": []}, 200, {"schema": ORDER, "schemaType": "AVRO", "references": []}),
        Step("plan: is it there?", "POST /subjects/tf%2Forder?normalize=false", error(40401), 404,
             {"schema": ORDER, "schemaType": "AVRO", "references": []}),
        Step("apply", "POST /subjects/tf%2Forder/versions", {"id": int}, 200,
             {"schema": ORDER, "schemaType": "AVRO", "references": [], "ruleSet": {"domainRules": [RULE]},
              "metadata": {"properties": {"owner": "shop"}, "tags": {}, "sensitive": []}}, save="order"),
        Step("read: the latest id", "GET /subjects/tf%2Forder/versions/latest", {"id": Saved("order")}),
        # It takes the item that has this id and exactly this subject.
        Step("read: the schema", "GET /schemas?subjectPrefix=tf%2Forder",
             [{"id": Saved("order"), "subject": "tf/order", "version": 1, "schema": ORDER,
               "metadata": {"properties": {"owner": "shop"}}, "ruleSet": {"domainRules": [RULE]}}]),
        Step("plan a change: check", "POST /compatibility/subjects/tf%2Forder/versions?verbose=true",
             {"is_compatible": False, "messages": [str]}, 200, {"schema": BROKEN, "schemaType": "AVRO"}),
        Step("plan a change: known?", "POST /subjects/tf%2Forder?normalize=true", error(40403), 404,
             {"schema": ORDER_2, "schemaType": "AVRO", "references": []}),
        Step("plan what is not a schema", "POST /subjects/tf%2Forder?normalize=false", error(42201), 422,
             {"schema": "{", "schemaType": "AVRO", "references": []}),
        Step("plan the same in another form", "POST /subjects/tf%2Forder?normalize=false", {"id": Saved("order")}, 200,
             {"schema": ORDER.replace(":", " : "), "schemaType": "AVRO", "references": [],
              "ruleSet": {"domainRules": [RULE]}, "metadata": {"properties": {"owner": "shop"}}}),
        # A level without a group has an empty text as group, and still finds the versions to compare with.
        Step("subject_config", "PUT /config/tf%2Forder", {"compatibility": "FULL"}, 200,
             {"compatibility": "FULL", "compatibilityGroup": ""}),
        Step("subject_config, read", "GET /config/tf%2Forder?defaultToGlobal=true", {"compatibilityLevel": "FULL"}),
        Step("a check under it", "POST /compatibility/subjects/tf%2Forder/versions?verbose=true",
             {"is_compatible": False, "messages": [str]}, 200, {"schema": BROKEN, "schemaType": "AVRO"}),
        Step("subject_config, destroy", "DELETE /config/tf%2Forder", {"compatibilityLevel": "FULL"}),
        Step("subject_mode", "PUT /mode/tf%2Forder", {"mode": "READONLY"}, 200, {"mode": "READONLY"}),
        Step("subject_mode, read", "GET /mode/tf%2Forder?defaultToGlobal=true", {"mode": "READONLY"}),
        Step("subject_mode, changed", "PUT /mode/tf%2Forder", {"mode": "READWRITE"}, 200, {"mode": "READWRITE"}),
        Step("cluster_config", "GET /config", {"compatibilityLevel": str}),
        Step("cluster_mode", "GET /mode", {"mode": str}),
        Step("kek", "POST /dek-registry/v1/keks", {"name": "tf", "kmsType": "aws-kms", "shared": False}, 200,
             {**KEK, "kmsProps": {}, "doc": ""}),
        Step("kek, read", "GET /dek-registry/v1/keks/tf", {"name": "tf", "kmsKeyId": str, "shared": False}),
        Step("kek, changed", "PUT /dek-registry/v1/keks/tf", {"doc": "for orders", "kmsProps": {"region": "eu"}}, 200,
             {"doc": "for orders", "kmsProps": {"region": "eu"}, "shared": False}),
        Step("dek", "POST /dek-registry/v1/keks/tf/deks", {"kekName": "tf", "version": 1}, 200,
             {"subject": "tf/order", "version": 1, "algorithm": "AES256_GCM", "encryptedKeyMaterial": "QUJD"}),
        Step("dek, read", f"GET {DEK}?algorithm=AES256_GCM",
             {"kekName": "tf", "subject": "tf/order", "version": 1, "algorithm": "AES256_GCM",
              "encryptedKeyMaterial": "QUJD"}),
        Step("dek, destroy", f"DELETE {DEK}?algorithm=AES256_GCM&permanent=false", ANY, 204),
        Step("dek, destroy for good", f"DELETE {DEK}?algorithm=AES256_GCM&permanent=true", ANY, 204),
        Step("kek, destroy", "DELETE /dek-registry/v1/keks/tf?permanent=false", ANY, 204),
        Step("kek, destroy for good", "DELETE /dek-registry/v1/keks/tf?permanent=true", ANY, 204),
        Step("kek, gone", "GET /dek-registry/v1/keks/tf", error(40470), 404),
        Step("destroy", "DELETE /subjects/tf%2Forder/versions/1?permanent=false", 1),
        Step("destroy for good", "DELETE /subjects/tf%2Forder/versions/1?permanent=true", 1),
        Step("read: gone", "GET /schemas?subjectPrefix=tf%2Forder", []),
        Step("import of all", "GET /subjects", Without("tf/order")),
    ],
)  # fmt: skip

# Confluent's Java client with its own Accept; ksqlDB tells a missing subject from other errors by the code 40401.
INTERNAL = "_confluent-ksql-default_query_1-Aggregate-Materialize-changelog-value"
KSQL = Tool(
    "ksqlDB",
    headers={"Accept": f"{VND}, application/vnd.schemaregistry+json; qs=0.9, application/json; qs=0.5",
             "Content-Type": VND, "Confluent-Accept-Unknown-Properties": "true", "User-Agent": "Java/17.0.12"},
    steps=[
        Step("CREATE STREAM without columns", "GET /subjects/orders-value/versions/latest", error(40401), 404),
        Step("CREATE STREAM with columns", "POST /subjects/orders-value/versions?normalize=false", {"id": int}, 200,
             {"schema": ORDER}, save="order"),
        Step("infer the columns: the id", "GET /subjects/orders-value/versions/latest",
             {"id": Saved("order"), "version": int, "schema": str}),
        Step("infer the columns: the schema", "GET /schemas/ids/{order}?fetchMaxId=false&subject=orders-value",
             {"schema": ORDER}),
        Step("a query's own topic", f"POST /subjects/{INTERNAL}/versions?normalize=false", {"id": int}, 200,
             {"schema": ORDER}),
        Step("clean up: list", "GET /subjects", Holds(INTERNAL)),
        Step("clean up: delete", f"DELETE /subjects/{INTERNAL}", [1]),
        Step("clean up: delete for good", f"DELETE /subjects/{INTERNAL}?permanent=true", [1]),
        Step("clean up again", f"DELETE /subjects/{INTERNAL}", error(40401), 404),
        Step("DROP STREAM … DELETE TOPIC", "DELETE /subjects/orders-value", [1]),
        Step("CREATE STREAM after it", "GET /subjects/orders-value/versions/latest", error(40401), 404),
    ],
)  # fmt: skip

# libserdes, with which kcat -s value=avro reads by id and other C programs write; it does not escape subjects.
KCAT = Tool(
    "kcat",
    headers={"Accept": VND, "Content-Type": VND, "Charsets": "utf-8", "User-Agent": "libserdes"},
    steps=[
        Step("register", "POST /subjects/kcat-value/versions", {"id": int}, 200,
             {"schema": ORDER, "schemaType": "AVRO"}, save="order"),
        Step("by name", "GET /subjects/kcat-value/versions/latest", {"id": int, "schema": str, "schemaType": "AVRO"}),
        Step("by id", "GET /schemas/ids/{order}", {"schema": ORDER, "schemaType": "AVRO"}),
        Step("by an unknown id", "GET /schemas/ids/99999", error(40403), 404),
    ],
)  # fmt: skip

# ClickHouse's AvroConfluent names the host without its port, and keeps a path of the URL.
CLICKHOUSE = Tool(
    "ClickHouse",
    headers={"Host": "127.0.0.1", "Connection": "Keep-Alive"},
    steps=[
        Step("(a schema)", "POST /subjects/click-value/versions", {"id": int}, 200, {"schema": ORDER}, save="order"),
        Step("(one in a context)", "POST /subjects/:.click:value/versions", {"id": 1}, 200, {"schema": ORDER_2}),
        Step("by id", "GET /schemas/ids/{order}", {"schema": ORDER}),
        Step("by id in a context", "GET /contexts/.click/schemas/ids/1", {"schema": ORDER_2}),
    ],
)  # fmt: skip

# Materialize tells 40401, 40402, 40403 and 40408 apart from other errors.
MATERIALIZE = Tool(
    "Materialize",
    headers={"Accept": "*/*"},
    with_body={"Content-Type": "application/json"},
    steps=[
        Step("a sink's schema", "POST /subjects/mz-value/versions", {"id": int}, 200,
             {"schema": ORDER, "schemaType": "AVRO", "references": []}, save="order"),
        Step("a sink's level", "GET /config/mz-value", error(40408), 404),
        Step("set it", "PUT /config/mz-value", {"compatibility": "FULL"}, 200, {"compatibility": "FULL"}),
        Step("it is set", "GET /config/mz-value", {"compatibilityLevel": "FULL"}),
        Step("a source's schema", "GET /subjects/mz-value/versions/latest",
             {"id": int, "schema": str, "version": 1, "subject": "mz-value"}),
        Step("of a record", "GET /schemas/ids/{order}", {"schema": str}),
        Step("its subjects", "GET /schemas/ids/{order}/versions", [{"subject": str, "version": int}]),
        Step("no subject", "GET /subjects/mz-none/versions/latest", error(40401), 404),
        Step("no version", "GET /subjects/mz-value/versions/9", error(40402), 404),
        Step("no id", "GET /schemas/ids/99999", error(40403), 404),
        Step("list", "GET /subjects", Holds("mz-value")),
        Step("delete", "DELETE /subjects/mz-value", [1]),
    ],
)  # fmt: skip

CONNECT = Tool(
    "Redpanda Connect",
    headers={"Accept": VND, "User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"},
    with_body={"Content-Type": VND},
    steps=[
        Step("(a schema)", "POST /subjects/rp%2Fitem.proto/versions", {"id": int}, 200,
             {"schema": 'syntax = "proto3"; message Item { string sku = 1; }', "schemaType": "PROTOBUF"}),
        Step("(one that uses it)", "POST /subjects/rp-value/versions", {"id": int}, 200,
             {"schema": 'syntax = "proto3"; import "rp/item.proto"; message Order { Item item = 1; }',
              "schemaType": "PROTOBUF",
              "references": [{"name": "rp/item.proto", "subject": "rp/item.proto", "version": 1}]}, save="order"),
        Step("decode", "GET /schemas/ids/{order}", {"schema": str, "schemaType": "PROTOBUF",
             "references": [{"name": "rp/item.proto", "subject": "rp/item.proto", "version": 1}]}),
        Step("decode: a reference", "GET /subjects/rp%2Fitem.proto/versions/1",
             {"id": int, "schema": str, "schemaType": "PROTOBUF"}),
        Step("encode", "GET /subjects/rp-value/versions/latest", {"id": Saved("order"), "schema": str}),
    ],
)  # fmt: skip
TOOLS = [CLI, TERRAFORM, KSQL, KCAT, CLICKHOUSE, MATERIALIZE, CONNECT]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_gets_what_it_reads(tool, node):
    """Each answer has the status, the media type, and the properties of the types that the tool reads."""
    assert [] == replay(tool, node)


def test_ksqldb_reads_the_denied_operation():
    """The text of a 403 has the form from which ksqlDB takes the operation that is denied."""
    denied = re.fullmatch(
        r"User is denied operation (.*) on .*", access_denied("Read", "Subject: orders-value").message
    )

    assert denied
    assert "Read" == denied[1]
