"""`/config` and `/mode` over HTTP: set, merge, inherit, clear and refuse."""

import json

import pytest

INT, STRING = '"int"', '"string"'


def code(answer):
    """Return the error code of an answer."""
    return answer[1]["error_code"]


def test_default_configuration(api):
    """By default the registry is at BACKWARD, and a subject answers 40408."""
    assert (200, {"compatibilityLevel": "BACKWARD"}) == api.get("/config")
    assert 40408 == code(api.get("/config/s"))
    assert {"compatibilityLevel": "BACKWARD"} == api.get("/config/s?defaultToGlobal=true")[1]


def test_change_answers_its_own_shape_and_read_another(api):
    """PUT uses `compatibility`, GET `compatibilityLevel`; the level is case-insensitive."""
    assert (200, {"compatibility": "FULL"}) == api.put("/config", {"compatibility": "full"})
    assert {"compatibilityLevel": "FULL"} == api.get("/config")[1]


def test_change_is_a_merge(api):
    """An absent property keeps its value, null clears it, and an unknown one is ignored."""
    api.put("/config/s", {"compatibility": "NONE", "normalize": True, "unknown": 1})
    kept = api.put("/config/s", {})[1]
    cleared = api.put("/config/s", {"normalize": None})[1]

    assert {"normalize": True, "compatibility": "NONE"} == kept
    assert {"compatibility": "NONE"} == cleared
    assert {"compatibilityLevel": "NONE"} == api.get("/config/s")[1]


def test_policy_is_kept_and_an_unknown_one_is_none(api):
    """`compatibilityPolicy` is case-insensitive; an unknown policy counts as unset."""
    assert {"compatibility": "FULL", "compatibilityPolicy": "LENIENT"} == api.put(
        "/config/s", {"compatibility": "FULL", "compatibilityPolicy": "lenient"}
    )[1]
    assert {"compatibility": "FULL"} == api.put("/config/s", {"compatibilityPolicy": "kind"})[1]


def test_subject_inherits_flags_but_not_the_level(api):
    """A subject with its own configuration has the default level, but inherits the registry's flags."""
    api.put("/config", {"compatibility": "FULL", "normalize": True})
    api.put("/config/s", {"validateNewSchemas": True})

    assert {
        "validateNewSchemas": True,
        "normalize": True,
        "compatibilityLevel": "BACKWARD",
    } == api.get("/config/s?defaultToGlobal=true")[1]
    assert {"compatibilityLevel": "FULL", "normalize": True} == api.get("/config/t?defaultToGlobal=true")[1]


METADATA = {"tags": {"**.f": ["PII"]}, "properties": {"owner": "me"}, "sensitive": ["owner"]}
RULE_SET = {
    "domainRules": [{"name": "r", "kind": "CONDITION", "mode": "READ", "type": "CEL", "disabled": False}],
    "enableAt": "CLIENT",
}
# property of a change, its value, the property as read, whether a subject with its own record inherits it
FIELDS = [
    ("alias", "other", "alias", False),
    ("aliasForDeks", "keys", "aliasForDeks", False),
    ("normalize", True, "normalize", True),
    ("validateFields", True, "validateFields", True),
    ("validateNewSchemas", False, "validateNewSchemas", True),
    ("validateRules", False, "validateRules", True),
    ("compatibility", "FULL", "compatibilityLevel", False),
    ("compatibilityPolicy", "LENIENT", "compatibilityPolicy", True),
    ("compatibilityGroup", "major", "compatibilityGroup", True),
    ("defaultMetadata", METADATA, "defaultMetadata", False),
    ("overrideMetadata", METADATA, "overrideMetadata", False),
    ("defaultRuleSet", RULE_SET, "defaultRuleSet", False),
    ("overrideRuleSet", RULE_SET, "overrideRuleSet", False),
]


@pytest.mark.parametrize(("name", "value", "read_as", "falls_through"), FIELDS, ids=[row[0] for row in FIELDS])
def test_every_field(api, name, value, read_as, falls_through):
    """A field can be set, echoed and read; other changes keep it, null clears it, and subjects may inherit it."""
    assert {name: value} == api.put("/config", {name: value})[1]
    assert {name: value} == api.put("/config", {})[1]
    assert value == api.get("/config")[1][read_as]
    assert value == api.get("/config/without?defaultToGlobal=true")[1][read_as]
    other = "alias" if name != "alias" else "compatibilityGroup"
    api.put("/config/with", {other: "x"})
    assert falls_through == (value == api.get("/config/with?defaultToGlobal=true")[1].get(read_as))
    assert name not in api.put("/config", {name: None})[1]


