"""Metadata over HTTP: storage, identity, inheritance, merging and search; `confluent:version`; compatibility groups."""

import pytest

INT, LONG, STRING = '"int"', '"long"', '"string"'
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
ME = {"properties": {"owner": "me"}}
YOU = {"properties": {"owner": "you"}}
VERSION = "confluent:version"


def code(answer):
    """Return the error code of an answer."""
    return answer[1]["error_code"]


def metadata(api, subject, version):
    """Return the metadata of a version."""
    return api.get(f"/subjects/{subject}/versions/{version}")[1].get("metadata")


def test_metadata_is_part_of_the_identity(api):
    """The same text with other metadata is another schema, with its own id and GUID; answers show the metadata."""
    full = {"tags": {"**.a": ["PII"]}, "properties": {"owner": "me"}, "sensitive": ["owner"]}
    plain, described = api.register("s", RECORD)[1], api.register("s", RECORD, metadata=full)[1]

    assert (1, 2) == (plain["id"], described["id"])
    assert plain["guid"] != described["guid"]
    assert full == described["metadata"]
    for path in ("/subjects/s/versions/2", "/schemas/ids/2", f"/schemas/guids/{described['guid']}"):
        assert full == api.get(path)[1]["metadata"]
    assert full == api.post("/subjects/s", {"schema": RECORD, "metadata": full})[1]["metadata"]
    assert [None, full] == [entry.get("metadata") for entry in api.get("/schemas")[1]]


def test_subjects_share_a_schema_with_its_contract(api):
    """The same text with the same metadata has one id in every subject."""
    assert (1, 1) == api.placed("s", INT, metadata=ME) == api.placed("t", INT, metadata=ME)
    assert [ME, ME] == [metadata(api, subject, 1) for subject in ("s", "t")]


def test_order_and_repetition_do_not_matter(api):
    """The registry stores metadata sorted and without duplicates, so that equal metadata is identical."""
    one = {"tags": {"b": ["y", "x"], "a": ["z", "z"]}, "sensitive": ["q", "p"]}
    other = {"sensitive": ["p", "q"], "tags": {"a": ["z"], "b": ["x", "y"]}}

    assert api.placed("s", INT, metadata=one) == api.placed("s", INT, metadata=other)
    assert {"tags": {"a": ["z"], "b": ["x", "y"]}, "sensitive": ["p", "q"]} == metadata(api, "s", 1)


def test_metadata_and_rules_of_the_version_before_stay(api):
    """A request without metadata and rules keeps those of the latest version; an empty object removes them."""
    rules = {"domainRules": [{"name": "r", "type": "CEL"}]}
    api.placed("s", INT, metadata=ME, ruleSet=rules)

    assert (1, 1) == api.placed("s", INT)
    assert (2, 2) == api.placed("s", LONG)
    assert ME == metadata(api, "s", 2)
    assert "r" == api.get("/subjects/s/versions/2")[1]["ruleSet"]["domainRules"][0]["name"]
    assert (3, 3) == api.placed("s", LONG, metadata={}, ruleSet={})
    assert {"metadata", "ruleSet"}.isdisjoint(api.get("/subjects/s/versions/3")[1])


def test_look_up_finds_what_a_registration_would(api):
    """A look-up without metadata finds the version that has some; other metadata is another schema."""
    api.placed("s", INT, metadata=ME)

    assert 1 == api.post("/subjects/s", {"schema": INT})[1]["version"]
    assert 40403 == code(api.post("/subjects/s", {"schema": INT, "metadata": YOU}))


def test_blank_schema_is_the_latest_with_another_contract(api):
    """A blank text means the latest schema; with other metadata or rules it makes a new version."""
    assert 42201 == code(api.register("s", "", metadata=ME))
    api.placed("s", INT)

    assert (1, 1) == api.placed("s", "")
    assert (2, 2) == api.placed("s", " ", metadata=ME)
    assert INT == api.get("/subjects/s/versions/2")[1]["schema"]


