"""Addresses of logs: display without passwords, and repeated attempts."""

import threading
from itertools import chain, repeat
from types import SimpleNamespace

import pytest

from strata.storage.addresses import why_unreachable, without_password

# URL, as displayed
SHOWN = [
    ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ("postgresql://u:p@h/d", "postgresql://u:***@h/d"),
    ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
    ("postgresql://u:p@ss/w:rd@h/d", "postgresql://u:***@h/d"),
    ("postgresql://h/d?user=u&password=p&sslmode=require", "postgresql://h/d?user=u&password=***&sslmode=require"),
    ("postgresql://h/d?sslpassword=p", "postgresql://h/d?sslpassword=***"),
    ("postgresql://u:p@[::1/d", "postgresql://u:***@[::1/d"),
    ("kafka://a:9092,b:9092/_schemas", "kafka://a:9092,b:9092/_schemas"),
]


@pytest.mark.parametrize(("url", "shown"), SHOWN)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    """A URL is displayed without its password, wherever that is, even if the URL is malformed."""
    assert shown == without_password(url)


def test_a_refusal_is_known_though_the_last_attempt_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the time ends during an attempt, the error is that of the attempt before."""
    over, attempts = threading.Event(), []

    def connect(*_arguments: object) -> None:
        attempts.append(1)
        if len(attempts) > 1:
            over.wait()
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr("strata.storage.addresses.socket.create_connection", connect)
    reason = why_unreachable([("127.0.0.1", 1)], 1.0)
    over.set()

    assert "127.0.0.1:1: refused" == reason


def test_a_refusal_that_comes_after_a_pause_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process pauses for longer than it would wait, it still takes the answers that come right after."""
    times = chain([0.0], repeat(60.0))
    monkeypatch.setattr("strata.storage.addresses.time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr("strata.storage.addresses._MOMENT_S", 60.0)

    def connect(*_arguments: object) -> None:
        threading.Event().wait(0.05)
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr("strata.storage.addresses.socket.create_connection", connect)

    assert "127.0.0.1:1: refused" == why_unreachable([("127.0.0.1", 1)], 3.0)
