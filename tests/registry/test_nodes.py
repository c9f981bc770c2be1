"""Several nodes over one log, as processes: all nodes serve every acknowledged write; kill -9 loses nothing."""

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from harness.logs import quick_on
from harness.registry import RegistryNode
from harness.waiting import until

SUBJECTS, CLIENTS = 20, 8


@pytest.fixture(params=[60, pytest.param(500, marks=pytest.mark.slow)])
def schemas(request) -> int:
    """Return how many schemas the clients register."""
    return request.param


@pytest.fixture
def nodes(log_url) -> Iterator[list[RegistryNode]]:
    """Start two nodes; on Kafka the first one holds the pen, because it writes first."""
    with RegistryNode(log_url) as first, RegistryNode(log_url) as second:
        assert 200 == call(first, "PUT", "/config", {"compatibility": "NONE"})[0]
        yield [first, second]


def call(node, method, path, body=None):
    """Send one request to a node."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
    try:
        connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def insistent(nodes, number, method, path, body=None):
    """Send a request as a client with retries does: to one node, and to the next one when that fails."""
    turns = count(number)

    def answered():
        status, answer = call(nodes[next(turns) % len(nodes)], method, path, body)
        assert status < 500, answer
        return status, answer

    return until(answered, AssertionError, OSError, http.client.HTTPException)


def text(number):
    """Return the text of one of the schemas."""
    return f'{{"type":"record","name":"R{number}","fields":[]}}'


def register_all(nodes, schemas, *, after_each=lambda _done: None):
    """Register every schema from concurrent clients, each reading its answer back at once from the other node."""
    placed = {}

    def register(number):
        subject = f"s{number % SUBJECTS}"
        status, answer = insistent(nodes, number, "POST", f"/subjects/{subject}/versions", {"schema": text(number)})
        assert 200 == status, answer
        placed[number] = (answer["id"], subject, answer["version"])
        after_each(len(placed))
        found = insistent(nodes, number + 1, "GET", f"/schemas/ids/{answer['id']}")
        assert (200, text(number)) == (found[0], found[1].get("schema")), found
        found = insistent(nodes, number + 1, "GET", f"/subjects/{subject}/versions/{answer['version']}")
        assert (200, text(number)) == (found[0], found[1].get("schema")), found

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(register, range(schemas)))
    return placed


def check_whole(node, placed):
    """Check that ids and versions are unique and dense, and that this node serves every acknowledged write."""
    assert list(range(1, len(placed) + 1)) == sorted(schema_id for schema_id, _, _ in placed.values())
    for subject in {subject for _, subject, _ in placed.values()}:
        versions = sorted(version for _, name, version in placed.values() if name == subject)
        assert list(range(1, len(versions) + 1)) == versions
        assert (200, versions) == call(node, "GET", f"/subjects/{subject}/versions")
    for number, (schema_id, subject, version) in placed.items():
        status, answer = call(node, "GET", f"/subjects/{subject}/versions/{version}")
        assert (200, schema_id, text(number)) == (status, answer["id"], answer["schema"])


@quick_on("sqlite")
def test_concurrent_clients_on_two_nodes(nodes, schemas):
    """Eight clients over two nodes get dense ids and versions, and the other node serves each answer at once."""
    placed = register_all(nodes, schemas)

    assert schemas == len(placed)

    for node in nodes:
        check_whole(node, placed)


@quick_on("kafka")  # another node must take the pen, which a database has not
def test_killed_writer_loses_nothing_acknowledged(nodes, schemas):
    """After kill -9 of the pen's holder during writes, writes continue, and every acknowledged one is kept."""
    killed = threading.Event()

    def kill_once(done):
        if done > schemas // 4 and not killed.is_set():
            killed.set()
            nodes[0].kill()

    placed = register_all(nodes, schemas, after_each=kill_once)

    assert schemas == len(placed)

    assert killed.is_set()
    check_whole(nodes[1], placed)
    nodes[0].restart()
    check_whole(nodes[0], placed)
