"""Nodes that ask each other for certificates forward writes over https."""

import json
from contextlib import ExitStack, closing, contextmanager
from uuid import uuid4

import pytest

from harness.certificates import Authority
from harness.registry import RegistryNode
from harness.waiting import until

pytestmark = pytest.mark.kafka

_PASSED_OVER = "does not respond, taking over"


@pytest.fixture
def authority(tmp_path):
    """Return the CA that nodes and clients trust."""
    return Authority(tmp_path)


@pytest.fixture
def pair_of_nodes(kafka_broker, authority):
    """Return a context of two nodes on a new topic, each with its own certificate, which ask for certificates."""
    client = authority.context(authority.issue("client"))

    @contextmanager
    def start(*more):
        log = f"kafka://{kafka_broker.bootstrap}/schemas-{uuid4().hex[:12]}"
        asking = (f"--tls-client-ca={authority.file}", "--tls-client-auth=required")
        with ExitStack() as stack:
            pairs = [authority.issue(name) for name in ("first", "second")]
            yield [
                stack.enter_context(
                    RegistryNode(log, f"--tls-certfile={cert}", f"--tls-keyfile={key}", *asking, *more, tls=client)
                )
                for cert, key in pairs
            ]

    return start


def call(node, method, path, body=None):
    """Send one request to a node."""
    with closing(node.connect()) as connection:
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_write_is_forwarded_over_https(pair_of_nodes, authority):
    """A node trusts the holder of the pen by its CA, shows its own certificate, and the pen stays where it is."""

    def forward():  # False: the holder has paused, and so it was passed over
        with pair_of_nodes(f"--node-ca-file={authority.file}") as (first, second):
            assert 200 == call(first, "PUT", "/config", {"compatibility": "NONE"})[0]
            status = call(second, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
            if _PASSED_OVER in second.output:
                return False
            assert 200 == status
            log = call(second, "GET", "/v1/log")[1]
            assert (False, first.url) == (log["holdsPen"], log["holder"])
            assert (200, [1]) == call(first, "GET", "/subjects/s/versions")
            return True

    until(forward)


def test_holder_that_is_not_trusted_is_passed_over(pair_of_nodes):
    """A node that does not trust the holder's certificate sends it nothing, and writes itself."""
    with pair_of_nodes() as (first, second):
        assert 200 == call(first, "PUT", "/config", {"compatibility": "NONE"})[0]

        assert 200 == call(second, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]

        assert _PASSED_OVER in second.output
        assert call(second, "GET", "/v1/log")[1]["holdsPen"]
