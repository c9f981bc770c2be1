"""Whatever subjects, paths, tokens, agents and ids clients send, `/metrics` does not grow."""

import asyncio
import json
import logging
from base64 import b64encode

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.passwords import cheap_hash
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog

ROOT = b64encode(b"root:root").decode()
WARM_UP = 200
_log = logging.getLogger(__name__)


@pytest.fixture
def app(tmp_path):
    """Return a registry with access control."""
    users = tmp_path / "auth.yaml"
    users.write_text(json.dumps({"users": [{"name": "root", "password": str(cheap_hash("root"))}]}))
    return create_app(MemoryLog(), Settings(log="memory:", auth_file=users, superusers="User:root"))


async def send(app, number):
    """Send a request that no other number sends; every thousandth registers a schema."""
    text = str(number)
    authorization, method, path, body = f"Basic {ROOT}", "GET", "", b""
    match number % 8 if number % 1000 else "a registration":
        case "a registration":
            method, path = "POST", f"/subjects/s{text}/versions"
            body = json.dumps({"schema": json.dumps({"type": "enum", "name": f"E{text}", "symbols": ["A"]})}).encode()
        case 0:
            path = f"/subjects/s{text}/versions?deleted=true"
        case 1:
            path = f"/subjects/s{text}/versions/1"
        case 2:
            path = f"/schemas/ids/{text}"
        case 3:
            path = f"/p{text}/{text}"
        case 4:
            method, path = f"M{text}", "/subjects"
        case 5:
            path = f"/config/{text}"
        case 6:
            path, authorization = f"/subjects?{text}", f"Bearer {text}"
        case _:
            path, authorization = "/subjects", "Basic " + b64encode(f"u{text}:{text}".encode()).decode()
    # Failed logins come from another address: after too many of them an address gets no login checked for a while.
    address = "127.0.0.1" if authorization.endswith(ROOT) else "127.0.0.2"
    headers = [("user-agent", f"a{text}"), ("x-request-id", f"r{text}")]
    await call(app, method, path, body, authorization, headers, address)


async def call(app, method, path, body, authorization, headers=(), address="127.0.0.1"):
    """Send a request to an app in process, and return the body of the answer."""
    bodies = []

    received = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive():
        return next(received, None) or await asyncio.Event().wait()

    async def answered(message):
        bodies.append(message.get("body", b""))

    sent = [("host", "localhost"), ("authorization", authorization), ("content-type", "application/json"),
            ("content-length", str(len(body))), *headers]  # fmt: skip
    path, _, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
             "headers": [(name.encode(), value.encode()) for name, value in sent],
             "client": (address, 1), "server": ("127.0.0.1", 8081), "scheme": "http", "http_version": "1.1",
             "root_path": ""}  # fmt: skip
    await app(scope, receive, answered)
    return b"".join(bodies)


async def scrape(app):
    """Return the text of `/metrics`, and the names and labels of its series."""
    text = (await call(app, "GET", "/metrics", b"", f"Basic {ROOT}")).decode()
    families = text_string_to_metric_families(text)
    return text, {(sample.name, *sample.labels.items()) for family in families for sample in family.samples}


@pytest.mark.anyio
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("requests", [1_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
async def test_traffic_does_not_make_metrics_grow(app, requests, caplog):
    """After requests of every kind there are no more series, and the text is longer by digits of its numbers only."""
    caplog.set_level(logging.ERROR, "strata")  # pytest would keep each line of a failed login
    await scrape(app)
    for number in range(WARM_UP):
        await send(app, number)
    text, before = await scrape(app)
    for number in range(WARM_UP, WARM_UP + requests):
        await send(app, number)
    longer, after = await scrape(app)
    _log.info("%s series, %s bytes; %s series, %s bytes", len(before), len(text), len(after), len(longer))

    # On a busy machine the event loop may give up a schema, and parse it in a thread.
    assert before == {one for one in after if one in before or ("outcome", "given_up") not in one}
    assert len(longer) < len(text) + 10 * len(after)
    assert f'strata_subjects{{state="live"}} {-(-(WARM_UP + requests) // 1000)}.0' in longer
