"""Signing in to the pages at a real OpenID Connect provider, and answers that only pretend to come from it."""

import re
import shutil
import ssl
import urllib.error
import urllib.request
from contextlib import ExitStack
from html import unescape
from http.cookiejar import CookieJar
from urllib.parse import parse_qs, quote, urlencode, urljoin, urlsplit

import pytest
import urllib3

from harness.oidc import PEOPLE, SigningKey
from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.features.access import code_flow, identity_keys
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog

pytestmark = pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="needs Node.js and npm")
CLAIMS = {"groups": ["readers"]}


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args):
        """Follow no redirect."""


class ProviderBrowser:
    """A browser at the provider, which fills in whatever form it gets."""

    def __init__(self, provider):
        tls = ssl.create_default_context(cafile=provider.ca_file)
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=tls), urllib.request.HTTPCookieProcessor(CookieJar()), _Stay()
        )

    def sign_in(self, address, user, back):
        """Sign in from an address of the provider on; return the address to which the provider sends the browser."""
        fields = None
        for _ in range(10):
            try:
                data = urlencode(fields).encode() if fields else None
                with self._opener.open(address, data, timeout=60) as answer:
                    text, fields = answer.read().decode(), {}
            except urllib.error.HTTPError as redirect:
                address, fields = urljoin(address, redirect.headers["location"]), None
                if address.startswith(back):
                    return address
                continue
            address = urljoin(address, unescape(re.search(r'action="([^"]*)"', text)[1]))
            fields = {"prompt": re.search(r'name="prompt" value="(\w+)"', text)[1], "login": user, "password": "any"}
        raise AssertionError("the provider does not come to an end")


@pytest.fixture(scope="module")
def signing(identity_providers, tmp_path_factory):
    """Yield a registry's port and the provider at which people sign in to it; the registry is patient with it."""
    folder = tmp_path_factory.mktemp("provider")
    made = []
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_flow, "_TIMEOUT", urllib3.Timeout(60))
        patch.setattr(identity_keys, "_CONNECT_S", 60.0)
        patch.setattr(identity_keys, "_TOTAL_S", 60.0)

        def app(port):
            back = f"http://127.0.0.1:{port}/ui/sign-in/callback"
            keys = [SigningKey("RS256", "one")]
            provider = stack.enter_context(identity_providers(folder, keys, {"https://api": "RS256"}, CLAIMS, back))
            made.append(provider)
            (folder / "secret").write_text("secret\n")
            settings = Settings(
                log="memory:", oidc_issuer=provider.issuer, oidc_audience="https://api", oidc_ca_file=provider.ca_file,
                oidc_client_id=PEOPLE, oidc_client_secret=folder / "secret", superusers="Group:readers", ui="full",
            )  # fmt: skip
            return create_app(MemoryLog(), settings)

        port = stack.enter_context(serving(app))
        yield port, made[0]


def begin(browser):
    """Click on the sign-in; return the address at the provider, and its parameters."""
    assert "/ui/sign-in/provider?to=%2Fui%2Fsettings" in browser.get("/ui/sign-in?to=%2Fui%2Fsettings")
    assert 303 == browser.call("GET", "/ui/sign-in/provider?to=%2Fui%2Fsettings")[0]
    assert "samesite=lax" in browser.headers["set-cookie"].lower()
    address = browser.headers["location"]
    return address, {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def test_a_person_signs_in_at_the_provider(signing, browser_of):
    """The way leads to the provider and back, to the page that the person wanted, with the groups of the id token."""
    port, provider = signing
    browser = browser_of(port)
    address, asked = begin(browser)
    assert ("code", "S256", PEOPLE) == (asked["response_type"], asked["code_challenge_method"], asked["client_id"])
    back = ProviderBrowser(provider).sign_in(address, "grace", asked["redirect_uri"])
    text = browser.get(back.removeprefix(f"http://127.0.0.1:{port}"), Sec_Fetch_Site="cross-site")
    assert '<meta http-equiv="refresh" content="0; url=/ui/settings">' in text
    shown = browser.get("/ui/settings")
    assert "<bdi>grace</bdi>" in shown
    assert "/ui/do/level" in shown
    assert 401 == browser.call("GET", back.removeprefix(f"http://127.0.0.1:{port}"))[0], "a code counts once"


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "x"},
        {"code": "x"},
        {"code": None},
        {"code": None, "error": "access_denied"},
        {"iss": "https://evil.test"},
        {"cookie": None},
        {"cookie": "another"},
    ],
)
def test_answers_that_do_not_count(signing, browser_of, changed):
    """No session begins with another state, code or issuer, or in a browser that did not begin the sign-in."""
    port, provider = signing
    browser = browser_of(port)
    address, asked = begin(browser)
    back = ProviderBrowser(provider).sign_in(address, "grace", asked["redirect_uri"])
    given = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
    if "cookie" in changed:
        browser.cookies.pop("strata_sign_in")
        if changed["cookie"]:
            begin(browser)
    given = {name: value for name, value in (given | changed).items() if value is not None and name != "cookie"}
    status, text = browser.call("GET", f"/ui/sign-in/callback?{urlencode(given)}")
    assert (401, True) == (status, "The sign-in did not succeed" in text)
    assert 303 == browser.call("GET", "/ui/settings")[0]


def test_a_provider_that_is_silent(browser_of):
    """If the provider does not answer, the person gets a page that says so."""
    app = create_app(
        MemoryLog(),
        Settings(log="memory:", oidc_issuer="https://127.0.0.1:1", oidc_audience="a", oidc_client_id="c", ui="full"),
    )
    with serving(lambda _: app) as port:
        browser = browser_of(port)
        status, text = browser.call("GET", f"/ui/sign-in/provider?to={quote('/ui/settings')}")
    assert (401, True) == (status, "The sign-in did not succeed" in text)
