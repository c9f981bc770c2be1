"""Answers kept per State: a kept answer always equals the one that a node without any kept answers would give."""

import asyncio
import gzip
import http.client
import json
import marshal
import socket
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from unittest.mock import patch

import orjson
import pytest
from starlette.requests import ClientDisconnect

from harness.serving import serving
from harness.waiting import until
from strata.registry.api import compatibility
from strata.registry.app import ROUTERS, create_app, route_table
from strata.registry.core import errors
from strata.registry.core.cache import BasisCache, Repeats
from strata.registry.core.writer import Writer
from strata.registry.features.exporters.runner import Exporters
from strata.registry.http.bodies import read_up_to
from strata.registry.http.context_prefix import within_context
from strata.registry.http.pipeline import KeptAnswer, Pipeline
from strata.registry.http.route_facts import Kept
from strata.registry.node.settings import Reads
from strata.registry.settings import Settings
from strata.storage.log import LogError, MemoryLog
from strata.storage.open_log import open_log

SETTINGS = Settings(log="memory:")
INT, LONG = {"schema": '"int"'}, {"schema": '"long"'}
RECORD = '{"type":"record","name":"R","fields":[{"name":"s","type":"S"}]}'
ENUM = {"schema": '{"type":"enum","name":"S","symbols":["A"]}'}
REFERRING = {"schema": RECORD, "references": [{"name": "S", "subject": "base", "version": 1}]}
ROUTES = route_table()
DECLARED = [route for router in ROUTERS for route in router.declared]
CHANGING = ("x-request-id", "date")
CHANGING_LINES = tuple(f"{name}:".encode() for name in CHANGING)
GUID = "4b7e5f44-4c9c-3a6a-a3a2-5d8d4c1f2b11"
KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn"}
TOPIC = {"resourceName": "t", "resourceNamespace": "lkc", "resourceId": "r", "resourceType": "topic"} | {
    "associations": [{"associationType": "value", "subject": "t-value", "lifecycle": "WEAK"}]
}

READS = [
    ("GET", "/schemas/ids/1", None), ("GET", "/schemas/ids/1/schema", None), ("GET", "/schemas/ids/2?subject=s", None),
    ("GET", "/schemas/ids/1/subjects", None), ("GET", "/schemas/ids/1/versions", None),
    ("GET", "/schemas/ids/1?fetchMaxId=true", None), ("GET", "/contexts/.c/schemas/ids/1", None),
    ("GET", f"/schemas/guids/{GUID}", None), ("GET", f"/schemas/guids/{GUID}/ids", None),
    ("GET", "/schemas", None), ("GET", "/schemas?aliases=true&deleted=true", None),
    ("GET", "/schemas?resourceType=topic", None),
    ("GET", "/subjects", None), ("GET", "/contexts/.c/subjects", None), ("GET", "/subjects?deleted=true", None),
    ("GET", "/subjects/s/versions", None), ("GET", "/subjects/s/versions?deleted=true", None),
    ("GET", "/subjects/s/versions/1", None), ("GET", "/subjects/s/versions/2", None),
    ("GET", "/subjects/s/versions/latest", None), ("GET", "/subjects/s/versions/latest/schema", None),
    ("GET", "/contexts/.c/subjects/s/versions/latest", None), ("GET", "/subjects/other/versions/latest", None),
    ("GET", "/subjects/s/metadata?key=owner&value=me", None),
    ("GET", "/subjects/base/versions/1/referencedby", None),
    ("POST", "/subjects/s", INT), ("POST", "/subjects/s", LONG), ("POST", "/subjects/s?deleted=true", INT),
    ("POST", "/compatibility/subjects/s/versions", LONG),
    ("POST", "/compatibility/subjects/s/versions?verbose=true", {"schema": '"string"'}),
    ("POST", "/compatibility/subjects/s/versions/latest", {"schema": '"string"'}),
    ("GET", "/config", None), ("GET", "/config/s", None), ("GET", "/config/s?defaultToGlobal=true", None),
    ("GET", "/mode", None), ("GET", "/mode/s", None), ("GET", "/mode/s?defaultToGlobal=true", None),
    ("GET", "/contexts", None), ("GET", "/contexts/.c/mode", None), ("GET", "/contexts/.c", None),
    ("POST", "/contexts/.c", None),
    ("GET", "/associations/subjects/t-value", None), ("GET", "/associations/resources/r", None),
    ("GET", "/associations/resources/lkc/t", None),
    ("POST", "/associations:batchGet?includeSchemas=true", {"requests": [{"resourceId": "r"}]}),
    ("GET", "/dek-registry/v1/keks", None), ("GET", "/dek-registry/v1/keks/k", None),
    ("POST", "/dek-registry/v1/keks/k/test", None),
    ("GET", "/dek-registry/v1/keks/k/deks", None), ("GET", "/dek-registry/v1/keks/k/deks/s", None),
    ("GET", "/dek-registry/v1/keks/k/deks/s/versions", None),
    ("GET", "/dek-registry/v1/keks/k/deks/s/versions/1", None), ("GET", "/security/acls", None),
    ("GET", "/exporters", None), ("GET", "/exporters/e", None), ("GET", "/exporters/e/config", None),
    ("GET", "/exporters/e/config/clusterlink", None), ("GET", "/exporters/e/status", None),
]  # fmt: skip

