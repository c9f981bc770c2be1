"""One clock a request: all schemas, threads and lost races of a request share one time limit."""

import json
from dataclasses import replace

import pytest

from strata.compat.entities import Entity, EntityType
from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.registry.core import parsing as schemas
from strata.registry.core.decide.association_requests import AssociationRequest, Resource, Wanted
from strata.registry.core.decide.associations import change_associations, change_batch
from strata.registry.core.decide.register import Rules, register
from strata.registry.core.decide.tag import TagRequest, change_tags
from strata.registry.core.errors import RegistryError, TooExpensive
from strata.registry.core.schema_request import SchemaRequest
from strata.registry.core.write_group import Clock
from strata.registry.settings import Settings
from strata.storage.log import Entry
from strata.storage.records import Subject
from strata.storage.state import State

RULES = Rules(Level.BACKWARD)
SUBJECT = Subject("s")
TENTH = 0.1


class SlowParser:
    """A parser that takes a tenth of a second of the thread's clock for each text."""

    def __init__(self, monkeypatch):
        self.spent = 0.0
        self._parsed = schemas._parse_uncached
        monkeypatch.setattr("time.thread_time", lambda: self.spent)
        monkeypatch.setattr("time.monotonic", lambda: self.spent)
        monkeypatch.setattr("strata.registry.core.parsing._parse_uncached", self.parsed)
        schemas._schemas.clear()

    def parsed(self, schema_type, text, strict, references, limits):
        """Parse slowly."""
        self.spent += TENTH
        limits.look_at_clock()
        return self._parsed(schema_type, text, strict, references, limits)


@pytest.fixture
def slow(monkeypatch):
    """Make all parsing slow."""
    return SlowParser(monkeypatch)


def schema(name, of="int"):
    """Return a request with a record schema of this name."""
    return SchemaRequest(json.dumps({"type": "record", "name": name, "fields": [{"name": "a", "type": of}]}))


def wanted(number, kind="value"):
    """Return a new association of the numbered topic, with its own schema."""
    return Wanted("CREATE", kind, schema=schema(f"Of{kind}{number}"), guid=f"g{number}")


def batch(count):
    """Return the decision on a batch of as many resources, each with its own schema."""
    requests = [AssociationRequest(Resource(f"t{n}", "lkc", f"r{n}"), [wanted(n)]) for n in range(count)]
    return lambda state, limits: change_batch(state, [one.under(limits) for one in requests], RULES, 0)


def resource(state, limits):
    """Decide associations of one resource with two schemas."""
    request = AssociationRequest(Resource("t", "lkc", "r"), [wanted(1), wanted(1, "key")])
    return change_associations(state, request.under(limits), RULES, 0)


def registration(state, limits):
    """Decide a registration, which parses the new schema and the previous one."""
    return register(state, SUBJECT, schema("Old", "long").under(limits), RULES)


def retagged(state, limits):
    """Decide a change of tags, which parses the text before and after the change."""
    return change_tags(
        state, SUBJECT, 1, TagRequest(2, {Entity("Old.a", EntityType.FIELD): ["PII"]}, {}, limits), RULES
    )


def holding_one():
    """Return a State with one version."""
    records = register(State(), SUBJECT, schema("Old"), RULES).records
    return State().apply_all(Entry(n, 0, record.key, record.value) for n, record in enumerate(records))


@pytest.mark.parametrize(
    ("decide", "parses"),
    [
        pytest.param(batch(8), 8, id="a batch of associations"),
        pytest.param(resource, 2, id="the associations of a resource"),
        pytest.param(registration, 2, id="a registration"),
        pytest.param(retagged, 2, id="a change of tags"),
    ],
)
def test_a_request_has_one_clock(slow, decide, parses):
    """All parsing of a request counts; the dry run leaves the rest of the time to the turns of the request."""
    state = holding_one()
    schemas._schemas.clear()
    before = slow.spent
    Clock(decide, Limits(seconds=10)).try_out(state)
    assert parses == round((slow.spent - before) / TENTH)

    schemas._schemas.clear()
    before = slow.spent
    with pytest.raises(TooExpensive, match="of computing"):
        Clock(decide, Limits(seconds=TENTH * (parses - 0.5))).try_out(state)
    assert parses == round((slow.spent - before) / TENTH)


def test_lost_races_do_not_start_the_clock_again(slow):
    """Attempts with cold caches share the time that remains, however many there are."""
    state, clock = holding_one(), Clock(batch(2), Limits(seconds=5.5 * TENTH))
    slow.spent = 0.0
    schemas._schemas.clear()
    clock.try_out(state)
    refused = 0
    for _ in range(20):
        schemas._schemas.clear()
        try:
            clock.decide(replace(state))
        except TooExpensive:
            refused += 1
            break

    assert (1, 6) == (refused, round(slow.spent / TENTH))


def test_an_attempt_that_finds_all_in_the_caches_needs_no_time(slow):
    """An attempt that finds everything in the caches needs none of the time that is left."""
    state = holding_one()
    schemas._schemas.clear()
    clock = Clock(registration, Limits(seconds=2.5 * TENTH))
    clock.try_out(state)
    slow.spent += 1

    assert [2, 2] == [clock.decide(replace(state)).answer.entry.version for _ in range(2)]


def rejection(_state, _limits):
    """Reject the request in each State."""
    raise RegistryError(42205, "no")


@pytest.mark.parametrize(
    "decision", [pytest.param(registration, id="accepted"), pytest.param(rejection, id="rejected")]
)
def test_the_turn_decides_again_only_on_another_state(decision):
    """The outcome of the dry run stands if the State is still the same, and counts for no other State."""
    decided = []

    def decide(state, limits):
        decided.append(state)
        return decision(state, limits)

    def outcome(state):
        try:
            return clock.decide(state).answer.entry.version
        except RegistryError as error:
            return error.code

    first, clock = holding_one(), Clock(decide, Limits())
    second = replace(first)
    clock.try_out(first)

    expected = 42205 if decision is rejection else 2
    assert [expected, expected, expected] == [outcome(first), outcome(second), outcome(first)]
    assert [True, True] == [decided[0] is first, decided[1] is second]
    assert 2 == len(decided)


def test_a_batch_that_takes_too_long_is_refused_as_a_whole(slow, configured):
    """Many schemas in one request share one time limit: the answer is 42201, and nothing is written."""
    requests = [
        {
            "resourceName": f"t{number}",
            "resourceNamespace": "lkc",
            "resourceId": f"r{number}",
            "associations": [{"opType": "CREATE", "schema": {"schema": schema(f"Batch{number}").text}}],
        }
        for number in range(8)
    ]
    api = configured(Settings(log="memory:", max_seconds=3.5 * TENTH))

    status, answer = api.post("/associations:batchMutate", {"requests": requests})
    assert (422, 42201) == (status, answer["error_code"])
    assert "more than 0.35 s of computing" in answer["message"]
    assert (200, []) == api.get("/subjects")
    assert 207 == api.post("/associations:batchMutate", {"requests": requests[:3]})[0]
    assert 4 + 3 >= round(slow.spent / TENTH)
