"""Requests leave nothing to the garbage collector, which stops the whole process while it looks for cycles."""

import asyncio
import gc
import json
import weakref
from itertools import count

import pytest

from harness.waiting import until
from strata.compat.levels import Level
from strata.registry.app import create_app
from strata.registry.core.decide.content import version_with
from strata.registry.core.decide.register import Rules, register
from strata.registry.core.schema_request import SchemaRequest
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog
from strata.storage.records import Reference, Subject
from strata.storage.state import State

RULES = Rules(Level.BACKWARD)
TIMESTAMP = 1
INNER, OUTER = Subject("inner"), Subject("outer")
_numbers = count()


def inner():
    """Return a new schema."""
    fields = [{"name": f"f{next(_numbers)}", "type": ["null", "string"], "default": None}]
    return SchemaRequest(json.dumps({"type": "record", "name": "n.Inner", "fields": fields}))


def outer():
    """Return a new schema with a reference."""
    fields = [{"name": f"f{next(_numbers)}", "type": "n.Inner"}]
    text = json.dumps({"type": "record", "name": "Outer", "fields": fields})
    return SchemaRequest(text, references=(Reference("n.Inner", INNER, 1),))


def after(state, subject, request):
    """Return the State after a registration."""
    return state.drafted(register(state, subject, request, RULES).records, TIMESTAMP)


def left_by(schema, state):
    """Return how many objects in cycles ten decisions have left, or another thread of the process meanwhile."""
    gc.collect()
    for _ in range(10):
        request = schema()
        version_with(
            after(state, Subject("other"), request),
            Subject("other"),
            request,
            normalize=False,
            include_deleted=False,
        )
    return gc.collect()


@pytest.mark.parametrize("schema", [inner, outer])
def test_decisions_leave_no_cycles(schema):
    """Reference counts alone free a State, once a registration and a look-up on it have ended."""
    state = after(after(State(), INNER, inner()), OUTER, outer())
    gc.collect()
    gc.freeze()  # the collector need not look at what earlier tests have left
    gc.disable()
    try:
        # Threads that earlier tests have left make cycles now and then; decisions would in each round.
        assert 0 in (left_by(schema, state) for _ in range(5))
    finally:
        gc.enable()


@pytest.mark.parametrize("path", ["/subjects/s/versions", "/compatibility/subjects/s/versions"])
def test_a_request_with_a_body_leaves_no_cycle(path):
    """Reference counts alone free a request, and with it its body, its answer and the State of the answer."""
    app, body, requests = create_app(MemoryLog(), Settings(log="memory:")), b'{"schema": "\\"int\\""}', []
    app.begins = (*app.begins, lambda exchange: requests.append(weakref.ref(exchange)))
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8081)}
    statuses, bodies = [], [body]

    async def receive():
        if not bodies:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": bodies.pop(), "more_body": False}

    async def send(message):
        statuses.append(message.get("status", 200))

    gc.disable()
    try:
        asyncio.run(app(scope, receive, send))
        assert [200, 200] == statuses
        until(lambda: [None] == [request() for request in requests])  # the thread that decided holds it for a moment
    finally:
        gc.enable()
