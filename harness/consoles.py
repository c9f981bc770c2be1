"""Replays of the calls that consoles and other tools make to a registry.

    CONSOLE = Tool("Redpanda Console", headers={…}, steps=[Step("types", "GET /schemas/types", [str])])
    assert [] == replay(CONSOLE, node)

A step is a request exactly as the tool sends it, percent-encoding included, with what the tool reads of the answer:

- a type: the value has this JSON type (a boolean is not an integer);
- a dict: these properties are there and match; the tool ignores others;
- a list of one pattern: a list, not empty, whose items match;
- `Holds(a, b)`: a list that has these items; `Without(a)`: one that has none of these;
- anything else: this very value; `ANY`: the tool reads only the status.

`save="x"` keeps the answer's `id`, which later steps write as `{x}` in the request or as `Saved("x")` in a pattern.
"""

import gzip
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.registry import RegistryNode

__all__ = ["ANY", "Holds", "Saved", "Step", "Tool", "Without", "replay"]

ANY = object()


class Holds:
    """A list that has some items."""

    def __init__(self, *items: Any) -> None:
        self.items = items


class Without:
    """A list that has none of some items."""

    def __init__(self, *items: Any) -> None:
        self.items = items


class Saved(str):
    """The name of a kept id."""

    __slots__ = ()


class Step(NamedTuple):
    """A request, and what the tool reads of the answer; a body of bytes is sent as it is, any other as JSON."""

    what: str
    request: str
    reads: Any = ANY
    status: int = 200
    body: Any = None
    save: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool: the headers of each request, further ones of requests with a body, and its calls in order.

    Each answer has a media type that ends in `media`.
    """

    name: str
    headers: Mapping[str, str]
    steps: list[Step]
    with_body: Mapping[str, str] = field(default_factory=dict)
    media: str = "application/vnd.schemaregistry.v1+json"


def replay(tool: Tool, node: RegistryNode) -> list[str]:
    """Make a tool's calls on one connection and return a line for each answer that the tool could not use."""
    saved: dict[str, int] = {}
    wrong = []
    connection = node.connect()
    try:
        for step in tool.steps:
            status, media, answer = _ask(connection, tool, step, saved)
            if step.save and isinstance(answer, dict):
                saved[step.save] = answer["id"]
            if status != step.status or not _matches(answer, step.reads, saved):
                wrong.append(f"{tool.name}, {step.what}: {status} {json.dumps(answer)[:600]}")
            elif answer is not None and not media.endswith(tool.media):
                wrong.append(f"{tool.name}, {step.what}: {media}")
    finally:
        connection.close()
    return wrong


def _ask(connection: http.client.HTTPConnection, tool: Tool, step: Step, saved: dict[str, int]) -> tuple[int, str, Any]:
    method, _, path = step.request.partition(" ")
    body = step.body if step.body is None or isinstance(step.body, bytes) else json.dumps(step.body).encode()
    headers = {**tool.headers, **(tool.with_body if body else {})}
    connection.request(method, path.format(**saved), body, headers)
    response = connection.getresponse()
    content = response.read()
    if response.getheader("Content-Encoding") == "gzip":
        content = gzip.decompress(content)
    return response.status, response.getheader("Content-Type", ""), json.loads(content) if content else None


def _matches(value: Any, pattern: Any, saved: dict[str, int]) -> bool:
    match pattern:
        case type():
            return type(value) is pattern
        case Saved():
            return bool(value == saved[pattern])
        case Holds():
            return isinstance(value, list) and all(item in value for item in pattern.items)
        case Without():
            return isinstance(value, list) and not any(item in value for item in pattern.items)
        case dict():
            return isinstance(value, dict) and all(
                name in value and _matches(value[name], wanted, saved) for name, wanted in pattern.items()
            )
        case [one]:
            return isinstance(value, list) and value != [] and all(_matches(item, one, saved) for item in value)
        case _:
            return pattern is ANY or (type(value) is type(pattern) and value == pattern)
