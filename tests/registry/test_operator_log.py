"""What `strata serve` logs: each event is caused in a real process and found in its log."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import ExitStack, closing

import pytest

from harness.kafka import KafkaBroker
from harness.log_lines import call, logged, until_logged
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from strata.registry.features.access.auth_file_edits import add_user
from strata.registry.node.logs.changes import CHANGES, EVENTS
from strata.registry.server import _log_name

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn", "kmsProps": {"token.id": "hunter2"}}
RULE = {"principal": "User:ann", "resource": "a", "resource_type": "SUBJECT", "pattern_type": "PREFIXED",
        "host": "*", "operation": "READ", "permission": "ALLOW"}  # fmt: skip
DEKS = "/dek-registry/v1/keks/k/deks"
ASSOCIATION = {"resourceName": "t", "resourceNamespace": "n", "resourceId": "r", "resourceType": "topic",
               "associations": [{"subject": "s2", "associationType": "value"}]}  # fmt: skip
# method, path, body, event, the words of its line, some of its fields
CHANGED = [
    ("POST", "/subjects/s/versions", {"schema": '"int"'}, "schema_register", "registered version 1 of s as schema 1",
     {"subject": "s", "version": 1, "schema_id": 1, "records": 1}),
    ("POST", "/subjects/s2/versions", {"schema": '"int"'}, "schema_register", "registered version 1 of s2 as schema 1",
     {"subject": "s2"}),
    ("PUT", "/config", {"compatibility": "NONE"}, "config_update",
     "set the configuration of the registry: compatibilityLevel=NONE", {"compatibility_level": "NONE"}),
    ("PUT", "/config/s", {"compatibility": "FULL", "defaultMetadata": {"properties": {"p": "hunter2"}}},
     "config_update", "set the configuration of s: compatibilityLevel=FULL, defaultMetadata",
     {"subject": "s", "compatibility_level": "FULL"}),
    ("DELETE", "/config/s", None, "config_delete", "deleted the configuration of s", {"subject": "s"}),
    ("PUT", "/mode/s", {"mode": "READONLY"}, "mode_update", "set the mode of s: READONLY",
     {"subject": "s", "mode": "READONLY"}),
    ("DELETE", "/mode/s", None, "mode_delete", "deleted the mode of s", {"subject": "s"}),
    ("DELETE", "/subjects/s/versions/1", None, "schema_delete", "deleted version 1 of s (it can be restored)",
     {"subject": "s", "version": 1, "schema_id": 1}),
    ("DELETE", "/subjects/s/versions/1?permanent=true", None, "schema_delete", "deleted version 1 of s for good",
     {"subject": "s", "version": 1}),
    ("POST", "/associations", ASSOCIATION, "association_update", "set the association of topic t with s2",
     {"subject": "s2"}),
    ("DELETE", "/associations/resources/r", None, "association_delete", "deleted the association of topic t with s2",
     {"subject": "s2"}),
    ("DELETE", "/subjects/s2", None, "subject_delete", "deleted s2 up to version 1 (it can be restored)",
     {"subject": "s2"}),
    ("POST", "/dek-registry/v1/keks", KEK, "kek_update", "set the key encryption key k", {"kek": "k"}),
    ("POST", DEKS, {"subject": "s", "encryptedKeyMaterial": "aHVudGVyMg=="}, "dek_update",
     "set version 1 of the data encryption key of s (AES256_GCM, k)", {"subject": "s", "kek": "k", "version": 1}),
    ("DELETE", f"{DEKS}/s", None, "dek_delete",
     "deleted version 1 of the data encryption key of s (AES256_GCM, k)", {"subject": "s", "kek": "k"}),
    ("DELETE", "/dek-registry/v1/keks/k", None, "kek_delete", "deleted the key encryption key k", {"kek": "k"}),
    ("POST", "/exporters", {"name": "e", "config": {"schema.registry.url": "http://127.0.0.1:1"}}, "exporter_update",
     "set the exporter e, the progress of the exporter e", {}),
    ("PUT", "/exporters/e/pause", None, "exporter_update", "set the exporter e (paused)", {}),
    ("DELETE", "/exporters/e", None, "exporter_delete", "deleted the exporter e, the progress of the exporter e", {}),
    ("POST", "/security/acls", [RULE], "acl_create",
     "added the rule ALLOW READ on SUBJECT a (PREFIXED) for User:ann from *", {}),
    ("DELETE", "/security/acls", [RULE], "acl_delete",
     "removed the rule ALLOW READ on SUBJECT a (PREFIXED) for User:ann from *", {}),
    ("PUT", "/mode/:.c:", {"mode": "IMPORT"}, "mode_update", "set the mode of :.c:: IMPORT", {"mode": "IMPORT"}),
    ("POST", "/subjects/:.c:i/versions", {"schema": '"long"', "id": 900, "version": 7}, "schema_register",
     "registered version 7 of :.c:i as schema 900", {"subject": ":.c:i", "version": 7, "schema_id": 900}),
    ("DELETE", "/subjects/:.c:i", None, "subject_delete", "deleted :.c:i up to version 7 (it can be restored)", {}),
    ("DELETE", "/subjects/:.c:i?permanent=true", None, "subject_delete", "deleted version 7 of :.c:i for good", {}),
    ("PUT", "/v1/highest-ids/.c", {"highestId": 7}, "highest_id_lower", "lowered the highest id of the context .c: 7",
     {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Run a node that logs JSON and every request, and takes every request for a slow one."""
    path = tmp_path_factory.mktemp("log") / "strata.db"
    options = "--log-format=json", "--access-log", "--slow-request=0.000001"
    with RegistryNode(f"sqlite:///{path}", *options) as running:
        yield running


