"""Contexts: the prefix form of paths, ids per context, and look-ups across contexts."""

import time

import pytest

from strata.registry.app import route_table
from strata.registry.core.errors import RegistryError
from strata.registry.http.context_prefix import within_context

ROUTES = route_table()

INT, LONG = '"int"', '"long"'

# method, path and query, path and query within the context
REWRITES = [
    ("GET", "/contexts/.c/subjects/s/versions", "", "/subjects/%3A.c%3As/versions", ""),
    ("POST", "/contexts/c/subjects/s", "normalize=true", "/subjects/%3A.c%3As", "normalize=true"),
    ("GET", "/contexts/.c/subjects/a%2Fb/versions/1", "", "/subjects/%3A.c%3Aa%2Fb/versions/1", ""),
    ("DELETE", "/contexts/.c/subjects/%3A.d%3As", "", "/subjects/%3A.d%3As", ""),
    ("POST", "/contexts/.c/compatibility/subjects/s/versions", "",
     "/compatibility/subjects/%3A.c%3As/versions", ""),
    ("GET", "/contexts/.c/config", "", "/config/%3A.c%3A", ""),
    ("GET", "/contexts/.c/config/s", "", "/config/%3A.c%3As", ""),
    ("GET", "/contexts/.c/mode", "", "/mode/%3A.c%3A", ""),
    ("GET", "/contexts/.c/mode/s", "force=true", "/mode/%3A.c%3As", "force=true"),
    ("GET", "/contexts/.c/schemas/ids/1", "", "/schemas/ids/1", "subject=%3A.c%3A"),
    ("GET", "/contexts/.c/schemas/ids/1", "subject=s", "/schemas/ids/1", "subject=%3A.c%3As"),
    ("GET", "/contexts/.c/schemas/ids/1/versions", "subject=%3A.d%3As",
     "/schemas/ids/1/versions", "subject=%3A.d%3As"),
    ("GET", "/contexts/.c/subjects", "", "/subjects", "subjectPrefix=%3A.c%3A"),
    ("GET", "/contexts/.c/subjects", "subjectPrefix=a&deleted=true",
     "/subjects", "deleted=true&subjectPrefix=%3A.c%3Aa"),
    ("GET", "/contexts/.c/schemas", "", "/schemas", "subjectPrefix=%3A.c%3A"),
    ("GET", "/contexts/.c/schemas/types", "", "/schemas/types", ""),
    ("GET", "/contexts/./subjects/s", "", "/subjects/s", ""),
    ("GET", "/contexts/./config", "", "/config", ""),
    ("GET", "/contexts/:.c:/config", "", "/config/%3A.c%3A", ""),
    ("GET", "/contexts/%3A.c%3A/mode/s", "", "/mode/%3A.c%3As", ""),
    ("GET", "/contexts/:.c/subjects", "", "/subjects", "subjectPrefix=%3A.c%3A"),
    ("GET", "/contexts/:.:/subjects/s", "", "/subjects/s", ""),
    ("POST", "/contexts/.c/associations", "", "/associations", "context=.c"),
    ("PUT", "/contexts/c/associations/resources/r", "dryRun=true",
     "/associations/resources/r", "dryRun=true&context=.c"),
    ("POST", "/contexts/c/associations:batchMutate", "", "/associations:batchMutate", "context=.c"),
    ("GET", "/contexts/c/associations/subjects/s", "", "/associations/subjects/%3A.c%3As", ""),
    ("GET", "/contexts/c/associations/resources/-/t", "", "/associations/resources/-/t", ""),
    ("GET", "/contexts", "", "/contexts", ""),
    ("GET", "/contexts/.c", "", "/contexts/.c", ""),
    ("GET", "/subjects/s", "deleted=true", "/subjects/s", "deleted=true"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "query", "path_within", "query_within"), REWRITES)
def test_path_within_a_context(method, path, query, path_within, query_within):
    """A path under `/contexts/{ctx}/` is equivalent to a plain path with qualified names."""
    assert (path_within, query_within) == within_context(path, query, ROUTES, method)


