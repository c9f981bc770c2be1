"""The audit notes each change with its offset and each refusal with its reason, and never a secret."""

import base64
import json
import socket
from collections import Counter

import pytest

from harness.access_rules import rule
from strata.registry.app import ROUTERS
from strata.registry.core.rights.rules import rule_json
from strata.registry.features.audit.lines import open_sink
from strata.registry.node.logs.changes import EVENTS
from strata.registry.node.settings import SettingRefused
from strata.registry.settings import load_settings
from strata.storage.log import START

ALICE = [rule("alice", "ALL", "a*"), rule("alice", "DELETE", "a1", permission="DENY")]
KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn", "kmsProps": {"token.id": "hunter2", "region": "x"}}


@pytest.fixture
def audited(guarded, tmp_path):
    """Start a registry that notes in a file; return it and a function that returns the events."""

    def start(**settings):
        path = tmp_path / "audit.jsonl"
        registry = guarded(ALICE, audit=str(path), **settings)
        return registry, lambda: [json.loads(line) for line in path.read_text().splitlines()]

    return start


def test_every_write_has_a_name():
    """Each route that writes has an event, and no other has."""
    writes = {(r.method, r.path) for router in ROUTERS for r in router.declared if r.facts.writes}

    assert set(EVENTS) == writes


def test_a_change_is_noted_with_its_offset(audited):
    """A line says who did what from where, and where in the log it is."""
    registry, events = audited()
    registry.ask("POST", "/subjects/a/versions", {"schema": '"int"'}, "alice,dev", "10.1.2.3", user_agent="test/1",
                 x_request_id="r-1")  # fmt: skip
    [event] = events()
    assert event.pop("ts").startswith("20")
    records = event.pop("records")

    assert event == {
        "event": "schema_register", "outcome": "success",
        "actor": {"id": "User:alice", "groups": ["dev"], "mechanism": "basic"}, "source_ip": "10.1.2.3",
        "request_id": "r-1", "method": "POST", "path": "/subjects/a/versions",
        "route": "/subjects/{subject}/versions", "user_agent": "test/1",
        "subject": "a", "version": 1, "schema_id": 1, "offset": registry.log.end(),
        "allowed_by": ["User:alice may ALL subject a* (file)"],
    }  # fmt: skip
    assert [one["key"] for one in records] == [json.loads(entry.key) for entry in registry.log.read(START)]


def test_each_change_is_noted_once(audited):
    """What changes nothing is not a change; what writes several records is one."""
    registry, events = audited()
    for _ in range(2):
        registry.register("a")
    registry.register("a", '"long"')
    registry.ask("POST", "/subjects/a/versions", {"schema": '"string"'})  # incompatible
    registry.ask("PUT", "/config/a", {"compatibility": "NONE"})
    registry.ask("DELETE", "/subjects/a")
    registry.ask("DELETE", "/subjects/a?permanent=true")
    registry.ask("DELETE", "/subjects/none")
    registry.ask("POST", "/security/acls", [])
    registry.ask("GET", "/subjects")

    names = ["schema_register", "schema_register", "config_update", "subject_delete", "subject_delete"]
    assert [event["event"] for event in events()] == names
    assert [event["offset"] for event in events()][-1] == registry.log.end()
    assert all(event["records"][0]["key"]["keytype"] for event in events())


def test_a_large_batch_says_how_much_is_left_out(audited):
    """The line has the first 100 records, and the number of the others."""
    registry, lines = audited()
    steps = [
        {"action": "settings", "subject": f"s{number}", "config": {"compatibility": "NONE"}} for number in range(103)
    ]
    assert 200 == registry.code("POST", "/v1/apply", {"steps": steps})

    assert [(100, 3)] == [(len(line["records"]), line["more_records"]) for line in lines()]


def test_a_refusal_says_why(audited):
    """A line names operation, resource and the rule that denied, if one did."""
    registry, events = audited()
    registry.ask("DELETE", "/subjects/a1", None, "alice")
    registry.ask("GET", "/subjects/b/versions", None, "alice")
    registry.ask("POST", "/subjects/a2/versions", {
        "schema": '"int"', "references": [{"name": "r", "subject": "b", "version": 1}]}, "alice")  # fmt: skip
    registry.ask("GET", "/subjects", None, None)
    registry.ask("GET", "/subjects", None, "wrong")
    seen = [(e["event"], e["status"], e.get("operation"), e.get("resource"), e.get("denied_by")) for e in events()]

    assert seen == [
        (
            "auth_forbidden",
            403,
            "DELETE",
            {"type": "SUBJECT", "name": "a1"},
            "User:alice may not DELETE subject a1 (file)",
        ),
        ("auth_forbidden", 403, "DESCRIBE", {"type": "SUBJECT", "name": "b"}, None),
        ("auth_forbidden", 403, "READ", {"type": "SUBJECT", "name": "b"}, None),
        ("auth_failure", 401, None, None, None),
        ("auth_failure", 401, None, None, None),
    ]
    assert {event["outcome"] for event in events()} == {"refused"}


