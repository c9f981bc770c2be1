"""Rarely used requests: `latest` of deleted versions, same names across contexts, odd scalars."""

import json

import pytest

from strata.compat.levels import Level
from strata.registry.core.decide.register import Rules, register
from strata.registry.core.schema_request import SchemaRequest
from strata.storage.log import Entry
from strata.storage.record_json import encode
from strata.storage.records import MAX_VERSION, ModeKey, SchemaKey, SchemaValue, Subject
from strata.storage.state import State

INT, LONG, STRING = '"int"', '"long"', '"string"'


def code(answer):
    """Return the error code of an answer."""
    return answer[1]["error_code"]


@pytest.fixture
def three(api):
    """Return a registry with versions 1 and 2 of a subject live, and 3 soft-deleted."""
    api.put("/config", {"compatibility": "NONE"})
    for text in (INT, LONG, STRING):
        api.placed("s", text)
    api.delete("/subjects/s/versions/3")
    return api


@pytest.mark.parametrize("version", ["latest", "-1", "LATEST"])
def test_latest_is_never_a_soft_deleted_version(three, version):
    """`latest` is never a soft-deleted version, even with `deleted` or in a permanent deletion."""
    path = f"/subjects/s/versions/{version}"

    assert 2 == three.get(f"{path}?deleted=true")[1]["version"]
    assert "long" == three.get(f"{path}/schema?deleted=true")[1]
    assert 40407 == code(three.delete(f"{path}?permanent=true"))
    assert [1, 2, 3] == three.get("/subjects/s/versions?deleted=true")[1]


def test_latest_of_a_soft_deleted_subject(three):
    """`latest` of a soft-deleted subject is 40401 for a plain read, and 40402 with `deleted`."""
    three.delete("/subjects/s")
    message = {"error_code": 40402, "message": "Version -1 not found."}

    assert 40401 == code(three.get("/subjects/s/versions/latest"))
    assert (404, message) == three.get("/subjects/s/versions/latest?deleted=true")
    assert (404, message) == three.delete("/subjects/s/versions/latest")
    assert (404, message) == three.delete("/subjects/s/versions/latest?permanent=true")
    assert 40402 == code(three.get("/subjects/s/versions/latest/referencedby"))
    assert [1, 2, 3] == three.get("/subjects/s/versions?deleted=true")[1]


PARTS = [
    pytest.param("limit=0", [1, 2], id="a limit of 0 is none"),
    pytest.param("limit=-7", [1, 2], id="a limit below 0 is none"),
    pytest.param("limit=", [1, 2], id="an empty limit is none"),
    pytest.param("limit=99999999999", [1, 2], id="a huge limit"),
    pytest.param("offset=", [1, 2], id="an empty offset is 0"),
    pytest.param("offset=-1", [1, 2], id="an offset below 0 is 0"),
    pytest.param("offset=99999999999", [], id="a huge offset"),
    pytest.param("offset=1&limit=1", [2], id="a part"),
    pytest.param("deletedOnly=true&deleted=true", [3], id="deletedOnly wins"),
    pytest.param("deletedOnly=true", [3], id="deleted ones only"),
    pytest.param("deletedOnly=true&deletedAsNegative=true", [1, 2, -3], id="deletedAsNegative lists every version"),
]


WHOLLY_DELETED = [
    pytest.param("deleted=true", [1], id="deleted"),
    pytest.param("deletedOnly=true", [1], id="deletedOnly"),
    pytest.param("deletedOnly=true&deletedAsNegative=true", [-1], id="deletedOnly, as negative"),
    pytest.param("deleted=true&deletedAsNegative=true", [-1], id="deleted, as negative"),
    pytest.param("deletedAsNegative=true", 40401, id="deletedAsNegative finds no subject"),
    pytest.param("", 40401, id="no flag"),
]


