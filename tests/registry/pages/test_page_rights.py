"""With access control, pages show what the person may see, and nothing else."""

import asyncio
import json
import re
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.access_model import model
from harness.access_rules import rule
from harness.examples import examples
from harness.guarded_registry import Registry
from strata.registry.app import FEATURES
from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.rules import Permission

SUBJECTS = ["apple", "banana", "cherry", ":.c:date"]
KEKS = ["kek-one", "kek-two"]
U = Principal("u", frozenset(), "basic")


@pytest.fixture(scope="module")
def registry():
    """Fill a registry once; the tests exchange its rules."""
    with asyncio.Runner() as runner:
        filled = Registry(runner, ui="full")
        for name in SUBJECTS:
            word = name.rpartition(":")[2]
            text = {"type": "record", "name": "R", "doc": f"doc-of-{word}", "fields": []}
            filled.register(
                quote(name, safe=""), json.dumps(text), metadata={"properties": {"owner": f"owner-of-{word}"}}
            )
            level = {"compatibility": "FULL", "compatibilityGroup": f"group-of-{word}"}
            assert 200 == filled.code("PUT", f"/config/{quote(name, safe='')}", level)
        for name in KEKS:
            body = {"name": name, "kmsType": "aws-kms", "kmsKeyId": f"arn-of-{name}"}
            assert 200 == filled.code("POST", "/dek-registry/v1/keks", body)
        yield filled


def paths():
    """Return the addresses of all views, for each subject and key."""
    for view in (view for feature in FEATURES for view in feature.views):
        for subject in SUBJECTS:
            named = {"subject": quote(subject, safe=""), "version": "1", "id": "1", "guid": "x", "name": KEKS[0]}
            path = "/ui" + view.path
            for name, value in named.items():
                path = path.replace(f"{{{name}}}", value)
            yield path
    yield from (f"/ui/schemas/ids/{number}" for number in range(1, 5))
    yield from ("/ui/schemas/ids/1?context=.c", "/ui/subjects?sort=changed", "/ui/subjects?format=AVRO&deleted=also")
    yield from ("/ui/subjects?level=FULL", "/ui/search?query=doc", "/ui/search?query=a")
    yield from (f"/ui/decode?data=0000000{context}&id={number}" for context in (0, "0&context=.c") for number in (1, 2))


PATHS = sorted(set(paths()))
rules = st.lists(
    st.builds(
        lambda operation, name, permission: rule("u", operation, name, permission=permission),
        st.sampled_from(["READ", "READ", "DESCRIBE", "DESCRIBE_CONFIGS", "WRITE", "ALL"]),
        st.sampled_from(["apple", "b*", "cherry", "*", ":.c:*"]),
        st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
    ),
    max_size=5,
)


@settings(max_examples=examples(40), deadline=None)
@given(rules)
def test_pages_show_what_may_be_seen(registry, given_rules):
    """No page holds a name, a text or a setting that the API would not show."""
    registry.rules = tuple(given_rules)

    def may(operation, name):
        return model(given_rules, (), U, operation, "SUBJECT", name, "10.0.0.1")

    words = {}
    for name in SUBJECTS:
        word = name.rpartition(":")[2]
        words |= {f"doc-of-{word}": may("READ", name), f"owner-of-{word}": may("READ", name)}
        words |= {f"group-of-{word}": may("DESCRIBE_CONFIGS", name)}
    hidden = [word for word, seen in words.items() if not seen] + [f"arn-of-{name}" for name in KEKS]
    unknown = [
        name.rpartition(":")[2] for name in SUBJECTS if not any(may(o, name) for o in ("DESCRIBE", "DESCRIBE_CONFIGS"))
    ]
    for path in PATHS:
        status, text, _ = registry.ask("GET", path, None, "u")
        assert status in (200, 303, 400, 403, 404), (path, text)
        text = text or ""
        assert [] == [word for word in hidden if word in text], path
        asked = [name for name in unknown if name not in path]
        assert [] == [name for name in asked if f">{name}<" in text], path


