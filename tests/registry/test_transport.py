"""The layers before the routes: media types, limits, paths, and the handling of failures."""

import http.client
import json

import pytest

from harness.pipelines import bare_pipeline
from strata.registry.http.exchange import header_lines

V1 = "application/vnd.schemaregistry.v1+json"
V0 = "application/vnd.schemaregistry+json"
PLAIN = "application/json"

# Accept, media type of the answer (None: 406)
ACCEPTS = [
    ("", V1),
    ("*/*", V1),
    (V1, V1),
    (V0, V0),
    (PLAIN, PLAIN),
    ("application/json, application/*+json", PLAIN),
    ("application/json, text/plain, */*", V1),
    ("application/json, */*;q=0.1", PLAIN),
    (f"{V1};q=0.1, {V0};q=0.2, {PLAIN};q=0.3", PLAIN),
    ("*", V1),
    ("*/json", V1),
    ("text/html, image/gif, *; q=.2, */*; q=.2", V1),
    ("application/*;q=0.5", V1),
    (f"{V1};q=0, */*", V0),
    ("*/*;q=0", None),
    ("text/*", None),
    (f"{V1}, {V0}, {PLAIN}; q=0.5", V1),
    ("APPLICATION/JSON", PLAIN),
    ("text/html", None),
    ("text/html;q=0.9, image/png", None),
]


@pytest.mark.parametrize(("accept", "expected"), ACCEPTS)
@pytest.mark.parametrize("path", ["/subjects", "/schemas/ids/1"])
def test_media_type_of_the_answer(shared_api, path, accept, expected):
    """The answer has the most preferred media type that the client accepts; without one the answer is 406."""
    api = shared_api
    assert 1 == api.placed("s", '"int"')[0]
    for _ in range(2):  # The second answer to the id comes from the cache.
        status, answer = api.get(path, Accept=accept)
        if expected is None:
            assert (406, 406) == (status, answer["error_code"])
        else:
            assert (200, expected) == (status, api.headers["content-type"])


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("", 200), (V1, 200), (V0, 200), (PLAIN, 200), ("application/json; charset=utf-8", 200),
     ("application/octet-stream", 200), ("text/plain", 415), ("application/xml", 415)],
)  # fmt: skip
def test_media_type_of_the_request(api, content_type, status):
    """The registry accepts its own types, JSON, bytes and no type; others are 415."""
    got, answer = api.call("POST", "/subjects/s/versions", json.dumps({"schema": '"int"'}), Content_Type=content_type)

    assert status == got
    if status == 415:
        assert {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"} == answer


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encoding_of_the_request(api, encoding):
    """The first bytes of a JSON body show whether it is UTF-8, UTF-16 or UTF-32."""
    schema = '{"type":"record","name":"R","doc":"\u00e9\u4e2d\U0001f600","fields":[]}'
    body = json.dumps({"schema": schema}, ensure_ascii=False).encode(encoding)

    assert 200 == api.post("/subjects/s/versions", body)[0]
    assert schema == api.get("/subjects/s/versions/1")[1]["schema"]


@pytest.mark.parametrize(
    "body", [b"\xff\xfe{\x00\x00\xd8", b"{\x00\x00", b"\x00\x00\x00\x00", b"\xef\xbb\xbf\xff", b"\xff"]
)
def test_body_in_a_broken_encoding_is_refused(shared_api, body):
    """Bytes that are not text are 400."""
    status, answer = shared_api.post("/subjects/s/versions", body)

    assert (400, 400) == (status, answer["error_code"])


# path with an integer, the integer, whether it is valid
INTEGERS = [
    ("1", True),
    ("+1", True),
    ("-1", True),
    ("9223372036854775807", True),
    ("9223372036854775808", False),
    ("-9223372036854775809", False),
    ("9" * 5000, False),
    ("1_0", False),
    ("%20" + "1", False),
    ("%D9%A1", False),  # an Arabic digit
    ("0x1", False),
    ("1.0", False),
]


@pytest.mark.parametrize("path", ["/schemas/ids/{}", "/subjects?limit={}", "/subjects?offset={}", "/schemas?limit={}"])
@pytest.mark.parametrize(("text", "is_integer"), INTEGERS)
def test_integers_of_paths_and_queries(shared_api, path, text, is_integer):
    """A path with an invalid integer, or one above 64 bits, is an unknown path, not an unknown id."""
    answer = shared_api.get(path.format(text.replace("+", "%2B")))[1]

    assert is_integer == (answer != {"error_code": 404, "message": "HTTP 404 Not Found"})


def test_body_beyond_the_limit_is_refused(api):
    """A body over 1 MiB is 413, with or without a declared length."""
    told = api.register("s", '"int"' + " " * (1 << 20))
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=60)
    connection.request(
        "POST", "/subjects/s/versions", iter([b" " * 65536] * 20), {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    untold = connection.getresponse()

    assert (413, 413) == (told[0], told[1]["error_code"])
    assert (413, 413) == (untold.status, json.loads(untold.read())["error_code"])
    connection.close()


def test_path_beyond_reason_is_refused(api):
    """A path of many kilobytes is 414."""
    assert 414 == api.get("/subjects/" + "x" * 9000)[1]["error_code"]


def test_hostile_schema_texts_are_refused(api):
    """Deep nesting, huge numbers and wide unions are refused as schemas, and the registry keeps answering."""
    for text in (
        "[" * 100_000,
        '{"type":' * 50_000,
        "[" + ",".join(['"int"'] * 50_000) + "]",
        '{"type":"fixed","name":"F","size":' + "9" * 50_000 + "}",
    ):
        assert (422, 42201) == (lambda status, answer: (status, answer["error_code"]))(*api.register("s", text))
    assert (1, 1) == api.placed("s", '"int"')


SLASHES = [
    pytest.param("//subjects", (200, []), id="a base URL that ends in a slash"),
    pytest.param("///subjects///", (200, []), id="slashes at both ends"),
    pytest.param("/contexts/.c//subjects", (200, []), id="the base URL of a context that ends in a slash"),
    pytest.param("//contexts/.c//subjects/", (200, []), id="all of these"),
    pytest.param("//", (200, {}), id="nothing but slashes"),
    pytest.param("/contexts//", (200, ["."]), id="slashes at the end of a list"),
]


@pytest.mark.parametrize(("path", "expected"), SLASHES)
def test_slashes_that_mean_nothing(api, path, expected):
    """Slashes at the end of a base URL or a path do not matter."""
    assert expected == api.get(path)


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/subjects//versions"), ("POST", "/subjects//versions"), ("GET", "/config//x"),
     ("GET", "/contexts/.c/subjects//versions"), ("GET", "/schemas//ids/1")],
)  # fmt: skip
def test_empty_names_in_a_path_are_refused(shared_api, method, path):
    """If a path leaves out a name, the next part of the path does not become the name."""
    shared_api.placed("versions", '"int"')

    assert (400, 400) == (lambda status, answer: (status, answer["error_code"]))(*shared_api.call(method, path))
    assert (200, [1]) == shared_api.get("/subjects/versions/versions")


