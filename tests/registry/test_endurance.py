"""A hundred thousand requests, hostile and plain, to one node: no 5xx, no hang, and bounded memory."""

import http.client
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from harness.registry import RegistryNode

REQUESTS = 100_000
WARM_UP = 20_000
CLIENTS = 4
# The node's caches hold at most 256 MiB; the first measurement includes what they hold after the warm-up.
MOST_GROWTH = 256 << 20


def _deep(depth):
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def _record(number, *extra):
    fields = [{"name": name, "type": "int", "default": 0} for name in ("a", *extra)]
    return json.dumps({"type": "record", "name": f"R{number}", "fields": fields})


def _one_of(count, salt):
    return json.dumps({"oneOf": [{"type": "string", "maxLength": n + salt, "title": str(n)} for n in range(count)]})


def _check(text, schema_type, subject="s0-value"):
    body = {"schema": text, "schemaType": schema_type}
    return "POST", f"/compatibility/subjects/{subject}/versions?verbose=true", body


def _request(number, dice):
    """Return one request: most are plain; the hostile ones differ each time, so that no cache serves them."""
    kind = dice.random()
    subject = f"s{dice.randrange(200)}-value"
    if kind < 0.4:
        return "GET", f"/schemas/ids/{dice.randrange(1, 250)}", None
    if kind < 0.6:
        return "GET", f"/subjects/{subject}/versions/latest", None
    if kind < 0.8:
        return "POST", f"/subjects/{subject}/versions", {"schema": _record(dice.randrange(200))}
    if kind < 0.9:
        return _check(_record(number, f"f{number}"), "AVRO", subject)
    return dice.choice(
        [
            _check(_deep(190 + number % 20), "AVRO"),
            _check("[" * 20_000 + str(number), "JSON"),
            _check(f"message A{number} {{" + "message B {" * 300, "PROTOBUF"),
            _check(_one_of(40, number), "JSON", "json"),
            _check(json.dumps({"enum": [f"{number}-{n}" for n in range(500)]}), "JSON", "json"),
            _check(json.dumps({"$ref": f"http://127.0.0.1:9/{number}"}), "JSON"),
            ("POST", f"/subjects/x{number}/versions", {"schema": "{", "references": [{"name": "a"}] * 50}),
            ("POST", "/subjects/%00%2F..%2F/versions", {"schema": None, "id": -(10**30)}),
            ("GET", f"/schemas/ids/{number}" + "9" * 30, None),
            ("PUT", f"/config/{subject}", {"compatibility": "\ud800" * 3}),
            ("DELETE", f"/subjects/gone{number}", None),
        ]
    )


def _client(port, numbers):
    """Send requests over one connection; return the number of each status."""
    dice = random.Random(numbers.start)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    counts = {}
    for number in numbers:
        method, path, body = _request(number, dice)
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        counts[response.status] = counts.get(response.status, 0) + 1
    connection.close()
    return counts


def _send(port, first, count):
    shares = [range(start, first + count, CLIENTS) for start in range(first, first + CLIENTS)]
    total = {}
    with ThreadPoolExecutor(CLIENTS) as pool:
        for counts in pool.map(_client, [port] * CLIENTS, shares):
            for status, number in counts.items():
                total[status] = total.get(status, 0) + number
    return total


def _resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="memory is read from /proc")
def test_a_hundred_thousand_requests(capsys):
    """Every answer is below 500, the node answers to the end, and its memory grows by no more than its caches."""
    with RegistryNode("memory:") as node:
        assert 200 == _ask(node.port, "/subjects/json/versions", {"schema": _one_of(40, 0), "schemaType": "JSON"})
        counts = _send(node.port, 0, WARM_UP)
        warm = _resident(node.pid)
        for status, number in _send(node.port, WARM_UP, REQUESTS - WARM_UP).items():
            counts[status] = counts.get(status, 0) + number
        growth = _resident(node.pid) - warm
    with capsys.disabled():
        sys.stdout.write(f"{counts}, {warm >> 20} MiB after the warm-up, {growth >> 20} MiB more at the end\n")

    assert REQUESTS == sum(counts.values())
    assert {} == {status: number for status, number in counts.items() if status >= 500}
    assert growth < MOST_GROWTH


def _ask(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with closing(connection):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse().status
