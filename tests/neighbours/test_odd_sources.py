"""Services that answer a reader with something other than a registry does."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from strata.registry.features.exporters.target import Target
from strata.registry.features.standby.sources import ServiceSource
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import Connection

VERSION = {"subject": "orders", "version": 1, "id": 1, "schema": '"int"', "deleted": False}
ANSWERS = {
    "/schemas": [VERSION],
    "/subjects": ["orders"],
    "/contexts": ["."],
    "/schemas/ids/1": {"schema": '"int"', "maxId": 1},
    "/config": {"compatibilityLevel": "BACKWARD"},
    "/mode": {"mode": "READWRITE"},
}
"""What a small registry answers; anything else is missing there."""
MISSING = {"error_code": 40401, "message": "no such thing"}


@contextmanager
def answering(answer: Callable[[str], tuple[int, object, dict[str, str]]]) -> Iterator[str]:
    """Serve answers by path, and yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            status, body, headers = answer(path)
            content = json.dumps([] if path == "/schemas" and body == [VERSION] and "offset=1" in query else body)
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(content))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content.encode())

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Keep the output of the tests clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def registry(path: str) -> tuple[int, object, dict[str, str]]:
    """Answer as a small registry does."""
    return (200, ANSWERS[path], {}) if path in ANSWERS else (404, MISSING, {})


def test_a_small_registry_is_read():
    """The answers above are enough for a reader, so the tests below fail for their odd answer alone."""
    with answering(registry) as url, closing(ServiceSource(url, most_per_s=1000)) as source:
        assert ["orders"] == list(source.read().state.subjects)


def test_a_gateway_that_forbids_unknown_paths():
    """A path that only Strata has may be forbidden in front of another registry, which is read anyway."""
    with (
        answering(lambda asked: (403, MISSING, {}) if asked == "/v1/scopes" else registry(asked)) as url,
        closing(ServiceSource(url, most_per_s=1000)) as source,
    ):
        assert ["orders"] == list(source.read().state.subjects)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/schemas", 7),
        ("/schemas", "orders"),
        ("/schemas", {"orders": 1}),
        ("/schemas", [7]),
        ("/schemas", [VERSION | {"subject": 7}]),
        ("/schemas", [VERSION | {"id": "1"}]),
        ("/subjects", {"orders": 1}),
        ("/subjects", [7]),
        ("/contexts", "default"),
        ("/contexts", [".", 7]),
        ("/schemas/ids/1", ["int"]),
        ("/config", []),
        ("/mode", ["READWRITE"]),
        ("/config/orders", 7),
        ("/dek-registry/v1/keks", 7),
        ("/dek-registry/v1/keks", [7]),
        ("/associations/subjects/orders", 7),
    ],
)
def test_an_answer_of_another_shape_names_the_source(path, body):
    """JSON that no registry sends is a failure of the source, which its message names; nothing is copied."""
    with (
        answering(lambda asked: (200, body, {}) if asked == path else registry(asked)) as url,
        closing(ServiceSource(url, most_per_s=1000)) as source,
        pytest.raises(TransferError, match=url),
    ):
        source.read()


@pytest.mark.parametrize("code", ["40401", None, [], True])
def test_an_error_code_that_is_no_number(code):
    """The status stands for an error code that cannot be read."""
    with answering(lambda _: (404, {"error_code": code, "message": "gone"}, {})) as url:
        answer = Connection(url).ask("GET", "/subjects")
    assert (404, 404, True) == (answer.status, answer.code, answer.missing)


def test_a_destination_whose_gateway_allows_reads_only():
    """A refusal without the JSON of a registry is a failure of the destination, not a defect of the exporter."""
    with (
        answering(lambda asked: (405, "not here", {}) if asked == "/mode/orders" else registry(asked)) as url,
        pytest.raises(TransferError, match=r"rejected mode IMPORT for 'orders': no reason given \(error 405\)"),
    ):
        Target(Connection(url), threading.Event())._enter_import("orders")


def test_a_service_that_is_not_there():
    """The message names the address once, without the objects of the HTTP client."""
    with answering(registry) as url:
        pass
    with pytest.raises(TransferError) as raised:
        Connection(url, retries=0).ask("GET", "/subjects")
    assert str(raised.value).startswith(f"the registry {url} does not answer: Connection refused")


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_asks_for_hours_of_rest(status, monkeypatch):
    """A `Retry-After` is respected, but only so long that the caller still says what is wrong."""
    rests: list[float] = []
    body = {"error_code": status, "message": "come back tomorrow"}
    with answering(lambda _: (status, body, {"Retry-After": "86400"})) as url:
        connection = Connection(url)
        monkeypatch.setattr(connection._client, "_sleep", rests.append)
        with pytest.raises(TransferError, match="come back tomorrow"):
            connection.ask("GET", "/subjects")
    assert rests
    assert max(rests) <= 10
