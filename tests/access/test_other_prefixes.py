"""What a user who is restricted to one prefix does changes nothing for the users of others."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.access_rules import rule
from harness.examples import examples
from harness.guarded_registry import Registry

HIGHEST = 2**31 - 1
RULES = [
    rule("mallory", "ALL", "m-*"),
    rule("mallory", "ALL", "m-*", "KEK"),
    rule("bob", "ALL", "b-*"),
    rule("ann", "ALL", ":.:*"),
]
FAR = "is more than 1000000 above the highest id of its context, or above 2000000000"


def imported(registry: Registry, schema_id: int, user: str, schema: str = '"bytes"', name: str = "m-s") -> Any:
    """Return status, content and headers, without the request's id, of an import under an id."""
    body = {"schema": schema, "id": schema_id}
    status, content, headers = registry.ask("POST", f"/subjects/{name}/versions", body, user)
    return status, content, {**headers, "x-request-id": ""}


def importing(guarded: Any, **more: Any) -> Registry:
    """Return a registry whose highest id is 2, with `m-s` in mode IMPORT; what is behind both ids is `bob`'s."""
    registry = guarded(RULES, **more)
    registry.register("b-1", '"int"')
    registry.register("b-2", '"long"')
    assert registry.code("PUT", "/mode/m-s", {"mode": "IMPORT"}, "mallory") == 200
    return registry


# --- far ids


@pytest.mark.parametrize("schema_id", [1_000_003, 2_000_000_001, HIGHEST])
def test_a_far_id_needs_a_right_on_the_context(guarded, schema_id):
    """The owner of a prefix cannot use up the ids of everybody; that of the context or registry may leave a gap."""
    registry = importing(guarded)
    status, content, _ = imported(registry, schema_id, "mallory")
    assert (403, 40301) == (status, content["error_code"])
    assert FAR in content["message"]
    assert "ALTER_CONFIGS" in content["message"]
    assert registry.register("b-3", '"string"', "bob") == 3
    assert 200 == imported(registry, schema_id, "ann")[0]

    registry = importing(guarded)
    registry.rules = (*RULES, rule("mallory", "ALTER_CONFIGS", kind="REGISTRY"))
    assert 200 == imported(registry, schema_id, "mallory")[0]


def test_ids_near_the_highest_need_no_more_than_the_prefix(guarded):
    """An import continues above the highest id, up to a million at once."""
    registry = importing(guarded)

    assert 200 == imported(registry, 1_000_002, "mallory")[0]
    assert 200 == imported(registry, 1_000_005, "mallory", '"float"')[0]


# --- which ids exist


@pytest.mark.parametrize("schema", ['"int"', '"long"', '"bytes"'])
def test_an_import_tells_nothing_about_ids(guarded, schema):
    """An id up to the highest is refused alike: used elsewhere with this content, with other content, or free."""
    registry = importing(guarded)
    assert registry.code("PUT", "/mode/a-s", {"mode": "IMPORT"}, "ann") == 200
    assert 200 == imported(registry, 9, "ann", '"boolean"', "a-s")[0]
    refused = {schema_id: imported(registry, schema_id, "mallory", schema) for schema_id in (1, 2, 3, 8, 9)}
    message = "Overwrite new schema with id {} in context  is not permitted."

    for schema_id, (status, content, headers) in refused.items():
        assert (422, {"error_code": 42205, "message": message.format(schema_id)}) == (status, content)
        assert refused[1][2] == headers


def test_those_who_may_read_the_context_choose_any_free_id(guarded):
    """With the right to see which ids exist, an import may fill gaps in any order."""
    registry = importing(guarded)
    registry.rules = (*RULES, rule("mallory", "READ", ":.:*"))
    assert 200 == imported(registry, 9, "mallory")[0]
    assert 200 == imported(registry, 5, "mallory", '"float"')[0]
    assert 42205 == imported(registry, 1, "mallory", '"float"')[1]["error_code"]


def test_an_id_of_ones_own_can_be_imported_again(guarded):
    """A repeated import, and one of the same schema into another subject, find the id that the user may read."""
    registry = importing(guarded)
    assert registry.code("PUT", "/mode/m-t", {"mode": "IMPORT"}, "mallory") == 200
    for name in ("m-s", "m-s", "m-t"):
        assert 200 == imported(registry, 7, "mallory", name=name)[0]


# --- ids are used up, and given out again


def used_up(guarded: Any, **more: Any) -> Registry:
    """Return a registry whose last id was given."""
    registry = importing(guarded, **more)
    assert 200 == imported(registry, HIGHEST, "ann")[0]
    assert registry.code("DELETE", "/mode/m-s") == 200
    return registry