DESTINATION = {"schema.registry.url": "http://127.0.0.1:1"}
ACL = {"principal": "User:u", "resource": "s", "resource_type": "SUBJECT", "pattern_type": "LITERAL", "host": "*",
       "operation": "READ", "permission": "ALLOW"}  # fmt: skip
WRITES = [
    ("POST", "/subjects/s/versions", INT), ("POST", "/subjects/s/versions", LONG),
    ("POST", "/contexts/.c/subjects/s/versions", INT),
    ("POST", "/subjects/base/versions", ENUM), ("POST", "/subjects/referring/versions", REFERRING),
    ("PUT", "/config", {"compatibility": "FULL"}), ("PUT", "/config/s", {"compatibility": "NONE"}),
    ("POST", "/subjects/s/versions", {"schema": '"string"', "metadata": {"properties": {"owner": "me"}}}),
    ("DELETE", "/config/s", None), ("DELETE", "/config", None),
    ("PUT", "/config/other", {"alias": "s"}), ("PUT", "/mode", {"mode": "READONLY"}), ("DELETE", "/mode", None),
    ("PUT", "/mode/s", {"mode": "READWRITE"}), ("PUT", "/contexts/.c/mode", {"mode": "READONLY"}),
    ("DELETE", "/mode/s", None), ("DELETE", "/contexts/.c/mode", None),
    ("POST", "/dek-registry/v1/keks", KEK),
    ("POST", "/dek-registry/v1/keks/k/deks", {"subject": "s", "encryptedKeyMaterial": "bWF0ZXJpYWw="}),
    ("PUT", "/dek-registry/v1/keks/k", {"doc": "new"}), ("DELETE", "/dek-registry/v1/keks/k/deks/s", None),
    ("POST", "/dek-registry/v1/keks/k/deks/s/undelete", None),
    ("POST", "/subjects/t-value/versions", INT), ("POST", "/associations", TOPIC),
    ("DELETE", "/associations/resources/r", None),
    ("DELETE", "/subjects/s/versions/1", None), ("DELETE", "/subjects/s/versions/1?permanent=true", None),
    ("DELETE", "/subjects/s", None), ("DELETE", "/subjects/s?permanent=true", None),
    ("DELETE", "/contexts/.c/subjects/s", None), ("DELETE", "/contexts/.c/subjects/s?permanent=true", None),
    ("DELETE", "/contexts/.c", None), ("POST", "/security/acls", [ACL]), ("DELETE", "/security/acls", [{}]),
    ("POST", "/exporters", {"name": "e", "config": DESTINATION}), ("PUT", "/exporters/e/pause", None),
    ("PUT", "/exporters/e/config", {**DESTINATION, "a": "b"}), ("PUT", "/exporters/e", {"subjects": ["s"]}),
    ("PUT", "/exporters/e/reset", None), ("DELETE", "/exporters/e", None),
]  # fmt: skip


# Schemas by id outlive all of these writes; the roots of contexts answer the same always.
UNCHANGED = {("GET", "/schemas/ids/1/schema"), ("GET", "/contexts/.c"), ("POST", "/contexts/.c")}
NEVER_KEPT = ("/contexts/.c", "/schemas/ids/1?fetchMaxId=true")


