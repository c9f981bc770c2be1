"""Every page: what its headers allow, what `--ui` switches, where browsers and API clients are sent, and errors."""

import json

import pytest

API = "application/vnd.schemaregistry.v1+json"


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry with the default settings."""
    return open_pages()


@pytest.mark.parametrize(
    "path", ["/ui/subjects", "/ui/nothing", "/ui/static/strata.css", "/ui/static/htmx.min.js", "/ui/static/none.css"]
)
def test_headers_of_every_page(browser, path):
    """No page runs a script of its own text, loads from other hosts, is framed, or sends forms elsewhere."""
    browser.call("GET", path)
    rules = dict(rule.strip().split(" ", 1) for rule in browser.headers["content-security-policy"].split(";"))
    assert "'none'" == rules.pop("default-src") == rules.pop("base-uri") == rules.pop("frame-ancestors")
    assert {"'self'"} == set(rules.values())
    assert {"script-src", "style-src", "img-src", "connect-src", "form-action"} == set(rules)
    assert "nosniff" == browser.headers["x-content-type-options"]
    assert "same-origin" == browser.headers["referrer-policy"]


def test_browsers_are_sent_to_the_pages(browser):
    """A browser at `/` gets to the subjects; the answer says that it depends on `Accept`."""
    assert 303 == browser.call("GET", "/")[0]
    assert ("/ui", "Accept") == (browser.headers["location"], browser.headers["vary"])
    assert 303 == browser.call("GET", "/ui")[0]
    assert "/ui/subjects" == browser.headers["location"]


@pytest.mark.parametrize("accept", [API, "application/json", "*/*", ""])
def test_api_clients_are_not(browser, accept):
    """A client of the API gets at `/` what it gets without pages."""
    status, text = browser.call("GET", "/", Accept=accept)
    assert (200, {}) == (status, json.loads(text))
    assert browser.headers["content-type"] == (accept if accept.startswith("application") else API)


def test_a_client_that_accepts_neither(browser):
    """What neither a browser nor a client of the API asks for is refused, as without pages."""
    assert 406 == browser.call("GET", "/", Accept="image/png")[0]


def test_without_pages(open_pages):
    """With `--ui off` there are no pages, and `/` is the API's."""
    browser = open_pages(ui="off")
    for path, status in (("/", 200), ("/ui", 404), ("/ui/subjects", 404)):
        assert status == browser.call("GET", path)[0]
        assert browser.headers["content-type"] == API


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/ui/nothing", 404), ("GET", "/ui/static/../settings.py", 404), ("POST", "/ui/subjects", 405)],
)
def test_errors_are_pages(browser, method, path, status):
    """An error below `/ui` is a page that says what is wrong and where to go."""
    found, text = browser.call(method, path)
    assert status == found
    if status != 405:
        assert browser.headers["content-type"].startswith("text/html")
        assert f"{status} " in text
        assert 'href="/ui"' in text


def test_an_error_of_the_api_is_none(browser):
    """Outside of `/ui` errors stay JSON, whatever the client accepts beside it."""
    status, text = browser.call("GET", "/subjects/none/versions", Accept="application/json, text/html")
    assert (404, 40401) == (status, json.loads(text)["error_code"])
