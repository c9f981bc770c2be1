"""Rights of `POST /v1/apply`: each part needs its own, and a part without them rejects the whole."""

import pytest

from harness.access_rules import rule

INT = {"schema": '"int"'}
OWNER = [rule("alice", one, "open-*") for one in ("READ", "WRITE", "DELETE", "ALTER_CONFIGS", "DESCRIBE")]


def register(subject, schema=INT):
    """Return a step that registers a schema."""
    return {"action": "register", "subject": subject, "schema": schema}


PARTS = [
    ("a schema elsewhere", register("secret"), "Write on Subject: secret"),
    ("settings elsewhere", {"action": "settings", "subject": "secret", "mode": "READONLY"},
     "WriteCompatibility on Subject: secret"),
    ("settings of all", {"action": "settings", "config": {"compatibility": "NONE"}}, "WriteCompatibility on Registry"),
    ("a deletion elsewhere", {"action": "delete", "subject": "secret"}, "Delete on Subject: secret"),
    ("a reference to elsewhere",
     register("open-2", {"schema": "[]", "references": [{"name": "S", "subject": "secret", "version": 1}]}),
     "Read on Subject: secret"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "denied"), [row[1:] for row in PARTS], ids=[row[0] for row in PARTS])
def test_a_part_without_rights_rejects_the_whole(guarded, step, denied):
    """Nothing of a batch is written if a right for one of its parts is missing; a dry run does not read it."""
    registry = guarded(OWNER)
    registry.register("secret", '"long"')
    batch = {"steps": [register("open-1"), step]}

    status, answer, _ = registry.ask("POST", "/v1/apply", batch, "alice")
    planned = registry.ask("POST", "/v1/apply", {**batch, "dryRun": True}, "alice")[1]["results"]

    assert (403, f"Step 2: User is denied operation {denied}") == (status, answer["message"])
    assert [True, False] == [one["changed"] for one in planned]
    assert "User is denied operation Read" in planned[1]["error"]["message"]
    assert ["secret"] == registry.ask("GET", "/subjects")[1]


def test_those_with_rights_may(guarded):
    """A batch within the rights is written, and READ suffices for a schema that the subject holds."""
    registry = guarded([*OWNER, rule("bob", "READ", "open-1")])
    steps = [register("open-1"), {"action": "settings", "subject": "open-1", "config": {"compatibility": "FULL"}}]

    assert 200 == registry.code("POST", "/v1/apply", {"steps": steps}, "alice")
    assert 200 == registry.code("POST", "/v1/apply", {"steps": steps[:1]}, "bob")
    other = register("open-1", {"schema": '{"type": "int", "logicalType": "date"}'})
    assert 40301 == registry.code("POST", "/v1/apply", {"steps": [other]}, "bob")
    assert 200 == registry.code("POST", "/v1/apply", {"steps": [{"action": "delete", "subject": "open-1"}]}, "alice")


def test_a_dry_run_needs_to_read_only(guarded):
    """Those who may read may plan: a dry run shows what would happen, and the same batch for real is rejected."""
    readers = [rule("bob", one, kind) for one, kind in (("READ", "*"), ("DESCRIBE_CONFIGS", "*"))]
    registry = guarded(readers)
    registry.register("old")
    steps = [register("new"), {"action": "settings", "subject": "old", "mode": "READONLY"},
             {"action": "delete", "subject": "old"}]  # fmt: skip

    planned = registry.ask("POST", "/v1/apply", {"steps": steps[::2], "dryRun": True}, "bob")[1]["results"]

    assert [(True, None), (True, None)] == [(one["changed"], one.get("error")) for one in planned]
    assert [40301] * 3 == [registry.code("POST", "/v1/apply", {"steps": [step]}, "bob") for step in steps]


def test_rights_need_those_for_rules(guarded):
    """Rights are set by those who may alter the cluster, and planned by those who may describe it."""
    step = {"action": "rights", "resource_type": "SUBJECT", "resource": "open-1",
            "rules": [{"principal": "User:eve", "operation": "READ"}]}  # fmt: skip
    registry = guarded([*OWNER, rule("bob", "DESCRIBE", kind="CLUSTER"), rule("carol", "ALTER", kind="CLUSTER")])
    batch = {"steps": [register("open-1"), step]}

    status, answer, _ = registry.ask("POST", "/v1/apply", batch, "alice")
    planned = registry.ask("POST", "/v1/apply", {"steps": [step], "dryRun": True}, "bob")[1]["results"]

    assert (403, "Step 2: User is denied operation Alter on Cluster") == (status, answer["message"])
    assert 40301 == registry.code("POST", "/v1/apply", {"steps": [step]}, "bob")
    assert [True] == [one["changed"] for one in planned]
    assert 200 == registry.code("POST", "/v1/apply", {"steps": [step]}, "carol")