class Node:
    """A node in this process."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, **headers):
        """Send a request; return status, headers without the request id, and the body as it is."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            return self._ask(connection, method, path, body, headers)

    def ask_all(self, requests):
        """Send requests over one connection, without waiting for answers in between; return these as bytes."""
        with closing(socket.create_connection(("127.0.0.1", self.port), timeout=60)) as connection:
            connection.sendall(b"".join(as_bytes(*request) for request in requests))
            with connection.makefile("rb") as answers:
                return [read_answer(answers) for _ in requests]

    def _ask(self, connection, method, path, body, headers):
        sent = {"Content-Type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        connection.request(method, path, body if isinstance(body, bytes | None) else json.dumps(body), sent)
        response = connection.getresponse()
        told = {name.lower(): text for name, text in response.getheaders()}
        return response.status, {name: told[name] for name in told if name not in CHANGING}, response.read()

    def done(self, *request):
        """Send a request that must succeed, and return its JSON."""
        status, _, body = self.ask(*request)
        assert status in (200, 201, 204), (request, body)
        return json.loads(body or b"null")


def as_bytes(method, path, body):
    """Return a request as it is sent."""
    sent = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def read_answer(answers):
    """Read an answer; return the lines of its head that are the same each time, and its body."""
    lines = list(iter(answers.readline, b"\r\n"))
    (length,) = (int(line.split()[1]) for line in lines if line.startswith(b"content-length:"))
    return [line for line in lines if not line.startswith(CHANGING_LINES)], answers.read(length)


@contextmanager
def node(log, settings=SETTINGS):
    """Serve a log."""
    with serving(lambda _: create_app(log, settings)) as port:
        yield Node(port)


def count_runs(one, *requests):
    """Return how many of some requests reach a route."""
    ran, original = [], Pipeline._call

    async def call(self, *args):
        ran.append(args)
        return await original(self, *args)

    with patch.object(Pipeline, "_call", call):
        for request in requests:
            one.ask(*request)
    return len(ran)


@pytest.fixture
def no_copies(monkeypatch):
    """Let no exporter run: each notes its progress in the log, whenever it comes to it."""

    async def watch(_self):
        await asyncio.Event().wait()

    monkeypatch.setattr(Exporters, "watch", watch)


def test_every_answer_after_every_write(no_copies):
    """After each kind of write, each answer is the one that a node without kept answers gives."""
    log, changed = MemoryLog(), set()
    with node(log) as old:
        guid = old.done("POST", "/subjects/s/versions", INT)["guid"]
        reads = [(method, path.replace(GUID, guid), body) for method, path, body in READS]
        before = [old.ask_all(reads) for _ in range(2)][-1]  # from its second time on, an answer is kept each time
        for write in WRITES:
            old.done(*write)
            with node(log) as new:
                expected = new.ask_all(reads)
            assert expected == old.ask_all(reads), write
            changed |= {read[:2] for read, now, then in zip(reads, expected, before, strict=True) if now != then}
            before = expected

    assert UNCHANGED == {read[:2] for read in reads} - changed


def test_table_of_reads_covers_every_route():
    """The table above names every route whose answers may be kept."""
    named = {
        ROUTES.find(method, within_context(path.partition("?")[0], "", ROUTES, method)[0]) for method, path, _ in READS
    }

    assert {route for route in DECLARED if route.facts.kept is not Kept.NO} == named


@pytest.mark.parametrize("read", READS, ids=lambda read: f"{read[0]} {read[1]}")
def test_third_answer_comes_from_memory(shared, read):
    """The third of equal requests runs no route, with HEAD instead of GET as well; errors but 404 do."""
    first, _ = shared.ask(*read), shared.ask(*read)
    is_kept = first[0] in (200, 207, 404) and read[1] not in NEVER_KEPT

    assert (0 if is_kept else 1) == count_runs(shared, read)
    assert first == shared.ask(*read)
    if read[0] == "GET":
        assert (*first[:2], b"") == shared.ask("HEAD", *read[1:])


def test_the_writer_knows_how_many_reads_memory_has_answered(monkeypatch):
    """Both caches count, those of schemas by id and of other answers: groups of writes wait for such reads."""
    writers = []
    monkeypatch.setattr("strata.registry.app.Writer", lambda *args, **options: noted(writers, *args, **options))
    with node(MemoryLog()) as one:
        one.done("POST", "/subjects/s/versions", INT)
        before = writers[0].gathering.reads()
        for path in ("/schemas/ids/1", "/subjects/s/versions/latest"):
            for _ in range(5):
                one.ask("GET", path)

        assert 4 + 3 == writers[0].gathering.reads() - before


def noted(writers, *args, **options):
    """Return a new writer, which is noted."""
    writers.append(Writer(*args, **options))
    return writers[-1]


@pytest.fixture(scope="module")
def shared():
    """Yield a node with something of each kind."""
    log = MemoryLog()
    with node(log) as one:
        for write in WRITES[:8]:
            one.done(*write)
        yield one


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("GET", "/subjects/s/versions"), ("GET", "/subjects/s/versions?offset=1")),
        (("GET", "/subjects/s/versions/latest"), ("GET", "/contexts/.c/subjects/s/versions/latest")),
        (("POST", "/subjects/s", INT), ("POST", "/subjects/s", LONG)),
        (("POST", "/subjects/s", INT), ("POST", "/subjects/none", INT)),
        (("POST", "/compatibility/subjects/s/versions", INT), ("POST", "/subjects/s", INT)),
    ],
)
def test_requests_that_differ_have_answers_of_their_own(shared, first, second):
    """A request is not answered with what was kept for another path, query, context or body."""
    answers = [shared.ask(*first), shared.ask(*second)]

    assert answers == [shared.ask(*first), shared.ask(*second)]
    assert answers[0] != answers[1]
    assert 0 == count_runs(shared, first, second)


