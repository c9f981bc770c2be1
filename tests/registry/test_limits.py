"""Limits are settings; the registry refuses a request beyond one with a reason, and writes nothing."""

import http.client
import json
import time
from dataclasses import replace

import pytest

from harness.registry import RegistryNode
from strata.compat.entities import Entity, EntityType
from strata.compat.levels import Level
from strata.compat.limits import Limits, NotAtOnce
from strata.compat.witness import search
from strata.registry.core import parsing
from strata.registry.core.cache import Cache
from strata.registry.core.decide.content import equal_version
from strata.registry.core.decide.register import Rules, register
from strata.registry.core.decide.tag import TagRequest, change_tags
from strata.registry.core.errors import RegistryError, TooExpensive
from strata.registry.core.parsing import inline_tags, parse_request, printed, prove
from strata.registry.core.schema_request import SchemaRequest
from strata.registry.core.write_group import Clock
from strata.registry.settings import Settings
from strata.storage.log import Entry
from strata.storage.records import Reference, Subject
from strata.storage.state import State

RULES = Rules(Level.BACKWARD)
SUBJECT = Subject("s")


def _any_of(count, salt=0):
    return json.dumps({"anyOf": [{"required": [f"q{n}"], "maxLength": n + salt} for n in range(count)]})


@pytest.mark.parametrize(
    ("setting", "limits", "request_"),
    [
        pytest.param("max_depth", {"depth": 2}, SchemaRequest('["null",{"type":"array","items":["int"]}]'), id="depth"),
        pytest.param("max_branches", {"branches": 2}, SchemaRequest('["null","int","long"]'), id="branches"),
        pytest.param("max_branches", {"branches": 2}, SchemaRequest(_any_of(3), "JSON"), id="branches of anyOf"),
        pytest.param("max_fields", {"fields": 2}, SchemaRequest('{"items":[true,true,true]}', "JSON"), id="subschemas"),
        pytest.param(
            "max_references",
            {"references": 2},
            SchemaRequest('"int"', references=tuple(Reference(f"r{n}", "x", 1) for n in range(3))),
            id="references",
        ),
    ],
)
def test_bounds_are_settings(setting, limits, request_):
    """The registry refuses a schema beyond a limit, and the answer names the limit."""
    from_settings = Settings(**{setting: 2}).limits

    assert Limits(**limits) == from_settings
    with pytest.raises(RegistryError, match=r"more than|deeper than") as refusal:
        register(
            State(),
            SUBJECT,
            SchemaRequest(request_.text, request_.schema_type, request_.references, limits=from_settings),
            RULES,
        )
    assert 42201 == refusal.value.code


def test_a_thread_imports_the_search_for_proofs(monkeypatch):
    """The first proof of a format waits for modules, and an event loop must not."""
    monkeypatch.setattr(search, "_SEARCHES", {})
    brief = SchemaRequest('"int"', limits=Limits().briefly())
    with pytest.raises(NotAtOnce):
        prove(State(), parse_request(State(), SUBJECT, brief, strict=True, normalize=False), [], Level.BACKWARD, [])
    patient = parse_request(State(), SUBJECT, SchemaRequest('"int"'), strict=True, normalize=False)

    assert ([], []) == prove(State(), patient, [], Level.BACKWARD, [])


def test_time_is_a_setting():
    """A request that takes longer than the limit is refused, both in its turn and in the dry run before it."""
    limits = Settings(max_seconds=1e-9).limits

    for number, decide in enumerate((lambda r: register(State(), SUBJECT, r, RULES), _tried_out)):
        # A text that no other test has, because cached schemas take no time.
        request = SchemaRequest(f'{{"type":"fixed","name":"Late{number}","size":7}}', limits=limits)
        with pytest.raises(TooExpensive, match="more than 1e-09 s of computing"):
            decide(request)


def _tried_out(request):
    def decide(state, limits):
        return register(state, SUBJECT, request.under(limits), RULES)

    return Clock(decide, request.limits).try_out(State())


def _holding(request):
    """Return a State with one version of the subject, and that version."""
    records = register(State(), SUBJECT, request, RULES).records
    state = State().apply_all(Entry(n, 0, record.key, record.value) for n, record in enumerate(records))
    return state, state.latest(SUBJECT)


def test_a_change_of_tags_keeps_to_the_settings():
    """A change of tags has the limits of the service, like any registration."""
    state, _ = _holding(SchemaRequest('{"type":"record","name":"Tagged","fields":[{"name":"a","type":"int"}]}'))
    tags = {Entity("Tagged.a", EntityType.FIELD): ["PII"]}

    for limits in (Settings(max_depth=3).limits, Settings(max_seconds=1e-9).limits):
        with pytest.raises(RegistryError, match=r"deeper than|more than 1e-09 s") as refusal:
            change_tags(state, SUBJECT, 1, TagRequest(2, tags, {}, limits), RULES)
        assert 42201 == refusal.value.code


@pytest.mark.parametrize(
    ("schema_type", "form", "text"),
    [
        pytest.param("AVRO", "resolved", '{"type":"fixed","name":"Printed","size":1}', id="Avro"),
        pytest.param("PROTOBUF", "serialized", "message Printed { optional int32 a = 1; }", id="descriptor"),
        pytest.param("PROTOBUF", "ignore_extensions", "message Printed { optional int32 b = 1; }", id="bare text"),
    ],
)
def test_other_forms_of_a_text_have_a_deadline(monkeypatch, schema_type, form, text):
    """A form that takes too long to print gives 42201, though its schema is in the cache."""
    state, entry = _holding(SchemaRequest(text, schema_type))

    assert printed(state, entry, form)
    monkeypatch.setattr("strata.registry.core.parsing.DEFAULT_LIMITS", Limits(seconds=0))
    with pytest.raises(RegistryError, match="more than 0 s of computing") as refusal:
        printed(state, entry, form)
    assert 42201 == refusal.value.code


