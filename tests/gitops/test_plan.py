"""`strata plan` names what `strata apply` then does, and after it nothing is left to do."""

import json

import pytest

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "total", "type": "shop.Money"}]}'
MANIFEST = """
compatibility: FULL
contexts:
  staging: {compatibility: NONE}
subjects:
  - name: orders-value
    file: order.avsc
    compatibility: BACKWARD_TRANSITIVE
    metadata: {properties: {team: shop}}
    tags: {"**.total": [PRICE]}
    rules:
      domainRules: [{name: paid, kind: CONDITION, type: CEL, mode: WRITE, expr: message.total > 0, disabled: true}]
  - name: money
    file: money.avsc
  - name: bill
    file: bill.proto
    normalize: true
    mode: READONLY
  - name: old-orders
    alias: orders-value
  - name: money
    context: staging
    file: money.avsc
""".replace("  - name: money\n    context: staging", "  - name: ':.staging:money'")


def write_shop(files, record):
    """Write a manifest with every construct, and its files."""
    files.put("strata.yaml", MANIFEST)
    files.put("money.avsc", record("cents", name="Money", namespace="shop"))
    files.put("order.avsc", ORDER)
    files.put("bill.proto", 'syntax = "proto3";\nmessage Bill { int64 cents = 1; }\n')


def lines(text):
    """Return the titles in the output of a plan."""
    return [line.rpartition(": ")[0] or line for line in text.splitlines() if not line.startswith(" ")]


def test_an_apply_does_what_the_plan_names(files, record, registry):
    """The plan lists settings, then schemas with references first; the apply does that, and then nothing is left."""
    write_shop(files, record)
    run = ("--url", registry.url)

    planned = files.run("plan", *run, code=1)

    assert [
        "~ change the settings of the registry", "~ change the settings of :.staging:",
        "~ change the settings of old-orders", "~ change the settings of orders-value", "+ register money version 1",
        "+ register bill version 1", "+ register :.staging:money version 1", "+ register orders-value version 1",
        "~ change the settings of bill", "9 to change, 0 unchanged",
    ] == lines(planned)  # fmt: skip
    assert [] == registry.get("/subjects?subjectPrefix=:*:")
    applied = files.run("apply", *run, code=0)
    assert "registered orders-value version 1\n" in applied
    assert "9 changed, 0 unchanged" in applied
    assert "0 to change, 9 unchanged" in files.run("plan", *run, code=0)
    assert "0 changed, 9 unchanged" in files.run("apply", *run, code=0)
    order = registry.get("/subjects/orders-value/versions/latest")
    assert [{"name": "shop.Money", "subject": "money", "version": 1}] == order["references"]
    assert {"tags": {"**.total": ["PRICE"]}, "properties": {"team": "shop"}} == order["metadata"]
    assert order["ruleSet"]["domainRules"][0]["disabled"] is True
    assert "orders-value" == registry.get("/config/old-orders")["alias"]
    assert "READONLY" == registry.get("/mode/bill")["mode"]


def test_white_space_is_no_change(files, record, registry):
    """Other white space and another order of keys do not count; a field does, and the plan says what it means."""
    write_shop(files, record)
    files.run("apply", "--url", registry.url, code=0)
    files.put("money.avsc", record("cents", name="Money", namespace="shop").replace("\n", "\n\t"))
    files.run("plan", "--url", registry.url, code=0)
    files.put("strata.yaml", "subjects: [{name: money, file: money.avsc}]")
    files.put(
        "money.avsc", record("cents", name="Money", namespace="shop").replace(' "long"}', ' "long", "default": 0}')
    )

    planned = files.run("plan", "--url", registry.url, code=1)

    assert "+ register money version 2: differs from version 1\n" in planned
    assert "default added: cents 0" in planned


def test_going_back_is_a_change(files, record, registry):
    """A schema that an older version holds becomes the latest again, once."""
    files.put("strata.yaml", "subjects: [{name: s, file: s.avsc, compatibility: NONE}]")
    for fields, version in ((("a",), 1), (("b",), 2), (("a",), 3)):
        files.put("s.avsc", record(*fields))
        assert f"+ register s version {version}" in files.run("plan", "--url", registry.url, code=1)
        files.run("apply", "--url", registry.url, code=0)
        files.run("plan", "--url", registry.url, code=0)
    files.put("s.avsc", record("b"))
    assert "register s version 4" in files.run("plan", "--url", registry.url, code=1)


