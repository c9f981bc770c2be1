"""One seeded run: start nodes, let clients work during faults, heal the faults, read everything on every node, check.

A seed fixes the schedule of faults and the requests of each client, but not how they interleave. To reproduce a
failure, run the seed again until it fails again, or check its kept history again.
"""

import http.client
import json
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from faults.checker import judge
from faults.clients import IMPORTED, SUBJECTS, Client, Recorder
from faults.commit import current
from faults.hot import READ as READ_OF_HOT
from faults.hot import readings, writings
from faults.injections import AIMED, FAULTS, Planned, plan
from faults.lease_faults import lengths
from faults.ledger import Ledger, read_ledger
from faults.linear import WRITES
from faults.model import NOT_WRITTEN, Entry, Operation, Request, Subject, content_of, context_of, perform, text_of
from faults.node_faults import restart
from faults.objects import KINDS, READS, SET_UP
from faults.rights import GUARDED, changes, credentials, registrations
from faults.rights import READS as READS_OF_RIGHTS
from faults.scene import Scene, opened
from faults.services import NODES, Services
from harness.processes import tail
from strata.storage.log import Entry as LogEntry
from strata.storage.open_log import open_log
from strata.storage.state import State, StoredSchema

__all__ = ["FAILED", "NO_WRITES", "Happened", "Result", "Settings", "run", "run_recorded"]

FAILED = "the run failed"
"""The prefix of the reason when a run itself raised an exception."""
NO_WRITES = ("accepted no write within", "did not take the pen when")
"""What the reasons say when a node accepted no write, which also happens on a machine that is too busy."""

_PATIENCE_S = 90.0
_WRITES_AFTER_S = 10.0  # after the last fault
_HAND_OVERS = (0, 2, 3, 4)  # of the pen before the clients begin, and half as many after the last fault
_RETRY_S = 0.1
_HOT_CLIENTS = 3  # of each node: two that read and one that writes
_AIMED_PAUSE_S, _WRITE_PAUSES_S = 0.05, (0.02, 0.1, 0.3)
_CHANGE_S, _USE_S = 0.08, 0.03  # average pauses between changes of rights, and between uses
_MAX_READINGS = 10
_FINAL_TIMEOUT_S = 10.0
_ANY_WRITE = Request("set_mode", SUBJECTS[0], level="READWRITE")
_FINAL_READS = ("all_versions", "latest", "level", "mode")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Settings:
    """The seconds that clients work, the clients per node, and the average pauses between their requests in seconds.

    Clients work on for `settle_s` after the last fault. `read_pause_s` is the pause of those that read one key from a
    node with a lease.
    """

    work_s: float = 4.0
    settle_s: float = 1.0
    clients_per_node: int = 2
    pause_s: float = 0.012
    read_pause_s: float = 0.004


@dataclass(frozen=True, slots=True)
class Happened:
    """A fault that took place; `outage` is the longest overlapping time without an acknowledged write, in seconds."""

    kind: str
    target: str
    start: float
    end: float
    outage: float = 0.0


