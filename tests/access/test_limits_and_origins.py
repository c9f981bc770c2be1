"""Rates of clients, and web pages of other origins."""

import asyncio
import json
import time

import pytest

from harness.access_rules import rule
from harness.guarded_registry import ADMIN
from strata.registry.app import create_app
from strata.registry.features.access.rate_limit import RateLimit
from strata.registry.http.node_signature import HEADER, NodeSecret
from strata.registry.node.buckets import Buckets
from strata.registry.node.settings import SettingRefused
from strata.registry.settings import Settings, load_settings
from strata.storage.log import MemoryLog

HERE, THERE = "192.0.2.1", "192.0.2.2"
RARELY = 0.01  # requests per second: no pause of the machine allows another one
PAGE = "https://ui.example.com"
ALLOW = "access-control-allow-origin"


class Clock:
    """A clock that only the test moves."""

    def __init__(self):
        self.now = 1000.0

    def read_us(self):
        """Return the time in microseconds."""
        return round(self.now * 1_000_000)


async def status_of(app, address):
    """Return the status of a read from an address."""
    parts = []

    async def send(message):
        parts.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/subjects", "raw_path": b"/subjects", "query_string": b"",
        "headers": [(b"host", b"localhost")], "client": (address, 1),
    }  # fmt: skip
    await app(scope, None, send)
    return parts[0]["status"]


@pytest.fixture
def clock():
    """Return a clock that only the test moves."""
    return Clock()


def limit(clock, **rates):
    """Return limits by a clock."""
    return RateLimit(Buckets(clock.read_us), **{"per_user": None, "per_address": None, **rates})


def test_a_user_may_send_so_many_requests(clock):
    """A bucket holds two seconds' worth, drains with time, and is the user's own, wherever he is."""
    rates = limit(clock, per_user=5)

    assert [0.0] * 10 + [pytest.approx(0.2)] == [rates.wait_s("a", HERE) for _ in range(11)]
    assert 0.2 == pytest.approx(rates.wait_s("a", THERE))
    assert 0.0 == rates.wait_s("b", HERE)
    clock.now += 0.4
    assert [0.0, 0.0, pytest.approx(0.2)] == [rates.wait_s("a", HERE) for _ in range(3)]


@pytest.mark.parametrize(
    ("rate", "burst_s", "at_once"), [(5, 2.0, 10), (5, 0.2, 1), (5, 0.01, 1), (0.1, 2.0, 1), (0.5, 60.0, 30)]
)
def test_bursts(clock, rate, burst_s, at_once):
    """As many requests as arrive in the time of a burst may come at once, but always one."""
    rates = limit(clock, per_user=rate, burst_s=burst_s)

    assert at_once == [rates.wait_s("a", HERE) for _ in range(40)].count(0.0)


@pytest.mark.parametrize(
    ("rates", "first", "second", "refused"),
    [
        ({"per_user": 0.5}, ("a", HERE), ("a", THERE), True),
        ({"per_user": 0.5}, ("a", HERE), ("b", HERE), False),
        ({"per_user": 0.5}, (None, HERE), (None, HERE), True),
        ({"per_user": 0.5}, (None, HERE), (None, THERE), False),
        ({"per_user": 0.5}, (None, HERE), ("a", HERE), False),
        ({"per_user": 0.5}, (None, HERE), (HERE, HERE), False),
        ({"per_address": 0.5}, ("a", HERE), ("b", HERE), True),
        ({"per_address": 0.5}, ("a", HERE), ("a", THERE), False),
        ({"per_address": 0.5}, (None, HERE), ("a", HERE), True),
        ({"per_address": 0.5}, ("a", "2001:db8::1"), ("a", "2001:db8::ffff:1"), True),
        ({"per_address": 0.5}, ("a", "2001:db8::1"), ("a", "2001:db8:0:1::1"), False),
        ({"per_address": 0.5, "per_user": 5}, ("a", HERE), ("b", HERE), True),
        ({"per_address": 5, "per_user": 0.5}, ("a", HERE), ("a", THERE), True),
    ],
)
def test_what_counts_together(clock, rates, first, second, refused):
    """Requests count by user, or by address without one; the limit of addresses counts all users of an address."""
    found = limit(clock, **rates)

    assert 0.0 == found.wait_s(*first)
    assert refused == (found.wait_s(*second) > 0)


