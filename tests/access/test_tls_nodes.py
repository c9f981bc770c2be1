"""Nodes that ask each other for certificates forward writes over https."""

import json
from contextlib import ExitStack, closing
from uuid import uuid4

import pytest

from harness.certificates import Authority
from harness.registry import RegistryNode

pytestmark = pytest.mark.kafka

_PASSED_OVER = "does not respond, taking over"


@pytest.fixture
def authority(tmp_path):
    """Return the CA that nodes and clients trust."""
    return Authority(tmp_path)


@pytest.fixture
def start(kafka_broker, authority):
    """Start nodes on one topic, each with its own certificate, which ask for certificates."""
    log = f"kafka://{kafka_broker.bootstrap}/schemas-{uuid4().hex[:12]}"
    client = authority.context(authority.issue("client"))
    with ExitStack() as stack:

        def start_one(name, *more):
            pair = authority.issue(name)
            own = (f"--tls-certfile={pair.cert}", f"--tls-keyfile={pair.key}")
            asking = (f"--tls-client-ca={authority.file}", "--tls-client-auth=required")
            return stack.enter_context(RegistryNode(log, *own, *asking, *more, tls=client))

        yield start_one


def call(node, method, path, body=None):
    """Send one request to a node."""
    with closing(node.connect()) as connection:
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_write_is_forwarded_over_https(start, authority):
    """A node trusts the holder of the pen by its CA, shows its own certificate, and the pen stays where it is."""
    first, second = (start(name, f"--node-ca-file={authority.file}") for name in ("first", "second"))
    assert 200 == call(first, "PUT", "/config", {"compatibility": "NONE"})[0]

    assert 200 == call(second, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]

    log = call(second, "GET", "/v1/log")[1]
    assert (False, first.url) == (log["holdsPen"], log["holder"])
    assert (200, [1]) == call(first, "GET", "/subjects/s/versions")
    assert _PASSED_OVER not in second.output


def test_holder_that_is_not_trusted_is_passed_over(start):
    """A node that does not trust the holder's certificate sends it nothing, and writes itself."""
    first, second = start("first"), start("second")
    assert 200 == call(first, "PUT", "/config", {"compatibility": "NONE"})[0]

    assert 200 == call(second, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]

    assert _PASSED_OVER in second.output
    assert call(second, "GET", "/v1/log")[1]["holdsPen"]
