"""Findings with their proofs, of recorded and of random pairs of schemas: what judges look at, and the table by rule.

python -m harness.proof_cases [SIZE]     print the table of docs/compatibility.md from the recorded pairs and
SIZE random pairs of each format (2,000)
"""

import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from harness import avro_cases, protobuf_cases
from harness.json_pairs import PairMaker
from harness.protobuf_changes import changed
from strata.compat.formats import FORMATS
from strata.compat.limits import Limits
from strata.compat.proofs import Budget, NoWitness, Proof, RuleOnly
from strata.compat.result import Incompatibility
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat, SchemaParseError
from strata.compat.witness.search import breaks

__all__ = ["Pair", "proofs", "random_pairs", "recorded_pairs"]

_RECORDED: Final = Path(__file__).resolve().parent.parent / "tests/conformance"
_DOCUMENT: Final = _RECORDED.parent.parent / "docs/compatibility.md"
_BEGIN, _END = "<!-- proofs: begin -->", "<!-- proofs: end -->"
_SIZE: Final = 2000
_RARE: Final = 150  # fewer findings of a rule have no row of their own
_SECONDS: Final = 1.0  # of one pair
_NAMES: Final = {SchemaFormat.AVRO: "avro", SchemaFormat.PROTOBUF: "protobuf", SchemaFormat.JSON: "json"}

_TITLES: Final = {SchemaFormat.AVRO: "Avro", SchemaFormat.PROTOBUF: "Protobuf", SchemaFormat.JSON: "JSON Schema"}


class Pair(NamedTuple):
    """Two schemas, and where they come from."""

    name: str
    reader: ParsedSchema
    writer: ParsedSchema


def recorded_pairs(schema_format: SchemaFormat, every: int = 1) -> Iterator[Pair]:
    """Yield the pairs of each recorded case, or of every tenth or so, in both directions."""
    with gzip.open(_RECORDED / f"{_NAMES[schema_format]}_compat.jsonl.gz", "rt", encoding="utf-8") as lines:
        for case in map(json.loads, islice(lines, 0, None, every)):
            try:
                new = _parsed(schema_format, case, case["new"])
                for previous in (_parsed(schema_format, case, one) for one in case["previous"]):
                    yield Pair(f"{case['id']}, backward", new, previous)
                    yield Pair(f"{case['id']}, forward", previous, new)
            except SchemaParseError:
                continue


def _parsed(schema_format: SchemaFormat, case: Mapping[str, Any], schema: Mapping[str, Any]) -> ParsedSchema:
    registered = {(entry["subject"], entry["version"]): entry for entry in case.get("references", ())}
    found: dict[tuple[str, int], ResolvedReference] = {}

    def follow(referring: Mapping[str, Any]) -> None:
        for reference in referring.get("references", ()):
            key = reference["subject"], reference["version"]
            if key not in found:
                follow(registered[key])
                found[key] = ResolvedReference(reference["name"], registered[key]["schema"], f"{key[0]} {key[1]}")

    follow(schema)
    return FORMATS[schema_format].parse(schema["schema"], strict=False, references=[*found.values()])


def random_pairs(schema_format: SchemaFormat, chance: Random) -> Iterator[Pair]:
    """Yield random pairs without end: small changes of schemas."""
    number = 0
    make = _MAKERS[schema_format](chance)
    while True:
        number += 1
        try:
            reader, writer = (FORMATS[schema_format].parse(text, strict=False) for text in make())
        except SchemaParseError:
            continue
        yield Pair(f"random {number}", reader, writer)


def _avro(chance: Random) -> Callable[[], tuple[str, str]]:
    maker = avro_cases.Maker(chance)

    def make() -> tuple[str, str]:
        case = maker.case()
        return case.reader, case.writer

    return make


def _protobuf(chance: Random) -> Callable[[], tuple[str, str]]:
    maker = protobuf_cases.Maker(chance)

    def make() -> tuple[str, str]:
        kind = maker.kind()
        texts = [kind.text(), changed(kind, chance).text()]
        chance.shuffle(texts)
        return texts[0], texts[1]

    return make


def _json(chance: Random) -> Callable[[], tuple[str, str]]:
    maker = PairMaker(chance)

    def make() -> tuple[str, str]:
        texts = [json.dumps(schema) for schema in maker.pair()]
        chance.shuffle(texts)
        return texts[0], texts[1]

    return make


_MAKERS: Final[Mapping[SchemaFormat, Callable[[Random], Callable[[], tuple[str, str]]]]] = {
    SchemaFormat.AVRO: _avro,
    SchemaFormat.PROTOBUF: _protobuf,
    SchemaFormat.JSON: _json,
}


def proofs(pair: Pair) -> list[tuple[Incompatibility, Proof]]:
    """Return the findings of the check of a pair, each with its proof."""
    findings = FORMATS[pair.writer.format].check(pair.reader, pair.writer)
    budget = Budget(Limits().ending_in(_SECONDS))
    return list(zip(findings, breaks(pair.reader, pair.writer, findings, budget), strict=True))


def _shape(proof: Proof) -> str:
    if isinstance(proof, NoWitness):
        return "undecided"
    return "rule only" if isinstance(proof, RuleOnly) else "witness"


def _rows(schema_format: SchemaFormat, size: int) -> Iterator[str]:
    counts: dict[str, Counter[str]] = {}
    pairs = recorded_pairs(schema_format)
    drawn = random_pairs(schema_format, Random(2031)) if schema_format in _MAKERS else iter(())  # noqa: S311
    for pair in (*pairs, *(pair for pair, _ in zip(drawn, range(size), strict=False))):
        for finding, proof in proofs(pair):
            counts.setdefault(finding.kind, Counter())[_shape(proof)] += 1
    rare = [rule for rule in counts if counts[rule].total() < _RARE]
    rows = [(f"`{rule}`", counts[rule]) for rule in sorted(counts) if rule not in rare]
    if rare:
        rows.append(
            (f"others, below {_RARE} findings each ({len(rare)})", sum((counts[rule] for rule in rare), Counter()))
        )
    for rule, shapes in rows:
        shown = " | ".join(f"{shapes[name]:,}" for name in ("witness", "rule only", "undecided"))
        yield f"| {_TITLES[schema_format]} | {rule} | {shown} |"


def main(arguments: Sequence[str]) -> None:
    """Print the table; with `--keep`, write it into the document."""
    size = int(next((argument for argument in arguments if argument.isdecimal()), _SIZE))
    lines = ["| format | rule | witness | rule only | undecided |", "| --- | --- | --: | --: | --: |"]
    for schema_format in _NAMES:
        lines += _rows(schema_format, size)
    table = "\n".join(lines)
    sys.stdout.write(table + "\n")
    if "--keep" in arguments:
        before, begin, rest = _DOCUMENT.read_text().partition(_BEGIN)
        _DOCUMENT.write_text(f"{before}{begin}\n{table}\n{_END}{rest.partition(_END)[2]}")


if __name__ == "__main__":
    main(sys.argv[1:])
