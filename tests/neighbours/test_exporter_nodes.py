"""An exporter of several nodes as processes, over each kind of log: kills, restarts and a hand-over."""

import pytest

from harness.logs import SHARED_LOGS, new_log_url
from harness.neighbours import Registry, served
from harness.registry import RegistryNode
from harness.relay import relayed
from harness.waiting import until

OPTIONS = ("--exporter-seconds=0.05", "--workers=2")
pytestmark = pytest.mark.slow


@pytest.fixture(params=SHARED_LOGS)
def log(request, tmp_path):
    """Return the URL of a log."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_server").new_database()
    return new_log_url(request.param, tmp_path, request)


def client(node):
    """Return a client of a node."""
    return Registry(f"http://127.0.0.1:{node.port}", "")


def metrics(registry):
    """Return the page of metrics."""
    return registry._pool.request("GET", registry.url + "/metrics").data.decode()


def ids(registry):
    """Return the ids of all versions, by subject and version."""
    listed = registry.call("GET", "/schemas?subjectPrefix=:*:&deleted=true")
    return {(one["subject"], one["version"]): one["id"] for one in listed}


def test_an_exporter_survives_the_node_that_copies(log):
    """When the copying node is killed, another node goes on; nothing is lost, and nothing is registered twice."""
    with served("memory:") as target, relayed(target.url) as relay:
        with RegistryNode(log, *OPTIONS) as one, RegistryNode(log, *OPTIONS) as two:
            first, second = client(one), client(two)
            config = {"schema.registry.url": relay.url}
            first.call("POST", "/exporters", {"name": "e", "contextType": "NONE", "config": config})
            for number in range(20):
                first.register(f"s{number}", f'{{"type":"fixed","name":"F","size":{number + 1}}}')
            until(lambda: ids(target) == ids(first))
            failed = "strata_exporter_failures_total 0.0" not in metrics(first)
            posted = [write for write in relay.writes() if write.startswith("POST")]
            one.kill()
            second.register("later", '"long"')
            second.call("DELETE", "/subjects/s3")
            second.call("DELETE", "/subjects/s3?permanent=true")
            until(lambda: ids(target) == ids(second))
            one.restart()
            until(lambda: client(one).ready()["ready"])
            client(one).register("latest", '"bytes"')
            until(lambda: ids(target) == ids(second))

            assert "" == second.call("GET", "/exporters/e/status")["trace"]
        # A request that took longer than its time limit is repeated.
        assert failed or sorted(set(posted)) == sorted(posted)
