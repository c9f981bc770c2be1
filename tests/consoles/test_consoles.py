"""Consoles: each call of Redpanda Console, AKHQ, kafbat-ui and schema-registry-ui, and what they read of the answers.

The sources and versions from which the calls were taken are in README.md.
"""

import json

import pytest

from harness.consoles import ANY, Holds, Saved, Step, Tool, Without, replay

VND = "application/vnd.schemaregistry.v1+json"
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
ORDER_2 = ORDER.replace("]}", ',{"name":"note","type":"string","default":""}]}')
BROKEN = ORDER.replace("long", "string")
ITEM = '{"$id": "item.json", "type": "object"}'
BASKET = '{"type": "array", "items": {"$ref": "item.json"}}'


def error(code):
    """Return what tools read of an error: a number of an exact value, and a text."""
    return {"error_code": code, "message": str}


# The Go client of franz-go, wrapped by Redpanda's rpsr; Go asks for gzip by itself.
CONSOLE = Tool(
    "Redpanda Console",
    headers={"Accept": VND, "Content-Type": VND, "User-Agent": "franz-go", "Accept-Encoding": "gzip"},
    steps=[
        Step("schema types", "GET /schemas/types", Holds("AVRO", "JSON", "PROTOBUF")),
        # Whether the pages of contexts and of rights are shown: anything but 404.
        Step("contexts there?", "GET /contexts", Holds(".")),
        Step("rights there?", "POST /security/acls", error(400), 400, [
            {"principal": "", "resource": "", "resource_type": "NOT_A_RESOURCE_TYPE", "pattern_type": "_CONSOLE_TEST",
             "host": "", "operation": "", "permission": ""}]),
        Step("create", "POST /subjects/rc%2Forders-value/versions?normalize=true", {"id": int}, 200,
             {"schema": ORDER, "metadata": {"properties": {"owner": "shop"}}}, save="order"),
        Step("create again", "POST /subjects/rc%2Forders-value/versions", {"id": int}, 200, {"schema": ORDER_2}),
        Step("create JSON", "POST /subjects/rc-item/versions", {"id": int}, 200,
             {"schema": ITEM, "schemaType": "JSON"}, save="item"),
        Step("create with a reference", "POST /subjects/rc-basket/versions", {"id": int}, 200,
             {"schema": BASKET, "schemaType": "JSON",
              "references": [{"name": "item.json", "subject": "rc-item", "version": 1}]}, save="basket"),
        Step("create in a context", "POST /subjects/:.rc:rc-orders/versions", {"id": int}, 200, {"schema": ORDER}),
        Step("subjects", "GET /subjects", Holds("rc/orders-value", "rc-item", ":.rc:rc-orders")),
        Step("subjects with deleted ones", "GET /subjects?deleted=true", Holds("rc/orders-value")),
        Step("subjects of a context", "GET /subjects?subjectPrefix=%3A.rc%3A", [":.rc:rc-orders"]),
        Step("versions", "GET /subjects/rc%2Forders-value/versions", [int]),
        Step("versions with deleted ones", "GET /subjects/rc%2Forders-value/versions?deleted=true", [int]),
        Step("a version", "GET /subjects/rc%2Forders-value/versions/1?deleted=true",
             {"subject": "rc/orders-value", "version": 1, "id": Saved("order"), "schema": ORDER,
              "metadata": {"properties": {"owner": "shop"}}}),
        Step("the latest version", "GET /subjects/rc-basket/versions/latest?deleted=true",
             {"version": 1, "schemaType": "JSON", "references": [{"name": str, "subject": str, "version": int}]}),
        Step("level not set", "GET /config/rc%2Forders-value", error(40408), 404),
        Step("mode not set", "GET /mode/rc%2Forders-value", error(40409), 404),
        Step("level in force", "GET /config/rc%2Forders-value?defaultToGlobal=true",
             {"compatibilityLevel": "BACKWARD"}),
        Step("set level", "PUT /config/rc%2Forders-value", {"compatibility": "FULL"}, 200, {"compatibility": "FULL"}),
        Step("level", "GET /config/rc%2Forders-value", {"compatibilityLevel": "FULL"}),
        Step("remove level", "DELETE /config/rc%2Forders-value"),
        Step("set mode", "PUT /mode/rc%2Forders-value", {"mode": "READONLY"}, 200, {"mode": "READONLY"}),
        Step("mode", "GET /mode/rc%2Forders-value", {"mode": "READONLY"}),
        Step("remove mode", "DELETE /mode/rc%2Forders-value", {"mode": "READONLY"}),
        Step("level of all", "GET /config", {"compatibilityLevel": str}),
        Step("mode of all", "GET /mode", {"mode": str}),
        Step("contexts", "GET /contexts", Holds(".", ".rc")),
        Step("mode of a context", "GET /mode/:.rc:", error(40409), 404),
        Step("level of a context", "GET /config/:.rc:", error(40408), 404),
        Step("referring schemas", "GET /subjects/rc-item/versions/1/referencedby?deleted=true", [Saved("basket")]),
        Step("users of an id", "GET /schemas/ids/{basket}/versions?deleted=true", [{"subject": str, "version": int}]),
        Step("users of an id in a context", "GET /schemas/ids/1/versions?subject=%3A.rc%3Arc-orders",
             [{"subject": ":.rc:rc-orders", "version": 1}]),
        Step("by id", "GET /schemas/ids/{basket}", {"schema": str, "schemaType": "JSON", "references": [dict]}),
        Step("check", "POST /compatibility/subjects/rc%2Forders-value/versions/latest?verbose=true",
             {"is_compatible": False, "messages": [str]}, 200, {"schema": BROKEN}),
        Step("check a new subject", "POST /compatibility/subjects/rc-new/versions/latest?verbose=true",
             {"is_compatible": True, "messages": []}, 200, {"schema": ORDER}),
        Step("check what is not a schema", "POST /compatibility/subjects/rc-item/versions/latest?verbose=true",
             {"is_compatible": False, "messages": [str]}, 200, {"schema": "{", "schemaType": "JSON"}),
        Step("delete a referenced version", "DELETE /subjects/rc-item/versions/1", error(42206), 422),
        Step("delete a version", "DELETE /subjects/rc%2Forders-value/versions/1", 1),
        Step("delete it for good", "DELETE /subjects/rc%2Forders-value/versions/1?permanent=true", 1),
        Step("delete a subject", "DELETE /subjects/rc%2Forders-value", [2]),
        Step("versions of a deleted subject", "GET /subjects/rc%2Forders-value/versions", error(40401), 404),
        Step("its versions", "GET /subjects/rc%2Forders-value/versions?deleted=true", [2]),
        Step("delete it for good", "DELETE /subjects/rc%2Forders-value?permanent=true", [2]),
        Step("a subject gone", "GET /subjects?deleted=true", Without("rc/orders-value")),
    ],
)  # fmt: skip

