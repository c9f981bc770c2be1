"""Each view in a real browser: accessible in light and dark, as wide as its window, and readable without JavaScript.

With `SCREENSHOTS=FOLDER` the last test writes pictures of the main views there (`make screenshots`).
"""

import os
from html import unescape
from pathlib import Path

import pytest

from harness.waiting import until

ORDERS = "/ui/subjects/orders-value"
RECORD = "00 00 00 00 02 0e 14 61 62 63"
VIEWS = {  # address, and what a person reads there
    "subjects": ("/ui/subjects", "orders-value"),
    "subject": (ORDERS, "Settings in force"),
    "version": (f"{ORDERS}/versions/latest", "Referred to by"),
    "protobuf": ("/ui/subjects/payments-value/versions/1", "iban"),
    "json": ("/ui/subjects/shipments-value/versions/1", "On the label."),
    "referred": ("/ui/subjects/addresses/versions/1", "Referred to by"),
    "diff": (f"{ORDERS}/diff?from=2&to=3", "What changed"),
    "search": ("/ui/search?query=email", "orders-value"),
    "decode": ("/ui/decode", "Decode a record"),
    "contexts": ("/ui/contexts", ".eu"),
    "settings": ("/ui/settings", "clicks-00-value"),
    "scope": ("/ui/settings/clicks-00-value", "FULL"),
    "keys": ("/ui/keys", "key"),
    "log": ("/ui/log", "orders-value"),
    "health": ("/ui/health", "This node is ready."),
    "register": ("/ui/do/register?subject=orders-value", "Registers a schema"),
    "delete-for-good": ("/ui/do/delete-for-good?subject=clicks-11-value", "Records that were written with it"),
    "edit": ("/ui/do/edit?subject=orders-value&version=3", "one per line"),
    "failure": ("/ui/subjects/no-such", "no-such"),
}
# Those with a form have the same findings in a test of answers to forms, the keys in the test of the checks, and the
# others are the page of a version too.
ALIKE = {"protobuf", "json", "referred", "keys", "decode", "register", "delete-for-good"}
LONG = {"subjects", "subject", "diff", "search", "contexts", "settings", "scope", "log", "health", "edit"}
MARKS = dict.fromkeys(ALIKE, pytest.mark.slow) | dict.fromkeys(LONG, pytest.mark.long)
PICTURES = ("subjects", "version", "diff", "search", "health")
views = pytest.mark.parametrize("name", VIEWS)


def show(page, name):
    """Show a view in a window, and wait for its text."""
    address, text = VIEWS[name]
    page.goto(address)
    page.get_by_text(text).first.wait_for(state="attached")
    return page


@pytest.fixture
def open_view(open_page):
    """Open a window for a view; the console reports the status of the page of an error."""

    def start(name, **options):
        return show(open_page(expects=("404 (Not Found)",) if name == "failure" else (), **options), name)

    return start


@pytest.fixture(scope="module")
def window(open_shared_page):
    """Return a window that shows one view after another."""
    return open_shared_page(expects=("404 (Not Found)",))  # the page of an error


def too_wide(page):
    """Return the widths of windows in which a page is wider than its window: a telephone and a wide screen."""
    wide = []
    for width in (375, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(width)
    return wide


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in VIEWS])
def test_accessible_and_as_wide_as_its_window(window, findings, name):
    """A view has no serious findings in light or dark, and fits a telephone and a wide screen."""
    window.complaints.clear()
    window.set_viewport_size({"width": 1280, "height": 900})
    page = show(window, name)
    assert [] == findings(page)
    assert [] == too_wide(page)
    assert ["404 (Not Found)" in one for one in window.complaints] == [True] * (name == "failure")


@pytest.mark.long
def test_answers_to_forms_are_accessible(window, findings):
    """The review of an action with its verdict, and a record that breaks or is decoded, have no serious findings."""
    window.complaints.clear()
    page = show(window, "register")
    page.get_by_role("textbox", name="Schema", exact=True).fill('{"type": "record", "name": "Order", "fields": [')
    page.get_by_text("Not compatible").wait_for()
    assert [] == findings(page)
    page.get_by_role("button", name="Review").click()
    page.get_by_text("The same on the command line").wait_for()
    assert [] == findings(page)
    for record, heading in ((RECORD, "Where it breaks"), ("00 00 00 00 02 0e 02 61", "Value")):
        show(page, "decode")
        page.get_by_role("textbox", name="Record", exact=True).fill(record)
        page.get_by_role("button", name="Decode").click()
        page.get_by_role("heading", name=heading).wait_for()
        assert [] == findings(page)
    assert [] == window.complaints


