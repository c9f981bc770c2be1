"""Reports of tests: those that say nothing are not sent, and log lines are caught for the others."""

import logging
from types import SimpleNamespace

import pytest
from _pytest.logging import LogCaptureHandler, catching_logs

from harness import reports
from harness.reports import FewReports, is_telling


def report(when, outcome="passed", duration=0.001):
    """Return a report of a phase of a test."""
    return pytest.TestReport("t.py::t", ("t.py", 1, "t"), {"word": 1}, outcome, None, when, duration=duration)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (report("call"), True), (report("call", "failed"), True), (report("call", "skipped"), True),
        (report("setup"), False), (report("teardown"), False), (report("setup", duration=0.005), True),
        (report("setup", "failed"), True), (report("setup", "skipped"), True), (report("teardown", "failed"), True),
    ],
)  # fmt: skip
def test_what_tells_something(one, expected):
    """A fixture's report is read if it failed, skipped the test, or took time; that of the test's body always."""
    assert expected == is_telling(one)


def told(monkeypatch, ran, following=None):
    """Return the reports and the ends that are sent of a test which another one follows, or none."""
    sent = []
    hook = SimpleNamespace(
        pytest_runtest_logreport=lambda **given: sent.append(given["report"]),
        pytest_runtest_logfinish=lambda nodeid, location: sent.append(nodeid),
    )
    monkeypatch.setattr(reports, "runtestprotocol", lambda item, *, log, nextitem: ran)
    assert FewReports().pytest_runtest_protocol(SimpleNamespace(nodeid="t", location=(), ihook=hook), following)
    return sent


@pytest.mark.parametrize(("following", "end"), [(None, ["t"]), ("another test", [])])
def test_a_test_is_reported_in_order_and_the_last_one_ends(monkeypatch, following, end):
    """A test whose fixture fails at its end is reported with its body first, and the last one then as finished."""
    body, fixture, *ends = told(monkeypatch, [report("setup"), report("call"), report("teardown", "failed")], following)

    assert [("call", "passed"), ("teardown", "failed")] == [(one.when, one.outcome) for one in (body, fixture)]
    assert end == ends


def test_the_words_of_a_test_that_failed(monkeypatch):
    """They are sent with its report, and left out of that of one that passed."""
    body, fixture, _ = told(monkeypatch, [report("call"), report("teardown", "failed")])

    assert [{}, {"word": 1}] == [body.keywords, fixture.keywords]


@pytest.mark.parametrize(("level", "expected"), [(None, ["warning"]), (logging.INFO, ["info", "warning"])])
def test_a_level_of_log_lines(caplog, level, expected):
    """Lines are caught from a level on, such as that of `--log-cli-level`, and the logger's own level comes back."""
    root = logging.getLogger()
    caplog.set_level(logging.WARNING)
    before, handlers = root.level, [*root.handlers]
    with catching_logs(LogCaptureHandler(), level) as handler:
        root.info("info")
        root.warning("warning")

    assert expected == [record.getMessage() for record in handler.records]
    assert (before, handlers) == (root.level, root.handlers)
