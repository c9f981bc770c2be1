"""Schema references over HTTP: how they resolve, what they protect, and which are refused."""

import hashlib
import json
import uuid

import pytest

INNER = '{"type":"record","name":"Inner","namespace":"n","fields":[]}'
OUTER = '{"type":"record","name":"Outer","namespace":"n","fields":[{"name":"i","type":"Inner"}]}'
TOP = (
    '{"type":"record","name":"Top","namespace":"n","fields":[{"name":"o","type":"Outer"},{"name":"i","type":"Inner"}]}'
)
WRITTEN_OUT = (
    '{"type":"record","name":"Outer","namespace":"n","fields":'
    '[{"name":"i","type":{"type":"record","name":"Inner","fields":[]}}]}'
)


def to(subject, version=1, name="n.Inner"):
    """Return a reference."""
    return {"name": name, "subject": subject, "version": version}


def code(answer):
    """Return the error code of an answer."""
    return answer[1]["error_code"]


def test_reference_is_resolved_stored_and_answered(api):
    """A schema uses a type of another subject by name, and answers include its references."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])

    for answer in (api.get("/subjects/outer/versions/1")[1], api.get("/schemas/ids/2")[1]):
        assert (OUTER, [to("inner")]) == (answer["schema"], answer["references"])


def test_references_are_resolved_depth_first(api):
    """References resolve transitively."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])

    assert (3, 1) == api.placed("top", TOP, references=[to("outer", name="n.Outer")])


def test_latest_is_pinned(api):
    """Version -1 of a reference is stored as the number of the latest version."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner", -1)])

    assert [to("inner", 1)] == api.get("/subjects/outer/versions/1")[1]["references"]
    assert (2, 1) == api.placed("outer", OUTER, references=[to("inner", 1)])


def test_references_are_part_of_the_identity(api):
    """The same text with other references is another schema."""
    for name in ("a", "b"):
        api.placed(name, INNER)
    api.placed("outer", OUTER, references=[to("a")])

    assert (3, 1) == api.placed("other", OUTER, references=[to("b")])


def test_normalize_sorts_references(api):
    """`normalize=true` sorts references and removes duplicates."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])
    given = [to("outer", name="n.Outer"), to("inner"), to("inner")]
    api.placed("top", TOP, "?normalize=true", references=given)

    assert [to("inner"), to("outer", name="n.Outer")] == api.get("/subjects/top/versions/1")[1]["references"]


def test_look_up_with_references_written_out(api):
    """A text with its references written out finds the stored schema, and registers no new version."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])

    assert 2 == api.post("/subjects/outer", {"schema": WRITTEN_OUT})[1]["id"]
    assert (2, 1) == api.placed("outer", WRITTEN_OUT)


def test_compatibility_looks_into_references(api):
    """Compatibility compares the referenced types, too."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])
    api.placed("inner", INNER.replace("[]", '[{"name":"x","type":"int","default":0}]'))
    api.put("/config/inner", {"compatibility": "NONE"})
    api.placed("inner", INNER.replace("[]", '[{"name":"x","type":"int"}]'))

    for version, verdict in ((2, True), (3, False)):
        body = {"schema": OUTER, "references": [to("inner", version)]}
        assert verdict == api.post("/compatibility/subjects/outer/versions/latest", body)[1]["is_compatible"]


def test_referenced_by(api):
    """`referencedby` lists the ids of the schemas that refer to a version."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])
    api.placed("top", TOP, references=[to("outer", name="n.Outer"), to("inner")])

    assert (200, [2, 3]) == api.get("/subjects/inner/versions/1/referencedby")
    assert (200, [3]) == api.get("/subjects/outer/versions/latest/referencedby")
    assert (200, []) == api.get("/subjects/top/versions/1/referencedby")


def test_what_is_referred_to_cannot_be_deleted(api):
    """A live referrer blocks soft deletes; any referrer blocks hard deletes."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])
    message = "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=inner,version=1}."

    assert (42206, message) == (lambda _, a: (a["error_code"], a["message"]))(*api.delete("/subjects/inner"))
    assert 42206 == code(api.delete("/subjects/inner/versions/1"))
    api.delete("/subjects/outer")
    assert (200, [1]) == api.delete("/subjects/inner")
    assert 42206 == code(api.delete("/subjects/inner?permanent=true"))
    assert 42206 == code(api.delete("/subjects/inner/versions/1?permanent=true"))
    api.delete("/subjects/outer?permanent=true")
    assert (200, [1]) == api.delete("/subjects/inner?permanent=true")


