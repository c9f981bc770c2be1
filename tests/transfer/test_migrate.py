"""Migration from a running registry to another one or to a log, with the same ids.

The service takes the place of a reference registry: `tests/conformance` compares its answers with recorded ones.
"""

from pathlib import Path

import pytest

from harness.logs import version_times
from strata.http.paths import segment
from strata.registry.transfer import rest_source
from strata.registry.transfer.same_registry import is_same_registry
from strata.storage.record_json import encode
from strata.storage.records import (
    AclKey,
    AclValue,
    KekKey,
    KekValue,
    Reference,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Version,
)


@pytest.fixture
def target_log(tmp_path):
    """Return an empty log for the target."""
    return f"sqlite:///{tmp_path / 'target.db'}"


def test_a_service_becomes_another(strata, source, serve, target_log, monkeypatch):
    """The target has every version, id, deletion, setting and mode of the source, and assigns the same next id.

    A repeated migration registers nothing and leaves the target unchanged.
    """
    monkeypatch.setattr(rest_source, "_PAGE", 4)
    old, new = serve(source), serve(target_log)

    for _ in range(2):
        code, output, errors = strata("migrate", "--from", old.url, "--to", new.url)

        assert (0, "") == (code, output), errors
        assert (0, "") == strata("verify", source, target_log)[:2]
    assert "READWRITE" == new.call("GET", "/mode")["mode"]
    for registry in (old, new):
        registry.register("after", {"type": "fixed", "name": "After", "size": 3})
    path = "/subjects/after/versions/1"
    assert old.call("GET", path)["id"] == new.call("GET", path)["id"]


def test_a_service_becomes_a_log(strata, source, serve, target_log):
    """Migration writes directly into a log, with the times of the source; a second run finds everything there."""
    url = serve(source).url

    assert [0, 0] == [strata("migrate", "--from", url, "--to", target_log)[0] for _ in range(2)]

    assert (0, "") == strata("verify", source, target_log)[:2]
    assert version_times(source) == version_times(target_log)


def test_a_log_becomes_another(strata, source, target_log):
    """So does a migration from a log."""
    assert 0 == strata("migrate", "--from", source, "--to", target_log)[0]

    assert version_times(source) == version_times(target_log)


def test_a_frozen_source_becomes_a_target_that_writes(strata, source, serve, target_log):
    """`--mode` sets the target's mode, for a source that was made read-only for the move."""
    old, new = serve(source), serve(target_log)
    old.setting("mode", "", mode="READONLY")

    assert 0 == strata("migrate", "--from", old.url, "--to", new.url, "--mode", "READWRITE")[0]

    assert "READWRITE" == new.call("GET", "/mode")["mode"]


def test_what_an_interrupted_run_borrowed_is_given_back(strata, source, serve, target_log):
    """The next run removes the temporary subject that carries the highest id."""
    old, new = serve(source), serve(target_log)
    new.setting("mode", "", mode="IMPORT")
    body = {"schema": '{"type":"fixed","name":"HighestId","size":13}', "id": 13, "version": 1}
    new.call("POST", "/subjects/strata-highest-id/versions", body)

    code, output, errors = strata("migrate", "--from", old.url, "--to", new.url)

    assert (0, "") == (code, output), errors
    assert "strata-highest-id" not in new.call("GET", "/subjects?deleted=true")


KEKS = "/dek-registry/v1/keks"


def test_another_key_is_not_overwritten(strata, source, serve, target_log):
    """The run refuses a target with a different key of the same name, before it writes anything."""
    old, new = serve(source), serve(target_log)
    new.call("POST", KEKS, {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "other"})

    code, _, errors = strata("migrate", "--from", old.url, "--to", new.url)

    assert (2, True) == (code, "differs from that of the source" in errors)
    assert ("other", [], "READWRITE") == (
        new.call("GET", f"{KEKS}/k")["kmsKeyId"],
        new.call("GET", "/subjects?deleted=true"),
        new.call("GET", "/mode")["mode"],
    )


def test_shared_keys_and_credentials_of_another_make(strata, write_raw, serve, tmp_path, target_log):
    """A shared key goes into a log without its credentials; a service refuses it and says what to do."""
    value = KekValue("hcvault", "u", {"token.id": "hush", "p": "1"}, None, shared=True, deleted=False, created=1)
    write_raw(f"sqlite:///{tmp_path / 'foreign.db'}", encode(KekKey("k"), value))
    foreign = serve(f"sqlite:///{tmp_path / 'foreign.db'}")

    assert 0 == strata("migrate", "--from", foreign.url, "--to", f"sqlite:///{tmp_path / 'log.db'}")[0]
    code, _, errors = strata("migrate", "--from", foreign.url, "--to", serve(target_log).url)

    assert b"hush" not in (tmp_path / "log.db").read_bytes()
    assert (2, True) == (code, "Set shared to false" in errors)