# Confluent's Java client, which AKHQ tells to ask for application/json. It sends the Content-Type with each request.
AKHQ = Tool(
    "AKHQ",
    headers={"Accept": "application/json", "Content-Type": VND, "Confluent-Accept-Unknown-Properties": "true",
             "Confluent-Client-Version": "7.9.0", "User-Agent": "Java/17.0.12"},
    media="application/json",
    steps=[
        Step("does the subject exist?", "GET /subjects/akhq%20orders/versions/latest", error(40401), 404),
        Step("register", "POST /subjects/akhq%20orders/versions?normalize=false", {"id": int}, 200,
             {"schema": ORDER, "schemaType": "AVRO", "references": []}, save="order"),
        Step("the version registered", "GET /subjects/akhq%20orders/versions/latest",
             {"id": Saved("order"), "version": 1, "subject": "akhq orders", "schema": ORDER}),
        Step("list", "GET /subjects", Holds("akhq orders")),
        Step("list, with its switch", "GET /subjects?deleted=false", Holds("akhq orders")),
        Step("level", "GET /config/akhq%20orders", ANY, 404),
        Step("level, as new clients ask", "GET /config/akhq%20orders?defaultToGlobal=false", ANY, 404),
        Step("level of all", "GET /config", {"compatibilityLevel": str}),
        Step("versions", "GET /subjects/akhq%20orders/versions", [int]),
        Step("a version", "GET /subjects/akhq%20orders/versions/1", {"id": Saved("order"), "schema": str}),
        Step("look up", "POST /subjects/akhq%20orders?normalize=false&deleted=false", {"id": int, "version": 1}, 200,
             {"schema": ORDER, "schemaType": "AVRO", "references": []}),
        Step("check", "POST /compatibility/subjects/akhq%20orders/versions/latest?normalize=false",
             {"is_compatible": False}, 200, {"schema": BROKEN, "schemaType": "AVRO", "references": []}),
        Step("check, with reasons", "POST /compatibility/subjects/akhq%20orders/versions/latest?verbose=true",
             {"is_compatible": False, "messages": [str]}, 200, {"schema": BROKEN}),
        # It compares the level in the answer with the one that it set.
        Step("set level", "PUT /config/akhq%20orders", {"compatibility": "FORWARD"}, 200, {"compatibility": "FORWARD"}),
        Step("record's schema", "GET /schemas/ids/{order}?fetchMaxId=false&subject=other-value", {"schema": ORDER}),
        Step("register again", "POST /subjects/akhq%20orders/versions?normalize=false", {"id": int}, 200,
             {"schema": ORDER_2, "schemaType": "AVRO", "references": []}),
        Step("delete a version", "DELETE /subjects/akhq%20orders/versions/1", 1),
        # Its number is the first of the list; an empty list is an error.
        Step("delete", "DELETE /subjects/akhq%20orders", [2]),
    ],
)  # fmt: skip

