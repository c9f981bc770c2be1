"""The pages of the log and of the node's health: newest records, those set aside, figures over time."""

import json
import re
from html import unescape

import pytest

from strata.registry.core.log_reader import RecentRecords
from strata.registry.core.request_numbers import Requests
from strata.registry.core.tally import Tally
from strata.registry.features.pages.sparkline import sparkline
from strata.registry.features.pages.trends import Sample, Trends
from strata.registry.features.pages.views.health import figures
from strata.storage.log import START, Entry, LogStatus, MemoryLog, Record

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry over a log with a damaged record and a hostile name."""
    log = MemoryLog()
    odd = json.dumps({"keytype": "SCHEMA", "subject": HOSTILE, "version": 0, "magic": 1}, ensure_ascii=False)
    log.append(START, [Record(b'{"keytype":"ODD"}', b"{}"), Record(odd.encode(), b"not JSON")])
    opened = open_pages(log=log)
    for schema in ('"int"', '"long"'):
        opened.call("POST", "/subjects/a/versions", json.dumps({"schema": schema}), **JSON)
    opened.call("DELETE", "/subjects/a", **JSON)
    opened.call("PUT", "/config", '{"compatibility": "NONE"}', **JSON)
    opened.call("DELETE", "/config", **JSON)
    return opened


def words(text):
    """Return the text of a page without its elements."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)))


def test_the_newest_records(browser):
    """Records are shown newest first, with their keys; a version is a link, a tombstone is named."""
    text = browser.get("/ui/log")
    keys = [json.loads(unescape(key)) for key in re.findall(r"<code>(\{.*?\})</code>", text) if "script" not in key]

    assert ["CONFIG", "CONFIG", "DELETE_SUBJECT", "SCHEMA", "SCHEMA", "ODD"] == [key["keytype"] for key in keys]
    assert '<a href="/ui/subjects/a/versions/1">' in text
    assert "tombstone" in text


def test_records_that_were_set_aside(browser):
    """They are listed with their reasons, and marked among the newest."""
    text = browser.get("/ui/log")

    assert "Set aside 2 not in the State" in words(text)
    assert 2 == text.count('<span class="badge warn">set aside</span>')
    assert "<script>" not in text.replace("<script src", "")
    assert "\u202e" not in text


class ForeignLog(MemoryLog):
    """A log to which another product wrote."""

    def status(self):
        """Return the status of a log in Kafka."""
        return LogStatus("kafka", True, 1, foreign_newest=(1,))


def test_foreign_records(open_pages):
    """Records of another product are listed with what they may do, and marked among the newest."""
    log = ForeignLog()
    log.append(START, [Record(b'{"keytype":"NOOP","magic":0}', None)] * 2)
    text = open_pages(log=log).get("/ui/log")

    assert "a schema id or version may be assigned twice" in words(text)
    assert "Newest offsets: 1" in words(text)
    assert 1 == text.count('<span class="badge bad">foreign</span>')


def test_health(browser):
    """The page says whether the node is ready, what it holds, and shows no figure that it does not have."""
    text = words(browser.get("/ui/health"))

    assert "This node is ready." in text
    assert "0: ready" in text
    assert "memory" in text


def sample(at, requests=0.0, seconds=0.0, **more):
    """Return a sample."""
    return Sample(**{"at": at, "requests": requests, "errors": 0, "seconds": seconds, "offset": 0, "behind": 0,
                     "connections": 0, **more})  # fmt: skip


def test_figures_are_rates():
    """A figure is what happened between two samples; a count that began again counts as nothing."""
    found = figures([sample(0), sample(5, 10, 0.1), sample(10, 30, 0.2), sample(15, 0, 0)])
    shown = {one.name: one.now for one in found}

    assert ("0.0 per second", "0.0 ms") == (shown["Requests"], shown["Mean time of a request"])
    assert "Requests: 0.0 per second now, at most 4.0 per second" in found[0].line
    assert [] == figures([sample(0)])


def test_a_sample_counts_the_requests_of_all_workers():
    """Requests of any route and worker are counted, errors of the server apart."""
    cells = [memoryview(bytearray(8 << 16)).cast("d") for _ in range(2)]
    for worker, route, status in ((0, 3, 200), (0, 4, 404), (1, 3, 503)):
        Requests(Tally(cells[worker])).end(route, status, 0.5, 0, 10)
    trends = Trends(cells, lambda: (7, 2), lambda: 3)
    trends.sample()

    assert [(3, 1, 1.5, 7, 2, 3)] == [one[1:] for one in trends.samples]


@pytest.mark.parametrize(
    ("values", "points"),
    [
        ([], ""),
        ([1.0], "0.0,3.0"),
        ([0.0, 2.0, 1.0], "0.0,45.0 120.0,3.0 240.0,24.0"),
        ([0.0, 0.0], "0.0,45.0 240.0,45.0"),
    ],
)
def test_sparklines(values, points):
    """A line goes from zero to the largest value; its words are escaped."""
    svg = sparkline(values, '<"label">')

    assert f'points="{points}"' in svg
    assert '<"label">' not in svg


def entries(*offsets):
    """Return records at offsets."""
    return [Entry(offset, 0, b"k" * 3_000, b"v" if offset % 2 else None) for offset in offsets]


def test_recent_records_are_few_and_small():
    """The newest records are kept without values, with short keys; records read again count once."""
    recent = RecentRecords()
    assert 600 == len(list(recent.passing(entries(*range(600)))))
    recent.add(entries(598, 599, 600, 601))

    newest = recent.newest(3)
    assert [(601, 1), (600, None), (599, 1)] == [(one.offset, one.size) for one in newest]
    assert 2_000 == len(newest[0].key)
    assert 500 == len(recent.newest(1_000))
    assert () == recent.newest(0)
