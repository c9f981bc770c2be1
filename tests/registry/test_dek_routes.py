"""The DEK registry over HTTP: answers, lists and pages, names in paths, aliases, contexts, limits, logs."""

import pytest

from strata.storage.log import START, MemoryLog

KEKS = "/dek-registry/v1/keks"
KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn"}
DEK = {"encryptedKeyMaterial": "QUJD"}


@pytest.fixture(scope="module")
def keyed(shared_api):
    """Return KEKs k, other and (deleted) gone; k has 1, 2, 10 for `a b/c`, deleted ones for `d`, one for `:.x:s`."""
    for name in ("k", "other", "gone"):
        assert 200 == shared_api.post(KEKS, {**KEK, "name": name})[0]
    for version in (1, 2, 10):
        assert 200 == shared_api.post(f"{KEKS}/k/deks/a%20b%2Fc", {**DEK, "version": version})[0]
    for path in ("k/deks/d", "k/deks/%3A.x%3As", "other/deks/e", "other/deks/gone"):
        assert 200 == shared_api.post(f"{KEKS}/{path}", DEK)[0]
    for path in ("k/deks/d", "other/deks/gone", "gone"):
        assert 204 == shared_api.delete(f"{KEKS}/{path}")[0]
    return shared_api


READS = [
    pytest.param("", ["k", "other"], id="names"),
    pytest.param("?deleted=true", ["gone", "k", "other"], id="names, deleted ones too"),
    pytest.param("?deleted=true&offset=1&limit=1", ["k"], id="a page of names"),
    pytest.param("?limit=0", ["k", "other"], id="a limit of 0 is none"),
    pytest.param("?subjectPrefix=a", ["k"], id="names by subject"),
    pytest.param("?subjectPrefix=zz&subjectPrefix=e", ["other"], id="names by several subjects"),
    pytest.param("?subjectPrefix=gone", [], id="names by a subject whose keys are deleted"),
    pytest.param("?subjectPrefix=gone&deleted=true", ["other"], id="names by a subject whose keys are deleted, asked"),
    pytest.param("?subjectPrefix=", ["k", "other"], id="a blank prefix is none"),
    pytest.param("/k/deks", [":.x:s", "a b/c"], id="subjects"),
    pytest.param("/k/deks?deleted=true", [":.x:s", "a b/c", "d"], id="subjects, deleted ones too"),
    pytest.param("/k/deks?deleted=true&offset=1&limit=1", ["a b/c"], id="a page of subjects"),
    pytest.param("/k/deks/a%20b%2Fc/versions", [1, 2, 10], id="versions"),
    pytest.param("/k/deks/a%20b%2Fc/versions?offset=1&limit=1", [2], id="a page of versions"),
    pytest.param("/k/deks/a%20b%2Fc/versions?algorithm=AES256_SIV", [], id="versions for another algorithm"),
    pytest.param("/k/deks/d/versions", [], id="versions that are deleted"),
    pytest.param("/k/deks/d/versions?deleted=true", [1], id="versions that are deleted, asked"),
    pytest.param("/k/deks/nobody/versions", [], id="versions of an unknown subject"),
]


@pytest.mark.parametrize(("path", "expected"), READS)
def test_lists(keyed, path, expected):
    """Lists are sorted, leave soft-deleted keys out unless asked for, and come in pages."""
    assert (200, expected) == keyed.get(KEKS + path)


VERSIONS = [
    pytest.param("k/deks/a%20b%2Fc", 1, id="a subject alone is its first version"),
    pytest.param("k/deks/a%20b%2Fc/versions/10", 10, id="by number"),
    pytest.param("k/deks/a%20b%2Fc/versions/-1?algorithm=AES256_GCM", 10, id="the latest as clients ask for it"),
    pytest.param("k/deks/a%20b%2Fc/versions/latest", 10, id="the latest by name"),
    pytest.param("k/deks/d?deleted=True", 1, id="a deleted one as clients ask for it"),
    pytest.param("k/deks/%3A.x%3As", 1, id="in a context"),
    pytest.param("%6B/deks/a%20b%2Fc?algorithm=", 1, id="a name with escapes, a blank algorithm"),
]


@pytest.mark.parametrize(("path", "version"), VERSIONS)
def test_versions(keyed, path, version):
    """A client finds a version of a DEK by number, as the latest and as the first."""
    status, answer = keyed.get(f"{KEKS}/{path}")

    assert (200, version, "k", "QUJD") == (status, answer["version"], answer["kekName"], answer["encryptedKeyMaterial"])