@pytest.mark.parametrize("path", ["/subjects/large/versions/latest", "/subjects/large/versions/1"])
def test_headers_that_change_an_answer(shared, path):
    """The media type and the compression of an answer follow each request."""
    large = json.dumps({"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(500)]})
    shared.done("POST", "/subjects/large/versions", {"schema": large})
    plain = shared.ask("GET", path)
    packed = shared.ask("GET", path, Accept_Encoding="gzip")
    other = shared.ask("GET", path, Accept="application/json")

    for _ in range(2):
        assert plain == shared.ask("GET", path)
        assert packed == shared.ask("GET", path, Accept_Encoding="gzip")
        assert other == shared.ask("GET", path, Accept="application/json")
        assert 406 == shared.ask("GET", path, Accept="text/plain")[0]
    assert plain[2] == gzip.decompress(packed[2]) == other[2]
    assert ["Accept-Encoding"] * 3 == [one[1]["vary"] for one in (plain, packed, other)]
    assert "application/json" == other[1]["content-type"] != plain[1]["content-type"]


@pytest.mark.parametrize(
    "header", [{"Origin": "https://evil.example"}, {"Content-Type": "text/html"}, {"Host": "evil"}]
)
def test_rules_for_requests_come_before_kept_answers(shared, header):
    """A request that the registry refuses is refused although its answer is kept."""
    assert shared.ask("POST", "/subjects/s", INT)[0] == 200

    assert shared.ask("POST", "/subjects/s", INT, **header)[0] in (403, 415)


@pytest.mark.parametrize(("size", "runs"), [((64 << 10) - 40, 0), (65 << 10, 1)])
def test_large_bodies_are_passed_on(shared, size, runs):
    """The answer to a body over 64 KiB is right, and is not kept."""
    body = json.dumps({"schema": '"int"' + " " * size}).encode()
    packed = gzip.compress(body)

    assert [200] * 3 == [shared.ask("POST", "/subjects/s", body)[0] for _ in range(3)]
    assert runs == count_runs(shared, ("POST", "/subjects/s", body))
    assert 200 == shared.ask("POST", "/subjects/s", packed, Content_Encoding="gzip")[0]


@pytest.mark.parametrize(("parts", "expected"), [([b"ab", b"cd"], b"abcd"), ([b"abc", b"de"], None), ([b""], b"")])
async def test_start_of_a_body(parts, expected):
    """A body is read up to a size, and the next reader gets all of it, and then what comes next."""
    arriving = iter([{"body": part, "more_body": part is not parts[-1]} for part in parts])

    async def receive():
        return {"type": "http.request", **next(arriving, {"type": "http.disconnect"})}

    body, again = await read_up_to(receive, 4)

    assert expected == body
    assert b"".join(parts) == b"".join([(await again())["body"] for _ in parts])
    assert "http.disconnect" == (await again())["type"]


async def test_client_that_leaves_before_its_body_is_complete():
    """Part of a body is not acted upon."""

    async def receive():
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnect):
        await read_up_to(receive, 4)


async def test_a_request_whose_client_has_left_can_be_answered_to_another_worker():
    """The answer to a write that a worker passed on, and whose client left meanwhile, can go back over the link."""

    async def receive():
        return {"type": "http.disconnect"}

    path = "/subjects/s/versions"
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 1),
        "client": ("127.0.0.1", 2), "headers": [(b"x-request-id", b"r")],
    }  # fmt: skip
    app = create_app(MemoryLog(), Settings(log="memory:"))
    answer = await app.answer_passed_on(scope, receive, ("", (), "", ""))

    assert ((500, [], b""), -1) == marshal.loads(marshal.dumps(answer))


