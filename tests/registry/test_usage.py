"""Which versions are fetched, by whom and when last."""

import json
from contextlib import closing

import pytest
from click.testing import CliRunner

from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.commands.cli import main
from strata.registry.commands.usage import merged
from strata.registry.features.usage.fetches import Usage
from strata.registry.settings import Settings

FIRST, SECOND = ("version", "s", 1), ("id", ".", 7)


def counted(usage, item=FIRST):
    """Return what was counted of a version: by client, and of others together."""
    found = usage.by_item().get(item)
    return ({client.agent: seen.times for client, seen in found.clients.items()}, found.others.times) if found else None


def used(api, query=""):
    """Return the usage by subject and version: how often, and the names of clients with their counts."""
    status, answer = api.get(f"/v1/usage{query}")
    assert 200 == status, answer
    return {
        (one["subject"], one["version"]): (one["count"], {c["client"]: (c["count"], *c["by"]) for c in one["clients"]})
        for one in answer["versions"]
    }


def test_every_way_to_fetch_counts(api):
    """Reads by id, by version, of the latest version and look-ups count for what they return, the cached ones too."""
    api.register("a", '"int"')
    api.register("b", '"int"')
    api.register("b", '["int","long"]')
    for _ in range(3):
        api.get("/schemas/ids/1", User_Agent="reader")
    api.get("/schemas/ids/1?subject=b", User_Agent="exact")
    for _ in range(2):
        api.get("/subjects/b/versions/latest", User_Agent="latest")
    api.get("/subjects/b/versions/2/schema", User_Agent="latest")
    api.post("/subjects/a", {"schema": '"int"'}, User_Agent="producer")
    api.get("/subjects/b/versions/9", User_Agent="reader")
    api.get("/subjects", User_Agent="reader")

    assert used(api) == {
        ("a", 1): (4, {"reader": (3, "id"), "producer": (1, "version")}),
        ("b", 1): (4, {"reader": (3, "id"), "exact": (1, "version")}),
        ("b", 2): (3, {"latest": (3, "version")}),
    }
    assert {("b", 1), ("b", 2)} == set(used(api, "?subject=b"))
    assert {("b", 1)} == set(used(api, "?offset=1&limit=1"))
    assert {} == used(api, "?subject=none")


def test_usage_can_be_off(configured):
    """Without usage, the path is unknown."""
    assert 404 == configured(Settings(log="memory:", usage="off")).get("/v1/usage")[0]


def test_deleted_versions_are_shown_on_request(api):
    """A soft-deleted version that is still fetched shows up with `deleted=true`."""
    api.register("a", '"int"')
    api.delete("/subjects/a")
    api.get("/schemas/ids/1", User_Agent="reader")

    assert {} == used(api)
    assert {("a", 1): (1, {"reader": (1, "id")})} == used(api, "?deleted=true")


def test_old_clients_become_a_number():
    """Beyond the limit, the clients that moved longest ago are no longer known, but what they fetched is counted."""
    clock = iter(range(1000))
    usage = Usage(most_clients=20, now=lambda: float(next(clock)))
    for number in range(20):
        usage.note(FIRST, b"a%d" % number, None)
    usage.note(FIRST, b"a0", None)
    usage.note(SECOND, b"new", "me")

    clients, others = counted(usage)
    assert {f"a{number}" for number in (0, *range(3, 20))} == set(clients)
    assert (2, 2) == (clients["a0"], others)
    assert ({"new": 1}, 0) == counted(usage, SECOND)


def test_memory_is_bounded():
    """However many versions and clients there are, the entries stay below the limits, and what is lost is counted."""
    clock = iter(range(100_000))
    usage = Usage(most_clients=100, most_items=50, now=lambda: float(next(clock)))
    for number in range(5000):
        usage.note(("version", "s", number), b"x" * 1000, None)

    assert len(usage.by_item()) <= 150
    assert usage.forgotten == 5000 - len(usage.by_item())
    assert {120} == {len(client.agent) for found in usage.by_item().values() for client in found.clients}


