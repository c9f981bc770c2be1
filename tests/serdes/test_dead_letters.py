"""What a dead letter holds: the key and value as they were given, and headers that say what failed."""

import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest

from strata.serdes.errors import RuleError
from strata.serdes.model import Rule, Schema
from strata.serdes.rules.actions import ACTIONS
from strata.serdes.rules.executors import RuleContext
from strata.serdes.serde_settings import SerializerSettings

RULE = Rule(name="checked", type="CEL", params={"dlq.topic": "lost"})
UID = UUID("12345678-1234-5678-1234-567812345678")


class Producer:
    """A producer that keeps what it gets."""

    def __init__(self):
        self.sent = []

    def produce(self, topic, *, key, value, headers):
        """Keep a record."""
        self.sent.append((topic, key, value, dict(headers)))


def context(key=None, value=None, headers=None):
    """Return the context of the rule when a record is written."""
    return RuleContext(
        RULE, "domainRules", "WRITE", "orders-value", "orders", False, None, Schema("{}"), headers, key, value
    )


def dead_letter(failed, error=None):
    """Return what is sent for a rule that failed."""
    producer = Producer()
    with pytest.raises(RuleError):
        ACTIONS["DLQ"](SerializerSettings(dlq_producer=producer), failed, None, error)
    (sent,) = producer.sent
    return sent


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, None),
        (b"\0\xff", b"\0\xff"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        ("ключ", "ключ".encode()),
        (UID, str(UID).encode()),
        (7, struct.pack(">q", 7)),
        (2**63, str(2**63).encode()),
        (0.5, struct.pack(">d", 0.5)),
        (True, b"true"),
        ([1, None], b"[1, null]"),
        (
            {"raw": b"\xff", "at": datetime(2026, 1, 2, tzinfo=UTC)},
            b'{"raw": "\\u00ff", "at": "2026-01-02 00:00:00+00:00"}',
        ),
        ([date(2026, 1, 2), time(3), Decimal("1.50"), UID], f'["2026-01-02", "03:00:00", "1.50", "{UID}"]'.encode()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_keys_and_values(key, expected):
    """Bytes stay, simple values are what Kafka's serializers make of them, and everything else is JSON."""
    topic, sent_key, sent_value, _ = dead_letter(context(key, key))
    assert ("lost", expected, expected) == (topic, sent_key, sent_value)


@pytest.mark.parametrize(
    "headers", [{"id": "7", "raw": bytearray(b"r"), "none": None}, [("id", "7"), ("raw", b"r"), ("none", None)]]
)
def test_headers(headers):
    """The headers of the record come first, then those that name the rule and the error."""
    *_, sent = dead_letter(context(headers=headers), RuleError("too old"))
    assert {
        "id": b"7",
        "raw": b"r",
        "none": None,
        "__rule.name": b"checked",
        "__rule.mode": b"WRITE",
        "__rule.subject": b"orders-value",
        "__rule.topic": b"orders",
        "__rule.exception": b"too old",
    } == sent


def test_a_value_that_is_not_json():
    """An object of a class of its own is an error that names the class, and not its content."""
    with pytest.raises(RuleError) as caught:
        ACTIONS["DLQ"](SerializerSettings(dlq_producer=Producer()), context(None, object()), None, None)
    assert "expected a JSON value, got object" == str(caught.value.__cause__)
