"""Signing in to the pages: by a password, for a session, until it ends; and what forged requests get."""

import base64
import json
import re

import pytest

from harness.passwords import cheap_hash
from harness.waiting import until
from strata.registry.core.rights.authentication import no_user
from strata.registry.core.rights.principal import Principal
from strata.registry.features.pages.sessions import Sessions, TooManyGroups

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
PASSWORD = "open sesame: ä"
ROLES = [
    {"principal": "User:ada", "role": "admin"},
    {"principal": "Group:readers", "role": "consumer", "on": "orders"},
]
START = "/ui/sign-in?to=%2Fui%2Fsubjects%2Forders"


@pytest.fixture(scope="module")
def auth_file(tmp_path_factory):
    """Return an auth file with two users."""
    path = tmp_path_factory.mktemp("users") / "auth.yaml"
    groups = {"ada": [], "rita": ["readers"]}
    users = [{"name": name, "password": str(cheap_hash(PASSWORD)), "groups": of} for name, of in groups.items()]
    path.write_text(json.dumps({"users": users, "roles": ROLES}))
    return path


@pytest.fixture(scope="module")
def service(open_pages, auth_file):
    """Return a registry with access control and one subject."""
    opened = open_pages(auth_file=auth_file, superusers="User:ada", ui="full")
    basic = {"Authorization": "Basic " + base64.b64encode(f"ada:{PASSWORD}".encode()).decode()}
    body = json.dumps({"schema": '"int"'})
    assert 200 == opened.call("POST", "/subjects/orders/versions", body, **JSON, **basic)[0]
    return opened


@pytest.fixture
def browser(service):
    """Return a browser without a session."""
    return type(service)(service.port)


def token(text):
    """Return the token in the forms of a page."""
    return re.search(r'name="form_token" value="([0-9a-f]{64})"', text)[1]


def sign_in(browser, name="rita", password=PASSWORD, **headers):
    """Fill in the form; return the status and the text of the answer."""
    form = {"form_token": token(browser.get(START)), "name": name, "password": password, "to": "/ui/subjects/orders"}
    return browser.post("/ui/sign-in", form, **headers)


def test_a_person_signs_in_and_out(browser):
    """A page leads to the sign-in, which leads back; the person is named, sees what they may, and can sign out."""
    assert 303 == browser.call("GET", "/ui/subjects/orders")[0]
    assert START == browser.headers["location"]
    assert 303 == sign_in(browser)[0]
    assert "/ui/subjects/orders" == browser.headers["location"]
    text = browser.get("/ui/subjects/orders")
    assert "<bdi>rita</bdi>" in text
    assert 403 == browser.call("GET", "/ui/subjects/other")[0]
    assert 303 == browser.post("/ui/sign-out", {"form_token": token(text)})[0]
    assert 'strata_session=""' in browser.headers["set-cookie"]
    assert 303 == browser.call("GET", "/ui/subjects/orders")[0]


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
def test_the_cookie(browser, scheme, secure):
    """The cookie is for the pages only, for no script, for no other site, and with TLS for no plain connection."""
    sign_in(browser, X_Forwarded_Proto=scheme)
    parts = [part.strip().lower() for part in browser.headers["set-cookie"].split(";")]
    assert {"path=/ui", "httponly", "samesite=strict", "max-age=28800"} <= set(parts)
    assert secure == ("secure" in parts)


def test_a_session_is_none_for_the_api(browser):
    """Only pages take the cookie: for the API, which other sites can reach, it counts for nothing."""
    sign_in(browser)
    assert 401 == browser.call("GET", "/subjects", **JSON)[0]
    browser.get("/ui/subjects")


@pytest.mark.parametrize(
    ("name", "password"), [("rita", "wrong"), ("nobody", PASSWORD), ("", ""), ("a\0b", "x"), ("rita", "x" * 5000)]
)
def test_a_wrong_password(browser, name, password):
    """A failed sign-in says only that it failed, and begins no session."""
    status, text = sign_in(browser, name, password)
    assert (401, True) == (status, "The name or the password is wrong." in text)
    assert 303 == browser.call("GET", "/ui/subjects")[0]


