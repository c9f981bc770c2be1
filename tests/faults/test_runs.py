"""Seeded runs over real logs: nodes and services fail, and every promise is kept.

A failing run prints its seed; `python -m faults --log LOG --seed N` runs it again.
"""

import subprocess
import sys
import threading

import pytest

from faults.availability import longest_gap, rolling_restart, under_load
from faults.injections import AIMED, FAULTS, plan
from faults.mutants import MUTANTS
from faults.report import lines
from faults.run import FAILED, Result, Settings, run
from faults.scene import opened
from faults.services import LOGS, Services
from faults.trials import reasons, trial
from strata.storage.record_json import encode
from strata.storage.records import NoopKey

SHORT = Settings(work_s=0.5, settle_s=0.8, clients_per_node=1, read_pause_s=0.08)
NOOP = encode(NoopKey())
MARKS = {"kafka": [pytest.mark.kafka], "postgres": [pytest.mark.postgres], "sqlite": []}
EACH_LOG = [pytest.param(log, marks=MARKS[log], id=log) for log in LOGS]


@pytest.fixture(scope="module")
def own():
    """Yield three brokers and a PostgreSQL server that faults may break."""
    with Services() as services:
        yield services


def _kept(services, log, seed, settings=None):
    """Run a seed, which must keep every promise; return the history."""
    result, history = run(services, log, seed, settings)
    assert () == result.broken, "\n".join(lines(result))
    assert result.writes
    return history


@pytest.mark.long
@pytest.mark.kafka
def test_a_short_run(kafka_broker, nursery):
    """Nodes with read leases keep every promise while the holder of the pen is killed and rights change."""
    used = set()
    with Services(lent_broker=kafka_broker, lent_nursery=nursery, access=True, lease=True) as services:
        for _ in range(10):  # this seed kills the holder twice, and grants soon; a busy machine needs another try
            history = _kept(services, "kafka", 965, SHORT)
            used |= {o.answer[0] for o in history if o.request.kind == "right_use" and o.answer is not None}
            if {200, 40301} <= used:
                return
    raise AssertionError(f"the answers to registrations were {used}")


EVERY = [
    pytest.param(name, log, marks=MARKS[log], id=f"{name}-{log}") for name, one in MUTANTS.items() for log in one.logs
]


