"""`python -m faults`: run seeds on logs, check the answers that clients received, keep the runs that broke.

    python -m faults --log kafka --seed 17      repeat one run
    python -m faults --runs 70                  seeds 1 to 70 on each log
    python -m faults --access --runs 5          with access control, and rights that change in mid-run
    python -m faults --lease --runs 20          with read leases on Kafka, and faults that aim at them
    python -m faults --older --runs 20          with leases, and a node of a version that knows none
    python -m faults --standby --runs 20        with a standby, and promotions
    python -m faults --judge FILE               check the kept history of a broken run again

    python -m faults --results A --results B --report docs/faults.md    tables from the results of two invocations
    python -m faults --mutant NAME --log kafka  a registry with a planted bug; `python -m faults.trials` runs all

Exits with 1 when a guarantee was violated, when a check was undecided, or when a run itself failed.
"""

import argparse
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from faults.checker import by_subject
from faults.history import load as load_history
from faults.history import save
from faults.linear import Verdict, explain
from faults.mutants import MUTANTS
from faults.report import add, into_document, lines, load, of_commit, tables
from faults.run import Result, Settings, run_recorded
from faults.services import LOGS, Services
from faults.standby import run_standby

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds, report or check given by the arguments, and return the exit code."""
    asked = _parser().parse_args(arguments)
    if asked.judge:
        return _judge(asked.judge)
    files = asked.results or [Path("faults-results.jsonl")]
    broken = 0
    if asked.seed or asked.runs:
        seeds = asked.seed or range(asked.first, asked.first + asked.runs)
        # All logs of a seed before the next seed, so that an invocation that is interrupted has covered every log.
        wanted = [(seed, log) for seed in seeds for log in asked.log or LOGS]
        if asked.standby:
            return _standbys(wanted)
        access = asked.access or (asked.mutant is not None and MUTANTS[asked.mutant].access)
        older = asked.older or (asked.mutant is not None and MUTANTS[asked.mutant].older)
        lease = asked.lease or older or (asked.mutant is not None and MUTANTS[asked.mutant].lease)
        with Services(mutant=asked.mutant, workers=asked.workers, access=access, lease=lease, older=older) as services:
            for done, (seed, log) in enumerate(wanted, start=1):
                broken += _one(services, log, seed, asked, files[0])
                print(f"[{done}/{len(wanted)} runs, {broken} broken]", flush=True)
    if asked.report:
        results = of_commit([result for file in files for result in load(file)], asked.commit)
        into_document(tables(results), asked.report)
        print(f"{asked.report}: {len(results)} runs of commit {results[-1].commit if results else 'none'}")
    return 1 if broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log", action="append", choices=LOGS, help="run on this log only; repeatable  [all]")
    parser.add_argument("--seed", action="append", type=int, help="run this seed; repeatable")
    parser.add_argument("--runs", type=int, default=0, help="run this many seeds on each log")
    parser.add_argument("--first", type=int, default=1, help="the first seed of --runs  [1]")
    parser.add_argument(
        "--work", type=float, default=Settings().work_s, help="minimum time that the clients work, in seconds"
    )
    parser.add_argument("--workers", type=int, default=1, help="worker processes of each node  [1]")
    parser.add_argument(
        "--access", action="store_true", help="switch on access control, with rights that change (faults/rights.py)"
    )
    parser.add_argument(
        "--lease", action="store_true", help="on Kafka, give the nodes read leases, and aim faults at them"
    )
    parser.add_argument(
        "--older", action="store_true", help="as --lease, but the first node is of a version that knows no leases"
    )
    parser.add_argument("--standby", action="store_true", help="run with a standby (faults/standby.py)")
    parser.add_argument("--mutant", choices=MUTANTS, help="plant this bug in the registry (faults/mutants.py)")
    parser.add_argument(
        "--results",
        action="append",
        type=Path,
        help="append results to this file; repeatable, --report reads all of them  [faults-results.jsonl]",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("faults-broken"),
        help="directory for the histories of broken runs  [faults-broken]",
    )
    parser.add_argument("--report", type=Path, help="write the tables of all results into this document")
    parser.add_argument("--commit", help="report the results of this commit  [that of the last result]")
    parser.add_argument("--judge", type=Path, help="check this kept history again, without a run")
    return parser


def _one(services: Services, log: str, seed: int, asked: argparse.Namespace, file: Path) -> bool:
    settings = Settings(work_s=asked.work)
    result, history = run_recorded(services, log, seed, settings)
    add(result, file)
    print("\n".join(lines(result)), flush=True)
    if result.broken:
        asked.keep.mkdir(parents=True, exist_ok=True)
        kept = asked.keep / f"{log}-{seed}.jsonl"
        save(history, kept)
        print(
            f"  repeat: {_command(result, settings, services)}\n  check again: python -m faults --judge {kept}",
            flush=True,
        )
    return bool(result.broken)


def _standbys(wanted: Sequence[tuple[int, str]]) -> int:
    """Run seeds with a standby."""
    broken = 0
    with Services() as services:
        for seed, log in wanted:
            result = run_standby(services, log, seed)
            broken += bool(result.broken)
            print(result, flush=True)
    print(f"{len(wanted)} runs with a standby, {broken} broken")
    return 1 if broken else 0


def _command(result: Result, settings: Settings, services: Services) -> str:
    return shlex.join(
        [
            "python",
            "-m",
            "faults",
            f"--log={result.log}",
            f"--seed={result.seed}",
            f"--work={settings.work_s:g}",
            f"--workers={services.workers}",
            *(["--access"] if services.access else []),
            *(["--older"] if services.older else ["--lease"] if services.lease else []),
        ]
    )


def _judge(path: Path) -> int:
    """Check only the order of operations: the log of that run no longer exists."""
    verdicts = set()
    for subject, history in sorted(by_subject(load_history(path)).items()):
        finding = explain(history)
        verdicts.add(finding.verdict)
        print(f"{subject}: {finding.verdict}, {len(history)} operations, {finding.steps} steps")
        if finding.verdict is not Verdict.EXPLAINED:
            print(f"  stuck at {finding.stuck_at}")
            for operation in sorted(finding.stuck_before, key=lambda operation: operation.end):
                print(f"  before   {operation}")
    return 0 if verdicts <= {Verdict.EXPLAINED} else 1


if __name__ == "__main__":
    # The archive's client reports each try to reach a broker.
    logging.getLogger("strata").setLevel(logging.CRITICAL + 1)
    sys.exit(main())