@pytest.mark.parametrize(
    ("to", "leads_to"),
    [
        ("/ui/subjects?name=a", "/ui/subjects?name=a"),
        ("https://evil.test/ui", "/ui"),
        ("//evil.test/ui", "/ui"),
        ("/ui/../../evil", "/ui/../../evil"),
        ("/uix", "/ui"),
        ("/subjects", "/ui"),
        ("/ui/\\evil.test", "/ui"),
        ("/ui\r\nX: y", "/ui"),
        ("javascript:alert(1)", "/ui"),
        ("", "/ui"),
    ],
)
def test_no_way_to_another_site(browser, to, leads_to):
    """After the sign-in a person gets to a page of this registry, whatever the address says."""
    form = {"form_token": token(browser.get("/ui/sign-in")), "name": "rita", "password": PASSWORD, "to": to}
    assert 303 == browser.post("/ui/sign-in", form)[0]
    assert leads_to == browser.headers["location"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.test"},
        {"Origin": "null"},
    ],
)
def test_forms_of_other_sites(browser, headers):
    """A form that another site sends is refused, even if its token is right."""
    assert 403 == sign_in(browser, **headers)[0]
    sign_in(browser)
    right = {"form_token": token(browser.get("/ui/subjects"))}
    assert 403 == browser.post("/ui/sign-out", right, **headers)[0]
    browser.get("/ui/subjects")


def test_forms_without_a_token_of_the_session(browser, service):
    """A form needs a token of this very session: not none, not one of another person or of before the sign-in."""
    before = token(browser.get("/ui/sign-in"))
    sign_in(browser)
    other = type(service)(service.port)
    sign_in(other, "ada")
    for wrong in ("", "0" * 64, before, token(other.get("/ui/subjects"))):
        status, text = browser.post("/ui/sign-out", {"form_token": wrong})
        assert (403, True) == (status, "Load the page" in text)
    browser.cookies.clear()
    assert 403 == browser.post("/ui/sign-out", {"form_token": before})[0]


@pytest.mark.parametrize("wrong", ["", "x", "a.b.c", "é", "eyJhbGciOiJub25lIn0.eyJ1c2VyIjoiYWRhIn0."])
def test_forged_cookies(browser, wrong):
    """A cookie that this registry has not signed counts for nothing."""
    browser.cookies["strata_session"] = wrong
    assert 303 == browser.call("GET", "/ui/subjects")[0]