@pytest.mark.parametrize(("query", "expected"), WHOLLY_DELETED)
def test_versions_of_a_deleted_subject(shared_api, query, expected):
    """`deleted` and `deletedOnly` list a soft-deleted subject; `deletedAsNegative` does not."""
    shared_api.placed("whole", INT)
    shared_api.delete("/subjects/whole")
    answer = shared_api.get(f"/subjects/whole/versions?{query}")[1]

    assert expected == (answer["error_code"] if isinstance(answer, dict) else [n // abs(n) for n in answer])


def test_no_deleted_versions_are_an_empty_list(api):
    """`deletedOnly` lists nothing for a subject whose versions are all live."""
    api.placed("s", INT)

    assert [(200, []), (200, [1])] == [
        api.get(f"/subjects/s/versions?deletedOnly=true{more}") for more in ("", "&deletedAsNegative=true")
    ]


@pytest.mark.parametrize(("query", "expected"), PARTS)
def test_parts_of_a_list(three, query, expected):
    """`limit` and `offset` select part of a list of versions."""
    assert (200, expected) == three.get(f"/subjects/s/versions?{query}")


@pytest.mark.parametrize(
    "path", ["/subjects", "/contexts", "/schemas/ids/1/subjects", "/schemas/ids/1/versions", "/schemas"]
)
def test_limit_of_nothing_is_none(three, path):
    """A limit of 0 limits no list."""
    assert three.get(path) == three.get(f"{path}?limit=0")
    assert 1 <= len(three.get(path)[1])


# --- the same name in other contexts


def test_version_of_a_namesake(api):
    """If a plain subject has no such version, the registry looks for the same name in other contexts."""
    api.placed("s", INT)
    api.placed(":.b:s", LONG)
    api.placed(":.b:s", LONG, metadata={"properties": {"a": "b"}})
    api.placed(":.c:only", STRING)

    assert INT == api.get("/subjects/s/versions/1")[1]["schema"]
    assert (":.b:s", 2) == tuple(api.get("/subjects/s/versions/2")[1][name] for name in ("subject", "version"))
    assert ":.c:only" == api.get("/subjects/only/versions/latest")[1]["subject"]
    assert "string" == api.get("/subjects/only/versions/1/schema")[1]
    assert (200, []) == api.get("/subjects/only/versions/1/referencedby")
    assert 40402 == code(api.get("/subjects/s/versions/3"))
    assert 40401 == code(api.get("/subjects/none/versions/1"))
    assert 40401 == code(api.get("/subjects/%3A.b%3Aonly/versions/1"))
    assert 40401 == code(api.get("/subjects/only/versions"))
    assert 40401 == code(api.delete("/subjects/only/versions/1"))


def test_id_of_a_namesake(api):
    """A plain `subject` finds an id in itself, then in the same name of other contexts, then in other subjects."""
    api.placed("other", INT)
    api.placed(":.c:s", LONG)
    api.placed(":.c:t", STRING)

    assert INT == api.get("/schemas/ids/1")[1]["schema"]
    assert (LONG, ":.c:s") == tuple(api.get("/schemas/ids/1?subject=s")[1][name] for name in ("schema", "subject"))
    assert "long" == api.get("/schemas/ids/1/schema?subject=s")[1]
    assert 2 == api.get("/schemas/ids/1?subject=s&fetchMaxId=true")[1]["maxId"]
    assert [":.c:s"] == api.get("/schemas/ids/1/subjects?subject=s")[1]
    assert INT == api.get("/schemas/ids/1?subject=stranger")[1]["schema"]
    assert 40403 == code(api.get("/schemas/ids/1?subject=%3A.c%3Astranger"))  # a qualified subject must use the id
    assert 40403 == code(api.get("/schemas/ids/1/versions?subject=%3A.c%3Astranger"))
    assert LONG == api.get("/schemas/ids/1?subject=%3A.c")[1]["schema"]
    assert STRING == api.get("/schemas/ids/2?subject=t")[1]["schema"]
    assert 40403 == code(api.get("/schemas/ids/2?subject=s"))  # no version of s has it, nor another subject of "."
    api.placed("s", INT)
    assert (INT, "s") == tuple(api.get("/schemas/ids/1?subject=s")[1][name] for name in ("schema", "subject"))


def test_an_id_always_names_a_version(api):
    """With or without `subject`, the answer names a subject and version that use the id."""
    api.placed("s", INT)

    for query in ("", "?subject=", "?subject=s", "?subject=stranger"):
        assert ("s", 1) == tuple(api.get(f"/schemas/ids/1{query}")[1][name] for name in ("subject", "version"))


def test_root_of_a_context(api):
    """A base URL may end in a context: its root answers as the root of the registry does."""
    for path in ("/contexts/.c", "/contexts/.c/"):
        assert (200, {}) == api.get(path)
        assert (200, {}) == api.post(path, {})
    assert 400 == code(api.get("/contexts/a%3Ab/"))


def test_list_of_schemas_by_the_names_that_stand_for_them(api):
    """With `aliases`, a prefix also finds the subjects whose aliases match it."""
    for subject in ("target", "nick-self", ":.c:target"):
        api.placed(subject, INT)
    for name, target in (("nick-a", "target"), ("nick-b", ":.c:target"), ("by", "target")):
        api.put(f"/config/{name}", {"alias": target})

    def listed(query):
        return [(entry["subject"], entry.get("aliases")) for entry in api.get(f"/schemas?subjectPrefix=nick{query}")[1]]

    assert [("nick-self", None)] == listed("")
    assert [(":.c:target", ["nick-b"]), ("nick-self", None), ("target", ["nick-a"])] == listed("&aliases=true")


@pytest.mark.parametrize("target", ["a\u0001b", "__GLOBAL"])
def test_alias_of_what_is_no_subject(api, target):
    """The registry refuses a registration under an alias of an invalid subject."""
    api.put("/config/name", {"alias": target})

    assert 42208 == code(api.register("name", INT))
    assert (200, []) == api.get("/subjects")


# --- bodies


def test_look_up_of_nothing(api):
    """A look-up of a blank text finds no version."""
    api.placed("s", INT)

    for body in ({}, {"schema": " "}, {"schema": None, "schemaType": "PROTOBUF"}):
        assert 40403 == code(api.post("/subjects/s", body))
        assert 40401 == code(api.post("/subjects/none", body))


def test_metadata_of_versions_that_have_none(api):
    """A query without properties finds a version with or without metadata."""
    api.placed("s", INT)

    assert 40403 == code(api.get("/subjects/s/metadata"))


SCALARS = [
    pytest.param({"version": "1"}, 200, id="a version in quotes"),
    pytest.param({"version": 1.0}, 200, id="a version with a point"),
    pytest.param({"version": 1.5}, 400, id="half a version"),
    pytest.param({"version": "one"}, 400, id="a word as version"),
    pytest.param({"id": "-1"}, 200, id="an id in quotes"),
    pytest.param({"propagateSchemaTags": "true"}, 200, id="true in quotes"),
    pytest.param({"propagateSchemaTags": "yes"}, 400, id="a word that is not a truth value"),
    pytest.param({"schemaType": 7}, 42201, id="a type that is a number"),
    pytest.param({"schema": 5}, 42201, id="a schema that is a number"),
    pytest.param({"schema": True}, 42201, id="a schema that is a truth value"),
    pytest.param({"schema": []}, 400, id="a schema that is a list"),
    pytest.param({"references": {}}, 400, id="references that are an object"),
    pytest.param({"references": [None]}, 400, id="a reference that is null"),
    pytest.param({"metadata": []}, 400, id="metadata that is a list"),
    pytest.param({"version": [1]}, 400, id="a version that is a list"),
]


@pytest.mark.parametrize(("part", "expected"), SCALARS)
def test_scalars_of_another_type(api, part, expected):
    """A quoted number or boolean counts as one, and either counts as text; other values are refused."""
    status, answer = api.post("/subjects/s/versions", {"schema": INT, **part})

    assert expected == answer.get("error_code", status)


def test_properties_that_are_no_texts(api):
    """Metadata properties that are numbers or booleans are stored as text."""
    api.placed("s", INT, metadata={"properties": {"major": 1, "ratio": 0.5, "pii": True}, "sensitive": [7]})

    assert {"properties": {"major": "1", "pii": "true", "ratio": "0.5"}, "sensitive": ["7"]} == api.get(
        "/subjects/s/versions/1"
    )[1]["metadata"]


def test_body_with_a_byte_order_mark(api):
    """The registry ignores a byte order mark before a body."""
    assert 200 == api.post("/subjects/s/versions", b"\xef\xbb\xbf" + json.dumps({"schema": INT}).encode())[0]


def test_registration_answers_in_another_form(api):
    """`format` of a registration applies to the text in the answer, not to the stored text."""
    api.placed("inner", '{"type":"record","name":"n.I","fields":[]}')
    body = {"schema": '"n.I"', "references": [{"name": "n.I", "subject": "inner", "version": 1}]}
    whole = '{"type":"record","name":"I","namespace":"n","fields":[]}'

    for _ in range(2):
        assert whole == api.post("/subjects/s/versions?format=resolved", body)[1]["schema"]
    assert '"n.I"' == api.get("/subjects/s/versions/1")[1]["schema"]


# --- data from another registry


def test_import_of_one_schema_under_two_versions(api):
    """A registration gets the version that the caller names, even if the schema has another one already."""
    api.put("/mode/s", {"mode": "IMPORT"})

    assert [(9, 4), (9, 4)] == [api.placed("s", INT, id=9, version=4) for _ in range(2)]
    assert [4, 4] == [api.get("/schemas/ids/9?subject=s")[1]["version"] for _ in range(2)]  # the second from the cache
    assert [(9, 6), (9, 4)] == [api.placed("s", INT, id=9, version=v) for v in (6, 4)]
    assert (200, [4, 6]) == api.get("/subjects/s/versions")
    assert (9, 6) == api.placed("s", INT, id=9)
    assert 4 == api.get("/schemas/ids/9?subject=s")[1]["version"]  # the version written last
    api.delete("/mode/s")
    assert 42205 == code(api.register("s", INT, id=9, version=7))
    assert 42205 == code(api.register("s", INT, id=9, version=6))
    assert (9, 6) == api.placed("s", INT, id=9)


SECOND_IDS = [
    pytest.param("t", INT, {"id": 12}, (12, 1), id="in another subject"),
    pytest.param("s", INT, {"id": 13, "version": 7}, (13, 7), id="as another version of the subject"),
    pytest.param("s", INT, {"id": 14, "version": 3}, (14, 3), id="in the place of a version"),
    pytest.param("s", LONG, {"id": 9}, 42205, id="another schema under an id that is taken"),
    pytest.param("t", "{", {"id": 9}, 42201, id="no schema"),
]


@pytest.mark.parametrize(("subject", "text", "body", "expected"), SECOND_IDS)
def test_import_under_a_second_id(api, subject, text, body, expected):
    """In IMPORT a schema may have several ids; later registrations get the lowest."""
    api.put("/mode", {"mode": "IMPORT"})
    api.placed("s", INT, id=9, version=3)
    status, answer = api.register(subject, text, **body)
    taken = status == 200 and (answer["id"], answer["version"])

    assert expected == (taken or answer["error_code"])
    api.delete("/mode")
    left = 14 if expected == (14, 3) else 9
    assert (left, 1) == api.placed("new", INT)


def test_import_is_not_normalized(api):
    """An import keeps its text and the order of its references, even with `normalize`."""
    text = '{"type":"object","title":"b","properties":{"x":{"type":"integer"}}}'
    api.put("/config/s", {"normalize": True})
    api.put("/mode/s", {"mode": "IMPORT"})
    body = {"schema": text, "schemaType": "JSON", "id": 5}

    assert text == api.post("/subjects/s/versions?normalize=true", body)[1]["schema"]


# --- methods


METHODS = [
    pytest.param("PUT", "/subjects", "GET, HEAD, OPTIONS", id="a list"),
    pytest.param("PUT", "/subjects/s", "DELETE, OPTIONS, POST", id="a path of several routes"),
    pytest.param("POST", "/config", "DELETE, GET, HEAD, OPTIONS, PUT", id="settings"),
    pytest.param("DELETE", "/subjects", "GET, HEAD, OPTIONS", id="deletion of a list"),
    pytest.param("POST", "/schemas/ids/1", "GET, HEAD, OPTIONS", id="an id"),
]


@pytest.mark.parametrize(("method", "path", "allowed"), METHODS)
def test_methods_that_a_path_has(shared_api, method, path, allowed):
    """405 and OPTIONS list the methods of a route."""
    status, answer = shared_api.call(method, path)

    assert (405, {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}) == (status, answer)
    assert allowed == shared_api.headers["allow"]
    assert (200, "") == shared_api.call("OPTIONS", path)
    assert allowed == shared_api.headers["allow"]


def test_options_of_an_unknown_path(shared_api):
    """An unknown path has no methods."""
    assert 404 == code(shared_api.call("OPTIONS", "/none"))


# --- the highest numbers


def _state(*records):
    return State().apply_all(Entry(n, 0, record.key, record.value) for n, record in enumerate(records))


LAST = SchemaValue(Subject("s"), MAX_VERSION, 1, INT)
BEYOND = [
    pytest.param(
        [encode(ModeKey(Subject("s")), "IMPORT")], {"version": MAX_VERSION + 1, "schema_id": 9}, id="imported"
    ),
    pytest.param(
        [encode(SchemaKey(Subject("s"), MAX_VERSION), LAST), encode(ModeKey(Subject("s")), "IMPORT")],
        {"schema_id": 9},
        id="imported after the last",
    ),
    pytest.param([encode(SchemaKey(Subject("s"), MAX_VERSION), LAST)], {}, id="registered after the last"),
]


@pytest.mark.parametrize(("records", "asked"), BEYOND)
def test_versions_end_somewhere(records, asked):
    """A version that no log can hold is refused, and never acknowledged."""
    with pytest.raises(Exception, match=f"The version {MAX_VERSION + 1} of subject s is out of range") as refusal:
        register(_state(*records), Subject("s"), SchemaRequest(LONG, **asked), Rules(Level.BACKWARD))
    assert 42201 == refusal.value.code


ORDERS = [
    pytest.param("JSON", '{"type":"object","title":"t"}', '{"title":"t","type":"object"}', id="keys of a JSON schema"),
    pytest.param(
        "PROTOBUF",
        'syntax = "proto3";\nmessage M { int32 b = 2; int32 a = 1; }',
        'syntax = "proto3";\nmessage M { int32 a = 1; int32 b = 2; }',
        id="fields of a message",
    ),
    pytest.param(
        "PROTOBUF",
        'syntax = "proto3";\noption java_package = "p";\noption go_package = "g";\nmessage M {}',
        'syntax = "proto3";\noption go_package = "g";\noption java_package = "p";\nmessage M {}',
        id="options of a file",
    ),
    pytest.param(
        "PROTOBUF",
        'syntax = "proto3";\nimport "google/protobuf/empty.proto";\nimport "google/protobuf/any.proto";\nmessage M {}',
        'syntax = "proto3";\nimport "google/protobuf/any.proto";\nimport "google/protobuf/empty.proto";\nmessage M {}',
        id="imports",
    ),
]


@pytest.mark.parametrize(("schema_type", "one", "normal"), ORDERS)
def test_texts_that_differ_in_order_alone(api, schema_type, one, normal):
    """Without `normalize` these are two schemas, and only a look-up with `normalize` finds normalized text."""

    def look_up(text, query=""):
        return api.post(f"/subjects/s{query}", {"schema": text, "schemaType": schema_type})[1].get("error_code")

    assert (1, 1) == api.placed("s", one, "?normalize=true", schemaType=schema_type)
    assert [40403, None, None] == [look_up(one), look_up(normal), look_up(one, "?normalize=true")]
    assert (2, 2) == api.placed("s", one, schemaType=schema_type)
    assert (1, 1) == api.placed("s", one, "?normalize=true", schemaType=schema_type)


def test_look_up_of_what_was_normalized(api):
    """A look-up does not retry with the normalized text."""
    loose = '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1}]}'
    api.post("/subjects/s/versions?normalize=true", {"schema": loose})

    assert 1.0 == api.get("/subjects/s/versions/1/schema")[1]["fields"][0]["default"]
    assert 40403 == code(api.post("/subjects/s", {"schema": loose}))
    assert (1, 1) == tuple(api.post("/subjects/s?normalize=true", {"schema": loose})[1][k] for k in ("id", "version"))
    assert 40403 == code(api.post("/subjects/s", {"schema": STRING}))
    assert 40401 == code(api.post("/subjects/none", {"schema": loose}))
    assert 42201 == code(api.post("/subjects/s", {"schema": "{"}))