def test_context_with_a_colon_is_refused():
    """A context name has no colon, which would end the context inside a qualified subject."""
    with pytest.raises(RegistryError, match="colon"):
        within_context("/contexts/a%3Ab/subjects", "", ROUTES, "GET")


def test_prefix_form_and_qualified_subject_are_one(api):
    """Both forms of a name lead to the same schema; each context assigns its own ids from 1."""
    api.placed("s", LONG)
    status, answer = api.post("/contexts/.c/subjects/s/versions", {"schema": INT})

    assert (200, 1) == (status, answer["id"])
    assert INT == api.get("/subjects/%3A.c%3As/versions/1")[1]["schema"]
    assert INT == api.get("/contexts/c/schemas/ids/1")[1]["schema"]
    assert LONG == api.get("/schemas/ids/1")[1]["schema"]
    assert [":.c:s"] == api.get("/contexts/.c/subjects")[1]
    assert ["s"] == api.get("/contexts/./subjects")[1]


def test_settings_of_a_context(api):
    """A context's level applies to subjects without their own."""
    api.put("/contexts/.c/config", {"compatibility": "NONE"})
    api.post("/contexts/.c/subjects/s/versions", {"schema": '"string"'})

    assert 200 == api.post("/contexts/.c/subjects/s/versions", {"schema": INT})[0]
    assert {"compatibilityLevel": "BACKWARD"} == api.get("/config")[1]
    assert {"compatibilityLevel": "NONE"} == api.get("/config/%3A.c%3As?defaultToGlobal=true")[1]


def test_list_of_contexts(api):
    """The default context always exists."""
    api.placed(":.b:s", INT)
    api.placed(":.a:s", INT)

    assert [".", ".a", ".b"] == api.get("/contexts")[1]
    assert [".b"] == api.get("/contexts?contextPrefix=.b")[1]
    assert [".a"] == api.get("/contexts?offset=1&limit=1")[1]


def test_deletion_of_a_context(api):
    """Only an empty context can be deleted, with its settings; its ids are never assigned again."""
    api.placed(":.c:s", INT)
    api.put("/contexts/.c/config", {"compatibility": "NONE"})
    api.put("/contexts/.c/mode", {"mode": "READWRITE"})
    full = {"error_code": 42211, "message": "The specified context '.c' is not empty."}

    assert (422, full) == api.delete("/contexts/.c")
    api.delete("/subjects/%3A.c%3As")
    assert (422, full) == api.delete("/contexts/c")
    api.delete("/subjects/%3A.c%3As?permanent=true")
    assert (204, "") == api.delete("/contexts/c")
    assert "content-length" not in api.headers
    assert ["."] == api.get("/contexts")[1]
    assert 40408 == api.get("/config/%3A.c%3A")[1]["error_code"]
    assert 40409 == api.get("/mode/%3A.c%3A")[1]["error_code"]
    assert (2, 1) == api.placed(":.c:s", LONG)
    assert [".", ".c"] == api.get("/contexts")[1]


def test_contexts_that_cannot_go(api):
    """The default context stays, deleting an unknown one succeeds, READONLY refuses, and a colon is invalid."""
    api.put("/contexts/.r/mode", {"mode": "READONLY"})

    assert (204, "") == api.delete("/contexts/.")
    assert ["."] == api.get("/contexts")[1]
    assert (204, "") == api.delete("/contexts/none")
    assert 42205 == api.delete("/contexts/.r")[1]["error_code"]
    assert 400 == api.delete("/contexts/a%3Ab")[1]["error_code"]


def test_guid_is_the_same_in_every_context(api):
    """A GUID leads to the schema, and to its id in each context that holds it."""
    api.placed("other", LONG)
    api.placed("s", INT)
    api.placed(":.c:s", INT)
    guid = api.get("/subjects/s/versions/1")[1]["guid"]

    for form in (guid, guid.replace("-", ""), guid.upper()):
        assert INT == api.get(f"/schemas/guids/{form}")[1]["schema"]
    assert [{"context": ".", "id": 2}, {"context": ".c", "id": 1}] == api.get(f"/schemas/guids/{guid}/ids")[1]


