"""Laws of plan and apply on random trees, under failures, and for two pipelines at once."""

import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from harness.examples import examples
from strata.gitops.desired import Desired, Reference, Subject
from strata.gitops.errors import GitopsError
from strata.gitops.manifest import Settings
from strata.gitops.plans import make_plan
from strata.gitops.registries import Moved, registry_at
from strata.gitops.service import Service
from strata.serdes.client import RegistryClient
from strata.storage.log import LogTimeout, MemoryLog

NAMES = ("a", "b", "c", ":.x:a", ":.x:d")
FIELDS = st.lists(st.sampled_from("pqr"), min_size=1, max_size=3, unique=True)
SETTINGS = st.builds(
    Settings,
    st.none() | st.fixed_dictionaries({"compatibility": st.sampled_from(("NONE", "NONE", "BACKWARD"))},
                                      optional={"normalize": st.booleans()}),
    st.none() | st.just("READWRITE"),
)  # fmt: skip
METADATA = (
    st.none()
    | st.just({})
    | st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("kl"), st.text("xy"), min_size=1)})
)


def text_of(name, fields, references):
    """Return a record with some fields, and one for each reference."""
    own = [{"name": field, "type": "long", "default": 0} for field in fields]
    own += [{"name": f"f{one.name}", "type": ["null", one.name], "default": None} for one in references]
    return json.dumps({"type": "record", "name": full_name(name), "fields": own})


def full_name(name):
    """Return the name of a subject's record."""
    return name.replace(":.x:", "X").upper()


@st.composite
def trees(draw):
    """Draw subjects, each of which may refer to those before it, in two contexts with settings."""
    subjects = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        targets = draw(st.lists(st.sampled_from(sorted(subjects)), max_size=2, unique=True)) if subjects else []
        references = tuple(Reference(full_name(one), one) for one in targets)
        text = text_of(name, draw(FIELDS), references)
        settings = replace(draw(SETTINGS), config={"compatibility": "NONE"}) if draw(st.booleans()) else draw(SETTINGS)
        subjects[name] = Subject(
            name, text, references=references, metadata=draw(METADATA), normalize=draw(st.booleans()), settings=settings
        )
    return Desired(subjects, {"": Settings({"compatibility": "NONE"})}, draw(st.none() | st.just("me")))


def registry_of(service):
    """Return a connection with nothing remembered."""
    return registry_at(Service(RegistryClient(service.url, retries=0)))


def applied(service, tree):
    """Plan and apply a tree; return the plan and the outcomes."""
    registry = registry_of(service)
    plan = make_plan(tree, registry, prune=False, label="tree")
    if plan.errors:
        return plan, None
    return plan, registry.carry_out(plan.steps, plan.offset, lambda _: None) if plan.changes else []


@budget(max_examples=examples(60))
@given(tree=trees())
def test_an_apply_does_what_the_plan_says_and_leaves_nothing(shared, tree):
    """Each apply does the changes of its plan, with their versions; then the plan is empty."""
    plan, outcomes = applied(shared, tree)

    if outcomes is None:
        return
    assert all(one.changed for one in outcomes)
    assert [one.version for one in plan.changes] == [one.version for one in outcomes]
    assert () == make_plan(tree, registry_of(shared), prune=False, label="tree").changes


@budget(max_examples=examples(25))
@given(tree=trees())
def test_step_by_step_as_well(shared_steps, tree):
    """The same holds on a registry without batches, as far as settings do not change under the schemas."""
    scopes = {"": Settings({"compatibility": "NONE"})}
    plain = Desired({name: replace(one, settings=Settings()) for name, one in tree.subjects.items()}, scopes)
    plan, outcomes = applied(shared_steps, plain)

    assert [one.version for one in plan.changes] == [one.version for one in outcomes]
    assert () == make_plan(plain, registry_of(shared_steps), prune=False, label="tree").changes


class Failing(MemoryLog):
    """A log that fails an append in one of two ways, once `fails` says which."""

    fails = None

    def append(self, after, records):
        """Append records, and fail before or after that."""
        way, self.fails = self.fails, None
        if way == "before":
            raise LogTimeout("no answer")
        entries = super().append(after, records)
        if way == "after":
            raise LogTimeout("no answer")
        return entries


@pytest.mark.parametrize(("way", "expected"), [("before", []), ("after", ["a", "b", "c"])])
def test_a_failure_leaves_all_or_nothing(serve, way, expected):
    """Whether the log fails before or after the append, the registry has all of an apply or nothing."""
    tree = Desired({name: Subject(name, text_of(name, ["p"], ())) for name in "abc"})
    log = Failing()
    with serve(log) as service:
        registry = registry_of(service)
        plan = make_plan(tree, registry, prune=False, label="tree")
        log.fails = way

        with pytest.raises(Exception, match="not known whether it was written"):
            registry.carry_out(plan.steps, plan.offset, lambda _: None)

        assert expected == service.get("/subjects")
        applied(service, tree)
        assert ["a", "b", "c"] == service.get("/subjects")


def test_two_pipelines_at_once_end_in_one_of_two_orders(serve):
    """Two trees that set the same subjects are applied one after the other: never a part of each."""
    texts = [text_of("a", [field], ()) for field in "pq"]
    trees = [
        Desired({name: Subject(name, text.replace('"A"', f'"{name.upper()}"')) for name in "abc"}) for text in texts
    ]
    with serve() as service:
        service.ask("PUT", "/config", {"compatibility": "NONE"})
        start = threading.Barrier(2)
        failures = []

        def pipeline(tree):
            start.wait()
            for _ in range(20):
                try:
                    applied(service, tree)
                except Moved:
                    continue
                return
            failures.append(tree)

        threads = [threading.Thread(target=pipeline, args=(tree,)) for tree in trees]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        versions = [[service.get(f"/subjects/{name}/versions/{n}")["schema"] for n in (1, 2)] for name in "abc"]

    assert [] == failures
    assert len({json.loads(first)["fields"][0]["name"] for first, _ in versions}) == 1
    assert len({json.loads(second)["fields"][0]["name"] for _, second in versions}) == 1


def test_a_step_that_fails_says_what_was_done(serve_steps):
    """Step by step, an apply that fails names what is done and what is not."""
    tree = Desired({name: Subject(name, text_of(name, ["p"], ())) for name in "abc"})
    with serve_steps() as service:
        registry = registry_of(service)
        plan = make_plan(tree, registry, prune=False, label="tree")
        service.ask("PUT", "/mode/b", {"mode": "READONLY"})
        with pytest.raises(
            GitopsError, match=r"1 of 3 steps are done \(register a\); not done: register b, register c"
        ):
            registry.carry_out(plan.steps, plan.offset, lambda _: None)