def test_rules_of_access_stay_in_logs(strata, write_raw, serve, tmp_path, target_log):
    """A copy from log to log keeps them; one over REST says that it leaves them out."""
    rule = encode(AclKey("User:u", "*", "SUBJECT", "s", "LITERAL", "READ", "ALLOW"), AclValue(1))
    log, copy = (f"sqlite:///{tmp_path / name}" for name in ("log.db", "copy.db"))
    write_raw(log, rule)

    assert 0 == strata("migrate", "--from", log, "--to", copy)[0]
    assert (0, True) == (strata("verify", log, copy)[0], b'"kind":"ACL"' in (tmp_path / "copy.db").read_bytes())
    code, _, errors = strata("migrate", "--from", log, "--to", serve(target_log).url)
    assert (0, True) == (code, "left out 1 rules of access" in errors), errors


def test_a_frozen_association_arrives_frozen(strata, source, serve, target_log):
    """A frozen association needs no schema in mode IMPORT."""
    old, new = serve(source), serve(target_log)
    body = {"resourceName": "t", "resourceNamespace": "lkc", "resourceId": "t"}
    body["associations"] = [{"associationType": "value", "schema": {"schema": '"int"'}}]
    old.call("POST", "/associations", body)

    code, output, errors = strata("migrate", "--from", old.url, "--to", new.url)

    assert (0, []) == (code, output.splitlines()), errors
    assert [("STRONG", None)] == [
        (one["lifecycle"], one.get("frozen")) for one in new.call("GET", "/associations/resources/t")
    ]


def test_another_registry_is_not_overwritten(strata, source, serve, target_log):
    """The run refuses a target that has other data, before it writes anything."""
    old, new = serve(source), serve(target_log)
    new.register("mine", '"string"')

    code, _, errors = strata("migrate", "--from", old.url, "--to", new.url)

    assert (2, True) == (code, "migrate into an empty registry" in errors), errors
    assert (["mine"], "READWRITE") == (new.call("GET", "/subjects?deleted=true"), new.call("GET", "/mode")["mode"])


def test_a_target_that_holds_a_part_of_the_source_is_refused(strata, source, serve, target_log):
    """Only an interrupted run, which leaves mode IMPORT behind, can be continued."""
    old, new = serve(source), serve(target_log)
    new.register("orders-value", {"type": "record", "name": "First", "fields": []})
    part = old.call("GET", "/subjects/item/versions/1")["schema"]
    new.delete("orders-value", permanent=True)
    new.setting("mode", "", mode="IMPORT")
    body = {"schema": part, "id": old.call("GET", "/subjects/item/versions/1")["id"], "version": 1}
    new.call("POST", "/subjects/item/versions", body)
    new.setting("mode", "", mode="READWRITE")

    code, _, errors = strata("migrate", "--from", old.url, "--to", new.url)

    assert (2, True) == (code, "is not in mode IMPORT" in errors), errors
    assert (["item"], "READWRITE") == (new.call("GET", "/subjects?deleted=true"), new.call("GET", "/mode")["mode"])


def test_a_target_with_a_key_of_its_own_is_refused(strata, source, serve, target_log):
    """The message names the existing key, and the run writes nothing."""
    old, new = serve(source), serve(target_log)
    new.call("POST", KEKS, {"name": "mine", "kmsType": "aws-kms", "kmsKeyId": "x"})

    code, _, errors = strata("migrate", "--from", old.url, "--to", new.url)

    assert (2, True) == (code, "key encryption key mine" in errors), errors
    assert [] == new.call("GET", "/subjects?deleted=true")


SAME = [
    ("one URL", "http://localhost:8081", "http://localhost:8081", True),
    ("a slash, letters, credentials", "http://LOCALHOST:8081/", "http://u:p@localhost:8081", True),
    ("a name and its address", "http://localhost:8081", "http://127.0.0.1:8081", True),
    ("the default port", "http://localhost", "http://localhost:80", True),
    ("another port", "http://localhost:8081", "http://localhost:8082", False),
    ("another context", "http://localhost:8081/contexts/.a", "http://localhost:8081", False),
    ("one file", "sqlite:///a/../b.db", "sqlite:///b.db", True),
    ("two files", "sqlite:///a.db", "sqlite:///b.db", False),
    ("a file and its absolute path", "sqlite:///b.db", f"sqlite:///{Path('b.db').resolve()}", True),
    ("one topic, of several brokers", "kafka://a:1,127.0.0.1:9/_s", "kafka://localhost:9/_s", True),
    ("the default port of a broker", "kafka://localhost/_s", "kafka://127.0.0.1:9092/_s", True),
    ("two topics", "kafka://a:1/_s", "kafka://a:1/_t", False),
    ("two spellings of a driver", "postgres://u@127.0.0.1/d", "postgresql+psycopg://v@127.0.0.1:5432/d", True),
    ("a service and a log", "http://localhost:8081", "sqlite:///b.db", False),
]


