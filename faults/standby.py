"""Seeded runs with a standby: kills, pauses, cuts and compaction at both ends, then perhaps a promotion.

    python -m faults --standby --runs 20 --log kafka

A source of one node is written to by clients. A standby of two nodes follows it: its log, or itself over REST. Faults
strike both. Then the standby is promoted, half of the time after the loss of the source, or everything is healed and
must become equal. `standby_judge.py` then reads both logs.
"""

import http.client
import json
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from click.testing import CliRunner

from faults.archive import Archive
from faults.proxy import Proxy
from faults.services import Services
from faults.standby_judge import held_by, judge_standby
from harness.registry import RegistryNode
from strata.registry.commands.cli import main as strata
from strata.storage.log import START
from strata.storage.open_log import open_log
from strata.storage.records import DEFAULT_CONTEXT
from strata.storage.state import State

__all__ = ["StandbyResult", "run_standby"]

_SUBJECTS = ("a", "b", "c", ":.c:a", ":.c:d")
_PATIENCE_S = 90.0
_GONE = "sqlite:////nowhere/lost.db"
_TIMEOUT_S = 5.0
_POLL_S = 0.05
_Fault = Callable[["_Scene"], object]


@dataclass(frozen=True, slots=True)
class StandbyResult:
    """The result of a run; times in seconds."""

    log: str
    seed: int
    follows: str
    promoted: str
    faults: tuple[str, ...]
    written: int
    steps: int
    broken: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        verdict = "; ".join(("BROKEN", *self.broken)) if self.broken else "ok"
        return (
            f"{self.log} {self.seed}: follows the {self.follows}, {self.promoted}, {', '.join(self.faults)}; "
            f"{self.written} writes, {self.steps} steps, {self.seconds:.1f} s: {verdict}"
        )


@dataclass(slots=True)
class _Scene:
    rng: random.Random
    source_log: str
    standby_log: str
    source: RegistryNode
    standby: list[RegistryNode]
    paths: list[Proxy]
    written: int = 0
    accepted: list[str] = field(default_factory=list)


def run_standby(services: Services, log: str, seed: int, *, work_s: float = 2.0) -> StandbyResult:
    """Run one seed on one kind of log, and judge it.

    Args:
        services: the services behind the logs.
        log: sqlite, postgres or kafka.
        seed: determines the faults, what is followed and how the run ends.
        work_s: how long clients write to the source.
    """
    began, rng = time.monotonic(), random.Random(f"standby {log} {seed}")
    over_rest, ending = rng.random() < 0.3, rng.choice(["promoted", "promoted after the loss of its source", "healed"])
    problems: list[str] = []
    with ExitStack() as stack:
        scene = _opened(stack, services, log, rng, over_rest=over_rest)
        archives = [Archive(url) for url in (scene.source_log, scene.standby_log)]
        for archive in archives:
            stack.callback(archive.close)
        _await(lambda: "s" if _mark(scene.standby_log) else "", "no first copy")
        faults = _work(scene, work_s)
        for path in scene.paths:
            path.restore()
        if ending == "healed":
            problems += _unequal(scene)
        else:
            problems += _promote(scene, lost=ending != "promoted")
        ever = [archive.everything()[1] for archive in archives]
    problems += scene.accepted
    broken, steps = judge_standby(*ever, follows_log=not over_rest)
    return StandbyResult(
        log,
        seed,
        "service" if over_rest else "log",
        ending,
        tuple(faults),
        scene.written,
        steps,
        (*problems, *broken),
        time.monotonic() - began,
    )


def _opened(stack: ExitStack, services: Services, log: str, rng: random.Random, *, over_rest: bool) -> _Scene:
    urls = [services.fresh_log(log) for _ in range(2)]
    source = RegistryNode(urls[0], start=services.start)
    stack.callback(_stop, source)
    source.restart()
    _ask(source, "PUT", "/config", {"compatibility": "NONE"})
    _ask(source, "POST", "/subjects/s/versions", {"schema": '"string"'})
    if over_rest:
        paths = [Proxy()]
        paths[0].lead_to(source.port)
        follow, pace = paths[0].url, ["--follow-seconds=0.1", "--follow-full-seconds=0.5", "--follow-rate=500"]
    else:
        follow, paths = services.path_to(urls[0], 0)
        pace = ["--follow-seconds=0.1"]
    for path in paths:
        stack.callback(path.restore if log == "kafka" and not over_rest else path.close)
    standby = [RegistryNode(urls[1], f"--follow={follow}", *pace, start=services.start) for _ in range(2)]
    for node in standby:
        stack.callback(_stop, node)
        node.restart()
    return _Scene(rng, urls[0], urls[1], source, standby, paths)


# --- work


def _work(scene: _Scene, work_s: float) -> list[str]:
    """Let clients write to the source and try to write to the standby, and inject faults; return their names."""
    stop = threading.Event()
    clients = [threading.Thread(target=_write, args=(scene, random.Random(scene.rng.random()), stop)) for _ in range(2)]
    clients.append(threading.Thread(target=_try, args=(scene, stop)))
    for client in clients:
        client.start()
    names = []
    try:
        for _ in range(scene.rng.randint(1, 4)):
            time.sleep(scene.rng.uniform(0, work_s / 3))
            name, fault = scene.rng.choice(_faults_of(scene))
            names.append(name)
            fault(scene)
        time.sleep(scene.rng.uniform(0, work_s / 3))
    finally:
        stop.set()
        for client in clients:
            client.join()
    return names


