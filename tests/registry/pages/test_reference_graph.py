"""The drawing of references shows both directions, as links, bounded, and only what may be seen."""

import json
import re
from html import unescape
from urllib.parse import quote
from xml.etree import ElementTree as Xml

import pytest

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
HOSTILE = '<script>alert("1")</script>\u202e'
SVG = "{http://www.w3.org/2000/svg}"


def record(name, *used):
    """Return an Avro record that uses others."""
    return {"type": "record", "name": name, "fields": [{"name": f"f{one}", "type": one} for one in used]}


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry whose versions refer to each other."""
    opened = open_pages()

    def register(subject, schema, **references):
        refers = [{"name": name, "subject": target, "version": 1} for name, target in references.items()]
        body = json.dumps({"schema": json.dumps(schema), "references": refers})
        path = f"/subjects/{quote(subject, safe='')}/versions"
        assert 200 == opened.call("POST", path, body, **JSON)[0]

    register("base", record("Base"))
    register(HOSTILE, record("Odd", "Base"), Base="base")
    register("middle", record("Middle", "Odd", "Base"), Odd=HOSTILE, Base="base")
    register("top", record("Top", "Middle"), Middle="middle")
    register("alone", record("Alone"))
    register("common", record("Common"))
    for number in range(30):
        register(f"user{number:02}", record(f"User{number}", "Common"), Common="common")
    return opened


def graph(browser, subject):
    """Return the drawing on a version's page, and its labels in order of the drawing."""
    text = browser.get(f"/ui/subjects/{quote(subject, safe='')}/versions/1")
    found = re.search(r"<svg class=\"graph\".*?</svg>", text, re.DOTALL)
    if found is None:
        return None, []
    svg = Xml.fromstring(found[0].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))
    return svg, [one.text for one in svg.iter(f"{SVG}text")]


def test_both_directions(browser):
    """What refers to a version is left of it, what it refers to is right of it; nodes are links."""
    svg, labels = graph(browser, "middle")
    at = {link.find(f"{SVG}text").text: int(link.find(f"{SVG}rect").get("x")) for link in svg.iter(f"{SVG}a")}
    odd = next(label for label in labels if "script" in label)

    assert at["top v1"] < at["middle v1"] < at[odd] < at["base v1"]
    assert "/ui/subjects/top/versions/1" in {link.get("href") for link in svg.iter(f"{SVG}a")}
    assert 4 == len(list(svg.iter(f"{SVG}path")))


def test_an_edge_crosses_no_other_node(browser):
    """An edge to a version two layers away goes around the version between: its line does not pass through the box."""
    svg, _ = graph(browser, "middle")
    long = max((one.get("d") for one in svg.iter(f"{SVG}path")), key=lambda path: path.count("C"))
    boxes = [(int(one.get("x")), int(one.get("y"))) for one in svg.iter(f"{SVG}rect")]
    crossing_x, crossing_y = (int(number) for number in re.search(r"L(\d+) (\d+)", long).groups())
    column = [y for x, y in boxes if x == crossing_x - 250]

    assert 2 == long.count("C")
    assert [] == [y for y in column if y <= crossing_y <= y + 34]


def test_the_drawing_is_described(browser):
    """The drawing has a title and says its edges in words."""
    svg, _ = graph(browser, "top")

    assert "References" == svg.find(f"{SVG}title").text
    assert "top v1 refers to middle v1" in svg.find(f"{SVG}desc").text


def test_names_stay_text(browser):
    """A name in a drawing is escaped, and turns no text around."""
    text = browser.get("/ui/subjects/middle/versions/1")

    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "⟨U+202E⟩" in unescape(text)


def test_many_nodes_are_bounded(browser):
    """A crowded layer shows some nodes and how many more there are."""
    _, labels = graph(browser, "common")

    assert 1 + 12 + 1 == len(labels)
    assert "and 18 more" == labels[-1]


def test_no_references_no_drawing(browser):
    """A version without references has no drawing."""
    assert (None, []) == graph(browser, "alone")