@pytest.mark.parametrize(("a", "b", "same"), [row[1:] for row in SAME], ids=[row[0] for row in SAME])
def test_places_that_are_the_same(a, b, same):
    """Different addresses of the same place are recognized."""
    assert same == is_same_registry(a, b)


def test_a_registry_is_not_migrated_onto_itself(strata, source):
    """The run refuses the same source and target before it reads anything."""
    code, _, errors = strata("migrate", "--from", source, "--to", source)

    assert (2, True) == (code, "the same registry" in errors)


@pytest.mark.parametrize(
    "url", ["http://[::1/x", "http://localhost:99999", "http://:8081", "postgresql://[::1/d", "postgresql://h:x/d"]
)
def test_an_address_that_cannot_be_is_refused(strata, url):
    """A malformed address gives an error of one line."""
    code, output, errors = strata("migrate", "--from", url, "--to", "http://127.0.0.1:1")

    assert (2, "", 1, True) == (code, output, len(errors.splitlines()), "the URL of a" in errors), errors


def test_a_live_schema_may_refer_to_a_deleted_one(strata, source, serve, target_log, write_raw):
    """A live schema may refer to a deleted one, as in the reference, and mode IMPORT accepts it."""

    def place(subject, schema_id, text, *references, deleted):
        value = SchemaValue(
            Subject(subject), Version(1), SchemaId(schema_id), text, references=references, deleted=deleted
        )
        return encode(SchemaKey(value.subject, value.version), value)

    inner = '{"type":"record","name":"Inner","fields":[]}'
    outer = '{"type":"record","name":"Outer","fields":[{"name":"i","type":"Inner"}]}'
    write_raw(source, place("z-inner", 500, inner, deleted=True))
    write_raw(source, place("a-outer", 501, outer, Reference("Inner", "z-inner", 1), deleted=False))

    assert 0 == strata("migrate", "--from", serve(source).url, "--to", serve(target_log).url)[0]

    assert (0, "") == strata("verify", source, target_log)[:2]


def test_one_content_under_two_ids_arrives(strata, source, serve, target_log, write_raw):
    """The target keeps both ids, over REST and from service to log."""
    for subject, schema_id in (("twin-a", 600), ("twin-b", 601)):
        value = SchemaValue(Subject(subject), Version(1), SchemaId(schema_id), '"bytes"')
        write_raw(source, encode(SchemaKey(value.subject, value.version), value))
    old, new = serve(source), serve(target_log)

    assert 0 == strata("migrate", "--from", old.url, "--to", new.url)[0]
    assert (0, "") == strata("verify", source, target_log)[:2]
    other = target_log.replace("target", "other")
    assert 0 == strata("migrate", "--from", old.url, "--to", other)[0]
    assert (0, "") == strata("verify", source, other)[:2]


def test_contracts_and_their_configuration_arrive(strata, source, serve, target_log):
    """Metadata, rule sets and a subject's defaults for them arrive unchanged."""
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}]}
    metadata = {"properties": {"owner": "ops"}, "tags": {"a": ["PII"]}, "sensitive": ["owner"]}
    old, new = serve(source), serve(target_log)
    old.call("POST", "/subjects/ruled/versions", {"schema": '"bytes"', "metadata": metadata, "ruleSet": rules})
    old.setting("config", "ruled", overrideMetadata={"properties": {"team": "x"}}, compatibilityGroup="owner")

    code, output, errors = strata("migrate", "--from", old.url, "--to", new.url)

    assert (0, "") == (code, output), errors
    assert metadata["tags"] == new.call("GET", "/subjects/ruled/versions/1")["metadata"]["tags"]


@pytest.mark.parametrize(
    ("name", "expected"), [("", "%3A.%3A"), (".", "%2E"), ("..", "%2E%2E"), ("a/b", "a%2Fb"), (":.c:", "%3A.c%3A")]
)
def test_any_name_is_one_segment_of_a_path(name, expected):
    """The path of any subject leads to it: dots are escaped, and the empty name has its own form."""
    assert expected == segment(name)
