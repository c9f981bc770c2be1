"""The rows of the table `service`: what is asked of a node, and the schemas that this needs.

A *hit* repeats one request, so that the node may answer from memory. A *miss* is the same request with a query
parameter that the service ignores and that differs each time, so the answer is computed; texts of schemas that the node
has seen are still not parsed again. A new schema each time is parsed as well.
"""

import http.client
import json
import sys
from dataclasses import dataclass

from bench.wrk import Request

__all__ = ["BODY_FIELDS", "REGISTER", "Row", "prepare"]

_FIELDS: list[dict[str, object]] = [
    {"name": f"field_{i}", "type": ["null", "string"], "default": None} for i in range(30)
]
_SUBJECT = "bench-orders-value"
_VERSIONS = f"/subjects/{_SUBJECT}/versions"
_CHECK = f"/compatibility{_VERSIONS}/latest"
_MISS = ' .. "?ignored=" .. run .. "-" .. n'
BODY_FIELDS = 8


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of request; `answered` says what the answer costs the node."""

    name: str
    answered: str
    request: Request
    connections: tuple[int, ...] = (16,)


def _lua(text: str) -> str:
    """Return a text as a Lua expression."""
    return f"[==[{text}]==]"


def _schema(name: str, fields: list[dict[str, object]]) -> str:
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields})


def _varied(body: str) -> str:
    """Return a body as a Lua expression in which NUMBER differs each time."""
    return _lua(body).replace("NUMBER", ']==] .. run .. "_" .. n .. [==[')


_KNOWN = json.dumps({"schema": _schema("BenchOrder", [*_FIELDS])})
_GROWN = json.dumps(
    {"schema": _schema("BenchOrder", [*_FIELDS, {"name": "extra_NUMBER", "type": ["null", "string"], "default": None}])}
)
_NEW = json.dumps(
    {
        "schema": _schema(
            "Order_NUMBER", [{"name": f"field_{i}", "type": "string", "doc": "x" * 20} for i in range(BODY_FIELDS)]
        )
    }
)


def _pair(name: str, method: str, path: str, body: str = "nil", connections: tuple[int, ...] = (16,)) -> list[Row]:
    return [
        Row(name, "hit", Request(method, _lua(path), body), connections),
        Row(name, "miss", Request(method, _lua(path) + _MISS, body), connections),
    ]


REGISTER = Row(
    "register a new schema",
    "new schema",
    Request("POST", '"/subjects/bench-" .. run .. "-" .. n .. "/versions"', _varied(_NEW)),
    (1, 16, 64),
)


def _reads(schema_id: int) -> list[Row]:
    return [
        *_pair("GET /schemas/ids/{id}", "GET", f"/schemas/ids/{schema_id}"),
        *_pair("GET /subjects/{s}/versions/latest", "GET", f"{_VERSIONS}/latest", connections=(1, 16)),
        *_pair("look-up of a known schema, 30 fields", "POST", f"/subjects/{_SUBJECT}", _lua(_KNOWN)),
        *_pair("compatibility check, 30 fields, the same schema", "POST", _CHECK, _lua(_GROWN)),
        Row(
            "compatibility check, 30 fields, a new schema each time",
            "new schema",
            Request("POST", _lua(_CHECK), _varied(_GROWN)),
        ),
    ]


def prepare(port: int) -> tuple[list[Row], bytes]:
    """Register the schema that the rows ask for; return the rows that read, and the body of the schema by its id."""
    schema_id = json.loads(_call(port, "POST", _VERSIONS, _KNOWN))["id"]
    return _reads(schema_id), _call(port, "GET", f"/schemas/ids/{schema_id}")


def _call(port: int, method: str, path: str, body: str | None = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != 200:
        sys.exit(f"{method} {path} answered {answer.status}: {content.decode()}")
    return content