LAYERS = [
    pytest.param({}, ME, ME, id="the request's alone"),
    pytest.param({"defaultMetadata": ME}, None, ME, id="the default when there is none"),
    pytest.param({"defaultMetadata": ME}, YOU, YOU, id="the request over the default"),
    pytest.param({"overrideMetadata": ME}, YOU, ME, id="the override over the request"),
    pytest.param(
        {"defaultMetadata": {"tags": {"a": ["x"]}, "sensitive": ["p"]}},
        {"tags": {"a": ["y"], "b": ["z"]}, "sensitive": ["q"]},
        {"tags": {"a": ["x", "y"], "b": ["z"]}, "sensitive": ["p", "q"]},
        id="tags and sensitive names add up",
    ),
    pytest.param(
        {"defaultMetadata": {"properties": {"a": "1"}}, "overrideMetadata": {"properties": {"c": "3"}}},
        {"properties": {"b": "2"}},
        {"properties": {"a": "1", "b": "2", "c": "3"}},
        id="properties of all layers",
    ),
]


@pytest.mark.parametrize(("config", "given", "expected"), LAYERS)
def test_defaults_and_overrides(api, config, given, expected):
    """The request's metadata overrides the default, and the override wins; a repeated registration changes nothing."""
    api.put("/config/s", config)
    body = {} if given is None else {"metadata": given}
    place = api.placed("s", INT, **body)

    assert expected == metadata(api, "s", 1)
    assert place == api.placed("s", INT, **body)
    assert 1 == api.post("/subjects/s", {"schema": INT, **body})[1]["version"]


def test_explicit_version_is_written_down(api):
    """A version in the request becomes a property, so the same text is another schema; later versions update it."""
    api.placed("s", INT)

    assert (2, 2) == api.placed("s", INT, version=2)
    assert {"properties": {VERSION: "2"}} == metadata(api, "s", 2)
    assert 42201 == code(api.register("s", INT, version=2))
    assert 42201 == code(api.register("s", LONG, version=2))
    assert (3, 3) == api.placed("s", LONG)
    assert {"properties": {VERSION: "3"}} == metadata(api, "s", 3)
    assert (3, 3) == api.placed("s", LONG)


def test_version_minus_one_compares_with_the_latest_only(api):
    """-1 asks for the latest version: an older version of the same text does not count."""
    for text in (INT, LONG):
        api.placed("s", text)

    assert (2, 2) == api.placed("s", LONG, version=-1)
    api.put("/config/s", {"compatibility": "NONE"})
    assert (3, 3) == api.placed("s", INT, version=-1)
    assert {"properties": {VERSION: "3"}} == metadata(api, "s", 3)
    assert 3 == api.placed("s", INT, version=-1)[1]


def test_imports_keep_their_contract(api):
    """IMPORT mode keeps metadata and rules of the request, and neither inherits nor adds any."""
    api.put("/config/s", {"defaultMetadata": YOU})
    api.put("/mode/s", {"mode": "IMPORT"})
    api.placed("s", INT, id=7, version=3, metadata=ME)
    api.placed("s", LONG, id=8, version=4)

    assert ME == metadata(api, "s", 3)
    assert metadata(api, "s", 4) is None


FOUND = [
    pytest.param("?key=owner&value=me", 2, id="newest of two"),
    pytest.param("?key=owner&value=me&key=tier&value=1", 1, id="both properties"),
    pytest.param("?key=owner&value=you&deleted=true", 3, id="soft-deleted when asked for"),
    pytest.param("?key=owner&value=you", 40403, id="soft-deleted otherwise not"),
    pytest.param("?key=owner&value=nobody", 40403, id="no such value"),
    pytest.param("", 2, id="nothing asked for"),
]


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_version_by_metadata(api, query, expected):
    """`/subjects/{s}/metadata` finds the newest version with all the properties."""
    api.placed("s", INT, metadata={"properties": {"owner": "me", "tier": "1"}})
    api.placed("s", LONG, metadata=ME)
    api.placed("s", '"double"', metadata=YOU)
    api.delete("/subjects/s/versions/3")
    answer = api.get(f"/subjects/s/metadata{query}")[1]

    assert expected == answer.get("version", answer.get("error_code"))
    assert 40401 == code(api.get("/subjects/nobody/metadata"))


def test_group_of_versions(api):
    """The check compares only versions with the same value of the group's property, or both without one."""
    one, two = ({"properties": {"major": value}} for value in ("1", "2"))
    api.put("/config/s", {"compatibilityGroup": "major"})
    api.placed("s", INT, metadata=one)

    assert 40901 == code(api.register("s", STRING, metadata=one))
    for route in ("/compatibility/subjects/s/versions", "/compatibility/subjects/s/versions/1"):
        for given, compatible in ((one, False), (two, True), ({}, True)):
            body = {"schema": STRING, "metadata": given}
            assert compatible == api.post(route, body)[1]["is_compatible"], (route, given)
    assert (2, 2) == api.placed("s", STRING, metadata=two)
    assert (3, 3) == api.placed("s", LONG, metadata=one)