@pytest.mark.slow
def test_mutants_fit_the_product():
    """Each mutant, and the older version, replaces functions that exist in the product.

    The mutants of caches take hold of each cache when the app is made.
    """
    code = """if True:
    import os
    from faults.mutants import BEFORE_LEASES, MUTANTS, apply
    from strata.registry.app import create_app
    from strata.registry.settings import Settings
    from strata.storage.log import MemoryLog
    settings = Settings(log="memory:")
    for name in [*MUTANTS, BEFORE_LEASES]:
        pid = os.fork()
        if pid == 0:
            apply(name)
            if name in ("cache-not-emptied", "kept-for-another-state"):
                create_app(MemoryLog(), settings)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            raise SystemExit(name)"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_mutant_is_found(nursery):
    """A registry that is broken on purpose breaks a promise in one of thirty short runs, mostly in the first."""
    with Services(lent_nursery=nursery) as services:
        found = trial(services, "catch-up-skipped", "sqlite", range(4, 34), SHORT)
    assert found.seed


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("mutant", "log"), EVERY)
def test_every_mutant_is_found(own, mutant, log):
    """Each mutant is found within 70 seeds."""
    found = trial(own, mutant, log, range(1, 71))
    assert found.seed, f"{mutant} was not found on {log}"


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        pytest.param(
            ("returned by a node, but not in the log: x",),
            ["returned by a node, but not in the log: x"],
            id="a-broken-promise",
        ),
        pytest.param((f"{FAILED}: OSError: x",), [], id="the-run-itself-failed"),
        pytest.param(("subject s: undecided after 9 steps; the longest",), [], id="undecided"),
        pytest.param(("node 1 accepted no write within 10 s after all",), [], id="a-node-that-accepts-no-write"),
    ],
)
def test_what_proves_that_a_mutant_is_found(broken, expected):
    """A run that failed by itself, or is undecided, finds nothing."""
    result = Result("sqlite", 1, 0, 0, 0, 0, (), broken, 0, 0.0)
    assert expected == reasons(result, stops_writes=False)
    assert [reason for reason in broken if reason.startswith("node")] == [
        reason for reason in reasons(result, stops_writes=True) if reason.startswith("node")
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 13))
@pytest.mark.parametrize("log", EACH_LOG)
def test_a_run(own, log, seed):
    """Runs with every kind of fault, those of brokers and servers included, keep every promise."""
    _kept(own, log, seed)


@pytest.mark.slow
@pytest.mark.kafka
def test_a_run_with_an_older_node(kafka_broker):
    """Beside a node of a version that does not wait for leases, the others have none, and every promise is kept."""
    with Services(lent_broker=kafka_broker, lease=True, older=True) as services:
        _kept(services, "kafka", 1)


@pytest.mark.slow
@pytest.mark.parametrize("log", EACH_LOG)
def test_rolling_restart(own, log):
    """If all nodes restart in turn under load, every write succeeds for a client that tries the next node."""
    with opened(own, log) as scene:
        writes = under_load(scene, lambda: rolling_restart(scene.members))
    assert {200} == {write.status for write in writes}


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("workers", "restarts"),
    [
        pytest.param(1, 1, marks=pytest.mark.long),
        *(pytest.param(workers, 3, marks=pytest.mark.slow) for workers in (1, 2, 3)),
    ],
)
def test_rolling_restart_with_a_drain(kafka_broker, nursery, workers, restarts):
    """If nodes restart in turn under load, every write succeeds for a client that tries the next node.

    The holder of the pen is the first. No client of another node is left in doubt about its write, and the pen moves
    once a restart at most.
    """
    with Services(lent_broker=kafka_broker, lent_nursery=nursery, workers=workers) as services:
        for _ in range(3):  # a node that pauses for longer than others wait for its signature moves the pen again
            moves = _moves_of_the_pen(services, restarts)
            if moves <= restarts:
                return
    raise AssertionError(f"the pen moved {moves} times")


def _moves_of_the_pen(services, restarts):
    """Restart nodes that drain, and return how often the pen moved."""
    with opened(services, "kafka", "--drain-seconds=1") as scene:
        under_load(scene, lambda: None, clients=1)  # the first node holds the pen now
        before = _signatures(scene)
        writes = under_load(scene, lambda: rolling_restart(scene.members[:restarts]), pause_s=0.02)
        moves = _signatures(scene) - before
    assert {200} == {write.status for write in writes}
    assert [] == [write.codes for write in writes if 50003 in write.codes]
    return moves


def _signatures(scene):
    """Return how often a node has taken the pen."""
    _, ever = scene.archive.everything()
    return sum(entry.key == NOOP.key for entry in ever)


@pytest.mark.slow
@pytest.mark.kafka
def test_writes_go_on_after_the_death_of_the_pens_holder(own):
    """After kill -9 of the pen's holder under load, every write succeeds on the next node without a time-out."""
    with opened(own, "kafka") as scene:
        under_load(scene, lambda: None)  # a node holds the pen now
        holder = scene.holder()
        assert holder is not None
        writes = under_load(scene, lambda: (holder.node.kill(), threading.Event().wait(3)))
        holder.node.restart()
    assert {200} == {write.status for write in writes}
    assert longest_gap(writes)


@pytest.mark.parametrize("log", LOGS)
def test_schedules(log):
    """A seed fixes its schedule; schedules spare services that are not ours, and draw every kind of fault.

    Only nodes with leases, on Kafka, get the faults that aim at leases.
    """
    schedules = [plan(log, seed, work_s=4, own_service=True, workers=3) for seed in range(200)]
    assert schedules == [plan(log, seed, work_s=4, own_service=True, workers=3) for seed in range(200)]
    drawn = {fault.kind for schedule in schedules for fault in schedule}
    assert {kind for kind, fault in FAULTS.items() if log in fault.logs} == drawn
    aimed = {fault.kind for seed in range(200) for fault in plan(log, seed, work_s=4, own_service=True, lease=True)}
    assert (set(AIMED) if log == "kafka" else set()) == aimed & set(AIMED)
    spared = {f.kind for seed in range(200) for f in plan(log, seed, work_s=4, own_service=False)}
    assert not {kind for kind in spared if FAULTS[kind].needs_service}
