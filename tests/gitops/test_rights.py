"""Rights in the manifest: planned, applied with the rest in one write, dumped, and pruned only where they are owned."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from strata.gitops import manifest
from strata.gitops.manifest import read_manifest
from strata.gitops.rights import Resource, Right
from strata.gitops.trees import Folder

SCHEMA = Path(manifest.__file__).parent / "strata.schema.json"
MANIFEST = """
owner: shop
rights:
  - {principal: "Group:ops", allow: [DESCRIBE, ALTER_CONFIGS]}
  - {principal: "Group:ops", allow: [ALTER], resource_type: cluster}
  - {principal: "User:*", allow: [READ], resource_type: KEK, resource: "*"}
contexts:
  staging:
    rights: [{principal: "User:*", allow: [all]}]
subjects:
  - name: orders
    file: orders.avsc
    rights:
      - {principal: "User:etl", allow: [READ, WRITE], host: 10.0.0.0/8}
      - {principal: Anonymous, deny: [READ]}
  - name: plain
    file: plain.avsc
"""
PLANNED = """\
~ change the rights on the registry: rights differ
    + Group:ops may ALTER_CONFIGS
    + Group:ops may DESCRIBE
~ change the rights on the cluster: rights differ
    + Group:ops may ALTER
~ change the rights on kek *: rights differ
    + User:* may READ
~ change the rights on subject :.staging:*: rights differ
    + User:* may ALL
~ change the rights on subject orders: rights differ
    + Anonymous may not READ
    + User:etl may READ from 10.0.0.0/8
    + User:etl may WRITE from 10.0.0.0/8