def test_every_change_leaves_a_line(node):
    """Each change is logged once, with who, what, where in the log, request and trace."""
    for number, (method, path, body, event, words, fields) in enumerate(CHANGED):
        ids = {"X_Request_ID": f"r-{number}", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        status, answer = call(node, method, path, body, **ids)
        assert status < 300, (path, answer)
        [line] = [one for one in logged(node, *CHANGES) if one["request_id"] == f"r-{number}"]
        assert event == line["event"]
        assert line["message"].startswith(f"Anonymous {words}, at offset {line['offset']}"), line["message"]
        assert fields.items() <= line.items()
        assert ("127.0.0.1", "Anonymous", TRACE) == (line["address"], line["actor"], line["trace_id"])
        assert EVENTS[method, line["route"]] == event
    offsets = [line["offset"] for line in logged(node, *CHANGES)]

    assert offsets == sorted(set(offsets))
    assert "hunter2" not in node.output
    assert "aHVudGVyMg" not in node.output


def test_no_change_leaves_no_line(node):
    """A schema that is registered already, and a refused change, are not changes."""
    before = len(logged(node, *CHANGES))
    assert 422 == call(node, "PUT", "/config", {"compatibility": "SOME"})[0]
    assert 200 == call(node, "PUT", "/config", {"compatibility": "NONE"})[0]
    assert 200 == call(node, "POST", "/subjects/twice/versions", {"schema": '"int"'})[0]
    assert 200 == call(node, "POST", "/subjects/twice/versions", {"schema": '"int"'})[0]

    assert len(logged(node, *CHANGES)) <= before + 2


# method, path, route, status, whether the answer is empty
REQUESTS = [
    ("GET", "/schemas/ids/1/versions", "/schemas/ids/{schema_id}/versions", 200, False),
    ("HEAD", "/schemas/types", "/schemas/types", 200, True),
    ("GET", "/subjects/a%2Fb/versions?secret=1", "/subjects/{subject}/versions", 404, False),
    ("GET", "/none", None, 404, False),
]


def test_a_request_is_logged_with_its_facts(node):
    """The access log and the line of a slow request have method, path, route, status, duration, size and client."""
    assert 200 == call(node, "POST", "/subjects/first/versions", {"schema": '"int"'})[0]
    answers = [
        call(node, method, path, X_Request_ID=f"facts-{number}") for number, (method, path, *_) in enumerate(REQUESTS)
    ]
    for number, (method, path, route, status, empty) in enumerate(REQUESTS):
        for event in ("request", "request_slow"):
            [line] = until_logged(node, event, request_id=f"facts-{number}")  # a slow one may be counted for a second

            assert (status, len(answers[number][1])) == (line["status"], line["bytes"])
            assert (status, empty) == (answers[number][0], line["bytes"] == 0)
            assert (method, path.partition("?")[0], route) == (line["method"], line["path"], line["route"])
            assert 0 < line["seconds"] < 60
            assert ("127.0.0.1", "Anonymous") == (line["address"], line["actor"])


def test_a_request_that_cannot_be_read_is_logged(node):
    """Such as that of a client that speaks TLS to a plain port: the app never sees it."""
    with socket.create_connection(("127.0.0.1", node.port)) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00" * 20)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    [line] = until_logged(node, "request_refused")

    assert ("127.0.0.1", 400, "the request is not well-formed HTTP/1.1") == (
        line["address"], line["status"], line["reason"],
    )  # fmt: skip


def test_start_and_end(tmp_path):
    """The log says how the start went, when the signal came, and when the process ended."""
    begun = time.monotonic()
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--log-format=json", "--drain-seconds=600") as node:
        [ready] = until_logged(node, "ready")
        waited = time.monotonic() - begun
        node.send(signal.SIGTERM)
        [draining] = until_logged(node, "signal")
        assert 0 == node.terminate()  # a second signal ends draining
        lines = logged(node)

    assert ["log_opening", "log_created", "log_replayed", "ready", "signal", "signal", "stopped"] == [
        line["event"] for line in lines
    ]
    assert "SIGTERM" == draining["signal"]
    assert 0 < draining["seconds"] <= 600
    [replayed] = [line for line in lines if line["event"] == "log_replayed"]
    assert replayed["seconds"] <= ready["seconds"] < waited + 1  # the system counts in hundredths


def test_ready_counts_from_the_start_of_the_process():
    """The age of a process includes what came before its first import."""
    program = "import time; time.sleep(0.3); from strata.registry.node.process import process_age; print(process_age())"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert 0.29 <= float(ended.stdout) < 60


@pytest.mark.parametrize("workers", [1, 2])
def test_each_signal_is_logged_once(tmp_path, workers):
    """One process logs the signals of the node, whichever way it serves."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--log-format=json", f"--workers={workers}") as node:
        until_logged(node, "ready")
        node.send(signal.SIGINT)
        node.wait()

        assert [("SIGINT", 0)] == [(line["signal"], line["seconds"]) for line in logged(node, "signal")]
        assert 1 == len(logged(node, "stopped"))


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        (["--log-format=json", "--log=mysql://db/x"], {}, "is not the URL of a log"),
        (["--log-format=JSON", "--workers=0"], {}, "--workers (or STRATA_WORKERS) is '0'"),
        (["--log=sqlite:////none/none.db"], {"STRATA_LOG_FORMAT": "json"}, "none.db"),
        (["--log-format=json", "--tls-certfile=/none"], {}, "--tls-certfile (or STRATA_TLS_CERTFILE)"),
    ],
)
def test_a_start_that_fails_says_why_in_json(forked, options, variables, words):
    """Every line of a failed start is JSON if that was asked for, and the last has the reason."""
    ended = forked("serve", "--listen=127.0.0.1:0", *options, **variables)
    last = [json.loads(line) for line in ended.output.splitlines()][-1]

    assert 2 == ended.returncode
    assert ("serve_failed", "ERROR") == (last["event"], last["level"])
    assert words in last["reason"]
    assert "exception" not in last


@pytest.mark.parametrize("workers", [1, 2])
def test_an_audit_that_cannot_be_opened_ends_the_start(forked, tmp_path, workers):
    """The start says why; workers that find it out for themselves would be replaced for ever."""
    place = tmp_path / "audit"
    options = [f"--log=sqlite:///{tmp_path}/strata.db", f"--workers={workers}", f"--audit={place}"]
    with socket.socket(socket.AF_UNIX) as there:  # no process may write to it as a file, not even that of root
        there.bind(str(place))
        ended = forked("serve", "--listen=127.0.0.1:0", *options)

    wanted = f"strata: --audit (or STRATA_AUDIT) is '{place}', which cannot be opened: No such device or address\n"
    assert (2, wanted) == (ended.returncode, ended.output)


def test_a_record_that_is_set_aside_is_named(tmp_path):
    """A damaged record is logged with its offset at the start."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--log-format=json") as node:
        assert 200 == call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        node.terminate()
        with closing(sqlite3.connect(tmp_path / "strata.db")) as database:
            database.execute("UPDATE strata_log SET value = '{'")
            database.commit()
        node.restart()
        [line] = logged(node, "record_set_aside")

    assert 0 == line["offset"]