def test_answer_by_guid_is_that_of_the_first_context(api):
    """A look-up by GUID notices when a context that takes precedence appears or disappears."""
    api.placed(":.z:s", INT)
    guid = api.get("/subjects/:.z:s/versions/1")[1]["guid"]
    later = api.get(f"/schemas/guids/{guid}")[1]["ts"]
    time.sleep(0.002)  # The timestamps of the records must differ.
    api.placed(":.a:s", INT)
    first = api.get("/subjects/:.a:s/versions/1")[1]["ts"]

    assert later != first
    assert first == api.get(f"/schemas/guids/{guid}")[1]["ts"]
    api.delete("/subjects/:.a:s")
    api.delete("/subjects/:.a:s?permanent=true")
    assert later == api.get(f"/schemas/guids/{guid}")[1]["ts"]


@pytest.mark.parametrize("guid", ["00000000-0000-0000-0000-000000000000", "no-guid", "%FF"])
def test_unknown_guid(api, guid):
    """An unknown or invalid GUID is 40403, and its list of ids is empty."""
    assert 40403 == api.get(f"/schemas/guids/{guid}")[1]["error_code"]
    assert (200, []) == api.get(f"/schemas/guids/{guid}/ids")


def test_list_of_schemas(api):
    """`/schemas` sorts by subject and version, and filters by prefix, latest, page and deletion."""
    api.put("/config", {"compatibility": "NONE"})
    for subject, text in (("b", INT), ("a", INT), ("a", LONG), (":.c:a", INT)):
        api.placed(subject, text)
    api.delete("/subjects/b")

    def places(query=""):
        return [(entry["subject"], entry["version"]) for entry in api.get(f"/schemas{query}")[1]]

    assert [("a", 1), ("a", 2)] == places()
    assert [("a", 1), ("a", 2), ("b", 1)] == places("?deleted=true")
    assert [("a", 2)] == places("?latestOnly=true")
    assert [(":.c:a", 1), ("a", 1), ("a", 2)] == places("?subjectPrefix=%3A*%3A")
    assert [("a", 2)] == places("?offset=1&limit=1")
    assert [("a", 1), ("a", 2)] == places("?limit=0")


def test_list_of_schemas_by_rule_and_with_aliases(api):
    """`ruleType` selects versions with a rule of that type in any phase; `aliases` lists each subject's aliases."""
    rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
    api.placed("plain", LONG)
    api.placed("ruled", INT, ruleSet={"domainRules": [rule]})
    for name in ("nick", "by"):
        api.put(f"/config/{name}", {"alias": "ruled"})

    assert ["ruled"] == [entry["subject"] for entry in api.get("/schemas?ruleType=CEL")[1]]
    assert [] == api.get("/schemas?ruleType=ENCRYPT")[1]
    listed = {entry["subject"]: entry.get("aliases") for entry in api.get("/schemas?aliases=true")[1]}
    assert {"plain": None, "ruled": ["by", "nick"]} == listed
    assert all("aliases" not in entry for entry in api.get("/schemas")[1])


SPELLINGS = ["%3A.c%3A", "%3A.c", ":.c"]


@pytest.mark.parametrize("written", SPELLINGS)
@pytest.mark.parametrize("read", SPELLINGS)
def test_a_context_without_its_closing_colon(api, written, read):
    """`:.c` equals `:.c:` in configurations and modes, and settings there apply to the context."""
    api.put(f"/config/{written}", {"compatibility": "FULL"})
    api.put(f"/mode/{written}", {"mode": "READONLY"})

    assert {"compatibilityLevel": "FULL"} == api.get(f"/config/{read}")[1]
    assert {"compatibilityLevel": "FULL"} == api.get("/config/%3A.c%3As?defaultToGlobal=true")[1]
    assert {"mode": "READONLY"} == api.get(f"/mode/{read}")[1]
    assert 42205 == api.register(":.c:s", INT)[1]["error_code"]
    assert {"mode": "READONLY"} == api.delete(f"/mode/{read}")[1]
    assert {"compatibilityLevel": "FULL"} == api.delete(f"/config/{read}")[1]
    assert 200 == api.register(":.c:s", INT)[0]


