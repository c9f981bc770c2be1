"""Whatever calls a registry repeats the same requests."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from strata.registry.features.exporters.destination import destination_of
from strata.registry.transfer import rest
from strata.registry.transfer.copies import TransferError
from strata.serdes.errors import SerdeError
from strata.serdes.settings import ClientSettings
from strata.serdes.transport import Transport

ROWS = [
    # method, status (0: the connection breaks off), requests that a client of two retries sends
    ("GET", 408, 3),
    ("GET", 504, 3),
    ("GET", 404, 1),
    ("GET", 0, 3),
    ("POST", 504, 3),
    ("POST", 0, 3),
    ("DELETE", 429, 3),
    ("DELETE", 503, 3),
    ("DELETE", 408, 1),
    ("DELETE", 500, 1),
    ("DELETE", 502, 1),
    ("DELETE", 504, 1),
    ("DELETE", 0, 1),
]


def by_serdes(url, method):
    """Send a request as serdes and gitops do."""
    Transport(ClientSettings(urls=(url,), retries=2, backoff=0.0)).request(method, "/subjects/s")


def by_transfer(url, method):
    """Send a request as migrations and standbys do."""
    rest.Connection(url, retries=2).must(method, "/subjects/s")


def by_exporter(url, method):
    """Send a request as exporters do, whose own rounds repeat it: here by three addresses."""
    destination_of({"schema.registry.url": f"{url},{url},{url}"}).connection().must(method, "/subjects/s")


@pytest.fixture
def service():
    """Return a service that gives every request the status set on it, and keeps their methods."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            self.server.requests.append(self.command)
            if self.server.status:
                self.send_response(self.server.status)
                self.send_header("Content-Length", "0")
                self.end_headers()
            self.close_connection = True

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the library's names

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.requests = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("send", [by_serdes, by_transfer, by_exporter])
@pytest.mark.parametrize(("method", "status", "requests"), ROWS)
def test_a_request_is_repeated_by_one_rule(service, monkeypatch, send, method, status, requests):
    """A DELETE is repeated only if the registry cannot have carried it out; any other request if that may help."""
    monkeypatch.setattr(rest, "_BACKOFF_S", 0.0)
    service.status = status
    with pytest.raises((SerdeError, TransferError)):
        send(f"http://127.0.0.1:{service.server_port}", method)
    assert [method] * requests == service.requests
