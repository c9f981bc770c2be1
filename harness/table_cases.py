"""Verdicts on tables beside those of the engines: recorded pairs of schemas in both directions, and all leaf types.

python -m harness.table_cases [NAME …] [--keep]     judge all pairs, and write the tables of docs/compatibility.md
"""

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.table_judges import Answer, Question, columns_of, flink_row, iceberg_schema, in_delta, in_flink, in_iceberg
from strata.compat.formats import FORMATS
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.logical import types
from strata.compat.logical.comparison import compare
from strata.compat.logical.policy import translate
from strata.compat.logical.tables import ENGINES, FLINK, ICEBERG, TableRules
from strata.compat.logical.types import Column, Kind, LogicalSchema, LogicalType, TranslationError
from strata.compat.logical.validity import validate
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

__all__ = ["JUDGES", "Judge", "Pair", "Tally", "judged", "leaf_pairs", "recorded_pairs", "report"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_RECORDED: Final = _ROOT / "tests/conformance/logical_compat.jsonl.gz"
_DOCUMENT: Final = _ROOT / "docs/compatibility.md"


class Pair(NamedTuple):
    """Two schemas: what a table holds, and what it is to follow."""

    name: str
    before: LogicalSchema
    after: LogicalSchema


def recorded_pairs() -> Iterator[Pair]:
    """Yield each recorded pair that has columns, in both directions, and no pair of texts twice."""
    seen: set[tuple[str, str]] = set()
    with gzip.open(_RECORDED, "rt", encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            for previous in case["previous"]:
                texts = previous["schema"], case["new"]["schema"]
                try:
                    schemas = [_translated(case, schema) for schema in (previous, case["new"])]
                except (SchemaParseError, TranslationError):
                    continue
                for name, order in (("backward", (0, 1)), ("forward", (1, 0))):
                    key = texts[order[0]], texts[order[1]]
                    if key not in seen:
                        seen.add(key)
                        yield Pair(f"{case['id']}, {name}", schemas[order[0]], schemas[order[1]])


def _translated(case: Mapping[str, Any], schema: Mapping[str, Any]) -> LogicalSchema:
    registered = {(entry["subject"], entry["version"]): entry["schema"] for entry in case.get("references", ())}
    references = [
        ResolvedReference(reference["name"], registered[reference["subject"], reference["version"]])
        for reference in schema.get("references", ())
    ]
    parsed = FORMATS[SchemaFormat(case["type"])].parse(schema["schema"], strict=False, references=references)
    logical = translate(parsed, "", DEFAULT_LIMITS)
    if logical.resolve(logical.root).kind is not Kind.STRUCT:
        raise TranslationError("not a record")
    return logical


_PLAIN: Final = (
    Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE, Kind.DATE, Kind.ENUM,
)  # fmt: skip
_DECIMALS: Final = (
    (3, 0), (5, 0), (9, 2), (10, 0), (12, 2), (12, 4), (19, 0), (20, 0), (22, 2), (38, 0), (38, 10),
)  # fmt: skip
_SIZED: Final = (Kind.CHAR, Kind.VARCHAR, Kind.BINARY, Kind.VARBINARY)
_READ_EVERY: Final = 16  # files take most of the time
_TIMES: Final = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ)


def leaf_pairs() -> Iterator[Pair]:
    """Yield each change of a nullable column from one type without parts to another."""
    leaves = [
        *map(LogicalType, _PLAIN),
        *(types.decimal(*numbers) for numbers in _DECIMALS),
        *(types.sized(kind, length) for kind in _SIZED for length in (4, 9)),
        types.sized(Kind.VARCHAR),
        types.sized(Kind.VARBINARY),
        *(types.temporal(kind, precision) for kind in _TIMES for precision in (3, 6, 9)),
    ]
    for before in leaves:
        for after in leaves:
            yield Pair(f"{before} to {after}", _column(before), _column(after))


def _column(node: LogicalType) -> LogicalSchema:
    return LogicalSchema(types.struct([Column("v", node.or_null())]))


@dataclass(frozen=True, slots=True)
class Judge:
    """A kind of table, and the engine that has it.

    Attributes:
        rules: our rules.
        ask: asks the engine.
        columns: returns the columns of a schema as the engine reads them.
        refuses: the parts of an answer that mean that the engine refuses.
        keeps: whether the table keeps columns that are gone, and types that hold the new values.
        reads: whether the engine is asked to write and read files, which it is for some of the pairs.
    """

    rules: TableRules
    ask: Callable[[Sequence[Question]], list[Answer]]
    columns: Callable[[LogicalSchema], object]
    refuses: tuple[str, ...]
    keeps: bool = False
    reads: bool = False


def _columns_of(dialect: str) -> Callable[[LogicalSchema], str]:
    return lambda schema: columns_of(schema, dialect)


JUDGES: Final[Mapping[str, Judge]] = {
    "LOGICAL, ICEBERG_V2": Judge(ICEBERG, in_iceberg, iceberg_schema, ("change", "read"), reads=True),
    "LOGICAL, FLINK": Judge(FLINK, in_flink, flink_row, ("cast", "read")),
    "--tables iceberg": Judge(
        ENGINES["iceberg"],
        in_iceberg,
        _columns_of("iceberg"),
        ("change", "read"),
        keeps=True,
        reads=True,
    ),
    "--tables delta": Judge(ENGINES["delta"], in_delta, _columns_of("delta"), ("change",)),
    "--tables flink": Judge(ENGINES["flink"], in_flink, _columns_of("flink"), ("cast", "read", "new"), keeps=True),
}


@dataclass
class Tally:
    """What came of the pairs of one judge.

    Attributes:
        agreed: how many verdicts are the same.
        refused: how many of these are refusals.
        ours: the pairs that our rules alone refuse, by rule, with the types of the first finding.
        theirs: the pairs that the engine alone refuses, by its reason.
        unheld: the pairs of types that the engine's tables cannot have, whatever changes, by its reason.
    """

    agreed: int = 0
    refused: int = 0
    ours: dict[str, list[str]] = field(default_factory=dict)
    theirs: dict[str, list[str]] = field(default_factory=dict)
    unheld: dict[str, list[str]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many pairs were judged."""
        return self.agreed + sum(map(len, (*self.ours.values(), *self.theirs.values())))


def judged(judge: Judge, pairs: Sequence[Pair]) -> Tally:
    """Return our verdicts beside those of an engine, on the pairs whose schemas the engine's tables can hold."""
    asked: list[Pair] = []
    questions: list[Question] = []
    for pair in pairs:
        if any(validate(schema, judge.rules, DEFAULT_LIMITS) for schema in (pair.before, pair.after)):
            continue
        try:
            before, after = judge.columns(pair.before), judge.columns(pair.after)
        except TranslationError:
            continue
        asked.append(pair)
        reads = judge.reads and len(questions) % _READ_EVERY == 0
        questions.append({"before": before, "after": after, "keep": judge.keeps, "read": reads})
    tally = Tally()
    for pair, answer in zip(asked, judge.ask(questions), strict=True):
        findings = compare(pair.before, pair.after, judge.rules, DEFAULT_LIMITS)
        reasons = [answer[part] for part in judge.refuses if part in answer]
        if "create" in answer:
            tally.unheld.setdefault(_plain(answer["create"]), []).append(f"{pair.name}: {answer['create']}")
            continue
        if bool(findings) == bool(reasons):
            tally.agreed += 1
            tally.refused += bool(findings)
        elif findings:
            rules = " and ".join(sorted({found.rule for found in findings}))
            first = findings[0]
            words = f"{first.before} to {first.after}" if first.before and first.after else first.path
            tally.ours.setdefault(rules, []).append(f"{pair.name}: {words}")
        else:
            tally.theirs.setdefault(_plain(reasons[0]), []).append(f"{pair.name}: {reasons[0]}")
    return tally


_VARYING: Final = re.compile(r"org\.apache[\w.]+|(?<=field )[\w.]+|'[^']*'|\.[\w.\[\]{}]+|: .*|-?\d{3,}")


_WORDS: Final = {"was ": "another value is read"}


def _plain(reason: str) -> str:
    """Return a reason without the names, types and values in it."""
    field_ = re.search(r"missing required field|(?<= )was (?=.*, is )", reason)
    return (
        _WORDS.get(field_[0], field_[0]) if field_ else " ".join(_VARYING.sub(" ", reason).split())[:80] or reason[:80]
    )


def report(name: str, tally: Tally) -> str:
    """Return what came of the pairs of a judge, as Markdown."""
    unheld = sum(map(len, tally.unheld.values()))
    lines = [
        f"`{name}`: {tally.total:,} pairs, the same verdict on {tally.agreed:,}, {tally.refused:,} of them refusals.",
        *([f"For {unheld:,} more the engine has no table at all."] if unheld else []),
        "",
        "| who refuses alone | rule or reason | pairs | for example |",
        "| --- | --- | --: | --- |",
    ]
    parts = (("our rules", tally.ours), ("the engine", tally.theirs), ("the engine, any table", tally.unheld))
    for title, differing in parts:
        for reason, pairs in sorted(differing.items(), key=lambda item: -len(item[1])):
            example = pairs[0].partition(": ")[2].replace("|", "\\|")
            lines.append(f"| {title} | {reason} | {len(pairs):,} | {example} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Judge, and print the tables; with `--keep`, write them into the document."""
    names = [name for name in arguments if name in JUDGES] or list(JUDGES)
    pairs = [*recorded_pairs(), *leaf_pairs()]
    for name in names:
        text = report(name, judged(JUDGES[name], pairs))
        sys.stdout.write(f"{text}\n\n")
        sys.stdout.flush()
        if "--keep" in arguments:
            begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
            before, _, rest = _DOCUMENT.read_text().partition(begin)
            _DOCUMENT.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