NAMES_OF_A_CONTEXT = [
    pytest.param("GET", "/subjects/:.c/versions", (200, [1]), id="the empty subject of a context"),
    pytest.param("GET", "/subjects?subjectPrefix=:.c", (200, [":.c:", ":.c:s"]), id="a prefix"),
    pytest.param("GET", "/schemas/ids/1/subjects?subject=:.c", (200, [":.c:", ":.c:s"]), id="the context of an id"),
    pytest.param("GET", "/contexts/:.c:/subjects/s/versions", (200, [1]), id="a path within a context"),
    pytest.param("GET", "/contexts/:.c/subjects/s/versions", (200, [1]), id="a path within, without the colon"),
    pytest.param("GET", "/contexts/:.:/subjects/s/versions", (200, [1, 2]), id="a path within the default context"),
    pytest.param("GET", "/subjects/:.:s/versions", (200, [1, 2]), id="a subject of the default context"),
]


@pytest.mark.parametrize(("method", "path", "expected"), NAMES_OF_A_CONTEXT)
def test_spellings_of_a_context(api, method, path, expected):
    """Wherever a path takes a subject, it takes a context with or without its closing colon."""
    for subject, text in (("s", INT), ("s", LONG), (":.c:", INT), (":.c:s", INT)):
        api.placed(subject, text, "?force=true")

    assert expected == api.call(method, path)


@pytest.mark.parametrize("mode", ["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"])
@pytest.mark.parametrize("scope", ["%3A.__GLOBAL%3A", "%3A.__GLOBAL"])
def test_modes_of_the_global_context(api, scope, mode):
    """The global context accepts every mode under both spellings, and all others inherit it."""
    assert (200, {"mode": mode}) == api.put(f"/mode/{scope}", {"mode": mode})
    assert {"mode": mode} == api.get("/mode/%3A.__GLOBAL%3A")[1]
    assert {"mode": mode} == api.get("/mode/%3A.c%3As?defaultToGlobal=true")[1]
    assert (200, {"mode": mode}) == api.delete(f"/mode/{scope}")


UNWRITABLE = [
    pytest.param(":.__GLOBAL:s", id="a subject of the global context"),
    pytest.param(":.__GLOBAL:", id="the global context itself"),
    pytest.param(":.__GLOBAL", id="the global context without its colon"),
    pytest.param("__GLOBAL", id="the name of the global context"),
    pytest.param("__EMPTY", id="the name of the empty subject"),
    pytest.param("a\n", id="a control character"),
]


@pytest.mark.parametrize("subject", UNWRITABLE)
def test_subjects_that_nothing_can_be_registered_under(api, subject):
    """The answer is 42208, and nothing is written."""
    assert 42208 == api.register(subject, INT)[1]["error_code"]
    assert [] == api.get("/subjects")[1]


@pytest.mark.parametrize("subject", ["*", ":.c:*"])
def test_a_star_is_an_ordinary_subject(api, subject):
    """The subject `*` takes schemas, a mode and a configuration, and these are its own."""
    api.placed(subject, INT)
    api.placed("other", INT)

    assert (200, {"mode": "READONLY"}) == api.put(f"/mode/{subject}", {"mode": "READONLY"})
    assert 42205 == api.put(f"/config/{subject}", {"compatibility": "NONE"})[1]["error_code"]
    assert (200, {"compatibility": "NONE"}) == api.put("/config/other", {"compatibility": "NONE"})
    assert {subject, "other"} == set(api.get("/subjects?subjectPrefix=:*:")[1])


def test_settings_of_a_name_in_the_global_context(api):
    """A name in the global context takes a mode and a configuration, which apply to no other name."""
    assert (200, {"compatibility": "NONE"}) == api.put("/config/:.__GLOBAL:s", {"compatibility": "NONE"})
    assert (200, {"mode": "READONLY"}) == api.put("/mode/:.__GLOBAL:t", {"mode": "READONLY"})
    assert {"compatibilityLevel": "NONE"} == api.get("/config/:.__GLOBAL:s")[1]
    assert {"compatibilityLevel": "BACKWARD"} == api.get("/config/s?defaultToGlobal=true")[1]
    api.placed("t", INT)
