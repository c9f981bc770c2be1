"""Each feature can be left out: the rest of the service starts and answers."""

import http.client
import json

import pytest

from harness.serving import serving
from strata.registry.app import FEATURES, create_app, route_table, routers_of
from strata.registry.features.feature import Part
from strata.registry.node.setting_types import SettingGroup
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog

SETTINGS = Settings(log="memory:", ui="full")
SCHEMA = {"schema": '"int"'}
BY_NAME = {feature.name: feature for feature in FEATURES}


def ask(port, method, path, body=None):
    """Return status and JSON of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        is_json = "json" in response.getheader("Content-Type", "")
        return response.status, json.loads(content) if is_json and content else None
    finally:
        connection.close()


def addresses(feature):
    """Return the addresses of a feature that a GET without parameters reaches."""
    routes = [(route.method, route.path) for router in feature.routers for route in router.declared]
    paths = [path for method, path in routes if method == "GET" and "{" not in path]
    return paths + [f"/ui{view.path}" for view in feature.views if "{" not in view.path]


def test_features_have_names_of_their_own_and_settings_that_the_service_has():
    """Names are unique, and the settings of each feature are part of all settings."""
    assert len(FEATURES) == len(BY_NAME)
    for feature in FEATURES:
        assert feature.settings is None or issubclass(Settings, feature.settings)
        assert feature.settings is None or issubclass(feature.settings, SettingGroup)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_feature_is_left_out(name):
    """Without it, its addresses are unknown; a schema is registered, checked, read, listed and deleted as ever."""
    rest = [feature for feature in FEATURES if feature.name != name]
    with serving(lambda _: create_app(MemoryLog(), SETTINGS, features=rest)) as port:
        assert (200, 1) == (lambda status, body: (status, body["id"]))(
            *ask(port, "POST", "/subjects/s/versions", SCHEMA)
        )
        assert (200, {"is_compatible": True}) == ask(port, "POST", "/compatibility/subjects/s/versions", SCHEMA)
        assert "int" in ask(port, "GET", "/schemas/ids/1")[1]["schema"]
        assert 1 == ask(port, "GET", "/subjects/s/versions/latest")[1]["version"]
        assert (200, ["s"]) == ask(port, "GET", "/subjects")
        assert 200 == ask(port, "GET", "/health/ready")[0]
        assert (200, [1]) == ask(port, "DELETE", "/subjects/s")
        assert [404] * len(addresses(BY_NAME[name])) == [ask(port, "GET", path)[0] for path in addresses(BY_NAME[name])]
        for other in rest:
            if name != "pages" and other.name != "pages":
                assert 404 not in [ask(port, "GET", path)[0] for path in addresses(other)], other.name


def test_a_registry_without_features():
    """The core alone serves the reference."""
    with serving(lambda _: create_app(MemoryLog(), SETTINGS, features=())) as port:
        assert 200 == ask(port, "POST", "/subjects/s/versions", SCHEMA)[0]
        assert (200, ["s"]) == ask(port, "GET", "/subjects")
        assert 404 == ask(port, "GET", "/ui/subjects")[0]
        assert 200 == ask(port, "GET", "/openapi.json")[0]


def test_the_groups_of_routes_keep_their_places():
    """No two groups have the same place, in which they are matched and documented."""
    places = [router.place for router in routers_of(FEATURES)]

    assert sorted(set(places)) == places
    assert route_table().every == tuple(route for router in routers_of(FEATURES) for route in router.declared)


def test_a_part_sees_the_requests_of_a_node():
    """What a feature declares for the begin and the end of requests is called, in this order."""
    seen = []

    def part(_node):
        return Part(
            begin=lambda exchange: seen.append(exchange.status), end=lambda exchange: seen.append(exchange.status)
        )

    watching = type(FEATURES[0])("watching", part)
    with serving(lambda _: create_app(MemoryLog(), SETTINGS, features=(watching,))) as port:
        ask(port, "GET", "/subjects")

    assert [0, 200] == seen