def test_a_change_names_the_rule_that_allowed_it(audited):
    """A rule of the log differs from one of the file, and a superuser from both; a denial is named in the same way."""
    registry, events = audited()
    granted = [{**rule_json(rule("eve", "WRITE", "b")), "host": "*"},
               {**rule_json(rule("eve", "WRITE", "b2", permission="DENY")), "host": "*"}]  # fmt: skip
    registry.ask("POST", "/security/acls", granted)
    registry.ask("POST", "/subjects/b/versions", {"schema": '"int"'}, "eve")
    registry.ask("POST", "/subjects/b2/versions", {"schema": '"int"'}, "eve")
    registry.ask("PUT", "/config/a2", {"compatibility": "NONE"}, "alice")

    seen = [event.get("allowed_by", event.get("denied_by")) for event in events()]
    assert seen == [
        ["superuser"],
        ["User:eve may WRITE subject b (log)"],
        "User:eve may not WRITE subject b2 (log)",
        ["User:alice may ALL subject a* (file)"],
    ]


def test_a_change_of_a_level_or_mode_notes_both(audited):
    """A line says what was in force at this scope before, and what is now; null means that nothing was set."""
    registry, events = audited()
    for level in ("NONE", "FULL"):
        registry.ask("PUT", "/config/a", {"compatibility": level})
    registry.ask("DELETE", "/config/a")
    registry.ask("PUT", "/mode", {"mode": "READONLY"})

    changes = [(one["before"], one["after"]) for event in events() for one in event["records"] if "before" in one]
    assert changes == [(None, "NONE"), ("NONE", "FULL"), ("FULL", None), (None, "READONLY")]


def basic(credentials):
    """Return the header of a name and password."""
    return "Basic " + base64.b64encode(credentials.encode("latin-1")).decode()


@pytest.mark.parametrize(
    ("authorization", "tried"),
    [
        (basic("olga:hunter2"), {"mechanism": "basic", "user": "olga"}),
        (basic("hunter2"), {"mechanism": "basic", "user": None}),
        (basic("o\nlga:hunter2"), {"mechanism": "basic", "user": None}),
        (basic("o" * 600 + ":hunter2"), {"mechanism": "basic", "user": None}),
        ("Basic hunter2", {"mechanism": "basic", "user": None}),
        ("Bearer hunter2", {"mechanism": "bearer", "user": None}),
        ("hunter2", {"mechanism": "other", "user": None}),
        (None, {"mechanism": "proxy", "user": None}),
    ],
)
def test_a_failed_login_names_the_user_that_was_tried(audited, authorization, tried):
    """Only Basic has a name, which is printable and not long; the rest of the credentials is never noted."""
    registry, events = audited()
    registry.ask("GET", "/subjects", None, "wrong", **({"authorization": authorization} if authorization else {}))
    [event] = events()

    assert (event["event"], event["actor"]["id"], event["tried"]) == ("auth_failure", "Anonymous", tried)
    assert "hunter2" not in str(event)


def test_without_access_control_no_rule_allows_a_change(audited):
    """The audit works without access control, and then names no rule."""
    registry, events = audited()
    registry.app._admission = None
    registry.ask("PUT", "/config/a", {"compatibility": "NONE"}, None)

    assert [event["allowed_by"] for event in events()] == [[]]


def test_reads_are_noted_on_request(audited):
    """Then each read is, also one that memory could answer."""
    registry, events = audited(audit_reads=True)
    registry.register("a")
    for _ in range(3):
        registry.ask("GET", "/schemas/ids/1")
    registry.ask("GET", "/subjects/none/versions")

    assert Counter(event["event"] for event in events()) == {"schema_register": 1, "read": 4}


def test_no_secret_is_noted(audited):
    """Neither credentials nor bodies nor query strings are in any line."""
    registry, events = audited(audit_reads=True)
    registry.ask("GET", "/subjects?token=hunter2", None, "alice", authorization="Basic hunter2", cookie="hunter2")
    registry.ask("GET", "/subjects", None, "wrong", authorization="Bearer hunter2")
    registry.ask("POST", "/dek-registry/v1/keks", KEK)
    registry.ask("POST", "/dek-registry/v1/keks/k/deks/a", {"encryptedKeyMaterial": "aHVudGVyMg=="})
    registry.ask("PUT", "/config/a", {"compatibility": "NONE", "defaultMetadata": {"properties": {"p": "hunter2"}}})

    assert [event["event"] for event in events()] == [
        "read",
        "auth_failure",
        "kek_update",
        "dek_update",
        "config_update",
    ]
    assert "hunter2" not in json.dumps(events())
    assert "aHVudGVyMg" not in json.dumps(events())