def test_requests_beyond_the_rate_get_429(guarded):
    """Each user has a rate, and each address without a user, also for paths without a route; the body is not read."""
    registry = guarded([rule("alice", "ALL", "*"), rule("bob", "ALL", "*")], rate_limit=RARELY)
    first, second = (registry.ask("GET", "/subjects", None, "alice") for _ in range(2))

    assert (first[0], second[:2]) == (200, (429, {"error_code": 429, "message": "Too many requests; try again later"}))
    assert int(second[2]["retry-after"]) >= 1
    assert registry.code("GET", "/subjects", None, "bob") == 200
    assert registry.code("GET", "/subjects", None, None, address=HERE) == 401
    assert registry.code("GET", "/subjects", None, None, address=HERE) == 429
    assert registry.code("GET", "/nothing/here", None, None, address=HERE) == 429
    assert registry.code("POST", "/subjects/a/versions", {"schema": '"int"'}, "alice") == 429


def test_probes_and_superusers_are_not_limited(guarded):
    """Neither a load balancer nor an administrator is kept out by a limit, and neither uses it up."""
    registry = guarded([rule("alice", "ALL", "*")], address_rate_limit=RARELY)
    free = [registry.code("GET", path, None, None) for path in ("/health/ready", "/health/live") for _ in range(5)]
    free += [registry.code("GET", "/subjects") for _ in range(5)]

    assert [200] * 15 == free
    assert [200, 429] == [registry.code("GET", "/subjects", None, "alice") for _ in range(2)]


def test_without_access_control_addresses_are_limited():
    """Nobody is a superuser then."""
    with asyncio.Runner() as runner:
        app = create_app(MemoryLog(), Settings(log="memory:", rate_limit=RARELY))
        asked = [runner.run(status_of(app, address)) for address in (HERE, HERE, THERE)]

    assert [200, 429, 200] == asked


def test_the_rate_holds_for_answers_in_memory(guarded):
    """A hot answer is a request too."""
    registry = guarded([rule("alice", "ALL", "*")], rate_limit=RARELY, rate_burst_seconds=4 / RARELY)
    registry.register("a")
    codes = [registry.code("GET", "/schemas/ids/1", None, "alice") for _ in range(5)]

    assert codes == [200] * 4 + [429]


def test_the_audit_notes_no_refusal_for_a_rate(guarded, tmp_path):
    """A flood of requests would fill the disk, and then no change could be noted."""
    audit = tmp_path / "audit.log"
    registry = guarded([rule("alice", "READ", "*")], rate_limit=RARELY, rate_burst_seconds=2 / RARELY, audit=str(audit))
    codes = [registry.code("DELETE", "/subjects/a", None, "alice") for _ in range(20)]
    registry.code("PUT", "/mode", {"mode": "READWRITE"})

    assert [40301, 40301] + [429] * 18 == codes
    assert [403, 403, 200] == [json.loads(line).get("status", 200) for line in audit.read_text().splitlines()]


def test_a_forwarded_write_is_counted_once(guarded):
    """The node that a client asked has counted the write; the one that it is forwarded to does not."""
    secret = NodeSecret(b"s" * 32)
    registry = guarded([rule("alice", "ALL", "*")], secret=secret, rate_limit=RARELY)
    asked_by, level = ("alice", (), "basic", HERE), {"compatibility": "NONE"}

    def forwarded():
        value = secret.sign("PUT", b"/config/a", json.dumps(level).encode(), asked_by, time.time()).decode()
        return registry.code("PUT", "/config/a", level, None, **{HEADER.decode().replace("-", "_"): value})

    assert [200] * 4 == [forwarded() for _ in range(4)]
    assert [200, 429] == [registry.code("PUT", "/config/a", level, "alice") for _ in range(2)]


def test_pages_of_allowed_origins_read_answers(guarded):
    """Every answer to such a page says so, also an error and one from memory; a preflight needs no credentials."""
    registry = guarded([rule("alice", "READ", "*")], cors_origins=PAGE)
    registry.register("a")
    for _ in range(2):
        status, _, headers = registry.ask("GET", "/schemas/ids/1", None, "alice", origin=PAGE)
        assert (status, headers[ALLOW], headers["vary"]) == (200, PAGE, "Origin")
        assert ALLOW not in registry.ask("GET", "/schemas/ids/1", None, "alice", origin="https://evil.example")[2]
        assert ALLOW not in registry.ask("GET", "/schemas/ids/1", None, "alice")[2]
    status, _, headers = registry.ask("GET", "/subjects", None, None, origin=PAGE)
    assert (status, headers[ALLOW]) == (401, PAGE)

    asked = {"access_control_request_method": "PUT", "access_control_request_headers": "authorization"}
    status, content, headers = registry.ask("OPTIONS", "/config/a", None, None, origin=PAGE, **asked)
    assert (status, content, headers[ALLOW]) == (204, None, PAGE)
    assert "PUT" in headers["access-control-allow-methods"]
    assert "Authorization" in headers["access-control-allow-headers"]
    other = registry.ask("OPTIONS", "/config/a", None, None, origin="https://evil.example", **asked)
    assert ALLOW not in other[2]