@pytest.mark.parametrize(
    "path", [pytest.param("/config", id="registry"), "/config/s", pytest.param("/config/:.c:", id="context")]
)
@pytest.mark.parametrize(("policy", "expected"), [("logical", "LOGICAL"), ("XXX", None), ("", None), (None, None)])
def test_a_policy_is_set_in_upper_case_and_an_unknown_one_unsets_it(api, path, policy, expected):
    """The answer has the policy in upper case; a text that is not a policy removes the one before."""
    api.put(path, {"compatibilityPolicy": "LENIENT"})

    status, answer = api.put(path, {"compatibilityPolicy": policy})

    assert (200, expected) == (status, answer.get("compatibilityPolicy"))


REQUIRED = """{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}%s]}"""
ADDED = {"schema": REQUIRED % ', {"name": "b", "type": "int", "default": 1}'}
EMPTY = {"schema": '{"type": "record", "name": "E", "fields": []}'}
ASSOCIATION = {
    "resourceName": "t", "resourceNamespace": "n", "resourceId": "1", "resourceType": "topic",
    "associations": [{"associationType": "value", "lifecycle": "STRONG", "schema": EMPTY}],
}  # fmt: skip
UNDER_LOGICAL = [
    ("a new version", "s", ("POST", "/subjects/s/versions", ADDED), 40901),
    ("the first version of a subject", "t", ("POST", "/subjects/t/versions", EMPTY), 40901),
    ("inherited", None, ("POST", "/subjects/s/versions", ADDED), 40901),
    ("inherited by a subject that sets a level only", None, ("POST", "/subjects/level/versions", EMPTY), 40901),
    ("tags", "e", ("POST", "/subjects/e/versions/1/tags", {"metadata": {"properties": {"a": "b"}}}), 40901),
    ("an association with a schema", None, ("POST", "/associations", ASSOCIATION), 40901),
    ("what stands", "e", ("POST", "/subjects/e/versions", EMPTY), None),
    ("by force", "s", ("POST", "/subjects/s/versions?force=true", ADDED), None),
    ("a look-up", "e", ("POST", "/subjects/e", EMPTY), None),
    ("another subject", "s", ("POST", "/subjects/u/versions", EMPTY), None),
]


@pytest.mark.parametrize(
    ("scope", "request_", "expected"), [pytest.param(*row, id=name) for name, *row in UNDER_LOGICAL]
)
def test_where_logical_checks_tables(api, scope, request_, expected):
    """LOGICAL judges each new schema, first ones included, under its scope; not what stands, and not by force."""
    api.register("s", json.loads(REQUIRED % ""))
    api.register("e", json.loads(EMPTY["schema"]))
    api.put("/config/level", {"compatibility": "NONE"})
    api.put(f"/config/{scope}" if scope else "/config", {"compatibilityPolicy": "LOGICAL"})
    status, answer = api.call(*request_)

    assert (409 if expected else 200, expected) == (status, answer.get("error_code"))


def test_a_finding_on_tables(api):
    """A finding names the table, the place, both types, and what would be accepted."""
    api.register("s", json.loads(REQUIRED % ""))
    api.put("/config/s", {"compatibilityPolicy": "LOGICAL"})
    _, answer = api.post("/compatibility/subjects/s/versions?verbose=true", ADDED)

    advice = (
        "Tables of Iceberg (format version 2) cannot follow from version 1 to the new schema at 'b': added field is "
        "neither nullable nor defaulted, so pre-existing rows have no value for it; format-version 2 cannot store a "
        "column default. Make the field nullable."
    )
    finding = {"rule": "REQUIRED_FIELD_ADDED", "path": "b", "field": "b", "direction": "BACKWARD", "version": 1,
               "previous": None, "new": "INT NOT NULL", "advice": advice,
               "table": "Iceberg (format version 2)"}  # fmt: skip
    assert [finding] == answer["findings"]