7 to change, 0 unchanged
"""


def rule(principal, operation, kind="SUBJECT", name="", pattern="LITERAL"):
    """Return a rule with all its fields."""
    return {"principal": principal, "resource": name, "resource_type": kind, "pattern_type": pattern, "host": "*",
            "operation": operation, "permission": "ALLOW"}  # fmt: skip


def write(files, record, manifest=MANIFEST):
    """Write a manifest and its schemas."""
    files.put("strata.yaml", manifest)
    files.put("orders.avsc", record("x", name="Orders"))
    files.put("plain.avsc", record("x", name="Plain"))


def held(service):
    """Return principal, operation and resource of the rules in a registry."""
    return {(one["principal"], one["operation"], one["resource"]) for one in service.get("/security/acls")}


def test_rights_are_planned_and_applied(files, record, service):
    """The plan lists each right that comes; the apply sets them with the schemas, and then nothing is left."""
    write(files, record)
    run = ("--url", service.url)

    planned = files.run("plan", *run, code=1)

    assert planned.endswith(PLANNED), planned
    before = service.get("/v1/log")["offset"]
    applied = files.run("apply", *run, code=0)
    assert "changed the rights on subject orders\n" in applied
    assert before + 2 + 8 == service.get("/v1/log")["offset"]
    assert "0 to change, 7 unchanged" in files.run("plan", *run, code=0)


def test_a_dump_has_all_rights(files, record, service):
    """Rules on subjects, contexts, prefixes, keys, the registry and the cluster are dumped; the plan has no change."""
    write(files, record)
    files.run("apply", "--url", service.url, code=0)
    others = [rule("User:a", "READ", name="ord", pattern="PREFIXED"), rule("User:a", "READ", name="gone"),
              rule("User:${x}", "ALL", name="orders")]  # fmt: skip
    service.ask("POST", "/security/acls", others)
    service.register(":.staging:s", record("x"), metadata={"properties": {"strata.owner": "shop"}})
    service.ask("PUT", "/config/:.staging:", {"compatibility": "NONE"})
    every = held(service)

    files.run("dump", "out", "--owner=shop", "--url", service.url, code=0)
    planned = files.run("plan", "out/strata.yaml", "--prune", "--url", service.url, code=0)

    assert "0 to change" in planned
    jsonschema_rs.validate(json.loads(SCHEMA.read_text()), yaml.safe_load((files.root / "out/strata.yaml").read_text()))
    text = (files.root / "out/strata.yaml").read_text()
    assert "    rights:\n    - principal: User:*\n      allow:\n      - ALL\n" in text
    service.ask("DELETE", "/security/acls", [{}])
    files.run("apply", "-f", "out/strata.yaml", "--url", service.url, code=0)
    assert every == held(service)


def test_only_own_rights_are_pruned(files, record, service):
    """Without --prune rights are added only; with it others go, on what the manifest has rights for or deletes."""
    write(files, record)
    run = ("--url", service.url)
    files.run("apply", *run, code=0)
    foreign = [rule("User:eve", "READ", name="orders"), rule("User:eve", "READ", name="plain"),
               rule("User:eve", "READ", name="ord", pattern="PREFIXED")]  # fmt: skip
    service.ask("POST", "/security/acls", foreign)

    assert "0 to change" in files.run("plan", *run, code=0)
    assert "    - User:eve may READ\n1 to change" in files.run("plan", "--prune", *run, code=1)
    write(files, record, MANIFEST[: MANIFEST.index("  - name: plain")])
    assert "changed the rights on subject plain\n" in files.run("apply", "--prune", *run, code=0)
    assert {("User:eve", "READ", "ord")} == {one for one in held(service) if one[0] == "User:eve"}
    write(files, record, "owner: shop\nsubjects: []\n")
    before = held(service)
    assert "deleted orders" in files.run("apply", "--prune", *run, code=0)
    assert before == held(service)


def test_rights_stay_on_a_subject_that_stays(files, record, service):
    """A subject that another one refers to is kept, with the rights on it."""
    write(files, record)
    run = ("--url", service.url)
    files.run("apply", *run, code=0)
    user = '{"type":"record","name":"U","fields":[{"name":"o","type":"Orders"}]}'
    service.register("user", user, references=[{"name": "Orders", "subject": "orders", "version": 1}])
    write(files, record, "owner: shop\nrights: []\nsubjects: []\n")

    output = files.run("apply", "--prune", *run, code=0)

    assert "deleted plain" in output
    assert ("User:etl", "WRITE", "orders") in held(service)
    assert not [one for one in service.get("/security/acls") if one["resource_type"] == "REGISTRY"]


def test_other_registries_hold_no_rights(files, record, serve_steps):
    """A registry without batches is said to hold no rights, and nothing is written; pruning there works as before."""
    write(files, record)
    with serve_steps() as other:
        run = ("--url", other.url)
        assert "! this registry cannot hold rights; only a Strata service takes them" in files.run("plan", *run, code=2)
        files.run("apply", *run, code=2)
        assert [] == other.get("/subjects")
        write(files, record, "owner: shop\nrights: []\nsubjects: [{name: plain, file: plain.avsc}]\n")
        files.run("apply", "--prune", *run, code=0)
        files.run("dump", "out", *run, code=0)
        assert "rights" not in (files.root / "out/strata.yaml").read_text()


WRONG = [
    ("rights: [{allow: [READ]}]", "rights[0]: rights need a principal"),
    ("rights: [{principal: Anonymous}]", "rights[0]: rights need a principal, and operations to allow or to deny"),
    ("rights: [{principal: Anonymous, allow: READ}]", "allow: expected a list"),
    ("rights: [{principal: Anonymous, allow: [{}]}]", "allow[0]: expected an operation such as READ"),
    ("rights: [{principal: Anonymous, allow: [READ], resource: x}]", "`resource` needs a `resource_type`"),
    ("contexts: {a: {rights: [{principal: Anonymous, resource: x, allow: [READ]}]}}", "unknown key 'resource'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_rights(files, text, message):
    """What cannot be read as rights is an error with its place; the registry checks the words."""
    files.put("strata.yaml", text)
    assert message in files.run("plan", "--url", "http://127.0.0.1:9", code=2)


def test_the_registry_checks_the_words(files, service):
    """An operation that the registry does not know is its error, before anything is written."""
    files.put("strata.yaml", "rights: [{principal: Anonymous, allow: [PAINT]}]")
    assert "operation is 'PAINT'; expected one of READ" in files.run("apply", "--url", service.url, code=2)


def test_sections_about_the_same_add_up(files, record):
    """Rights on one subject in its entry and at the top are one list, so that a prune deletes neither."""
    write(files, record)
    about = 'rights: [{principal: "User:b", allow: [READ], resource_type: SUBJECT, resource: ":.:orders"}]'
    files.put("more.yaml", about + "\ncontexts: {staging: {rights: []}}")
    found = read_manifest(Folder(files.root), ["strata.yaml", "more.yaml"], {})
    assert {
        Resource("REGISTRY"): (),
        Resource("SUBJECT", "orders"): (Right("User:b", "READ"),),
        Resource("SUBJECT", ":.staging:", "PREFIXED"): (),
    } == found.rights


def test_an_export_file_has_rights(files, record, service, exported, tmp_path):
    """A dump of an export file of the log has the rights, as one of the service has."""
    write(files, record)
    files.run("apply", "--url", service.url, code=0)
    files.put("log.jsonl", exported(service))
    files.run("dump", "a", "--export", "log.jsonl", code=0)
    files.run("dump", "b", "--url", service.url, code=0)
    of_file, of_service = (yaml.safe_load((tmp_path / one / "strata.yaml").read_text()) for one in "ab")
    assert {"compatibility": "BACKWARD", **of_file} == of_service
