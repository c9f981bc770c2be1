"""Seeded runs with a standby, and what their judge finds when a promise is broken.

`python -m faults --standby --log LOG --seed N` runs a seed again.
"""

import pytest

from faults.services import LOGS, Services
from faults.standby import run_standby
from faults.standby_judge import judge_standby
from strata.storage.log import Entry, Record
from strata.storage.record_json import encode
from strata.storage.records import HighWaterKey, SchemaKey, SchemaValue, StandbyKey, StandbyValue

MARKS = {"kafka": [pytest.mark.kafka], "postgres": [pytest.mark.postgres]}


def schema(subject, version, schema_id, text=""):
    """Return the record of a version."""
    return encode(SchemaKey(subject, version), SchemaValue(subject, version, schema_id, text or f'"{schema_id}"'))


def mark(position, copied_at=1, promoted_at=0):
    """Return the mark of a copy."""
    return encode(StandbyKey("."), StandbyValue("a", position, copied_at, promoted_at))


def log(*records):
    """Return records as a log holds them."""
    return [Entry(at, 0, record.key, record.value) for at, record in enumerate(records)]


ONE, TWO, GONE = schema("s", 1, 1), schema("s", 2, 2), encode(SchemaKey("s", 2))
SOURCE = log(ONE, TWO, encode(HighWaterKey("."), 2), GONE)
PROMOTED = mark(3, promoted_at=9)

# the log of a standby, what the judge says
LOGS_OF_STANDBYS = [
    pytest.param([mark(-1, 0), ONE, mark(0), TWO, mark(1), GONE, mark(3)], "", id="step by step"),
    pytest.param([mark(-1, 0), ONE, mark(3), PROMOTED, schema("s", 2, 1003)], "", id="at once, and promoted"),
    pytest.param([mark(-1, 0), ONE, mark(1)], "not what the source held at 1", id="less than it says"),
    pytest.param([mark(-1, 0), ONE, TWO, mark(0)], "not what the source held at 0", id="more than it says"),
    pytest.param([mark(-1, 0), ONE, TWO, mark(1), GONE, mark(0)], "went back from 1 to 0", id="backwards"),
    pytest.param([mark(-1, 0), ONE, mark(3), PROMOTED, mark(3)], "after the promotion", id="a step after the end"),
    pytest.param(
        [mark(-1, 0), ONE, mark(3), PROMOTED, schema("t", 1, 2, '"x"')], "id 2 of context .", id="an id of the source"
    ),
    pytest.param([mark(-1, 0), ONE, mark(3), PROMOTED, schema("s", 1, 7)], "version 1 of s", id="a version again"),
    pytest.param([mark(-1, 0), ONE, mark(0), Record(b"{}", b"")], "is set aside", id="a record that cannot be read"),
]


@pytest.mark.parametrize(("records", "expected"), LOGS_OF_STANDBYS)
def test_the_judge_of_a_standby(records, expected):
    """A standby that was not a prefix, or gave something twice, is found."""
    broken, steps = judge_standby(SOURCE, log(*records), follows_log=True)

    assert bool(expected) == bool(broken), broken
    assert not expected or any(expected in one for one in broken)
    assert steps >= 2


def test_a_standby_survives_faults_and_promotion(nursery):
    """A standby that follows a service stays a copy of it through kills, and gives nothing twice once promoted."""
    with Services(lent_nursery=nursery) as services:
        assert () == run_standby(services, "sqlite", 2, work_s=0.6).broken


@pytest.mark.slow
@pytest.mark.parametrize("log", [pytest.param(name, marks=MARKS.get(name, []), id=name) for name in LOGS])
def test_standbys_survive_faults(log):
    """A standby stays a prefix of its source, or becomes equal to it, and gives nothing twice once promoted."""
    with Services() as services:
        for seed in (1, 4):  # one follows the service and is promoted, one the log
            assert () == run_standby(services, log, seed).broken
