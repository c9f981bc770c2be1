"""`/subjects` and `/schemas/ids` over HTTP: registration, look-up, versions, deletion, and their error codes."""

import base64
import json
import threading
from urllib.parse import quote

import pytest
from google.protobuf import descriptor_pb2

INT, LONG, STRING = '"int"', '"long"', '"string"'


def record(*fields, name="R"):
    """Return the text of a record schema with some fields."""
    return json.dumps({"type": "record", "name": name, "fields": list(fields)}, separators=(",", ":"))


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "int"}
B_DEFAULT = {"name": "b", "type": "int", "default": 0}


def code(answer):
    """Return the error code of an answer."""
    return answer[1]["error_code"]


def test_a_descriptor_is_answered_with_a_descriptor(api):
    """A client that posts a Protobuf schema as a descriptor gets one back; the registry stores text."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    file.message_type.add(name="M")
    descriptor = base64.b64encode(file.SerializeToString()).decode()
    body = {"schemaType": "PROTOBUF", "schema": descriptor}

    posted = [api.post("/subjects/s/versions", body), api.post("/subjects/s/versions", body)]
    status, found = api.post("/subjects/s", body)

    assert [(200, descriptor)] * 2 == [(status, answer["schema"]) for status, answer in posted]
    assert 200 == status
    read = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(found["schema"]))
    assert ["M"] == [message.name for message in read.message_type]
    assert 'syntax = "proto3";\n\nmessage M {}\n' == api.get("/subjects/s/versions/1")[1]["schema"]


def test_registration_answers_id_first(api):
    """A new schema gets id 1 and version 1; the answer holds them, its GUID, type and text, `id` first."""
    status, answer = api.register("s", '{"type": "int"}')

    assert 200 == status
    assert ["id", "version", "guid", "schemaType", "schema"] == list(answer)
    assert {
        "id": 1,
        "version": 1,
        "schemaType": "AVRO",
        "schema": INT,
    } == {name: value for name, value in answer.items() if name != "guid"}
    assert len("00010203-0405-0607-0809-0a0b0c0d0e0f") == len(answer["guid"])


def test_registering_again_answers_the_old_place(api):
    """The same schema keeps its id and version; the answer for an equivalent text shows the stored one."""
    first = api.register("s", '{"type":"int","x":1,"y":2}')
    again = api.register("s", ' { "type" : "int", "x": 1, "y":2 } ')
    alike = api.register("s", '{"type":"int","y":2,"x":1}')[1]

    assert first == again
    assert {**first[1], "ts": alike["ts"], "deleted": False} == alike


def test_one_schema_in_two_subjects_has_one_id(api):
    """An id names one content in all subjects that hold it."""
    assert (1, 1) == api.placed("a", INT)
    assert (1, 1) == api.placed("b", INT)
    assert (200, ["a", "b"]) == api.get("/schemas/ids/1/subjects")
    assert [{"subject": "a", "version": 1}, {"subject": "b", "version": 1}] == api.get("/schemas/ids/1/versions")[1]


def test_incompatible_schema_is_refused_with_advice(api):
    """409 / 40901 lists the findings in the reference's words, then says what would be accepted."""
    api.placed("s", record(A))
    status, answer = api.register("s", record(A, B))

    assert (409, 40901) == (status, answer["error_code"])
    assert answer["message"].startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", details: '
        "[{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the new "
        "schema has no default value and is missing in the old schema', additionalInfo:'b'}, {oldSchemaVersion: 1}, "
    )
    assert "{validateFields: 'false', compatibility: 'BACKWARD'}]" in answer["message"]
    assert "default" in answer["message"].rpartition("}]")[2]
    assert (200, [1]) == api.get("/subjects/s/versions")


def test_force_skips_the_check(api):
    """`force=true` skips the compatibility check."""
    api.placed("s", record(A))

    assert (2, 2) == api.placed("s", record(A, B), "?force=true")


def test_soft_deleted_schema_comes_back_as_a_new_version(api):
    """Registering a soft-deleted schema again keeps its id, takes the next version, and removes the old version."""
    api.placed("s", record(A))
    api.delete("/subjects/s/versions/1")

    assert (1, 2) == api.placed("s", record(A))
    assert (200, [2]) == api.get("/subjects/s/versions?deleted=true")


