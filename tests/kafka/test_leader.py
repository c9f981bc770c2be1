"""The direct question to the partition's leader: what it answers, whom an answer serves, and what ends it.

Real brokers judge the messages and the logins. A double of a broker gives the answers that a real one never gives.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import pytest
from confluent_kafka import Producer

from faults.proxy import Proxy
from harness.certificates import Authority, Pair
from harness.kafka import KafkaBroker
from strata.storage.kafka.credentials import Credentials, credentials_of
from strata.storage.kafka.leader import Leader, _Link
from strata.storage.kafka.log import KafkaLog
from strata.storage.kafka.messages import list_offsets_answer, metadata_answer
from strata.storage.kafka.transactions import TransactionalProducer
from strata.storage.log import START, Record
from tests.kafka.conftest import SECRET, USER, Topic

_T = TypeVar("_T")
_TOPIC = "schemas"
_WAIT_S = 60.0


async def _end(leader: Leader) -> int:
    """Ask until the leader answers: the first call opens the connection."""
    return (await _until(leader.end, lambda end: end is not None)) or 0


@asynccontextmanager
async def _closed(*opened: Leader | KafkaLog) -> AsyncIterator[None]:
    """Close what a test has opened while its event loop still runs, and wait until the connections are gone."""
    try:
        yield
    finally:
        for each in opened:
            each.close()
        await asyncio.sleep(0.02)


def _record(name: str) -> Record:
    return Record(name.encode(), b"v")


# --- a real broker


@pytest.mark.kafka
async def test_the_last_stable_offset(topic: Topic) -> None:
    """The answer is the end of what is decided: an open transaction hides its records, and a marker counts."""
    topic.create()
    leader = Leader([_address(topic.bootstrap)], topic.name, Credentials())
    async with _closed(leader):
        assert await _end(leader) == 0
        producer = Producer({"bootstrap.servers": topic.bootstrap, "transactional.id": topic.name})
        producer.init_transactions(_WAIT_S)
        producer.begin_transaction()
        producer.produce(topic.name, b"v", b"k", 0)
        producer.flush(_WAIT_S)
        assert await _end(leader) == 0
        producer.commit_transaction(_WAIT_S)
        assert await _until(leader.end, lambda end: end != 0) == 2


@pytest.mark.kafka
async def test_a_log_ends_where_its_reader_is(topic: Topic) -> None:
    """A log ends at a reader's offset once it has been read to there, until a node appends."""
    writer, reader = topic.node(), topic.node()
    async with _closed(writer, reader):
        first = writer.append(START, [_record("a")])[-1].offset
        assert not await reader.ends_at(lambda: first)
        assert [entry.key for entry in reader.read(START)][-1] == b"a"
        await _until_true(lambda: reader.ends_at(lambda: first))
        assert not await reader.ends_at(lambda: START)
        second = writer.append(first, [_record("b")])[-1].offset
        assert not await reader.ends_at(lambda: first)
        assert not await reader.ends_at(lambda: second)
        reader.note_append(second)
        await _until_true(lambda: reader.ends_at(lambda: second))
        await _until_true(lambda: writer.ends_at(lambda: second))
        assert not await writer.ends_at(lambda: first)


@pytest.mark.kafka
async def test_a_topic_that_was_replaced(topic: Topic) -> None:
    """Once the topic's id has changed, no answer counts, whatever the offset."""
    topic.create()
    node = topic.node()
    async with _closed(node):
        assert list(node.read(START)) == []
        await _until_true(lambda: node.ends_at(lambda: START))
        topic.delete()
        topic.create()
        await _until(lambda: node.ends_at(lambda: START), lambda it_does: not it_does)
        await asyncio.sleep(0.5)
        assert not await node.ends_at(lambda: START)


# --- logins


class _Tokens(BaseHTTPRequestHandler):
    """A token endpoint: it grants an unsigned token, which the broker of these tests accepts."""

    requests: list[tuple[str | None, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.headers["Authorization"], body))
        token = _unsecured_token()
        answer = b'{"access_token": "%s", "token_type": "Bearer", "expires_in": 600}' % token.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