def test_subject_that_refers_to_itself_goes_as_a_whole(api):
    """References from the same subject do not block a deletion."""
    api.put("/config/s", {"compatibility": "NONE"})
    api.placed("s", INNER)
    api.placed("s", OUTER, references=[to("s")])

    assert (200, [1, 2]) == api.delete("/subjects/s")
    assert (200, [1, 2]) == api.delete("/subjects/s?permanent=true")


def test_plain_reference_belongs_to_the_context(api):
    """In a schema of a context a plain subject belongs to that context; `:.:` means the default context."""
    api.placed("inner", '"int"')
    api.placed(":.c:inner", INNER)

    assert (2, 1) == api.placed(":.c:outer", OUTER, references=[to("inner")])
    assert 42201 == code(api.register(":.c:other", OUTER, references=[to(":.:inner")]))


REFUSED = [
    ("an unknown subject", [to("nobody")], 'No schema reference found for subject "nobody" and version 1'),
    ("an unknown version", [to("inner", 7)], 'No schema reference found for subject "inner" and version 7'),
    ("a soft-deleted version", [to("gone")], 'No schema reference found for subject "gone" and version 1'),
    ("too many", [to("inner")] * 1001, "1001 references"),
    ("another type than is used", [to("unrelated")], "Unknown type"),
]