def test_earlier_live_schema_answers_its_old_version(api):
    """The third registration of A, B, A returns the first version."""
    api.put("/config/s", {"compatibility": "NONE"})

    assert [(1, 1), (2, 2), (1, 1)] == [api.placed("s", text) for text in (INT, STRING, INT)]


def test_weaker_equality_within_a_subject(api):
    """Texts that differ in the order of attributes are one schema within a subject, but not across subjects."""
    one = '{"type":"int","x":1,"y":2}'
    other = '{"type":"int","y":2,"x":1}'

    assert (1, 1) == api.placed("s", one)
    assert (1, 1) == api.placed("s", other)
    assert (2, 1) == api.placed("t", other)


def test_normalize_stores_the_normalised_text(api):
    """`normalize=true` makes texts equal that differ in the order of attributes."""
    assert (1, 1) == api.placed("s", '{"type":"int","y":2,"x":1}', "?normalize=true")
    assert (1, 1) == api.placed("t", '{"type":"int","x":1,"y":2}', "?normalize=True")


def test_blank_schema_stands_for_the_latest(api):
    """A blank text returns the latest version, or 42201 if the subject has no version."""
    assert 42201 == code(api.register("s", " "))
    api.placed("s", INT)

    assert (1, 1) == api.placed("s", "")


def test_explicit_version_must_be_the_next(api):
    """A version in the body must be the next one; otherwise the answer is 42201."""
    assert 42201 == code(api.register("s", INT, version=2))
    assert (1, 1) == api.placed("s", INT, version=1)


def test_ids_and_versions_are_not_given_twice(api):
    """The id of a hard-deleted schema is never reused; the subject starts again at version 1."""
    api.placed("keep", INT)
    api.placed("s", STRING)
    api.delete("/subjects/s")
    api.delete("/subjects/s?permanent=true")

    assert 40403 == code(api.get("/schemas/ids/2"))
    assert (3, 1) == api.placed("s", LONG)


@pytest.fixture(scope="module")
def refusing(shared_log):
    """Return a log and its registry that hold s: 1 (int), 2 (long), 3 (deleted), d: 1 (deleted); and its end."""
    log, api = shared_log
    for text in (INT, LONG, '"float"'):
        api.placed("s", text)
    api.delete("/subjects/s/versions/3")
    api.placed("d", '"bytes"')
    api.delete("/subjects/d")
    return shared_log, log.end()


