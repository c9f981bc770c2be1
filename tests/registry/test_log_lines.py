"""The format of log lines, and the folding of equal ones."""

import json
import logging
from itertools import pairwise
from types import SimpleNamespace

import pytest

from strata.registry.node.logs.context import REQUEST, trace_id_of
from strata.registry.node.logs.lines import Folding, set_up_logging, write_folded

TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
FORGED = "x\n2026-01-01T00:00:00.000+00:00 INFO    strata: all is well\x1b[2J\x85\u2028\u202e\u2066"


class Request:
    """The request of a line."""

    request_id, trace_id = b"r-1", "4bf9"


@pytest.fixture
def lines(capsys):
    """Return a function that sets up logging, logs by another function, and returns the lines."""
    root, others = logging.getLogger(), [logging.getLogger(name) for name in ("uvicorn", "urllib3")]
    before = root.handlers[:], root.level, [one.level for one in others]

    def logged(log, **options):
        set_up_logging("info", **options)
        log(logging.getLogger("strata.test"))
        write_folded(everything=True)
        return capsys.readouterr().err.splitlines()

    yield logged
    root.handlers[:], root.level, levels = before
    for one, level in zip(others, levels, strict=True):
        one.setLevel(level)


def test_retries_of_a_neighbour_are_not_logged_one_by_one(lines):
    """The failure of a request to another registry is logged where it was sent, without a line for each retry."""

    def retries(_):
        logging.getLogger("urllib3.connectionpool").warning("Retrying (Retry(total=4, …)) after connection broken")

    assert [] == lines(retries, as_json=False)


@pytest.mark.parametrize("worker", [None, 3])
def test_both_formats_hold_the_same(lines, worker):
    """Text and JSON have time with zone, severity, worker, message, request id and trace id; JSON has all fields."""
    token = REQUEST.set(Request())
    try:
        [text] = lines(_log_event, as_json=False, worker=worker)
        [line] = lines(_log_event, as_json=True, worker=worker)
    finally:
        REQUEST.reset(token)
    content = json.loads(line)

    assert content.pop("time").endswith("+00:00")
    assert worker == content.pop("worker", None)
    assert {
        "level": "WARNING", "logger": "strata.test", "message": "7 of a", "event": "e", "count": 7, "name": "a",
        "request_id": "r-1", "trace_id": "4bf9",
    } == content  # fmt: skip
    named = "strata.test" if worker is None else "worker 3 strata.test"
    assert text[23:] == f"+00:00 WARNING {named}: 7 of a [request_id=r-1 trace_id=4bf9]"


def _log_event(log):
    log.warning("%(count)d of %(name)s", {"event": "e", "count": 7, "name": "a"})


@pytest.mark.parametrize("as_json", [False, True])
def test_a_name_cannot_forge_a_line(lines, as_json):
    """Line breaks and control characters in a name are escaped."""
    found = lines(lambda log: log.info("registered %(subject)s", {"subject": FORGED}), as_json=as_json)

    assert 1 == len(found)
    assert found[0].isprintable()
    assert r"x\n2026" in found[0]
    assert r"\u2028\u202e\u2066" in found[0]
    assert not as_json or FORGED == json.loads(found[0])["subject"]


def test_only_our_own_defects_have_a_traceback(lines):
    """An exception in a library is one line that names it."""

    def fail(log):
        error = RuntimeError("first\nsecond")
        for name in ("sqlalchemy.pool", log.name):
            logging.getLogger(name).error("broken", exc_info=error)

    foreign, *ours = lines(fail, as_json=False)

    assert foreign.endswith("sqlalchemy.pool: broken: RuntimeError: first second")
    assert ["RuntimeError: first", "second"] == ours[1:]


def test_a_storm_is_one_line_and_a_count(lines, monkeypatch):
    """Lines that differ in numbers only are counted; changes, requests and other lines are not."""
    # A storm that lasts longer is counted after a second, too.
    monkeypatch.setattr(
        "strata.registry.node.logs.lines.time", SimpleNamespace(monotonic=lambda: 0.0, time=lambda: 0.0)
    )

    def storm(log):
        for number in range(1_005):
            log.error("%(port)d cannot be reached", {"event": "gone", "port": number})
            log.info("%(subject)s", {"event": "schema_register", "subject": f"s{number}"})
        log.error("another one")

    found = [json.loads(line) for line in lines(storm, as_json=True)]

    assert 1_005 == sum(line.get("event") == "schema_register" for line in found)
    rest = [(line["message"], line.get("repeated")) for line in found if line.get("event") != "schema_register"]
    assert [("0 cannot be reached", None), ("another one", None), ("1004 cannot be reached", 1_004)] == rest


def record(text, event="e", **fields):
    """Return a log record."""
    fields = {"event": event, **fields} if event else fields
    return logging.LogRecord("strata", logging.ERROR, "", 0, text, (fields,) if fields else (), None)


@pytest.mark.parametrize(("event", "expected"), [("e", [1, 2, 4, 8, 16, 32]), ("", [10, 20, 40])])
def test_intervals_double_while_a_storm_lasts(event, expected):
    """The counts come after 1, 2, 4, … seconds, at most 60 (libraries from 10); a quiet interval ends it."""
    folding, written = Folding(set()), []
    for tick in range(0, 20_000, 5):  # tenths of a second
        written += [tick / 10 for _ in folding.take(record("gone", event), tick / 10)]
    gaps = [round(later - earlier, 1) for earlier, later in pairwise(written)]

    assert expected == gaps[: len(expected)]
    assert {60} == set(gaps[len(expected) :])
    assert [1] == [len(list(folding.due(now))) for now in (2_100,)]
    assert [] == list(folding.due(2_300))
    assert 1 == len(list(folding.take(record("gone", event), 2_301)))


def test_a_second_line_is_not_lost():
    """Of two equal lines both are written, the second after a second."""
    folding = Folding(set())
    first = list(folding.take(record("a %(n)d", n=1), 0))
    held = list(folding.take(record("a %(n)d", n=2), 0.5))

    assert ["a 1"] == [one.getMessage() for one in first]
    assert [] == held
    assert [("a 2", False)] == [(one.getMessage(), hasattr(one, "repeated")) for one in folding.due(1)]


def test_lines_that_were_held_back_keep_the_order_of_time():
    """A line that is written late has the time of writing, and besides it the time at which it was logged."""
    folding = Folding(set())
    lines = [record("a %(n)d", n=1), record("a %(n)d", n=2), record("b")]
    written = [line for now, one in enumerate(lines) for line in folding.take(one, now / 10)]
    written += folding.due(5)

    assert ["a 1", "b", "a 2"] == [line.getMessage() for line in written]
    assert sorted(line.created for line in written) == [line.created for line in written]
    assert lines[1].created == written[2].logged


def test_memory_for_folding_is_bounded():
    """Beyond a number of different texts, lines of one template are one."""
    folding = Folding(set())
    for number in range(2_000):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        list(folding.take(record("of %(name)s", name=name), 0))

    assert len(folding._open) <= 1_001


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (TRACE, "4bf92f3577b34da6a3ce929d0e0e4736"),
        (TRACE.replace(b"00-", b"cc-", 1) + b"-more", "4bf92f3577b34da6a3ce929d0e0e4736"),
        (TRACE.upper(), ""),
        (b"ff" + TRACE[2:], ""),
        (b"00-" + b"0" * 32 + TRACE[35:], ""),
        (TRACE[:-3], ""),
        (b"", ""),
    ],
)
def test_trace_ids(header, found):
    """A trace id is taken from a valid `traceparent` only."""
    assert found == trace_id_of(header)
