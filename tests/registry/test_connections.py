"""Limits on what a client connection may send and how long it may take, over raw sockets to `strata serve`."""

import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pytest

from harness.processes import start_tied
from harness.registry import RegistryNode
from harness.waiting import until

_LIMITS = ("--max-headers=20", "--max-header-bytes=10000", "--request-seconds=60")
_HEAD = b"Host: localhost\r\n"


@pytest.fixture(scope="module")
def node() -> Iterator[RegistryNode]:
    """Yield a node with small limits and generous time-outs."""
    with RegistryNode("memory:", *_LIMITS) as started:
        yield started


@pytest.fixture(scope="module", autouse=True)
def stalled() -> Iterator[dict[bytes, Future[list[tuple[int, object]]]]]:
    """Yield what clients get that send some bytes and then nothing; the node waits longer for them than a pause.

    They wait from the first test on; the tests of what they get are the last.
    """
    waits = "--request-seconds=4", "--idle-seconds=4"
    sent = [row.values[0] for row in INCOMPLETE]
    with RegistryNode("memory:", *waits) as started, ThreadPoolExecutor(len(sent)) as clients:
        yield {part: clients.submit(talk, started.port, part) for part in sent}


@pytest.fixture(scope="module")
def holder() -> Iterator[RegistryNode]:
    """Yield a node that may hold schemas."""
    with RegistryNode("memory:") as started:
        yield started


def connect(port: int) -> socket.socket:
    """Open a connection; the test fails if no answer comes within a minute."""
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def each_answer(wire: socket.socket) -> Iterator[tuple[int, object]]:
    """Read every answer until the connection ends; yield statuses, and bodies as JSON."""
    with wire.makefile("rb") as stream:
        while line := stream.readline():
            headers = http.client.parse_headers(stream)
            body = stream.read(int(headers["content-length"]))
            yield int(line.split()[1]), json.loads(body)


def answers(wire: socket.socket) -> list[tuple[int, object]]:
    """Return every answer until the connection ends."""
    return list(each_answer(wire))


def talk(port: int, *parts: bytes) -> list[tuple[int, object]]:
    """Send some bytes, and read every answer until the connection ends."""
    with closing(connect(port)) as wire:
        for part in parts:
            wire.sendall(part)
        return answers(wire)


def refused(port: int, sent: bytes) -> list[tuple[int, object]]:
    """Send bytes of which the node reads no more, for two seconds, once it has refused them; return the answers."""
    found = []
    with closing(connect(port)) as wire:
        with suppress(ConnectionResetError, BrokenPipeError):
            wire.sendall(sent)
        with suppress(ConnectionResetError):
            found.extend(each_answer(wire))
    return found


def request(line: str = "GET / HTTP/1.1", headers: bytes = b"") -> bytes:
    """Return a request without a body."""
    return line.encode() + b"\r\n" + _HEAD + headers + b"\r\n"


_CHUNKED = request("POST /subjects/s HTTP/1.1", b"Transfer-Encoding: chunked\r\n")

