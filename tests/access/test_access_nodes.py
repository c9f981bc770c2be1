"""Rights across processes: writes that other nodes forward, and the workers of one node."""

import base64
import http.client
import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from harness.access_rules import Claimed, rule
from harness.passwords import cheap_hash
from harness.processes import free_port
from harness.registry import RegistryNode
from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.core.rights.rules import rule_json
from strata.registry.features.access.control import AccessControl
from strata.registry.http.node_signature import HEADER, NodeSecret
from strata.registry.settings import Settings
from strata.storage.log import START, MemoryLog
from strata.storage.open_log import open_log
from strata.storage.record_json import decode_key
from strata.storage.records import AclKey, SchemaKey

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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
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


SCHEMA = {"schema": '"int"'}
GRANTED = [
    pytest.param("POST", "/subjects/a/versions", SCHEMA, [("SUBJECT", "a", "WRITE")], id="by-path"),
    pytest.param("GET", "/config/a", None, [("SUBJECT", "a", "DESCRIBE_CONFIGS")], id="read"),
    pytest.param(
        "POST",
        "/subjects/a/versions?force=true",
        SCHEMA,
        [("SUBJECT", "a", "WRITE"), ("SUBJECT", "a", "ALTER_CONFIGS")],
        id="by-parameter",
    ),
    pytest.param(
        "POST",
        "/dek-registry/v1/keks",
        {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "x"},
        [("KEK", "k", "WRITE")],
        id="by-body",
    ),
    pytest.param(
        "POST",
        "/dek-registry/v1/keks/first/deks",
        {"subject": "a", "encryptedKeyMaterial": "eA=="},
        [("KEK", "first", "WRITE"), ("SUBJECT", "a", "WRITE")],
        id="by-path-and-body",
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "needed"), GRANTED)
def test_a_right_granted_on_one_node_holds_on_all(method, path, body, needed):
    """A node refuses nothing by rules that are older than the request."""
    log = SharedLog()
    with node(View(log), (), SECRET) as one, node(View(log), (), SECRET) as other:
        first = {"name": "first", "kmsType": "aws-kms", "kmsKeyId": "x"}
        assert ask(one, "POST", "/dek-registry/v1/keks", first, "root")[0] == 200
        assert ask(one, "PUT", "/config/a", LEVEL, "root")[0] == 200
        assert ask(other, "GET", "/config/a", None, "root")[0] == 200
        for kind, name, operation in needed:
            assert ask(other, method, path, body, "alice")[1]["error_code"] == 40301
            granted = [rule_json(rule("alice", operation, name, kind))]
            assert ask(one, "POST", "/security/acls", granted, "root")[0] == 201
        assert ask(other, method, path, body, "alice")[0] == 200


def test_a_right_revoked_on_one_node_is_gone_on_all():
    """A write that was forwarded, or is decided by a node that has not read the revocation, is refused."""
    log = SharedLog()
    revoked = [rule_json(rule("alice", "WRITE", "a"))]
    with node(View(log), (), SECRET) as one, node(View(log), (), SECRET) as other:
        assert ask(one, "POST", "/security/acls", revoked, "root")[0] == 201
        assert ask(other, "POST", "/subjects/a/versions", SCHEMA, "alice")[0] == 200
        assert ask(one, "DELETE", "/security/acls", revoked, "root")[0] == 200
        assert ask(other, "POST", "/subjects/a/versions", {"schema": '"long"'}, "alice")[1]["error_code"] == 40301


def test_a_signature_that_is_not_accepted_is_no_error_of_the_client():
    """The holder of the pen takes such a write for one of a stranger; the node that cannot forward takes the pen."""
    log = SharedLog()
    with node(View(log), BOTH, NodeSecret(b"other" * 8)) as holder:
        log.url = f"http://127.0.0.1:{holder}"
        with node(log, BOTH, SECRET) as port:
            assert ask(port, "PUT", "/config/a", LEVEL, "alice") == (200, LEVEL)
    assert len(list(log.read(-1))) == 1


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
    hashed = str(cheap_hash("correct horse"))
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


def grants(log_url):
    """Yield, by offset in the log, whether alice was granted something, or lost it, or wrote a schema."""
    with closing(open_log(log_url)) as log:
        for entry in log.read(START):
            key = decode_key(entry.key)
            if isinstance(key, AclKey):
                yield "granted" if entry.value else "revoked"
            elif isinstance(key, SchemaKey) and key.subject.startswith("shared-"):
                yield "wrote"


def test_no_write_lands_after_its_revocation(tmp_path):
    """While rights come and go on one node, and writes arrive on both, each write lies within a grant in the log."""
    password = str(cheap_hash("correct horse"))
    path, log_url = tmp_path / "auth.yaml", f"sqlite:///{tmp_path}/strata.db"
    path.write_text(AUTH_FILE.replace("PASSWORD", password))
    options = (f"--auth-file={path}", "--superusers=User:root")
    grant = {
        "principal": "User:alice", "resource": "shared-", "resource_type": "SUBJECT", "pattern_type": "PREFIXED",
        "host": "*", "operation": "WRITE", "permission": "ALLOW",
    }  # fmt: skip
    with RegistryNode(log_url, *options) as one, RegistryNode(log_url, *options) as two:

        def call(node, method, where, body, user):
            token = base64.b64encode(f"{user}:correct horse".encode()).decode()
            return ask(node.port, method, where, body, None, Authorization=f"Basic {token}")[0]

        over, answers = threading.Event(), []

        def write(number, node):
            count = 0
            while not over.is_set():
                count += 1
                where = f"/subjects/shared-{number}-{count}/versions"
                answers.append(call(node, "POST", where, {"schema": '"int"'}, "alice"))

        with ThreadPoolExecutor(4) as clients:
            writers = [clients.submit(write, number, node) for number, node in enumerate((one, one, two, two))]
            for turn in range(6):
                first, second = (one, two) if turn % 2 else (two, one)
                assert call(first, "POST", "/security/acls", [grant], "root") == 201
                done = len(answers)
                while len(answers) < done + 6:
                    time.sleep(0.005)
                assert call(second, "DELETE", "/security/acls", [grant], "root") == 200
            over.set()
            for writer in writers:
                writer.result()
    events = list(grants(log_url))
    allowed, wrong = False, 0
    for event in events:
        allowed = event == "granted" if event != "wrote" else allowed
        wrong += event == "wrote" and not allowed

    assert (Counter(events)["wrote"], wrong) == (answers.count(200), 0)
    assert {200, 403} == set(answers)
