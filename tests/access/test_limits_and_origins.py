"""Rates of clients, and web pages of other origins."""

import pytest

from harness.access_rules import rule
from strata.registry.access.rate_limit import RateLimit

PAGE = "https://ui.example.com"
ALLOW = "access-control-allow-origin"


def test_a_client_may_send_so_many_requests():
    """A bucket holds two seconds' worth, fills again, and is the client's own."""
    limit = RateLimit(5)
    waits = [limit.wait_s("a", 100.0) for _ in range(11)]

    assert waits == [0.0] * 10 + [pytest.approx(0.2)]
    assert limit.wait_s("b", 100.0) == 0.0
    assert [limit.wait_s("a", 100.4) for _ in range(3)] == [0.0, 0.0, pytest.approx(0.2)]
    assert RateLimit(0.1).wait_s("a", 1.0) == 0.0


def test_buckets_do_not_fill_the_memory(monkeypatch):
    """Clients that have paused are forgotten first."""
    monkeypatch.setattr("strata.registry.access.rate_limit._MOST_CLIENTS", 10)
    limit = RateLimit(1)
    for number in range(10):
        limit.wait_s(number, 100.0)
    for _ in range(2):
        limit.wait_s("busy", 103.0)

    assert len(limit._buckets) == 1
    assert limit.wait_s("busy", 103.0) > 0


def test_requests_beyond_the_rate_get_429(guarded):
    """Each user has a rate, and each address without a user; open routes have none."""
    registry = guarded([rule("alice", "ALL", "*"), rule("bob", "ALL", "*")], rate_limit=0.5)
    first, second = (registry.ask("GET", "/subjects", None, "alice") for _ in range(2))

    assert (first[0], second[:2]) == (200, (429, {"error_code": 429, "message": "Too many requests; try again later"}))
    assert int(second[2]["retry-after"]) >= 1
    assert registry.code("GET", "/subjects", None, "bob") == 200
    assert registry.code("GET", "/subjects", None, None, address="10.0.0.7") == 401
    assert registry.code("GET", "/subjects", None, None, address="10.0.0.7") == 429
    assert registry.code("GET", "/health/ready", None, "alice") == 200
    assert registry.code("POST", "/subjects/a/versions", {"schema": '"int"'}, "alice") == 429


def test_the_rate_holds_for_answers_in_memory(guarded):
    """A hot answer is a request too."""
    registry = guarded([rule("alice", "ALL", "*")], rate_limit=2)
    registry.register("a")
    codes = [registry.code("GET", "/schemas/ids/1", None, "alice") for _ in range(5)]

    assert codes == [200] * 4 + [429]


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