def test_metadata_alone_is_a_change(files, record, registry):
    """Metadata and rules that differ are a change; those that the manifest does not name are kept."""
    files.put("s.avsc", record("a"))
    files.put("strata.yaml", "subjects: [{name: s, file: s.avsc, metadata: {properties: {owner: me}}}]")
    files.run("apply", "--url", registry.url, code=0)
    files.put("strata.yaml", "subjects: [{name: s, file: s.avsc}]")
    files.run("plan", "--url", registry.url, code=0)
    files.put("strata.yaml", "subjects: [{name: s, file: s.avsc, metadata: {properties: {owner: you}}}]")
    assert "    metadata.properties.owner: me → you\n" in files.run("plan", "--url", registry.url, code=1)
    files.put("strata.yaml", "subjects: [{name: s, file: s.avsc, metadata: {}}]")
    files.run("apply", "--url", registry.url, code=0)
    assert "owner" not in json.dumps(registry.get("/subjects/s/versions/latest"))
    files.run("plan", "--url", registry.url, code=0)


def test_what_is_incompatible_is_an_error_of_the_plan(files, record, registry):
    """A schema that the registry would reject is in the plan with the reason, and the apply writes nothing."""
    files.put("strata.yaml", "subjects: [{name: '{stem}', files: '*.avsc'}]")
    files.put("s.avsc", record("a"))
    files.run("apply", "--url", registry.url, code=0)
    files.write(s__avsc=record("a", "b"), a__avsc=record("x"))

    planned = files.run("plan", "--url", registry.url, code=2)

    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in planned
    assert "1 to change, 0 unchanged, 1 rejected" in planned
    assert "nothing was written" in files.run("apply", "--url", registry.url, code=2)
    assert ["s"] == registry.get("/subjects")


def test_a_plan_shows_the_records_that_break_or_change(files, registry):
    """The details name the record, its version and what is read, and the JSON has them too."""
    files.put("strata.yaml", "subjects: [{name: s, file: s.avsc}]")
    text = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "%s"}]}'
    files.put("s.avsc", text % "long")
    files.run("apply", "--url", registry.url, code=0)
    files.put("s.avsc", text % "double")
    changed = json.loads(files.run("plan", "--url", registry.url, "--output=json", code=1))["changes"][0]
    files.put("s.avsc", text % "string")
    refused = files.run("plan", "--url", registry.url, code=2)

    assert "  Written as 9007199254740993, read as 9007199254740992.0." in changed["details"]
    assert {"a": 2**53 + 1} == changed["findings"][0]["witness"]["record"]
    assert 'This record, written with version 1, cannot be read with the new schema: {"a": 0}' in refused


def test_what_protoc_refuses_is_an_error_of_the_plan(files, registry):
    """A Protobuf file that protoc refuses is in the plan with file, line and rule, and the apply writes nothing."""
    files.put("strata.yaml", "subjects: [{name: o, file: o.proto}]")
    files.put("o.proto", 'syntax = "proto3";\nmessage O {\n  int32 a = 1;\n  int32 b = 1;\n}\n')

    planned = files.run("plan", "--url", registry.url, code=2)

    assert 'o.proto:4:9: Field number 1 of "b" is that of "a" in O (FIELD_NUMBER_TWICE)' in planned
    assert "nothing was written" in files.run("apply", "--url", registry.url, code=2)
    assert [] == registry.get("/subjects")


def test_pruning_needs_the_mark_and_keeps_what_is_referred_to(files, record, registry):
    """--prune deletes subjects with the owner's mark that are gone from the manifest, unless others refer to them."""
    everything = "owner: shop\nsubjects: [{name: '{stem}', files: '*.avsc'}]"
    files.put("strata.yaml", everything)
    files.write(a__avsc=record("x", name="A"), b__avsc=record("x", name="B"), c__avsc='["null", "B"]', d__avsc=ORDER)
    files.put("m.avsc", record("cents", name="Money", namespace="shop"))
    registry.register("foreign", '"int"')
    files.run("apply", "--url", registry.url, code=0)
    registry.register("user", ORDER, references=[{"name": "shop.Money", "subject": "m", "version": 1}])
    files.put("strata.yaml", "owner: shop\nsubjects: [{name: a, file: a.avsc}]")
    run = ("--prune", "--url", registry.url)

    planned = files.run("plan", *run, code=1)

    assert "0 to change, 1 unchanged" in files.run("plan", "--url", registry.url, code=0)
    assert ["- delete c", "- delete b"] == [one for one in lines(planned) if one in ("- delete b", "- delete c")]
    assert "  kept m: " in planned
    files.run("apply", *run, code=0)
    assert ["a", "foreign", "m", "user"] == registry.get("/subjects")
    files.run("plan", *run, code=0)
    files.put("strata.yaml", "subjects: [{name: a, file: a.avsc}]")
    assert "--prune needs an `owner`" in files.run("plan", *run, code=2)


