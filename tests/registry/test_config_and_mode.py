"""`/config` and `/mode` over HTTP: what is set, merged, inherited, cleared and refused."""

import pytest

INT, STRING = '"int"', '"string"'


def code(answer):
    """The error code of an answer."""
    return answer[1]["error_code"]


def test_default_configuration(api):
    """Nobody set anything: BACKWARD for the registry, 40408 for a subject."""
    assert api.get("/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert code(api.get("/config/s")) == 40408
    assert api.get("/config/s?defaultToGlobal=true")[1] == {"compatibilityLevel": "BACKWARD"}


def test_change_answers_its_own_shape_and_read_another(api):
    """PUT speaks of `compatibility`, GET of `compatibilityLevel`; the level is taken in any case."""
    assert api.put("/config", {"compatibility": "full"}) == (200, {"compatibility": "FULL"})
    assert api.get("/config")[1] == {"compatibilityLevel": "FULL"}


def test_change_is_a_merge(api):
    """Absent keeps, null clears, unknown is passed over."""
    api.put("/config/s", {"compatibility": "NONE", "normalize": True, "unknown": 1})
    kept = api.put("/config/s", {})[1]
    cleared = api.put("/config/s", {"normalize": None})[1]

    assert kept == {"normalize": True, "compatibility": "NONE"}
    assert cleared == {"compatibility": "NONE"}
    assert api.get("/config/s")[1] == {"compatibilityLevel": "NONE"}


def test_subject_inherits_flags_but_not_the_level(api):
    """A subject with a configuration of its own takes the default level, and the registry's flags."""
    api.put("/config", {"compatibility": "FULL", "normalize": True})
    api.put("/config/s", {"validateNewSchemas": True})

    assert api.get("/config/s?defaultToGlobal=true")[1] == {
        "validateNewSchemas": True,
        "normalize": True,
        "compatibilityLevel": "BACKWARD",
    }
    assert api.get("/config/t?defaultToGlobal=true")[1] == {"compatibilityLevel": "FULL", "normalize": True}


def test_configuration_is_deleted(api):
    """DELETE answers what goes: a subject's own, or what was in force for the registry."""
    api.put("/config", {"compatibility": "FULL"})
    api.put("/config/s", {"compatibility": "NONE"})

    assert api.delete("/config/s") == (200, {"compatibilityLevel": "NONE"})
    assert code(api.delete("/config/s")) == 40401
    assert api.delete("/config") == (200, {"compatibilityLevel": "FULL"})
    assert api.get("/config")[1] == {"compatibilityLevel": "BACKWARD"}


def test_level_rules_registrations(api):
    """Incompatible under BACKWARD, welcome under NONE; the subject's level wins over the registry's."""
    api.placed("s", STRING)

    assert code(api.register("s", INT)) == 40901
    api.put("/config/s", {"compatibility": "NONE"})
    assert api.placed("s", INT) == (2, 2)


def test_flags_rule_registrations(api):
    """`normalize` and `validateNewSchemas` of the configuration apply to every registration."""
    api.put("/config/s", {"normalize": True})
    api.put("/config/t", {"validateNewSchemas": False})
    api.placed("s", '{"type":"int","y":1,"x":2}')

    assert api.get("/subjects/s/versions/1")[1]["schema"] == '{"type":"int","x":2,"y":1}'
    assert api.register("t", '{"type":"enum","name":"no-name!","symbols":["a"]}')[0] == 200
    assert code(api.register("u", '{"type":"enum","name":"no-name!","symbols":["a"]}')) == 42201


REFUSED_CONFIGS = [
    ("a level that is none", {"compatibility": "SIDEWAYS"}, 422, 42203),
    ("a level that is a number", {"compatibility": 1}, 400, 400),
    ("a flag that is a word", {"normalize": "yes"}, 400, 400),
    ("no body", None, 422, 422),
    ("no JSON", "}", 400, 400),
]


@pytest.mark.parametrize(
    ("body", "status", "error_code"), [row[1:] for row in REFUSED_CONFIGS], ids=[row[0] for row in REFUSED_CONFIGS]
)
def test_bad_configurations_are_refused(api, body, status, error_code):
    """A configuration that cannot be used changes nothing."""
    got, answer = api.put("/config/s", body)

    assert (status, error_code) == (got, answer["error_code"])
    assert code(api.get("/config/s")) == 40408


def test_default_mode(api):
    """Nobody set anything: READWRITE for the registry, 40409 for a subject."""
    assert api.get("/mode") == (200, {"mode": "READWRITE"})
    assert code(api.get("/mode/s")) == 40409
    assert api.get("/mode/s?defaultToGlobal=true")[1] == {"mode": "READWRITE"}


def test_mode_is_set_and_deleted(api):
    """PUT echoes, DELETE answers the mode that goes."""
    assert api.put("/mode/s", {"mode": "READONLY"}) == (200, {"mode": "READONLY"})
    assert api.get("/mode/s")[1] == {"mode": "READONLY"}
    assert api.delete("/mode/s") == (200, {"mode": "READONLY"})
    assert code(api.delete("/mode/s")) == 40401
    assert api.delete("/mode/s?recursive=true") == (200, {})


def test_read_only_refuses_writes_but_finds_what_stands(api):
    """READONLY blocks registration, deletion and configuration; a schema that stands is answered."""
    api.placed("s", INT)
    api.put("/mode", {"mode": "READONLY"})

    assert api.placed("s", INT) == (1, 1)
    assert code(api.register("s", '"long"')) == 42205
    assert api.register("s", '"long"')[1]["message"] == "Subject s in context . is in read-only mode"
    assert code(api.delete("/subjects/s")) == 42205
    assert code(api.delete("/subjects/s/versions/1")) == 42205
    assert code(api.put("/config", {"compatibility": "NONE"})) == 42205
    api.put("/mode", {"mode": "READWRITE"})
    assert api.placed("s", '"long"') == (2, 2)


def test_subjects_mode_wins_over_the_registrys(api):
    """A subject can be writable in a read-only registry, unless the registry overrides."""
    api.put("/mode", {"mode": "READONLY"})
    api.put("/mode/s", {"mode": "READWRITE"})

    assert api.placed("s", INT) == (1, 1)
    api.put("/mode", {"mode": "READONLY_OVERRIDE"})
    assert code(api.register("s", '"long"')) == 42205


def test_import_mode_takes_ids_from_the_caller(api):
    """In IMPORT the caller says id and version, nothing is checked for compatibility, and ids are not overwritten."""
    api.put("/mode/s", {"mode": "IMPORT"})

    assert api.placed("s", STRING, id=40, version=7) == (40, 7)
    assert api.placed("s", INT, id=41) == (41, 8)
    assert code(api.register("s", '"long"', id=40)) == 42205
    assert code(api.register("s", STRING, id=50)) == 42207
    assert code(api.register("s", '"long"')) == 42205
    assert api.placed("t", '"long"') == (42, 1)


def test_import_mode_wants_an_empty_scope(api):
    """Live schemas stand in the way of IMPORT, unless forced; soft-deleted ones are purged."""
    api.placed("s", INT)
    api.placed("gone", STRING)
    api.delete("/subjects/gone")

    assert code(api.put("/mode/s", {"mode": "IMPORT"})) == 42205
    assert api.put("/mode/s?force=true", {"mode": "IMPORT"})[0] == 200
    assert api.put("/mode/gone", {"mode": "IMPORT"})[0] == 200
    assert api.get("/subjects?deleted=true")[1] == ["s"]


REFUSED_MODES = [
    ("a mode that is none", "/mode/s", {"mode": "SLEEP"}, 42204),
    ("FORWARD for a subject", "/mode/s", {"mode": "FORWARD"}, 42204),
    ("no body", "/mode/s", None, 422),
]


@pytest.mark.parametrize(
    ("path", "body", "error_code"), [row[1:] for row in REFUSED_MODES], ids=[row[0] for row in REFUSED_MODES]
)
def test_bad_modes_are_refused(api, path, body, error_code):
    """A mode that cannot be used changes nothing."""
    assert error_code == code(api.put(path, body))
    assert api.get("/mode")[1] == {"mode": "READWRITE"}