# what the client sends, the status of the one answer
REFUSED = [
    pytest.param(request("BREW / HTTP/1.1"), 405, id="an unknown method"),
    pytest.param(request("get / HTTP/1.1"), 405, id="a method in lower case"),
    pytest.param(request("CONNECT localhost:80 HTTP/1.1"), 405, id="a tunnel"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="HTTP/2"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, id="TLS"),
    pytest.param(b"\x00\x01\r\n\r\n", 400, id="no HTTP"),
    pytest.param(b"{}\r\n\r\n", 400, id="a body alone"),
    pytest.param(request("GET / HTTP/9.9"), 400, id="an unknown version"),
    pytest.param(request("GET"), 400, id="no target"),
    pytest.param(request("GET / / HTTP/1.1"), 400, id="two targets"),
    pytest.param(request("GET http: HTTP/1.1"), 400, id="a target without a path"),
    pytest.param(request("GET /\xe4 HTTP/1.1"), 400, id="a target that is not ASCII"),
    pytest.param(request(headers=b"no colon\r\n"), 400, id="a header without a colon"),
    pytest.param(request(headers=b"A: \x00\r\n"), 400, id="a NUL in a header"),
    pytest.param(request(headers=b"Content-Length: x\r\n"), 400, id="a length that is not a number"),
    pytest.param(
        request("POST / HTTP/1.1", b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400, id="two lengths"
    ),
    pytest.param(_CHUNKED + b"no number\r\n", 400, id="a chunk without a size"),
    pytest.param(request(headers=b"A: b\r\n" * 20), 431, id="too many headers"),
    pytest.param(request(headers=b"A: b\r\n" * 500_000), 431, id="far too many headers"),
    pytest.param(request(headers=b"A: " + b"b" * 10_000 + b"\r\n"), 431, id="a long header"),
    pytest.param(request(headers=(b"A: " + b"b" * 1000 + b"\r\n") * 10), 431, id="long headers together"),
    pytest.param(request()[:-2] + b"A: " + b"b" * 4_000_000, 431, id="a header without an end"),
    pytest.param(request()[:-2] + b"b" * 4_000_000, 431, id="a header's name without an end"),
    pytest.param(_CHUNKED + b"0\r\n" + b"A: b\r\n" * 500_000, 431, id="trailers without an end"),
    pytest.param(_CHUNKED + b"1\r\n{\r\n0\r\nA: " + b"b" * 4_000_000, 431, id="a trailer without an end"),
    pytest.param(_CHUNKED + b"1;a=" + b"b" * 4_000_000, 431, id="the extension of a chunk without an end"),
    pytest.param(request(f"GET /{'x' * 10_000} HTTP/1.1"), 414, id="a long target"),
    pytest.param(b"GET /" + b"x" * 4_000_000, 414, id="a target without an end"),
    pytest.param(b"GET /?" + b"x" * 4_000_000, 414, id="a query without an end"),
]


@pytest.mark.parametrize(("sent", "status"), REFUSED)
def test_what_the_parser_refuses_is_answered_as_an_error_object(node, sent, status):
    """The node returns one error object whose code is the status, and closes the connection."""
    ((got, answer),) = refused(node.port, sent)

    assert (status, status) == (got, answer["error_code"])
    assert answer["message"].startswith(f"HTTP {status} ")


def test_the_limits_themselves_are_allowed(node):
    """The settings limit the number and the size of headers."""
    size = 10_000 - len("/") - len("Host: localhost\r\n") - len("Connection: close\r\n") - len("A: \r\n")
    many = request(headers=b"A: b\r\n" * 18 + b"Connection: close\r\n")
    large = request(headers=b"Connection: close\r\nA: " + b"b" * size + b"\r\n")

    assert [(200, {})] == talk(node.port, many)
    assert [(200, {})] == talk(node.port, large)
    assert 431 == talk(node.port, large.replace(b"A: ", b"A: b"))[0][0]


def test_a_request_may_come_in_single_bytes(node):
    """The split of a request into packets changes nothing."""
    sent = request(headers=b"Connection: close\r\n")

    assert [(200, {})] == talk(node.port, *(sent[i : i + 1] for i in range(len(sent))))


def test_what_came_before_a_refused_request_is_answered_first(node):
    """The node answers pipelined requests in order; a refusal never replaces another answer."""
    sent = request() + request("GET /subjects HTTP/1.1") + b"nonsense\r\n\r\n"

    assert [(200, {}), (200, [])] == talk(node.port, sent)[:2]


def register(node: RegistryNode, subject: str, kind: str) -> int:
    """Register a schema that is the name of a type, and return its id."""
    body = json.dumps({"schema": json.dumps(kind)}).encode()
    head = b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n" % len(body)
    ((status, found),) = talk(node.port, request(f"POST /subjects/{subject}/versions HTTP/1.1", head) + body)

    assert 200 == status
    return found["id"]


@pytest.mark.parametrize("at_once", [False, True])
def test_answers_from_memory_come_in_order(holder, at_once):
    """Each answer from memory belongs to its request, also if the client sends the next ones before."""
    kinds = {register(holder, f"memory-{kind}", kind): kind for kind in ("string", "long")}
    ids = [*kinds, *kinds, *kinds, *reversed(kinds)]
    sent = [request(f"GET /schemas/ids/{number} HTTP/1.1") for number in ids]
    sent += [request("GET /subjects/memory-long/versions/latest HTTP/1.1")] * 3
    with closing(connect(holder.port)) as wire:
        for part in [b"".join(sent)] if at_once else sent:
            wire.sendall(part)
        wire.sendall(request(headers=b"Connection: close\r\n"))
        found = [body.get("schema") for _, body in answers(wire)]

    assert [json.dumps(kinds[number]) for number in ids] + ['"long"'] * 3 + [None] == found


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n", b"Accept-Encoding: gzip\r\n"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_answer_from_memory_is_the_first_one_again(holder, method, more):
    """The bytes of an answer from memory differ from those of the first answer in its id and date only."""
    target = f"/schemas/ids/{register(holder, 'memory-int', 'int')}?subject={method}-{len(more)}"
    found = []
    for _ in range(3):
        with closing(connect(holder.port)) as wire:
            wire.sendall(request(f"{method} {target} HTTP/1.1", more))
            wire.shutdown(socket.SHUT_WR)
            head, _, body = wire.makefile("rb").read().partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith((b"date:", b"x-request-id:"))]
        found.append((lines, body))
        assert len(lines) == len(head.split(b"\r\n")) - 2

    assert found[0] == found[1] == found[2]
    assert (b"" == found[0][1]) == (method == "HEAD")


