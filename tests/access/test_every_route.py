"""Every route decides by random rules as the model does, which asks every rule in turn."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.access_examples import EXAMPLES, May, fill
from harness.examples import examples
from harness.guarded_registry import Registry
from strata.registry.app import ROUTERS
from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.core.rights.rules import Operation, Permission, Resource, ResourceType, Rule, parse_resource
from strata.registry.http.route_facts import RouteTable
from strata.storage.log import START, MemoryLog

NAMES = {
    ResourceType.SUBJECT: ["a", "a*", "ab", "b", "*", ":.:*", ":.c:", ":.c:*", ":.c:a"],
    ResourceType.KEK: ["k", "k*", "kd", "kx", "*"],
}
USER = Principal("u", frozenset({"g"}), "basic")
DENIED = 40301


@st.composite
def rules(draw):
    """Return a rule that is often about the user and what the examples ask for."""
    kind = draw(st.sampled_from([ResourceType.SUBJECT, ResourceType.SUBJECT, *ResourceType]))
    resource = parse_resource(kind, draw(st.sampled_from(NAMES[kind]))) if kind in NAMES else Resource(kind)
    return Rule(
        draw(st.sampled_from(["User:u", "User:u", "User:*", "Group:g", "Group:h", "Anonymous"])),
        draw(st.sampled_from(["*", "*", "*", "10.0.0.0/8", "10.0.0.2"])),
        resource,
        draw(st.sampled_from(Operation)),
        draw(st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.ALLOW, Permission.DENY])),
    )


ATOMS = [
    Rule("User:u", "*", parse_resource(ResourceType.SUBJECT, name), operation)
    for name in ("a", "ab", "b", ":.c:a")
    for operation in Operation
    if operation not in (Operation.ALL, Operation.ALTER)
]
"""The smallest rights on the subjects of the examples, each of which the model may miss alone."""


@st.composite
def nearly_all(draw):
    """Return all rights on subjects but a few, of which some are denied."""
    missing = draw(st.sets(st.sampled_from(ATOMS), min_size=1, max_size=4))
    denied = [replace(rule, permission=Permission.DENY) for rule in missing if draw(st.booleans())]
    return (*(rule for rule in ATOMS if rule not in missing), *denied)


class World:
    """Registries with the same content; one serves until a request has changed it."""

    def __init__(self, runner):
        self._runner, first = runner, Registry(runner)
        fill(first)
        self._entries = list(first.log.read(START))
        self.guid = "/schemas/guids/" + first.ask("GET", "/schemas/ids/1")[1]["guid"]
        self._registry = None

    def asked(self, given_rules, example):
        """Return status and content of the answer to an example."""
        if self._registry is None:
            log = MemoryLog()
            log._entries = list(self._entries)
            self._registry = Registry(self._runner, given_rules, log)
        registry, path = self._registry, example.path.replace("{guid}", self.guid)
        registry.rules = given_rules
        status, content, _ = registry.ask(example.method, path, example.body, "u,g")
        if registry.log.end() >= len(self._entries):
            self._registry = None
        return status, content


@pytest.fixture(scope="module")
def world():
    """Return registries with the content that the examples ask for."""
    with asyncio.Runner() as runner:
        yield World(runner)


def test_each_route_has_an_example():
    """A new route that needs a right also needs an example in `harness/access_examples.py`."""
    routes = [route for router in ROUTERS for route in router.declared]
    table = RouteTable(routes)
    paths = [(one.method, one.path.replace("{guid}", "/schemas/guids/x").partition("?")[0]) for one in EXAMPLES]
    found = {table.find(method, path) for method, path in paths} - {None}

    assert [r.path for r in routes if r.facts.need is not OPEN and r not in found] == []


def test_each_example_is_valid(world):
    """With all rights, each request succeeds, but for three that find nothing, or no KMS."""
    all_rights = [
        Rule("User:u", "*", Resource(kind, "*" if kind in NAMES else ""), Operation.ALL) for kind in ResourceType
    ]
    failed = {one.path: status for one in EXAMPLES if (status := world.asked(all_rights, one)[0]) >= 300}

    assert failed == {
        "/subjects/a/metadata?key=x&value=y": 404,
        "/subjects/b/versions/1": 404,
        "/dek-registry/v1/keks/k/test": 422,
    }


def test_each_route_decides_as_the_model(world):
    """A request is refused exactly if a right is missing, and a list holds exactly what the user has a right on."""

    @settings(max_examples=examples(60, part=6), deadline=None)
    @given(given_rules=st.lists(rules(), max_size=10).map(tuple) | nearly_all())
    def hold(given_rules):
        may = May(given_rules, USER)
        for example in EXAMPLES:
            _, content = world.asked(given_rules, example)
            code = content.get("error_code") if isinstance(content, dict) else None

            assert (code != DENIED) == bool(example.allowed(may)), (example.method, example.path, content)
            if example.listed is not None and code is None:
                items = [one[example.shown] if example.shown else one for one in content]
                assert sorted(items) == example.listed(may), (example.path, content)

    hold()
