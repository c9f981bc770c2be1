"""`strata dump` writes a registry as files whose plan is empty, and `strata diff` compares by meaning."""

import json
from pathlib import Path
from urllib.parse import quote

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from harness.examples import examples
from strata.gitops import dumps
from strata.gitops.dumps import indented

SCHEMA = Path(dumps.__file__).parent / "strata.schema.json"
RULES = {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "${x} > 'no'"}]}
BASE = '{"type":"record","name":"Base","namespace":"n","fields":[{"name":"x","type":"double","default":1.50}]}'
USER = '{"type":"record","name":"User","fields":[{"name":"b","type":"n.Base"}]}'
TO_BASE = {"name": "n.Base", "subject": "base"}


def fill(registry, record):
    """Register schemas of each format, with everything that a version or a scope can have."""
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    registry.register("base", BASE)
    registry.register("user", USER, references=[{**TO_BASE, "version": 1}])
    registry.register("base", BASE.replace("1.50", "1e2"))
    registry.register("pinned", USER, references=[{**TO_BASE, "version": 1}])
    registry.register("fresh", USER, references=[{**TO_BASE, "version": 2}])
    registry.register(":.c:base", BASE)
    registry.register(":.c:user", USER, references=[{**TO_BASE, "version": 1}])
    registry.register(":.c:other", USER, references=[{**TO_BASE, "subject": ":.:base", "version": 2}])
    registry.register("p.proto", 'syntax = "proto3";\nmessage P { string s = 1; }\n', schemaType="PROTOBUF")
    registry.register("q", 'syntax = "proto3";\nimport "p.proto";\nmessage Q { P p = 1; }\n', schemaType="PROTOBUF",
                      references=[{"name": "p.proto", "subject": "p.proto", "version": 1}])  # fmt: skip
    registry.register("k", '{"type":"number","default":1E+2}', schemaType="JSON")
    registry.register("j", '{"properties": {"a": {"$ref": "k.json"}}, "maximum": 1.0}', schemaType="JSON",
                      references=[{"name": "k.json", "subject": "k", "version": 1}])  # fmt: skip
    metadata = {"properties": {"no": "yes", "n": "1", "v": "${HOME}"}, "tags": {"**.x": ["PII"]}, "sensitive": ["n"]}
    registry.register("contract", record("x"), metadata=metadata, ruleSet=RULES)
    for text in ('"int"', '"string"'):
        registry.register("back", text)
    registry.ask("POST", "/subjects/back/versions", {"schema": '"int"', "version": -1})
    registry.register("owned", '"int"', metadata={"properties": {"strata.owner": "shop"}})
    registry.register("odd/name: ß*", '"int"')
    registry.register("Case", '"int"')
    registry.register("case", '"long"')
    config = {"compatibility": "FULL", "normalize": True, "defaultMetadata": {"properties": {"team": "t"}},
              "overrideRuleSet": RULES, "compatibilityGroup": "g"}  # fmt: skip
    for scope in ("contract", ":.c:"):
        registry.ask("PUT", f"/config/{quote(scope)}", config)
    registry.ask("PUT", "/config/user", {"normalize": False})
    registry.ask("PUT", "/mode/user", {"mode": "READONLY"})
    registry.ask("DELETE", "/subjects/q")


def test_dump_then_plan_is_no_change(files, record, registry):
    """For every construct of schemas and settings, the plan of a dump is empty; the dump needs no variables."""
    fill(registry, record)

    assert "wrote 16 subjects to out" in files.run("dump", "out", "--url", registry.url, code=0)

    manifest = yaml.safe_load((files.root / "out/strata.yaml").read_text())
    jsonschema_rs.validate(json.loads(SCHEMA.read_text()), manifest)
    assert {"NONE"} == {manifest["compatibility"]}
    assert {"name": "n.Base", "file": "schemas/base.avsc"} == by_name(manifest)["fresh"]["references"][0]
    assert {"name": "n.Base", "subject": "base", "version": 1} == by_name(manifest)["pinned"]["references"][0]
    planned = files.run("plan", "out/strata.yaml", "--url", registry.url)
    assert "0 to change" in planned, planned
    assert "exists; dump into another folder" in files.run("dump", "out", "--url", registry.url, code=2)


def by_name(manifest):
    """Return the entries of a manifest by name."""
    return {one["name"]: one for one in manifest["subjects"]}


