"""The page of a subject's usage."""

import json

JSON = {"Content-Type": "application/json", "Accept": "application/json"}


def _registered(opened):
    status, text = opened.call("POST", "/subjects/a%2Fb/versions", json.dumps({"schema": '"int"'}), **JSON)
    assert 200 == status, text
    return opened


def test_a_version_shows_who_fetched_it(open_pages):
    """The page names the clients as text, with how often they came; a version without clients has none."""
    opened = _registered(open_pages())
    unused = opened.get("/ui/subjects/a%2Fb/usage")
    for _ in range(2):
        opened.call("GET", "/subjects/a%2Fb/versions/1", **JSON, User_Agent="<b>orders</b>/2")
    used = opened.get("/ui/subjects/a%2Fb/usage")

    assert "orders" not in unused
    assert "<bdi>&lt;b&gt;orders&lt;/b&gt;/2</bdi>" in used
    assert "<td>2</td>" in used
    assert "/ui/subjects/a%2Fb/usage" in opened.get("/ui/subjects/a%2Fb")


def test_no_page_of_usage_that_is_not_counted(open_pages):
    """With the setting off, the page says so, and no page leads there."""
    opened = _registered(open_pages(usage="off"))

    assert "--usage off" in opened.get("/ui/subjects/a%2Fb/usage")
    assert "/usage" not in opened.get("/ui/subjects/a%2Fb")