def test_a_changed_cookie(browser):
    """A cookie with a changed character counts for nothing."""
    sign_in(browser)
    kept = browser.cookies["strata_session"]
    for at in (5, len(kept) // 2, -5):
        other = "A" if kept[at] != "A" else "B"
        browser.cookies["strata_session"] = kept[:at] + other + kept[at + 1 :]
        assert 303 == browser.call("GET", "/ui/subjects")[0]


def test_whoever_comes_by_a_link_of_another_site(browser):
    """The browser holds the strict cookie back for such a link; a page that goes on by itself makes up for it."""
    sign_in(browser)
    kept, browser.cookies = browser.cookies, {}
    assert 303 == browser.call("GET", "/ui/subjects/orders", Sec_Fetch_Site="cross-site")[0]
    text = browser.get(browser.headers["location"], Sec_Fetch_Site="cross-site")
    assert '<meta http-equiv="refresh" content="0; url=/ui/subjects/orders">' in text
    browser.cookies = kept
    assert "<bdi>rita</bdi>" in browser.get("/ui/subjects/orders", Sec_Fetch_Site="same-origin")


@pytest.mark.parametrize("body", [b"\xff%ff&=&a", b"--x", b"{}"])
def test_forms_that_cannot_be_read(browser, body):
    """A damaged form is an error page, not a failure."""
    kinds = (
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=y",
        "multipart/form-data",
        "application/json",
    )
    found = {browser.call("POST", "/ui/sign-in", body, Content_Type=kind)[0] for kind in kinds}
    assert found <= {400, 403, 415}


class _File:
    """An auth file whose users a test exchanges."""

    def __init__(self, **users):
        self.content = type("Content", (), {"users": users})()


def _user(password, *groups):
    return type("User", (), {"name": "u", "password": cheap_hash(password), "groups": frozenset(groups)})()


def _headers(cookie):
    return {b"cookie": b"other=1; strata_session=" + cookie.encode()}


def test_a_session_follows_the_auth_file():
    """A session has the user's present groups, and ends when the user goes or gets another password."""
    file = _File(u=_user("a", "g"))
    sessions = Sessions(b"s" * 32, lambda name: file.content.users.get(name), 60)  # noqa: PLW0108 - the content changes
    _, cookie = sessions.begin(Principal("u", frozenset({"g"}), "basic"))
    assert Principal("u", frozenset({"g"}), "basic") == sessions.read(_headers(cookie)).principal
    file.content.users["u"].groups = frozenset({"h"})
    assert frozenset({"h"}) == sessions.read(_headers(cookie)).principal.groups
    file.content.users["u"] = _user("b", "h")
    assert sessions.read(_headers(cookie)) is None
    del file.content.users["u"]
    assert sessions.read(_headers(cookie)) is None


def test_a_session_ends():
    """A cookie is valid for its time, and only for those who have the secret."""
    person = Principal("u", frozenset({"g"}), "bearer")
    sessions = Sessions(b"s" * 32, no_user, 60)
    session, cookie = sessions.begin(person)
    assert session == sessions.read(_headers(cookie))
    assert session == Sessions(b"s" * 32, no_user, 5).read(_headers(cookie))
    assert Sessions(b"t" * 32, no_user, 60).read(_headers(cookie)) is None
    assert Sessions(b"s" * 32, no_user, -1).read(_headers(Sessions(b"s" * 32, no_user, -1).begin(person)[1])) is None


def test_a_person_in_too_many_groups():
    """Groups that fit into no cookie are an error, not a session without them."""
    groups = frozenset(f"group-{number:030}" for number in range(200))
    with pytest.raises(TooManyGroups):
        Sessions(b"s" * 32, no_user, 60).begin(Principal("u", groups, "bearer"))


def test_command_lines_name_the_person(browser):
    """The command lines of a review sign in as the person, whose password they leave open."""
    sign_in(browser, "ada")
    form = {"form_token": token(browser.get("/ui/do/level?subject=orders")), "subject": "orders", "level": "FULL"}
    text = browser.post("/ui/do/level", form)[1]
    assert " -u ada " in text
    assert " --auth ada:PASSWORD " in text


def test_signing_in_and_out_is_audited(open_pages, auth_file, tmp_path):
    """The audit names who signed in and out, and the name that was given with a wrong password."""
    path = tmp_path / "audit.jsonl"
    browser = open_pages(auth_file=auth_file, superusers="User:ada", ui="full", audit=str(path))
    assert 401 == sign_in(browser, password="wrong")[0]
    assert 303 == sign_in(browser)[0]
    assert 303 == browser.post("/ui/sign-out", {"form_token": token(browser.get("/ui/subjects"))})[0]
    until(lambda: path.read_text().count("\n") == 3)  # the last line is written after its answer
    failure, entered, left = map(json.loads, path.read_text().splitlines())

    assert ("auth_failure", "refused", 401) == (failure["event"], failure["outcome"], failure["status"])
    assert {"mechanism": "basic", "user": "rita"} == failure["tried"]
    assert "127.0.0.1" == failure["source_ip"]
    assert [("sign_in", "User:rita"), ("sign_out", "User:rita")] == [
        (line["event"], line["actor"]["id"]) for line in (entered, left)
    ]
    assert "wrong" not in path.read_text().replace("User:wrong", "")
