"""Exporters between real nodes: what they copy, how they are changed, and how they continue after failures.

The destinations are other registries of this process, some of them behind a relay that fails.
"""

import json
import sqlite3
from contextlib import closing
from urllib.parse import quote

import pytest

from harness.neighbours import served
from harness.relay import CUT_OFF, relayed
from harness.waiting import until
from strata.registry.features.exporters import job
from strata.registry.transfer.copies import copy_of_entries
from strata.storage.log import START
from strata.storage.open_log import open_log

FAST = {"exporter_seconds": 0.02}
PASSWORD = "opensesame"
ITEM = {"type": "record", "name": "Item", "fields": []}
BASKET = {"type": "record", "name": "Basket", "fields": [{"name": "i", "type": "Item"}]}


@pytest.fixture
def target(serve):
    """Return a destination."""
    return serve("memory:")


@pytest.fixture
def relay(target):
    """Yield a relay in front of the destination."""
    with relayed(target.url) as found:
        yield found


@pytest.fixture
def secret(tmp_path):
    """Return a file with the secret of the nodes of a log."""
    file = tmp_path / "secret"
    file.write_text("s" * 32)
    return file


@pytest.fixture
def source(serve, secret):
    """Return a registry with two contexts, references, and a soft-deleted version."""
    registry = serve("memory:", exporter_secret=secret, **FAST)
    for schema in ('"int"', '"long"', '"double"'):
        registry.register("orders", schema)
    registry.call("DELETE", "/subjects/orders/versions/2")
    registry.register("item", json.dumps(ITEM))
    registry.register("basket", json.dumps(BASKET), references=[{"name": "Item", "subject": "item", "version": 1}])
    registry.register(":.staging:orders", '"bytes"')
    return registry


def create(registry, destination, name="e", **more):
    """Create an exporter of everything, under the same names unless more is said."""
    config = {"schema.registry.url": destination.url, **more.pop("config", {})}
    body = {"name": name, "subjects": [":*:"], "contextType": "NONE", "config": config, **more}
    assert {"name": name} == registry.call("POST", "/exporters", body)


def status(registry, name="e"):
    """Return the status of an exporter."""
    return registry.call("GET", f"/exporters/{name}/status")


def trace(registry):
    """Return why the exporter fails; empty if it does not."""
    return status(registry)["trace"]


def held(registry):
    """Return the versions of a registry: id, text and whether it is deleted, by subject and version."""
    listed = registry.call("GET", "/schemas?subjectPrefix=:*:&deleted=true")
    return {(one["subject"], one["version"]): (one["id"], one["schema"], bool(one.get("deleted"))) for one in listed}


def metrics(registry):
    """Return the page of metrics."""
    return registry._pool.request("GET", registry.url + "/metrics").data.decode()


def until_copied(source, destination):
    """Wait until a destination holds what its source holds, and the exporter says so."""
    until(lambda: held(source) == held(destination) and not trace(source) and status(source)["state"] == "RUNNING")