RESERVED = [
    pytest.param("AVRO", RECORD, id="Avro"),
    pytest.param("JSON", '{"type":"object","properties":{"a":{"type":"string"}}}', id="JSON Schema"),
    pytest.param("PROTOBUF", 'syntax = "proto3"; message M { oneof o { int32 a = 1; } }', id="Protobuf"),
]


@pytest.mark.parametrize(("schema_type", "text"), RESERVED)
def test_reserved_names(api, schema_type, text):
    """With `validateFields`, no field may have a reserved name, and a name stays reserved, even under NONE."""
    api.put("/config", {"compatibility": "NONE", "validateFields": True})
    taken, free, other = ({"properties": {"confluent:reserved": names}} for names in ("x, a", "x", "y"))
    refused = api.register("s", text, schemaType=schema_type, metadata=taken)

    assert 40901 == code(refused)
    assert "The new schema has field that conflicts with the reserved field a." in refused[1]["message"]
    assert "{validateFields: 'true', compatibility: 'NONE'}" in refused[1]["message"]
    api.placed("s", text, schemaType=schema_type, metadata=free)
    answer = api.post(
        "/compatibility/subjects/s/versions?verbose=true",
        {"schema": text, "schemaType": schema_type, "metadata": other},
    )[1]
    assert not answer["is_compatible"]
    assert answer["messages"][0].startswith("The new schema has reserved field x removed")
    api.put("/config", {"validateFields": False})
    api.placed("s", text, schemaType=schema_type, metadata=taken)


def test_names_with_two_dollars(api):
    """With `validateFields`, no field name may begin with `$$`."""
    text = '{"type":"object","properties":{"$$a":{}}}'
    api.placed("free", text, schemaType="JSON")
    api.put("/config/s", {"validateFields": True})

    assert 42201 == code(api.register("s", text, schemaType="JSON"))


def test_what_protoc_refuses(api):
    """With `validateFields`, a Protobuf file that protoc refuses is rejected with rule and line."""
    text = 'syntax = "proto3";\nmessage O {\n  int32 a = 1;\n  int32 b = 1;\n}\n'
    api.placed("free", text, schemaType="PROTOBUF")
    api.put("/config/s", {"validateFields": True, "normalize": True})
    refused = api.register("s", text, schemaType="PROTOBUF")
    body = {"schema": text, "schemaType": "PROTOBUF"}

    assert 42201 == code(refused) == code(api.post("/compatibility/subjects/s/versions", body))
    assert 'Field number 1 of "b" is that of "a" in O (line 4, column 9, FIELD_NUMBER_TWICE)' in refused[1]["message"]


REFUSED = [
    pytest.param({"properties": {"a": ["1"]}}, id="a list for a text"),
    pytest.param({"tags": {"a": "PII"}}, id="a text for a list"),
    pytest.param({"sensitive": [None]}, id="null for a text"),
    pytest.param("me", id="no object"),
    pytest.param({"properties": {str(i): "" for i in range(1001)}}, id="more than 1,000 properties"),
    pytest.param({"properties": {"a": "x" * 65537}}, id="a text of more than 64 KiB"),
]


@pytest.mark.parametrize("given", REFUSED)
def test_bad_metadata_is_refused(api, given):
    """Registrations and configurations refuse metadata of wrong types or beyond the limits."""
    assert 400 == code(api.register("s", INT, metadata=given))
    assert 400 == code(api.put("/config/s", {"defaultMetadata": given}))


TEXTS = {
    "AVRO": ('{"type":"record","name":"R","fields":[]}', '{"type":"record","name":"R","doc":"d","fields":[]}'),
    "JSON": ('{"type":"object"}', '{"type":"object","title":"t"}'),
    "PROTOBUF": ('syntax = "proto3";\nmessage M {\n}\n', 'syntax = "proto3";\nmessage M {\n  int32 a = 1;\n}\n'),
}  # fmt: skip
NAMED = [
    pytest.param(0, {VERSION: "1"}, 1, id="the first version"),
    pytest.param(1, {VERSION: "2"}, 2, id="the second version"),
    pytest.param(1, {VERSION: "02"}, 2, id="the second version, written otherwise"),
    pytest.param(0, {VERSION: "2"}, None, id="another version's text"),
    pytest.param(0, {VERSION: "3"}, None, id="a version that does not exist"),
    pytest.param(0, {VERSION: "x"}, None, id="no number"),
    pytest.param(0, {VERSION: "1", "a": "b"}, None, id="other metadata"),
]


