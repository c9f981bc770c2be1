"""Seeded runs over real logs: whatever happens to nodes and services, every promise is kept.

A failing run prints its seed; `python -m faults --log LOG --seed N` runs it again.
"""

import threading

import pytest

from faults.availability import longest_gap, rolling_restart, under_load
from faults.injections import FAULTS, plan
from faults.report import lines
from faults.run import Settings, run
from faults.scene import opened
from faults.services import LOGS, Services

SHORT = Settings(work_s=2.5)
MARKS = {"kafka": [pytest.mark.kafka], "postgres": [pytest.mark.postgres], "sqlite": []}
EACH_LOG = [pytest.param(log, marks=MARKS[log], id=log) for log in LOGS]


@pytest.fixture(scope="module")
def lent(request):
    """Services of the session, to whose nodes anything may be done, but not to the services themselves."""
    with Services(
        lent_broker=request.getfixturevalue("kafka_broker"), lent_postgres=request.getfixturevalue("postgres_server")
    ) as services:
        yield services


@pytest.fixture(scope="module")
def own():
    """Three brokers and a PostgreSQL server that faults may break."""
    with Services() as services:
        yield services


def _kept(services, log, seed, settings=None):
    result, _ = run(services, log, seed, settings)
    assert () == result.broken, "\n".join(lines(result))
    assert result.writes


@pytest.mark.parametrize("log", EACH_LOG)
def test_a_short_run(lent, log):
    """One short run on each log, with faults of the nodes and of the ways between them."""
    _kept(lent, log, 1, SHORT)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 13))
@pytest.mark.parametrize("log", EACH_LOG)
def test_a_run(own, log, seed):
    """Runs with every kind of fault, those of brokers and servers included."""
    _kept(own, log, seed)


@pytest.mark.parametrize("log", EACH_LOG)
def test_rolling_restart(lent, log):
    """All nodes are restarted in turn under load: every write succeeds, for a client that tries the next node."""
    with opened(lent, log) as scene:
        writes = under_load(scene, lambda: rolling_restart(scene))
    assert {200} == {write.status for write in writes}


@pytest.mark.slow
@pytest.mark.kafka
def test_writes_go_on_after_the_death_of_the_pens_holder(own):
    """Kill -9 of the pen's holder under load: every write succeeds on the next node, and none waits for a time-out."""
    with opened(own, "kafka") as scene:
        under_load(scene, lambda: None)  # somebody holds the pen now
        holder = scene.holder()
        assert holder is not None
        writes = under_load(scene, lambda: (holder.node.kill(), threading.Event().wait(3)))
        holder.node.restart()
    assert {200} == {write.status for write in writes}
    assert longest_gap(writes)


@pytest.mark.parametrize("log", LOGS)
def test_schedules(log):
    """A seed fixes its schedule; what is not ours to break is not broken, and every kind of fault is drawn at last."""
    schedules = [plan(log, seed, work_s=4, own_service=True) for seed in range(200)]
    assert schedules == [plan(log, seed, work_s=4, own_service=True) for seed in range(200)]
    drawn = {fault.kind for schedule in schedules for fault in schedule}
    assert {kind for kind, fault in FAULTS.items() if log in fault.logs} == drawn
    spared = {f.kind for seed in range(200) for f in plan(log, seed, work_s=4, own_service=False)}
    assert not {kind for kind in spared if FAULTS[kind].needs_service}
