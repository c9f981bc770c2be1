"""The service tells its app about a TLS connection by the `tls` extension of ASGI."""

import asyncio
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from harness.certificates import Authority
from strata.registry.http.server import HttpServer
from strata.registry.http.tls import TlsContexts
from strata.registry.node.board import Seat
from strata.registry.settings import Settings


class App:
    """An app that keeps the scopes of its requests and answers 204."""

    def __init__(self):
        self.scopes = []

    async def __call__(self, scope, receive, send):
        """Answer one request."""
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Return the CA that server and clients trust."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@contextmanager
def serving(app, **settings) -> Iterator[int]:
    """Serve an app by the service's own server until the block ends; yield the port."""
    chosen, started = Settings(log="memory:", **settings), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = HttpServer(app, chosen, Seat(), tls=TlsContexts(chosen), started=started.set)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            assert started.wait(60)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def certified(authority):
    """Return the settings of a server that asks for certificates."""
    pair = authority.issue("registry")
    return {
        "tls_certfile": pair.cert,
        "tls_keyfile": pair.key,
        "tls_client_ca": authority.file,
        "tls_client_auth": "optional",
    }


def request(connection):
    """Send one request over an open connection, or over a new one."""
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    assert 204 == answer.status


def test_plain_connection_has_no_extension():
    """Over plain HTTP the app finds no `tls` extension."""
    app = App()
    with serving(app) as port, closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as plain:
        request(plain)

    assert "http" == app.scopes[0]["scheme"]
    assert "tls" not in app.scopes[0].get("extensions", {})


def test_certificate_of_the_client_is_told(authority, certified):
    """The app gets the client's certificate, its subject, and the version and cipher suite of the connection."""
    app, own = App(), authority.issue("client", subject="CN=orders,OU=Shop+Online,O=Acme")
    with serving(app, **certified) as port, closing(_secure(port, authority.context(own))) as connection:
        request(connection)

    (scope,) = app.scopes
    told = scope["extensions"]["tls"]
    assert "https" == scope["scheme"]
    assert [Path(own.cert).read_text()] == told["client_cert_chain"]
    assert r"CN=orders,OU=Shop\+Online,O=Acme" == told["client_cert_name"]
    assert told["client_cert_error"] is None
    assert told["server_cert"] is None
    assert 0x0304 == told["tls_version"]
    assert told["cipher_suite"] in {0x1301, 0x1302, 0x1303}


def test_client_without_a_certificate(authority, certified):
    """A client that shows no certificate has an empty chain and no name; the older version has its own numbers."""
    app, old = App(), authority.context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with serving(app, **certified) as port, closing(_secure(port, old)) as connection:
        request(connection)

    told = app.scopes[0]["extensions"]["tls"]
    assert ([], None) == (told["client_cert_chain"], told["client_cert_name"])
    assert (0x0303, 0xC02B) == (told["tls_version"], told["cipher_suite"])


def test_one_value_for_all_requests_of_a_connection(authority, certified):
    """The extension is made once for each connection, and never passed to another one."""
    app, contexts = App(), [authority.context(authority.issue(name)) for name in ("ann", "bob")]
    with serving(app, **certified) as port:
        for context in contexts:
            with closing(_secure(port, context)) as connection:
                request(connection)
                request(connection)

    first, second, third, fourth = (scope["extensions"]["tls"] for scope in app.scopes)
    assert first is second
    assert third is fourth
    assert ("CN=ann", "CN=bob") == (first["client_cert_name"], third["client_cert_name"])


@pytest.mark.parametrize("headers", [{}, {"Connection": "close"}], ids=["idle", "closed after its answer"])
def test_server_ends_before_its_clients(authority, certified, headers, caplog):
    """A server closes the TLS connections that clients keep and ends without an error, also on asyncio's event loop."""
    with ExitStack() as stack, serving(App(), **certified) as port:
        connection = stack.enter_context(closing(_secure(port, authority.context())))
        connection.request("GET", "/", headers=headers)
        assert 204 == connection.getresponse().status

    assert [] == [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]


def _secure(port, context):
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