def test_configuration_is_deleted(api):
    """DELETE returns the removed configuration of a subject, or the one that was in force for the registry."""
    api.put("/config", {"compatibility": "FULL"})
    api.put("/config/s", {"compatibility": "NONE"})

    assert (200, {"compatibilityLevel": "NONE"}) == api.delete("/config/s")
    assert 40401 == code(api.delete("/config/s"))
    assert (200, {"compatibilityLevel": "FULL"}) == api.delete("/config")
    assert {"compatibilityLevel": "BACKWARD"} == api.get("/config")[1]


def test_level_rules_registrations(api):
    """BACKWARD refuses a change that NONE accepts; the subject's level takes precedence over the registry's."""
    api.placed("s", STRING)

    assert 40901 == code(api.register("s", INT))
    api.put("/config/s", {"compatibility": "NONE"})
    assert (2, 2) == api.placed("s", INT)


def test_flags_rule_registrations(api):
    """`normalize` and `validateNewSchemas` of the configuration apply to every registration."""
    api.put("/config/s", {"normalize": True})
    api.put("/config/t", {"validateNewSchemas": False})
    api.placed("s", '{"type":"int","y":1,"x":2}')

    assert '{"type":"int","x":2,"y":1}' == api.get("/subjects/s/versions/1")[1]["schema"]
    assert 200 == api.register("t", '{"type":"enum","name":"no-name!","symbols":["a"]}')[0]
    assert 42201 == code(api.register("u", '{"type":"enum","name":"no-name!","symbols":["a"]}'))


REFUSED_CONFIGS = [
    ("an unknown level", {"compatibility": "SIDEWAYS"}, 422, 42203),
    ("a level that is a number", {"compatibility": 1}, 422, 42203),
    ("a flag that is a word", {"normalize": "yes"}, 400, 400),
    ("an alias that is a list", {"alias": ["a"]}, 400, 400),
    ("metadata that is a text", {"overrideMetadata": "me"}, 400, 400),
    ("a rule without name", {"overrideRuleSet": {"domainRules": [{"type": "CEL"}]}}, 422, 42210),
    ("a rule set that is a list", {"defaultRuleSet": []}, 422, 42210),
    ("no body", None, 422, 422),
    ("no JSON", "}", 400, 400),
]


@pytest.mark.parametrize(
    ("body", "status", "error_code"), [row[1:] for row in REFUSED_CONFIGS], ids=[row[0] for row in REFUSED_CONFIGS]
)
def test_bad_configurations_are_refused(shared_api, body, status, error_code):
    """An invalid configuration changes nothing."""
    got, answer = shared_api.put("/config/s", body)

    assert (status, error_code) == (got, answer["error_code"])
    assert 40408 == code(shared_api.get("/config/s"))


def test_default_mode(api):
    """By default the registry is at READWRITE, and a subject answers 40409."""
    assert (200, {"mode": "READWRITE"}) == api.get("/mode")
    assert 40409 == code(api.get("/mode/s"))
    assert {"mode": "READWRITE"} == api.get("/mode/s?defaultToGlobal=true")[1]


def test_mode_is_set_and_deleted(api):
    """PUT echoes the mode, and DELETE returns the removed one."""
    assert (200, {"mode": "readonly"}) == api.put("/mode/s", {"mode": "readonly"})
    assert {"mode": "READONLY"} == api.get("/mode/s")[1]
    assert (200, {"mode": "READONLY"}) == api.delete("/mode/s")
    assert 40401 == code(api.delete("/mode/s"))
    assert (200, {}) == api.delete("/mode/s?recursive=true")


def test_read_only_refuses_writes_but_finds_what_stands(api):
    """READONLY blocks registration, deletion and configuration, but registration of an existing schema succeeds."""
    api.placed("s", INT)
    api.put("/mode", {"mode": "READONLY"})

    assert (1, 1) == api.placed("s", INT)
    assert 42205 == code(api.register("s", '"long"'))
    assert "Subject s in context  is in read-only mode" == api.register("s", '"long"')[1]["message"]
    assert 42205 == code(api.delete("/subjects/s"))
    assert 42205 == code(api.delete("/subjects/s/versions/1"))
    assert 42205 == code(api.put("/config", {"compatibility": "NONE"}))
    api.put("/mode", {"mode": "READWRITE"})
    assert (2, 2) == api.placed("s", '"long"')