def test_the_last_id_is_an_end_with_a_way_out(guarded):
    """Without ids new schemas are refused with what helps; known ones are registered as before."""
    registry = used_up(guarded)
    status, content, _ = registry.ask("POST", "/subjects/b-3/versions", {"schema": '"string"'}, "bob")

    assert (422, 42205) == (status, content["error_code"])
    assert "strata ids lower" in content["message"]
    assert registry.register("b-3", '"int"', "bob") == 1


def test_an_administrator_lowers_the_highest_id(guarded):
    """Once no version has an id above the new mark, ids are given out again; the answer names those seen before."""
    registry = used_up(guarded)
    path = "/v1/highest-ids/."
    status, content, _ = registry.ask("PUT", path, {"highestId": 2})
    assert (422, 42205) == (status, content["error_code"])
    assert "subject 'm-s' version 1" in content["message"]
    registry.ask("DELETE", "/subjects/m-s")
    assert registry.code("PUT", path, {"highestId": 2}) == 42205
    registry.ask("DELETE", "/subjects/m-s?permanent=true")
    assert {"context": ".", "highestId": HIGHEST, "highestInUse": 2} == registry.ask("GET", path)[1]
    assert registry.code("PUT", path, {"highestId": 1}) == 42205
    status, content, _ = registry.ask("PUT", path, {})

    assert {"context": ".", "highestId": 2, "highestInUse": 2, "before": HIGHEST} == content
    assert registry.register("b-3", '"string"', "bob") == 3
    assert guarded(RULES, registry.log).register("b-4", '"double"', "bob") == 4


@pytest.mark.parametrize("user", ["mallory", "ann"])
def test_only_administrators_lower_it(guarded, user):
    """The right is that on the log, since the ids of all users of the context are concerned."""
    registry = guarded(RULES)

    assert 40301 == registry.code("GET", "/v1/highest-ids/.", None, user)
    assert 40301 == registry.code("PUT", "/v1/highest-ids/.", {}, user)


# --- whatever one user does, others get what they would have got


OWN = st.sampled_from(["m-1", "m-2"])
OTHERS = st.sampled_from(["b-1", "b-2", "b-3", ":.:b-1", ":.c:b-1", ":.c:", ":.:", ":.__GLOBAL:", ":.m:m-1"])
NAMES = OWN | OWN | OTHERS
IDS = st.sampled_from([1, 2, 3, 4, 5, 1_000_000, 1_500_000, HIGHEST])
SCHEMA = st.fixed_dictionaries(
    {
        "schema": st.sampled_from(
            ['"int"', '"long"', '"string"', '"bytes"', '{"type":"fixed","name":"F","size":4}', "{"]
        )
    },
    optional={
        "id": IDS,
        "version": st.sampled_from([1, 2, HIGHEST]),
        "references": st.builds(lambda name: [{"name": "R", "subject": name, "version": 1}], NAMES),
    },
)
CONFIG = st.sampled_from(
    [
        {"compatibility": "NONE"}, {"alias": "b-1"}, {"alias": "m-1"}, {"aliasForDeks": "b-1"}, {"normalize": True},
        {"compatibilityGroup": "g"}, {"overrideMetadata": {"properties": {"a": "b"}}},
    ]
)  # fmt: skip
MODE = st.builds(lambda mode: {"mode": mode}, st.sampled_from(["IMPORT", "IMPORT", "READONLY", "READWRITE"]))
READONLY = {"mode": "READONLY"}
KEK = {"kmsType": "aws-kms", "kmsKeyId": "arn"}
TOPIC = {"resourceName": "m-t", "resourceNamespace": "ns", "resourceId": "m-t"}


def request(method: str, path: str, body: st.SearchStrategy[Any] = st.none()) -> st.SearchStrategy[Any]:  # noqa: B008
    """Return requests whose path has the name of a subject or scope."""
    return st.builds(lambda name, content: (method, path.format(name.replace(":", "%3A")), content), NAMES, body)


def naming(method: str, path: str, body: Callable[[str], Any]) -> st.SearchStrategy[Any]:
    """Return requests whose body has the name of a subject or scope."""
    return st.builds(lambda name: (method, path, body(name)), NAMES)