# the owner's mark of a subject, or None
OTHERS = [None, "", "shop2", "sho", "Shop", "other", "shop "]


@pytest.mark.parametrize("mark", OTHERS)
def test_a_prune_leaves_what_others_own(files, record, registry, mark):
    """--prune deletes no subject that another owner's tree has registered, nor one without a mark."""
    files.write(a__avsc=record("x", name="A"), b__avsc=record("x", name="B"))
    files.put("strata.yaml", "owner: shop\nsubjects: [{name: a, file: a.avsc}, {name: gone, file: b.avsc}]")
    files.run("apply", "--url", registry.url, code=0)
    metadata = {"properties": {"team": "shop"} if mark is None else {"strata.owner": mark}}
    registry.ask("POST", "/subjects/theirs/versions", {"schema": '"long"', "metadata": metadata})
    files.put("strata.yaml", "owner: shop\nsubjects: [{name: a, file: a.avsc}]")

    assert "deleted gone" in files.run("apply", "--prune", "--url", registry.url, code=0)
    assert ["a", "theirs"] == registry.get("/subjects")


def test_two_owners_prune_in_turn(files, record, registry):
    """Each owner's tree prunes its own subjects only."""
    for owner in ("shop", "bank"):
        files.put(f"{owner}/{owner}.avsc", record("x", name=owner))
        files.put(f"{owner}/strata.yaml", f"owner: {owner}\nsubjects: [{{name: {owner}-1, file: {owner}.avsc}}]")
        files.run("apply", "-f", f"{owner}/strata.yaml", "--url", registry.url, code=0)
    files.put("bank/strata.yaml", "owner: bank\nsubjects: []")

    files.run("apply", "-f", "shop/strata.yaml", "--prune", "--url", registry.url, code=0)
    assert ["bank-1", "shop-1"] == registry.get("/subjects")
    files.run("apply", "-f", "bank/strata.yaml", "--prune", "--url", registry.url, code=0)
    assert ["shop-1"] == registry.get("/subjects")


def test_a_plan_file(files, record, registry):
    """A plan file is applied as it is, again without effect, and not at all if the registry has moved since."""
    files.write(s__avsc=record("a"), strata__yaml="subjects: [{name: s, file: s.avsc}]")
    files.run("plan", "--url", registry.url, "--out=plan.json", code=1)
    files.run("plan", "--url", registry.url, "--out=later.json", code=1)
    (files.root / "s.avsc").unlink()

    assert "registered s version 1" in files.run("apply", "plan.json", code=0)
    assert "has all of this already" in files.run("apply", "plan.json", code=0)
    registry.ask("PUT", "/config/s", {"compatibility": "NONE"})
    registry.register("s", '"int"')
    assert "plan again" in files.run("apply", "later.json", code=2).lower()
    assert "int" == json.loads(registry.get("/subjects/s/versions/latest")["schema"])
    files.put("bad.json", "{}")
    assert "not a plan file" in files.run("apply", "bad.json", code=2)


