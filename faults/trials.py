"""`python -m faults.trials`: plant each bug of `mutants.py` in the registry, and check that the harness finds it.

Each mutant runs on seeds 1, 2, 3, … of each of its logs, until a run violates a guarantee. Exits with 1 when a mutant
is not found within the seeds.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from faults.commit import current
from faults.linear import Verdict
from faults.mutants import MUTANTS
from faults.report import into_document, table
from faults.run import FAILED, NO_WRITES, Result, Settings, run_recorded
from faults.services import Services

__all__ = ["Trial", "main", "reasons", "trial"]

_SEEDS = 70
_REASON = 80
_CONTRADICTED = re.compile(
    r"subject (?P<name>\S+): contradicted.*?\n"
    r" +Operation\([^\n]*kind='(?P<kind>\w+)'[^\n]*answer=\([^\n]*\)",
    re.DOTALL,
)
_DIFFERS = re.compile(
    r"(?P<what>in the end node \d+ differs from the log), which says .*?: Operation\(.*"
    r"kind='(?P<kind>\w+)', subject='(?P<name>[^']*)'.*answer=.*\)"
)


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a mutant on a log: the seed that found it (0: none), the seconds until then, and the reason."""

    mutant: str
    log: str
    seed: int
    seconds: float
    reason: str
    commit: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants given by the arguments, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m faults.trials", description=__doc__)
    parser.add_argument("--mutant", action="append", choices=MUTANTS, help="try this mutant only; repeatable  [all]")
    parser.add_argument("--log", action="append", help="run on this log only; repeatable")
    parser.add_argument(
        "--seeds", type=int, default=_SEEDS, help=f"maximum number of seeds per mutant and log  [{_SEEDS}]"
    )
    parser.add_argument("--first", type=int, default=1, help="the first seed  [1]")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("faults-trials.jsonl"),
        help="append results to this file  [faults-trials.jsonl]",
    )
    parser.add_argument("--report", type=Path, help="write the table of all results into this document")
    asked = parser.parse_args(arguments)
    chosen = asked.mutant or ([] if asked.seeds == 0 else list(MUTANTS))
    wanted = [(name, log) for name in chosen for log in MUTANTS[name].logs if log in (asked.log or MUTANTS[name].logs)]
    missed = 0
    with Services() as services:
        for done, (name, log) in enumerate(wanted, start=1):
            found = trial(services, name, log, range(asked.first, asked.first + asked.seeds))
            missed += not found.seed
            with asked.results.open("a") as file:
                file.write(f"{json.dumps(asdict(found))}\n")
            print(f"[{done}/{len(wanted)}, {missed} missed] {_line(found)}", flush=True)
    if asked.report:
        into_document(f"{_table(_load(asked.results))}\n", asked.report, part="mutants")
    return 1 if missed else 0


def trial(services: Services, mutant: str, log: str, seeds: Iterable[int], settings: Settings | None = None) -> Trial:
    """Run a mutant on seeds until one of them finds it.

    Args:
        services: the services behind the logs; they run the real registry again afterwards.
        mutant: a name in `MUTANTS`.
        log: the kind of log: sqlite, postgres or kafka.
        seeds: the seeds to try, in order.
        settings: the default settings if None.
    """
    began = time.monotonic()
    before = services.access, services.lease, services.older
    bug = MUTANTS[mutant]
    services.access, services.lease, services.older = bug.access, bug.lease, bug.older
    services.mutant = mutant
    try:
        for seed in seeds:
            result, _ = run_recorded(services, log, seed, settings)
            if found := reasons(result, stops_writes=bug.stops_writes):
                return Trial(mutant, log, seed, time.monotonic() - began, found[0], current())
            if result.broken:
                print(f"  {mutant} on {log}, seed {seed}: {result.broken[0]}", flush=True)
    finally:
        services.access, services.lease, services.older = before
        services.mutant = None
    return Trial(mutant, log, 0, time.monotonic() - began, "", current())


def reasons(result: Result, *, stops_writes: bool = True) -> list[str]:
    """Return the violated guarantees that show a bug.

    Failed runs and undecided searches prove nothing and are left out; so is a node that accepted no write, unless the
    bug `stops_writes`.
    """
    return [
        reason
        for reason in result.broken
        if not reason.startswith(FAILED)
        and f": {Verdict.UNDECIDED} " not in reason
        and (stops_writes or not any(words in reason for words in NO_WRITES))
    ]


def _line(found: Trial) -> str:
    if not found.seed:
        return f"{found.mutant} on {found.log}: NOT FOUND in {found.seconds:.0f} s"
    return f"{found.mutant} on {found.log}: seed {found.seed}, {found.seconds:.0f} s: {_short(found.reason)}"


def _short(reason: str) -> str:
    """Return what a reason is about; the results have it whole."""
    if found := _CONTRADICTED.match(reason):
        return f"no order explains {found['kind']} of {found['name']}"
    if found := _DIFFERS.match(reason):
        return f"{found['what']}: {found['kind']} of {found['name']}"
    first = reason.splitlines()[0] if reason else ""
    return first if len(first) <= _REASON else f"{first[:_REASON]}…"


def _load(path: Path) -> list[Trial]:
    """Read the results; return the last one of each mutant on each log."""
    found = [Trial(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []
    return list({(one.mutant, one.log): one for one in found if one.mutant in MUTANTS}.values())


def _table(found: Sequence[Trial]) -> str:
    head = ("mutant", "bug", "log", "seed that finds it", "seconds", "violated guarantee")
    rows = [
        (
            one.mutant,
            MUTANTS[one.mutant].breaks,
            one.log,
            one.seed or "none",
            f"{one.seconds:.0f}",
            "`" + _short(one.reason).replace("|", "/").replace("`", "'") + "`" if one.reason else "",
        )
        for one in sorted(found, key=lambda one: (list(MUTANTS).index(one.mutant), one.log))
    ]
    commits = ", ".join(sorted({f"`{one.commit}`" for one in found}))
    return f"Trials at commit {commits}.\n\n{table(head, rows)}"


if __name__ == "__main__":
    sys.exit(main())
