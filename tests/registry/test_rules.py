"""Rule sets: validation, storage and merging."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.registry.api.bodies.contracts import Metadata, RuleSet
from strata.registry.core.decide.content import merged_metadata, merged_rules
from strata.registry.core.errors import RegistryError
from strata.registry.core.rule_sets import PHASES, check_rule_set

INT = '"int"'
RULE = {"name": "r", "type": "CEL"}


def code(answer):
    """Return the error code of an answer."""
    return answer[1]["error_code"]


def checked(rule_set):
    """Check a rule set as a request sends it."""
    check_rule_set(RuleSet.model_validate(rule_set).value())


ACCEPTED = [
    pytest.param("domainRules", RULE, id="the mode may be left out"),
    pytest.param("domainRules", {**RULE, "name": "_a-1"}, id="underscore first, then letters, digits, hyphens"),
    pytest.param("domainRules", {**RULE, "name": "é" * 256}, id="256 letters"),
    pytest.param("domainRules", {**RULE, "onFailure": "NONE,DLQ"}, id="two actions of two modes"),
    pytest.param("migrationRules", {**RULE, "mode": "UPGRADE"}, id="a migration upwards"),
    pytest.param("migrationRules", {**RULE, "mode": "UPDOWN", "onSuccess": "A,B"}, id="a migration both ways"),
    pytest.param("encodingRules", {**RULE, "mode": "WRITE", "params": {"a": "b"}}, id="an encoding"),
]


@pytest.mark.parametrize(("phase", "rule"), ACCEPTED)
def test_valid_rules(phase, rule):
    """A rule with a name, a type and a mode of its phase is accepted."""
    checked({phase: [rule]})


FAULTS = [
    pytest.param("domainRules", {"type": "CEL"}, "no name", id="no name"),
    pytest.param("domainRules", {**RULE, "name": ""}, "no name", id="an empty name"),
    pytest.param("domainRules", {**RULE, "name": "1a"}, "begin with a letter or an underscore", id="a digit first"),
    pytest.param("domainRules", {**RULE, "name": "a b"}, "hyphens only", id="a blank in the name"),
    pytest.param("domainRules", {**RULE, "name": "a" * 257}, "longer than 256", id="a long name"),
    pytest.param("domainRules", {"name": "r"}, "no type", id="no type"),
    pytest.param("domainRules", {**RULE, "mode": "UPGRADE"}, "WRITE, READ, WRITEREAD", id="a migration mode"),
    pytest.param("encodingRules", {**RULE, "mode": "UPDOWN"}, "WRITE, READ, WRITEREAD", id="a migration mode there"),
    pytest.param("migrationRules", {**RULE, "mode": "READ"}, "UPGRADE, DOWNGRADE, UPDOWN", id="a record's mode"),
    pytest.param("migrationRules", RULE, "UPGRADE, DOWNGRADE, UPDOWN", id="no mode in a migration"),
    pytest.param("domainRules", {**RULE, "mode": "READ", "onFailure": "A,B"}, "2 actions", id="two actions, one mode"),
    pytest.param("domainRules", {**RULE, "onSuccess": "A,B,C"}, "3 actions", id="three actions"),
]


@pytest.mark.parametrize(("phase", "rule", "reason"), FAULTS)
def test_impossible_rules(phase, rule, reason):
    """The message says what is wrong with a rule, and where."""
    with pytest.raises(RegistryError) as refused:
        checked({phase: [rule]})

    assert 42210 == refused.value.code
    assert f"Invalid rule set: {phase}[0]" in refused.value.message
    assert reason in refused.value.message


def test_name_stands_once_in_a_set():
    """Rule names are unique across phases."""
    with pytest.raises(RegistryError, match="another rule of the set has this name"):
        checked({"domainRules": [RULE], "encodingRules": [RULE]})


FORMS = [
    pytest.param({"domainRules": [{**RULE, "kind": "MAGIC"}]}, "ruleSet.domainRules.0.kind", id="no such kind"),
    pytest.param({"domainRules": [{**RULE, "mode": "read"}]}, "ruleSet.domainRules.0.mode", id="no such mode"),
    pytest.param({"domainRules": [{**RULE, "params": {"a": [1]}}]}, "ruleSet.domainRules.0.params.a", id="a list"),
    pytest.param({"domainRules": RULE}, "ruleSet.domainRules", id="no list"),
    pytest.param({"enableAt": "NOON"}, "ruleSet.enableAt", id="no such place"),
    pytest.param({"domainRules": [RULE] * 1001}, "ruleSet.domainRules", id="more than 1,000 rules"),
]


@pytest.mark.parametrize(("rule_set", "where"), FORMS)
def test_rules_of_another_form(api, rule_set, where):
    """A malformed rule set is 42210 too, even if rules are not validated."""
    api.put("/config/s", {"validateRules": False})
    status, answer = api.register("s", INT, ruleSet=rule_set)

    assert (422, 42210) == (status, answer["error_code"])
    assert f"{where}:" in answer["message"]


def test_rules_are_stored_with_their_defaults(api):
    """The registry fills in kind and mode, leaves out empty values, and includes rules in the identity."""
    full = {"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL", "disabled": False}
    api.placed("s", INT)
    answer = api.register("s", INT, ruleSet={"domainRules": [{**RULE, "doc": "", "tags": []}], "migrationRules": []})[1]

    assert (2, {"domainRules": [full]}) == (answer["id"], answer["ruleSet"])
    assert {"domainRules": [full]} == api.get("/schemas/ids/2")[1]["ruleSet"]
    assert (2, 2) == api.placed("s", INT, ruleSet={"domainRules": [full]})


def test_validation_can_be_switched_off(api):
    """`validateRules` decides whether the registry refuses or stores an invalid rule."""
    bad = {"domainRules": [{"name": "not a name", "type": "CEL"}]}

    assert 42210 == code(api.register("s", INT, ruleSet=bad))
    assert 42210 == code(api.put("/config/s", {"defaultRuleSet": bad}))
    api.put("/config", {"validateRules": False})
    assert 200 == api.register("s", INT, ruleSet=bad)[0]
    assert 200 == api.put("/config/t", {"overrideRuleSet": bad})[0]


def test_defaults_and_overrides(api):
    """A rule of the request replaces the default's of the same name, and the override's replaces both."""
    names = {"defaultRuleSet": ["a", "b"], "overrideRuleSet": ["c"]}
    for field, found in names.items():
        api.put("/config/s", {field: {"domainRules": [{"name": n, "type": field} for n in found]}})
    asked = {"domainRules": [{"name": name, "type": "request"} for name in ("b", "c")]}
    rules = api.register("s", INT, ruleSet=asked)[1]["ruleSet"]["domainRules"]

    assert [("a", "defaultRuleSet"), ("b", "request"), ("c", "overrideRuleSet")] == [
        (rule["name"], rule["type"]) for rule in rules
    ]
    assert (1, 1) == api.placed("s", INT, ruleSet=asked)


KEY, KEK, KMS = "encrypt.kms.key.id", "encrypt.kek.name", "encrypt.kms.type"
ARN = "arn:aws:kms:us-west-2:123:key/a_b-c"
NAMED = {KEY: ARN, KEK: "aws-kms-us-west-2-123-key-a_b-c", KMS: "aws-kms"}
# name, phase, the given parameters, the stored parameters
KEY_PARAMS = [
    ("an id of AWS", "domainRules", {KEY: ARN}, NAMED),
    ("another id", "domainRules", {KEY: "https://vault/keys/ä b"}, {KEY: "https://vault/keys/ä b",
                                                                    KEK: "https---vault-keys---b"}),
    ("arn within the id", "domainRules", {KEY: "x-arn:1"}, {KEY: "x-arn:1", KEK: "x-arn-1"}),
    ("a name of its own", "domainRules", {KEY: ARN, KEK: "mine"}, {**NAMED, KEK: "mine"}),
    ("a KMS of its own", "domainRules", {KEY: ARN, KMS: "local-kms"}, {**NAMED, KMS: "local-kms"}),
    ("both of its own", "domainRules", {KEY: ARN, KEK: "k", KMS: "t"}, {KEY: ARN, KEK: "k", KMS: "t"}),
    ("others stay", "domainRules", {KEY: ARN, "z": "1"}, {**NAMED, "z": "1"}),
    ("no id", "domainRules", {KMS: "aws-kms"}, {KMS: "aws-kms"}),
    ("no parameters", "domainRules", {}, None),
    ("an encoding rule", "encodingRules", {KEY: ARN}, {KEY: ARN}),
    ("a migration rule", "migrationRules", {KEY: ARN}, {KEY: ARN}),
]  # fmt: skip


@pytest.mark.parametrize(("phase", "params", "expected"), [pytest.param(*row, id=name) for name, *row in KEY_PARAMS])
def test_encryption_rules_name_their_keys(api, phase, params, expected):
    """The registry adds a KEK name to a domain rule with a KMS key id, and the KMS type if the id shows it."""
    asked = {phase: [{"name": "r", "type": "ENCRYPT", "mode": MODES[phase], "params": params}]}
    status, answer = api.register("s", INT, ruleSet=asked)

    assert (200, expected) == (status, answer["ruleSet"][phase][0].get("params"))
    assert answer["ruleSet"] == api.get("/subjects/s/versions/1")[1]["ruleSet"]
    assert (1, 1) == api.placed("s", INT, ruleSet=asked)


MODES = {"domainRules": "WRITEREAD", "encodingRules": "WRITEREAD", "migrationRules": "UPGRADE"}
TAGGED = [
    ("a rule set", {"ruleSet": {"domainRules": [{"name": "r", "type": "ENCRYPT", "params": {KEY: ARN}}]}}),
    ("rules to merge", {"rulesToMerge": {"domainRules": [{"name": "r", "type": "ENCRYPT", "params": {KEY: ARN}}]}}),
]  # fmt: skip


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in TAGGED])
def test_encryption_rules_of_tags_name_their_keys(api, change):
    """Rules in a change of tags are completed as in a registration."""
    api.placed("s", INT)
    status, answer = api.post("/subjects/s/versions/1/tags", change)

    assert (200, NAMED) == (status, answer["ruleSet"]["domainRules"][0]["params"])


def test_imported_rules_stay_as_they_are(api):
    """IMPORT mode adds nothing to rules, so the schema keeps the GUID of its source."""
    api.put("/mode/s", {"mode": "IMPORT"})
    asked = {"domainRules": [{"name": "r", "type": "ENCRYPT", "params": {KEY: ARN}}]}
    answer = api.register("s", INT, id=7, version=1, ruleSet=asked)[1]

    assert {KEY: ARN} == answer["ruleSet"]["domainRules"][0]["params"]


NAMES = st.sampled_from(["a", "b", "c"])
RULES = st.lists(NAMES, unique=True, max_size=3).map(lambda names: [{"name": n, "type": "T"} for n in names])
RULE_SETS = st.dictionaries(st.sampled_from(sorted(PHASES)), RULES).map(
    lambda found: RuleSet.model_validate(found).value()
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2),
        "properties": st.dictionaries(NAMES, NAMES, max_size=2),
        "sensitive": st.lists(NAMES, max_size=2),
    },
).map(lambda found: Metadata.model_validate(found).value())


@settings(max_examples=examples(100), deadline=None)
@given(METADATA, METADATA, METADATA)
def test_merging_metadata_is_lawful(one, two, three):
    """Merging has a neutral element, is idempotent, and is associative."""
    assert (one or None) == merged_metadata(None, one) == merged_metadata(one, {}) == merged_metadata(one, one)
    assert merged_metadata(merged_metadata(one, two), three) == merged_metadata(one, merged_metadata(two, three))


@settings(max_examples=examples(100), deadline=None)
@given(RULE_SETS, RULE_SETS, RULE_SETS)
def test_merging_rules_is_lawful(one, two, three):
    """The laws of metadata hold for rules; names are unique in a phase, and the last layer is kept whole."""
    merged = merged_rules(one, two, three)

    assert (one or None) == merged_rules(None, one) == merged_rules(one, {}) == merged_rules(one, one)
    assert merged_rules(merged_rules(one, two), three) == merged_rules(one, merged_rules(two, three)) == merged
    for phase in PHASES:
        names = [rule["name"] for rule in (merged or {}).get(phase, ())]
        assert len(names) == len(set(names))
        assert three.get(phase, []) == (merged or {}).get(phase, [])[len(names) - len(three.get(phase, [])) :]