def test_a_dump_fills_another_registry(files, record, registry, serve):
    """A dump applied to an empty registry gives the same latest schemas; what is pinned to older versions cannot."""
    registry.ask("PUT", "/config", {"compatibility": "NONE"})
    registry.register("base", BASE)
    registry.register("user", USER, references=[{**TO_BASE, "version": 1}])
    registry.register("contract", record("x"), metadata={"properties": {"a": "b"}}, ruleSet=RULES)
    files.run("dump", "out", "--url", registry.url, code=0)
    with serve() as other:
        files.run("apply", "-f", "out/strata.yaml", "--url", other.url, code=0)
        files.run("plan", "out/strata.yaml", "--url", other.url, code=0)
        assert "" == files.run("diff", registry.url, other.url, code=0)


def test_a_part_of_a_registry(files, record, service):
    """A part of the subjects is dumped without the settings of the registry, with an owner if one is given."""
    fill(service, record)
    files.run("dump", "out", "--url", service.url, "--subject=contract", "--subject=b*", "--owner=me", code=0)
    manifest = yaml.safe_load((files.root / "out/strata.yaml").read_text())
    assert (["back", "base", "contract"], "me") == (sorted(by_name(manifest)), manifest["owner"])
    assert {"owner", "subjects"} == set(manifest)
    assert "    metadata.properties.strata.owner: (none) → me\n" in files.run(
        "plan", "out/strata.yaml", "--url", service.url
    )


@budget(max_examples=examples(50))
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_indenting_changes_white_space_only(value):
    """The indented text has the same value, also of strings with brackets and quotes."""
    assert value == json.loads(indented(json.dumps(value)))


@pytest.mark.parametrize("output", ["text", "json"])
def test_diff(files, record, service, output):
    """A diff lists what is in one place only, and what changed by meaning; white space does not count."""
    files.write(a__avsc=record("x"), b__avsc=record("x"), c__avsc=record("x"))
    files.commit()
    files.run("diff", "HEAD", code=0)
    files.write(b__avsc=record("x").replace("\n", " "), c__avsc=record("y"))
    (files.root / "a.avsc").rename(files.root / "d.avsc")
    for name in ("c", "b", "d"):
        service.register(name, (files.root / f"{name}.avsc").read_text())

    found = files.run("diff", "HEAD", "--output", output, code=1)

    assert found == files.run("diff", "HEAD", service.url, "--output", output, code=1).replace(service.url, ".")
    if output == "text":
        assert ["a: only in HEAD", "c: schema"] == [one for one in found.splitlines() if one[:1] in "ac"]
        assert "    field removed: x" in found
    else:
        assert ["a", "c", "d"] == [one["subject"] for one in json.loads(found)]
    assert "not a URL, a folder" in files.run("diff", "nowhere", code=2)


def test_what_normalizing_changes_is_no_difference(files, service):
    """A registry that normalizes stores fields in another order; neither a plan nor a diff calls that a change."""
    text = 'syntax = "proto3";\nmessage P {\n  string b = 2;\n  string a = 1;\n}\n'
    files.put("p.proto", text)
    files.put("strata.yaml", "subjects: [{name: p, file: p.proto, normalize: true}]")
    files.run("apply", "--url", service.url, code=0)
    assert text != service.get("/subjects/p/versions/latest")["schema"]

    files.run("diff", ".", service.url, code=0)
    files.put("p.proto", text.replace("}", "  string c = 3;\n}"))
    planned = files.run("plan", "--url", service.url, code=1)

    assert "field added" in planned
    assert "order changed" not in planned


def test_names_that_are_only_aliases(files, service, serve_steps):
    """A dump of Strata has names with settings only; that of another registry says that they are left out."""
    service.register("new", '"int"')
    service.ask("PUT", "/config/old", {"alias": "new"})
    service.ask("PUT", "/config/:.empty:", {"compatibility": "FULL"})
    service.ask("PUT", "/mode/closed", {"mode": "READONLY"})

    assert "wrote 1 subject to out\n" == files.run("dump", "out", "--url", service.url, code=0)

    manifest = yaml.safe_load((files.root / "out/strata.yaml").read_text())
    assert [("closed", "READONLY", None), ("new", None, None), ("old", None, "new")] == [
        (one["name"], one.get("mode"), one.get("alias")) for one in manifest["subjects"]
    ]
    assert {"empty": {"compatibility": "FULL"}} == manifest["contexts"]
    assert "0 to change" in files.run("plan", "out/strata.yaml", "--url", service.url, code=0)
    with serve_steps() as other:
        assert "left out: names that have settings only" in files.run("dump", "other", "--url", other.url, code=0)
