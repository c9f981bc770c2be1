"""A standby of a log and of a service: what it copies, what it refuses, and how it continues after cuts.

Its source is another registry of this process; `test_standby_logs.py` follows a real topic and a real database.
"""

import asyncio
import json
from contextlib import closing

import pytest

from harness.held_log import HeldLog
from harness.logs import version_times
from harness.neighbours import Registry, served
from harness.serving import serving
from harness.waiting import until
from strata.registry.app import create_app
from strata.registry.core.tally import FACTS, Tally
from strata.registry.core.writer import Writer
from strata.registry.features.standby import follower
from strata.registry.features.standby.copying import FollowRefused
from strata.registry.features.standby.feature import follower_of
from strata.registry.features.standby.sources import ServiceSource
from strata.registry.settings import Settings
from strata.registry.transfer.contents import contents_of
from strata.registry.transfer.rest import Connection
from strata.storage.log import START, Record
from strata.storage.open_log import open_log
from strata.storage.state import State

FAST = {"follow_seconds": 0.02, "follow_full_seconds": 0.02, "follow_rate": 1000}
FAST_LOG = {"follow_seconds": 0.02}


def state_of(log_url):
    """Return the State of a log."""
    with closing(open_log(log_url)) as log:
        return State().apply_all(log.read(START))


def held(log_url):
    """Return what a log holds."""
    return contents_of(state_of(log_url))


def fill(registry):
    """Register, delete and configure: contexts, references, gaps, settings, keys, an id that is gone."""
    for schema in ('"int"', '"long"', '"double"'):
        registry.register("orders", schema)
    registry.call("DELETE", "/subjects/orders/versions/1")
    registry.call("DELETE", "/subjects/orders/versions/1?permanent=true")
    registry.call("DELETE", "/subjects/orders/versions/2")
    item = {"type": "record", "name": "Item", "fields": []}
    registry.register("item", json.dumps(item))
    basket = {"type": "record", "name": "Basket", "fields": [{"name": "i", "type": "Item"}]}
    reference = {"name": "Item", "subject": "item", "version": 1}
    registry.register("basket", json.dumps(basket), references=[reference])
    registry.register(":.staging:orders", '"bytes"')
    registry.register("scratch", '"string"')
    registry.call("DELETE", "/subjects/scratch")
    registry.call("DELETE", "/subjects/scratch?permanent=true")
    registry.call("PUT", "/config", {"compatibility": "NONE"})
    registry.call("PUT", "/config/item", {"compatibility": "NONE"})
    registry.call("PUT", "/mode/basket", {"mode": "READONLY"})
    registry.call("PUT", "/config/old-item", {"alias": "item", "compatibility": "FULL"})
    registry.call("PUT", "/mode/:.empty:", {"mode": "READONLY"})
    kek = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn"}
    registry.call("POST", "/dek-registry/v1/keks", kek)


@pytest.fixture
def logs(tmp_path):
    """Return the URLs of two logs."""
    return f"sqlite:///{tmp_path}/source.db", f"sqlite:///{tmp_path}/standby.db"


@pytest.fixture
def source(serve, logs):
    """Return a registry with an example of most things."""
    registry = serve(logs[0])
    fill(registry)
    return registry


@pytest.fixture(params=["log", "service"])
def following(request, source):
    """Return the settings of a standby that follows the log or the service."""
    return {"follow": source.log, **FAST_LOG} if request.param == "log" else {"follow": source.url, **FAST}


def same(source, standby):
    """Return whether a standby holds what its source holds."""
    return held(source.log) == held(standby.log)


def test_a_standby_holds_what_its_source_holds(serve, source, logs, following):
    """Ids, versions, times, deletions, settings, keys and contexts are those of the source; later changes follow."""
    standby = serve(logs[1], **following)
    until(lambda: same(source, standby))
    assert version_times(source.log) == version_times(standby.log)

    source.register("orders", '["double", "string"]')
    source.call("PUT", "/mode/basket", {"mode": "READWRITE"})
    source.call("DELETE", "/subjects/basket")
    source.call("DELETE", "/subjects/basket?permanent=true")
    source.call("PUT", "/config/item", {"compatibility": "BACKWARD"})
    until(lambda: same(source, standby))

    assert version_times(source.log) == version_times(standby.log)
    assert source.subjects() == standby.subjects()
    assert source.call("GET", "/subjects/orders/versions") == standby.call("GET", "/subjects/orders/versions")


