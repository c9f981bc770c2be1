"""The list of subjects: its filters, its orders, its pages."""

import json
import re
from urllib.parse import quote

import pytest

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]})
PROTO = 'syntax = "proto3"; message M { int32 x = 1; }'
SUBJECTS = [
    ("b-avro", {"schema": AVRO}),
    ("a-json", {"schema": '{"type": "object"}', "schemaType": "JSON"}),
    ("C-proto", {"schema": PROTO, "schemaType": "PROTOBUF"}),
    (":.other:d/e", {"schema": AVRO}),
    ("gone", {"schema": '"int"'}),
    ("<script>alert(1)</script>", {"schema": '"string"'}),
    ("a\u202egnp", {"schema": '"long"'}),
]


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry with a few subjects."""
    opened = open_pages()
    for name, body in SUBJECTS:
        at = f"/subjects/{quote(name, safe='')}/versions"
        assert 200 == opened.call("POST", at, json.dumps(body), **JSON)[0]
    opened.call("POST", "/subjects/b-avro/versions", json.dumps({"schema": AVRO.replace("int", "long")}), **JSON)
    opened.call("DELETE", "/subjects/gone", **JSON)
    opened.call("PUT", "/config/b-avro", '{"compatibility": "FULL"}', **JSON)
    return opened


def names(text):
    """Return the names in a page's table, in order."""
    return re.findall(r'<th scope="row">\s*<a href="[^"]*"><bdi>(.*?)</bdi>', text)


SCRIPT, MARKED = "&lt;script&gt;alert(1)&lt;/script&gt;", "a⟨U+202E⟩gnp"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["d/e", SCRIPT, "C-proto", "a-json", MARKED, "b-avro"]),
        ("sort=name-down", ["b-avro", MARKED, "a-json", "C-proto", SCRIPT, "d/e"]),
        ("sort=versions&format=AVRO&name=b", ["b-avro"]),
        ("sort=changed&name=-", ["b-avro", "C-proto", "a-json"]),
        ("name=A-", ["a-json"]),
        ("format=JSON", ["a-json"]),
        ("format=PROTOBUF", ["C-proto"]),
        ("context=.other", ["d/e"]),
        ("context=.", [SCRIPT, "C-proto", "a-json", MARKED, "b-avro"]),
        ("level=FULL", ["b-avro"]),
        ("deleted=only", ["gone"]),
        ("deleted=only&sort=changed", ["gone"]),
        ("deleted=also&name=on", ["a-json", "gone"]),
        ("page=2", []),
        ("page=-1&name=json", ["a-json"]),
        ("page=99999999999999999999&name=json", ["a-json"]),
        ("sort=<script>&name=json", ["a-json"]),
    ],
)
def test_what_the_list_shows(browser, query, expected):
    """The list holds what its filters say, in the order asked for; names are shown as text."""
    assert expected == names(browser.get(f"/ui/subjects?{query}"))


def test_filters_are_shown_as_they_were_given(browser):
    """What a person filters by is in the form again, as text."""
    text = browser.get("/ui/subjects?name=%22%3E%3Cscript%3E&format=AVRO")
    assert 'value="&#34;&gt;&lt;script&gt;"' in text
    assert '<option value="AVRO" selected>' in text
    assert "<script>" not in re.sub(r'<script src="[^"]*" defer></script>', "", text)


def test_a_name_with_a_slash_leads_to_its_page(browser):
    """Addresses are percent-encoded as in the API."""
    assert 'href="/ui/subjects/%3A.other%3Ad%2Fe"' in browser.get("/ui/subjects")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_of_dots_leads_to_its_page(open_pages, name):
    """Browsers take a segment of dots for a step in the path, so the address of such a subject has its context."""
    browser = open_pages()
    body = json.dumps({"schema": '"int"'})
    path = f"/subjects/{quote(f':.:{name}', safe='')}/versions"
    assert 200 == browser.call("POST", path, body, **{"Content-Type": "application/json"})[0]
    address = f"/ui/subjects/{quote(f':.:{name}', safe='')}"
    assert f'href="{address}"' in browser.get("/ui/subjects")
    for below in ("", "/versions/1", "/usage"):
        assert f"<bdi>{name}</bdi>" in browser.get(address + below)


def test_pages_of_many(open_pages):
    """Fifty subjects are on a page, and links lead to the others with the same filters."""
    opened = open_pages()
    for number in range(120):
        opened.call("POST", f"/subjects/s{number:03}/versions", '{"schema": "\\"int\\""}', **JSON)
    first = opened.get("/ui/subjects?name=s")
    assert [f"s{number:03}" for number in range(50)] == names(first)
    after = re.search(r'rel="next" href="([^"]*)"', first)[1].replace("&amp;", "&")
    second = opened.get(after)
    assert [f"s{number:03}" for number in range(50, 100)] == names(second)
    last = opened.get(re.search(r'rel="next" href="([^"]*)"', second)[1].replace("&amp;", "&"))
    assert 20 == len(names(last))
    assert 'rel="next"' not in last