def test_a_person_who_may_see_all_sees_all(registry):
    """The administrator sees each text, setting and key."""
    seen = "".join(str(registry.ask("GET", path)[1]) for path in PATHS)
    for word in ("apple", "banana", "cherry", "date"):
        assert f"doc-of-{word}" in seen
        assert f"group-of-{word}" in seen
    assert "arn-of-kek-one" in seen


def test_the_navigation_leads_to_what_may_be_seen(registry):
    """A person without the right to see the node is not led to its log and its health."""
    registry.rules = (rule("u", "READ", "*"),)
    shown = registry.ask("GET", "/ui/subjects", None, "u")[1]
    assert 'href="/ui/contexts"' in shown
    assert "/ui/log" not in shown
    assert "/ui/health" not in shown
    every = registry.ask("GET", "/ui/subjects")[1]
    assert 'href="/ui/log"' in every
    assert 'href="/ui/health"' in every


def test_actions_are_offered_by_rights(registry):
    """A person is offered what they may do; the API decides anyway, and its refusal is shown."""
    registry.rules = (rule("u", "READ", "*"), rule("u", "WRITE", "apple"))
    offered = {name: registry.ask("GET", f"/ui/subjects/{name}", None, "u")[1] for name in ("apple", "banana")}
    assert "/ui/do/register" in offered["apple"]
    assert "/ui/do/delete" not in offered["apple"]
    assert "/ui/do/" not in offered["banana"]
    headers = {"cookie": "", "sec_fetch_site": "same-origin"}
    shown, found, answered = registry.ask("GET", "/ui/do/level?subject=banana", None, "u")
    assert 200 == shown
    cookie = answered["set-cookie"].partition(";")[0]
    token = re.search(r'name="form_token" value="([0-9a-f]{64})"', found)[1]
    form = f"form_token={token}&subject=banana&level=NONE&confirmed=yes".encode()
    headers |= {"cookie": cookie, "content_type": "application/x-www-form-urlencoded"}
    status, text, _ = registry.ask("POST", "/ui/do/level", form, "u", **headers)
    assert (403, True) == (status, "User is denied operation WriteCompatibility on Subject: banana" in text)
    assert {"compatibilityLevel": "FULL"}.items() <= registry.ask("GET", "/config/banana")[1].items()


@pytest.mark.parametrize(("operation", "offered"), [("WRITE", True), ("READ", False)])
def test_registering_is_offered_to_those_who_may_write_something(registry, operation, offered):
    """The list of subjects offers a registration to a person who may write at least some subject."""
    registry.rules = (rule("u", "READ", "*"), rule("u", operation, "fees-*"))
    _, text, _ = registry.ask("GET", "/ui/subjects", None, "u")
    assert offered == ("/ui/do/register" in text)


def test_an_unknown_person_is_led_to_the_sign_in(registry):
    """A page that needs a right leads an anonymous person to the sign-in, and back to the same page."""
    registry.rules = ()
    for path in ("/ui/subjects", "/ui/subjects/apple?page=2", "/ui/settings"):
        status, _, headers = registry.ask("GET", path, None, None)
        assert (303, f"/ui/sign-in?to={quote(path, safe='')}") == (status, headers["location"])
        assert "www-authenticate" not in headers


def test_a_refusal_says_what_to_do(registry):
    """A person without the right gets a page that says whom to ask."""
    registry.rules = (rule("u", "READ", "apple"),)
    status, text, headers = registry.ask("GET", "/ui/subjects/banana", None, "u")
    assert (403, "text/html; charset=utf-8") == (status, headers["content-type"])
    assert "User is denied operation Describe on Subject: banana" in text
    assert "Ask an administrator" in text
    assert '<p class="person"><bdi>u</bdi>' in text


def test_a_form_tells_nothing_of_other_subjects(registry):
    """The notes of a form name no versions and no referrers of a subject that the person may not see."""
    registry.rules = (rule("u", "READ", "apple"),)
    for action in ("delete", "delete-for-good", "bring-back"):
        status, text, _ = registry.ask("GET", f"/ui/do/{action}?subject=banana", None, "u")
        assert 200 == status
        assert "It is about" not in text
        assert "The registry would refuse this now" not in text
