"""Each route declares what the layers before it need to know, and the layers act on it."""

import pytest
from fastapi.routing import APIRoute

from strata.registry.app import create_app
from strata.registry.routes.all import ROUTERS, ROUTES
from strata.registry.settings import Settings
from strata.registry.transport.front import Front
from strata.registry.transport.route_facts import DeclaredRoute, RouteFacts
from strata.storage.memory_log import MemoryLog

DECLARED = [route for router in ROUTERS for route in router.declared]
# The POST routes that change nothing; no other POST route only reads.
READING_POSTS = {
    "/", "/contexts/{context}", "/associations:batchGet", "/dek-registry/v1/keks/{name}/test", "/subjects/{subject}",
    "/compatibility/subjects/{subject}/versions", "/compatibility/subjects/{subject}/versions/{version}",
}  # fmt: skip
CACHEABLE = {
    "/schemas/ids/{schema_id}", "/schemas/ids/{schema_id}/schema",
    "/subjects/{subject}/versions/{version}", "/subjects/{subject}/versions/{version}/schema",
}  # fmt: skip


def test_every_route_declares_its_facts():
    """The routes that FastAPI serves are those with facts."""
    forward = create_app(MemoryLog(), Settings(log="memory:"))._app
    served = {(method, route.path) for route in forward._app.routes for method in route.methods}

    assert served == {(route.method, route.path) for route in DECLARED}
    assert all(isinstance(route, APIRoute) for route in forward._app.routes)


def test_routes_that_write():
    """Every PUT and DELETE writes, no GET does, and a POST does unless it is one of a few."""
    expected = [r.method in ("PUT", "DELETE") or (r.method == "POST" and r.path not in READING_POSTS) for r in DECLARED]

    assert expected == [route.facts.writes for route in DECLARED]


def test_routes_whose_answers_are_cached():
    """Only a schema by id, or by subject and version, is cacheable."""
    assert CACHEABLE == {route.path for route in DECLARED if route.facts.cacheable}


@pytest.mark.parametrize("path", [*sorted(CACHEABLE), "/schemas/guids/{guid}", "/subjects/{subject}/versions"])
def test_second_answer_comes_from_the_cache(api, monkeypatch, path):
    """The layers after the cache see the second request for a cacheable answer no more, and all other requests."""
    guid = api.post("/subjects/s/versions", {"schema": '"int"'})[1]["guid"]
    url = path.format(schema_id=1, subject="s", version=1, guid=guid)
    passed_on = []
    original = Front._pass_on

    async def pass_on(self, *args):
        passed_on.append(args)
        await original(self, *args)

    monkeypatch.setattr(Front, "_pass_on", pass_on)
    first, second = api.get(url), api.get(url)

    assert first == second
    assert (1 if path in CACHEABLE else 2) == len(passed_on)


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
