"""Schemas that the registry calls compatible decode: our decoders agree with the recorded verdicts of the reference."""

import gzip
import json
import random
from itertools import islice
from pathlib import Path
from uuid import UUID

import pytest

from strata.serdes.avro import Branch, compile_decoder, compile_encoder
from strata.serdes.avro.schema import Array, Enum, Fixed, Kind, Logical, Map, Node, Primitive, Record, Union, parse
from strata.serdes.errors import DecodeError

CASES = Path(__file__).parents[1] / "conformance" / "avro_compat.jsonl.gz"
VALUES_PER_CASE = 8
DEEPEST = 5
PRIMITIVES = {
    Kind.NULL: lambda _: None,
    Kind.BOOLEAN: lambda dice: dice.random() < 0.5,
    Kind.INT: lambda dice: dice.randint(-(2**31), 2**31 - 1),
    Kind.LONG: lambda dice: dice.randint(-(2**63), 2**63 - 1),
    Kind.FLOAT: lambda dice: dice.randint(-100, 100) / 4,
    Kind.DOUBLE: lambda dice: dice.random(),
    Kind.BYTES: lambda dice: b"ab"[: dice.randint(0, 2)],
    Kind.STRING: lambda dice: "aé"[: dice.randint(0, 2)],
}


def compatible_pairs():
    """Yield name, writer and reader of every case that the reference calls compatible, in its level's directions."""
    with gzip.open(CASES, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    for case in cases:
        if case["compatible"] and "references" not in case:
            new, previous = case["new"]["schema"], case["previous"][-1]["schema"]
            if "FORWARD" not in case["level"] and case["level"] != "NONE":
                yield f"{case['rule']}-{case['id'][-6:]}", previous, new
            if "FORWARD" in case["level"] or "FULL" in case["level"]:
                yield f"{case['rule']}-{case['id'][-6:]}-forward", new, previous


def some_value(node: Node, dice: random.Random, depth: int = 0):
    """Draw any value of a schema."""
    many = dice.randint(0, 2) if depth < DEEPEST else 0
    match node:
        case Primitive(kind=Kind.STRING, logical=Logical(name="uuid")):
            return UUID(int=dice.getrandbits(128))
        case Primitive():
            return PRIMITIVES[node.kind](dice)
        case Fixed():
            return dice.randbytes(node.size)
        case Enum():
            return dice.choice(node.symbols)
        case Array():
            return [some_value(node.items, dice, depth + 1) for _ in range(many)]
        case Map():
            return {f"k{index}": some_value(node.values, dice, depth + 1) for index in range(many)}
        case Record():
            return {one.name: some_value(one.type, dice, depth + 1) for one in node.fields}
        case Union():
            position = dice.randrange(len(node.branches)) if depth < DEEPEST else 0
            value = some_value(node.branches[position], dice, depth + 1)
            nulls = sum(isinstance(one, Primitive) and one.kind is Kind.NULL for one in node.branches)
            return value if len(node.branches) - nulls < 2 else Branch(position, value)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_compatible_schemas_decode(step):
    """No value of a writer schema is refused for a difference of the schemas; logical types may refuse values."""
    names = []
    for name, writer, reader in islice(compatible_pairs(), 0, None, step):
        names.append(name)
        dice, node = random.Random(writer), parse(writer)
        encode, decode = compile_encoder(writer), compile_decoder(writer, reader)
        for _ in range(VALUES_PER_CASE):
            assert refusal(decode, encode(some_value(node, dice))) != "resolution", name
    assert 400 / step < len(names)


def refusal(decode, payload):
    """Return the reason why a payload is refused, or None."""
    try:
        decode(payload)
    except DecodeError as error:
        return error.reason
    return None