@dataclass(frozen=True, slots=True)
class _Ending:
    """The end of a run: problems, the fold of the log, and how many records it ever held and has dropped.

    There are no records if the log was not read because a node accepted no write.
    """

    problems: Sequence[str]
    ledger: Ledger = field(default_factory=Ledger)
    records: int = 0
    dropped: int = 0
    recovery: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run, with times in seconds.

    `records` counts all records that the log ever held, `dropped` those that compaction removed. `recovery` is the
    longest time until a node accepted a write after all faults were healed.
    """

    log: str
    seed: int
    operations: int
    unknown: int
    writes: int
    records: int
    faults: tuple[Happened, ...]
    broken: tuple[str, ...]
    longest_search: int
    seconds: float
    commit: str = "unknown"
    dropped: int = 0
    access: bool = False
    recovery: float = 0.0


def run_recorded(
    services: Services, log: str, seed: int, settings: Settings | None = None
) -> tuple[Result, list[Operation]]:
    """Run one seed on one log; a run that raises an exception is broken, with the exception as its reason.

    Args:
        services: the services behind the logs; closed after an exception, since their state is unknown.
        log: the kind of log: sqlite, postgres or kafka.
        seed: determines the schedule of faults and the requests.
        settings: the default settings if None.

    Returns:
        The result and the history; an empty history if the run raised.
    """
    began = time.monotonic()
    try:
        return run(services, log, seed, settings)
    except Exception as error:  # noqa: BLE001 - every failure must be counted
        where = traceback.extract_tb(error.__traceback__)[-1]
        services.close()  # their state is unknown
        reason = f"{FAILED}: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        failed = Result(log, seed, 0, 0, 0, 0, (), (reason,), 0, time.monotonic() - began, current())
        return failed, []


def run(services: Services, log: str, seed: int, settings: Settings | None = None) -> tuple[Result, list[Operation]]:
    """Run one seed on one log, and return its result and its history.

    Args:
        services: the services behind the logs.
        log: the kind of log: sqlite, postgres or kafka.
        seed: determines the schedule of faults and the requests.
        settings: the default settings if None.
    """
    settings, began = settings or Settings(), time.monotonic()
    leases = lengths(f"{log} {seed} leases", NODES[log]) if services.lease and log == "kafka" else ()
    with opened(services, log, leases=leases) as scene:
        _prepare(scene)
        recorder = scene.recorder = Recorder()
        rng = random.Random(f"{log} {seed} pen")
        turns = rng.choice(_HAND_OVERS) if log == "kafka" else 0
        happened: list[Happened] = []
        if (stuck := _hand_over(scene, recorder, rng, turns)) is None:
            happened = _work(scene, seed, settings, recorder)
            ending = _end(scene, recorder, partial(_hand_over, scene, recorder, rng, turns // 2))
        else:
            ending = _Ending([stuck])
    history = recorder.operations
    judgement = judge(history, ending.ledger, [IMPORTED])
    acknowledged = [o for o in history if o.request.kind in WRITES and o.answer is not None and o.answer[0] == 200]
    result = Result(
        log=log,
        seed=seed,
        operations=len(history),
        unknown=sum(operation.answer is None for operation in history),
        writes=len(acknowledged),
        records=ending.records,
        dropped=ending.dropped,
        recovery=ending.recovery,
        access=services.access,
        faults=tuple(_with_outages(happened, acknowledged)),
        broken=(*ending.problems, *(judgement.broken if ending.records else ())),
        longest_search=judgement.longest_search,
        seconds=time.monotonic() - began,
        commit=current(),
    )
    return result, history


def _prepare(scene: Scene) -> None:
    """Create the context for imports, and register the initial schemas."""
    connection = http.client.HTTPConnection("127.0.0.1", scene.ports[0], timeout=_PATIENCE_S)
    asked = [("PUT", f"/mode/:{IMPORTED}:", {"mode": "IMPORT"})]
    asked += [("POST", f"/subjects/{name}/versions", {"schema": text_of(content)}) for name, content in SET_UP]
    with closing(connection):
        for method, path, body in asked:
            connection.request(
                method, path, json.dumps(body), {"Content-Type": "application/json", **scene.credentials}
            )
            answer = connection.getresponse()
            if (text := answer.read()) and answer.status != 200:
                raise RuntimeError(f"{method} {path} failed: {text!r}")


# --- work


def _hand_over(scene: Scene, recorder: Recorder, rng: random.Random, times: int) -> str | None:
    """Let other nodes take the pen, each while the holder restarts; return what went wrong, or None."""
    for _ in range(times):
        holder = scene.holder()
        heir = rng.choice([member for member in scene.members if member is not holder])
        if holder is not None:
            (holder.node.kill if rng.random() < 0.5 else holder.node.terminate)()
        with closing(_final_clients(scene, recorder)[heir.number]) as client:
            taken = _insist(client, heir.number, _ANY_WRITE)
        if holder is not None:
            restart(holder)
        if not taken:
            return f"node {heir.number} {NO_WRITES[1]} its holder was gone"
    return None


def _work(scene: Scene, seed: int, settings: Settings, recorder: Recorder) -> list[Happened]:
    """Run clients and faults; return when the clients have stopped and every fault is healed."""
    owned = scene.services.own_broker if scene.log == "kafka" else scene.services.own_postgres
    schedule = plan(
        scene.log,
        seed,
        work_s=settings.work_s,
        own_service=owned is not None,
        workers=scene.services.workers,
        lease=scene.services.lease,
    )
    is_aimed = scene.services.lease and scene.log == "kafka"
    count, stop = (1 if is_aimed else settings.clients_per_node) * len(scene.members), threading.Event()
    with ThreadPoolExecutor(count + len(schedule) + 1 + len(GUARDED) + _HOT_CLIENTS * len(scene.members)) as pool:
        clients = [
            pool.submit(
                Client(f"client {i}", scene.ports, recorder, scene.credentials, only_read=scene.only_read).work,
                f"{scene.log} {seed} client {i}",
                i % len(scene.members),
                stop.is_set,
                _AIMED_PAUSE_S if is_aimed else settings.pause_s,
            )
            for i in range(count)
        ]
        if is_aimed:
            clients += _about_the_hot_key(pool, scene, seed, settings, recorder, stop)
        if scene.services.access:
            clients += _about_rights(pool, scene, seed, recorder, stop)
        faults = [pool.submit(_happen, scene, planned, recorder) for planned in schedule]
        try:
            happened = _all_of(faults)
            stop.wait(max(settings.settle_s, settings.work_s - recorder.now()))
        finally:
            stop.set()
        _all_of(clients)
    return [fault for fault in happened if fault.target]


def _about_the_hot_key(
    pool: ThreadPoolExecutor, scene: Scene, seed: int, settings: Settings, recorder: Recorder, stop: threading.Event
) -> list[Future[None]]:
    """Let clients of each node read one key back to back, while others set it."""
    rng = random.Random(f"{scene.log} {seed} hot")
    working = []
    for node in range(len(scene.members)):
        asking = [(f"reader {node}.{i}", readings(), settings.read_pause_s) for i in range(_HOT_CLIENTS - 1)]
        asking.append((f"writer {node}", writings(f"w{node}"), rng.choice(_WRITE_PAUSES_S)))
        working += [
            pool.submit(
                Client(name, scene.ports, recorder, scene.credentials, only_read=scene.only_read).send_each,
                f"{scene.log} {seed} {name}",
                requests,
                stop.is_set,
                pause_s,
                nodes=(node,),
            )
            for name, requests, pause_s in asking
        ]
    return working


def _about_rights(
    pool: ThreadPoolExecutor, scene: Scene, seed: int, recorder: Recorder, stop: threading.Event
) -> list[Future[None]]:
    """Let a superuser change rights while their users register."""
    rng = random.Random(f"{scene.log} {seed} rights")
    asking = [("rights", scene.credentials, changes(rng), _CHANGE_S)]
    asking += [(each.user, credentials(each.user), registrations(name), _USE_S) for name, each in GUARDED.items()]
    return [
        pool.submit(
            Client(name, scene.ports, recorder, headers).send_each,
            f"{scene.log} {seed} {name}",
            requests,
            stop.is_set,
            pause_s,
        )
        for name, headers, requests, pause_s in asking
    ]


def _all_of(futures: Sequence[Future[_T]]) -> list[_T]:
    return [future.result() for future in futures]


def _happen(scene: Scene, planned: Planned, recorder: Recorder) -> Happened:
    threading.Event().wait(planned.at)
    start = recorder.now()
    with (FAULTS | AIMED)[planned.kind].inject(scene, random.Random(planned.seed)) as target:
        if target:
            threading.Event().wait(planned.lasts)
    return Happened(planned.kind, target, start, recorder.now())


def _with_outages(happened: Sequence[Happened], acknowledged: Sequence[Operation]) -> Iterator[Happened]:
    times = sorted(operation.end for operation in acknowledged)
    for fault in happened:
        before = [t for t in times if t < fault.start][-1:] or [fault.start]
        after = [t for t in times if t > fault.end][:1]
        marks = [*before, *(t for t in times if fault.start <= t <= fault.end), *after]
        outage = max((later - earlier for earlier, later in pairwise(marks)), default=0.0)
        yield Happened(fault.kind, fault.target, fault.start, fault.end, outage)


# --- the end


def _end(scene: Scene, recorder: Recorder, hand_over: Callable[[], str | None]) -> _Ending:
    """Compare every node's final answers with the log, once nothing is written any more.

    A request without an answer may take effect late, during the reading, which then starts again.
    """
    recovery = 0.0
    for when in ("after all faults were healed", "after the pen was handed over"):
        healed = time.monotonic()
        with ThreadPoolExecutor(len(scene.members)) as pool:
            taken = list(pool.map(partial(_accepts, scene, recorder), range(len(scene.members))))
        if (slowest := max(taken)) > _WRITES_AFTER_S:
            node = taken.index(slowest)
            print(f"The log of node {node} ends:\n{tail(scene.members[node].node.log_file, 80)}", file=sys.stderr)
            return _Ending([f"node {node} {NO_WRITES[0]} {_WRITES_AFTER_S:.0f} s {when}"])
        recovery = max(recovery, time.monotonic() - healed)
        if (stuck := hand_over()) is not None:
            return _Ending([stuck])
    for _ in range(_MAX_READINGS):
        before = _end_of(scene.log_url)
        first = len(recorder.operations)
        problems = list(_read_everything(scene, recorder))
        now, ever = _everything(scene)
        if _end_of(scene.log_url) == before:
            ledger = read_ledger(ever, [IMPORTED])
            problems += [*_unlike_replay(ledger, now, ever), *_differing(recorder.operations[first:], ledger)]
            return _Ending(problems, ledger, len(ever), len(ever) - len(now), recovery)
    return _Ending([f"the log still grew after it was read {_MAX_READINGS} times"])


def _accepts(scene: Scene, recorder: Recorder, node: int) -> float:
    """Return in how many seconds a node accepts a write; more than `_WRITES_AFTER_S` if it does not."""
    began = time.monotonic()
    with closing(_final_clients(scene, recorder)[node]) as client:
        _insist(client, node, _ANY_WRITE, _WRITES_AFTER_S)
    return time.monotonic() - began


def _final_clients(scene: Scene, recorder: Recorder) -> list[Client]:
    return [
        Client(f"final {i}", scene.ports, recorder, scene.credentials, timeout_s=_FINAL_TIMEOUT_S)
        for i in range(len(scene.members))
    ]


def _read_everything(scene: Scene, recorder: Recorder) -> Iterator[str]:
    """Read everything on each node; a healed node that does not answer is a problem."""
    for node, client in enumerate(_final_clients(scene, recorder)):
        asked = [Request(kind, subject) for subject in SUBJECTS for kind in _FINAL_READS]
        asked += [*READS, READ_OF_HOT, *(READS_OF_RIGHTS if scene.services.access else ())]
        for subject in SUBJECTS:
            answer = client.send(node, Request("versions", subject))
            versions = answer[1] if answer and answer[0] == 200 else ()
            asked += [Request("version", subject, version=version) for version in versions]
        for subject in ("s1", ":.c:t1", ":.import:i1"):
            highest = recorder.highest_id(context_of(subject))
            asked += [Request("by_id", subject, schema_id=schema_id) for schema_id in range(1, highest + 2)]
        if not all(_insist(client, node, request) for request in asked):
            yield f"node {node} did not answer within {_PATIENCE_S:.0f} s after all faults were healed"
        client.close()


def _insist(client: Client, node: int, request: Request, patience_s: float = _PATIENCE_S) -> bool:
    """Send a request until it is answered; "nothing was written" is an answer for the checks, but no success."""
    deadline = time.monotonic() + patience_s
    while (answer := client.send(node, request)) is None or answer[0] == NOT_WRITTEN:
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(_RETRY_S)
    return True


def _end_of(log_url: str) -> int:
    with closing(open_log(log_url)) as log:
        return log.end()


def _everything(scene: Scene) -> tuple[list[LogEntry], list[LogEntry]]:
    assert scene.archive is not None
    return scene.archive.everything()


def _unlike_replay(ledger: Ledger, entries: Sequence[LogEntry], ever: Sequence[LogEntry]) -> Iterator[str]:
    """Compare the ledger of all records ever written with the State of the remaining records."""
    state = State().apply_all(entries)
    if state != State().apply_all(ever):
        yield "compaction has changed what the log adds up to"
    for aside in state.set_aside:
        yield f"offset {aside.offset} is set aside: {aside.reason}"
    for name in {*SUBJECTS, *ledger.subjects}:
        held = tuple(
            Entry(int(e.version), _content(e.schema), int(e.schema.schema_id), e.deleted)
            for e in state.versions(name, include_deleted=True)
        )
        if held != ledger.subject(name).entries:
            yield f"subject {name}: replay gives {held}, the records give {ledger.subject(name).entries}"


def _content(schema: StoredSchema) -> str:
    return content_of(schema.text, *(reference.version for reference in schema.value.references))


def _differing(history: Sequence[Operation], ledger: Ledger) -> Iterator[str]:
    """Yield the final answers of nodes that differ from the log."""
    for operation in history:
        request = operation.request
        if operation.answer is None or request.kind in KINDS:
            continue
        if request.kind == "by_id":
            expected = _by_id(ledger.subjects, request)
        else:
            _, expected = perform(ledger.subject(request.subject), request)
        if operation.answer != expected:
            yield f"in the end node {operation.node} differs from the log, which says {expected}: {operation}"


def _by_id(subjects: dict[str, Subject], request: Request) -> tuple[int, str | None]:
    for name, subject in subjects.items():
        for entry in subject.entries:
            if context_of(name) == context_of(request.subject) and entry.schema_id == request.schema_id:
                return 200, entry.content
    return 40403, None
