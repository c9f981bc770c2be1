"""A registry with schemas of a shop, and a real Chromium that notes what should not happen on a page."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from harness.chromium import NoChromium, chromium
from harness.npm import installed
from harness.registry import RegistryNode

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_TIMEOUT_MS = 90_000  # on a machine that is busy with other tests


def record(name, *fields, **more):
    """Return an Avro record as text."""
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": list(fields), **more})


ID = {"name": "id", "type": "long", "doc": "Number of the order, unique for ever."}
EMAIL = {"name": "email", "type": "string", "doc": "Where the receipt goes.", "confluent:tags": ["PII"]}
RECEIPT = EMAIL | {"name": "receipt_email", "aliases": ["email"]}
NOTE = {"name": "note", "type": ["null", "string"], "default": None, "doc": "What the customer wrote."}
TOTAL = {"name": "total", "type": "double", "default": 0.0, "doc": "In euros, with tax."}
SHIP_TO = {"name": "ship_to", "type": "Address", "doc": "Where the parcel goes."}
ANYWHERE = SHIP_TO | {"default": {"street": "", "town": ""}}
ADDRESS = record("Address", {"name": "street", "type": "string"}, {"name": "town", "type": "string"})
TEAM = {"properties": {"owner": "team-checkout", "producer": "checkout-service"}, "sensitive": ["producer"]}
USES_ADDRESS = [{"name": "Address", "subject": "addresses", "version": 1}]
USES_ORDER = [{"name": "Order", "subject": "orders-value", "version": 3}]
PROTO = (
    'syntax = "proto3";\npackage shop;\n\n// A payment.\nmessage Payment {\n  int64 id = 1;\n  string iban = 2;\n}\n'
)
SHIPMENT = {
    "type": "object",
    "properties": {"parcel": {"type": "string", "description": "On the label."}, "grams": {"type": "integer"}},
    "required": ["parcel"],
}
CONTENT = [
    ("addresses", {"schema": ADDRESS}),
    ("orders-value", {"schema": record("Order", ID, EMAIL, doc="An order of the shop."), "metadata": TEAM}),
    ("orders-value", {"schema": record("Order", ID, EMAIL, NOTE, doc="An order of the shop."), "metadata": TEAM}),
    (
        "orders-value",
        {
            "schema": record("Order", ID, RECEIPT, TOTAL, ANYWHERE, doc="An order of the shop."),
            "references": USES_ADDRESS,
            "metadata": TEAM,
        },
    ),
    ("payments-value", {"schema": PROTO, "schemaType": "PROTOBUF"}),
    ("shipments-value", {"schema": json.dumps(SHIPMENT), "schemaType": "JSON"}),
    ("numbers-value", {"schema": '"long"'}),
    ("returns-value", {"schema": record("Return", ID, SHIP_TO), "references": USES_ADDRESS}),
    ("audits-value", {"schema": record("Audit", {"name": "order", "type": "Order"}), "references": USES_ORDER}),
    (":.eu:orders-value", {"schema": record("Order", ID, EMAIL)}),
    *(
        (f"clicks-{number:02}-value", {"schema": record("Click", {"name": "at", "type": "long"})})
        for number in (0, 1, 2, 11)
    ),
]


_AXE = """async ([rules]) => {
  const options = rules ? {runOnly: rules} : {};
  const found = await axe.run(document, {...options, resultTypes: ["violations"], selectors: false});
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`);
}"""


class Service:
    """A registry in its own process.

    Args:
        node: the process.
    """

    def __init__(self, node: RegistryNode) -> None:
        self.url, self.port = node.url, node.port
        self._node = node

    def call(self, method, path, body=None, **headers):
        """Send a request; return the status, the headers in lower case and the text of the answer."""
        connection = self._node.connect()
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
        finally:
            connection.close()

    def api(self, method, path, body=None):
        """Ask the API, which must say yes; return what it says."""
        text = None if body is None else json.dumps(body)
        status, _, answer = self.call(method, path, text, Content_Type="application/json")
        assert 200 == status, answer
        return json.loads(answer)

    def register(self, subject, body):
        """Register a schema and return its id."""
        return self.api("POST", f"/subjects/{quote(subject, safe='')}/versions", body)["id"]


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """Yield the session's registry, with the content above; a test that writes uses subjects of its own."""
    with RegistryNode("memory:", "--ui=full", "--max-body=8388608") as node:
        made = Service(node)
        for subject, body in CONTENT:
            made.register(subject, body)
        made.api("PUT", "/config/clicks-00-value", {"compatibility": "FULL"})
        made.api("DELETE", "/subjects/clicks-11-value")
        yield made


# A package has no async tests, which cannot run while Playwright does: its thread has an event loop.
@pytest.fixture(scope="package")
def chromium_browser() -> Iterator["Browser"]:
    """Yield a running Chromium."""
    try:
        path = chromium()
    except NoChromium as error:
        pytest.skip(f"THE PAGES ARE NOT TESTED IN A BROWSER: {error}")
    from playwright.sync_api import sync_playwright  # here, for its import takes long

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, timeout=_TIMEOUT_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def findings() -> Callable[["Page"], list[str]]:
    """Return a function that returns what is seriously wrong with a page by the WCAG, in light and dark colours."""
    axe = (installed("axe-core@4.14.1") / "node_modules/axe-core/axe.min.js").read_text()

    def found(page: "Page") -> list[str]:
        page.evaluate(axe)
        light = page.evaluate(_AXE, [None])
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate(_AXE, [["color-contrast"]])
        page.emulate_media(color_scheme="light")
        return light + dark

    return found


@contextmanager
def windows(browser: "Browser", service: Service) -> Iterator[Callable[..., "Page"]]:
    """Open windows with the options of a test, and fail if one of them complains or leaves the registry.

    A complaint is a message of the console (a violated policy is one), an exception, a dialog, or a request to another
    host. A test may expect some, by a part of each.
    """
    opened = []

    def start(*, expects=(), **options) -> "Page":
        context = browser.new_context(
            **{"base_url": service.url, "viewport": {"width": 1280, "height": 900}, **options}
        )
        context.set_default_timeout(_TIMEOUT_MS)
        page, complaints = context.new_page(), []
        home = options.get("base_url", service.url)
        page.on("console", lambda one: complaints.append(f"{one.type}: {one.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda one: complaints.append(one.url) if not one.url.startswith(f"{home}/") else None)

        def dismiss(dialog):
            complaints.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", dismiss)
        page.complaints = complaints
        opened.append((context, complaints, expects))
        return page

    yield start
    for context, *_ in opened:
        context.close()
    assert [] == [
        one for _, complaints, expected in opened for one in complaints if not any(part in one for part in expected)
    ]


@pytest.fixture
def open_page(chromium_browser, service) -> Iterator[Callable[..., "Page"]]:
    """Open windows of a test."""
    with windows(chromium_browser, service) as start:
        yield start


@pytest.fixture(scope="module")
def open_shared_page(chromium_browser, service) -> Iterator[Callable[..., "Page"]]:
    """Open windows for a file of tests; a new one takes longer than a page."""
    with windows(chromium_browser, service) as start:
        yield start