@pytest.mark.slow
def test_the_documentation_of_the_api_loads_nothing_of_other_hosts(open_page):
    """The page of the API shows its routes from files of the registry."""
    page = open_page()
    page.goto("/docs")
    page.get_by_text("/subjects/{subject}/versions").first.wait_for()


def test_the_checks_find_something(open_page, findings):
    """The checks above see a page that is not accessible, too wide, or breaks the policy; nothing else is found."""
    page = show(open_page(expects=("Content Security Policy",)), "keys")
    assert [] == too_wide(page)
    page.evaluate("""() => {
      document.body.append(document.createElement("img"));
      const wide = document.createElement("p");
      wide.textContent = "wide";
      wide.style.width = "3000px";
      document.body.append(wide);
      wide.setAttribute("onclick", "alert(1)");
      wide.click();
    }""")
    assert ["image-alt"] == [one.partition(":")[0] for one in findings(page)]
    assert [375, 1440] == too_wide(page)
    until(lambda: page.wait_for_timeout(20) or any("Content Security Policy" in one for one in page.complaints))


@pytest.mark.slow
@views
def test_without_javascript(open_view, name):
    """A view can be read without JavaScript."""
    page = open_view(name, java_script_enabled=False)
    assert page.locator("h1").inner_text()


def test_filters_without_javascript(open_page):
    """Filters, the comparison and the decoder are forms, which need no JavaScript."""
    page = show(open_page(java_script_enabled=False), "subjects")
    page.get_by_role("searchbox", name="Name").fill("payments")
    with page.expect_navigation():
        page.get_by_role("button", name="Apply").click()
    assert ["payments-value"] == page.locator("tbody th a").all_inner_texts()
    show(page, "diff")
    page.get_by_label("From version").select_option("1")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="version 1 to 3").wait_for()
    show(page, "decode")
    page.get_by_label("Record", exact=True).fill(RECORD)
    page.get_by_role("button", name="Decode").click()
    page.get_by_role("heading", name="Where it breaks").wait_for()


# engine, what only its statement has
TABLES = [
    ("iceberg", "USING iceberg"),
    ("delta", "USING delta"),
    ("parquet", "USING parquet"),
    ("flink", "`ship_to` ROW<`street` STRING, `town` STRING>"),
    ("clickhouse", "ENGINE = MergeTree"),
    ("duckdb", """COMMENT ON COLUMN "orders"."total" IS 'In euros, with tax.'"""),
]


@pytest.mark.long
def test_the_table_of_a_version(open_page, window, service, findings):
    """The page of a version shows the statement of its table for the engine that is chosen, without JavaScript too."""
    for engine, text in TABLES:
        status, _, page = service.call("GET", f"{ORDERS}/versions/latest?engine={engine}", Accept="text/html")
        assert (200, True) == (status, text in unescape(page)), engine
    window.complaints.clear()
    for opened, (engine, text) in ((window, TABLES[0]), (open_page(java_script_enabled=False), TABLES[-1])):
        page = show(opened, "version")
        page.get_by_label("Engine").select_option(engine)
        page.get_by_role("button", name="Show").click()
        page.locator("#statement", has_text=text).wait_for()
        assert page.get_by_label("Engine").input_value() == engine
    window.goto("/ui/subjects/numbers-value/versions/1")
    window.get_by_text("No table can hold this schema: a table needs a record; the schema is BIGINT").wait_for()
    assert [] == findings(window)
    assert [] == window.complaints


@pytest.mark.skipif("SCREENSHOTS" not in os.environ, reason="writes pictures only for SCREENSHOTS=FOLDER")
@pytest.mark.parametrize("name", [*PICTURES, "decode"])
def test_screenshots(open_page, name):
    """Write the picture of a view."""
    page = show(open_page(viewport={"width": 1200, "height": 800}), name)
    if name == "decode":
        page.get_by_label("Record", exact=True).fill(RECORD)
        page.get_by_role("button", name="Decode").click()
        page.get_by_role("heading", name="Where it breaks").wait_for()
    path = Path(os.environ["SCREENSHOTS"]) / f"{name}.png"
    page.screenshot(path=path)
    assert path.stat().st_size < 200_000