def test_subjects_mode_wins_over_the_registrys(api):
    """A subject can be writable in a read-only registry, unless the registry overrides its mode."""
    api.put("/mode", {"mode": "READONLY"})
    api.put("/mode/s", {"mode": "READWRITE"})

    assert (1, 1) == api.placed("s", INT)
    api.put("/mode", {"mode": "READONLY_OVERRIDE"})
    assert 42205 == code(api.register("s", '"long"'))
    api.delete("/mode")
    api.put("/mode/%3A.__GLOBAL%3A", {"mode": "READONLY_OVERRIDE"})
    assert 42205 == code(api.register("s", '"long"'))


def test_import_mode_takes_ids_from_the_caller(api):
    """In IMPORT the caller gives id and version; there is no compatibility check, and no id is overwritten."""
    api.put("/mode/s", {"mode": "IMPORT"})

    assert (40, 7) == api.placed("s", STRING, id=40, version=7)
    assert (41, 8) == api.placed("s", INT, id=41)
    assert 42205 == code(api.register("s", '"long"', id=40))
    assert (50, 9) == api.placed("s", STRING, id=50)
    assert 42205 == code(api.register("s", '"long"'))
    assert (51, 1) == api.placed("t", '"long"')


def test_import_mode_wants_an_empty_scope(api):
    """Live schemas block IMPORT unless it is forced; soft-deleted ones are purged."""
    api.placed("s", INT)
    api.placed("gone", STRING)
    api.delete("/subjects/gone")

    assert 42205 == code(api.put("/mode/s", {"mode": "IMPORT"}))
    assert 200 == api.put("/mode/s?force=true", {"mode": "IMPORT"})[0]
    assert 200 == api.put("/mode/gone", {"mode": "IMPORT"})[0]
    assert ["s"] == api.get("/subjects?deleted=true")[1]


REFUSED_MODES = [
    ("an unknown mode", "/mode/s", {"mode": "SLEEP"}, 42204),
    ("FORWARD for a subject", "/mode/s", {"mode": "FORWARD"}, 42204),
    ("no body", "/mode/s", None, 422),
]


@pytest.mark.parametrize(
    ("path", "body", "error_code"), [row[1:] for row in REFUSED_MODES], ids=[row[0] for row in REFUSED_MODES]
)
def test_bad_modes_are_refused(api, path, body, error_code):
    """An invalid mode changes nothing."""
    assert error_code == code(api.put(path, body))
    assert {"mode": "READWRITE"} == api.get("/mode")[1]


RECURSIVE = [
    pytest.param("%3A.c%3A", {"mode": "READONLY"}, {"s", ":.d:s", None, ":.__GLOBAL:"}, id="a context"),
    pytest.param("%3A.c", {"mode": "READONLY"}, {"s", ":.d:s", None, ":.__GLOBAL:"}, id="a context, no colon"),
    pytest.param("", {"mode": "READWRITE"}, {":.c:", ":.c:s", ":.d:s", ":.__GLOBAL:"}, id="the default context"),
    pytest.param("%3A.__GLOBAL%3A", {"mode": "READWRITE"}, set(), id="all contexts"),
    pytest.param("s", {"mode": "READONLY"}, {":.c:", ":.c:s", ":.d:s", None, ":.__GLOBAL:"}, id="a subject"),
]


@pytest.mark.parametrize(("scope", "answer", "left"), RECURSIVE)
def test_recursive_deletion_of_modes(api, scope, answer, left):
    """A recursive deletion removes every mode set within the scope, also of subjects without versions."""
    modes = {"s": "READONLY", ":.c:": "READONLY", ":.c:s": "READONLY", ":.d:s": "READONLY", None: "READWRITE"}
    for name, mode in {**modes, ":.__GLOBAL:": "READWRITE"}.items():
        api.put("/mode" if name is None else f"/mode/{name}", {"mode": mode})

    assert (200, answer) == api.delete(f"/mode/{scope}?recursive=true")
    assert left - {None} == {name for name in (*modes, ":.__GLOBAL:") if name and "mode" in api.get(f"/mode/{name}")[1]}