@pytest.mark.parametrize("schema_type", TEXTS)
@pytest.mark.parametrize(("text", "properties", "expected"), NAMED)
def test_confluent_version_names_a_version(api, schema_type, text, properties, expected):
    """`confluent:version` finds only the version of that number, though the version was stored without the property."""
    for one in TEXTS[schema_type]:
        api.placed("s", one, schemaType=schema_type)
    body = {"schema": TEXTS[schema_type][text], "schemaType": schema_type, "metadata": {"properties": properties}}
    looked_up = api.post("/subjects/s", body)[1]
    registered = api.post("/subjects/s/versions?force=true", body)[1]

    assert (expected or 40403) == looked_up.get("version", looked_up.get("error_code"))
    assert (expected or 3) == registered["version"]


RULE = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
MINUS_ONE = [
    pytest.param({}, 1, id="no metadata, as the latest has none but the version"),
    pytest.param({"metadata": {"properties": {"a": "b"}}}, 2, id="other metadata"),
    pytest.param({"ruleSet": {"domainRules": [RULE]}}, 2, id="other rules"),
]


@pytest.mark.parametrize("schema_type", TEXTS)
@pytest.mark.parametrize(("more", "expected"), MINUS_ONE)
def test_version_minus_one_with_another_contract(api, schema_type, more, expected):
    """-1 with metadata or rules that differ from the latest version's makes a new version."""
    text = TEXTS[schema_type][0]
    api.placed("s", text, schemaType=schema_type, version=1)

    assert expected == api.placed("s", text, schemaType=schema_type, version=-1, **more)[1]
    assert expected == api.placed("s", text, schemaType=schema_type, version=-1, **more)[1]


LATEST_CONTRACTS = [
    pytest.param({"properties": {"owner": "x"}}, {}, False, id="properties of the latest"),
    pytest.param({"tags": {"f": ["PII"]}}, {}, False, id="tags of the latest"),
    pytest.param({"properties": {VERSION: "1"}}, {}, True, id="the version alone"),
    pytest.param(None, {"defaultMetadata": {"properties": {"a": "b"}}}, False, id="a default set later"),
    pytest.param(None, {"overrideMetadata": {"properties": {"a": "b"}}}, False, id="an override set later"),
]


@pytest.mark.parametrize(("stored", "config", "as_stored"), LATEST_CONTRACTS)
def test_look_up_without_metadata(api, stored, config, as_stored):
    """A look-up finds a version by its own metadata or by the metadata that a registration would give it."""
    api.placed("s", INT, **({} if stored is None else {"metadata": stored}))
    api.put("/config/s", config)
    found = api.post("/subjects/s", {"schema": INT})[1]

    assert (1, stored, as_stored) == (found["version"], found.get("metadata"), "ts" in found)


def test_registration_under_defaults_takes_a_new_version_each_time(api):
    """With a default or override configured, each registration raises `confluent:version` and adds a version."""
    api.put("/config/s", {"defaultMetadata": YOU})
    api.placed("s", INT, version=1)

    assert [2, 3] == [api.placed("s", INT)[1] for _ in range(2)]


def test_look_up_of_a_deleted_version_takes_no_defaults(api):
    """If no version is live, a look-up adds no defaults: only the stored metadata finds the version."""
    api.put("/config/s", {"defaultMetadata": ME})
    api.placed("s", INT)
    asked = {"schema": INT}
    assert 1 == api.post("/subjects/s?deleted=true", asked)[1]["version"]

    api.delete("/subjects/s")

    assert 40403 == code(api.post("/subjects/s?deleted=true", asked))
    assert 1 == api.post("/subjects/s?deleted=true", {**asked, "metadata": ME})[1]["version"]


@pytest.mark.parametrize("config", [{}, {"defaultMetadata": ME}, {"overrideMetadata": ME}])
def test_import_of_what_stands_makes_no_version(api, config):
    """A repeated import finds its version, whatever the configuration would add to a registration."""
    api.put("/config/s", config)
    api.put("/mode/s", {"mode": "IMPORT"})

    assert [(7, 1), (7, 1)] == [api.placed("s", INT, id=7) for _ in range(2)]
