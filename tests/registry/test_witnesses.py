"""`?witness=true` over HTTP: the record behind each finding, changes of values, and metadata that refuses them."""

import base64
import json

import pytest

BOTH = ("", "/latest")


def record(*fields):
    """Return the text of a record schema with some fields, each a name, a type and maybe attributes."""
    made = [{"name": name, "type": kind, **dict(*more)} for name, kind, *more in fields]
    return json.dumps({"type": "record", "name": "R", "fields": made})


A = ("a", "long")
B = ("b", "int")
REFUSE = {"properties": {"strata.silent": "refuse"}}


def check(api, schema, query="?witness=true", version="", **more):
    """Ask for a verdict."""
    return api.post(f"/compatibility/subjects/s/versions{version}{query}", {"schema": schema, **more})


def findings(api, schema, query="?witness=true", version=""):
    """Return the findings of a verdict."""
    return check(api, schema, query, version)[1].get("findings", [])


@pytest.mark.parametrize("version", BOTH)
def test_a_finding_has_the_record_that_breaks(api, version):
    """The record is as the writer's schema encodes it, and the finding names direction and version."""
    api.placed("s", record(A))
    finding = findings(api, record(A, B), version=version)[0]

    assert ("READER_FIELD_MISSING_DEFAULT_VALUE", "BACKWARD", 1) == (
        finding["rule"], finding["direction"], finding["version"],
    )  # fmt: skip
    assert {
        "record": {"a": 0},
        "payload": base64.b64encode(b"\0").decode(),
        "error": "The record has no field 'b', and the reader has no default for it.",
    } == finding["witness"]
    assert "noWitness" not in finding


def test_the_new_schema_writes_in_the_other_direction(api):
    """A finding of FORWARD has a record of the new schema, which the previous version cannot read."""
    api.put("/config/s", {"compatibility": "FORWARD"})
    api.placed("s", record(A, B))
    finding = findings(api, record(A))[0]

    assert ("FORWARD", {"a": 0}) == (finding["direction"], finding["witness"]["record"])


@pytest.mark.parametrize("version", BOTH)
def test_without_the_parameter_the_answer_is_as_before(api, version):
    """No finding has the members of a witness, and no change of values is listed."""
    api.placed("s", record(A))
    kept = {"rule", "path", "field", "direction", "version", "previous", "new", "advice"}

    assert kept == findings(api, record(A, B), "?verbose=true", version)[0].keys()
    assert {"is_compatible": True, "messages": []} == check(api, record(("a", "double")), "?verbose=true", version)[1]
    assert {"is_compatible": True} == check(api, record(("a", "double")), "", version)[1]


def test_a_rule_that_no_record_needs_says_so(api):
    """The name of a record is compared by the rule only."""
    api.placed("s", record(A))
    finding = findings(api, record(A).replace('"R"', '"Q"'))[0]

    assert ("NAME_MISMATCH", True) == (finding["rule"], finding["witness"]["ruleOnly"])
    assert "'R'" in finding["witness"]["because"]


def test_a_compatible_change_of_values_is_a_finding(api):
    """It leaves the verdict as it is, and shows what was written and what is read."""
    api.placed("s", record(A))
    answer = check(api, record(("a", "double")))[1]
    finding = answer["findings"][0]

    assert (True, []) == (answer["is_compatible"], answer["messages"])
    assert ("SILENT_CHANGE", "a", "BACKWARD", 1) == (
        *(finding["rule"], finding["field"], finding["direction"], finding["version"]),
    )
    assert (2**53 + 1, float(2**53)) == (finding["witness"]["writtenAs"], finding["witness"]["readAs"])


def test_each_version_of_a_transitive_level_counts(api):
    """The version of a finding is the one whose data changes."""
    for text in (record(("a", "int")), record(A)):
        api.placed("s", text)
    api.put("/config/s", {"compatibility": "BACKWARD_TRANSITIVE"})
    found = findings(api, record(("a", "float")))

    assert [("SILENT_CHANGE", 2), ("SILENT_CHANGE", 1)] == [(one["rule"], one["version"]) for one in found]
    assert [2**24 + 1] * 2 == [one["witness"]["writtenAs"] for one in found]


def test_a_witness_that_is_too_large_says_why(api):
    """A record beyond 4 kB is not shown."""
    fixed = {"type": "fixed", "name": "F", "size": 5000}
    api.placed("s", record(("f", fixed)))
    finding = findings(api, record(("f", fixed), B))[0]

    assert (None, "size") == (finding["witness"], finding["noWitness"])


def test_metadata_refuses_a_change_of_values(api):
    """A registration is refused with the place and the reason, and the compatibility route says the same."""
    api.placed("s", record(A))
    body = {"schema": record(("a", "double")), "metadata": REFUSE}
    status, error = api.post("/subjects/s/versions", body)
    verdict = check(api, body["schema"], "?verbose=true", metadata=REFUSE)[1]

    assert (409, 40901) == (status, error["error_code"])
    assert "integers beyond 2^53 are rounded" in error["message"]
    assert "strata.silent is refuse" in error["message"]
    assert ["SILENT_CHANGE"] == [one["rule"] for one in error["findings"]]
    assert False is verdict["is_compatible"]
    assert 200 == api.post("/subjects/s/versions", body | {"metadata": {"properties": {"strata.silent": "allow"}}})[0]


def test_the_subjects_settings_refuse_a_change_of_values(api):
    """Default metadata of a subject counts for each of its schemas."""
    api.placed("s", record(A))
    api.put("/config/s", {"compatibility": "BACKWARD", "defaultMetadata": REFUSE})

    assert 409 == api.post("/subjects/s/versions", {"schema": record(("a", "double"))})[0]
    assert 200 == api.post("/subjects/s/versions", {"schema": record(A, ("b", "int", {"default": 0}))})[0]


def test_metadata_of_the_version_before_still_counts(api):
    """A schema without metadata of its own has that of the version before."""
    assert 200 == api.post("/subjects/s/versions", {"schema": record(A), "metadata": REFUSE})[0]
    assert 409 == api.post("/subjects/s/versions", {"schema": record(("a", "double"))})[0]