FAILURES = [
    pytest.param("GET", "/none", None, 404, 40470, id="an unknown KEK"),
    pytest.param("GET", "/gone", None, 404, 40470, id="a deleted KEK"),
    pytest.param("GET", "/n%2Fo", None, 422, 42271, id="what is not a name"),
    pytest.param("GET", "/gone/deks", None, 404, 40470, id="subjects of a deleted KEK"),
    pytest.param("GET", "/none/deks/s/versions", None, 404, 40470, id="versions under an unknown KEK"),
    pytest.param("GET", "/k/deks/nobody", None, 404, 40470, id="an unknown DEK"),
    pytest.param("GET", "/k/deks/a%20b%2Fc/versions/3", None, 404, 40470, id="an unknown version"),
    pytest.param("GET", "/k/deks/s/versions/0", None, 422, 42202, id="version 0"),
    pytest.param("GET", "/k/deks/s/versions/x", None, 422, 42202, id="what is not a version"),
    pytest.param("GET", "/k/deks/s?algorithm=DES", None, 404, 404, id="an unknown algorithm in the path"),
    pytest.param("GET", "/k/deks/s%07", None, 422, 42271, id="what is not a subject"),
    pytest.param("GET", "/k/deks/s%07/versions", None, 422, 42271, id="versions of what is not a subject"),
    pytest.param("POST", "", {}, 422, 42271, id="a KEK of nothing"),
    pytest.param("POST", "", KEK, 409, 40971, id="a KEK again"),
    pytest.param("POST", "", {**KEK, "name": "n", "shared": True}, 403, 40370, id="a shared KEK"),
    pytest.param("POST", "", {**KEK, "kmsProps": {"a": 1}}, 400, 400, id="a property that is a number"),
    pytest.param("POST", "", {**KEK, "kmsProps": {str(i): "" for i in range(101)}}, 400, 400, id="101 properties"),
    pytest.param("POST", "", {**KEK, "kmsProps": {"a": "x" * 4097}}, 400, 400, id="a long property"),
    pytest.param("POST", "", {**KEK, "kmsKeyId": "x" * 4097}, 400, 400, id="a long key id"),
    pytest.param("POST", "", {**KEK, "doc": "x" * 65537}, 400, 400, id="a long description"),
    pytest.param("POST", "", "{", 400, 400, id="a body that is not JSON"),
    pytest.param("POST", "", None, 422, 422, id="no body"),
    pytest.param("POST", "/k/test", {}, 422, 42271, id="test of a KEK that is not shared"),
    pytest.param("POST", "/none/test", {}, 404, 40470, id="test of an unknown KEK"),
    pytest.param("POST", "/k/deks/n", {}, 422, 42271, id="a DEK without material"),
    pytest.param("POST", "/k/deks/n", {"encryptedKeyMaterial": "x" * 16385}, 400, 400, id="long material"),
    pytest.param("POST", "/k/deks/n", {**DEK, "algorithm": "DES"}, 400, 400, id="an unknown algorithm in the body"),
    pytest.param("POST", "/k/deks/n", {**DEK, "version": "one"}, 400, 400, id="a version that is text"),
    pytest.param("POST", "/k/deks", DEK, 422, 42271, id="a DEK without a subject"),
    pytest.param("PUT", "/k", {"shared": True}, 403, 40370, id="a KEK becomes shared"),
    pytest.param("DELETE", "/k", None, 422, 42272, id="deletion of a KEK in use"),
    pytest.param("PATCH", "/k", {}, 405, 405, id="another method"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "code"), FAILURES)
def test_failures(keyed, method, path, body, status, code):
    """Each refused request has the expected status and code."""
    found, answer = keyed.call(method, KEKS + path, body)

    assert (status, code) == (found, answer["error_code"])


def test_age_and_deletion_are_told(api):
    """`ts` is the time of creation; `deleted` is present only for a deleted key."""
    kek = api.post(KEKS, {**KEK, "doc": "d", "kmsProps": {"p": "1", "token.id": "hush"}, "shared": False})[1]
    dek = api.post(f"{KEKS}/k/deks/s", {**DEK, "subject": "other", "version": None})[1]
    for path in ("/k/deks/s", "/k"):
        assert (204, "") == api.delete(KEKS + path)

    shown = {"kmsProps": {"p": "1"}, "doc": "d", "shared": False}
    assert {**KEK, **shown, "ts": kek["ts"]} == kek
    assert {**kek, "deleted": True} == api.get(f"{KEKS}/k?deleted=true")[1]
    assert {"kekName": "k", "subject": "s", "version": 1, "algorithm": "AES256_GCM", **DEK, "ts": dek["ts"]} == dek
    assert {**dek, "deleted": True} == api.get(f"{KEKS}/k/deks/s?deleted=true")[1]


