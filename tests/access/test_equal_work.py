"""A refusal takes the same work whether or not what was asked for exists, so that its time says nothing."""

import asyncio
import sys
import threading

import pytest

from harness.access_questions import ALL_ON_OPEN, QUESTIONS, filled
from harness.guarded_registry import Registry
from strata.registry.app import ROUTERS
from strata.registry.core.rights.route_rights import How
from strata.registry.http.checks import plain_path
from strata.registry.http.route_facts import RouteTable

ROUTES = RouteTable(route for router in ROUTERS for route in router.declared)
BY_THE_PATH = (How.NAMED, How.ONE_OF)
LOG, STATE = "MemoryLog.", "state.py"
MAY_BE_ASKED = {"nick", "open-new", "common"}
"""Subjects on which alice has rights: their routes decide what else is needed."""


class Work:
    """The calls of our own functions, in all threads that are started while it is installed."""

    def __init__(self):
        self._found, self._counts = [], False

    def __enter__(self):
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame, event, _argument):
        file = frame.f_code.co_filename
        if self._counts and event == "call" and ("/registry/" in file or "/storage/" in file):
            self._found.append((file.rpartition("/")[2], frame.f_code.co_qualname))

    def of(self, registry, question):
        """Return the status of an answer and the calls that led to it."""
        method, path, body = question
        self._found, self._counts = [], True
        status = registry.ask(method, path, body, "alice")[0]
        self._counts = False
        return status, self._found


# Where reads are local, less is looked up.
@pytest.fixture(scope="module", params=["linearizable", pytest.param("local", marks=pytest.mark.slow)])
def works(request):
    """Return, for each question, its work in a registry that holds the secrets and in one that does not.

    Each question is asked twice: what is compiled or filled on first use is not counted.
    """
    found = []
    with asyncio.Runner() as runner, Work() as work:
        for secrets in (True, False):
            registry = filled(Registry(runner, ALL_ON_OPEN, reads=request.param), secrets=secrets)
            for question in QUESTIONS:
                work.of(registry, question)
            found.append([work.of(registry, question) for question in QUESTIONS])
    return list(zip(QUESTIONS, *found, strict=True))


def calls_of_log(calls):
    """Return those of some calls that ask the log."""
    return [name for _, name in calls if name.startswith(LOG)]


def need_of(question):
    """Return what the route of a question needs."""
    method, path, _ = question
    route = ROUTES.find(method, plain_path(path.partition("?")[0].replace("/contexts/.c/", "/").encode()))
    return route.facts.need


def test_a_refusal_by_the_path_looks_nothing_up(works):
    """Where the path names what is missing, the same functions run in the same order, and the route is not reached."""
    asked = [(question, *both) for question, *both in works if need_of(question).how in BY_THE_PATH]
    for question, (status, with_secret), (other, without) in asked:
        if set(question[1].split("/")) & MAY_BE_ASKED:
            continue
        assert (status, other) == (403, 403), question
        assert not [one for one in with_secret if one[0] == STATE or one[1] == "Endpoint.__call__"], question
        assert with_secret == without, question


def test_a_refusal_reads_the_log_in_the_same_way(works):
    """Neither does a miss, which makes a node read the log again, differ from what is hidden."""
    for question, (_, with_secret), (_, without) in works:
        assert calls_of_log(with_secret) == calls_of_log(without), question
