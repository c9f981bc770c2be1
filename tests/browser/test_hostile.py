"""What other sites and hostile schemas can do through a person's browser: nothing."""

import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote, urlencode

import pytest

SCRIPT = "<script>alert(1)</script>"
MARKUP = f"{SCRIPT}<img src=x onerror=alert(2)><a href='javascript:alert(3)' onclick=alert(4)>x</a>\"'&lt;"
BREAKOUT = "</textarea></pre></title></style></svg><svg onload=alert(5)><iframe srcdoc='<script>alert(6)</script>'>"
TURNED = "\u202egnihtemos\u2066\u200f"
HOSTILE = f"{MARKUP}{BREAKOUT}{{{{ 7 * 7 }}}}{TURNED}"
TEMPLATE = "{{ 7 * 7 }}{% raw %}"
AVRO = {
    "type": "record",
    "name": "Hostile",
    "doc": HOSTILE,
    "aliases": ["Other"],
    HOSTILE: HOSTILE,
    "fields": [
        {"name": "a", "type": "string", "doc": HOSTILE, "default": HOSTILE, "confluent:tags": [HOSTILE]},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"], "doc": HOSTILE}, "order": "ignore"},
        {"name": "m", "type": {"type": "map", "values": "string"}, "default": {HOSTILE: HOSTILE}},
    ],
}
JSON_SCHEMA = {
    "$id": f"https://example.com/{quote(SCRIPT)}",
    "title": HOSTILE,
    "description": HOSTILE,
    "type": "object",
    "properties": {HOSTILE: {"enum": [HOSTILE, SCRIPT], "default": HOSTILE, "description": HOSTILE, "title": HOSTILE}},
}
PROTO = 'syntax = "proto3";\n// %s\nmessage M {\n  // %s\n  string s = 1 [json_name = "%s"];\n}\n'
METADATA = {
    "properties": {HOSTILE: HOSTILE, "owner": SCRIPT},
    "tags": {"Hostile.a": [HOSTILE]},
    "sensitive": [HOSTILE],
}
RULES = {
    "domainRules": [
        {
            "name": "r",
            "kind": "CONDITION",
            "type": "CEL",
            "mode": "WRITE",
            "expr": f"message.a != '{SCRIPT}'",
            "doc": HOSTILE,
            "tags": [SCRIPT],
        }
    ]
}
SUBJECTS = [
    f"hostile{SCRIPT} 'a' \"b\" `c` $d;",
    f"hostile{BREAKOUT}{TEMPLATE}",
    f":.{SCRIPT}:hostile{TURNED}",
]


FORMATS = ("avro", "json", "protobuf")


def bodies():
    """Return two versions of each format."""
    changed = {**AVRO, "doc": MARKUP, "fields": [*AVRO["fields"], {"name": "n", "type": "int", "default": 0}]}
    described = {**JSON_SCHEMA, "description": MARKUP, "properties": {**JSON_SCHEMA["properties"], SCRIPT: {}}}
    line = HOSTILE.replace("\n", " ")
    name = SCRIPT.replace('"', "'")
    return [
        [{"schema": json.dumps(one), "metadata": METADATA, "ruleSet": RULES} for one in (AVRO, changed)],
        [{"schema": json.dumps(one), "schemaType": "JSON"} for one in (JSON_SCHEMA, described)],
        [{"schema": PROTO % (line, line, name) + more, "schemaType": "PROTOBUF"} for more in ("", "message N {}\n")],
    ]


@pytest.fixture(scope="module")
def hostile(service):
    """Register hostile schemas under hostile names; return the addresses of the pages that show all, and each."""
    addresses = [f"/ui/search?query={quote(word)}" for word in ("script", "alert", "hostile", SCRIPT)]
    addresses += [f"/ui/subjects?name={quote(word)}" for word in ("hostile", HOSTILE)]
    addresses += ["/ui/subjects?sort=changed", "/ui/contexts", "/ui/settings", "/ui/log"]
    places = {"all": addresses}
    # A page that shows only the name of a schema is asked for with one of the names.
    rows = zip(FORMATS, SUBJECTS, bodies(), ("level", "register", "delete-for-good"), strict=True)
    for schema_format, subject, versions, action in rows:
        name = quote(subject, safe="")
        service.api("PUT", f"/config/{name}", {"compatibility": "NONE", "compatibilityGroup": HOSTILE})
        for body in versions:
            service.register(subject, body)
        page = f"/ui/subjects/{name}"
        places[schema_format] = [page, f"{page}/versions/2", f"{page}/diff?from=1&to=2", f"/ui/settings/{name}"]
        places[schema_format] += [f"/ui/do/{do}?subject={name}&version=1" for do in ("edit", action)]
    return places