def test_events_of_access(tmp_path, monkeypatch):
    """Rejected logins, an exposed auth file, an audit that cannot be written and unknown variables are logged."""
    monkeypatch.setenv("STRATA_LISTENN", "0.0.0.0:1")
    users = tmp_path / "auth.yaml"
    add_user(users, "ada", cheap_hash("0pen-sesame"), role="admin")
    users.chmod(0o644)
    options = f"--auth-file={users}", "--audit=/dev/full", "--audit-on-failure=drop"
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--log-format=json", *options) as node:
        assert 401 == call(node, "GET", "/subjects", Authorization=_basic("ada", "hunter2"))[0]
        asked = {"Authorization": _basic("ada", "0pen-sesame"), "X_Request_ID": "mine"}
        assert 200 == call(node, "PUT", "/config", {"compatibility": "NONE"}, **asked)[0]
        [login], [exposed] = until_logged(node, "login_failed"), until_logged(node, "file_exposed")
        [change] = until_logged(node, "config_update")

        assert ("auth-file", str(users)) == (exposed["flag"], exposed["path"])
        assert ("127.0.0.1", True) == (login["address"], bool(login["request_id"]))
        assert ("User:ada", "mine") == (change["actor"], change["request_id"])
        assert "STRATA_LISTEN?" in logged(node, "variable_unknown")[0]["text"]
        until_logged(node, "audit_unwritable")
        assert not [secret for secret in ("hunter2", "0pen-sesame") if secret in node.output]