def test_a_standby_refuses_writes_with_the_address_of_its_source(serve, source, logs, following):
    """A write that would change something gets 42205; a registration of what is there gets its id."""
    standby = serve(logs[1], **following)
    until(lambda: same(source, standby))

    for method, path, body in (
        ("POST", "/subjects/new/versions", {"schema": '"int"'}),
        ("POST", "/subjects/orders/versions", {"schema": '{"type": "record", "name": "R", "fields": []}'}),
        ("DELETE", "/subjects/item", None),
        ("DELETE", "/subjects/unknown", None),
        ("PUT", "/config", {"compatibility": "NONE"}),
        ("PUT", "/mode", {"mode": "READONLY"}),
        ("POST", "/dek-registry/v1/keks", {"name": "new", "kmsType": "aws-kms", "kmsKeyId": "arn"}),
    ):
        status, answer = standby.ask(method, path, body)
        assert (422, 42205) == (status, answer["error_code"]), (method, path, answer)
        assert following["follow"] in answer["message"]
    assert source.register("orders", '"double"') == standby.register("orders", '"double"')
    assert same(source, standby)


def test_a_standby_says_how_old_its_copy_is(serve, source, logs, following):
    """Readiness names the source and the age of the copy, and so do the metrics."""
    standby = serve(logs[1], **following)

    ready = until(lambda: (found := standby.ready()).get("standby", {}).get("secondsBehind") is not None and found)

    assert ready["ready"]
    assert (following["follow"], ".") == (ready["standby"]["source"], ready["standby"]["context"])
    assert "standby" not in source.ready()
    page = standby._pool.request("GET", f"{standby.url}/metrics").data.decode()
    assert "\nstrata_standby 1.0\n" in page
    assert "\nstrata_standby_behind_seconds " in page


def test_a_standby_survives_the_end_of_its_source_and_its_own(serve, logs, following, source):
    """Reads are served while the source is away, and after a restart; what changed meanwhile is copied later."""
    with served(logs[1], **following) as standby:
        until(lambda: same(source, standby))
    source.register("meanwhile")
    written = len(state_entries(logs[1]))

    dead = {**following, "follow": following["follow"].replace(logs[0], "sqlite:////nowhere/x.db")}
    if following["follow"] == source.log:
        with served(logs[1], **dead) as standby:
            assert standby.ready()["ready"]
            assert "orders" in standby.subjects()
    with served(logs[1], **following) as standby:
        until(lambda: same(source, standby))
    assert len(state_entries(logs[1])) - written <= 3


def state_entries(log_url):
    """Return the records of a log."""
    with closing(open_log(log_url)) as log:
        return list(log.read(START))


def test_a_source_that_is_not_there_yet(serve, logs):
    """A standby starts without its source: it is not ready before the first copy, and takes no writes."""
    standby = serve(logs[1], follow=logs[0], **FAST_LOG)
    assert "the first copy" in standby.ready()["reason"]
    assert 42205 == standby.ask("POST", "/subjects/s/versions", {"schema": '"int"'})[1]["error_code"]
    with served(logs[0]) as source:
        source.register("s")
        until(lambda: same(source, standby))


def test_a_copy_below_a_context(serve, source, logs, following):
    """The copy of another registry lives in a context; the rest of the registry can be written."""
    hub = serve(logs[1], **following, follow_context="a")
    until(lambda: ":.a:basket" in hub.subjects())

    until(lambda: ":.a.staging:orders" in hub.subjects())
    assert hub.register("mine") == 1
    status, answer = hub.ask("POST", "/subjects/:.a:new/versions", {"schema": '"int"'})
    assert (422, 42205) == (status, answer["error_code"])
    assert "context .a" in answer["message"]
    wanted = source.call("GET", "/subjects/basket/versions/1")
    found = hub.call("GET", "/subjects/:.a:basket/versions/1")
    assert [wanted[name] for name in ("id", "schema", "ts")] == [found[name] for name in ("id", "schema", "ts")]


def test_two_registries_below_two_contexts(serve, logs, tmp_path):
    """Two nodes on one log copy two registries into two contexts; each removes only its own."""
    spokes = [serve(f"sqlite:///{tmp_path}/{name}.db") for name in "ab"]
    hubs = [
        serve(logs[1], follow=spoke.log, follow_context=name, **FAST_LOG)
        for name, spoke in zip("ab", spokes, strict=True)
    ]
    for spoke, schema in zip(spokes, ('"int"', '"long"'), strict=True):
        spoke.register("s", schema)
        spoke.register("t", schema)
    until(lambda: [":.a:s", ":.a:t", ":.b:s", ":.b:t"] == hubs[0].subjects())

    spokes[0].call("DELETE", "/subjects/s")
    until(lambda: [":.a:t", ":.b:s", ":.b:t"] == hubs[1].subjects())