@pytest.fixture(scope="module")
def window(open_shared_page):
    """Return a window that shows one page after another."""
    return open_shared_page()


@pytest.mark.parametrize(
    "place", ["avro", "all", *(pytest.param(name, marks=pytest.mark.long) for name in FORMATS[1:])]
)
def test_script_in_every_place_stays_text(window, hostile, place):
    """No page runs, loads, or renders anything of a hostile schema; a window complains otherwise."""
    page = window
    page.complaints.clear()
    for address in hostile[place]:
        page.goto(address)
        found, text = page.evaluate("""() => {
          const found = [
            ...document.querySelectorAll("main iframe, main img, main script, main svg[onload], [onclick], [onerror]"),
            ...document.querySelectorAll("a[href^='javascript:' i]")].map((one) => one.outerHTML);
          document.querySelectorAll("textarea").forEach((one) => one.remove());  // they send back what they hold
          return [found, document.querySelector("main").textContent]; }""")
        assert [] == found, address
        assert [] == re.findall("[\u202e\u2066\u200f]", text), address
        assert SCRIPT in text or "/versions/" not in address, address
        assert "49" not in page.title()
    assert [] == page.complaints


def test_hostile_records_stay_text(open_page, service):
    """A decoded record is text too, and so is what a person pastes and what the page says about it."""
    schema_id = service.register("hostile-record", {"schema": '"string"'})
    data = HOSTILE.encode()
    size = len(data) * 2
    record = b"\0" + schema_id.to_bytes(4, "big") + bytes([size & 127 | 128, size >> 7]) + data
    page = open_page(expects=("400 (Bad Request)",))
    for pasted in (record.hex(), HOSTILE):
        page.goto("/ui/decode")
        page.get_by_role("textbox", name="Record", exact=True).fill(pasted)
        page.get_by_role("button", name="Decode").click()
        page.locator("main pre, main .failure").first.wait_for()
        assert 0 == page.locator("main iframe, main img, main script").count()


@pytest.mark.slow
def test_large_and_deep_schemas(open_page, service):
    """Ten thousand fields, a megabyte of text and 200 levels are shown, and the page still answers."""
    fields = [{"name": f"f{number}", "type": "string"} for number in range(10_000)]
    deep = '{"type": "string"}'
    for _ in range(90):
        deep = f'{{"type": "object", "properties": {{"p": {deep}}}}}'
    arrays = '"int"'
    for _ in range(95):
        arrays = f'{{"type": "array", "items": {arrays}}}'
    for subject, body in (
        ("hostile-wide", {"schema": json.dumps({"type": "record", "name": "Wide", "fields": fields})}),
        ("hostile-long", {"schema": json.dumps({"type": "string", "doc": "d " * 500_000})}),
        ("hostile-deep", {"schema": deep, "schemaType": "JSON"}),
        ("hostile-arrays", {"schema": arrays}),
    ):
        service.register(subject, body)
        page = open_page(viewport={"width": 375, "height": 900})
        for address in (f"/ui/subjects/{subject}", f"/ui/subjects/{subject}/versions/1"):
            page.goto(address)
            assert subject in page.locator("h1").inner_text()
            assert 375 >= page.evaluate("document.documentElement.scrollWidth"), address
            assert page.evaluate("document.querySelectorAll('*').length") < 25_000


# --- other sites


