"""Bodies on the wire: gzip in both directions, its limits, and request ids."""

import gzip
import http.client
import json
import logging
import re
import threading

import pytest
from starlette.responses import Response

from harness.pipelines import bare_pipeline
from strata.registry.http.compression import accepts_gzip, compressed, decompressed
from strata.registry.node.logs.context import REQUEST

JSON = "application/json"
SCHEMA = json.dumps({"schema": '"int"'}).encode()
# An enum whose answer is large enough to compress.
LARGE = json.dumps({"type": "enum", "name": "E", "symbols": [f"SYMBOL_{n}" for n in range(500)]})


@pytest.fixture(scope="module")
def filled(shared_api):
    """Return a registry with a small schema, id 1, and a large one, id 2."""
    assert [(1, 1), (2, 1)] == [shared_api.placed("s", '"int"'), shared_api.placed("large", LARGE)]
    return shared_api


def exchange(api, method, path, body=None, **headers):
    """Send a raw body; return the status, headers (lower case) and raw body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=60)
    sent = {"Content-Type": JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, path, body, sent)
    response = connection.getresponse()
    raw = response.read()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, raw


BODIES = [
    pytest.param(gzip.compress(SCHEMA), "gzip", 200, None, id="packed"),
    pytest.param(gzip.compress(SCHEMA), "x-gzip", 200, None, id="packed, by the old name"),
    pytest.param(gzip.compress(SCHEMA), "GZIP", 200, None, id="packed, in capitals"),
    pytest.param(gzip.compress(SCHEMA[:5]) + gzip.compress(SCHEMA[5:]), "gzip", 200, None, id="packed in two parts"),
    pytest.param(SCHEMA, "identity", 200, None, id="plain"),
    pytest.param(SCHEMA, "gzip", 400, "not gzip", id="plain, said to be packed"),
    pytest.param(gzip.compress(SCHEMA)[:-12], "gzip", 400, "too early", id="cut off"),
    pytest.param(gzip.compress(SCHEMA)[:-8] + b"\0" * 8, "gzip", 400, "not gzip", id="a wrong checksum"),
    pytest.param(gzip.compress(b" " * (1 << 24), 1), "gzip", 413, "larger than 1048576", id="a bomb of 16 MiB"),
    pytest.param(b"", "gzip", 422, "missing", id="nothing"),
    pytest.param(SCHEMA, "br", 415, "Unsupported", id="another encoding"),
]


@pytest.mark.parametrize(("body", "encoding", "status", "reason"), BODIES)
def test_packed_request(filled, body, encoding, status, reason):
    """The size limits apply to a gzip body once decompressed; a damaged one is 400."""
    got, _, raw = exchange(filled, "POST", "/subjects/s/versions", body, Content_Encoding=encoding)
    answer = json.loads(raw)

    assert status == got, answer
    if reason is None:
        assert 1 == answer["id"]
    else:
        assert reason in answer["message"]


@pytest.mark.parametrize(
    "path", ["/subjects/large/versions/1", "/subjects/large/versions/latest", "/schemas/ids/2/schema"]
)
def test_large_answer_is_packed_when_the_client_takes_it(filled, path):
    """Compressed and plain answers are equal, cached or not, and HEAD returns the length of either."""
    for _ in range(2):  # The second answer may come from the cache.
        _, plain, text = exchange(filled, "GET", path)
        status, headers, raw = exchange(filled, "GET", path, Accept_Encoding="deflate, gzip;q=0.8")

        assert (200, "gzip", text) == (status, headers["content-encoding"], gzip.decompress(raw))
        assert "content-encoding" not in plain
        assert (len(raw), "Accept-Encoding") == (int(headers["content-length"]), headers["vary"])
        assert headers["content-length"] == exchange(filled, "HEAD", path, Accept_Encoding="gzip")[1]["content-length"]


def test_small_answer_stays_plain(filled):
    """The registry does not compress an answer that fits into a packet."""
    assert "content-encoding" not in exchange(filled, "GET", "/schemas/ids/1", Accept_Encoding="gzip")[1]


@pytest.mark.parametrize("size", [1399, 1400, 8191, 8192, 1 << 16])
async def test_compression_of_any_size(size, monkeypatch):
    """A body that fits a packet stays plain, and a large one is compressed in a thread, not on the event loop."""
    threads = []
    original = gzip.compress

    def compress(*args, **options):
        threads.append(threading.current_thread())
        return original(*args, **options)

    monkeypatch.setattr(gzip, "compress", compress)
    body = b"x" * size
    smaller = await compressed(body)

    assert body == await decompressed(smaller, size)
    assert [size >= 8192] == [thread is not threading.main_thread() for thread in threads]


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [(b"", False), (b"gzip", True), (b"GZIP, br", True), (b"br", False), (b"*", True), (b"gzip;q=0", False),
     (b"gzip;q=0.0, *", False), (b"gzip; q=0.5", True), (b"*;q=0", False), (b"identity", False)],
)  # fmt: skip
def test_who_accepts_gzip(accepted, expected):
    """A client accepts gzip by name or by `*`; quality 0 refuses it."""
    assert expected == accepts_gzip(accepted)


@pytest.mark.parametrize(
    ("told", "echoed"),
    [("abc-1.2_3", True), ("a" * 128, True), ("a" * 129, False), ("a b", False), ('a";drop', False), ("", False)],
)
@pytest.mark.parametrize("path", ["/schemas/ids/1", "/subjects", "/none"])
def test_answer_names_its_request(filled, path, told, echoed):
    """The answer echoes a usable id and replaces any other: cached answers, answers of routes, and errors."""
    found = [exchange(filled, "GET", path, X_Request_ID=told)[1]["x-request-id"] for _ in range(2)]

    if echoed:
        assert [told, told] == found
    else:
        assert all(re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name) for name in found)
        assert found[0] != found[1]


async def test_request_id_is_logged_and_passed_on(caplog, monkeypatch):
    """The app and the access log both see the id of the request."""
    caplog.set_level(logging.INFO, "strata.http")
    seen, logged = [], []
    # Later tests share the handler, so its filter must end with this one.
    note = lambda _record: logged.append(REQUEST.get().request_id) or True  # noqa: E731
    monkeypatch.setattr(caplog.handler, "filters", [note])

    async def respond(exchange):
        seen.extend(value for name, value in exchange.scope["headers"] if name == b"x-request-id")
        return Response(b"{}")

    async def send(_message):
        pass

    pipeline = bare_pipeline(respond, access_log=True)
    for headers in ([(b"x-request-id", b"mine")], []):
        scope = {"type": "http", "method": "GET", "raw_path": b"/x", "query_string": b"", "headers": headers}
        await pipeline(scope, None, send)

    assert b"mine" == seen[0]
    assert [b"mine", seen[1]] == logged
    assert 2 == sum(message.startswith("GET /x 200, 2 bytes in 0.") for message in caplog.messages)


# body, status; the reference's parser stops after the first value
AFTER_THE_BODY = [
    pytest.param(SCHEMA + b"'", 200, id="a quote, as schema-registry-ui sends"),
    pytest.param(SCHEMA + b" {", 200, id="the beginning of another object"),
    pytest.param(SCHEMA.decode().encode("utf-16") + "'".encode("utf-16-le"), 200, id="a quote in UTF-16"),
    pytest.param(SCHEMA[:-1], 400, id="no end"),
    pytest.param(b"'" + SCHEMA, 400, id="a quote before it"),
    pytest.param(b"[" * 100_000, 400, id="no end of beginnings"),
    pytest.param(SCHEMA + b"\xff", 400, id="bytes that are not text"),
]


@pytest.mark.parametrize(("body", "status"), AFTER_THE_BODY)
def test_what_follows_the_first_value_is_dropped(filled, body, status):
    """A body ends with its first JSON value; one that is not whole is 400."""
    got, _, raw = exchange(filled, "POST", "/subjects/s/versions", body)

    assert status == got
    assert (1 if status == 200 else 400) == json.loads(raw)["id" if status == 200 else "error_code"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "/subjects", 405), ("POST", "/schemas/ids/1", 405), ("PATCH", "/config", 405), ("GET", "/none", 404),
     ("GET", "/schemas/ids/x", 404), ("GET", "/subjects?offset=x", 404), ("GET", "/subjects?deleted=foo", 200),
     ("GET", "/subjects?deletedOnly=True&&other=1&reference_format=x", 200), ("GET", "/config/", 200)],
)  # fmt: skip
def test_lenient_and_strict_requests(filled, method, path, status):
    """The registry ignores unknown parameters and odd flags; an unknown route gives an error object."""
    got, _, raw = exchange(filled, method, path, b"{}" if method != "GET" else None)
    answer = json.loads(raw)

    assert status == got
    if status != 200:
        assert status == answer["error_code"]
        assert answer["message"].startswith(f"HTTP {status} ")