# name, method, path, body, status, error code
REFUSALS = [
    ("unknown path", "GET", "/nowhere", None, 404, 404),
    ("unknown method", "PATCH", "/subjects", None, 405, 405),
    ("unknown subject's versions", "GET", "/subjects/x/versions", None, 404, 40401),
    ("deleted subject's versions", "GET", "/subjects/d/versions", None, 404, 40401),
    ("unknown subject's version", "GET", "/subjects/x/versions/1", None, 404, 40401),
    ("unknown version", "GET", "/subjects/s/versions/9", None, 404, 40402),
    ("soft-deleted version", "GET", "/subjects/s/versions/3", None, 404, 40402),
    ("version 0", "GET", "/subjects/s/versions/0", None, 422, 42202),
    ("a word as version", "GET", "/subjects/s/versions/newest", None, 422, 42202),
    ("version beyond 31 bits", "GET", "/subjects/s/versions/2147483648", None, 422, 42202),
    ("unknown id", "GET", "/schemas/ids/99", None, 404, 40403),
    ("unknown id's text", "GET", "/schemas/ids/99/schema", None, 404, 40403),
    ("unknown id's subjects", "GET", "/schemas/ids/99/subjects", None, 404, 40403),
    ("a word as id", "GET", "/schemas/ids/x", None, 404, 404),
    ("look-up in an unknown subject", "POST", "/subjects/x", {"schema": INT}, 404, 40401),
    ("look-up of an unknown schema", "POST", "/subjects/s", {"schema": STRING}, 404, 40403),
    ("look-up of no schema", "POST", "/subjects/s", {"schema": "{"}, 422, 42201),
    ("registration of no schema", "POST", "/subjects/s/versions", {"schema": "{"}, 422, 42201),
    ("a bad default", "POST", "/subjects/n/versions", {"schema": record({**A, "default": "x"})}, 422, 42201),
    ("a lone surrogate", "POST", "/subjects/n/versions", '{"schema":"\\ud800"}', 400, 400),
    ("an unknown type", "POST", "/subjects/n/versions", {"schema": "{}", "schemaType": "XML"}, 422, 42201),
    ("a reference that leads nowhere", "POST", "/subjects/n/versions",
     {"schema": INT, "references": [{"name": "n", "subject": "x", "version": 1}]}, 422, 42201),
    ("no JSON", "POST", "/subjects/n/versions", "{", 400, 400),
    ("a list", "POST", "/subjects/n/versions", "[]", 400, 400),
    ("a schema that is an object", "POST", "/subjects/n/versions", {"schema": {}}, 400, 400),
    ("no body", "POST", "/subjects/n/versions", None, 422, 422),
    ("null", "POST", "/subjects/n/versions", "null", 422, 422),
    ("a control character in the subject", "POST", "/subjects/a%00b/versions", {"schema": INT}, 422, 42208),
    ("a reserved subject", "POST", "/subjects/__GLOBAL/versions", {"schema": INT}, 422, 42208),
    ("a reserved subject of a context", "POST", "/subjects/%3A.c%3A__EMPTY/versions", {"schema": INT}, 422, 42208),
    ("an id outside IMPORT", "POST", "/subjects/n/versions", {"schema": INT, "id": 7}, 422, 42205),
    ("deleting an unknown subject", "DELETE", "/subjects/x", None, 404, 40401),
    ("deleting a deleted subject", "DELETE", "/subjects/d", None, 404, 40404),
    ("deleting a live subject for good", "DELETE", "/subjects/s?permanent=true", None, 404, 40405),
    ("deleting an unknown version", "DELETE", "/subjects/s/versions/9", None, 404, 40402),
    ("deleting a version of an unknown subject", "DELETE", "/subjects/x/versions/1", None, 404, 40401),
    ("deleting a deleted version", "DELETE", "/subjects/s/versions/3", None, 404, 40406),
    ("deleting a live version for good", "DELETE", "/subjects/s/versions/1?permanent=true", None, 404, 40407),
    ("deleting version x", "DELETE", "/subjects/s/versions/x", None, 422, 42202),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error_code"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS]
)
def test_refusals(refusing, method, path, body, status, error_code):
    """Every refusal is a JSON object of error code and message, with the status of its code, and changes nothing."""
    (log, api), end = refusing

    got, answer = api.call(method, path, body)

    assert (status, error_code) == (got, answer["error_code"])
    assert {"error_code", "message"} == set(answer)
    assert isinstance(answer["message"], str)
    assert end == log.end()


MESSAGES = [
    ("GET", "/nowhere", "HTTP 404 Not Found"),
    ("GET", "/subjects/x/versions", "Subject 'x' not found."),
    ("GET", "/subjects/%3A.%3Ax/versions", "Subject 'x' not found."),
    ("GET", "/subjects/s/versions/4", "Version 4 not found."),
    ("GET", "/schemas/ids/9", "Schema 9 not found"),
    ("DELETE", "/subjects/s?permanent=true", "Subject 's' was not deleted first before being permanently deleted"),
    ("DELETE", "/subjects/d", "Subject 'd' was soft deleted.Set permanent=true to delete permanently"),
    ("DELETE", "/subjects/d/versions/1",
     "Subject 'd' Version 1 was soft deleted.Set permanent=true to delete permanently"),
    ("DELETE", "/subjects/s/versions/1?permanent=true",
     "Subject 's' Version 1 was not deleted first before being permanently deleted"),
    ("GET", "/config/s", "Subject 's' does not have subject-level compatibility configured"),
    ("GET", "/mode/s", "Subject 's' does not have subject-level mode configured"),
    ("GET", "/subjects/s/versions/x", ("The specified version 'x' is not a valid version id. "
     'Allowed values are between [1, 2^31-1] and the string "latest"')),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "message"), MESSAGES)