class Broken:
    """A sink that can be broken."""

    def __init__(self):
        self.lines, self.broken = [], False

    def write(self, line):
        """Keep a line, or fail."""
        if self.broken:
            raise OSError(28, "No space left on device")
        self.lines.append(json.loads(line))


@pytest.mark.parametrize("refuses", [True, False])
def test_while_the_audit_cannot_be_written_changes_are_refused_or_dropped(audited, refuses):
    """One change may be under way when it breaks; its line comes when the audit can be written again."""
    registry, _ = audited(audit_on_failure="refuse" if refuses else "drop")
    sink = Broken()
    registry.app._audit._sink = sink
    sink.broken = True
    first = registry.code("PUT", "/config/a", {"compatibility": "NONE"})
    second = registry.code("PUT", "/config/b", {"compatibility": "NONE"})

    assert (first, second) == (200, 50304 if refuses else 200)
    assert registry.code("GET", "/config/a") == 200
    assert len(list(registry.log.read(START))) == (1 if refuses else 2)
    sink.broken = False
    assert registry.code("PUT", "/config/c", {"compatibility": "NONE"}) == 200
    assert [line["path"] for line in sink.lines] == (["/config/a", "/config/c"] if refuses else ["/config/c"])


def test_a_rotated_file_is_opened_again(tmp_path):
    """Lines go to the new file once the old one was moved, and only the owner may read it."""
    path = tmp_path / "audit"
    sink = open_sink(str(path))
    sink.write(b"1\n")
    path.rename(tmp_path / "audit.1")
    sink.write(b"2\n")

    sink.close()

    assert (path.read_text(), (tmp_path / "audit.1").read_text()) == ("2\n", "1\n")
    assert path.stat().st_mode & 0o077 == 0


def test_syslog_gets_messages_of_its_form(tmp_path):
    """A datagram has the header of RFC 5424, also over UDP."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as local, socket.socket(type=socket.SOCK_DGRAM) as remote:
        local.bind(str(tmp_path / "log"))
        remote.bind(("127.0.0.1", 0))
        for place, receiver in ((tmp_path / "log", local), (f"127.0.0.1:{remote.getsockname()[1]}", remote)):
            sink = open_sink(f"syslog:{place}")
            sink.write(b'{"event":"x"}\n')
            sink.close()
            receiver.settimeout(60)
            head, _, content = receiver.recv(4096).decode().partition(" audit - ")

            assert head.startswith("<109>1 20")
            assert json.loads(content) == {"event": "x"}


def test_a_line_that_is_too_long_for_syslog_is_shortened():
    """It is noted nonetheless, and stops neither the audit nor the changes."""
    records = [{"key": {"keytype": "CONFIG", "subject": "x" * 5000}, "sha256": "0" * 64}] * 100
    line = {"event": "batch_apply", "offset": 117, "records": records}
    with socket.socket(type=socket.SOCK_DGRAM) as remote:
        remote.bind(("127.0.0.1", 0))
        remote.settimeout(60)
        sink = open_sink(f"syslog:127.0.0.1:{remote.getsockname()[1]}")
        sink.write(json.dumps(line).encode() + b"\n")
        sink.close()
        found = json.loads(remote.recv(65_536).decode().partition(" audit - ")[2])

    assert ("batch_apply", 117, True) == (found["event"], found["offset"], found["truncated"])
    assert [{"key": {"keytype": "CONFIG", "subject": "x" * 200}, "sha256": "0" * 64}] * 5 == found["records"]


@pytest.mark.parametrize("place", ["syslog:", "syslog:log", "syslog:host:0", "syslog:host:65536", "syslog::514", "/"])
def test_a_place_that_cannot_be_written_is_rejected(place):
    """A misspelled receiver would be noticed when the first change is lost."""
    with pytest.raises(SettingRefused, match="expected a file in a folder that exists, stdout, syslog:/dev/log or"):
        load_settings(audit=place)


@pytest.mark.parametrize("place", ["syslog:/dev/log", "syslog:host:514", "syslog:[::1]:514", "stdout"])
def test_a_place_that_can_be_written(place):
    """Receivers are local sockets and hosts with a port."""
    assert place == load_settings(audit=place).audit
