"""What clients with random rights see of a registry is what the model of rights says."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.access_model import model
from harness.access_rules import rule
from harness.examples import examples
from harness.guarded_registry import Registry
from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.rules import Operation, Permission

RECORD = '{"type":"record","name":"R","fields":[]}'
# subject, schema, subject of version 1 that it refers to
CONTENT = [
    ("base", RECORD, None), ("mid", '{"type":"record","name":"M","fields":[{"name":"r","type":"R"}]}', "base"),
    ("top", '{"type":"record","name":"T","fields":[{"name":"m","type":"M"}]}', "mid"),
    ("a", '"int"', None), ("ab", '"int"', None), ("b", '"long"', None),
    (":.c:a", '"int"', None), (":.c:x", '"string"', None), (":.d:a", '"long"', None),
]  # fmt: skip
NAMES = [name for name, *_ in CONTENT]
REFERRERS = {"base": "mid", "mid": "top"}
NAMED = {"base": "R", "mid": "M"}


@pytest.fixture(scope="module")
def registry():
    """Fill a registry once; the tests exchange its rules."""
    with asyncio.Runner() as runner:
        filled = Registry(runner)
        for name, schema, base in CONTENT:
            references = [{"name": NAMED[base], "subject": base, "version": 1}] if base else []
            filled.register(name.replace(":", "%3A"), schema, references=references)
        yield filled


rules = st.lists(
    st.builds(
        lambda operation, name, permission: rule("u", operation, name, permission=permission),
        st.sampled_from(["READ", "READ", "DESCRIBE", "WRITE", "ALL"]),
        st.sampled_from(["a", "a*", "b", "*", ":.c:*", ":.c:a", ":.d:a", "base", "mid", "top", "t*"]),
        st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
    ),
    max_size=6,
)
U = Principal("u", frozenset(), "basic")


@settings(max_examples=examples(150, part=6), deadline=None)
@given(rules)
def test_content_is_shown_as_the_model_says(registry, given_rules):
    """Lists, versions, ids and GUIDs show what may be described and read, references included, and nothing else."""
    registry.rules = tuple(given_rules)

    def may(operation, name):
        return model(given_rules, (), U, operation, "SUBJECT", name, "10.0.0.1")

    def denied(name):
        rules_on_name = [one for one in given_rules if one.permission == Permission.DENY]
        return not may("READ", name) and bool(rules_on_name) and not model(
            [*(one for one in given_rules if one.permission == Permission.DENY), rule("u", "READ", "*")],
            (), U, "READ", "SUBJECT", name, "10.0.0.1",
        )  # fmt: skip

    def readable(name):
        """Return whether version 1 of a subject may be read, directly or through what refers to it."""
        if may("READ", name):
            return True
        above = REFERRERS.get(name)
        chain = []
        while above:
            chain.append(above)
            above = REFERRERS.get(above)
        return not denied(name) and any(may("READ", one) for one in chain)

    def ask(path):
        status, content, _ = registry.ask("GET", path, None, "u")
        return content if status == 200 else status

    described, read = ({name for name in NAMES if may(one, name)} for one in (Operation.DESCRIBE, Operation.READ))
    assert set(ask("/subjects")) == described
    assert {one["subject"] for one in ask("/schemas?subjectPrefix=:*:")} == read
    seen = {name[1 : name.index(":", 2)] if name.startswith(":") else "." for name in described}
    assert set(ask("/contexts")) == {".", *seen}
    for name in NAMES:
        path = name.replace(":", "%3A")
        assert isinstance(ask(f"/subjects/{path}/versions"), list) == (name in described)
        assert isinstance(ask(f"/subjects/{path}/versions/1"), dict) == readable(name), name
        assert isinstance(ask(f"/subjects/{path}/versions/latest"), dict) == readable(name), name
    for context in (".", ".c", ".d"):
        own = [name for name in NAMES if (name.startswith(f":{context}:") if context != "." else name[0] != ":")]
        ids = {}
        for name in own:
            path = name.replace(":", "%3A")
            ids.setdefault(registry.ask("GET", f"/subjects/{path}/versions/1")[1]["id"], []).append(name)
        for schema_id, users in ids.items():
            query = "" if context == "." else f"?subject=:{context}:"
            found = ask(f"/schemas/ids/{schema_id}{query}")
            assert isinstance(found, dict) == any(map(readable, users)), (schema_id, users)
            shown = ask(f"/schemas/ids/{schema_id}/subjects{query}")
            assert (set(shown) if isinstance(shown, list) else set()) == described & set(users)
    referring = ask("/subjects/base/versions/1/referencedby")
    if isinstance(referring, list):
        assert len(referring) == ("mid" in read)


def test_usage_names_no_client_of_a_hidden_subject(guarded):
    """Fetches by id count for all subjects that use it, but have names only for who may know of all of them."""
    registry = guarded([rule("u", "DESCRIBE", "a"), rule("v", "DESCRIBE", "a*"), rule("w", "READ", "hidden")])
    for name in ("a", "ab"):
        registry.register(name, '"int"')
    for address in ("/schemas/ids/1", "/subjects/a/versions/1"):
        assert 200 == registry.ask("GET", address, user_agent="app")[0]

    def seen(user):
        status, answer, _ = registry.ask("GET", "/v1/usage?subject=a", user=user)
        assert 200 == status
        return [
            (one["count"], [(c["client"], c["user"], c["by"]) for c in one["clients"]]) for one in answer["versions"]
        ]

    assert [(2, [("app", "root", ["version", "id"])])] == seen("root") == seen("v")
    assert [(2, [("app", "root", ["version"])])] == seen("u")
    assert [] == seen("w")


@pytest.mark.parametrize(
    "path",
    [
        "/subjects/{}/versions",
        "/subjects/{}/versions/1",
        "/subjects/{}/versions/latest",
        "/subjects/{}/versions/1/schema",
        "/schemas/ids/1?subject={}",
        "/schemas/ids/1/subjects?subject={}",
    ],
)
def test_an_alias_outside_ones_rights_is_like_any_other_name(guarded, path):
    """It is not followed, also to a subject that may be read; one's own alias is."""
    registry = guarded([rule("bob", "READ", ":.c:t"), rule("bob", "READ", "mine")])
    registry.register("x", '"string"')
    registry.register("%3A.c%3At", '"int"')
    for name in ("other", "mine"):
        assert registry.code("PUT", f"/config/{name}", {"alias": ":.c:t"}) == 200
    alias, unknown, own = (registry.ask("GET", path.format(name), None, "bob") for name in ("other", "never", "mine"))

    assert (403, 200) == (alias[0], own[0])
    assert (unknown[0], str(unknown[1]).replace("never", "other")) == (alias[0], str(alias[1]))
