"""Each route declares what the layers before it need to know, and the layers act on it."""

from pathlib import Path

import pytest

from strata.registry.api.openapi import documented
from strata.registry.api.router import Router
from strata.registry.app import ROUTERS, route_table
from strata.registry.core.rights.route_rights import OPEN, How
from strata.registry.core.rights.rules import ResourceType
from strata.registry.http.route_facts import DeclaredRoute, Kept, RouteFacts

ROUTES = route_table()
DECLARED = [route for router in ROUTERS for route in router.declared]
# The POST routes that change nothing; no other POST route only reads.
READING_POSTS = {
    "/", "/contexts/{context}", "/associations:batchGet", "/dek-registry/v1/keks/{name}/test", "/subjects/{subject}",
    "/compatibility/subjects/{subject}/versions", "/compatibility/subjects/{subject}/versions/{version}",
}  # fmt: skip
KEPT_FOR_GOOD = {
    "/schemas/ids/{schema_id}", "/schemas/ids/{schema_id}/schema",
    "/subjects/{subject}/versions/{version}", "/subjects/{subject}/versions/{version}/schema",
}  # fmt: skip
NEVER_KEPT = ("/metrics", "/schemas/types", "/security/acls/verdict", "/v1/", "/docs", "/openapi.json", "/health/")


@pytest.mark.usefixtures("document")  # which makes the same routes
def test_every_route_declares_its_facts():
    """The routes that FastAPI documents are those with facts, and each of them is served."""
    shown = {
        (method, route.path) for router in ROUTERS for route in documented(router).routes for method in route.methods
    }

    assert shown == {(route.method, route.path) for route in DECLARED}
    assert all(route.respond for route in DECLARED)


def test_routes_that_write():
    """Every PUT and DELETE writes, no GET does, and a POST does unless it is one of a few."""
    expected = [r.method in ("PUT", "DELETE") or (r.method == "POST" and r.path not in READING_POSTS) for r in DECLARED]

    assert expected == [route.facts.writes for route in DECLARED]


def test_routes_whose_answers_are_kept():
    """A schema by id or version is kept for good, what else comes from the log per State, and the rest not at all."""
    for route in DECLARED:
        fixed = route.path == "/" or route.path.startswith(NEVER_KEPT)
        others = Kept.NO if fixed or route.facts.writes else Kept.PER_STATE
        assert (Kept.FOR_GOOD if route.path in KEPT_FOR_GOOD and route.method == "GET" else others) == route.facts.kept


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("GET", "/subjects/a%2Fb/versions/1", "/subjects/{subject}/versions/{version}"),
        ("GET", "/schemas/types", "/schemas/types"),
        ("GET", "/schemas/types/x", None),
        ("PATCH", "/subjects", None),
        ("GET", "/", "/"),
    ],
)
def test_route_of_a_request(method, path, found):
    """A route is found by its method and the segments of the raw path."""
    route = ROUTES.find(method, path)

    assert found == (route and route.path)


def test_first_route_that_matches():
    """A fixed segment before a variable one is found first if it is declared first."""
    routes = [DeclaredRoute("GET", "/a/b", RouteFacts()), DeclaredRoute("GET", "/a/{name}", RouteFacts(writes=True))]

    assert [False, True] == [type(ROUTES)(routes).find("GET", path).facts.writes for path in ("/a/b", "/a/c")]


OPEN_ROUTES = ("/", "/contexts/{context}", "/schemas/types", "/v1/metadata/", "/docs", "/openapi.json", "/health/")


def test_every_route_declares_what_it_needs():
    """Only routes that say nothing about the content of the registry are open."""
    for route in DECLARED:
        is_open = route.path in OPEN_ROUTES[:3] or route.path.startswith(OPEN_ROUTES[3:])
        if route.method == "DELETE":
            is_open = False

        assert is_open == (route.facts.need is OPEN), route.path


def test_what_a_route_needs_is_named_by_its_path():
    """A right on a name needs the name in the path, and only rights on the whole registry do without."""
    for route in DECLARED:
        need = route.facts.need
        types = {right.resource_type for right in need.rights}
        if need.how in (How.NAMED, How.ONE_OF, How.REFERRED_TO):
            assert (ResourceType.SUBJECT in types) == ("{subject}" in route.path)
            assert (ResourceType.KEK in types) == ("{name}" in route.path)


def test_a_route_that_declares_no_need_cannot_be_made():
    """A new route cannot be served by mistake."""
    for declare in (Router(place=1).reads, Router(place=1).writes):
        with pytest.raises(TypeError, match="need"):
            declare("GET", "/x", None)


def test_the_document_says_what_each_route_needs():
    """docs/access.md has a row for each need, with all routes that have it, in the order in which they are matched."""
    needs: dict[str, list[str]] = {}
    for route in DECLARED:
        needs.setdefault(route.facts.need.text.replace("|", "\\|"), []).append(f"`{route.method} {route.path}`")
    page = Path(__file__).parents[2].joinpath("docs", "access.md").read_text()
    table = page[page.index("| what is needed | for |") :].splitlines()

    assert [f"| {need} | {', '.join(routes)} |" for need, routes in needs.items()] == table[2:]


def test_refusals_are_documented(document):
    """The OpenAPI document names 401 and 403 for all routes that need a right, and no scheme for the others."""
    paths, schemes = document["paths"], set(document["components"]["securitySchemes"])
    for route in DECLARED:
        operation = paths.get(route.path, {}).get(route.method.lower())
        if operation is None:
            continue
        is_open = route.facts.need is OPEN
        assert (set() if is_open else schemes) == {name for one in operation["security"] for name in one}
        assert is_open != ("401" in operation["responses"])
        assert is_open != ("40301" in operation["responses"].get("403", {}).get("description", ""))