def _faults_of(scene: _Scene) -> list[tuple[str, _Fault]]:
    faults: list[tuple[str, _Fault]] = [
        ("kill of a standby's node", lambda s: _killed(s.rng.choice(s.standby))),
        ("kill of the source", lambda s: _killed(s.source)),
        ("kill of both sides", lambda s: _killed(s.source, *s.standby)),
        ("pause of a standby's node", lambda s: _paused(s, s.rng.choice(s.standby))),
        ("pause of the source", lambda s: _paused(s, s.source)),
    ]
    if scene.paths:
        faults += [
            ("path to the source refused", lambda s: _cut(s, Proxy.refuse)),
            ("path to the source silent", lambda s: _cut(s, Proxy.silence)),
        ]
    if not scene.source_log.startswith("kafka"):
        faults += [
            ("compaction of the source", lambda s: _run("compact", s.source_log)),
            ("compaction of the standby", lambda s: _run("compact", s.standby_log)),
        ]
    return faults


def _killed(*nodes: RegistryNode) -> None:
    for node in nodes:
        node.kill()
    for node in nodes:
        node.restart()


def _paused(scene: _Scene, node: RegistryNode) -> None:
    node.send(signal.SIGSTOP)
    time.sleep(scene.rng.uniform(0.1, 1.5))
    node.send(signal.SIGCONT)


def _cut(scene: _Scene, how: Callable[[Proxy], None]) -> None:
    for path in scene.paths:
        how(path)
    time.sleep(scene.rng.uniform(0.1, 1.0))
    for path in scene.paths:
        path.restore()


def _write(scene: _Scene, rng: random.Random, stop: threading.Event) -> None:
    """Change the source at random."""
    while not stop.is_set():
        subject = quote(rng.choice(_SUBJECTS), safe="")
        path, number = f"/subjects/{subject}", rng.randint(1, 6)
        content = rng.choice([number, rng.randint(7, 10**6)])
        schema = {"schema": f'{{"type":"fixed","name":"F","size":{content}}}'}
        method, where, body = rng.choices(
            [
                ("POST", f"{path}/versions", schema),
                ("DELETE", f"{path}/versions/{number}", None),
                ("DELETE", f"{path}/versions/{number}?permanent=true", None),
                ("DELETE", path, None),
                ("DELETE", f"{path}?permanent=true", None),
                ("PUT", f"/config/{subject}", {"compatibility": rng.choice(["NONE", "FULL"])}),
            ],
            [6, 2, 1, 0.3, 0.3, 1],
        )[0]
        answer = _ask(scene.source, method, where, body)
        scene.written += answer is not None and answer[0] == 200
        time.sleep(rng.uniform(0, 0.02))


def _try(scene: _Scene, stop: threading.Event) -> None:
    """Try to write to the standby, which must refuse."""
    number = 0
    while not stop.is_set():
        number += 1
        for node in scene.standby:
            answer = _ask(
                node, "POST", "/subjects/own/versions", {"schema": f'{{"type":"fixed","name":"O","size":{number}}}'}
            )
            if answer is not None and answer[0] == 200:
                scene.accepted.append(f"a standby accepted a write: {answer[1]}")
        time.sleep(0.1)


def _ask(node: RegistryNode, method: str, path: str, body: object = None) -> tuple[int, object] | None:
    """Send a request; return status and answer, None without an answer."""
    with closing(node.connect(timeout=_TIMEOUT_S)) as connection:
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        except (OSError, http.client.HTTPException, ValueError):
            return None


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(strata, list(arguments))
    return result.exit_code, result.output


def _stop(node: RegistryNode) -> None:
    if node.is_started:
        with suppress(ProcessLookupError):
            node.send(signal.SIGKILL)
    node.stop()


# --- the end


def _await(found: Callable[[], object], otherwise: str) -> list[str]:
    """Wait until something is found; return the problem if it is not found in time."""
    deadline = time.monotonic() + _PATIENCE_S
    while not found():
        if time.monotonic() > deadline:
            return [f"{otherwise} within {_PATIENCE_S:.0f} s"]
        time.sleep(_POLL_S)
    return []


def _state(url: str) -> State:
    with closing(open_log(url)) as log:
        return State().apply_all(log.read(START))


def _mark(url: str) -> bool:
    standby = _state(url).standbys.get(DEFAULT_CONTEXT)
    return standby is not None and standby.copied_at > 0


def _unequal(scene: _Scene) -> list[str]:
    """Wait until the standby holds what its source holds."""
    return _await(
        lambda: held_by(_state(scene.source_log)) == held_by(_state(scene.standby_log)),
        "the standby did not become equal to its source",
    )


def _promote(scene: _Scene, *, lost: bool) -> list[str]:
    """Promote the standby, and write to all of its nodes."""
    if lost:
        scene.source.kill()
    source = _GONE if lost else scene.source_log
    code, output = _run("promote", scene.standby_log, f"--source={source}", "--accept-loss")
    if code:
        return [f"the promotion failed: {output}"]
    for number, node in enumerate(scene.standby * 3):
        content = {"schema": f'{{"type":"fixed","name":"P","size":{number + 1}}}'}
        for subject in ("own", "a", "%3A.c%3Aa"):

            def accepted(node: RegistryNode = node, subject: str = subject, content: object = content) -> bool:
                answer = _ask(node, "POST", f"/subjects/{subject}/versions", content)
                return answer is not None and answer[0] in (200, 409)

            if problem := _await(accepted, "a promoted node accepted no write"):
                return problem
    return []
