"""A standby as a process, over each kind of log at either end: kills, restarts, several workers, a promotion."""

import signal
from functools import partial

import pytest

from harness.logs import new_log_url
from harness.neighbours import Registry
from harness.registry import RegistryNode
from harness.waiting import until

OPTIONS = ("--follow-seconds=0.05", "--log-level=info")


SLOW_POSTGRES = pytest.param("postgres", marks=[pytest.mark.slow, pytest.mark.postgres])
KAFKA = pytest.param("kafka", marks=pytest.mark.kafka)


@pytest.fixture
def logs(request, tmp_path):
    """Return the URLs of two logs of one kind."""
    folders = [tmp_path / name for name in ("source", "standby")]
    for folder in folders:
        folder.mkdir()
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        return [server.new_database(), server.new_database()]
    return [new_log_url(request.param, folder, request) for folder in folders]


def client(node):
    """Return a client of a node."""
    return Registry(f"http://127.0.0.1:{node.port}", "")


def copied(standby, source):
    """Return whether a standby serves all subjects of its source, and knows the same deleted ones."""
    lists = ("/subjects", "/subjects?deleted=true")
    return [source.call("GET", path) for path in lists] == [standby.call("GET", path) for path in lists]


@pytest.mark.parametrize("logs", ["sqlite", SLOW_POSTGRES, KAFKA], indirect=True)
def test_a_standby_follows_through_kills_until_its_promotion(logs, strata):
    """Nothing is lost or copied twice when the standby or the source is killed; a promoted standby gives new ids."""
    with RegistryNode(logs[0]) as source, RegistryNode(logs[1], f"--follow={logs[0]}", *OPTIONS) as standby:
        first, second = client(source), client(standby)
        ids = [first.register(f"s-{n}", f'{{"type": "fixed", "name": "F", "size": {n + 1}}}') for n in range(8)]
        until(lambda: copied(second, first))
        standby.kill()
        ids += [first.register(f"t-{n}", f'{{"type": "fixed", "name": "T", "size": {n + 1}}}') for n in range(8)]
        first.call("DELETE", "/subjects/s-3")
        first.call("DELETE", "/subjects/s-3?permanent=true")
        standby.restart()
        until(lambda: copied(second, first))
        source.send(signal.SIGKILL)
        assert second.ready()["ready"]
        assert 42205 == second.ask("POST", "/subjects/new/versions", {"schema": '"int"'})[1]["error_code"]
        source.kill()

        code, output, _ = strata("promote", logs[1])

        assert (0, True) == (code, "no differences" in output), output
        new = until(lambda: second.ask("POST", "/subjects/new/versions", {"schema": '"int"'})[1].get("id"))
        assert max(ids) + 1 == new


def refuses(standby):
    """Return whether a node refuses a write; the answer is unknown if the node that it asks is paused."""
    code = standby.ask("DELETE", "/subjects/s")[1]["error_code"]
    assert code in {42205, 50003}
    return code == 42205


# Another node of a standby takes over without anything to see, except on Kafka, where it must take the pen.
@pytest.mark.parametrize("logs", [pytest.param("sqlite", marks=pytest.mark.slow), SLOW_POSTGRES, KAFKA], indirect=True)
def test_several_workers_and_nodes_of_a_standby(logs):
    """All workers of all nodes of a standby serve the copy and refuse writes; another node takes over."""
    with RegistryNode(logs[0]) as source, RegistryNode(logs[1], f"--follow={logs[0]}", *OPTIONS, "--workers=2") as one:
        first = client(source)
        first.register("s")
        until(lambda: copied(client(one), first))
        with RegistryNode(logs[1], f"--follow={logs[0]}", *OPTIONS) as other:
            for _ in range(8):
                for node in (one, other):
                    until(partial(refuses, client(node)))
            until(lambda: client(one).ready()["standby"]["secondsBehind"] < 60)
            one.kill()
            first.register("t", '"long"')
            until(lambda: copied(client(other), first))
