"""Events of the start, the workers, the connections and a SQL log, caused on real nodes."""

import json
import os
import resource
import signal
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from harness.log_lines import JSON_LINES, call, logged, until_logged
from harness.passwords import cheap_hash
from harness.processes import start_tied
from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.features.access.auth_file_edits import add_user


@pytest.mark.parametrize(("has_users", "event"), [(False, "access_open"), (True, "tls_missing")])
def test_a_node_that_the_network_can_reach(forked, tmp_path, has_users, event):
    """Beyond loopback, missing access control or missing encryption is named."""
    command = ["serve", "--listen=0.0.0.0:0", "--log=memory:", "--drain-seconds=0", JSON_LINES]
    if has_users:
        (tmp_path / "auth.yaml").touch(mode=0o600)
        command.append(f"--auth-file={tmp_path}/auth.yaml")
    with forked.start(*command) as running:
        until(lambda: '"ready"' in running.output)
        running.process.terminate()
        lines = [json.loads(line) for line in running.wait().output.splitlines()]
    [line] = [line for line in lines if line["level"] == "WARNING"]

    assert (event, "0.0.0.0:0") == (line["event"], line["listen"])


def test_traces_by_another_protocol(monkeypatch):
    """A protocol for traces that is not supported is named."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with RegistryNode("memory:", JSON_LINES) as node:
        until_logged(node, "trace_protocol_unsupported", level="WARNING", protocol="grpc")


def test_files_and_connections_that_run_out():
    """Too few files are named at the start, and connections that the system refuses when that happens."""

    def start(command, *, log):
        return start_tied(["sh", "-c", 'ulimit -n 300; exec "$@"', "sh", *command], log=log)

    options = JSON_LINES, "--max-connections=1000", "--metrics-listen=127.0.0.1:0"
    with RegistryNode("memory:", *options, start=start) as node, ExitStack() as stack:
        [line] = until_logged(node, "too_few_files", level="WARNING", files=300, wanted=1000)
        assert 0 < line["room"] < 300
        [line] = until_logged(node, "metrics_at", level="INFO", host="127.0.0.1")
        assert 0 < line["port"] != node.port
        most = len(list(Path(f"/proc/{node.pid}/fd").iterdir()))
        resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (most, most))
        for _ in range(20):  # some of the files may have been those of connections that have ended
            stack.enter_context(closing(node.connect())).connect()
        until_logged(node, "accept_failed", level="WARNING")


def test_a_worker_that_fails(tmp_path):
    """A worker that cannot start again says why; the parent says that it ended."""
    users = tmp_path / "auth.yaml"
    add_user(users, "ada", cheap_hash("0pen-sesame"), role="admin")
    options = JSON_LINES, "--workers=2", f"--auth-file={users}"
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", *options) as node:
        until_logged(node, "ready")
        users.write_text("users: [")
        os.kill(max(node.workers), signal.SIGKILL)
        [line, *_] = until_logged(node, "worker_failed", level="ERROR")
        assert "auth.yaml" in line["exception"]
        until_logged(node, "worker_ended", worker=line["worker"])


def test_a_log_that_was_compacted(forked, tmp_path):
    """A node that slept while another wrote and compacted the log reads it again, and says so."""
    log = f"sqlite:///{tmp_path}/strata.db"
    with RegistryNode(log, JSON_LINES) as node, RegistryNode(log) as other:
        assert 200 == call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        node.send(signal.SIGSTOP)
        for level in ("NONE", "FULL", "BACKWARD"):
            assert 200 == call(other, "PUT", "/config", {"compatibility": level})[0]
        assert 0 == forked("compact", log).returncode
        node.send(signal.SIGCONT)
        assert 200 == call(node, "GET", "/subjects")[0]
        until_logged(node, "log_read_again", level="WARNING")


def test_a_rule_of_a_later_release(tmp_path):
    """A rule in the log that this release does not know is named."""
    users, database = tmp_path / "auth.yaml", tmp_path / "strata.db"
    users.write_text(json.dumps({"users": [{"name": "root", "password": str(cheap_hash("root"))}]}))
    rule = {"principal": "User:ann", "resource": "a", "resource_type": "SUBJECT", "pattern_type": "PREFIXED",
            "host": "*", "operation": "READ", "permission": "ALLOW"}  # fmt: skip
    with RegistryNode(f"sqlite:///{database}", JSON_LINES) as node:
        assert call(node, "POST", "/security/acls", [rule])[0] < 300
    with closing(sqlite3.connect(database)) as log:
        log.execute("UPDATE strata_log SET key = CAST(replace(CAST(key AS TEXT), 'READ', 'FLY') AS BLOB)")
        log.commit()
    with RegistryNode(f"sqlite:///{database}", JSON_LINES, f"--auth-file={users}") as node:
        assert 401 == call(node, "GET", "/subjects")[0]
        [line, *_] = until_logged(node, "rule_unreadable", level="ERROR")

    assert "FLY" in line["reason"]


def test_an_exporter_that_fails_and_recovers():
    """An exporter says why it cannot copy, and that it has copied everything."""
    with RegistryNode("memory:") as target, RegistryNode("memory:", JSON_LINES, "--exporter-seconds=0.05") as node:
        assert call(target, "POST", "/subjects/a/versions", {"schema": '"long"'})[0] < 300
        assert call(node, "POST", "/subjects/a/versions", {"schema": '"int"'})[0] < 300
        config = {"schema.registry.url": target.url}
        assert call(node, "POST", "/exporters", {"name": "e", "contextType": "NONE", "config": config})[0] < 300
        until_logged(node, "exporter_failed", level="ERROR", exporter="e", destination=target.url)
        for query in ("", "?permanent=true"):
            assert call(target, "DELETE", f"/subjects/a{query}")[0] < 300
        until_logged(node, "exporter_running", level="INFO", exporter="e", destination=target.url)


def test_a_standby_that_loses_its_source_and_is_promoted(forked, tmp_path):
    """A standby says whom it follows, that its source fails and is back, and that it has become a writer."""
    source, copy = tmp_path / "source.db", tmp_path / "copy.db"
    with RegistryNode(f"sqlite:///{source}"):
        options = JSON_LINES, f"--follow=sqlite:///{source}", "--follow-seconds=0.05"
        with RegistryNode(f"sqlite:///{copy}", *options) as standby:
            until_logged(standby, "following", level="INFO")
            source.rename(tmp_path / "away.db")
            until_logged(standby, "follow_failed", level="ERROR")
            (tmp_path / "away.db").rename(source)
            until(lambda: len(logged(standby, "following")) > 1)
            assert 0 == forked("promote", f"sqlite:///{copy}").returncode
            until_logged(standby, "promoted", level="WARNING")
