"""What web pages may do through a browser, and what the page at `/docs` loads."""

import re

import pytest

from strata.registry.core.errors import RegistryError
from strata.registry.http.checks import BrowserGuard
from strata.registry.settings import Settings

_PAGE_FILES = ["/docs", "/docs/start.js", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"]


def refusal(guard: BrowserGuard, method: str = "POST", **headers: str) -> str | None:
    """Return the status and message of a refusal, or None if the request passes."""
    given = {name.replace("_", "-").encode(): value.encode("latin-1") for name, value in headers.items()}
    try:
        guard.check(method, given)
    except RegistryError as error:
        return f"{error.status} {error.message}"
    return None


def guarded(**settings: str) -> BrowserGuard:
    """Return the guard of a registry with some settings."""
    chosen = Settings(**settings)
    return BrowserGuard(chosen.hosts, chosen.origins)


LOOPBACK = {"listen": "127.0.0.1:8081"}
OPEN = {"listen": "0.0.0.0:8081"}
NAMED = {**OPEN, "allowed_hosts": "Registry.test, other.test"}

# settings, Host, whether the guard accepts the request
HOSTS = [
    (LOOPBACK, "127.0.0.1:8081", True),
    (LOOPBACK, "127.0.0.1", True),
    (LOOPBACK, "127.1.2.3:9", True),
    (LOOPBACK, "localhost:8081", True),
    (LOOPBACK, "LocalHost.:8081", True),
    (LOOPBACK, "strata.localhost", True),
    (LOOPBACK, "[::1]:8081", True),
    (LOOPBACK, "", True),
    (LOOPBACK, "evil.test", False),
    (LOOPBACK, "evil.test:8081", False),
    (LOOPBACK, "localhost.evil.test", False),
    (LOOPBACK, "127.0.0.1.evil.test", False),
    (LOOPBACK, "notlocalhost", False),
    (LOOPBACK, "10.0.0.1:8081", False),
    (LOOPBACK, "[::2]", False),
    (LOOPBACK, "\xe4", False),
    ({"listen": "[::1]:8081"}, "localhost", True),
    ({"listen": "[::1]:8081"}, "evil.test", False),
    ({"listen": "localhost:8081"}, "evil.test", False),
    (LOOPBACK | {"advertised_url": "http://Node-1.test:8081/base"}, "node-1.test:8081", True),
    (LOOPBACK | {"advertised_url": "http://node-1.test:8081"}, "node-2.test:8081", False),
    (LOOPBACK | {"allowed_hosts": "a.test,B.test"}, "b.test:8081", True),
    (LOOPBACK | {"allowed_hosts": "[fd00::1]"}, "[fd00::1]:8081", True),
    (LOOPBACK | {"allowed_hosts": "*"}, "evil.test", True),
    (OPEN, "evil.test", True),
    (NAMED, "registry.test", True),
    (NAMED, "localhost", True),
    (NAMED, "evil.test", False),
]


@pytest.mark.parametrize(("settings", "host", "taken"), HOSTS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_hosts(settings, host, taken, method):
    """A node on loopback accepts only requests for names of this machine, which stops DNS rebinding."""
    guard = guarded(**settings)
    for _ in range(2):  # The guard knows the name the second time.
        message = refusal(guard, method, host=host)
        assert taken == (message is None)
        assert message is None or (message.startswith("403 ") and "--allowed-hosts" in message)
    assert taken == guard.knows(host.encode("latin-1"))


HERE = "localhost:8081"
UI = {"allowed_origins": "https://UI.test, http://localhost:3000"}

# settings, headers besides Host, whether the guard accepts a write
ORIGINS = [
    ({}, {}, True),
    ({}, {"origin": "http://localhost:8081"}, True),
    ({}, {"origin": "http://LOCALHOST:8081", "sec_fetch_site": "same-origin"}, True),
    ({}, {"sec_fetch_site": "none"}, True),
    ({}, {"origin": "http://evil.test"}, False),
    ({}, {"origin": "http://localhost:3000", "sec_fetch_site": "same-site"}, False),
    ({}, {"origin": "http://localhost"}, False),
    ({}, {"origin": "null"}, False),
    ({}, {"origin": "localhost:8081"}, False),
    ({}, {"sec_fetch_site": "cross-site"}, False),
    ({}, {"sec_fetch_site": "Cross-Site", "origin": "http://localhost:8081"}, False),
    (UI, {"origin": "https://ui.test", "sec_fetch_site": "cross-site"}, True),
    (UI, {"origin": "http://localhost:3000"}, True),
    (UI, {"origin": "http://ui.test"}, False),
    (UI, {"sec_fetch_site": "cross-site"}, False),
    ({"allowed_origins": "*"}, {"origin": "null", "sec_fetch_site": "cross-site"}, True),
    ({"advertised_url": "https://registry.test/base"}, {"origin": "https://registry.test"}, True),
]


@pytest.mark.parametrize(("settings", "headers", "taken"), ORIGINS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_origins(settings, headers, taken, method):
    """A page of another origin may not write."""
    message = refusal(guarded(**settings), method, host=HERE, **headers)

    assert taken == (message is None)
    assert message is None or (message.startswith("403 ") and "--allowed-origins" in message)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reads_from_other_origins(method):
    """Reads get an answer, but without permission the browser does not show it to the page."""
    assert refusal(guarded(), method, host=HERE, origin="http://evil.test", sec_fetch_site="cross-site") is None


def test_pages_of_other_sites_over_http(api):
    """A form of another site cannot register or delete; a rebound name cannot read, not even cached answers."""
    api.placed("s", '"int"')
    assert 200 == api.get("/schemas/ids/1")[0]  # From now on the answer comes from the cache.
    foreign = {"Origin": "https://evil.test"}

    assert (403, 403) == codes(api.call("POST", "/subjects/t/versions", '{"schema": "\\"int\\""}', **foreign))
    assert (403, 403) == codes(api.delete("/subjects/s", **foreign))
    assert (403, 403) == codes(api.get("/schemas/ids/1", Host="evil.test:8081"))
    assert (200, ["s"]) == api.get("/subjects")


def codes(answer: tuple) -> tuple[int, int]:
    """Return the status and the error code of an answer."""
    return answer[0], answer[1]["error_code"]


def test_docs_loads_what_is_there_and_nothing_else(shared_api):
    """The page names only existing files of its own host, and its policy keeps the browser from any other host."""
    status, page = shared_api.get("/docs", Accept="text/html")
    named = re.findall(r'(?:src|href)="([^"]*)"', page)

    assert 200 == status
    assert {*_PAGE_FILES[1:], "data:,"} == set(named)
    for path in _PAGE_FILES:
        assert 200 == shared_api.get(path, Accept="*/*")[0]
        policy = shared_api.headers["content-security-policy"]
        sources = {source for rule in policy.split("; ") for source in rule.split(" ")[1:]}
        assert {"'none'", "'self'", "data:"} == sources
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy


@pytest.mark.parametrize("path", ["/docs", "/docs/start.js", "/docs/swagger-ui.css"])
def test_docs_names_no_other_host(shared_api, path):
    """No file of the page names another host, except in names of XML."""
    found = re.findall(r"https?://[\w.:/-]*", shared_api.get(path, Accept="*/*")[1])

    assert {"http://www.w3.org/2000/svg"} >= set(found)


@pytest.mark.parametrize("path", ["/redoc", "/docs/README.md", "/docs/..%2Fapp.py", "/docs/swagger-ui.css/x"])
def test_other_pages_are_not_there(shared_api, path):
    """The registry serves only the files of the page."""
    assert 404 == shared_api.get(path)[0]