def _unsecured_token() -> str:
    config = {"sasl.oauthbearer.config": "principal=ada", "enable.sasl.oauthbearer.unsecure.jwt": "true"}
    found = credentials_of({"security.protocol": "sasl_plaintext", "sasl.mechanisms": "OAUTHBEARER", **config})
    assert found is not None
    assert found.mechanism is not None
    return next(found.mechanism()).decode().partition("Bearer ")[2].rstrip("\x01")


@pytest.fixture(scope="module")
def tokens() -> Iterator[str]:
    """Yield the URL of a token endpoint."""
    _Tokens.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tokens)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


def _scram(bits: int) -> dict[str, str]:
    return {"sasl.mechanism": f"SCRAM-SHA-{bits}", "sasl.username": USER, "sasl.password": f"plain-{bits}"}


_PLAIN = {"sasl.mechanisms": "PLAIN", "sasl.username": USER, "sasl.password": SECRET}
_UNSECURED = {
    "sasl.mechanisms": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": "principal=ada",
}
_OIDC = {
    "sasl.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "strata",
    "sasl.oauthbearer.client.secret": "hush",
    "sasl.oauthbearer.scope": "kafka",
}
_LOGINS = [
    ("MUTUAL", "ssl", {}),
    ("LOGIN", "sasl_plaintext", _PLAIN),
    ("LOGIN", "sasl_plaintext", _scram(256)),
    pytest.param("LOGIN", "sasl_plaintext", _scram(512), marks=pytest.mark.slow),  # the last row has it with TLS
    ("LOGIN", "SASL_PLAINTEXT", _UNSECURED),
    ("LOGIN", "sasl_plaintext", _OIDC),
    pytest.param("ENCRYPTED", "sasl_ssl", _PLAIN, marks=pytest.mark.slow),
    ("ENCRYPTED", "sasl_ssl", _scram(512)),
]


@pytest.fixture(scope="module")
def client(authority: Authority) -> Pair:
    """Return the certificate of a client."""
    return authority.issue("client")


def _config(authority: Authority, client: Pair, protocol: str) -> dict[str, str]:
    config = {"security.protocol": protocol}
    if protocol.lower().endswith("ssl"):
        config["ssl.ca.location"] = authority.file
    if protocol == "ssl":
        config |= {"ssl.certificate.location": client.cert, "ssl.key.location": client.key}
    return config


@pytest.mark.kafka
@pytest.mark.parametrize(("listener", "protocol", "login"), _LOGINS)
async def test_logins(
    own_broker: KafkaBroker,
    authority: Authority,
    client: Pair,
    tokens: str,
    listener: str,
    protocol: str,
    login: dict[str, str],
) -> None:
    """A connection with the settings of the Kafka client is one that the broker accepts."""
    config = _config(authority, client, protocol) | login
    if login is _OIDC:
        config["sasl.oauthbearer.token.endpoint.url"] = tokens
    credentials = credentials_of(config)
    assert credentials is not None
    Topic(own_broker, None, _TOPIC).write_plainly(b"k", b"v")  # type: ignore[arg-type]  # it opens no nodes
    leader = Leader([_address(own_broker.bootstrap_by(listener))], _TOPIC, credentials)
    async with _closed(leader):
        assert await _end(leader) > 0
        if login is _OIDC:
            assert (b"grant_type=client_credentials&scope=kafka") in [body for _, body in _Tokens.requests]
    with closing(
        KafkaLog(own_broker.bootstrap_by(listener), f"{_TOPIC}-log", advertised_url=None, config=config)
    ) as log:
        last = max((entry.offset for entry in log.read(START)), default=START)
        log.append(last, [_record("a")])
        assert log._pen is not None
        assert isinstance(log._pen._producer, TransactionalProducer)


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("listener", "protocol", "login"),
    [
        ("LOGIN", "sasl_plaintext", _PLAIN | {"sasl.password": "wrong"}),
        ("LOGIN", "sasl_plaintext", _scram(256) | {"sasl.password": "wrong"}),
        ("ENCRYPTED", "sasl_ssl", _PLAIN | {"ssl.ca.location": ""}),
    ],
)
async def test_refused_logins(
    own_broker: KafkaBroker,
    authority: Authority,
    client: Pair,
    tmp_path: Path,
    listener: str,
    protocol: str,
    login: dict[str, str],
) -> None:
    """A wrong password is never answered, and neither is a broker whose certificate no trusted CA has signed."""
    config = _config(authority, client, protocol) | login
    if "ssl.ca.location" in login:
        config["ssl.ca.location"] = Authority(tmp_path, "another").file
    credentials = credentials_of(config)
    assert credentials is not None
    leader = Leader([_address(own_broker.bootstrap_by(listener))], _TOPIC, credentials)
    async with _closed(leader):
        for _ in range(3):
            assert await leader.end() is None
            await _until_open(leader)