@contextmanager
def site(html):
    """Serve a page of another site; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://localhost:{server.server_address[1]}"  # another host than that of the registry
        finally:
            server.shutdown()
            thread.join()


def inputs(fields):
    """Return the hidden fields of a form."""
    return "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in fields.items())


def token(page):
    """Return the token in the forms of a page."""
    return page.locator("input[name=form_token]").first.get_attribute("value")


def test_a_forged_form_of_another_site(open_page, service):
    """A form that another site sends in a person's browser changes nothing, even with the token of their session."""
    service.register("forged-value", {"schema": '"int"'})
    page = open_page(expects=("http://localhost:", "Failed to load resource"))
    page.goto("/ui/do/delete?subject=forged-value")
    fields = {"subject": "forged-value", "version": "", "confirmed": "yes", "form_token": token(page)}
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
        action = f"{service.url}/ui/do/delete"
        form = f'<form method="post" enctype="{kind}" action="{action}">{inputs(fields)}<button>Win</button></form>'
        with site(form) as address:
            page.goto(f"{address}/")
            with page.expect_navigation():
                page.get_by_role("button").click()
        assert action == page.url
        page.locator("h1").wait_for()
        assert [1] == service.api("GET", "/subjects/forged-value/versions")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.test"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.test", "Sec_Fetch_Site": "same-origin"},
        {"Cookie": ""},
        {"Cookie": "strata_session=x"},
        {"token": ""},
        {"token": "0" * 64},
        {"token": None},
    ],
)
@pytest.mark.parametrize("action", ["delete", "delete-for-good", "register", "level", "mode", "edit", "bring-back"])
def test_forged_requests(service, action, headers):
    """Each action refuses a request of another origin, of no session, or without its token."""
    status, found, text = service.call("GET", f"/ui/do/{action}?subject=addresses&version=1")
    assert 200 == status, text
    fields = {
        "form_token": re.search(r'name="form_token" value="([0-9a-f]{64})"', text)[1],
        "subject": "addresses",
        "version": "1",
        "confirmed": "yes",
        "typed": "addresses 1",
        "schema": '"int"',
        "level": "NONE",
        "mode": "READONLY",
    }
    sent = {"Cookie": found["set-cookie"].partition(";")[0], "Content_Type": "application/x-www-form-urlencoded"}
    given = dict(headers)
    if "token" in given:
        fields |= {"form_token": given.pop("token")}
    body = urlencode({name: value for name, value in fields.items() if value is not None})
    status, _, text = service.call("POST", f"/ui/do/{action}", body, **{**sent, **given})
    assert 403 == status, text
    assert [1] == service.api("GET", "/subjects/addresses/versions")


def test_no_other_site_frames_a_page(open_page, service):
    """Another site cannot put a page into a frame, to have a person click on it."""
    with site(f'<iframe src="{service.url}/ui/do/delete?subject=addresses" name="inner"></iframe>') as address:
        page = open_page(expects=("frame-ancestors", service.url, "Failed to load resource"), base_url=address)
        with page.expect_console_message(lambda one: "frame-ancestors" in one.text):
            page.goto("/")
        assert 0 == page.frame_locator("iframe").locator("form").count()


@pytest.mark.parametrize(
    "address",
    [
        "/ui", "/ui/subjects", "/ui/subjects/orders-value", "/ui/subjects/orders-value/versions/1", "/ui/decode",
        "/ui/subjects/orders-value/versions/1/text", "/ui/do/register", "/ui/static/strata.css", "/ui/sign-in",
        "/ui/no-such", "/ui/subjects/no-such", "/ui/schemas/find?id=1", "/docs", "/ui/health", "/ui/log",
    ],
)  # fmt: skip
def test_headers(service, address):
    """Every answer forbids frames, guesses of its type, and scripts of elsewhere."""
    _, headers, _ = service.call("GET", address, Accept="text/html")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert ("DENY", "nosniff") == (headers["x-frame-options"], headers["x-content-type-options"])


ADDRESSES = [
    "//evil.test",
    "https://evil.test/ui",
    "/ui//evil.test",
    "/ui/../..//evil.test",
    "\\\\evil.test",
    "/ui\t//evil.test",
]


_FETCH = """(addresses) => Promise.all(addresses.map((address) => fetch(address).then((answer) => answer.url)))"""


def test_no_address_leads_to_another_site(open_page, service):
    """Whatever an address says, a person stays at the registry."""
    page = open_page(expects=("Failed to load resource",))
    addresses = [
        f"{service.url}{path}"
        for to in ADDRESSES
        for path in (
            f"/ui/sign-in?to={quote(to)}",
            f"/ui/sign-in/provider?to={quote(to)}",
            f"/ui/schemas/find?id={quote(to)}",
            f"/{to}",
        )
    ]
    for address in addresses[:4]:
        page.goto(address)
        assert page.url.startswith(f"{service.url}/"), address
    # A browser reads and follows an address in the same way when it fetches it, which is cheaper than a page.
    for address, url in zip(addresses, page.evaluate(_FETCH, addresses), strict=True):
        assert url.startswith(f"{service.url}/"), address