# Spring's WebClient with a generated client, which percent-encodes all but letters, digits and -._~ of a subject.
KAFBAT = Tool(
    "kafbat-ui",
    headers={"Accept": "application/json", "User-Agent": "ReactorNetty/1.2.9", "Accept-Encoding": "gzip"},
    with_body={"Content-Type": "application/json"},
    media="application/json",
    steps=[
        Step("create", "POST /subjects/%3A.kafbat%3Aa%2Fb/versions", {"id": int}, 200,
             {"schema": ORDER, "schemaType": "AVRO", "references": []}),
        Step("what it created", "GET /subjects/%3A.kafbat%3Aa%2Fb/versions/latest?deleted=false",
             {"subject": ":.kafbat:a/b", "version": int, "id": int, "schema": ORDER, "schemaType": "AVRO"}),
        Step("list", "GET /subjects?deleted=false", Holds(":.kafbat:a/b")),
        Step("versions", "GET /subjects/%3A.kafbat%3Aa%2Fb/versions", [int]),
        Step("a version", "GET /subjects/%3A.kafbat%3Aa%2Fb/versions/1?deleted=false", {"id": int, "version": 1}),
        Step("level in force", "GET /config/%3A.kafbat%3Aa%2Fb?defaultToGlobal=true", {"compatibilityLevel": str}),
        Step("level of all", "GET /config", {"compatibilityLevel": str}),
        Step("check", "POST /compatibility/subjects/%3A.kafbat%3Aa%2Fb/versions/latest?verbose=true",
             {"is_compatible": False}, 200, {"schema": BROKEN, "schemaType": "AVRO"}),
        Step("create what is incompatible", "POST /subjects/%3A.kafbat%3Aa%2Fb/versions", ANY, 409,
             {"schema": BROKEN, "schemaType": "AVRO"}),
        Step("create what is not a schema", "POST /subjects/%3A.kafbat%3Aa%2Fb/versions", {"message": str}, 422,
             {"schema": "{", "schemaType": "AVRO"}),
        Step("set level", "PUT /config/%3A.kafbat%3Aa%2Fb", {"compatibility": "FULL"}, 200, {"compatibility": "FULL"}),
        Step("remove level", "DELETE /config/%3A.kafbat%3Aa%2Fb"),
        Step("set level of all", "PUT /config", {"compatibility": "BACKWARD"}, 200, {"compatibility": "BACKWARD"}),
        Step("of a subject gone", "GET /subjects/gone/versions/latest?deleted=false", ANY, 404),
        Step("delete the latest", "DELETE /subjects/%3A.kafbat%3Aa%2Fb/versions/latest?permanent=false"),
        Step("create it again", "POST /subjects/%3A.kafbat%3Aa%2Fb/versions", {"id": int}, 200,
             {"schema": ORDER, "schemaType": "AVRO"}),
        Step("delete all", "DELETE /subjects/%3A.kafbat%3Aa%2Fb?permanent=false"),
    ],
)  # fmt: skip


def quoted(**body):
    """Return a body as schema-registry-ui builds it: with a quote after it."""
    return json.dumps(body).encode() + b"'"


# AngularJS in a browser, through the proxy of the page's own server: paths end in a slash, subjects are not encoded.
ANGULAR = Tool(
    "schema-registry-ui",
    headers={"Accept": "application/json, text/plain, */*", "User-Agent": "Mozilla/5.0", "Accept-Encoding": "gzip, br",
             "Sec-Fetch-Site": "same-origin"},
    with_body={"Content-Type": "application/json", "Accept": "application/json"},
    media="json",
    steps=[
        Step("create", "POST /subjects/ui-value/versions", {"id": int}, 200, quoted(schema=ORDER), save="order"),
        Step("does it exist?", "POST /subjects/ui-value", {"id": Saved("order"), "version": 1}, 200,
             quoted(schema=ORDER)),
        Step("check", "POST /compatibility/subjects/ui-value/versions/latest", {"is_compatible": False}, 200,
             quoted(schema=BROKEN)),
        Step("set level", "PUT /config/ui-value", {"compatibility": "FULL"}, 200, quoted(compatibility="FULL")),
        Step("level", "GET /config/ui-value", {"compatibilityLevel": "FULL"}),
        Step("level of all", "GET /config/", {"compatibilityLevel": str}),
        Step("list", "GET /subjects/", Holds("ui-value")),
        Step("versions", "GET /subjects/ui-value/versions/", [int]),
        Step("the latest version", "GET /subjects/ui-value/versions/latest",
             {"subject": "ui-value", "version": 1, "id": Saved("order"), "schema": ORDER}),
    ],
)  # fmt: skip


@pytest.mark.parametrize("tool", [CONSOLE, AKHQ, KAFBAT, ANGULAR], ids=lambda tool: tool.name)
def test_a_console_gets_what_it_reads(tool, node):
    """Each answer has the status, the media type, and the properties of the types that the console reads."""
    assert [] == replay(tool, node)