def test_everything_is_copied_and_followed(source, target):
    """Ids, versions, references and deletions are copied; new versions and deletions follow, for good ones too."""
    create(source, target)
    until_copied(source, target)
    source.register("orders", '["double","string"]')
    source.register("new")
    source.call("DELETE", "/subjects/orders/versions/1")
    until_copied(source, target)
    source.call("DELETE", "/subjects/orders/versions/1?permanent=true")
    source.call("DELETE", "/subjects/basket")
    source.call("DELETE", "/subjects/basket?permanent=true")
    source.call("DELETE", "/subjects/item")
    source.call("DELETE", "/subjects/item?permanent=true")
    source.register("basket", '"boolean"')
    until_copied(source, target)

    assert [{"name": "Item", "subject": "item", "version": 1}] not in [
        one.get("references") for one in target.call("GET", "/schemas?subjectPrefix=:*:&deleted=true")
    ]
    assert (42205, "IMPORT") == (
        target.ask("POST", "/subjects/new/versions", {"schema": '"bytes"'})[1]["error_code"],
        target.call("GET", "/mode/new")["mode"],
    )


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"contextType": "CUSTOM", "context": "dr"},
            [":.dr.staging:orders", ":.dr:basket", ":.dr:item", ":.dr:orders"],
        ),
        ({"contextType": "AUTO"}, [":.strata.staging:orders", ":.strata:basket", ":.strata:item", ":.strata:orders"]),
        ({"contextType": "CUSTOM", "context": ":.dr:", "subjects": ["*"]}, [":.dr:basket", ":.dr:item", ":.dr:orders"]),
        ({"subjects": [":.staging:*"]}, [":.staging:orders"]),
        ({"subjects": ["bas*"]}, ["basket", "item"]),
        ({"subjects": ["orders"], "subjectRenameFormat": "dc_${subject}_1"}, ["dc_orders_1"]),
        (
            {"subjects": ["basket", ":.staging:ord*"], "subjectRenameFormat": "dc_${subject}"},
            [":.staging:dc_orders", "dc_basket", "dc_item"],
        ),
    ],
    ids=lambda one: " ".join(f"{value}" for value in one.values()) if isinstance(one, dict) else "",
)
def test_contexts_filters_and_new_names(source, target, more, expected):
    """A choice of subjects comes with what it refers to, under the names that were asked for."""
    create(source, target, **more)
    until(lambda: target.subjects() == expected)
    until(lambda: status(source)["state"] == "RUNNING")
    for name in [one for one in expected if one.endswith("basket")]:
        found = target.call("GET", f"/subjects/{quote(name)}/versions/1")
        [reference] = found["references"]

        assert (
            reference["subject"] == expected[-1 if len(expected) < 3 else expected.index(name) + 1].rpartition(":")[2]
        )
    wanted = {value[:2] for (subject, _), value in held(source).items() if "orders" in subject}

    assert {value[:2] for (subject, _), value in held(target).items() if "orders" in subject} <= wanted


def test_pause_resume_and_reset(source, target):
    """A paused exporter copies nothing; resumed, it goes on; reset, it compares everything again."""
    create(source, target)
    until_copied(source, target)
    source.call("PUT", "/exporters/e/pause")
    before = status(source)
    source.register("later")
    again = source.call("PUT", "/exporters/e/pause")

    assert ({"name": "e"}, "PAUSED", before) == (again, before["state"], status(source))
    assert "later" not in target.subjects()
    source.call("PUT", "/exporters/e/resume")
    until_copied(source, target)
    target.call("DELETE", "/subjects/later")
    target.call("DELETE", "/subjects/later?permanent=true")
    source.call("PUT", "/exporters/e/reset")
    until_copied(source, target)

    assert before["offset"] < status(source)["offset"]


def test_a_change_needs_a_pause_and_takes_effect(source, target, serve):
    """An exporter that runs cannot be changed; a paused one goes on with what it is now."""
    other = serve("memory:")
    create(source, target, subjects=["orders"])
    until(lambda: target.subjects() == ["orders"])

    assert 40963 == source.ask("PUT", "/exporters/e", {"subjects": ["item"]})[1]["error_code"]
    assert 40963 == source.ask("PUT", "/exporters/e/config", {"schema.registry.url": other.url})[1]["error_code"]
    source.call("PUT", "/exporters/e/pause")
    source.call("PUT", "/exporters/e", {"subjects": ["item"], "subjectRenameFormat": "x${subject}"})
    source.call("PUT", "/exporters/e/config", {"schema.registry.url": other.url})
    source.call("PUT", "/exporters/e/reset")
    source.call("PUT", "/exporters/e/resume")
    until(lambda: other.subjects() == ["xitem"])

    assert ["orders"] == target.subjects()


@pytest.mark.slow
def test_a_deleted_exporter_leaves_what_it_copied(source, target):
    """After its deletion, an exporter copies nothing, and its name is free."""
    create(source, target)
    until_copied(source, target)
    source.call("DELETE", "/exporters/e")
    source.register("later")

    assert 40450 == source.ask("GET", "/exporters/e/status")[1]["error_code"]
    assert "later" not in target.subjects()
    create(source, target, name="e")
    until_copied(source, target)