async def test_failure_in_the_app_becomes_a_500(caplog):
    """An exception never reaches the server: the app logs it and answers with JSON."""

    async def broken(_exchange):
        raise RuntimeError("planted")

    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    pipeline = bare_pipeline(broken)
    scope = {"type": "http", "method": "GET", "raw_path": b"/x", "query_string": b"", "headers": []}
    await pipeline(scope, receive, send)

    assert 500 == sent[0]["status"]
    assert {"error_code": 500, "message": "Internal Server Error"} == json.loads(sent[1]["body"])
    assert "planted" in caplog.text


def test_failure_in_a_route_is_an_error_object(api, monkeypatch):
    """A defect in a route gives an error object that clients parse, and the connection and the service continue."""

    def broken():
        raise RuntimeError("planted")

    monkeypatch.setattr("strata.registry.api.root.schema_types", broken)

    assert (500, {"error_code": 500, "message": "Internal Server Error"}) == api.get("/schemas/types")
    assert V1 == api.headers["content-type"]
    assert (200, {}) == api.get("/")


@pytest.mark.parametrize("path", ["/", "/subjects", "/schemas/ids/1", "/schemas/ids/9", "/config"])
def test_head_is_get_without_a_body(api, path, caplog):
    """HEAD returns status and headers of GET, and no body; the server does not miss the body."""
    api.placed("s", '"int"')
    status, _ = api.get(path)
    length = api.headers["content-length"]

    for _ in range(2):  # The second answer may come from the cache.
        assert (status, "") == api.call("HEAD", path)
        assert length == api.headers["content-length"]
    assert [] == caplog.messages


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb"])
@pytest.mark.parametrize("in_name", [False, True])
def test_a_line_break_in_a_header_is_not_sent(value, in_name):
    """No client can add headers to an answer: only headers without line breaks become lines."""
    good, bad = (b"vary", b"Accept"), (value, b"x") if in_name else (b"location", value)

    assert b"vary: Accept\r\n" == header_lines([good])
    assert b"" == header_lines([good, bad])
