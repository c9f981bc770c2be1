"""`strata serve` speaks https: its settings, certificates of clients, and what a handshake may cost."""

import http.client
import io
import socket
import ssl
import time
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from harness.certificates import Authority
from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.http.tls import TlsContexts
from strata.registry.settings import Settings

_DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder for the certificates of this file."""
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder):
    """Return the CA that nodes and clients trust."""
    return Authority(folder)


@pytest.fixture(scope="module")
def stranger(folder):
    """Return the certificate of a client that another CA has signed."""
    return Authority(folder, "other-ca").issue("stranger")


@pytest.fixture(scope="module")
def served(authority):
    """Return the certificate of the nodes."""
    return authority.issue("registry")


@pytest.fixture(scope="module")
def node(authority, served):
    """Yield a node that asks for no certificate."""
    with RegistryNode("memory:", *flags(served), tls=authority.context()) as started:
        yield started


def flags(pair, *more):
    """Return the flags of a node with a certificate."""
    return f"--tls-certfile={pair.cert}", f"--tls-keyfile={pair.key}", *more


def status(node, context):
    """Return the status of one request to a node."""
    connection = http.client.HTTPSConnection("127.0.0.1", node.port, timeout=60, context=context)
    with closing(connection):
        connection.request("GET", "/subjects")
        return connection.getresponse().status


def end_of(wire):
    """Return whether the other side closes a connection silently; a timeout fails the test."""
    try:
        return wire.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("kind", ["EC", "RSA"])
def test_https_is_served_and_named(authority, kind):
    """A node with a certificate answers https, and its log and its advertised URL say so."""
    pair = authority.issue(f"registry-{kind}", kind=kind)
    with RegistryNode("memory:", *flags(pair), tls=authority.context()) as node:
        assert 200 == status(node, authority.context())
        assert f"serving memory: on https://127.0.0.1:{node.port}" in node.output


def test_key_in_the_same_file(authority, folder):
    """One file may hold the certificate and its key."""
    pair = authority.issue("both")
    both = folder / "both-in-one.pem"
    both.write_bytes(Path(pair.cert).read_bytes() + Path(pair.key).read_bytes())
    with RegistryNode("memory:", f"--tls-certfile={both}", tls=authority.context()) as node:
        assert 200 == status(node, authority.context())


def test_encrypted_key(authority, folder):
    """The password of a key comes from a file, whose last line break does not count."""
    pair = authority.issue("locked", password=b"open sesame")
    (folder / "password").write_text("open sesame\n")
    password = f"--tls-key-password-file={folder}/password"
    with RegistryNode("memory:", *flags(pair, password), tls=authority.context()) as node:
        assert 200 == status(node, authority.context())


@pytest.fixture(scope="module")
def files(authority, folder):
    """Return names of good and bad files."""
    good, other = authority.issue("good"), authority.issue("another")
    locked = authority.issue("under-lock", password=b"open sesame")
    (folder / "text.pem").write_text("no certificate")
    (folder / "wrong").write_text("open barley")
    return {
        "cert": good.cert,
        "key": good.key,
        "other_key": other.key,
        "locked": locked.cert,
        "locked_key": locked.key,
        "text": str(folder / "text.pem"),
        "wrong": str(folder / "wrong"),
        "missing": str(folder / "missing.pem"),
        "ca": authority.file,
    }


# flags, words of the message
REFUSED = {
    "no such certificate": (["--tls-certfile={missing}"], ["--tls-certfile", "STRATA_TLS_CERTFILE", "no such file"]),
    "no certificate in it": (["--tls-certfile={text}"], ["--tls-certfile", "{text}", "certificates in PEM"]),
    "no key": (["--tls-certfile={cert}"], ["--tls-keyfile", "{cert}", "private key in PEM"]),
    "no key in it": (["--tls-certfile={cert}", "--tls-keyfile={text}"], ["--tls-keyfile", "{text}", "private key"]),
    "key of another": (
        ["--tls-certfile={cert}", "--tls-keyfile={other_key}"],
        ["--tls-keyfile", "{other_key}", "does not belong", "{cert}"],
    ),
    "no password": (
        ["--tls-certfile={locked}", "--tls-keyfile={locked_key}"],
        ["--tls-keyfile", "encrypted", "--tls-key-password-file"],
    ),
    "wrong password": (
        ["--tls-certfile={locked}", "--tls-keyfile={locked_key}", "--tls-key-password-file={wrong}"],
        ["--tls-keyfile", "the password in {wrong} decrypts"],
    ),
    "key alone": (["--tls-keyfile={key}"], ["--tls-keyfile", "need --tls-certfile"]),
    "CA without a question": (
        ["--tls-certfile={cert}", "--tls-keyfile={key}", "--tls-client-ca={ca}"],
        ["--tls-client-ca", "--tls-client-auth", "need each other"],
    ),
    "question without a CA": (
        ["--tls-certfile={cert}", "--tls-keyfile={key}", "--tls-client-auth=required"],
        ["--tls-client-ca", "--tls-client-auth", "need each other"],
    ),
    "no CA in it": (
        ["--tls-certfile={cert}", "--tls-keyfile={key}", "--tls-client-ca={text}", "--tls-client-auth=optional"],
        ["--tls-client-ca", "{text}", "certificates in PEM"],
    ),
    "no CA of the nodes": (["--node-ca-file={text}"], ["--node-ca-file", "{text}", "certificates in PEM"]),
    "old version": (["--tls-min-version=1.1"], ["--tls-min-version", "1.2", "1.3"]),
    "no such question": (["--tls-client-auth=perhaps"], ["--tls-client-auth", "none", "optional", "required"]),
}


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=REFUSED)
def test_files_that_cannot_be_used_end_the_start(forked, files, given, words):
    """The node does not start, and its last line says which setting is wrong and why."""
    ended = forked("serve", "--listen=127.0.0.1:0", "--log=memory:", *(flag.format_map(files) for flag in given))

    assert 2 == ended.returncode
    line = ended.output.splitlines()[-1]  # the age of the certificate comes before
    assert line.startswith("strata: ")
    assert [] == [word for word in words if word.format_map(files) not in line]


@pytest.mark.parametrize(
    ("name", "valid", "words"),
    [
        ("old", (-2 * _DAY, -_DAY), "expired at"),
        ("early", (_DAY, 2 * _DAY), "is valid only from"),
        ("short", (-_DAY, _DAY), "expires soon, at"),
        ("long", (-_DAY, 90 * _DAY), None),
    ],
)
def test_age_of_the_certificate_is_logged(authority, caplog, name, valid, words):
    """An expired certificate can be served, but the log warns of it, and also shortly before."""
    pair = authority.issue(name, valid=valid)
    contexts = TlsContexts(Settings(log="memory:", tls_certfile=pair.cert, tls_keyfile=pair.key))

    assert contexts.accepting is not None
    if words is None:
        assert [] == caplog.records
    else:
        (warning,) = caplog.records
        assert "WARNING" == warning.levelname
        assert words in warning.getMessage()
        assert pair.cert in warning.getMessage()


# whether the node asks, which of three clients it answers
ASKED = [
    ("none", {"no certificate", "its CA", "another CA"}),
    ("optional", {"no certificate", "its CA"}),
    ("required", {"its CA"}),
]


@pytest.mark.parametrize(("question", "expected"), ASKED)
def test_certificates_of_clients(authority, served, stranger, question, expected):
    """A node that asks for certificates rejects those of another CA; only `required` rejects clients without one."""
    own = authority.issue("client")
    clients = {
        "no certificate": authority.context(),
        "its CA": authority.context(own),
        "another CA": authority.context(stranger),
    }
    asking = () if question == "none" else (f"--tls-client-ca={authority.file}", f"--tls-client-auth={question}")
    with RegistryNode("memory:", *flags(served, *asking), tls=clients["its CA"]) as node:
        answered = set()
        for name, context in clients.items():
            try:
                assert 200 == status(node, context)
                answered.add(name)
            except (ssl.SSLError, ConnectionError):
                pass
        node.terminate()
        output = node.output

    assert expected == answered
    assert "Traceback" not in output
    assert ("another CA" not in expected) == ("a client's certificate is not valid" in output)


@pytest.mark.parametrize(("oldest", "expected"), [("1.2", "TLSv1.2"), ("1.3", None)])
def test_oldest_version(authority, served, oldest, expected):
    """A client that speaks TLS 1.2 only is rejected where 1.3 is the oldest version."""
    old = authority.context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        RegistryNode("memory:", *flags(served, f"--tls-min-version={oldest}"), tls=authority.context()) as node,
        socket.create_connection(("127.0.0.1", node.port), 60) as wire,
    ):
        if expected is None:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                old.wrap_socket(wire, server_hostname="127.0.0.1")
        else:
            with old.wrap_socket(wire, server_hostname="127.0.0.1") as secure:
                assert expected == secure.version()
        assert 200 == status(node, authority.context())


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x00" * 100, b"x" * 100_000],
    ids=["plain HTTP", "half TLS", "zeros", "a lot"],
)
def test_anything_but_tls_is_closed_without_noise(node, authority, sent):
    """A client that does not speak TLS is disconnected; the node logs nothing and serves on."""
    before = node.output
    with socket.create_connection(("127.0.0.1", node.port), 60) as wire:
        try:
            wire.sendall(sent)
            answer = wire.recv(1000)
        except ConnectionError:
            answer = b""

    assert not answer.startswith(b"HTTP")
    assert 200 == status(node, authority.context())
    assert before == node.output


def test_half_open_handshakes_count_as_connections(authority, served):
    """Clients that begin no handshake use up the limit on connections, until the time for a handshake is over."""
    limits = ("--max-connections=4", "--request-seconds=1")
    with (
        RegistryNode("memory:", *flags(served, *limits), tls=authority.context()) as node,
        ExitStack() as stack,
    ):
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", node.port), 60))
            for _ in range(40)  # 4, those that would get a 503, and some more
        ]
        for wire in silent:
            assert end_of(wire)
        # A client may see the end of a connection before the node has counted it.
        until(lambda: 200 == status(node, authority.context()), ConnectionError, ssl.SSLError)


@pytest.fixture(scope="module")
def hasty(authority, served):
    """Yield a node that waits only a second for a client."""
    waits = ("--request-seconds=1", "--idle-seconds=1")
    with RegistryNode("memory:", *flags(served, *waits), tls=authority.context()) as started:
        yield started


def secure(node, authority):
    """Return a TLS connection that receives little at once.

    A node that waits only a second ends the handshake of a client that pauses; the client then begins another one.
    """

    def shake_hands():
        with ExitStack() as stack:
            wire = stack.enter_context(socket.socket())
            wire.settimeout(60)
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.connect(("127.0.0.1", node.port))
            safe = authority.context().wrap_socket(wire, server_hostname="127.0.0.1")
            stack.pop_all()
            return safe

    return until(shake_hands, ssl.SSLError, ConnectionError)


_START, _PAGE = (f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() for path in ("/", "/docs/swagger-ui-bundle.js"))


@pytest.mark.parametrize(
    ("before", "status"),
    [(b"", None), (_START + b"\r\n", b"200"), (b"nonsense\r\n\r\n", b"400")],
    ids=["idle", "answered", "malformed"],
)
def test_quiet_client_is_disconnected(hasty, authority, before, status):
    """A client that sends nothing more, after whatever came before, reads the end of the connection."""

    def all_that_is_read():
        with secure(hasty, authority) as wire:
            wire.sendall(before)
            return b"".join(iter(lambda: wire.recv(100_000), b""))

    if status is None:
        assert all_that_is_read() == b""
    else:  # there is no answer if the client or the node pauses for a second before the request
        assert until(all_that_is_read, ssl.SSLError, ConnectionError).startswith(b"HTTP/1.1 " + status)


def test_client_that_does_not_read_is_cut_off(hasty, authority):
    """A client that does not read its answers does not hold a connection for ever."""
    with secure(hasty, authority) as wire, suppress(ssl.SSLEOFError, ConnectionError):
        while True:
            wire.sendall((_PAGE + b"\r\n") * 100)


def test_last_answer_is_complete_for_a_slow_client(hasty, authority):
    """A connection closes only after its client has read all, even if that takes longer than every time limit."""
    pages = 4

    def count_pages():  # 0: that says nothing, because the client read nothing for a while
        with secure(hasty, authority) as wire:
            wire.sendall((pages - 1) * (_PAGE + b"\r\n") + _PAGE + b"Connection: close\r\n\r\n")
            received, longest_s = read_slowly(wire, pages)
        found = complete_answers(received)
        return found if found == pages or longest_s < 0.5 else 0

    assert pages == until(count_pages, ssl.SSLError, ConnectionError)


def read_slowly(wire, pages):
    """Read answers, slowly towards the end; return them and the longest time between two reads, in seconds."""
    slow_bytes = 5_000_000  # more than the system keeps of what was sent
    received, length, times = bytearray(), 0, [time.monotonic()]
    with suppress(ssl.SSLError, ConnectionError):
        while data := wire.recv(64_000):
            received += data
            times.append(time.monotonic())
            if not length and (head := received.partition(b"\r\n\r\n"))[1]:
                length = len(head[0]) + int(head[0].partition(b"content-length: ")[2].split()[0])
            if length and len(received) > pages * length - slow_bytes:
                time.sleep(0.005)
    return received, max(after - before for before, after in pairwise([*times, time.monotonic()]))


def complete_answers(received):
    """Return how many whole answers there are."""
    stream, found = io.BytesIO(received), 0
    while stream.readline():
        length = http.client.parse_headers(stream)["content-length"]
        found += length is not None and int(length) == len(stream.read(int(length)))
    return found


def test_sigterm_does_not_wait_for_idle_clients(authority, served):
    """Clients with idle connections and unfinished handshakes do not hold up the end of a node."""
    with (
        RegistryNode("memory:", *flags(served), tls=authority.context()) as node,
        closing(node.connect()) as idle,
        socket.create_connection(("127.0.0.1", node.port), 60),
    ):
        idle.request("GET", "/")
        idle.getresponse().read()

        assert 0 == node.terminate()
        assert "timeout graceful shutdown exceeded" not in node.output
