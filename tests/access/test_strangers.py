"""What a stranger learns: every route, pages included, asked without credentials and with wrong ones."""

import asyncio
import re

import pytest

from harness.access_questions import ALL_ON_OPEN, filled
from harness.guarded_registry import Registry
from strata import __version__
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.features.pages.settings import Ui

STRANGERS = (None, "wrong")
FORM = "application/x-www-form-urlencoded"
ANY = object()

# Every route that needs no credentials: why it is open, and what it tells. ANY is a file that each copy of Strata has.
OPEN_ROUTES = {
    ("GET", "/"): ("a base URL that clients try first", 200, {}),
    ("POST", "/"): ("the same", 200, {}),
    ("GET", "/contexts/{context}"): ("a base URL with a context", 200, {}),
    ("POST", "/contexts/{context}"): ("the same", 200, {}),
    ("GET", "/schemas/types"): ("what this release can do", 200, ["AVRO", "PROTOBUF", "JSON"]),
    ("GET", "/v1/metadata/id"): (
        "clients of role-based access ask for it before they sign in", 200,
        {"scope": {"path": [], "clusters": {"kafka-cluster": "strata", "schema-registry-cluster": "schema-registry"}}},
    ),
    ("GET", "/v1/metadata/version"): ("consoles choose features by it", 200, {"version": __version__, "commitId": ""}),
    ("GET", "/v1/metadata/deployment"): ("the same", 200, {"attributes": []}),
    ("GET", "/health/live"): ("probes send no credentials", 200, {"live": True}),
    ("GET", "/health/ready"): ("load balancers and other nodes ask it", 200, {"ready": True, "canWrite": True}),
    ("GET", "/health/write"): ("the same", 200, {"ready": True, "canWrite": True}),
    ("GET", "/docs"): ("the API, which is public", 200, ANY),
    ("GET", "/docs/{name}"): ("the files of that page", 200, ANY),
    ("GET", "/openapi.json"): ("the API, which is public", 200, ANY),
    ("GET", "/ui"): ("leads to the pages", 303, None),
    ("GET", "/ui/static/{name}"): ("the style of the sign-in page", 200, ANY),
    ("GET", "/ui/sign-in"): ("where people sign in", 200, ANY),
    ("POST", "/ui/sign-in"): ("a form without its token is refused", 403, ANY),
    ("GET", "/ui/sign-in/provider"): ("where people sign in", 200, ANY),
    ("GET", "/ui/sign-in/callback"): ("a sign-in that was not begun is refused", 401, ANY),
    ("POST", "/ui/sign-out"): ("a form without its token is refused", 403, ANY),
}  # fmt: skip
NAMES = {"/docs/{name}": "start.js", "/ui/static/{name}": "strata.css"}
"""A file behind the routes of files; other names are those of a secret."""

SESSION = re.compile("(?<=strata_session=)[^;]+")
"""The number of a new session, which is random."""


@pytest.fixture(scope="module")
def registries(document):
    """Return a registry with secrets and one without, both with all pages."""
    with asyncio.Runner() as runner:
        yield [filled(Registry(runner, ALL_ON_OPEN, ui=Ui.FULL), secrets=secrets) for secrets in (True, False)]


def routes(registry):
    """Return the routes of a registry, first those that are found first, without those that another one hides."""
    found = {}
    for route in registry.app.routes.every:
        found.setdefault((route.method, route.path), route)
    return list(found.values())


def answer(registry, route, user):
    """Return the answer of a route to a stranger who guesses a name, without what is random."""
    path = re.sub(r"\{[^}]+\}", NAMES.get(route.path, "secret"), route.path)
    if route.facts.takes_forms:
        status, content, headers = registry.ask(route.method, path, b"a=b", user, content_type=FORM)
    else:
        status, content, headers = registry.ask(route.method, path, {} if route.method != "GET" else None, user)
    request_id = headers.pop("x-request-id")
    texts = [SESSION.sub("", str(part)).replace(request_id, "") for part in (content, sorted(headers.items()))]
    return status, content, headers, texts


def test_the_open_routes_are_listed_with_a_reason(registries):
    """A route that needs no credentials stands in the table above."""
    assert set(OPEN_ROUTES) == {(r.method, r.path) for r in routes(registries[0]) if r.facts.need is OPEN}


def test_open_routes_tell_what_is_written_down(registries):
    """Each open route gives strangers exactly this, whatever the registry holds."""
    for route in (route for route in routes(registries[0]) if route.facts.need is OPEN):
        _, status, told = OPEN_ROUTES[route.method, route.path]
        for user in STRANGERS:
            with_secrets, without = (answer(registry, route, user) for registry in registries)

            assert (route.path, status) == (route.path, with_secrets[0])
            assert (route.path, with_secrets[3]) == (route.path, without[3])
            if told is not ANY:
                assert (route.path, told) == (route.path, with_secrets[1])


def test_all_other_routes_tell_a_stranger_nothing(registries):
    """They answer 401 alike, with and without a secret; pages lead to the sign-in, and repeat only the address."""
    for route in (route for route in routes(registries[0]) if route.facts.need is not OPEN):
        for user in STRANGERS:
            with_secrets, without = (answer(registry, route, user) for registry in registries)
            status, content, headers, _ = with_secrets

            assert (route.path, without[3]) == (route.path, with_secrets[3])
            if not route.path.startswith("/ui/"):
                assert (route.path, 401, {"error_code": 401, "message": "Unauthorized"}) == (
                    route.path, status, content,
                )  # fmt: skip
                assert {"content-length", "content-type", "www-authenticate"} == set(headers)
            elif route.method == "GET":
                assert (route.path, 303, None) == (route.path, status, content)
                assert headers["location"].startswith("/ui/sign-in?to=")
            else:
                assert (route.path, True) == (route.path, status in (401, 403))
                assert "secret" not in content


@pytest.mark.parametrize("path", ["/x", "/subjects/secret/x", "/ui/x", "/contexts/.c/x", "/metrics/x", "/v1/x"])
def test_paths_without_a_route_tell_a_stranger_nothing(registries, path):
    """They answer 404 or 405 alike, with and without a secret."""
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
        with_secrets, without = (registry.ask(method, path, None, None) for registry in registries)
        texts = [str(content).replace(headers["x-request-id"], "") for _, content, headers in (with_secrets, without)]

        assert (without[0], texts[1]) == (with_secrets[0], texts[0])
        assert with_secrets[0] in (404, 405)