@pytest.mark.parametrize(
    "config",
    [
        {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "GSSAPI"},
        {"security.protocol": "sasl_ssl"},
        {"security.protocol": "ssl", "ssl.keystore.location": "/store.p12"},
        {"security.protocol": "ssl", "ssl.ca.location": "/no/such/file"},
        {"security.protocol": "sasl_plaintext", **_UNSECURED, "sasl.oauthbearer.config": "principal=a scope=b"},
        {"security.protocol": "sasl_plaintext", **_OIDC},
        {"security.protocol": "sasl_plaintext", **_PLAIN, "sasl.kerberos.keytab": "/x"},
    ],
)
def test_settings_left_to_the_client(config: Mapping[str, str]) -> None:
    """What the connection cannot do, the Kafka client does."""
    assert credentials_of(config) is None


@pytest.mark.kafka
@pytest.mark.parametrize("how", ["silence", "refuse"])
async def test_a_broken_path(own_broker: KafkaBroker, path: Proxy, how: str) -> None:
    """A silent or broken path answers "unknown", and the connection comes back with the path."""
    Topic(own_broker, None, _TOPIC).write_plainly(b"k", b"v")  # type: ignore[arg-type]  # it opens no nodes
    leader = Leader([("127.0.0.1", path.port)], _TOPIC, Credentials())
    async with _closed(leader):
        end = await _end(leader)
        getattr(path, how)()
        assert await leader.end() is None
        path.restore()
        assert await _end(leader) == end


# --- a double of a broker


class _Broker:
    """Answers Metadata with itself, and ListOffsets with what the test says."""

    def __init__(self) -> None:
        self.port = 0
        self.asked, self.asked_once = 0, asyncio.Event()
        self.answers: asyncio.Queue[Callable[[int], bytes]] = asyncio.Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                api, _, number = struct.unpack_from(">hhi", await reader.readexactly(size))
                if api == 3:
                    writer.write(_framed(number, _metadata(self.port)))
                else:
                    self.asked += 1
                    self.asked_once.set()
                    writer.write((await self.answers.get())(number))
        except asyncio.IncompleteReadError:
            writer.close()

    def answer(self, offset: int, **fields: Any) -> None:
        """Give the next answer."""
        self.answers.put_nowait(lambda number: _framed(number, _offsets(offset, **fields)))


@asynccontextmanager
async def _double() -> AsyncIterator[tuple[_Broker, Leader]]:
    broker = _Broker()
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    broker.port = server.sockets[0].getsockname()[1]
    leader = Leader([("127.0.0.1", broker.port)], _TOPIC, Credentials())
    assert await leader.end() is None  # it opens the connection
    await _until_open(leader)
    async with _closed(leader):
        yield broker, leader
    server.close()


