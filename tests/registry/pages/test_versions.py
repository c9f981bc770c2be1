"""The pages of subjects and versions: time line, text, fields, references, settings in force, code."""

import json
import re
from html import unescape
from urllib.parse import quote

import pytest

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
ORDER = {
    "type": "record", "name": "Order", "doc": "An order & <b>more</b>.",
    "fields": [
        {"name": "id", "type": "long", "doc": "The \u202ekey.", "confluent:tags": ["KEY"]},
        {"name": "to", "type": "Address"},
    ],
}  # fmt: skip
ADDRESS = {"type": "record", "name": "Address", "fields": [{"name": "street", "type": "string", "default": "<none>"}]}
CONTRACT = {
    "metadata": {
        "properties": {"owner": "<script>alert(1)</script>"}, "tags": {"**.id": ["PII"]}, "sensitive": ["owner"],
    },
    "ruleSet": {"domainRules": [{"name": "positive", "kind": "CONDITION", "type": "CEL", "mode": "WRITE",
                                 "expr": "message.id > 0 && '</pre>' != ''",
                                 "onFailure": "DLQ", "params": {"dlq.topic": "bad-orders"}}]},
}  # fmt: skip


def register(opened, subject, schema, **body):
    """Register a schema and return its id."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    path = f"/subjects/{quote(subject, safe='')}/versions"
    status, answer = opened.call("POST", path, json.dumps({"schema": text, **body}), **JSON)
    assert 200 == status, answer
    return json.loads(answer)["id"]


def put(opened, path, body):
    """Change a setting."""
    assert 200 == opened.call("PUT", path, json.dumps(body), **JSON)[0]


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry with versions that refer to each other."""
    opened = open_pages()
    register(opened, "address", ADDRESS)
    refers = [{"name": "Address", "subject": "address", "version": 1}]
    register(opened, "orders/a-value", ORDER, references=refers)
    more = ORDER | {"fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
    register(opened, "orders/a-value", more, references=refers, **CONTRACT)
    register(opened, "copy", ADDRESS)
    register(opened, ":.other:address", ADDRESS)
    register(opened, "p", 'syntax = "proto3"; message M { int32 x = 1; }', schemaType="PROTOBUF")
    register(opened, "j", '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}', schemaType="JSON")
    put(opened, "/config/orders%2Fa-value", {"compatibility": "FULL"})
    put(opened, "/config/%3A.other%3A", {"compatibility": "NONE", "normalize": True})
    put(opened, "/config/short", {"alias": "orders/a-value"})
    put(opened, "/mode/copy", {"mode": "READONLY"})
    opened.call("DELETE", "/subjects/j", **JSON)
    return opened


ORDERS = "/ui/subjects/orders%2Fa-value"


def words(text):
    """Return the text of a page as a person reads it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def rows(text):
    """Return the rows of all tables of a page as lists of texts."""
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.DOTALL)
    return [[words(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in found]


def test_a_subject(browser):
    """A subject's page has its versions, newest first, its contract and its settings with who sets them."""
    text = browser.get(ORDERS)
    assert ["2", "1"] == re.findall(r">Version (\d+)</a>", text)
    shown = words(text)
    for part in ("owner sensitive <script>alert(1)</script>", "**.id PII", "Order.id KEY", "Aliases short",
                 "positive domainRules: CONDITION CEL WRITE message.id > 0 && '</pre>' != ''"):  # fmt: skip
        assert part in shown
    assert ["compatibilityLevel which changes a new version may make", "FULL", "this subject"] in rows(text)
    assert ["mode which operations are allowed", "READWRITE", "the service's own default"] in rows(text)


@pytest.mark.parametrize(
    ("subject", "level", "mode"),
    [
        (":.other:address", ("NONE", "the context .other"), ("READWRITE", "the service's own default")),
        ("copy", ("BACKWARD", "the service's own default"), ("READONLY", "this subject")),
    ],
)
def test_settings_come_from_somewhere(browser, subject, level, mode):
    """A setting names the scope that sets it: the subject, its context, the registry, or the service."""
    found = {
        row[0].split()[0]: tuple(row[1:]) for row in rows(browser.get(f"/ui/subjects/{quote(subject, safe='')}")) if row
    }
    assert (level, mode) == (found["compatibilityLevel"], found["mode"])


def test_a_rule_is_shown_as_a_whole(browser):
    """A rule's row has its parameters and what happens after it."""
    row = next(row for row in rows(browser.get(ORDERS)) if "positive" in row)
    assert "dlq.topic = bad-orders" in row[4]
    assert ["-", "DLQ"] == row[5:]


def test_an_alias(browser):
    """An alias leads to the subject that it stands for, and the page says so."""
    shown = words(browser.get("/ui/subjects/short"))
    assert "You asked for short , which is an alias of this subject" in shown
    assert "Version 2" in shown


def test_a_version(browser):
    """A version's page has its fields, what it refers to, what refers to it, and the same schema elsewhere."""
    text = browser.get(f"{ORDERS}/versions/2")
    assert ["Order", "An order & <b>more</b>.", ""] in rows(text)
    assert ["id", "long", "", "The ⟨U+202E⟩key.", "KEY"] in rows(text)
    assert ["note", "null | string", "null", "", ""] in rows(text)
    assert "Refers to Address : address version 1" in words(text)
    assert "Referred to by orders/a-value version 1 orders/a-value version 2" in words(
        browser.get("/ui/subjects/address/versions/1")
    )
    assert "The same schema elsewhere copy version 1" in words(browser.get("/ui/subjects/address/versions/1"))
    assert "\u202e" not in text


@pytest.mark.parametrize("number", ["latest", "2", "-1"])
def test_a_version_by_number(browser, number):
    """`latest` is a version as in the API."""
    assert "orders/a-value version 2 latest" in words(browser.get(f"{ORDERS}/versions/{number}"))


def test_texts_are_indented_and_highlighted(browser):
    """A text in one line is shown in several; its parts have classes, and its content is what was stored."""
    text = browser.get("/ui/subjects/address/versions/1")
    shown = re.search(r'<pre id="text"[^>]*>(.*?)</pre>', text, re.DOTALL)[1]
    assert '<span class="nt">"type"</span>' in shown
    assert ADDRESS == json.loads(unescape(re.sub(r"<[^>]*>", "", shown)))
    assert '<span class="kd">message' in browser.get("/ui/subjects/p/versions/1")


@pytest.mark.parametrize(
    ("subject", "number", "name"),
    [
        ("address", 1, "address-v1.avsc"),
        ("orders/a-value", 2, "orders%2Fa-value-v2.avsc"),
        ("p", 1, "p-v1.proto"),
        ("j", 1, "j-v1.json"),
    ],
)
def test_downloads(browser, subject, number, name):
    """A download is the text as stored, as a file that no browser takes for a page."""
    at = f"/subjects/{quote(subject, safe='')}/versions/{number}"
    stored = browser.call("GET", f"{at}/schema?deleted=true", **JSON)[1]
    assert stored == browser.get(f"/ui{at}/text")
    assert f"attachment; filename*=UTF-8''{name}" == browser.headers["content-disposition"]
    assert "text/plain; charset=utf-8" == browser.headers["content-type"]
    assert "nosniff" == browser.headers["x-content-type-options"]


def test_code_of_a_version(browser):
    """The code has the id, the topic and the address of this registry."""
    shown = unescape(browser.get(f"{ORDERS}/versions/2"))
    for part in ('"use.schema.id": 3', "from strata.serdes import AvroDeserializer, AvroSerializer, RegistryClient",
                 "KafkaAvroSerializer", f'RegistryClient("http://127.0.0.1:{browser.port}")', 'subscribe(["orders/a"])',
                 f"curl http://127.0.0.1:{browser.port}/subjects/orders%2Fa-value/versions/2"):  # fmt: skip
        assert part in shown
    assert shown.count("rules=True") == 2
    assert "new KafkaProducer&lt;Object, Object&gt;(config)" in browser.get(f"{ORDERS}/versions/2")
    assert f'RegistryClient("http://127.0.0.1:{browser.port}/contexts/.other")' in unescape(
        browser.get("/ui/subjects/%3A.other%3Aaddress/versions/1")
    )
    assert "from my_schema_pb2 import" in browser.get("/ui/subjects/p/versions/1")
    assert "json.KafkaJsonSchemaDeserializer" in browser.get("/ui/subjects/j/versions/1")


@pytest.mark.parametrize(
    ("asked", "to"),
    [
        ("of=1", "/ui/schemas/ids/1"),
        ("of=007&context=.other", "/ui/schemas/ids/7?context=.other"),
        ("of=ef524ea1-b91e-7317-3d93-8ade36c1db32", "/ui/schemas/guids/ef524ea1-b91e-7317-3d93-8ade36c1db32"),
    ],
)
def test_a_schema_is_found_by_id_and_guid(browser, asked, to):
    """A form leads to the page of an id or a GUID."""
    assert 303 == browser.call("GET", f"/ui/schemas/find?{asked}")[0]
    assert to == browser.headers["location"]


def test_pages_of_ids_and_guids(browser):
    """The page of an id is that of a version which has it; a GUID leads to such a page."""
    text = browser.get("/ui/schemas/ids/1")
    assert "address version 1" in words(text)
    assert "context .other" in words(browser.get("/ui/schemas/ids/1?context=.other"))
    guid = re.search(r"<dt>GUID</dt><dd><code>([^<]*)", text)[1]
    assert 303 == browser.call("GET", f"/ui/schemas/guids/{guid}")[0]
    assert "/ui/subjects/address/versions/1" == browser.headers["location"]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/ui/subjects/none", 404, "Subject 'none' not found."),
        ("/ui/subjects/%3Cscript%3Ealert(1)%3C%2Fscript%3E", 404, "Subject '<script>alert(1)</script>' not found."),
        ("/ui/subjects/address/versions/9", 404, "Version 9 not found."),
        ("/ui/subjects/address/versions/x", 422, "The specified version 'x' is not a valid version id."),
        ("/ui/schemas/ids/99", 404, "Schema 99 not found"),
        ("/ui/schemas/ids/x", 404, "Schema x not found"),
        ("/ui/schemas/guids/x", 404, "Schema x not found"),
        ("/ui/schemas/find?of=%3Cb%3E", 400, "got '<b>'"),
    ],
)
def test_what_is_not_there(browser, path, status, message):
    """An error page has the API's sentence, as text."""
    found, text = browser.call("GET", path)
    assert (status, True) == (found, message in words(text))
    assert "<script>" not in text


