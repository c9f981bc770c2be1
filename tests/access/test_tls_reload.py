"""A node takes up new certificates while it runs, and keeps the old ones if the new ones cannot be used."""

import http.client
import os
import shutil
import signal
import socket
import ssl
from contextlib import closing
from pathlib import Path

import pytest

from harness.certificates import Authority, Pair
from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.http.tls import TlsContexts
from strata.registry.settings import Settings

_NEW, _KEPT = "loaded the changed TLS files", "the previous ones stay in force"


@pytest.fixture
def authority(tmp_path):
    """Return the CA that nodes and clients trust."""
    return Authority(tmp_path)


@pytest.fixture
def live(authority, tmp_path):
    """Return the files that the node reads."""
    pair = Pair(str(tmp_path / "live.pem"), str(tmp_path / "live-key.pem"))
    put(authority.issue("first"), pair)
    return pair


def put(pair, live):
    """Replace the files that a node reads, each at once."""
    for source, target in zip(pair, live, strict=True):
        shutil.copy(source, f"{target}.new")
        Path(f"{target}.new").replace(target)


def flags(pair, *more):
    """Return the flags of a node with a certificate."""
    return f"--tls-certfile={pair.cert}", f"--tls-keyfile={pair.key}", *more


def shown(node, authority):
    """Return the common name in the certificate that a node shows to a new connection."""
    with (
        socket.create_connection(("127.0.0.1", node.port), 60) as wire,
        authority.context().wrap_socket(wire, server_hostname="127.0.0.1") as secure,
    ):
        subject = dict(pair for (pair,) in secure.getpeercert()["subject"])
        return subject["commonName"]


def get(connection):
    """Return the status of a request over a connection that must not be opened again."""
    connection.auto_open = False
    connection.request("GET", "/subjects")
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_new_certificate_is_used_by_all_and_no_connection_is_dropped(authority, live, tmp_path):
    """Every worker shows the new certificate to new connections; requests over the old ones go on."""
    log = f"sqlite:///{tmp_path}/strata.db"
    with RegistryNode(log, *flags(live, "--workers=3"), tls=authority.context()) as node:
        old = [node.connect() for _ in range(6)]
        for connection in old:
            connection.connect()
            assert 200 == get(connection)
        assert {"first"} == {shown(node, authority) for _ in range(10)}

        put(authority.issue("second"), live)
        until(lambda: node.output.count(_NEW) == 3)

        assert {"second"} == {shown(node, authority) for _ in range(20)}
        assert [200] * 6 == [get(connection) for connection in old]
        for connection in old:
            connection.close()


def test_worker_that_starts_later_has_the_new_certificate(authority, live, tmp_path):
    """A worker that replaces a killed one shows the certificate in the files, not that of the start."""
    log = f"sqlite:///{tmp_path}/strata.db"
    with RegistryNode(log, *flags(live, "--workers=2"), tls=authority.context()) as node:
        put(authority.issue("second"), live)
        until(lambda: node.output.count(_NEW) == 2)
        before = set(node.workers)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(set(node.workers) - before) == 2)

        assert {"second"} == {shown(node, authority) for _ in range(10)}


def broken_files(authority, live):
    """Break the files of a node in one way after another; yield what the log should name."""
    Path(live.cert).write_text("no certificate")
    yield live.cert
    put(authority.issue("other")._replace(cert=authority.issue("unlike").cert), live)
    yield "does not belong"
    Path(live.key).unlink()
    yield "cannot be read"


def test_broken_files_keep_the_old_certificate_in_force(authority, live, caplog):
    """Files that cannot be used change nothing and are logged once; good ones are used again."""
    contexts = TlsContexts(Settings(log="memory:", tls_certfile=live.cert, tls_keyfile=live.key))
    first = contexts.accepting
    for word in broken_files(authority, live):
        caplog.clear()
        for _ in range(4):
            contexts.refresh()
        (message,) = caplog.messages
        assert _KEPT in message
        assert word in message
        assert contexts.accepting is first

    put(authority.issue("second"), live)
    contexts.refresh()
    assert contexts.accepting is first  # until a second look finds the same files
    contexts.refresh()
    assert contexts.accepting is not first


def test_ca_of_the_clients_is_replaced(authority, live, tmp_path):
    """Certificates of a CA that was replaced are rejected, also where a client resumes its session; the new are not."""
    former, later = Authority(tmp_path, "former"), Authority(tmp_path, "later")
    trusted = tmp_path / "trusted.pem"
    shutil.copy(former.file, trusted)
    asking = flags(live, f"--tls-client-ca={trusted}", "--tls-client-auth=required")
    old = authority.context(former.issue("old-client"))
    new = authority.context(later.issue("new-client"))
    with RegistryNode("memory:", *asking, tls=old) as node:
        session = _session(node, old)
        assert _session(node, old, session) is not None

        shutil.copy(later.file, trusted)
        until(lambda: _NEW in node.output)

        assert _session(node, new) is not None
        for resumed in (None, session):
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                _session(node, old, resumed)


def _session(node, context, session=None):
    """Send a request over a new connection, which may resume a session; return its session."""
    with (
        socket.create_connection(("127.0.0.1", node.port), 60) as wire,
        context.wrap_socket(wire, server_hostname="127.0.0.1", session=session) as secure,
        closing(http.client.HTTPConnection("127.0.0.1", node.port)) as connection,
    ):
        connection.sock = secure
        connection.request("GET", "/")
        assert 200 == connection.getresponse().status
        assert (session is not None) == secure.session_reused
        return secure.session
