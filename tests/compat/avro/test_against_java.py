"""Random schemas, pairs and references get the same texts, verdicts and findings as from Avro's own Java library."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from harness.avro_schemas import Schemas
from strata.compat.avro.model import UnionType
from strata.compat.avro.parser import parse
from strata.compat.avro.rules import check
from strata.compat.avro.wording import Kind
from strata.compat.schema import ResolvedReference, SchemaParseError

RECORDED = Path(__file__).parents[2] / "conformance"


def read(text, references=(), *, strict=True):
    """Parse a text, with the texts that it refers to."""
    given = [ResolvedReference(f"r{index}", other, f"s{index}") for index, other in enumerate(references)]
    return parse(text, strict=strict, references=given)


def tried(step):
    """Return the result of a step, or the reason of its failure."""
    try:
        return step()
    except SchemaParseError as error:
        return {"reason": str(error)}


def seeds():
    """Return the distinct schemas of the recorded cases."""
    texts = {}
    for name in ("canonical", "compat", "history"):
        with gzip.open(RECORDED / f"avro_{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for case in map(json.loads, lines):
                alone = [one for one in (case["new"], *case.get("previous", ())) if "references" not in one]
                texts |= dict.fromkeys(one["schema"] for one in alone)
    return list(texts)


def parse_task(text, references=()):
    """Return a text to parse, and our result."""
    ours = {
        way: tried(lambda way=way: read(text, references, strict=way == "strict").canonical)
        for way in ("strict", "lenient")
    }
    return {"schema": text, "references": list(references)}, ours


def check_task(new, old, new_references=(), old_references=()):
    """Return two texts to compare, the old one as it is stored, and our findings; None if one is not a schema."""
    try:
        reader, stored = read(new, new_references), read(old, old_references).canonical
    except SchemaParseError:
        return None
    ours = findings(reader, read(stored, old_references, strict=False))
    references = {"reader references": list(new_references), "writer references": list(old_references)}
    return {"reader": new, "writer": stored, **references}, ours


def findings(reader, writer):
    """Return a comparison in the form that `AvroSchemas.java` prints."""
    found = check(reader, writer)
    if found and found[0].kind == Kind.AMBIGUOUS_FIELD:
        return {"reason": f"AvroRuntimeException: {found[0].detail}"}
    return sorted([str(one.kind), one.path, one.detail, one.reader, one.writer] for one in found)


def referred(maker):
    """Return a schema in canonical form, and one that may follow it, for others to refer to."""
    while True:
        made = [tried(lambda text=text: read(text).canonical) for text in maker.pair()]
        if all(isinstance(text, str) and len(text) < 1500 for text in made):
            return made


def made(maker, size):
    """Draw this many tasks of each kind."""
    tasks = {"parse": [parse_task(maker.text()) for _ in range(size)], "check": [], "referring": []}
    while len(tasks["check"]) < size // 2:
        tasks["check"] += filter(None, [check_task(*maker.pair())])
    while len(tasks["referring"]) < size // 4:
        new, old = referred(maker)
        texts = maker.referring([new]), maker.referring([old])
        tasks["referring"].append(parse_task(texts[0], [new]))
        for text in {texts[0], texts[1]}:
            tasks["referring"] += filter(None, [check_task(texts[0], text, [new], [old])])
    return tasks


@pytest.fixture(scope="module", params=[350, pytest.param(12_000, marks=pytest.mark.slow)])
def told(request, run_library):
    """Return random tasks by kind, each with our answer and Avro's."""
    kinds = made(Schemas(Random(2027), seeds()), request.param)
    answers = iter(run_library("strata.compat.AvroSchemas", [task for tasks in kinds.values() for task, _ in tasks]))
    return {kind: [(task, ours, plain(next(answers))) for task, ours in tasks] for kind, tasks in kinds.items()}


def plain(avro):
    """Return Avro's answer in the order of ours."""
    return sorted(avro) if isinstance(avro, list) else avro


def differing(task, ours, avro):
    """Return pairs of the parts in which two answers differ; the wording of a refusal to parse does not count."""
    if "schema" not in task:
        return [] if ours == avro or same_but_unions(ours, avro) else [(ours, avro)]
    pairs = [(ours[way], avro[way]) for way in ours]
    return [(one, other) for one, other in pairs if one != other and not (reason(one) and reason(other))]


def same_but_unions(ours, avro):
    """Return whether two answers differ only in this: Avro names the union that lacks a branch, we name the branch."""
    if not isinstance(ours, list) or not isinstance(avro, list):
        return False
    lacking = [str(Kind.MISSING_UNION_BRANCH), UnionType.kind]
    unions = sum([one[0], one[4]] == lacking for one in avro)
    short = [sorted(one[: 4 if one[0] == lacking[0] else 5] for one in answer) for answer in (ours, avro)]
    return short[0] == short[1] and unions > 0


def reason(answer):
    """Return the reason of a failure, or None."""
    return answer.get("reason", "") if isinstance(answer, dict) else ""


LARGE = (
    "AvroRuntimeException: Can't set a property to null",
    'NullPointerException: Cannot invoke "Object.getClass()"',
)

# Known differences from Avro, each with a condition on the pair of differing parts and the task.
EXPLAINED = {
    "a lone surrogate is printed as its escape, since no UTF-8 text could hold it": (
        lambda _, ours, avro: json.dumps(ours).replace(r"\\uD800", r"\ud800") == json.dumps(avro)
    ),
    "Avro refuses some integers beyond 64 bits as attributes": (
        lambda _, ours, avro: not reason(ours) and reason(avro).startswith(LARGE)
    ),
    "Avro takes a symbol that is not text if the schema is stored already, and prints null": (
        lambda _, ours, avro: reason(ours).startswith("Symbols of enum ") and "null" in avro
    ),
    "Avro takes the kind of a reference without a name for a name, and leaves out what is called so": (
        lambda task, ours, avro: (
            isinstance(ours, str) and isinstance(avro, str) and task["references"][0].startswith('{"type":"array"')
        )
    ),
}


@pytest.mark.parametrize("kind", ["parse", "check", "referring"])
def test_same_as_avro(told, kind):
    """Both libraries accept the same texts, print them alike and find the same; each difference has its row."""
    pairs = [(task, *pair) for task, ours, avro in told[kind] for pair in differing(task, ours, avro)]

    assert [] == [pair for pair in pairs if not any(applies(*pair) for applies in EXPLAINED.values())]
    assert len(pairs) < len(told[kind]) / 20


def test_both_answers_are_frequent(told):
    """The comparison covers legal and illegal schemas, compatible and incompatible pairs."""
    accepted = [isinstance(avro["strict"], str) for _, _, avro in told["parse"]]
    found = [bool(avro) for _, _, avro in told["check"]]

    assert 0.3 < sum(accepted) / len(accepted) < 0.7
    assert 0.3 < sum(found) / len(found) < 0.8
    assert {str(kind) for kind in Kind if kind not in (Kind.AMBIGUOUS_FIELD, Kind.TOO_COMPLEX)} <= {
        finding[0] for _, _, avro in told["check"] if isinstance(avro, list) for finding in avro
    }