def test_a_copy_that_the_holder_of_the_pen_does_not_make(serve, source, logs, monkeypatch):
    """A node takes the pen from a node that responds if its own copy, such as of another context, would stand still.

    It leaves the pen where it is while the copy lacks nothing.
    """
    monkeypatch.setattr(follower, "_PATIENCE_S", 0.1)
    log, other = HeldLog(), serve(logs[1])
    settings = Settings(log="memory:", follow=source.log, follow_context="a", **FAST_LOG)
    with closing(log), serving(lambda _: create_app(log, settings)) as port:
        hub = Registry(f"http://127.0.0.1:{port}", "")
        until(lambda: ":.a:basket" in hub.subjects())
        log.url = other.url
        source.register("new")

        until(lambda: ":.a:new" in hub.subjects())

        assert log.url is None
        again = HeldLog()
        again.append(START, [Record(entry.key, entry.value) for entry in log.read(START)])
    again.url = other.url
    writer, tally = Writer(again), Tally()
    writer.replay()
    second = follower_of(settings, writer, tally)

    async def follow():
        watch = asyncio.create_task(second.watch())
        await asyncio.to_thread(until, lambda: tally.cells[FACTS["copied_at"]])
        watch.cancel()
        await writer.close()

    asyncio.run(follow())
    assert again.url == other.url


def test_a_choice_of_subjects(serve, source, logs, following):
    """Only the chosen subjects are copied, with what they refer to."""
    standby = serve(logs[1], **following, follow_subjects="bask*", follow_contexts=".staging")

    until(lambda: [":.staging:orders", "basket", "item"] == sorted(standby.subjects()))


@pytest.mark.parametrize("context", [None, "mine"])
def test_a_log_with_content_of_its_own_follows_nothing(logs, context):
    """A registry that was written to does not become a standby, as a whole or in the part that holds something."""
    with served(logs[1]) as own:
        own.register("precious" if context is None else ":.mine:precious")
    before = state_of(logs[1])

    with (
        pytest.raises(FollowRefused, match="expected an empty"),
        served(logs[1], follow=logs[0], follow_context=context),
    ):
        pass

    assert before == state_of(logs[1])


def test_a_source_that_lost_everything_is_not_followed(logs, tmp_path):
    """A source whose log is empty or shorter than before takes nothing from the standby."""
    with served(logs[0]) as source:
        source.register("s")
        with served(logs[1], follow=logs[0], **FAST_LOG) as standby:
            until(lambda: same(source, standby))
    for file in tmp_path.glob("source.db*"):
        file.unlink()
    with served(logs[0]) as source, served(logs[1], follow=logs[0], **FAST_LOG) as standby:
        page = until(
            lambda: (
                "failures_total 0.0" not in (found := metrics(standby)) and "standby_failures_total" in found and found
            )
        )
        assert "strata_standby 1.0" in page
        assert ["s"] == standby.subjects()
        source.register("t")
        assert ["s"] == standby.subjects()


def metrics(registry):
    """Return the metrics of a standby."""
    page = registry._pool.request("GET", f"{registry.url}/metrics").data.decode()
    return "\n".join(line for line in page.splitlines() if line.startswith("strata_standby"))


# --- promotion


def test_promotion_makes_a_standby_the_writer(serve, strata, source, logs, following):
    """After a promotion the next id follows the source's highest one, and later changes of the source stay there."""
    standby = serve(logs[1], **following)
    until(lambda: same(source, standby))

    code, output, _ = strata("promote", logs[1])

    assert (0, True) == (code, "no differences" in output), output
    next_id = source.register("only-there", '"float"')
    assert next_id == until(lambda: standby.ask("POST", "/subjects/here/versions", {"schema": '"float"'})[1].get("id"))
    assert "only-there" not in standby.subjects()
    assert "standby" not in standby.ready()
    assert 2 == strata("promote", logs[1])[0]


