"""Which error a request with two mistakes gets, in the reference's order."""

import pytest

INT = '"int"'
INVALID = '{"type":"record","name":"a-b","fields":[]}'


@pytest.fixture(scope="module")
def read_only(shared_api):
    """Return a read-only registry: `gone` 1 soft-deleted, `s` 1 live and 2 soft-deleted, `o` refers to `inner` 1."""
    api = shared_api
    inner = '{"type":"record","name":"I","fields":[]}'
    api.placed("inner", inner)
    api.placed("o", '"I"', references=[{"name": "I", "subject": "inner", "version": 1}])
    api.placed("gone", INT)
    api.delete("/subjects/gone")
    api.placed("s", INT)
    api.placed("s", '"long"')
    api.delete("/subjects/s/versions/2")
    api.put("/mode", {"mode": "READONLY"})
    return api


ROWS = [
    pytest.param("DELETE", "/subjects/gone", None, 40404, id="soft-deleted subject before read-only"),
    pytest.param("DELETE", "/subjects/none", None, 40401, id="unknown subject before read-only"),
    pytest.param("DELETE", "/subjects/s", None, 42205, id="read-only: deletion of a subject"),
    pytest.param("DELETE", "/subjects/s?permanent=true", None, 42205, id="read-only before live subject"),
    pytest.param("DELETE", "/subjects/inner", None, 42205, id="read-only before references"),
    pytest.param("DELETE", "/subjects/s/versions/2", None, 40406, id="soft-deleted version before read-only"),
    pytest.param("DELETE", "/subjects/s/versions/9", None, 40402, id="unknown version before read-only"),
    pytest.param("DELETE", "/subjects/s/versions/x", None, 42202, id="no version before read-only"),
    pytest.param("DELETE", "/subjects/s/versions/1?permanent=true", None, 42205, id="read-only before live version"),
    pytest.param("PUT", "/config/s", {"compatibility": "NO"}, 42203, id="no level before read-only"),
    pytest.param("PUT", "/config", {"defaultRuleSet": {"domainRules": [{}]}}, 42210, id="bad rule before read-only"),
    pytest.param("PUT", "/config/s", {"compatibility": "NONE"}, 42205, id="read-only: configuration"),
    pytest.param("DELETE", "/config/s", None, 40401, id="no configuration before read-only"),
    pytest.param("DELETE", "/config", None, 42205, id="read-only: deletion of the configuration"),
    pytest.param("PUT", "/mode/s", {"mode": "NO"}, 42204, id="no mode in a read-only registry"),
    pytest.param("POST", "/subjects/s/versions", {"schema": "{"}, 42201, id="no schema before read-only"),
    pytest.param("POST", "/subjects/s/versions", {"schema": "{", "id": 9}, 42201, id="no schema before no import"),
    pytest.param("POST", "/subjects/n/versions", {"schema": INVALID}, 42205, id="read-only before strict validation"),
    pytest.param("POST", "/subjects/n/versions", {"schema": ""}, 42205, id="read-only before empty schema"),
    pytest.param("POST", "/subjects/__GLOBAL/versions", {"schema": "{"}, 42208, id="no subject before read-only"),
    pytest.param("POST", "/subjects/__GLOBAL/versions", "{", 400, id="damaged body before no subject"),
    pytest.param("POST", "/subjects/__GLOBAL/versions", "", 422, id="missing body before no subject"),
    pytest.param("POST", "/subjects/s/versions/x/tags", "null", 422, id="missing body before no version"),
    pytest.param("POST", "/subjects/s/versions/9/tags", "[]", 400, id="useless body before unknown version"),
    pytest.param(
        "POST", "/compatibility/subjects/s/versions/x", "{", 400, id="damaged body before no version, checked"
    ),
    pytest.param("POST", "/compatibility/subjects/s/versions/9", "", 422, id="missing body before unknown version"),
    pytest.param("POST", "/compatibility/subjects/s/versions/9", {"schema": "{"}, 40402, id="version before no schema"),
]


@pytest.mark.parametrize(("method", "path", "body", "expected"), ROWS)
def test_first_error(read_only, method, path, body, expected):
    """The registry checks the body first, then what the path names, then the mode, then the change itself."""
    assert expected == read_only.call(method, path, body)[1]["error_code"]


def test_referenced_before_live(api):
    """A hard delete of a live version with referrers names the references as the reason."""
    api.placed("inner", '{"type":"record","name":"I","fields":[]}')
    api.placed("o", '"I"', references=[{"name": "I", "subject": "inner", "version": 1}])

    for path in ("/subjects/inner?permanent=true", "/subjects/inner/versions/1?permanent=true"):
        assert 42206 == api.delete(path)[1]["error_code"]


def test_versions_of_a_subject_are_checked_in_turn(api):
    """The oldest version that blocks a hard delete gives the reason: here a live one, then references."""
    api.put("/config/inner", {"compatibility": "NONE"})
    api.placed("inner", '"int"')
    api.placed("inner", '{"type":"record","name":"I","fields":[]}')
    api.placed("o", '"I"', references=[{"name": "I", "subject": "inner", "version": 2}])

    assert 40405 == api.delete("/subjects/inner?permanent=true")[1]["error_code"]
    api.delete("/subjects/inner/versions/1")
    assert 42206 == api.delete("/subjects/inner?permanent=true")[1]["error_code"]