@pytest.mark.parametrize(
    ("method", "path", "user", "headers", "status"),
    [
        ("GET", "/subjects", None, {}, 401),
        ("GET", "/subjects/b/versions", "alice", {}, 403),
        ("GET", "/subjects", ADMIN, {"host": "evil.example"}, 403),
        ("GET", "/nothing/here", ADMIN, {}, 404),
        ("PATCH", "/subjects", ADMIN, {}, 405),
        ("GET", "/subjects", ADMIN, {"accept": "text/html"}, 406),
        ("POST", "/subjects/a/versions", ADMIN, {"content-length": "99999999"}, 413),
        ("POST", "/subjects/a/versions", ADMIN, {"content-encoding": "br"}, 415),
        ("POST", "/subjects/a/versions", ADMIN, {}, 422),
        ("GET", "/subjects", "bob", {}, 429),
    ],
)
def test_pages_read_errors(guarded, method, path, user, headers, status):
    """A page can tell why it is refused, and when to try again."""
    registry = guarded([rule("alice", "READ", "a")], cors_origins=PAGE, rate_limit=RARELY, listen="127.0.0.1:0")
    registry.ask("GET", "/subjects", None, "bob")
    found, content, more = registry.ask(method, path, {} if method == "POST" else None, user, origin=PAGE, **headers)

    assert (status, PAGE, "Origin") == (found, more[ALLOW], more["vary"])
    assert str(content["error_code"]).startswith(str(status))
    assert {"X-Request-ID", "Retry-After", "WWW-Authenticate"} == set(more["access-control-expose-headers"].split(", "))


@pytest.mark.parametrize("origins", ["*", PAGE])
def test_the_credentials_of_a_browser_are_never_allowed(guarded, origins):
    """Any page could use them otherwise; the answer names the page itself, also if all are allowed."""
    registry = guarded((), cors_origins=origins)
    asked = {"origin": PAGE, "access_control_request_method": "GET"}
    for method, user in (("OPTIONS", None), ("GET", ADMIN), ("GET", None)):
        _, _, headers = registry.ask(method, "/subjects", None, user, **asked)
        assert (PAGE, None) == (headers[ALLOW], headers.get("access-control-allow-credentials"))


def test_preflights_and_refusals_are_in_the_access_log(guarded, caplog):
    """The access log has every request."""
    caplog.set_level("INFO", "strata.http")
    registry = guarded((), cors_origins=PAGE, access_log=True, rate_limit=RARELY)
    registry.ask("OPTIONS", "/subjects", None, None, origin=PAGE, access_control_request_method="GET")
    for _ in range(2):
        registry.ask("GET", "/contexts", None, "alice")

    assert ["OPTIONS /subjects 204", "GET /contexts 200", "GET /contexts 429"] == [
        line.partition(",")[0] for line in caplog.messages
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("ui.example.com", "expected origins such as https://ui.example.com"),
        ("https://ui.example.com/", "expected origins"),
        ("null", "expected origins"),
        ("https://ui.example.com:443", "browsers leave out the port of 'https://ui.example.com:443'"),
        ("http://ui.example.com:80", "browsers leave out the port"),
    ],
)
def test_origins_that_no_browser_sends(value, reason):
    """A setting that could never match is an error."""
    with pytest.raises(SettingRefused, match=reason):
        load_settings(cors_origins=value)


def test_pages_of_allowed_origins_may_write(guarded):
    """What may read with credentials may write; other pages may not."""
    registry = guarded((), cors_origins=PAGE)
    level = {"compatibility": "NONE"}

    assert registry.code("PUT", "/config/a", level, origin=PAGE, sec_fetch_site="cross-site") == 200
    assert registry.code("PUT", "/config/a", level, origin="https://evil.example") == 403


def test_both_are_off_by_default(guarded):
    """Without a setting no answer has such headers, and no rate is counted."""
    registry = guarded((rule("alice", "READ", "*"),))
    for _ in range(200):
        status, _, headers = registry.ask("GET", "/subjects", None, "alice", origin=PAGE)
        assert (status, {"vary", ALLOW} & set(headers)) == (200, set())