def test_a_plan_file_is_void_only_after_a_change_that_it_depends_on(files, record, registry):
    """What others change elsewhere leaves a plan valid; a new version of what a planned schema refers to does not."""
    user = record("id", name="User").replace('"long"', '"Base"')
    files.write(base__avsc=record("a", name="Base"), user__avsc=user)
    files.put("strata.yaml", "subjects: [{name: base, file: base.avsc}]")
    files.run("apply", "--url", registry.url, code=0)
    files.put("strata.yaml", "subjects: [{name: '{stem}', files: '*.avsc'}]")
    files.run("plan", "--url", registry.url, "--out=plan.json", code=1)
    registry.register("other", '"int"')
    registry.ask("PUT", "/config/other", {"compatibility": "NONE"})

    assert "registered user version 1" in files.run("apply", "plan.json", code=0)

    files.put("user.avsc", user.replace("User", "Other"))
    files.put("strata.yaml", "subjects: [{name: '{stem}', files: '*.avsc', compatibility: NONE}]")
    files.run("apply", "--url", registry.url, code=0)
    files.put("user.avsc", user)
    files.run("plan", "--url", registry.url, "--out=plan.json", code=1)
    registry.register("base", '"int"')

    if registry.takes_batches:
        assert "user, or what its change depends on, has changed" in files.run("apply", "plan.json", code=2)


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("s.avsc", '{"type": "record", "name": "S", "fields": [\n  {"name": "a", "type": "lon"}]}', "s.avsc:2:4: "),
        ("s.proto", 'syntax = "proto3";\nmessage S {\n  int64 a 1;\n}\n', "s.proto:3:11: "),
        ("s.schema.json", '{"type": "objectt"}', "s.schema.json:1:"),
    ],
)
def test_an_invalid_schema_is_named_by_its_place(files, record, registry, file, text, fault):
    """A plan says the file, the place and the mistake of an invalid schema, and does not repeat its text."""
    files.put(file, text)
    files.put("good.avsc", record("a", name="Good"))
    files.put("strata.yaml", f"subjects: [{{name: s, file: {file}}}, {{name: good, file: good.avsc}}]")
    run = ("--url", registry.url)

    planned = files.run("plan", *run, code=2)

    assert "+ register s" in planned
    assert f"  ! {fault}" in planned
    assert text not in planned
    assert "+ register good version 1: new subject" in planned
    assert f"  ! {fault}" in files.run("apply", *run, code=2)
    assert [] == registry.get("/subjects")


def test_json(files, record, registry):
    """`--output json` prints the form of plan files, and of an apply what it did; progress is not part of it."""
    files.write(s__avsc=record("a"), strata__yaml="subjects: [{name: s, file: s.avsc, compatibility: FULL}]")
    run = ("--url", registry.url, "--output=json")

    plan = json.loads(files.run("plan", *run, "--out=plan.json", code=1))

    assert plan == json.loads((files.root / "plan.json").read_text())
    assert ["format", "version", "registry", "offset", "unchanged", "changes", "kept"] == list(plan)
    assert ("strata-plan", 1, registry.url, 0, []) == (*(plan[n] for n in ("format", "version", "registry",
            "unchanged", "kept")),)  # fmt: skip
    register = plan["changes"][1]
    assert ["title", "step", "reason", "details", "version", "error", "file", "findings"] == list(register)
    assert ("register s version 1", "new subject", 1, None, "s.avsc") == (*(register[n] for n in ("title", "reason",
            "version", "error", "file")),)  # fmt: skip
    done = json.loads(files.run("apply", "plan.json", *run, code=0))
    assert {
        "registry": registry.url,
        "changes": [
            {"title": "change the settings of s", "action": "settings", "subject": "s", "version": None},
            {"title": "register s version 1", "action": "register", "subject": "s", "version": 1},
        ],
        "changed": 2,
        "unchanged": 0,
        "kept": [],
    } == done
    again = {**done, "changes": [], "changed": 0, "unchanged": 2}
    assert again == json.loads(files.run("apply", "plan.json", *run, code=0))
    assert again == json.loads(files.run("apply", *run, code=0))
    assert [] == json.loads(files.run("plan", *run, code=0))["changes"]


def test_a_rejected_plan_is_not_applied(files, record, registry):
    """The JSON of a plan that the registry rejects is not a plan to carry out."""
    registry.register("s", record("a"))
    files.write(s__avsc=record("b"), strata__yaml="subjects: [{name: s, file: s.avsc}]")
    files.put("plan.json", files.run("plan", "--url", registry.url, "--output=json", code=2))

    assert "has a change that the registry rejects: s.avsc: " in files.run("apply", "plan.json", code=2)


def test_markdown(files, record, service):
    """The plan as Markdown has a heading, a list, and the differences folded away; names cannot break out of it."""
    files.write(s__avsc=record("a"), strata__yaml="subjects: [{name: 's<b>`x`', file: s.avsc}]")
    text = files.run("plan", "--url", service.url, "--output=markdown", code=1)
    assert text.startswith("### Schemas: 1 to change, 0 unchanged\n")
    assert "- **register s\\<b\\>\\`x\\` version 1**: new subject\n" in text


