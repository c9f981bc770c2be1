"""The rows of the table `service`: the requests, and the schemas that they need.

The same request is asked in up to three ways. *Repeated*: one request again and again, which a cache answers. *100 in
turn*: the same for 100 subjects, one after the other. *Computed*: the first request with a query parameter that the
service ignores and that differs each time, which keeps the answer out of the caches; the texts of its schemas have been
parsed before.

A new schema each time is parsed as well.
"""

import json
import sys
from dataclasses import dataclass

from bench.wrk import Request
from harness.registry import RegistryNode

__all__ = ["BODY_FIELDS", "REGISTER", "SUBJECTS", "Row", "prepare"]

BODY_FIELDS = 8
SUBJECTS = 100
_FIELDS: list[dict[str, object]] = [
    {"name": f"field_{i}", "type": ["null", "string"], "default": None} for i in range(30)
]
_EXTRA: dict[str, object] = {"name": "extra_NUMBER", "type": ["null", "string"], "default": None}
_UNIQUE = ' .. run .. "_" .. n .. '
_IN_TURN = f" .. (n % {SUBJECTS}) .. "
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of request; `answer` says what the answer costs the node."""

    name: str
    answer: str
    request: Request
    connections: tuple[int, ...] = (16,)


def prepare(node: RegistryNode, headers: dict[str, str]) -> tuple[list[Row], bytes]:
    """Register the schemas that the rows ask for; return the rows that read, and the body of a schema by its id.

    Args:
        node: a node on which no other client registers schemas meanwhile.
        headers: the headers of each request, such as credentials.
    """
    ids = [json.loads(_call(node, "POST", _versions(i), _known(i), headers))["id"] for i in range(SUBJECTS)]
    if ids != list(range(ids[0], ids[0] + SUBJECTS)):
        sys.exit(f"expected consecutive ids, got {ids}")
    return _reads(ids[0]), _call(node, "GET", f"/schemas/ids/{ids[0]}", "", headers)


def _reads(first_id: int) -> list[Row]:
    check, known, grown = "compatibility check, 30 fields", _known("SUBJECT"), _grown("SUBJECT")
    return [
        *_ways("GET /schemas/ids/{id}", "GET", "/schemas/ids/SCHEMA_ID", first_id=first_id, connections=(1, 16, 64)),
        *_ways("GET /subjects/{s}/versions/latest", "GET", f"{_versions('SUBJECT')}/latest", connections=(1, 16)),
        *_ways("look-up of a known schema, 30 fields", "POST", "/subjects/bench-orders-SUBJECT-value", known),
        *_ways(f"{check}, the same schema", "POST", f"/compatibility{_versions('SUBJECT')}/latest", grown),
        Row(f"{check}, a new schema each time", "new schema",
            Request("POST", _lua(f"/compatibility{_versions(0)}/latest"), _lua(_grown(0), NUMBER=_UNIQUE))),
    ]  # fmt: skip


def _ways(
    name: str, method: str, path: str, body: str = "", *, first_id: int = 0, connections: tuple[int, ...] = (16,)
) -> list[Row]:
    """Return the rows of a request: SUBJECT stands for its number, SCHEMA_ID for the id of its schema."""
    one = {"SCHEMA_ID": f" .. {first_id} .. ", "SUBJECT": " .. 0 .. "}
    turn = {"SCHEMA_ID": f" .. ({first_id} + n % {SUBJECTS}) .. ", "SUBJECT": _IN_TURN}
    ignored = '"?ignored=" .. run .. "-" .. n'
    text = body or "nil"
    return [
        Row(name, "repeated", Request(method, _lua(path, **one), _lua(text, **one)), connections),
        Row(name, "100 in turn", Request(method, _lua(path, **turn), _lua(text, **turn)), (16,)),
        Row(name, "computed", Request(method, f"{_lua(path, **one)} .. {ignored}", _lua(text, **one)), (16,)),
    ]


def _lua(text: str, **numbers: str) -> str:
    """Return a text as a Lua expression, in which words are replaced by expressions for numbers."""
    if text == "nil":
        return text
    expression = f"[==[{text}]==]"
    for word, number in numbers.items():
        expression = expression.replace(word, f"]==]{number}[==[")
    return expression


def _versions(subject: object) -> str:
    return f"/subjects/bench-orders-{subject}-value/versions"


def _known(subject: object) -> str:
    return _body(f"BenchOrder_{subject}", _FIELDS)


def _grown(subject: object) -> str:
    return _body(f"BenchOrder_{subject}", [*_FIELDS, _EXTRA])


def _body(name: str, fields: list[dict[str, object]]) -> str:
    return json.dumps({"schema": json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields})})


_NEW_FIELDS: list[dict[str, object]] = [
    {"name": f"field_{i}", "type": "string", "doc": "x" * 20} for i in range(BODY_FIELDS)
]
REGISTER = Row(
    "register a new schema",
    "new schema",
    Request(
        "POST",
        _lua("/subjects/bench-NUMBER/versions", NUMBER=_UNIQUE),
        _lua(_body("Order_NUMBER", _NEW_FIELDS), NUMBER=_UNIQUE),
    ),
    (1, 16, 64),
)


def _call(node: RegistryNode, method: str, path: str, body: str, headers: dict[str, str]) -> bytes:
    connection = node.connect(timeout=30)
    connection.request(method, path, body or None, _JSON | headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != 200:
        sys.exit(f"{method} {path} answered {answer.status}: {content.decode()}")
    return content