@pytest.mark.parametrize(("references", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_bad_references_are_refused(api, references, message):
    """An unresolved reference is 42201, and the message names it."""
    api.placed("inner", INNER)
    api.placed("unrelated", '"int"')
    api.placed("gone", INNER)
    api.delete("/subjects/gone")
    status, answer = api.register("outer", OUTER, references=references)

    assert (422, 42201) == (status, answer["error_code"])
    assert message in answer["message"]


def test_format_resolved_writes_references_out(api):
    """`format=resolved` returns the text with the referenced types written out; unknown formats change nothing."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])
    guid = api.get("/subjects/outer/versions/1")[1]["guid"]

    for path in ("/subjects/outer/versions/1", "/schemas/ids/2", f"/schemas/guids/{guid}"):
        assert WRITTEN_OUT == api.get(f"{path}?format=resolved")[1]["schema"]
        assert OUTER == api.get(f"{path}?format=teapot")[1]["schema"]
    assert json.loads(WRITTEN_OUT) == api.get("/schemas/ids/2/schema?format=resolved")[1]
    assert WRITTEN_OUT == api.post("/subjects/outer?format=resolved", {"schema": WRITTEN_OUT})[1]["schema"]


def guid_by_the_rule(text, references):
    """Return as a UUID the MD5 of the text, then name, subject, version (4 bytes, big-endian) of each reference."""
    parts = [text.encode()]
    for one in references:
        parts += [one["name"].encode(), one["subject"].encode(), one["version"].to_bytes(4, "big")]
    return str(uuid.UUID(bytes=hashlib.md5(b"".join(parts), usedforsecurity=False).digest()))


THREE = [  # (name, subject, version) in the order of subject, then version; the names are in the opposite order.
    {"name": "n.C", "subject": "a", "version": 1},
    {"name": "n.B", "subject": "a", "version": 2},
    {"name": "n.A", "subject": "b", "version": 1},
]
GIVEN = [THREE[2], THREE[1], THREE[0]]
USER = (
    '{"type":"record","name":"U","namespace":"n","fields":'
    '[{"name":"a","type":"A"},{"name":"b","type":"B"},{"name":"c","type":"C"}]}'
)
REFERENCE_ORDERS = [
    pytest.param("", GIVEN, GIVEN, id="as given"),
    pytest.param("?normalize=true", GIVEN, THREE, id="normalized: by subject, then version"),
    pytest.param("?normalize=true", [*GIVEN, *THREE], THREE, id="normalized: each once"),
    pytest.param("?normalize=true", THREE, THREE, id="normalized already"),
]


@pytest.mark.parametrize(("query", "given", "stored"), REFERENCE_ORDERS)
def test_order_of_references(api, query, given, stored):
    """References keep their order unless normalized; id and GUID depend on the stored order."""
    for one in THREE:
        text = f'{{"type":"record","name":"{one["name"][-1]}","namespace":"n","fields":[]}}'
        assert one["version"] == api.placed(one["subject"], text, "?force=true")[1]
    answer = api.register("s", USER, query, references=given)[1]

    assert (stored, guid_by_the_rule(USER, stored)) == (answer["references"], answer["guid"])
    assert answer["guid"] == api.get(f"/schemas/ids/{answer['id']}")[1]["guid"]
    same = [api.placed("t", USER, "?normalize=true", references=order)[0] for order in (GIVEN, THREE)]
    assert [same[0] == answer["id"], same[0]] == [stored == THREE, same[1]]
    found = api.post(f"/subjects/s{query}", {"schema": USER, "references": given})[1]
    assert (answer["id"], stored) == (found["id"], found["references"])


def test_qualified_references(api):
    """`referenceFormat=qualified` adds the context to the subject of each reference; GUID and stored schema stay."""
    api.placed(":.c:inner", INNER)
    api.placed("inner", INNER)
    api.placed(":.c:outer", OUTER, references=[to("inner")])
    api.placed("outer", OUTER, references=[to("inner")])
    paths = ("/subjects/%3A.c%3Aouter/versions/1", "/contexts/.c/schemas/ids/2", "/subjects/outer/versions/1")

    def subjects(query):
        return [api.get(f"{path}{query}")[1]["references"][0]["subject"] for path in paths]

    assert ["inner"] * 3 == subjects("") == subjects("?referenceFormat=other")
    assert [":.c:inner", ":.c:inner", "inner"] == subjects("?referenceFormat=qualified")
    assert api.get(paths[0])[1]["guid"] == api.get(f"{paths[0]}?referenceFormat=QUALIFIED")[1]["guid"]


def test_a_name_stands_for_one_version(api):
    """A new schema may not resolve one reference name to two versions."""
    api.placed("inner", INNER)
    api.placed("outer", OUTER, references=[to("inner")])
    refused = api.register("other", OUTER, references=[to("outer")])

    assert 42201 == code(refused)
    assert "The reference name 'n.Inner' stands for outer version 1 and for inner version 1" in refused[1]["message"]


def test_a_look_up_may_refer_to_what_is_soft_deleted(api):
    """A look-up may refer to a soft-deleted version, then finds nothing; a registration is refused."""
    api.placed("inner", INNER)
    api.delete("/subjects/inner")
    body = {"schema": OUTER, "references": [to("inner")]}

    assert 40401 == code(api.post("/subjects/none", body))
    assert 42201 == code(api.post("/subjects/none/versions", body))
    assert 42201 == code(api.post("/subjects/none", {"schema": OUTER, "references": [to("missing")]}))


def test_reference_to_the_empty_subject_of_a_context(api):
    """`:.c` names the empty subject of a context, in references as in paths; a reference is stored as written."""
    api.placed(":.c", '{"type":"record","name":"I","fields":[]}')
    references = [{"name": "I", "subject": ":.c", "version": 1}]
    api.placed("o", '"I"', references=references)

    assert references == api.get("/subjects/o/versions/1")[1]["references"]
    assert [1] == api.get("/subjects/:.c/versions/1/referencedby")[1]
    assert 42206 == api.delete("/subjects/:.c")[1]["error_code"]
