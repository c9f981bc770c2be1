"""The search page shows hits with their places, as text, and only what may be read."""

import json
from urllib.parse import quote

import pytest

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
HOSTILE = '<script>alert("x")</script>\u202e'


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry with two schemas."""
    opened = open_pages()
    fields = [{"name": "email", "type": "string", "doc": HOSTILE}]
    for name, schema in (
        ("orders-value", {"type": "record", "name": "Order", "fields": fields}),
        (f"odd {HOSTILE}", {"type": "record", "name": "Other", "fields": []}),
    ):
        at = f"/subjects/{quote(name, safe='')}/versions"
        assert 200 == opened.call("POST", at, json.dumps({"schema": json.dumps(schema)}), **JSON)[0]
    return opened


def test_hits_with_their_places(browser):
    """A hit links its version and says where the words are."""
    text = browser.get("/ui/search?query=field%3Aemail")

    assert '<a href="/ui/subjects/orders-value/versions/1">' in text
    assert "field <code><bdi>Order.email</bdi></code>" in text
    assert "Other" not in text


@pytest.mark.parametrize("query", ["script", "odd", HOSTILE, f"<b>{HOSTILE}"])
def test_names_and_documentation_stay_text(browser, query):
    """Whatever a schema or a query holds, the page has no element of it."""
    text = browser.get(f"/ui/search?query={quote(query)}")

    assert "&lt;script&gt;alert(" in text
    assert "<script>alert" not in text
    assert "<b>" not in text


def test_marks_for_direction_are_spelled_out(browser):
    """A mark that turns the direction of text does not reach the page."""
    text = browser.get("/ui/search?query=odd")

    assert "⟨U+202E⟩" in text
    assert "\u202e" not in text


@pytest.mark.parametrize(("query", "says"), [("", "All words must occur"), ("nothing-like-it", "Nothing fits.")])
def test_no_hits(browser, query, says):
    """Without words the page explains the query; without hits it says what to do."""
    assert says in browser.get(f"/ui/search?query={query}")


def test_a_schema_that_is_searched_in_part_is_named(browser):
    """The page links a subject of which only the first words were searched."""
    fields = [{"name": f"part{number}", "type": "int"} for number in range(3_000)]
    schema = json.dumps({"type": "record", "name": "Large", "fields": fields})
    at = "/subjects/large-value/versions"
    assert 200 == browser.call("POST", at, json.dumps({"schema": schema}), **JSON)[0]
    text = browser.get("/ui/search?query=part2999")

    assert "only the first ones were searched" in text
    assert '<a href="/ui/subjects/large-value">' in text
    assert "Not every schema was searched" not in text