def test_messages_are_the_references(refusing, method, path, message):
    """Messages have the reference's wording, which clients and scripts match."""
    (_, api), _ = refusing

    assert message == api.call(method, path)[1]["message"]


@pytest.mark.parametrize(
    "subject",
    ["a/b", "a b", "a%2Fb", "topic-value", "schön-值", "a?b#c", "a+b", ":.ctx:inner", "über/pfad.proto", "'\""],
)
def test_any_subject_comes_back_as_it_was(api, subject):
    """The registry decodes a percent-encoded subject once: every route keeps slashes, blanks and Unicode."""
    path = f"/subjects/{quote(subject, safe='')}"

    assert (1, 1) == api.placed(subject, INT)
    assert [subject] == api.get("/subjects")[1]
    assert [1] == api.get(f"{path}/versions")[1]
    assert subject == api.get(f"{path}/versions/latest")[1]["subject"]
    assert subject == api.post(path, {"schema": INT})[1]["subject"]
    assert (200, [1]) == api.delete(path)


def test_reading_a_version(api):
    """A version is found by number, by `latest` in any case and by -1; `/schema` returns only the text."""
    api.placed("s", INT)
    api.placed("s", LONG)
    status, answer = api.get("/subjects/s/versions/2")

    assert 200 == status
    assert (
        "s",
        2,
        2,
        "AVRO",
        LONG,
        False,
    ) == tuple(answer[name] for name in ("subject", "version", "id", "schemaType", "schema", "deleted"))
    assert [answer] * 3 == [api.get(f"/subjects/s/versions/{v}")[1] for v in ("latest", "LATEST", "-1")]
    assert (200, "long") == api.get("/subjects/s/versions/2/schema")
    assert "application/vnd.schemaregistry.v1+json" == api.headers["content-type"]


def test_reading_an_id(api):
    """An id returns a subject and version that use it, text, type and GUID, but no `id`."""
    api.placed("a", INT)
    api.placed("b", INT)
    plain = api.get("/schemas/ids/1")[1]
    named = api.get("/schemas/ids/1?subject=b")[1]

    assert ["subject", "version", "guid", "schemaType", "schema", "ts", "deleted"] == list(plain)
    assert ("b", 1, INT) == (named["subject"], named["version"], named["schema"])
    assert INT == api.get("/schemas/ids/1?subject=stranger")[1]["schema"]
    assert 1 == api.get("/schemas/ids/1?fetchMaxId=true")[1]["maxId"]
    assert (200, "int") == api.get("/schemas/ids/1/schema")


def test_look_up(api):
    """A look-up of the identical text has no `ts`; one of an equivalent text returns the stored version."""
    api.placed("s", '{"type":"int","x":1,"y":2}')
    same = api.post("/subjects/s", {"schema": '{"type":"int","x":1,"y":2}'})[1]
    alike = api.post("/subjects/s", {"schema": '{"type":"int","y":2,"x":1}'})[1]

    assert (1, 1, '{"type":"int","x":1,"y":2}') == (same["id"], same["version"], same["schema"])
    assert "ts" not in same
    assert '{"type":"int","x":1,"y":2}' == alike["schema"]
    assert alike["ts"] > 0


def test_look_up_sees_soft_deleted_ones_when_asked(api):
    """With `deleted=true` a look-up also finds soft-deleted versions."""
    api.placed("s", INT)
    api.delete("/subjects/s")

    assert 40401 == code(api.post("/subjects/s", {"schema": INT}))
    assert 1 == api.post("/subjects/s?deleted=true", {"schema": INT})[1]["version"]


