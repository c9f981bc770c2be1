"""The table of faults: what each one does, for how long, and on which logs; and the schedules drawn from it."""

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from faults import lease_faults as leases
from faults import log_faults as logs
from faults import node_faults as nodes
from faults.scene import Scene

__all__ = ["AIMED", "FAULTS", "Fault", "Planned", "plan"]

_EVERYWHERE = ("sqlite", "postgres", "kafka")
_SERVERS = ("postgres", "kafka")
_SQL = ("sqlite", "postgres")
_TWINS = 0.3  # probability that a schedule has a second fault of the same kind, soon after the first
_TWIN_S = 1.5
_FAULTS, _FEW = (1, 1, 2, 2, 3, 4), (0, 0, 1, 1, 2)
_AIMED_SHARE, _ROUNDS, _ROUND_S = 0.8, (3, 4, 5), 2.0

Inject = Callable[[Scene, random.Random], AbstractContextManager[str]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault.

    `seconds` is its shortest and longest duration, `weight` how often it is drawn. `needs_service` marks faults that
    break the broker or the server itself, which the run must own; `needs_workers` marks faults of a part of a node.
    """

    inject: Inject
    seconds: tuple[float, float]
    weight: int
    logs: tuple[str, ...] = _EVERYWHERE
    needs_service: bool = False
    needs_workers: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault in a run's schedule: `at` is in seconds after the clients begin, `lasts` in seconds."""

    kind: str
    at: float
    lasts: float
    seed: str


def _drawn(rng: random.Random, faults: Mapping[str, Fault], count: int) -> list[str]:
    return rng.choices(list(faults), [fault.weight for fault in faults.values()], k=count)


def plan(
    log: str, seed: int, *, work_s: float, own_service: bool, workers: int = 1, lease: bool = False
) -> list[Planned]:
    """Return a run's schedule: one to five faults, which may overlap and may be of the same kind.

    For nodes with leases it is mostly several faults that aim at leases, one after the other, and up to two others.

    Args:
        log: the kind of log.
        seed: determines the schedule.
        work_s: the seconds that the clients work.
        own_service: whether the run may break the broker or server itself.
        workers: the worker processes of each node.
        lease: whether nodes have read leases.
    """
    rng = random.Random(f"{log} {seed} schedule")
    known = {
        kind: fault
        for kind, fault in FAULTS.items()
        if log in fault.logs and (own_service or not fault.needs_service) and (workers > 1 or not fault.needs_workers)
    }
    is_aimed = lease and log == "kafka" and rng.random() < _AIMED_SHARE
    if is_aimed:
        # While brokers are away there are no leases.
        known = {kind: fault for kind, fault in known.items() if not fault.needs_service}
    kinds = _drawn(rng, known, rng.choice(_FEW if is_aimed else _FAULTS))
    times = [(kind, rng.uniform(0.4, work_s * 0.75)) for kind in kinds]
    if is_aimed:
        aimed = _drawn(rng, AIMED, rng.choice(_ROUNDS))
        times += [(kind, _ROUND_S * (i + rng.uniform(0.2, 0.5))) for i, kind in enumerate(aimed)]
        known |= AIMED
    elif rng.random() < _TWINS:
        kind, at = rng.choice(times)
        times.append((kind, at + rng.uniform(0, _TWIN_S)))
    return sorted(
        (
            Planned(kind, at, rng.uniform(*known[kind].seconds), f"{log} {seed} {i} {kind}")
            for i, (kind, at) in enumerate(times)
        ),
        key=lambda planned: planned.at,
    )


FAULTS = {
    "kill -9 of a node": Fault(lambda s, r: nodes.kill(s, r, writer=False), (0.1, 1.0), 5),
    "kill -9 of the pen's holder": Fault(lambda s, r: nodes.kill(s, r, writer=True), (0.1, 2.0), 8, ("kafka",)),
    "kill -9 of all nodes": Fault(nodes.kill_all, (0.0, 0.3), 3),
    "kill -9 of a worker": Fault(nodes.kill_worker, (0.1, 1.0), 10, needs_workers=True),
    "pause of a worker": Fault(nodes.pause_worker, (0.2, 2.5), 5, needs_workers=True),
    "restart of a node": Fault(nodes.terminate, (0.0, 0.5), 3),
    "pause of a node": Fault(lambda s, r: nodes.pause(s, r, writer=False), (0.2, 2.5), 3),
    "pause of the pen's holder": Fault(lambda s, r: nodes.pause(s, r, writer=True), (0.2, 4.0), 5, ("kafka",)),
    "pause beyond the transaction's time": Fault(
        lambda s, r: nodes.pause(s, r, writer=True), (11.0, 13.0), 1, ("kafka",)
    ),
    "clock of a node jumps": Fault(nodes.shift_clock, (0.5, 2.0), 3),
    "path to the pen's holder refused": Fault(lambda s, r: nodes.cut(s, r, "refused"), (0.5, 3.0), 3, ("kafka",)),
    "path to the pen's holder silent": Fault(lambda s, r: nodes.cut(s, r, "silent"), (0.5, 3.0), 2, ("kafka",)),
    "answers of the pen's holder lost": Fault(lambda s, r: nodes.cut(s, r, "answers lost"), (0.5, 3.0), 3, ("kafka",)),
    "path to the log refused": Fault(lambda s, r: nodes.cut_from_log(s, r, "refused"), (0.3, 2.0), 3, _SERVERS),
    "path to the log silent": Fault(lambda s, r: nodes.cut_from_log(s, r, "silent"), (0.5, 3.0), 3, _SERVERS),
    "requests to the log lost": Fault(lambda s, r: nodes.cut_from_log(s, r, "requests lost"), (0.5, 2.5), 2, _SERVERS),
    "answers of the log lost": Fault(lambda s, r: nodes.cut_from_log(s, r, "answers lost"), (0.5, 2.5), 3, _SERVERS),
    "answers of the log lost, then the path": Fault(
        lambda s, r: nodes.cut_from_log(s, r, "answers lost, then refused"), (0.1, 1.0), 4, _SERVERS
    ),
    "path to the log slow": Fault(lambda s, r: nodes.cut_from_log(s, r, "slow"), (0.5, 2.0), 2, _SERVERS),
    "kill -9 of a broker": Fault(
        lambda s, r: logs.broker(s, r, paused=False), (0.5, 3.0), 4, ("kafka",), needs_service=True
    ),
    "kill -9 of all brokers": Fault(logs.all_brokers, (1.0, 12.0), 8, ("kafka",), needs_service=True),
    "kill -9 of a broker, last second lost": Fault(
        logs.broker_without_last_second, (0.5, 3.0), 3, ("kafka",), needs_service=True
    ),
    "pause of a broker": Fault(
        lambda s, r: logs.broker(s, r, paused=True), (0.5, 5.0), 3, ("kafka",), needs_service=True
    ),
    "compaction by the brokers": Fault(logs.compact_topic, (1.0, 3.0), 6, ("kafka",), needs_service=True),
    "a writer without the pen": Fault(logs.write_without_pen, (0.5, 2.0), 4, ("kafka",)),
    "answers to COMMIT lost": Fault(
        lambda s, r: nodes.cut_from_log(s, r, "answer to COMMIT lost"), (0.2, 1.0), 5, ("postgres",)
    ),
    "crash of PostgreSQL": Fault(logs.crash_postgres, (0.0, 1.5), 6, ("postgres",), needs_service=True),
    "table locked": Fault(logs.lock_table, (0.5, 2.0), 3, ("postgres",)),
    "connections used up": Fault(logs.take_connections, (0.5, 2.0), 3, ("postgres",), needs_service=True),
    "strata compact": Fault(lambda s, r: logs.compact(s, r, paused=False), (0.0, 0.1), 5, _SQL),
    "strata compact beside a paused node": Fault(lambda s, r: logs.compact(s, r, paused=True), (0.0, 0.1), 5, _SQL),
    "write lock held": Fault(logs.lock_file, (0.5, 2.0), 3, ("sqlite",)),
    "torn write, all nodes killed": Fault(logs.tear_wal, (0.0, 0.3), 5, ("sqlite",)),
    "disk full": Fault(logs.fill_disk, (0.3, 2.0), 4, ("sqlite",)),
    "file read-only": Fault(logs.read_only, (0.3, 1.5), 3, ("sqlite",)),
}
AIMED = {
    "pen taken from a holder that is read": Fault(leases.take_over, (0.3, 1.0), 6, ("kafka",)),
    "answers of the log late": Fault(leases.late_answers, (1.0, 2.0), 4, ("kafka",)),
    "answer to a commit lost": Fault(leases.commit_without_answer, (0.3, 1.5), 3, ("kafka",)),
    "answers of the log twice": Fault(leases.repeated_answers, (0.1, 0.4), 1, ("kafka",)),
}
"""Faults that aim at read leases; only nodes with leases get them."""