async def test_a_broker_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that accepts connections and stays silent does not keep the node from asking the others."""
    monkeypatch.setattr("strata.storage.kafka.leader._CONNECT_S", 0.2)
    broker, connections = _Broker(), list[asyncio.StreamWriter]()
    silent = await asyncio.start_server(lambda _, writer: connections.append(writer), "127.0.0.1", 0)
    good = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    broker.port = good.sockets[0].getsockname()[1]
    leader = Leader([silent.sockets[0].getsockname(), ("127.0.0.1", broker.port)], _TOPIC, Credentials())
    async with _closed(leader):
        broker.answer(5)
        assert await _end(leader) == 5
    for writer in connections:
        writer.close()
    silent.close()
    good.close()


def _framed(number: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), number) + body


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _offsets(offset: int, *, code: int = 0, topic: str = _TOPIC, partition: int = 0) -> bytes:
    head = struct.pack(">ii", 0, 1) + _text(topic)
    return head + struct.pack(">iihqqi", 1, partition, code, -1, offset, 0)


def _metadata(port: int, *, code: int = 0, leader: int = 1, topic: str = _TOPIC) -> bytes:
    broker = struct.pack(">i", 1) + _text("127.0.0.1") + struct.pack(">ih", port, -1)
    head = struct.pack(">ii", 0, 1) + broker + _text("cluster") + struct.pack(">i", 1)
    partition = struct.pack(">hiii", 0, 0, leader, 7) + struct.pack(">iiiii", 1, 1, 1, 1, 0)
    return head + struct.pack(">ih", 1, code) + _text(topic) + b"\0" + struct.pack(">i", 1) + partition


async def test_callers_of_a_turn_share_a_question() -> None:
    """All that arrive before the request is sent share its answer."""
    async with _double() as (broker, leader):
        broker.answer(5)
        assert await asyncio.gather(*(leader.end() for _ in range(100))) == [5] * 100
        assert broker.asked == 1


async def test_no_answer_to_a_question_sent_earlier() -> None:
    """A caller that arrives after a request was sent gets the answer to a later one, however slow the first is."""
    async with _double() as (broker, leader):
        earlier = asyncio.ensure_future(leader.end())
        await broker.asked_once.wait()
        callers = [asyncio.ensure_future(leader.end())]
        await asyncio.sleep(0.01)
        callers += [asyncio.ensure_future(leader.end()) for _ in range(3)]
        for offset in (5, 6, 7):
            broker.answer(offset)
        assert await earlier == 5
        assert await callers[0] == 6
        assert [await caller for caller in callers[1:]] == [7] * 3


async def test_a_lone_caller() -> None:
    """A client that asks alone is not kept waiting for others, and its answer serves none that come later."""
    async with _double() as (broker, leader):
        for offset in (5, 6, 7):
            broker.answer(offset)
        assert await leader.end() == 5
        lone, later = leader.end(), leader.end()
        assert leader._on_the_way == 1
        assert await later == 7
        assert lone.result() == 6


async def test_a_caller_that_leaves() -> None:
    """A caller that is cancelled takes nothing from those that share its question."""
    async with _double() as (broker, leader):
        leaver, other = asyncio.ensure_future(leader.end()), asyncio.ensure_future(leader.end())
        await broker.asked_once.wait()
        leaver.cancel()
        broker.answer(5)
        assert await other == 5


_BAD: list[tuple[str, Callable[[int], bytes]]] = [
    ("another leader", lambda number: _framed(number, _offsets(-1, code=6))),
    ("an older epoch", lambda number: _framed(number, _offsets(-1, code=74))),
    ("no offset", lambda number: _framed(number, _offsets(-1))),
    ("another topic", lambda number: _framed(number, _offsets(5, topic="schemaz"))),
    ("another partition", lambda number: _framed(number, _offsets(5, partition=1))),
    ("the answer to another request", lambda number: _framed(number - 1, _offsets(5))),
    ("a second answer", lambda number: _framed(number, _offsets(5)) * 2),
    ("a cut answer", lambda number: _framed(number, _offsets(5)[:-1])),
    ("an answer that is too long", lambda number: struct.pack(">ii", 1 << 30, number)),
    ("a negative length", lambda number: struct.pack(">ii", -1, number)),
    ("nothing but zeros", lambda _: bytes(64)),
    ("HTTP", lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ("no answer", lambda _: b""),
]


@pytest.mark.parametrize(("name", "bad"), _BAD, ids=[name for name, _ in _BAD])
async def test_bad_answers(name: str, bad: Callable[[int], bytes]) -> None:
    """A bad answer means "unknown", and the connection is replaced."""
    async with _double() as (broker, leader):
        before = leader._link
        broker.answers.put_nowait(bad)
        assert await leader.end() == (5 if name == "a second answer" else None)
        assert await leader.end() is None  # it opens another one
        await _until_open(leader)
        assert leader._link is not before
        broker.answer(6)
        assert await _end(leader) == 6


class _Transport(asyncio.Transport):
    """Takes all that is written."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def abort(self) -> None:
        pass


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose time passes when the test says so."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def pass_to(self, now: float) -> None:
        """Let time pass, and call what is due."""
        self.now = now
        for _ in range(3):
            self.call_soon(self.stop)
            self.run_forever()