def test_promotion_says_what_would_be_lost(strata, source, logs, following):
    """What was not copied is listed; without consent nothing happens; with it, its ids are never given again."""
    with served(logs[1], **following) as standby:
        until(lambda: same(source, standby))
    lost = [source.register(f"late-{n}", f'{{"type": "fixed", "name": "F", "size": {n}}}') for n in (1, 2)]

    code, output, _ = strata("promote", logs[1], "--output=json")
    refused = json.loads(output)
    code, output, errors = strata("promote", logs[1])
    assert (1, True) == (code, "--accept-loss" in errors)
    assert (False, output.splitlines()[:-1]) == (refused["promoted"], refused["differences"])
    assert "subject 'late-1' version 1: only at the source" in output
    assert not state_of(logs[1]).standbys["."].promoted_at
    code, output, _ = strata("promote", logs[1], "--accept-loss", "--output=json")

    found = json.loads(output)
    assert (0, True, lost[-1] + 1) == (code, found["promoted"], found["next_ids"]["."])
    assert refused | {"promoted": True, "next_ids": found["next_ids"], "mode": "READWRITE"} == found
    with served(logs[1], **following) as standby:
        assert lost[-1] + 1 == standby.register("here", '"float"')


def test_promotion_without_a_source_keeps_ids_free(strata, logs):
    """If the source does not answer, the ids that it may have given since are not given again."""
    with served(logs[0]) as source:
        source.register("s")
        source.call("PUT", "/config", {"compatibility": "NONE"})
        with served(logs[1], follow=source.url, **FAST) as standby:
            until(lambda: same(source, standby))

    assert 1 == strata("promote", logs[1], "--source", "sqlite:////nowhere/x.db")[0]
    code, output, _ = strata("promote", logs[1], "--source", "sqlite:////nowhere/x.db", "--accept-loss", "--gap", 10)

    assert (0, True) == (code, "cannot be compared" in output), output
    with served(logs[1]) as standby:
        assert 12 == standby.register("t", '"long"')


def test_promotion_of_what_is_no_standby(strata, serve, logs):
    """A writer cannot be promoted, nor can a log that does not exist."""
    serve(logs[0]).register("s")

    code, _, errors = strata("promote", logs[0])
    assert (2, True) == (code, "is not a standby" in errors)
    assert 2 == strata("promote", "sqlite:////nowhere/x.db")[0]


def test_a_backup_of_a_standby_is_a_registry_of_its_own(strata, source, logs, tmp_path):
    """An export has the content of a standby without the mark that makes it one."""
    with served(logs[1], follow=source.log, **FAST_LOG) as standby:
        until(lambda: same(source, standby))
    restored = f"sqlite:///{tmp_path}/restored.db"

    assert 0 == strata("export", logs[1], f"{tmp_path}/backup.jsonl")[0]
    assert 0 == strata("import", f"{tmp_path}/backup.jsonl", restored)[0]

    assert {} == dict(state_of(restored).standbys)
    assert held(logs[1]) == held(restored)
    assert (0, "") == strata("verify", logs[0], logs[1])[:2]


@pytest.mark.parametrize(("stalls_s", "rest_s"), [((), (0.04, 4)), ((60,), (8, 12))])
def test_a_stalled_request_is_no_work_of_the_source(source, monkeypatch, stalls_s, rest_s):
    """The pause after a reading grows with the work of the source, not with the time for which its path was cut."""
    now, ask, stalls = [0.0], Connection.ask, list(stalls_s)

    def slow(*args, **query):
        now[0] += stalls.pop() if stalls else 0.01
        return ask(*args, **query)

    monkeypatch.setattr(Connection, "ask", slow)
    with closing(ServiceSource(source.url, most_per_s=1000, clock=lambda: now[0])) as service:
        service.read()
        assert rest_s[0] <= service._rests_until - now[0] <= rest_s[1]


def test_a_deleted_version_that_another_context_has(source):
    """A version that is gone is missed, although the source answers a request for it from another context."""
    source.register("twice", '"int"')
    source.register(":.other:twice", '"int"')
    with closing(ServiceSource(source.url, most_per_s=1000, full_every_s=0.0)) as service:
        assert "twice" in service.read().state.subjects
        source.call("DELETE", "/subjects/twice")
        source.call("DELETE", "/subjects/twice?permanent=true")
        assert source.call("GET", "/subjects/twice/versions/1")["subject"] == ":.other:twice"
        state = service.read().state
    assert "twice" not in state.subjects
    assert 1 in state.subjects[":.other:twice"]