def test_soft_and_hard_deletes(api):
    """A soft delete hides, a hard delete removes; ids resolve until the hard delete."""
    for text in (INT, LONG):
        api.placed("s", text)

    assert (200, 1) == api.delete("/subjects/s/versions/1")
    assert [2] == api.get("/subjects/s/versions")[1]
    assert [1, 2] == api.get("/subjects/s/versions?deleted=true")[1]
    assert [1] == api.get("/subjects/s/versions?deletedOnly=true")[1]
    assert [-1, 2] == api.get("/subjects/s/versions?deletedAsNegative=true")[1]
    assert True is api.get("/subjects/s/versions/1?deleted=true")[1]["deleted"]
    assert 200 == api.get("/schemas/ids/1")[0]
    assert (200, 1) == api.delete("/subjects/s/versions/1?permanent=true")
    assert 40403 == code(api.get("/schemas/ids/1"))
    assert (200, [2]) == api.delete("/subjects/s")
    assert [] == api.get("/subjects")[1]
    assert ["s"] == api.get("/subjects?deleted=true")[1]
    assert ["s"] == api.get("/subjects?deletedOnly=true")[1]
    assert (200, [2]) == api.delete("/subjects/s?permanent=true")
    assert [] == api.get("/subjects?deleted=true")[1]


def test_hard_delete_takes_the_subjects_settings(api):
    """A subject loses its level and mode with its last version."""
    api.placed("s", INT)
    api.put("/config/s", {"compatibility": "NONE"})
    api.put("/mode/s", {"mode": "READWRITE"})
    api.delete("/subjects/s/versions/latest")
    api.delete("/subjects/s/versions/1?permanent=true")

    assert (40408, 40409) == (code(api.get("/config/s")), code(api.get("/mode/s")))


def test_listing_subjects(api):
    """Lists are sorted, filter by prefix and page, and cover all contexts, or the default one for a blank prefix."""
    for name in ("b", "a1", "a2", ":.c:a3"):
        api.placed(name, INT)

    assert [":.c:a3", "a1", "a2", "b"] == api.get("/subjects")[1]
    assert ["a1", "a2", "b"] == api.get("/subjects?subjectPrefix=")[1]
    assert ["a1", "a2"] == api.get("/subjects?subjectPrefix=a")[1]
    assert [":.c:a3", "a1", "a2"] == api.get("/subjects?subjectPrefix=%3A*%3Aa")[1]
    assert ["a1"] == api.get("/subjects?offset=1&limit=1")[1]
    assert 4 == len(api.get("/subjects?offset=0&limit=-1&unknown=1&&")[1])


def test_flags_are_lenient(api):
    """`True` is true and an invalid value is false, as in the reference."""
    api.placed("s", INT)
    api.delete("/subjects/s")

    assert ["s"] == api.get("/subjects?deleted=True")[1]
    assert [] == api.get("/subjects?deleted=foo")[1]


def test_trailing_slashes_mean_nothing(api):
    """A path with a slash at its end gets an answer without a redirect."""
    api.placed("s", INT)

    assert (200, [1]) == api.get("/subjects/s/versions/")
    assert (200, {"compatibilityLevel": "BACKWARD"}) == api.get("/config/")


def test_kept_answers_forget_what_was_deleted(api):
    """The cache serves hot reads, but not after a deletion."""
    api.placed("s", INT)
    before = [api.get("/schemas/ids/1"), api.get("/subjects/s/versions/1")] * 2
    api.delete("/subjects/s")
    soft = api.get("/subjects/s/versions/1")
    api.delete("/subjects/s?permanent=true")

    assert before[:2] == before[2:]
    assert 40401 == code(soft)
    assert 40403 == code(api.get("/schemas/ids/1"))


def test_concurrent_registrations_get_distinct_ids_and_versions(api):
    """Sixteen concurrent clients get dense and unique ids and versions."""
    api.put("/config", {"compatibility": "NONE"})
    places = []

    def client(number):
        places.extend(api.placed("s", record({"name": f"f{number}_{i}", "type": "int"})) for i in range(10))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [(n, n) for n in range(1, 161)] == sorted(places)


def test_two_schemas_that_fit_version_1_but_not_each_other_cannot_both_land(api):
    """The check is part of the decision: of two concurrent registrations that clash, one is refused."""
    api.put("/config", {"compatibility": "FULL"})
    api.placed("s", record(A))
    answers = []
    rivals = [
        record(A, {"name": "x", "type": "int", "default": 0}),
        record(A, {"name": "x", "type": "string", "default": ""}),
    ]
    threads = [threading.Thread(target=lambda text=text: answers.append(api.register("s", text)[0])) for text in rivals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [200, 409] == sorted(answers)