def test_environments_and_variables(files, record, service):
    """An environment and a second file override the manifest; variables may have defaults."""
    files.put("strata.yaml", """
subjects:
  - {name: "${STAGE:-dev-}s", file: s.avsc, compatibility: "${LEVEL}", metadata: {properties: {x: "$${LEVEL}"}}}
environments:
  prod: {subjects: [{name: "${STAGE:-dev-}s", compatibility: FULL}]}
""")  # fmt: skip
    files.put("more/second.yaml", "subjects: [{name: t, file: t.avsc}]")
    files.write(s__avsc=record("a"), more___t__avsc=record("b"))
    run = ("--url", service.url, "-f", "strata.yaml", "-f", "more/second.yaml")

    assert "the environment variable LEVEL is not set" in files.run("plan", *run, code=2)
    files.run("apply", *run, code=0, LEVEL="NONE")
    assert "NONE" == service.get("/config/dev-s")["compatibilityLevel"]
    files.run("apply", *run, "--env=prod", code=0, LEVEL="NONE", STAGE="p-")
    assert "FULL" == service.get("/config/p-s")["compatibilityLevel"]
    assert {"x": "${LEVEL}"} == service.get("/subjects/p-s/versions/1")["metadata"]["properties"]
    assert ["dev-s", "p-s", "t"] == service.get("/subjects")
    assert "no environment 'test'" in files.run("plan", *run, "--env=test", code=2, LEVEL="NONE")


def test_a_file_of_domnikl(files, service):
    """A file of schema-registry-gitops is a manifest: a schema in the file, references by subject and version."""
    files.put("state.yml", """
compatibility: FULL_TRANSITIVE
normalize: true
subjects:
  - name: base
    type: AVRO
    schema: '{"type": "enum", "name": "Base", "symbols": ["A"]}'
  - name: user
    compatibility: BACKWARD
    file: user.avsc
    references:
      - name: Base
        subject: base
        version: 1
""")  # fmt: skip
    files.put("user.avsc", '{"type": "record", "name": "User", "fields": [{"name": "b", "type": "Base"}]}')
    assert "base version 1: new" in files.run("plan", "state.yml", "--url", service.url, code=1)
    files.run("apply", "-f", "state.yml", "--url", service.url, code=0)
    files.run("plan", "state.yml", "--url", service.url, code=0)
    assert "FULL_TRANSITIVE" == service.get("/config")["compatibilityLevel"]


WRONG = [
    ("a circle",
     "subjects: [{name: a, file: a.avsc, references: [b.avsc]}, {name: b, file: b.avsc, references: [a.avsc]}]",
     "references form a cycle"),
    ("a name twice", "subjects: [{name: a, files: '*.avsc'}]", "the subject a is also"),
    ("two sources", "subjects: [{name: a, file: a.avsc, schema: x}]", "expected one of file, files, schema and alias"),
    ("an unknown level", "subjects: [{name: a, file: a.avsc, compatibility: SOME}]", "expected NONE, BACKWARD"),
    ("no name", "subjects: [{file: a.avsc}]", "a subject needs a name"),
    ("a file elsewhere", "subjects: [{name: a, file: ../../a.avsc}]", "is outside of the folder"),
    ("an unknown file", "subjects: [{name: a, file: a.avsc, references: [c.avsc]}]", "no subject has the file c.avsc"),
    ("no match", "subjects: [{name: a, files: 'x/*.avsc'}]", "no file matches x/*.avsc"),
    ("an unknown placeholder", "subjects: [{name: '{team}', files: '*.avsc'}]", "has no {team}; expected one of {st"),
    ("a key twice", "owner: a\nowner: b", "the key 'owner' appears twice"),
    ("a tag that is not a list", "subjects: [{name: a, file: a.avsc, tags: {x: y}}]", "tags.x: expected a list"),
    ("a tag that is not text", "subjects: [{name: a, file: a.avsc, tags: {x: [[y]]}}]", "tags.x[0]: expected text"),
    ("a property that is not text", "subjects: [{name: a, file: a.avsc, metadata: {properties: {x: [y]}}}]",
     "subjects[0].metadata.properties.x: expected text"),
    ("an anchor", "owner: &a b", "anchors and aliases are not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "message"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_manifest(files, manifest, message):
    """A mistake in the manifest ends the plan with exit code 1, and the message says where and what is expected."""
    files.write(strata__yaml=manifest, a__avsc='"int"', b__avsc='"int"')
    assert message in files.run("plan", "--url=http://127.0.0.1:9", code=2)


def test_no_registry(files, record):
    """Without a URL, or with a registry that does not answer, a plan is an error; so are wrong arguments."""
    files.write(s__avsc=record("a"), strata__yaml="subjects: [{name: s, file: s.avsc}]")
    assert "give --url, or set STRATA_URL" in files.run("plan", code=2)
    assert "No such option" in files.run("plan", "--nothing", code=2)
