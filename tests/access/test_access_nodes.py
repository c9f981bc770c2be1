"""Rights across processes: writes that other nodes forward, and the workers of one node."""

import base64
import http.client
import json
import time
from contextlib import contextmanager

import pytest

from harness.access_rules import Claimed, rule
from harness.processes import free_port
from harness.registry import RegistryNode
from harness.serving import serving
from strata.registry.access.control import AccessControl
from strata.registry.access.node_secret import HEADER, NodeSecret
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.memory_log import MemoryLog

SECRET = NodeSecret(b"s" * 32)


class SharedLog(MemoryLog):
    """A log in memory of which another node holds the pen, if `url` names one."""

    url: str | None = None

    def holder(self):
        """Return the URL of the other node."""
        return self.url


class View(SharedLog):
    """The same log as another node sees it."""

    def __init__(self, log):
        self.__dict__ = {**log.__dict__, "url": None}


def ask(port, method, path, body=None, user=None, **headers):
    """Return status and content of the answer to a request."""
    sent = {"Content-Type": "application/json", **({"x-user": user} if user else {}), **headers}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, json.dumps(body) if body is not None else None, sent)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


@contextmanager
def node(log, rules, secret):
    """Serve a node with access control; yield its port."""
    control = AccessControl(Claimed(), lambda: rules, ["User:root"], secret)
    with serving(lambda _: create_app(log, Settings(log="memory:"), control=control)) as port:
        yield port


LEVEL = {"compatibility": "NONE"}
BOTH = (rule("alice", "ALTER_CONFIGS", "a"),)


def test_the_holder_learns_who_asks_from_the_signature():
    """A node passes on the principal of a write, and the holder decides by it."""
    first = SharedLog()
    with node(View(first), BOTH, SECRET) as holder:
        first.url = f"http://127.0.0.1:{holder}"
        with node(first, BOTH, SECRET) as port:
            assert ask(port, "PUT", "/config/a", LEVEL, "alice")[0] == 200
            assert ask(port, "PUT", "/config/a%2fb", LEVEL, "root")[0] == 200
            assert ask(port, "PUT", "/config/a", LEVEL, "bob")[1]["error_code"] == 40301
        with node(first, (*BOTH, rule("bob", "ALTER_CONFIGS", "a")), SECRET) as port:
            status, content = ask(port, "PUT", "/config/a", LEVEL, "bob")
            assert (status, content["message"]) == (403, "User is denied operation WriteCompatibility on Subject: a")


def test_a_node_without_the_secret_forwards_nothing():
    """It cannot say who asks, so it writes itself."""
    log = SharedLog()
    log.url = f"http://127.0.0.1:{free_port()}"
    with node(log, BOTH, None) as port:
        assert ask(port, "PUT", "/config/a", LEVEL, "alice")[0] == 200
    assert len(list(log.read(-1))) == 1


def test_forwarding_headers_of_a_client_gain_nothing():
    """A client is who it says it is, whatever headers of nodes it sends."""
    forged = base64.urlsafe_b64encode(b'[9e9,"",["root",[],"basic",null]]').decode() + "." + "0" * 64
    name = HEADER.decode()
    signed = SECRET.sign("PUT", b"/config/b", b"{}", ("root", (), "basic", None), time.time()).decode()
    with node(SharedLog(), BOTH, SECRET) as port:
        for headers in (
            {"X-Forward": "true"}, {name: forged}, {name: signed}, {name: forged, "X-Forward": "true"},
            {"X-Forward": "true", "X-Forwarded-User": "root"}, {name: ""},
        ):  # fmt: skip
            assert ask(port, "PUT", "/config/c", LEVEL, "alice", **headers)[1]["error_code"] == 40301
            assert ask(port, "PUT", "/config/c", LEVEL, None, **headers)[0] == 401
        other_body = ask(port, "PUT", "/config/b", LEVEL, "alice", **{name: signed})
        assert other_body[0] == 400
        signed_body = SECRET.sign("PUT", b"/config/b", json.dumps(LEVEL).encode(), ("root", (), "", None), time.time())
        assert ask(port, "PUT", "/config/b", LEVEL, None, **{name: signed_body.decode()})[0] == 200


AUTH_FILE = """
users:
  - {name: alice, password: "PASSWORD"}
  - {name: root, password: "PASSWORD"}
rules:
  - {principal: User:alice, resource_type: SUBJECT, resource: mine, operation: ALL}
"""


@pytest.fixture
def workers(tmp_path):
    """Run a node of three workers with an auth file, in which all users have the same password."""
    from strata.registry.access.passwords import hash_password

    hashed = str(hash_password("correct horse"))
    path = tmp_path / "auth.yaml"
    path.write_text(AUTH_FILE.replace("PASSWORD", hashed))
    options = (f"--auth-file={path}", "--superusers=User:root", "--workers=3")
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", *options) as running:
        yield running


def test_each_worker_knows_who_asks_for_a_write(workers):
    """A write that one worker passes on to the one that writes is decided with the rights of its principal."""

    def call(method, path, body=None, user="alice"):
        token = base64.b64encode(f"{user}:correct horse".encode()).decode()
        return ask(workers.port, method, path, body, None, Authorization=f"Basic {token}")

    assert call("POST", "/subjects/secret/versions", {"schema": '"int"'}, "root")[0] == 200
    assert call("PUT", "/config/mine", {"alias": "secret"})[0] == 200
    for _ in range(12):  # connections, which the workers share
        assert call("DELETE", "/subjects/mine")[1]["error_code"] == 40301
        assert call("POST", "/subjects/secret/versions", {"schema": '"long"'})[1]["error_code"] == 40301
        assert call("PUT", "/config/mine", {"alias": "secret"})[0] == 200
        assert call("GET", "/v1/log", None, "root")[0] == 200
        assert ask(workers.port, "PUT", "/config/mine", LEVEL)[0] == 401
    assert call("GET", "/subjects/secret/versions", None, "root") == (200, [1])