def test_verdict_that_depends_on_time_is_not_kept(shared):
    """A check that took too long may succeed the next time."""
    request = ("POST", "/compatibility/subjects/s/versions/1?verbose=true", {"schema": '"bytes"'})
    with patch.object(compatibility, "parse_request", side_effect=errors.TooExpensive("it takes too long")):
        slow = json.loads(shared.ask(*request)[2])

    assert ["it takes too long"] == slow["messages"]
    assert slow != json.loads(shared.ask(*request)[2])


def test_answer_made_from_another_state_is_not_kept():
    """An answer counts for the very State that it was made from, not for an equal one."""
    old, new = MemoryLog(), MemoryLog()
    basis = [old]
    cache = BasisCache(lambda: basis[0], 64 << 20)
    cache.put("a", b"old", old, 1000)
    cache.put("b", b"new", new, 1000)

    assert (b"old", None) == (cache.find("a"), cache.find("b"))
    basis[0] = new
    assert cache.find("a") is None
    basis[0] = old
    assert cache.find("a") is None


def test_what_comes_again():
    """A number is remembered until `most` others have come, and forgotten after twice as many."""
    repeats = Repeats(3)

    assert [False, True, False, False, False, True] == [repeats.repeat(number) for number in (1, 1, 2, 3, 4, 1)]
    assert [False, False, False, True] == [repeats.repeat(number) for number in (5, 6, 2, 1)]


def test_kept_answers_are_bounded():
    """The oldest answers give way to new ones, and an answer that would displace a great part is not kept."""
    cache = BasisCache(lambda: None, 64_000)
    for number in range(100):
        cache.put(number, b"x" * 1000, None, 2000)
    cache.put("large", b"x" * 4000, None, 5000)

    assert 32 == sum(cache.find(number) is not None for number in range(100))
    assert cache.find("large") is None


def test_a_kept_answer_takes_hardly_more_than_its_bytes():
    """The cache does not keep the buffers into which answers were written."""
    cache = BasisCache(lambda: None, 64 << 20)
    tracemalloc.start()
    try:
        for number in range(500):
            kept = KeptAnswer((200, [], orjson.dumps({"id": number})), None)
            cache.put(number, kept, None, kept.size)
        assert 500 * 1_000 > tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


# --- never stale


@pytest.fixture
def two_nodes(tmp_path):
    """Start two nodes on one SQLite log, each with a connection of its own."""
    logs = [open_log(f"sqlite:///{tmp_path}/strata.db") for _ in range(2)]
    with node(logs[0]) as first, node(logs[1]) as second:
        first.done("PUT", "/config", {"compatibility": "NONE"})
        yield first, second


def test_write_at_one_node_is_seen_at_the_other(two_nodes):
    """What one node acknowledged changes the kept answers of the other at once."""
    first, second = two_nodes
    for number in range(1, 12):
        schema = {"schema": json.dumps({"type": "fixed", "name": "F", "size": number})}
        assert [404] * 2 == [second.ask("POST", "/subjects/s", schema)[0] for _ in range(2)]
        first.done("POST", "/subjects/s/versions", schema)

        for _ in range(2):
            assert number == second.done("GET", "/subjects/s/versions/latest")["version"]
            assert number == second.done("POST", "/subjects/s", schema)["version"]
            assert list(range(1, number + 1)) == second.done("GET", "/subjects/s/versions")
        assert 0 == count_runs(second, ("GET", "/subjects/s/versions/latest"), ("POST", "/subjects/s", schema))
        first, second = second, first


