"""The page of a difference: changes with their meaning, verdicts, and both texts side by side."""

import json
import re
from html import unescape
from urllib.parse import quote

import pytest

from strata.registry.features.pages.text_difference import LineRow, line_rows

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
HOSTILE = "<script>alert(1)</script>\u202e"


def record(*names, kind="int", **more):
    """Return an Avro record with fields of one type."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind, **more} for name in names]}


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry with subjects of several versions."""
    opened = open_pages(compatibility_level="NONE")
    histories = {
        "a/b": [record("x"), record("x", "y"), record("x", "y", doc=HOSTILE)],
        "alone": [record("x")],
        HOSTILE: [record("x"), record("x", kind="long")],
        "large": [record(*(f"{letter}{n}" for n in range(1500))) for letter in "fg"],
    }
    for subject, schemas in histories.items():
        for schema in schemas:
            path = f"/subjects/{quote(subject, safe='')}/versions"
            body = json.dumps({"schema": json.dumps(schema)})
            assert 200 == opened.call("POST", path, body, **JSON)[0]
    return opened


def words(text):
    """Return the text of a page without its elements."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)))


def test_changes_and_verdicts(browser):
    """Each change says what it means for both sides; each level has its verdict."""
    text = words(browser.get("/ui/subjects/a%2Fb/diff?from=1&to=2"))

    assert "field added y : int breaks Field 'y' is in the new schema but not in version 1" in text
    assert "safe Consumers with the old schema skip this field of new data." in text
    for verdict in ("BACKWARD: incompatible", "FORWARD: compatible", "FULL: incompatible"):
        assert verdict in text


def test_records_that_show_it(browser):
    """The page has the smallest record that breaks, and the one whose value changes."""
    text = words(browser.get("/ui/subjects/a%2Fb/diff?from=1&to=2"))

    assert 'This record, written with version 1, cannot be read with the new schema: {"x": 0}' in text
    assert "Records that show it" not in words(browser.get("/ui/subjects/alone/diff"))


def test_what_changes_values_in_silence_is_said_on_top(browser):
    """A field renamed by an alias is read under its new name, but consumers with the old schema read their default."""
    fields = [
        {"name": "currency", "type": "string", "default": "EUR"},
        {"name": "code", "type": "string", "default": "EUR", "aliases": ["currency"]},
    ]
    for field in fields:
        body = json.dumps({"schema": json.dumps({"type": "record", "name": "R", "fields": [field]})})
        assert 200 == browser.call("POST", "/subjects/renamed/versions", body, **JSON)[0]
    text = words(browser.get("/ui/subjects/renamed/diff"))

    assert "Consumers with the new schema can read old data, with the values that were written." in text
    assert "Consumers with the old schema can read new data, but some values change silently." in text
    assert "silent: values change Consumers with the old schema do not see what is written as 'code'" in text


def test_metadata_and_rules(browser):
    """What a version holds besides its text is compared too, if it differs."""
    path = "/subjects/contract/versions"
    for owner in ("red", HOSTILE):
        metadata = {"properties": {"owner": owner}}
        body = json.dumps({"schema": json.dumps(record("x")), "metadata": metadata})
        assert 200 == browser.call("POST", path, body, **JSON)[0]
    text = browser.get("/ui/subjects/contract/diff")

    assert "Metadata, rules and references" in text
    assert '"owner": "red"' in words(text)
    assert "<script>alert" not in text
    assert "Metadata, rules" not in browser.get("/ui/subjects/a%2Fb/diff")


def test_without_numbers_the_latest_is_compared_with_the_one_before(browser):
    """The shortest address shows the newest change."""
    assert "version 2 to 3" in words(browser.get("/ui/subjects/a%2Fb/diff"))
    assert "No difference in meaning" in words(browser.get("/ui/subjects/alone/diff"))


def test_the_other_direction(browser):
    """Going back has the verdicts the other way round."""
    text = words(browser.get("/ui/subjects/a%2Fb/diff?from=2&to=1"))

    assert "BACKWARD: compatible" in text
    assert "FORWARD: incompatible" in text


@pytest.mark.parametrize("path", ["a%2Fb/diff?from=2&to=3", f"{quote(HOSTILE, safe='')}/diff?from=1&to=2"])
def test_hostile_names_and_texts_stay_text(browser, path):
    """No element and no turned direction comes from a schema or a name."""
    text = browser.get(f"/ui/subjects/{path}")

    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(("query", "status"), [("from=9", 404), ("to=x", 422), ("from=0", 422)])
def test_versions_that_do_not_exist(browser, query, status):
    """A version that does not exist is an error page."""
    assert status == browser.call("GET", f"/ui/subjects/a%2Fb/diff?{query}")[0]


def test_large_schemas(browser):
    """Thousands of changes are shown up to a number, the texts not at all."""
    text = words(browser.get("/ui/subjects/large/diff"))

    assert "And 2500 more changes." in text
    assert "Too many lines differ" in text


ROWS = [
    ("equal", "a\nb", "a\nb", [LineRow(gap=2)]),
    ("changed", "a\nb", "a\nc", [LineRow(1, "a", 1, "a"), LineRow(2, "b", 2, "c", differs=True)]),
    ("added", "a", "a\nb", [LineRow(1, "a", 1, "a"), LineRow(None, None, 2, "b", differs=True)]),
    ("removed at the start", "x\na", "a", [LineRow(1, "x", None, None, differs=True), LineRow(2, "a", 1, "a")]),
    (
        "far lines are left out",
        "1\n2\n3\n4\n5\n6",
        "1\n2\n3\n4\n5\n7",
        [LineRow(gap=2), *(LineRow(n, str(n), n, str(n)) for n in (3, 4, 5)), LineRow(6, "6", 6, "7", differs=True)],
    ),
    ("empty", "", "", []),
]


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_lines_side_by_side(old, new, expected):
    """Equal lines stand beside each other with their numbers."""
    assert expected == line_rows(old, new)