UPGRADES = [
    pytest.param(b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==\r\n", id="websocket"),
    pytest.param(b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAM\r\n", id="HTTP/2"),
]


@pytest.mark.parametrize("offer", UPGRADES)
def test_an_offer_to_upgrade_is_ignored(node, offer):
    """The node ignores an offer to upgrade, answers the request, reads its body, and keeps the connection."""
    body = b'{"schema": "\\"int\\""}'
    length = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    with closing(connect(node.port)) as wire:
        wire.sendall(
            request(headers=offer)
            + request("POST /compatibility/subjects/none/versions HTTP/1.1", offer + length)
            + body
            + request("GET /subjects HTTP/1.1", offer + b"Connection: close\r\n")
        )
        found = answers(wire)

    assert [(200, {}), (200, {"is_compatible": True}), (200, [])] == found


def test_a_client_that_leaves_within_its_body_changes_nothing(node):
    """The node never acts on part of a request, and does not log it as an error of the service."""
    sent = request("POST /subjects/cut/versions HTTP/1.1", b"Content-Length: 100\r\n")
    with closing(connect(node.port)) as wire:
        wire.sendall(sent + b'{"schema": "\\"int\\""}')
    with closing(connect(node.port)) as wire:
        wire.sendall(sent.replace(b"Content-Length", b"Expect: 100-continue\r\nContent-Length"))
        assert wire.recv(100).startswith(b"HTTP/1.1 100")  # The app waits for the body.

    assert [(200, [])] == talk(node.port, request("GET /subjects HTTP/1.1", b"Connection: close\r\n"))
    assert "Traceback" not in node.output


def ask_and_read_no_more(port: int) -> socket.socket | None:
    """Ask for a large answer a hundred times, and read a few bytes; return the connection if the node serves it."""
    wire = connect(port)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.sendall(request("GET /schemas/ids/1 HTTP/1.1") * 100)
    if b"HTTP/1.1 200" == wire.recv(12):
        return wire
    wire.close()
    return None


def test_a_client_that_does_not_read_is_cut_off():
    """A client that does not read its answers does not hold a connection for ever: another one gets its place."""
    large = json.dumps({"schema": json.dumps({"type": "int", "x": "x" * 500_000})}).encode()
    sized = f"Content-Length: {len(large)}\r\nConnection: close\r\n".encode()
    post = request("POST /subjects/s/versions HTTP/1.1", sized) + large
    with RegistryNode("memory:", "--request-seconds=1", "--max-connections=1") as node:
        until(lambda: [200] == [status for status, _ in offer(node.port, post)])
        with closing(until(lambda: ask_and_read_no_more(node.port), ConnectionError)):
            until(lambda: is_served(node.port))


def offer(port: int, sent: bytes) -> list[tuple[int, object]]:
    """Send a request; return its answers, none if the node refuses or closes the connection."""
    try:
        return talk(port, sent)
    except (ConnectionResetError, BrokenPipeError):
        return []


def is_served(port: int) -> bool:
    """Return whether a new client gets an answer; False if it is refused or its connection closed."""
    found = offer(port, request(headers=b"Connection: close\r\n"))
    assert all(status in (200, 503) for status, _ in found), found
    return bool(found) and found[0][0] == 200


def fill(stack: ExitStack, port: int, count: int) -> None:
    """Hold connections that send nothing."""
    for _ in range(count):
        stack.enter_context(closing(connect(port)))


def hold(stack: ExitStack, port: int) -> None:
    """Hold a connection that the node serves; it may still count connections that were closed before, and refuse."""
    while True:
        with ExitStack() as attempt:
            wire = attempt.enter_context(closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)))
            try:
                wire.request("GET", "/")
                status = wire.getresponse().status
            except (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
                continue
            if status == 200:
                stack.push(attempt.pop_all())
                return
            assert status == 503


def test_open_connections_are_bounded():
    """Above the limit a client gets 503 or a closed connection at once; when others leave, it is served."""
    patient = ("--request-seconds=600", "--idle-seconds=600")
    with RegistryNode("memory:", "--max-connections=30", *patient) as node, ExitStack() as stack:
        for _ in range(30):
            hold(stack, node.port)
        while not (found := offer(node.port, request())):  # The node closes it if the request comes late.
            pass
        ((status, answer),) = found
        assert (503, 503) == (status, answer["error_code"])
        fill(stack, node.port, 100)
        assert not is_served(node.port)
        stack.close()
        until(lambda: is_served(node.port))


def test_few_file_descriptors_are_enough():
    """With more clients than its 256 descriptors, the node keeps accepting: it serves, refuses or closes."""

    def start(command, *, log):
        return start_tied(["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *command], log=log)

    with RegistryNode("memory:", "--request-seconds=1", start=start) as node, ExitStack() as stack:
        fill(stack, node.port, 300)
        until(lambda: is_served(node.port))  # it refuses or closes until it has closed the silent connections
        assert "cannot accept" not in node.output


def test_connections_at_the_same_time(node):
    """The node serves many clients that come and go at once."""
    served: list[bool] = []

    def client() -> None:
        served.extend(is_served(node.port) for _ in range(20))

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [True] * 160 == served


# what the client sends, the statuses of the answers until the connection ends
INCOMPLETE = [
    pytest.param(b"", [], id="nothing"),
    pytest.param(b"\r\n\r\n", [], id="empty lines"),
    pytest.param(b"GE", [408], id="part of a method"),
    pytest.param(request()[:-2] + b"A: b", [408], id="part of the headers"),
    pytest.param(request("POST /subjects/s HTTP/1.1", b"Content-Length: 9\r\n") + b"{", [408], id="part of a body"),
    pytest.param(_CHUNKED + b"1\r\n{\r\n", [408], id="part of the chunks"),
    pytest.param(request(), [200], id="one request, and no other"),
    pytest.param(request() + b"\r\n", [200], id="a request and an empty line"),
    pytest.param(request() + b"GET /", [200, 408], id="a request and part of another"),
]


@pytest.mark.parametrize(("sent", "statuses"), INCOMPLETE)
def test_a_connection_without_a_complete_request_is_closed(stalled, sent, statuses):
    """The node closes the connection of a client that stalls, with an error if a request had begun."""
    assert statuses == [status for status, _ in stalled[sent].result()]


@pytest.mark.parametrize("at", [20, -3], ids=["part of the head", "part of the body"])
def test_the_rest_of_a_request_may_come_after_the_end_of_its_node_has_begun(at):
    """A node that ends waits a moment for requests that clients are sending, answers them, and closes connections."""
    sent = request("PUT /config HTTP/1.1", b"Content-Length: 24\r\n") + b'{"compatibility":"NONE"}'
    with RegistryNode("memory:", "--drain-seconds=0") as started, closing(connect(started.port)) as wire:
        found = each_answer(wire)
        wire.sendall(request() + sent[:at])
        assert (200, {}) == next(found)  # the node has read the part behind it as well
        started.send(signal.SIGTERM)
        time.sleep(0.5)
        wire.sendall(sent[at:])
        assert [(200, {"compatibility": "NONE"})] == list(found)
        assert 0 == started.wait(grace_s=8)
