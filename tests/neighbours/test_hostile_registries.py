"""Registries that answer without end: what reads them bounds size and time."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from strata.registry.features.standby.sources import ServiceSource
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import AnswerTooLong, Connection
from strata.registry.transfer.rest_source import listed_versions

LARGE = 1 << 20


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Serve with a function that writes the whole response; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):
                answer(self)

        def log_message(self, *_: object) -> None:
            """Keep the output of the tests clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def head(handler, **headers):
    """Send the head of a response."""
    handler.send_response(200)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()


def endless(handler):
    """Send a body that never ends."""
    head(handler)
    while True:
        handler.wfile.write(b" " * LARGE)


def test_an_answer_without_end_is_not_read():
    """What exceeds the bound is a failure that names the registry and the request."""
    with answering(endless) as url:
        with pytest.raises(AnswerTooLong, match=f"{url} answered GET /subjects with more than 1 MiB"):
            Connection(url, retries=0, max_answer_bytes=LARGE).get("/subjects")
        with closing(ServiceSource(url)) as source, pytest.raises(TransferError, match="more than 64 MiB"):
            source.read()


def test_an_answer_that_breaks_off_is_requested_again():
    """A body that ends too soon is a failure of the connection, and the request is sent again."""
    sent = []

    def broken(handler):
        sent.append(handler.path)
        head(handler, Content_Length=4)
        handler.wfile.write(b'"a"' if len(sent) < 2 else b'"ab"')

    with answering(broken) as url:
        assert "ab" == Connection(url).get("/subjects")
    assert ["/subjects"] * 2 == sent


def test_large_schemas_are_listed_in_smaller_pages():
    """If a page of the list is too long, fewer schemas are requested at once, and none is missing or there twice."""
    every = [
        {"subject": f"s{number}", "version": 1, "id": number, "schema": "x" * 50_000, "deleted": False}
        for number in range(1, 41)
    ]

    def listing(handler):
        query = parse_qs(urlsplit(handler.path).query)
        offset, limit = int(query["offset"][0]), int(query["limit"][0])
        content = json.dumps(every[offset : offset + limit]).encode()
        head(handler, Content_Length=len(content))
        handler.wfile.write(content)

    with answering(listing) as url:
        assert every == listed_versions(Connection(url, retries=0, max_answer_bytes=LARGE))
