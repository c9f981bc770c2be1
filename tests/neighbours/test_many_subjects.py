"""A standby of a service with thousands of subjects: how many requests it needs, and what it says meanwhile."""

import asyncio
import json
import logging
from contextlib import closing

import pytest

from harness.neighbours import served
from harness.waiting import until
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.standby import follower
from strata.registry.features.standby.feature import follower_of
from strata.registry.features.standby.health import StandbyHealth
from strata.registry.features.standby.sources import ServiceSource
from strata.registry.node.board import Seat
from strata.registry.node.health import Health
from strata.registry.settings import Settings
from strata.registry.transfer.contents import contents_of
from strata.registry.transfer.rest import Connection
from strata.storage.log import START, MemoryLog
from strata.storage.open_log import open_log
from strata.storage.record_json import encode
from strata.storage.records import (
    AssociationKey,
    AssociationValue,
    ConfigKey,
    ConfigValue,
    ModeKey,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Version,
)
from strata.storage.state import State

SUBJECTS, FEW = 1_200, 150


def records(subjects):
    """Yield many subjects: two in three have a level or a mode of their own, each third an association."""
    for number in range(subjects):
        subject = Subject(f"s{number}-value")
        text = json.dumps({"type": "fixed", "name": "F", "size": number + 1})
        yield encode(SchemaKey(subject, Version(1)), SchemaValue(subject, Version(1), SchemaId(number + 1), text))
        if number % 3 == 0:
            yield encode(ConfigKey(subject), ConfigValue({"compatibilityLevel": "FULL"}))
        if number % 3 == 1:
            yield encode(ModeKey(subject), "READONLY")
        if number % 3 == 2:
            key = AssociationKey("cluster", f"s{number}", "topic", "value", subject)
            yield encode(key, AssociationValue(f"guid-{number}", f"id-{number}", "WEAK", False, 1))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Yield a registry with thousands of subjects."""
    url = f"sqlite:///{tmp_path_factory.mktemp('many')}/source.db"
    with closing(open_log(url)) as log:
        log.append(START, list(records(SUBJECTS)))
    with served(url) as registry:
        yield registry


@pytest.fixture
def few(tmp_path):
    """Yield a registry with fewer subjects."""
    url = f"sqlite:///{tmp_path}/source.db"
    with closing(open_log(url)) as log:
        log.append(START, list(records(FEW)))
    with served(url) as registry:
        yield registry


@pytest.fixture
def requests(monkeypatch):
    """Return the paths of all requests of readers."""
    sent, ask = [], Connection.ask

    def noted(self, method, path, *rest, **query):
        sent.append(path)
        return ask(self, method, path, *rest, **query)

    monkeypatch.setattr(Connection, "ask", noted)
    return sent


def test_thousands_of_subjects_need_few_requests(source, requests):
    """Settings and associations are listed a thousand at a time, and the copy is that of the log."""
    with closing(ServiceSource(source.url)) as service:
        copied = service.read().state
    with closing(open_log(source.log)) as log:
        held = contents_of(State().apply_all(log.read(START)))

    assert held == {key: value for key, value in contents_of(copied).items() if key in held}
    assert len(requests) <= 30 < SUBJECTS, requests


def test_a_source_that_lists_no_settings_is_asked_for_each_name(few, requests, monkeypatch):
    """Another registry lists neither settings nor all associations: each subject needs three requests."""
    ask = Connection.ask
    monkeypatch.setattr(
        Connection,
        "ask",
        lambda self, method, path, *rest, **query: ask(self, method, path.replace("/v1/", "/no/"), *rest, **query),
    )
    told = []
    with closing(ServiceSource(few.url)) as service:
        service.report = lambda title, done, total: told.append((title.rpartition(", ")[2], done, total))
        copied = service.read().state

    assert FEW == len(copied.subjects)
    assert 3 * FEW < len(requests) < 3 * FEW + 50
    names = FEW + 2
    assert [("config", names, names), ("mode", names, names), ("associations", FEW, FEW)] == [
        step for step in told if step[1] == step[2]
    ]


async def test_progress_is_in_the_log_and_in_the_health(source, monkeypatch, caplog):
    """While a standby reads a service, its log names the step and the number of names, and its health too."""
    monkeypatch.setattr(follower, "_TELLING_S", 0.0)
    caplog.set_level(logging.INFO)
    writer, seat = Writer(MemoryLog()), Seat()
    standby = StandbyHealth(lambda: writer.state, seat.board)
    health = Health(writer, seat, conditions=[standby.condition])
    following = follower_of(Settings(log="memory:", follow=source.url), writer, Tally(seat.board.numbers(0)))
    writer.replay(quietly=True)
    shown, tell = [], following._source.report

    def told(*progress):
        tell(*progress)
        shown.append(standby.copy()["reading"])

    following._source.report = told
    watch = asyncio.create_task(following.watch())
    await asyncio.to_thread(until, lambda: health.reason() is None)
    watch.cancel()
    await writer.close()

    lines = [
        line for line in caplog.records if line.name == "strata.standby" and line.args["event"] == "follow_progress"
    ]
    assert {"step": "pages of schemas", "done": 2, "total": None} in shown
    assert {"step": "config", "done": 2, "total": 2} in shown
    assert f"reading {source.url}: config, 2 of 2" in [line.getMessage() for line in lines]
    assert "reading" not in standby.copy()


def test_progress_is_in_the_metrics(source, tmp_path):
    """While a standby reads a service, which a low rate prolongs, its metrics and its readiness name the step."""

    def page():
        found = standby._pool.request("GET", f"{standby.url}/metrics").data.decode()
        return "strata_standby_reading_done{" in found and found

    with served(f"sqlite:///{tmp_path}/copy.db", follow=source.url, follow_rate=2) as standby:
        found = until(page)
        ready = standby.ready()

    assert 'strata_standby_reading_total{step="' in found
    assert "the first copy of " in ready["reason"]
    assert ready["standby"]["secondsBehind"] is None
