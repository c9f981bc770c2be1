"""A relay in front of a registry, which notes requests and can answer in its place or cut them off."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple
from urllib.parse import unquote

import urllib3

__all__ = ["CUT_OFF", "Relay", "Request", "relayed"]

CUT_OFF = 0
"""Instead of a status: no answer."""


class Request(NamedTuple):
    """A request as the relay has seen it."""

    method: str
    path: str
    authorization: str


class Relay:
    """What a relay does and has seen.

    Attributes:
        url: its address.
        answers: returns the status to answer a request with; None relays it.
        requests: the requests, in order.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: Callable[[Request], int | None] = lambda _request: None
        self.requests: list[Request] = []

    def writes(self) -> list[str]:
        """Return what was written: method and path, without queries."""
        return [
            f"{request.method} {request.path.partition('?')[0]}" for request in self.requests if request.method != "GET"
        ]


@contextmanager
def relayed(target: str) -> Iterator[Relay]:
    """Yield a relay in front of a service."""
    pool = urllib3.PoolManager(retries=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, unquote(self.path), self.headers.get("Authorization") or "")
            relay.requests.append(request)
            status = relay.answers(request)
            if status == CUT_OFF:
                self.close_connection = True
                return
            if status is None:
                answer = pool.request(self.command, target + self.path, body=body or None)
                status, data = answer.status, answer.data
            else:
                data = b'{"error_code":%d,"message":"not today"}' % status
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815 - names of the standard library

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        relay = Relay(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield relay
        finally:
            server.shutdown()
            thread.join()