def test_one_timer_for_all_requests() -> None:
    """Each request has its own time for an answer, whatever the timer was set for; one that is late ends the rest."""
    loop, answers = _Loop(), list[tuple[str, bytes | None]]()
    link = _Link(loop)
    link.connection_made(_Transport())

    def send(name: str, timeout_s: float) -> None:
        link.send((3, 7), b"", timeout_s, lambda body: answers.append((name, body)))

    send("slow", 9.0)
    link.data_received(_framed(1, b"a"))
    send("first", 3.0)
    loop.pass_to(2.0)
    link.data_received(_framed(2, b"b"))
    send("second", 3.0)
    loop.pass_to(4.0)  # the timer was set for the first
    send("third", 3.0)
    assert answers == [("slow", b"a"), ("first", b"b")]
    assert not link.is_lost
    loop.pass_to(5.0)
    assert answers[2:] == [("second", None), ("third", None)]
    assert link.is_lost
    send("fourth", 3.0)
    assert answers[4:] == [("fourth", None)]
    loop.close()


def test_answers_of_any_length() -> None:
    """An answer that is cut or garbled anywhere raises ValueError or has no offset, and never anything else."""
    offsets, metadata = _offsets(5), _metadata(9092)
    assert list_offsets_answer(offsets, _TOPIC) == 5
    assert metadata_answer(metadata, _TOPIC) == ("127.0.0.1", 9092, 7)
    for end in range(len(offsets)):
        assert list_offsets_answer(offsets[:end], _TOPIC) is None
    for end in range(len(metadata)):
        with pytest.raises(ValueError, match=r"cut off|no leader"):
            metadata_answer(metadata[:end], _TOPIC)
    for at in range(len(metadata)):
        for byte in (0x00, 0x7F, 0xFF):
            garbled = metadata[:at] + bytes([byte]) + metadata[at + 1 :]
            with suppress(ValueError):
                metadata_answer(garbled, _TOPIC)


@pytest.mark.parametrize("wrong", [{"code": 3}, {"leader": -1}, {"leader": 2}, {"topic": "others"}])
def test_no_leader(wrong: dict[str, Any]) -> None:
    """Metadata without a leader of the topic is refused."""
    with pytest.raises(ValueError, match="no leader"):
        metadata_answer(_metadata(9092, **wrong), _TOPIC)


def _address(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


async def _until(ask: Callable[[], Awaitable[_T]], is_right: Callable[[_T], object]) -> _T:
    """Ask again and again, and return the first right answer."""
    async with asyncio.timeout(_WAIT_S):
        while True:
            if is_right(answer := await ask()):
                return answer
            await asyncio.sleep(0.005)


async def _until_true(ask: Callable[[], Awaitable[bool]]) -> None:
    await _until(ask, bool)


async def _until_open(leader: Leader) -> None:
    """Wait for the end of an attempt to open the connection."""
    if leader._opening is not None:
        await asyncio.wait([leader._opening], timeout=_WAIT_S)
