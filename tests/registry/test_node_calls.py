"""Whether another node responds at all, as its peers and the other nodes of a standby ask."""

import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3

from harness.certificates import Authority
from strata.registry.http import node_calls
from strata.registry.http.node_calls import pool_manager, responds


@pytest.fixture
def authority(tmp_path):
    """Return a CA that no system trusts."""
    return Authority(tmp_path)


@pytest.fixture
def node(authority):
    """Yield the URL of a node that serves https with a certificate of that CA."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # it answers each method with 501
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("node"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_node_with_a_certificate_of_a_private_ca_responds(node, authority, monkeypatch):
    """A node responds to those that trust its CA, whatever it answers, and to no others."""
    monkeypatch.setattr(node_calls, "_PROBE_TIMEOUT", urllib3.Timeout(60))  # the machine may pause
    assert responds(pool_manager(1, authority.context), node)
    assert not responds(pool_manager(1, ssl.create_default_context), node)


def test_a_node_that_is_away_does_not_respond():
    """An address without a server, and a server that says nothing, do not respond."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert not responds(pool_manager(1, ssl.create_default_context), url)
    assert not responds(pool_manager(1, ssl.create_default_context), url)
