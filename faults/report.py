"""Stores the results of runs, one JSON object per line, and makes the tables of docs/faults.md from them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from faults.run import Happened, Result

__all__ = ["add", "into_document", "lines", "load", "of_commit", "table", "tables"]


def add(result: Result, path: Path) -> None:
    """Append a run's result to a file; another run of the same log and seed counts separately."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(f"{json.dumps(asdict(result), separators=(',', ':'))}\n")


def load(path: Path) -> list[Result]:
    """Read the results from a file; an empty list if there is no such file."""
    results = []
    for line in path.read_text().splitlines() if path.exists() else ():
        fields = {"commit": "unknown", **json.loads(line)}
        faults = tuple(Happened(**fault) for fault in fields["faults"])
        results.append(Result(**{**fields, "faults": faults, "broken": tuple(fields["broken"])}))
    return results


def of_commit(results: Sequence[Result], commit: str | None = None) -> list[Result]:
    """Return the results of one commit: the one with the given prefix, or that of the last result."""
    if not results:
        return []
    wanted = commit or results[-1].commit
    return [result for result in results if result.commit == wanted or (commit and result.commit.startswith(commit))]


def lines(result: Result) -> list[str]:
    """Return a run's result as text: one line, and one more for each fault and each violated guarantee."""
    verdict = "BROKEN" if result.broken else "kept"
    access = " with access control" if result.access else ""
    head = (
        f"{result.log} seed {result.seed}{access}: {verdict}; {result.operations} operations, "
        f"{result.unknown} unanswered, {result.writes} writes acknowledged, {result.records} records, "
        f"writes again {result.recovery:.1f} s after the last fault, {result.seconds:.1f} s, at {result.commit}"
    )
    return [
        head,
        *(
            f"  {fault.start:5.1f}-{fault.end:4.1f} s  {fault.kind} ({fault.target}): "
            f"no write acknowledged for {fault.outage:.2f} s"
            for fault in result.faults
        ),
        *(f"  BROKEN {promise}" for promise in result.broken),
    ]


def tables(results: Sequence[Result]) -> str:
    """Return the tables for runs of one commit: by log, and by fault."""
    commit = ", ".join(sorted({f"`{result.commit}`" for result in results})) or "none"
    return f"Runs at commit {commit}.\n\n{_by_log(results)}\n\n{_by_fault(results)}\n"


def into_document(text: str, document: Path, part: str = "runs") -> None:
    """Replace the text between the two markers of a part of a document.

    Args:
        text: the new text, which ends with a line break.
        document: the file.
        part: the name in the markers.

    Raises:
        ValueError: the document has no such markers.
    """
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, found, rest = document.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{document} has no lines {begin} and {end}")
    document.write_text(f"{before}{begin}\n{text}{end}{after}")


def _by_log(results: Sequence[Result]) -> str:
    counts: dict[str, list[int]] = {}
    for log in sorted({result.log for result in results}):
        of_log = [result for result in results if result.log == log]
        counts[log] = [
            len(of_log),
            sum(len(result.faults) for result in of_log),
            sum(result.operations for result in of_log),
            sum(result.writes for result in of_log),
            sum(result.unknown for result in of_log),
            sum(result.records for result in of_log),
            sum(result.dropped for result in of_log),
            len([result for result in of_log if result.broken]),
        ]
    counts["all"] = [sum(column) for column in zip(*counts.values(), strict=True)]
    head = (
        "log",
        "runs",
        "faults",
        "operations",
        "writes acknowledged",
        "without answer",
        "records",
        "compacted away",
        "runs broken",
    )
    return table(head, [(log, *row) for log, row in counts.items()])


def _by_fault(results: Sequence[Result]) -> str:
    outages: dict[tuple[str, str], list[float]] = defaultdict(list)
    for result in results:
        for fault in result.faults:
            # When faults overlap, an outage cannot be attributed to one of them.
            if not any(_overlap(fault, other) for other in result.faults if other is not fault):
                outages[result.log, fault.kind].append(fault.outage)
            else:
                outages.setdefault((result.log, fault.kind), [])
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for result in results:
        for fault in result.faults:
            counts[result.log, fault.kind] += 1
    rows = [
        (log, kind, counts[log, kind], len(times), f"{median(times):.2f}", f"{max(times):.2f}")
        for (log, kind), times in sorted(outages.items())
        if times
    ]
    measured = table(("log", "fault", "times", "alone", "outage of writes, median s", "max s"), rows)
    overlapping = {
        log: ", ".join(
            f"{kind} ({counts[log, kind]})" for (of, kind), times in sorted(outages.items()) if of == log and not times
        )
        for log in sorted({log for log, _ in outages})
    }
    return "\n\n".join(
        [measured, *(f"On {log}, only beside other faults: {kinds}." for log, kinds in overlapping.items() if kinds)]
    )


def _overlap(one: Happened, other: Happened) -> bool:
    return one.start < other.end + 1 and other.start < one.end + 1


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    written = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in written)
