"""`format=logical`: the errors of the reference, and a refusal where its grammar would be needed."""

import json

import pytest

RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
NO_TABLE = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}]})
UNSUPPORTED = "format=logical is not supported"

# body, the beginning of the message
POSTED = [
    ({"schema": "a INT"}, "schemaType is required when format=logical, and must be one of AVRO, JSON, PROTOBUF"),
    (
        {"schema": "a INT", "schemaType": "THRIFT"},
        "Unsupported schemaType 'THRIFT' for format=logical; must be one of AVRO, JSON, PROTOBUF",
    ),
    ({"schemaType": "AVRO"}, "Schema is required when format=logical"),
    ({"schema": " ", "schemaType": "json"}, "Schema is required when format=logical"),
    ({"schema": "a INT", "schemaType": "avro"}, UNSUPPORTED),
    ({"schema": RECORD, "schemaType": "AVRO"}, UNSUPPORTED),
]


@pytest.mark.parametrize(("body", "message"), POSTED)
def test_registration(api, body, message):
    """Nothing is registered from SQL types, and the message says why."""
    status, answer = api.post("/subjects/s/versions?format=logical", body)

    assert (422, 42201) == (status, answer["error_code"])
    assert answer["message"].startswith(message)
    assert 404 == api.get("/subjects/s/versions")[0]


def test_a_version(api):
    """A version is not shown as SQL types; one that has none is an error of its own, as in the reference."""
    for text in (RECORD, NO_TABLE):
        api.post("/subjects/s/versions", {"schema": text})
    expected = [UNSUPPORTED, "Stored schema cannot be represented as a logical type: Standalone NULL type"]
    api.put("/config/s", {"compatibility": "NONE"})
    assert 200 == api.post("/subjects/s/versions", {"schema": NO_TABLE})[0]

    for number, message in enumerate(expected, start=1):
        for path in ("", "/schema"):
            status, answer = api.get(f"/subjects/s/versions/{number}{path}?format=logical")

            assert (422, 42201) == (status, answer["error_code"])
            assert answer["message"].startswith(message)
    assert 40402 == api.get("/subjects/s/versions/9?format=logical")[1]["error_code"]


def test_other_routes(api):
    """Routes that do not know the form ignore it, as in the reference."""
    schema_id = api.post("/subjects/s/versions", {"schema": RECORD})[1]["id"]

    answers = [
        api.get(f"/schemas/ids/{schema_id}?format=logical"),
        api.post("/subjects/s?format=logical", {"schema": RECORD}),
        api.post("/compatibility/subjects/s/versions?format=logical", {"schema": RECORD}),
    ]

    assert [200] * 3 == [status for status, _ in answers]
