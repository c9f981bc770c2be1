"""The log lines of a real node that logs JSON, and requests that cause them."""

import http.client
import json
from contextlib import closing
from typing import Any

import pytest

from harness.registry import RegistryNode
from harness.waiting import until

__all__ = ["JSON_LINES", "call", "events_of", "logged", "until_logged"]

JSON_LINES = "--log-format=json"
"""The flag that a node needs so that these functions can read its log."""


def call(node: RegistryNode, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    """Send one request to a node, and return status and body of the answer.

    Args:
        node: the node.
        method: the method.
        path: the path and query.
        body: is sent as JSON, unless it is None.
        headers: headers, with underscores for hyphens.
    """
    with closing(node.connect(timeout=60)) as connection:
        sent = {"Content-Type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        connection.request(method, path, body and json.dumps(body), sent)
        response: http.client.HTTPResponse = connection.getresponse()
        return response.status, response.read()


def logged(node: RegistryNode, *events: str) -> list[dict[str, Any]]:
    """Return the JSON lines of a node, or those of some events."""
    whole = node.output.rpartition("\n")[0]  # the last line may be half written
    lines = [json.loads(line) for line in whole.splitlines()]
    return [line for line in lines if not events or line.get("event") in events]


def until_logged(node: RegistryNode, event: str, **fields: object) -> list[dict[str, Any]]:
    """Wait until a node has logged an event with some fields, and return these lines.

    Raises:
        AssertionError: it did not within 90 s.
    """

    def found() -> list[dict[str, Any]]:
        return [line for line in logged(node, event) if fields.items() <= line.items()]

    return until(found)


def events_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the events that this process has logged during a test, in order."""
    return [
        record.args["event"] for record in caplog.records if isinstance(record.args, dict) and "event" in record.args
    ]