def test_nothing_secret_is_logged(start):
    """KMS credentials and keys in plain text never get into the log, wherever a request puts them."""
    log = MemoryLog()
    api = start(log)
    api.post(KEKS, {**KEK, "kmsProps": {"token.id": "hush", "client.secret": "hush"}, "keyMaterial": "hush"})
    api.put(f"{KEKS}/k", {"kmsProps": {"secret": "hush", "p": "1"}, "keyMaterial": "hush"})
    api.post(f"{KEKS}/k/deks/s", {**DEK, "keyMaterial": "hush"})
    records = [(entry.key, entry.value or b"") for entry in log.read(START)]

    assert 3 == len(records)
    assert [] == [record for record in records if b"hush" in b"".join(record)]


ALIASES = [
    pytest.param({"alias": "target"}, "target", id="alias"),
    pytest.param({"aliasForDeks": "target"}, "target", id="for DEKs alone"),
    pytest.param({"alias": "other", "aliasForDeks": "target"}, "target", id="for DEKs before the general one"),
]


@pytest.mark.parametrize(("config", "target"), ALIASES)
def test_alias_stands_for_its_target(api, config, target):
    """A subject with an alias has the keys of its target, in every kind of request."""
    api.post(KEKS, KEK)
    api.put("/config/name", config)
    api.post(f"{KEKS}/k/deks/name", DEK)
    subjects = api.get(f"{KEKS}/k/deks")[1]
    read = [api.get(f"{KEKS}/k/deks/name{path}")[1] for path in ("", "/versions/1", "/versions")]
    deleted = api.delete(f"{KEKS}/k/deks/name")[0], api.get(f"{KEKS}/k/deks")[1]
    undeleted = api.post(f"{KEKS}/k/deks/name/versions/1/undelete", None)[0], api.get(f"{KEKS}/k/deks")[1]

    assert [target] == subjects
    assert [target, target, [1]] == [read[0]["subject"], read[1]["subject"], read[2]]
    assert ((204, []), (204, [target])) == (deleted, undeleted)


def test_prefix_form_of_contexts(api):
    """Under /contexts/c/ subjects belong to that context, and lists hold only KEKs with such subjects."""
    inside = "/contexts/c" + KEKS
    api.post(inside, KEK)
    api.post(KEKS, {**KEK, "name": "plain"})
    api.post(f"{inside}/k/deks/s", DEK)
    api.post(f"{KEKS}/plain/deks/s", DEK)

    assert ["k", "plain"] == api.get(KEKS)[1]
    assert ["k"] == api.get(inside)[1]
    assert ["k"] == api.get(f"{inside}?subjectPrefix=x&subjectPrefix=s")[1]
    assert ":.c:s" == api.get(f"{inside}/k/deks/s/versions/latest")[1]["subject"]
    assert [":.c:s"] == api.get(f"{KEKS}/k/deks")[1]


def test_old_route_takes_the_subject_from_the_body(api):
    """Clients fall back to this route if POST with the subject in the path answers 405."""
    api.post(KEKS, KEK)
    made = api.post(f"{KEKS}/k/deks", {**DEK, "subject": ":.:s", "algorithm": "AES128_GCM"})[1]

    assert ("s", "AES128_GCM") == (made["subject"], made["algorithm"])
    assert made == api.get(f"{KEKS}/k/deks/s?algorithm=AES128_GCM")[1]


def test_rewrapping_over_http(api):
    """`rewrap` replaces the material of a version; without it the answer is a conflict."""
    api.post(KEKS, KEK)
    first = api.post(f"{KEKS}/k/deks/s", DEK)[1]
    other = {"encryptedKeyMaterial": "Wg=="}

    assert 409 == api.post(f"{KEKS}/k/deks/s", other)[0]
    assert {**first, **other} == api.post(f"{KEKS}/k/deks/s?rewrap=true", other)[1]


def test_counts_of_the_log(api):
    """`/v1/log` counts the keys."""
    api.post(KEKS, KEK)
    for version in (1, 2):
        api.post(f"{KEKS}/k/deks/s", {**DEK, "version": version})
    counts = api.get("/v1/log")[1]["counts"]

    assert (1, 2) == (counts["keks"], counts["deks"])