def test_a_destination_that_is_away_and_comes_back(source, target, relay):
    """While the destination does not answer, the trace says so; what was missed is copied when it is back."""
    relay.answers = lambda _request: CUT_OFF
    create(source, relay)
    until(lambda: trace(source))
    before = status(source)
    source.register("later")
    relay.answers = lambda _request: None
    until_copied(source, target)

    assert f"the registry {relay.url} does not answer" in before["trace"]
    assert ("RUNNING", -1) == (before["state"], before["offset"])


@pytest.mark.slow
def test_a_destination_that_rejects_the_credentials(source, target, relay):
    """Wrong credentials are in the trace; with the right ones, which no answer shows, the exporter copies."""
    right = "Basic dTpvcGVuc2VzYW1l"
    relay.answers = lambda request: None if request.authorization == right else 401
    user = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "u:wrong"}
    create(source, relay, config=user)
    until(lambda: "rejected the credentials" in trace(source))
    source.call("PUT", "/exporters/e/pause")
    config = {"schema.registry.url": relay.url, **user, "basic.auth.user.info": f"u:{PASSWORD}"}
    source.call("PUT", "/exporters/e/config", config)
    source.call("PUT", "/exporters/e/resume")
    until_copied(source, target)
    shown = source.call("GET", "/exporters/e/config")
    source.call("PUT", "/exporters/e/pause")
    source.call("PUT", "/exporters/e/config", shown)
    source.call("PUT", "/exporters/e/resume")
    source.register("later")
    until_copied(source, target)

    assert {**config, "basic.auth.user.info": "[hidden]"} == shown


def test_a_destination_that_refuses(source, target):
    """A subject of the destination's own is not overwritten: the trace says what is in the way."""
    target.register("orders", '"bytes"')
    create(source, target)
    until(lambda: "orders" in trace(source))

    assert [("orders", 1)] == [place for place in held(target) if place[0] == "orders"]
    target.call("DELETE", "/subjects/orders")
    target.call("DELETE", "/subjects/orders?permanent=true")
    until_copied(source, target)