def test_what_one_process_takes_another_adds():
    """Counts move from one process to the other as plain values, and times keep the later one."""
    one, other = Usage(now=lambda: 5.0, most_clients=1), Usage(now=lambda: 9.0)
    for usage in (one, other):
        usage.note(FIRST, b"a", None)
    one.note(FIRST, b"b", None)
    other.merge(one.take())

    assert ({"a": 1, "b": 1}, 1) == counted(other)
    assert [] == one.take()


def test_answers_of_nodes_add_up():
    """Counts add up, the later time counts, and the latest start is the one since when all have counted."""
    client = {"client": "c", "by": ["id"], "count": 1, "last": "2026-01-01T00:00:00.000+00:00"}
    version = {"subject": "s", "version": 1, "id": 1, "count": 1, "last": client["last"], "clients": [client]}
    unused = {"subject": "t", "version": 1, "id": 2, "count": 0, "clients": []}
    later = "2026-02-01T00:00:00.000+00:00"
    other = {
        **version,
        "last": later,
        "clients": [{**client, "by": ["version"], "last": later}, {**client, "user": "u"}],
    }
    found = merged(
        [
            {"since": "2026-01-01", "forgotten": 1, "versions": [version, unused]},
            {"since": "2026-01-02", "forgotten": 2, "versions": [other, unused]},
        ]
    )

    assert ("2026-01-02", 3) == (found["since"], found["forgotten"])
    first, second = found["versions"]
    assert (2, later) == (first["count"], first["last"])
    assert [(2, ["id", "version"], later), (1, ["id"], client["last"])] == [
        (one["count"], one["by"], one["last"]) for one in first["clients"]
    ]
    assert unused == second


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Run a node of two workers."""
    with RegistryNode(f"sqlite:///{tmp_path_factory.mktemp('node')}/strata.db", "--workers=2") as running:
        yield running


def call(node, method, path, body=None, agent="test"):
    """Send a request over a connection of its own, which any worker may answer."""
    with closing(node.connect()) as connection:
        headers = {"Content-Type": "application/json", "User-Agent": agent}
        connection.request(method, path, body and json.dumps(body), headers)
        return json.loads(connection.getresponse().read())


def readers(node):
    """Return the clients that read version 1 of s and how often, as any worker knows it."""
    (version,) = call(node, "GET", "/v1/usage?subject=s")["versions"]
    return [(one["client"], one["count"]) for one in version["clients"]]


def test_workers_answer_for_the_node(node):
    """What any worker has answered is in the answer of each; the command prints it."""
    call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})
    call(node, "POST", "/subjects/unused/versions", {"schema": '"long"'})
    for _ in range(20):
        call(node, "GET", "/schemas/ids/1", agent="reader/1.0")
    until(lambda: [[("reader/1.0", 20)]] * 6 == [readers(node) for _ in range(6)])
    table = CliRunner().invoke(main, ["usage", node.url, "s"])
    unused = CliRunner().invoke(main, ["usage", node.url, "--unused", "--output=json"])
    by_earlier_name = CliRunner().invoke(main, ["usage", node.url, "--unused", "--format=json"])

    assert 0 == table.exit_code, table.output
    assert "s  version 1, id 1: 20 times, last " in table.output
    assert "    reader/1.0, by id: 20 times, last " in table.output
    assert ["unused"] == [one["subject"] for one in json.loads(unused.output)["versions"]]
    assert unused.output == by_earlier_name.output


def test_the_command_says_that_usage_is_off():
    """A node without usage answers 404, which alone would not say why."""
    with RegistryNode("memory:", "--usage=off") as node:
        found = CliRunner().invoke(main, ["usage", node.url])

    assert (2, f"strata: {node.url} does not note which versions are fetched (--usage off)\n") == (
        found.exit_code,
        found.output,
    )