def test_readers_beside_writers_see_no_old_state(two_nodes):
    """No read at either node is older than a write that was acknowledged, or a read that ended, before it began."""
    acknowledged, over = [0], threading.Event()
    reads = [("GET", "/config/s"), ("GET", "/config/s?defaultToGlobal=true")]

    def write():
        for number in range(1, 30):
            two_nodes[number % 2].done("PUT", "/config/s", {"compatibilityGroup": str(number)})
            acknowledged[0] = number
        over.set()

    def read(number):
        seen = kept = 0
        while not over.is_set():
            least = max(seen, acknowledged[0])
            answer = two_nodes[number % 2].ask(*reads[number // 2])
            seen = int(json.loads(answer[2]).get("compatibilityGroup", 0))
            assert seen >= least
            kept += seen == least
        return kept

    two_nodes[0].done("PUT", "/config/s", {"compatibilityGroup": "0"})
    with ThreadPoolExecutor(5) as clients:
        readers = [clients.submit(read, number) for number in range(4)]
        try:
            write()
        finally:
            over.set()
        assert all(reader.result() > 0 for reader in readers)


class CountedLog(MemoryLog):
    """A memory log that never says that it is unchanged, counts its reads, and fails on demand."""

    def __init__(self):
        super().__init__()
        self.reads, self.failure = 0, None

    def unchanged(self, _after):
        """Leave the question to `read`."""
        return False

    def read(self, after):
        """Count, and fail on demand."""
        self.reads += 1
        if self.failure:
            raise self.failure
        return super().read(after)


@pytest.fixture
def unwatched(monkeypatch):
    """Let nodes read the log for requests only, and not every few seconds."""
    monkeypatch.setattr("strata.registry.node.health._EVERY_S", 3600.0)


def test_kept_answer_costs_one_read_of_the_log(unwatched):
    """The log is read once for each request, whether the answer is kept, computed again, or made for the first time."""
    log, latest = CountedLog(), ("GET", "/subjects/s/versions/latest")
    with node(log) as one, node(log) as other:
        one.done("POST", "/subjects/s/versions", INT)
        counts = []
        for step in range(5):
            if step == 3:
                other.done("PUT", "/config", {"compatibility": "NONE"})
            before = log.reads
            runs = count_runs(one, latest)
            counts.append((log.reads - before, runs))

    assert [(1, 1), (1, 1), (1, 0), (1, 1), (1, 0)] == counts


def test_log_that_fails_makes_kept_answers_unusable(unwatched):
    """While the log cannot be read, the node does not answer from memory what may have changed."""
    log, latest = CountedLog(), ("GET", "/subjects/s/versions/latest")
    with node(log) as one:
        one.done("POST", "/subjects/s/versions", INT)
        expected = one.ask(*latest)
        assert expected == one.ask(*latest)  # which keeps it
        log.failure = LogError("gone")
        status, _, body = one.ask(*latest)
        log.failure = None

        assert (503, 50301) == (status, json.loads(body)["error_code"])
        assert expected == one.ask(*latest)


def test_local_reads_of_an_idle_node(unwatched):
    """With `--reads local` a node learns what another one has written without being asked for it."""
    log = CountedLog()
    with node(log) as writer, node(log, SETTINGS.model_copy(update={"reads": Reads.LOCAL})) as local:
        writer.done("POST", "/subjects/s/versions", INT)
        assert until(lambda: local.ask("GET", "/subjects/s/versions")[0] == 200)


def test_local_reads(unwatched, monkeypatch):
    """With `--reads local` kept answers follow the State in memory, and an unknown id is still looked up in the log."""
    monkeypatch.setattr("strata.registry.core.tail_reader._LEAST_S", 3600.0)
    monkeypatch.setattr("strata.registry.core.tail_reader._MOST_S", 3600.0)
    log = CountedLog()
    with node(log) as writer, node(log, SETTINGS.model_copy(update={"reads": Reads.LOCAL})) as local:
        unknown, versions = ("GET", "/schemas/ids/1"), ("GET", "/subjects/s/versions")
        assert [404] * 4 == [local.ask(*one)[0] for one in (unknown, versions) * 2]
        before = log.reads
        assert (0, before) == (count_runs(local, versions), log.reads)
        writer.done("POST", "/subjects/s/versions", INT)

        assert 404 == local.ask(*versions)[0]
        assert 200 == local.ask(*unknown)[0]
        assert [[1]] * 2 == [local.done(*versions) for _ in range(2)]
        assert 0 == count_runs(local, versions)