REGISTRATION = request("POST", "/subjects/{}/versions", SCHEMA)
ATTACKS = st.one_of(
    REGISTRATION,
    REGISTRATION,
    REGISTRATION,
    request("PUT", "/mode/{}?force=true", MODE),
    request("DELETE", "/mode/{}?recursive=true"),
    request("PUT", "/config/{}", CONFIG),
    request("DELETE", "/config/{}"),
    request("DELETE", "/subjects/{}"),
    request("DELETE", "/subjects/{}?permanent=true"),
    request("DELETE", "/subjects/{}/versions/1?permanent=true"),
    request("POST", "/subjects/{}/versions/1/tags", st.just({"newVersion": 2})),
    st.sampled_from([("PUT", "/v1/highest-ids/.", {}), ("DELETE", "/contexts/.c", None), ("PUT", "/mode", READONLY)]),
    naming("POST", "/associations", lambda name: {**TOPIC, "associations": [{"subject": name, "lifecycle": "STRONG"}]}),
    naming("POST", "/dek-registry/v1/keks", lambda name: {**KEK, "name": name}),
    naming("POST", "/dek-registry/v1/keks/m-1/deks", lambda name: {"subject": name, "encryptedKeyMaterial": "QUJD"}),
    st.builds(
        lambda name, body: ("POST", "/v1/apply", {"steps": [{"action": "settings", "subject": name, **body}]}),
        NAMES, MODE | st.builds(lambda config: {"config": config}, CONFIG),
    ),
)  # fmt: skip
IMPORTING = [("PUT", f"/mode/{name}", {"mode": "IMPORT"}) for name in ("m-1", "m-2")]

# What others do, in this order, and again at the end. What they register last is new to the registry.
BEFORE = [
    ("POST", "/subjects/b-1/versions", {"schema": '"int"'}),
    ("POST", "/subjects/b-2/versions", {"schema": '"float"'}),
    ("POST", "/subjects/b-2/versions", {"schema": '"double"'}),
    ("POST", "/subjects/%3A.c%3Ab-1/versions", {"schema": '"int"'}),
]
AFTER = [
    ("POST", "/subjects/b-1/versions", {"schema": '"long"'}),
    ("POST", "/subjects/b-3/versions", {"schema": '"string"'}),
    ("POST", "/subjects/b-3/versions", {"schema": '"string"'}),
    ("POST", "/subjects/b-1", {"schema": '"int"'}),
    ("POST", "/compatibility/subjects/b-1/versions/latest", {"schema": '"float"'}),
    *(("GET", path, None) for path in (
        "/subjects?deleted=true", "/subjects/b-1/versions", "/subjects/b-1/versions/1", "/subjects/b-1/versions/latest",
        "/subjects/b-2/versions/2/schema", "/subjects/b-1/versions/1/referencedby", "/schemas?aliases=true",
        "/config/b-1?defaultToGlobal=true", "/mode/b-1?defaultToGlobal=true", "/contexts", "/config", "/mode",
        "/schemas/ids/1", "/schemas/ids/2/versions", "/schemas/ids/1/subjects", "/associations/subjects/b-1",
        "/schemas/ids/1?subject=b-1", "/contexts/.c/subjects/b-1/versions/1", "/contexts/.c/schemas/ids/1",
    )),
    ("DELETE", "/subjects/b-1/versions/1", None),
    ("DELETE", "/subjects/b-1", None),
    ("DELETE", "/subjects/b-1?permanent=true", None),
    ("PUT", "/mode/b-1", {"mode": "IMPORT"}),
]  # fmt: skip
BOB = [*RULES, rule("bob", "ALL", ":.c:b-*"), rule("bob", "DESCRIBE_CONFIGS", kind="REGISTRY")]


def outcomes(attacks: list[tuple[str, str, Any]]) -> list[Any]:
    """Return what `bob` gets before and after what `mallory` does; new ids are left out, and times."""
    with asyncio.Runner() as runner:
        registry = Registry(runner, BOB)
        for method, path, body in BEFORE:
            assert registry.code(method, path, body, "bob") == 200
        for method, path, body in attacks:
            registry.ask(method, path, body, "mallory")
        found = [registry.ask(method, path, body, "bob")[:2] for method, path, body in AFTER]
    return [(status, re.sub(r"'ts': \d+|'id': ([4-9]|\d\d+)\b", "", str(content))) for status, content in found]


UNDISTURBED: list[Any] = []


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from([[], IMPORTING]), st.lists(ATTACKS, min_size=1, max_size=12))
def test_nothing_that_one_user_does_changes_what_others_get(modes, attacks):
    """Registrations, look-ups, reads, settings and deletions of others answer as if `mallory` did not exist."""
    if not UNDISTURBED:
        UNDISTURBED.extend(outcomes([]))

    assert UNDISTURBED == outcomes([*modes, *attacks])