@pytest.mark.slow
def test_a_token_is_sent(source, target, relay):
    """A bearer token is sent as it is."""
    create(source, relay, config={"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "t0"})
    until_copied(source, target)

    assert {"Bearer t0"} == {one.authorization for one in relay.requests}


@pytest.mark.slow
def test_a_restart_continues_where_it_was(serve, tmp_path, target, relay, secret):
    """Cut off in the middle and started again, an exporter copies the rest, once; then a restart asks nothing."""
    url, taken = f"sqlite:///{tmp_path}/source.db", []

    def three(request):
        if request.method == "POST":
            taken.append(request)
        return CUT_OFF if len(taken) > 3 else None

    relay.answers = three
    with closing(open_log(url)):
        pass

    with served(url, exporter_secret=secret, **FAST) as first:
        for number in range(6):
            first.register(f"s{number}", f'{{"type":"fixed","name":"F","size":{number + 1}}}')
        create(first, relay)
        until(lambda: trace(first))
        wanted = held(first)
    relay.answers = lambda _request: None
    relay.requests.clear()
    with served(url, exporter_secret=secret, **FAST) as second:
        until_copied(second, target)
        posted = [one for one in relay.writes() if one.startswith("POST")]
    relay.requests.clear()
    with served(url, exporter_secret=secret, **FAST) as third:
        third.register("s6")
        until_copied(third, target)

    assert {f"POST /subjects/s{number}/versions" for number in (3, 4, 5)} == set(posted)
    assert {"POST /subjects/s6/versions"} == {one for one in relay.writes() if one.startswith("POST")}
    assert wanted.items() <= held(target).items()


@pytest.mark.slow
def test_two_nodes_copy_once_and_one_takes_over(tmp_path, target, relay, monkeypatch):
    """Of two nodes on one log one copies; when it is gone, the other one goes on."""
    url = f"sqlite:///{tmp_path}/source.db"
    with served(url, **FAST) as second:
        with served(url, **FAST) as first:
            create(first, relay)
            for number in range(5):
                first.register(f"s{number}")
                until_copied(first, target)
            failed = any("strata_exporter_failures_total 0.0" not in metrics(one) for one in (first, second))
        posted = [one for one in relay.writes() if one.startswith("POST")]
        monkeypatch.setattr(job, "_PATIENCE_S", 0.1)
        second.register("later")
        until_copied(second, target)

    # A request that took longer than its time limit is repeated.
    assert failed or sorted(set(posted)) == sorted(posted)


def test_credentials_are_encrypted_in_the_log_and_hidden(serve, tmp_path, target, secret):
    """A password is neither in the file of the log nor in an answer, and needs a secret of the nodes."""
    url = f"sqlite:///{tmp_path}/source.db"
    user = {"basic.auth.user.info": f"u:{PASSWORD}"}
    registry = serve(url, exporter_secret=secret, **FAST)
    create(registry, target, config=user)
    until(lambda: status(registry)["state"] == "RUNNING")
    with closing(sqlite3.connect(tmp_path / "source.db")) as log:
        stored = b"".join(key + (value or b"") for key, value in log.execute("SELECT key, value FROM strata_log"))
    answers = json.dumps(
        [registry.call("GET", f"/exporters/e{path}") for path in ("", "/config", "/config/clusterlink")]
    )
    plain = serve("memory:", **FAST)
    body = {"name": "e", "config": {"schema.registry.url": target.url, **user}}

    assert b"basic.auth.user.info" in stored
    assert PASSWORD.encode() not in stored
    assert "[hidden]" in answers
    assert PASSWORD not in answers
    assert (409, 40951) == (
        plain.ask("POST", "/exporters", body)[0],
        plain.ask("POST", "/exporters", body)[1]["error_code"],
    )


@pytest.mark.slow
def test_another_secret_is_named_in_the_trace(tmp_path, target, secret):
    """A node that cannot decrypt the credentials says so, and sends nothing."""
    url = f"sqlite:///{tmp_path}/source.db"
    with served(url, exporter_secret=secret, **FAST) as first:
        create(first, target, config={"basic.auth.user.info": "u:p"})
        until(lambda: status(first)["state"] == "RUNNING")
    with served(url, **FAST) as second:
        second.register("later")
        until(lambda: "--exporter-secret" in trace(second))

    assert [] == target.subjects()


@pytest.mark.slow
def test_a_standby_runs_no_exporters(serve, tmp_path, source, target):
    """A standby refuses to create exporters, and runs none that its log holds."""
    copy = serve(f"sqlite:///{tmp_path}/copy.db", follow=source.url, follow_seconds=0.02, follow_rate=1000)
    until(lambda: copy.ready()["ready"])
    body = {"name": "e", "config": {"schema.registry.url": target.url}}

    assert 42205 == copy.ask("POST", "/exporters", body)[1]["error_code"]


@pytest.mark.slow
def test_an_export_of_the_log_has_no_exporters(tmp_path, target):
    """A backup that is restored elsewhere must not write to the destinations."""
    url = f"sqlite:///{tmp_path}/source.db"
    with served(url, **FAST) as registry:
        registry.register("a")
        create(registry, target)
        until_copied(registry, target)
    with closing(open_log(url)) as log:
        copy = copy_of_entries(url, log.read(START))

    assert 1 == copy.counts()["versions"]
    assert not copy.state.exporters
    assert not copy.state.exports


@pytest.mark.slow
def test_exporters_are_counted(source, target, relay):
    """The metrics say how many exporters run, fail and rest, and how often one failed."""
    relay.answers = lambda _request: 500
    create(source, target)
    create(source, relay, name="f")
    create(source, target, name="g")
    source.call("PUT", "/exporters/g/pause")
    until(lambda: status(source, "f")["trace"] and status(source)["state"] == "RUNNING")
    states = [f'strata_exporters{{state="{state}"}} 1.0' for state in ("running", "failing", "paused")]
    until(lambda: all(line in metrics(source) for line in states))

    assert "strata_exporter_failures_total 0.0" not in metrics(source)
