"""Aliases, look-ups across contexts, and the effect of both on cached answers."""

from types import MappingProxyType

import pytest

from strata.registry.core.subject_names import PathSubject, aliased
from strata.storage.log import Entry, MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import ConfigKey, ConfigValue, Subject
from strata.storage.state import State

INT, LONG = '"int"', '"long"'


def alias(name, target):
    """Return the record that makes a name an alias of another subject; a target of None removes the alias."""
    fields = {} if target is None else {"alias": target}
    return encode(ConfigKey(Subject(name)), ConfigValue(MappingProxyType(fields)))


def state_with(**aliases):
    """Return a State with some aliases."""
    records = [alias(name, target) for name, target in aliases.items()]
    return State().apply_all(Entry(i, 0, record.key, record.value) for i, record in enumerate(records))


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [("x", "y", "y"), ("x", ":.c:y", ":.c:y"), (":.c:x", "y", ":.c:y"), (":.c:x", ":.:y", "y"),
     (":.c:x", ":.d:y", ":.d:y"), ("x", "", "x"), ("x", None, "x"), ("x", "x", "x"), (":.c:x", "x", ":.c:x"),
     ("x", ":.c", ":.c:")],
)  # fmt: skip
def test_target_of_an_alias(name, target, expected):
    """A plain target is in the context of the name; a blank target is not an alias."""
    assert expected == aliased(state_with(**{name: target}), PathSubject(name))


def test_a_plain_alias_belongs_to_the_context_of_its_name(api):
    """However a path spells the name: with the colons as they are, percent-encoded, or below `/contexts/{ctx}/`."""
    api.put("/config/:.c:x", {"alias": "y"})
    api.placed("y", '"int"')
    api.placed(":.c:y", '"long"')

    for name in ("/subjects/:.c:x", "/subjects/%3A.c%3Ax", "/contexts/.c/subjects/x"):
        assert ":.c:y" == api.get(f"{name}/versions/1")[1]["subject"]
        assert ":.c:y" == api.get(f"{name}/versions/latest")[1]["subject"]
    for path in (
        "/schemas/ids/1?subject=:.c:x",
        "/schemas/ids/1?subject=%3A.c%3Ax",
        "/contexts/c/schemas/ids/1?subject=x",
    ):
        assert ":.c:y" == api.get(path)[1]["subject"]
    for path in ("/schemas?subjectPrefix=:.c:&aliases=true", "/contexts/.c/schemas?aliases=true"):
        assert [(":.c:y", [":.c:x"])] == [(one["subject"], one["aliases"]) for one in api.get(path)[1]]
    assert 2 == api.post("/contexts/.c/subjects/x/versions?force=true", {"schema": '"string"'})[1]["version"]
    assert [[1], [1, 2]] == [api.get(f"/subjects/{name}/versions")[1] for name in ("y", "%3A.c%3Ay")]


def test_aliases_are_followed_once():
    """The registry does not follow an alias of an alias, so two aliases that name each other do no harm."""
    assert "b" == aliased(state_with(a="b", b="c"), "a")
    assert "b" == aliased(state_with(a="b", b="a"), "a")


@pytest.fixture
def log():
    """Return the log under the registry."""
    return MemoryLog()


@pytest.fixture
def append(log):
    """Append records to the log directly, as another node would."""

    def write(*records):
        entries = list(log.read(-1))
        log.append(entries[-1].offset if entries else -1, list(records))

    return write


@pytest.fixture
def api(log, start):
    """Return a registry over that log."""
    return start(log)


def test_every_path_with_a_subject_follows_its_alias(api, append):
    """Reads, look-ups, registrations, checks and deletions use the target; configuration and mode do not."""
    api.placed("target", INT)
    append(alias("name", "target"))

    assert "target" == api.get("/subjects/name/versions/1")[1]["subject"]
    assert "target" == api.get("/subjects/name/versions/latest")[1]["subject"]
    assert "int" == api.get("/subjects/name/versions/1/schema")[1]
    assert [] == api.get("/subjects/name/versions/1/referencedby")[1]
    assert [1] == api.get("/subjects/name/versions")[1]
    assert "target" == api.post("/subjects/name", {"schema": INT})[1]["subject"]
    assert not api.post("/compatibility/subjects/name/versions", {"schema": '"string"'})[1]["is_compatible"]
    assert not api.post("/compatibility/subjects/name/versions/1", {"schema": '"string"'})[1]["is_compatible"]
    assert (2, 2) == api.placed("name", LONG)
    assert [1, 2] == api.get("/subjects/target/versions")[1]
    assert ["target"] == api.get("/subjects")[1]
    assert "target" == api.get("/schemas/ids/1?subject=name")[1]["subject"]
    assert 1 == api.delete("/subjects/name/versions/1")[1]
    assert [2] == api.delete("/subjects/name")[1]
    assert 40401 == api.get("/subjects/target/versions")[1]["error_code"]
    assert 40409 == api.get("/mode/name")[1]["error_code"]
    assert 40408 == api.get("/config/target")[1]["error_code"]


def test_alias_selects_the_context_of_an_id(api, append):
    """The `subject` parameter of a look-up by id resolves aliases, too."""
    api.placed("s", INT)
    api.placed(":.c:target", LONG)
    append(alias("name", ":.c:target"))
    api.get("/subjects")  # The cache serves answers by id, so make the node read the log.

    assert LONG == api.get("/schemas/ids/1?subject=name")[1]["schema"]
    assert "long" == api.get("/schemas/ids/1/schema?subject=name")[1]
    assert [":.c:target"] == api.get("/schemas/ids/1/subjects?subject=name")[1]


def test_kept_answers_follow_a_changed_alias(api, append):
    """Once a name becomes an alias, the registry no longer serves the answers that it cached under that name."""
    api.placed("name", INT)
    api.placed("a", LONG)
    api.placed("b", '"string"')

    def shown():
        texts = {api.get("/subjects/name/versions/1")[1]["schema"] for _ in range(2)}
        return texts | {api.get("/schemas/ids/1?subject=name")[1]["subject"]}

    assert {INT, "name"} == shown()
    for target, expected in (("a", LONG), ("b", '"string"'), (None, INT)):
        append(alias("name", target))
        api.get("/subjects")  # This request reads the log, as every answer that may change does.
        assert expected in shown()


def test_plain_subject_is_looked_up_in_every_context(api):
    """If the subject does not hold a schema, the registry finds it under the same name in another context."""
    api.placed("s", INT)
    api.placed(":.b:s", LONG)
    api.placed(":.c:other", '"string"')

    assert "s" == api.post("/subjects/s", {"schema": INT})[1]["subject"]
    assert ":.b:s" == api.post("/subjects/s", {"schema": LONG})[1]["subject"]
    assert ":.c:other" == api.post("/subjects/other", {"schema": '"string"'})[1]["subject"]
    assert 40403 == api.post("/subjects/s", {"schema": '"string"'})[1]["error_code"]
    assert 40401 == api.post("/subjects/none", {"schema": INT})[1]["error_code"]
    assert 40403 == api.post("/subjects/%3A.b%3As", {"schema": INT})[1]["error_code"]
    assert 42201 == api.post("/subjects/s", {"schema": "{"})[1]["error_code"]


def test_text_of_an_id_found_elsewhere_is_not_kept(api):
    """An id that the subject's own context assigns later takes precedence over the same id of another context."""
    api.placed(":.c:s", LONG)
    for _ in range(2):
        assert "long" == api.get("/schemas/ids/1/schema?subject=s")[1]
    api.placed("s", INT)

    assert "int" == api.get("/schemas/ids/1/schema?subject=s")[1]