def _basic(user, password):
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.slow
def test_a_log_that_goes_and_comes_back(tmp_path):
    """The log says once that the log cannot be read, that the node cannot write, and when both are over."""
    file, elsewhere = tmp_path / "strata.db", tmp_path / "elsewhere.db"
    with RegistryNode(f"sqlite:///{file}", "--log-format=json") as node:
        file.rename(elsewhere)
        until_logged(node, "cannot_write")
        assert 503 == call(node, "PUT", "/config", {"compatibility": "NONE"})[0]
        elsewhere.rename(file)
        until_logged(node, "can_write_again")
        events = [line.get("event") for line in logged(node)]

    wanted = ["log_unreadable", "cannot_write", "write_failed", "log_readable", "can_write_again"]
    assert wanted == [event for event in events if event in wanted]


def test_a_worker_that_dies_is_named(tmp_path):
    """The parent logs which worker ended and how."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--log-format=json", "--workers=2") as node:
        until_logged(node, "ready")
        os.kill(node.workers[1], signal.SIGKILL)
        [line] = until_logged(node, "worker_ended")

    assert (1, "was killed by SIGKILL") == (line["worker"], line["how"])


def test_a_signal_during_the_start_is_logged(program, tmp_path):
    """A node that is stopped before it serves says so and ends with 0."""
    database = tmp_path / "strata.db"
    with closing(sqlite3.connect(database)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("BEGIN EXCLUSIVE")  # the start waits for the other process
        command = [program, "serve", "--listen=127.0.0.1:0", f"--log=sqlite:///{database}", "--log-format=json"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as node:
            lines = [json.loads(node.stderr.readline())]
            node.terminate()
            lines += [json.loads(line) for line in node.stderr]

    assert ["log_opening", "signal", "stopped"] == [line["event"] for line in lines]
    assert ("SIGTERM", 0) == (lines[1]["signal"], node.returncode)


@pytest.mark.postgres
def test_a_database_that_went_away_is_a_few_lines(postgres_server):
    """Reads and writes without a database leave single lines, and clients never see its address."""
    with ExitStack() as stack:
        node = stack.enter_context(RegistryNode(postgres_server.new_database(), "--log-format=json"))
        assert 200 == call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        postgres_server.kill()
        stack.callback(postgres_server.restart)
        before = len(logged(node))
        answers = [call(node, "GET", "/subjects") for _ in range(30)]
        answers += [call(node, "PUT", "/config", {"compatibility": "NONE"}) for _ in range(5)]
        lines = logged(node)[before:]

        assert {503} == {status for status, _ in answers}
        assert all(b"127.0.0.1" not in body and b"postgres" not in body for _, body in answers)
        assert 1 == len(logged(node, "log_unreadable"))
        assert "127.0.0.1" in logged(node, "log_unreadable")[0]["reason"]
        assert len(lines) < 15, lines
        assert not [line for line in lines if "exception" in line]


@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_that_went_away_is_a_few_lines():
    """The Kafka client's complaints are folded, with their number."""
    options = "--log-format=json", "--write-timeout=2"
    with KafkaBroker() as broker, RegistryNode(f"kafka://{broker.bootstrap}/_schemas", *options) as node:
        assert 200 == call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        assert 1 == len(logged(node, "pen_taken"))
        before = len(logged(node))
        broker.kill()
        answers = [call(node, "PUT", "/config", {"compatibility": "NONE"})]
        folded = []
        deadline = time.monotonic() + 180  # the line comes after 10 s, or later on a busy machine
        while not folded:
            assert time.monotonic() < deadline, node.output
            answers.append(call(node, "GET", "/subjects"))
            repeated = [line for line in logged(node)[before:] if line.get("repeated", 0) > 1]
            folded = [line for line in repeated if "Connection refused" in line["message"]]
        lines = logged(node)[before:]

    assert not [body for _, body in answers if b"127.0.0.1" in body]
    assert len(lines) < 20, lines


@pytest.mark.parametrize("log", ["kafka://broker-7.internal:9092/_schemas", "postgresql+psycopg://u:p@db.internal/r"])
def test_the_name_of_the_cluster_says_not_where_it_is(log):
    """`/v1/metadata/id`, which any client may read, distinguishes logs without naming a server or a user."""
    name, other = _log_name(log), _log_name(log.replace("internal", "elsewhere"))

    assert name != other
    assert not [word for word in ("internal", "9092", "u:", "p@") if word in name]
