"""Answers without end are refused by whatever calls a registry, before they fill the memory or take for ever."""

import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from strata.gitops.service import Service
from strata.http.client import Client
from strata.http.errors import AnswerTooSlow, TokenRefused
from strata.http.settings import HttpSettings
from strata.http.tokens import TokenSource
from strata.registry.features.exporters.destination import destination_of
from strata.registry.features.standby.sources import ServiceSource
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import Connection
from strata.serdes.client import RegistryClient
from strata.serdes.errors import SerdeError

MIB = 1 << 20


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """Return less than 0.3 MB of gzip that unpack to 301 MB of JSON."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(b"[") + packer.flush(zlib.Z_FULL_FLUSH)
    return start + 301 * (packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH))


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Serve with a function that writes the whole response; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):
                answer(self)

        do_GET = do_POST = handle_one  # noqa: N815 - names of the standard library

        def log_message(self, *_: object) -> None:
            """Keep the output of the tests clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def by_client(url):
    """Ask with the client of the serdes."""
    RegistryClient(url, retries=0).get_subjects()


def by_gitops(url):
    """Ask as `strata plan` does."""
    Service(RegistryClient(url, retries=0)).subjects()


def by_transfer(url):
    """Ask as migrations do."""
    Connection(url, retries=0).get("/subjects")


def by_exporter(url):
    """Ask as an exporter does."""
    destination_of({"schema.registry.url": url}).connection().get("/subjects")


def by_standby(url):
    """Read as a standby does, which asks for shorter and shorter pages; here the first has one version."""
    with closing(ServiceSource(url)) as source, pytest.MonkeyPatch.context() as patch:
        patch.setattr("strata.registry.transfer.rest_source._PAGE", 1)
        source.read()


def by_token(url):
    """Ask for a token."""
    TokenSource(HttpSettings(urls=(url,), token_url=url, client_id="c", client_secret="s")).get()


@pytest.mark.parametrize("ask", [by_client, by_gitops, by_transfer, by_exporter, by_standby, by_token])
def test_an_answer_that_unpacks_to_far_more_is_refused(bomb, ask):
    """0.3 MB that unpack to 301 MB are an error after 64 MiB (a token: 64 KiB), and never in the memory as a whole."""
    assert len(bomb) < 320_000

    def send(handler):
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(bomb)))
        handler.end_headers()
        handler.wfile.write(bomb)

    with answering(send) as url:
        tracemalloc.start()
        try:
            with pytest.raises((SerdeError, TransferError, TokenRefused), match=r"longer than|more than"):
                ask(url)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert most < 150 * MIB


def test_an_answer_that_comes_byte_by_byte_is_given_up():
    """Each byte comes in time, but the whole has a limit too."""
    stopped = threading.Event()

    def send(handler):
        handler.send_response(200)
        handler.end_headers()
        while not stopped.wait(0.01):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    with answering(send) as url:
        client = Client(HttpSettings(urls=(url,), max_answer_seconds=0.05))
        with pytest.raises(AnswerTooSlow, match="did not end within"):
            client.send("GET", "/subjects")
        stopped.set()