def test_large_and_deep_schemas(open_pages):
    """A text of a megabyte, ten thousand fields and two hundred levels are shown, bounded, and can be downloaded."""
    opened = open_pages(max_body=4 << 20)
    doc = "d" * 90
    fields = [{"name": f"field_{number}", "type": "string", "doc": doc} for number in range(10_000)]
    register(opened, "large", {"type": "record", "name": "Large", "fields": fields})
    text = opened.get("/ui/subjects/large/versions/1")
    assert len(text) < 1_500_000
    assert "Only the first 500 rows are shown" in text
    assert "Only the beginning is shown" in text
    assert 10_000 == len(json.loads(opened.get("/ui/subjects/large/versions/1/text"))["fields"])
    deep = '{"type": "string"}'
    for _ in range(90):
        deep = f'{{"type": "object", "properties": {{"p": {deep}}}}}'
    register(opened, "deep", deep, schemaType="JSON")
    assert 90 <= len(rows(opened.get("/ui/subjects/deep/versions/1")))


def test_many_versions(open_pages):
    """The time line has pages too."""
    opened = open_pages()
    put(opened, "/config", {"compatibility": "NONE"})
    for number in range(60):
        register(opened, "s", {"type": "fixed", "name": "F", "size": number + 1})
    first = opened.get("/ui/subjects/s")
    assert [*range(60, 10, -1)] == [int(one) for one in re.findall(r">Version (\d+)</a>", first)]
    second = opened.get("/ui/subjects/s?page=2")
    assert [*range(10, 0, -1)] == [int(one) for one in re.findall(r">Version (\d+)</a>", second)]
    assert 'rel="next"' not in second
