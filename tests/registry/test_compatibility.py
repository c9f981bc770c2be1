"""`/compatibility` over HTTP: which versions are compared, and the answers."""

import json

import pytest

from strata.registry.core.parsing import caches


def record(*fields):
    """Return the text of a record schema with some fields."""
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "int"}
B_DEFAULT = {"name": "b", "type": "int", "default": 0}
C_DEFAULT = {"name": "c", "type": "int", "default": 0}


def check(api, schema, version="/latest", query="?verbose=true", subject="s"):
    """Ask for a verdict."""
    return api.post(f"/compatibility/subjects/{subject}/versions{version}{query}", {"schema": schema})


def test_verdict_without_reasons(api):
    """Without `verbose` the answer is only the verdict."""
    api.placed("s", record(A))

    assert (200, {"is_compatible": True}) == check(api, record(A, B_DEFAULT), query="")
    assert (200, {"is_compatible": False}) == check(api, record(A, B), query="")


def test_a_new_text_is_kept_when_it_comes_again(api):
    """The schema of a check takes no room in memory before the same text is checked a second time."""
    api.placed("s", record(A))
    kept, text = caches()["schemas"], record(A, {"name": "seldom_checked", "type": "int", "default": 0})

    check(api, text)
    assert kept.peek(("AVRO", text, True, ())) is None
    check(api, text, query="?verbose=true&again")
    assert kept.peek(("AVRO", text, True, ())) is not None


def test_verdict_with_reasons(api):
    """With `verbose` the answer has messages, the settings last; a compatible schema has no findings."""
    api.placed("s", record(A))
    good, bad = check(api, record(A, B_DEFAULT))[1], check(api, record(A, B))[1]

    assert {"is_compatible": True, "messages": []} == good
    assert (False, "{validateFields: 'false', compatibility: 'BACKWARD'}") == (
        bad["is_compatible"],
        bad["messages"][-1],
    )


def test_latest_looks_at_one_version_even_when_transitive(api):
    """A version in the path selects the only version to compare; otherwise the check is that of a registration."""
    api.put("/config/s", {"compatibility": "NONE"})
    for text in (record(A), record(A, B)):
        api.placed("s", text)
    api.put("/config/s", {"compatibility": "FORWARD_TRANSITIVE"})
    proposal = record(B)

    assert False is check(api, proposal)[1]["is_compatible"]
    api.put("/config/s", {"compatibility": "BACKWARD_TRANSITIVE"})
    assert True is check(api, proposal)[1]["is_compatible"]
    assert False is check(api, proposal, "/1")[1]["is_compatible"]
    assert False is check(api, proposal, "")[1]["is_compatible"]


@pytest.mark.parametrize("version", ["/latest", ""])
def test_unknown_subject_accepts_anything(api, version):
    """Without a version to compare, the verdict is true, and a finding says that nothing was compared."""
    status, answer = check(api, record(A), version, subject="x")

    assert (200, True, []) == (status, answer["is_compatible"], answer["messages"])
    assert ["NO_PREVIOUS_VERSION"] == [finding["rule"] for finding in answer["findings"]]
    assert "Subject 'x' has no version" in answer["findings"][0]["advice"]
    assert (200, {"is_compatible": True}) == check(api, record(A), version, query="", subject="x")


def test_unknown_versions(api):
    """An unknown version is 40402, an invalid one 42202."""
    assert 40402 == check(api, record(A), "/1", subject="x")[1]["error_code"]
    assert 42202 == check(api, record(A), "/x")[1]["error_code"]


def test_soft_deleted_versions_do_not_count(api):
    """A deleted version cannot cause an incompatibility, and a check against it is not found."""
    api.placed("s", record(A))
    api.delete("/subjects/s/versions/1")

    assert True is check(api, record(B))[1]["is_compatible"]
    assert 40402 == check(api, record(B), "/1")[1]["error_code"]


def test_invalid_schema(api):
    """An invalid schema is 42201, and with `verbose` a verdict with a message."""
    verbose = check(api, "{")

    assert (422, 42201) == (lambda status, answer: (status, answer["error_code"]))(*check(api, "{", query=""))
    assert (200, False) == (verbose[0], verbose[1]["is_compatible"])
    assert verbose[1]["messages"][0].startswith("Invalid schema")


def test_verdict_changes_nothing(api):
    """A check registers nothing."""
    api.placed("s", record(A))
    check(api, record(A, C_DEFAULT))

    assert [1] == api.get("/subjects/s/versions")[1]