def test_tags_that_take_too_long_are_not_taken_for_none():
    """If tags take too long to read, the request fails; it does not continue without tags."""
    state, entry = _holding(SchemaRequest('{"type":"record","name":"Wanted","fields":[]}'))
    parsing._schemas.clear()  # Cached schemas take no time.

    with pytest.raises(TooExpensive, match="The tags cannot be read"):
        inline_tags(state, entry, Limits(seconds=0).started())


def test_trying_out_refuses_nothing_else():
    """The dry run leaves all other refusals to the request's turn."""
    assert _tried_out(SchemaRequest("{")) is None


def test_expensive_check_on_a_live_node():
    """An expensive check gives 422 and writes nothing, and the node keeps answering."""
    with RegistryNode("memory:", "--max-seconds=0.3") as node:
        first = {"schema": _any_of(700), "schemaType": "JSON"}
        expensive = {"schema": _any_of(700, 1), "schemaType": "JSON"}

        assert 200 == _call(node, "POST", "/subjects/s/versions", first)[0]
        for path in ("/subjects/s/versions", "/compatibility/subjects/s/versions"):
            status, answer = _call(node, "POST", path, expensive)
            assert (422, 42201) == (status, answer["error_code"])
            assert "more than 0.3 s of computing" in answer["message"]
        assert (200, [1]) == _call(node, "GET", "/subjects/s/versions")


def test_import_takes_what_strict_validation_refuses(api):
    """An import accepts a schema of another registry unchanged, even one that a registration refuses."""
    bad = '{"type":"record","name":"R-1","fields":[{"name":"a","type":"int","default":"x"}]}'

    assert 42201 == api.register("s", bad)[1]["error_code"]
    api.put("/mode/s", {"mode": "IMPORT"})
    assert (7, 3) == api.placed("s", bad, id=7, version=3)
    assert bad == api.get("/schemas/ids/7")[1]["schema"]


def test_cache_is_bounded_by_bytes():
    """The cache evicts the least recently used entry, and does not keep one larger than itself."""
    cache = Cache(100)
    for key, size in (("a", 40), ("b", 40), ("huge", 101)):
        cache.put(key, key.upper(), size)
    cache.get("a")
    cache.put("c", "C", 40)

    assert ["A", None, "C", None] == [cache.get(key) for key in ("a", "b", "c", "huge")]
    assert 80 == cache.size
    cache.clear()
    assert (None, 0) == (cache.get("a"), cache.size)


def _call(node, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


RECORD = {"type": "record", "name": "R", "fields": [{"name": "f", "type": "int"}]}
LARGE = {"type": "enum", "name": "E", "symbols": [f"symbol_{number}" for number in range(3000)]}


@pytest.mark.parametrize("moment", [-1.0, 1.0], ids=["the event loop gives up", "it has the time"])
@pytest.mark.parametrize("schema", [RECORD, LARGE], ids=["small", "large"])
def test_a_thread_computes_what_the_event_loop_gives_up(api, monkeypatch, schema, moment):
    """Registrations, look-ups and checks have the same answers in both cases."""
    monkeypatch.setattr("strata.compat.limits._BRIEF_S", moment)
    body, other = {"schema": json.dumps(schema)}, {"schema": '"int"'}

    assert (1, 1) == api.placed("s", schema)
    assert 1 == api.post("/subjects/s", body)[1]["version"]
    assert 40403 == api.post("/subjects/s", other)[1]["error_code"]
    assert {"is_compatible": True} == api.post("/compatibility/subjects/s/versions", body)[1]
    assert {"is_compatible": False} == api.post("/compatibility/subjects/s/versions", other)[1]
    assert 40901 == api.register("s", '"int"')[1]["error_code"]


def test_the_event_loop_ends_what_another_process_interrupts():
    """Only computing counts: to start again what had to wait for a core would take longer than to end it."""
    limits = Limits().briefly()
    time.sleep(0.02)  # far longer than a moment, without computing
    limits.look_at_clock()


def test_the_event_loop_reads_no_long_text():
    """Decoders of JSON do not look at the clock, so a long text is left to a thread."""
    with pytest.raises(NotAtOnce):
        parse_request(
            State(),
            "s",
            SchemaRequest(json.dumps({**LARGE, "doc": "not in a cache"}), limits=Limits().briefly()),
            strict=True,
            normalize=False,
        )


def test_the_event_loop_searches_no_long_history(monkeypatch):
    """The search for an equal version looks at the clock for each version, also where a glance is enough."""
    state = State()
    for number in range(2):
        request = SchemaRequest(json.dumps({**RECORD, "name": f"R{number}"}))
        decision = register(state, SUBJECT, request, Rules(Level.NONE))
        state = state.drafted(decision.records, 0)
    versions = state.versions(SUBJECT, include_deleted=False)
    candidate = parse_request(state, SUBJECT, SchemaRequest(json.dumps(RECORD)), strict=True, normalize=False)
    assert equal_version(state, candidate, versions) is None

    monkeypatch.setattr("strata.compat.limits._BRIEF_S", -1.0)
    with pytest.raises(NotAtOnce):
        equal_version(state, replace(candidate, limits=Limits().briefly()), versions)
