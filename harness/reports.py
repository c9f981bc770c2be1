"""What a process of pytest-xdist reports of a test to the one that prints.

By default it sends six messages a test. There the reports of fixtures that were set up and ended without trouble are
thrown away, the words of a test that passed are not read, and its end is only needed to print `100%` after the last.
All that takes two milliseconds of CPU time a test, in a suite of ten thousand.
"""

from typing import Final

import pytest
from _pytest.runner import runtestprotocol

__all__ = ["FewReports", "is_telling"]

_LEAST_S: Final = 0.005  # below, `--durations` shows nothing


def is_telling(report: pytest.TestReport) -> bool:
    """Return whether a report says more than that a fixture is fine."""
    return report.when == "call" or not report.passed or report.duration >= _LEAST_S


class FewReports:
    """A plugin for the processes that run tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and send what tells something of it."""
        for report in filter(is_telling, runtestprotocol(item, log=False, nextitem=nextitem)):
            if report.passed:
                report.keywords = {}
            item.ihook.pytest_runtest_logreport(report=report)
        if nextitem is None:
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
