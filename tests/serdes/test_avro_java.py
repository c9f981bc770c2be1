"""Random writer schemas, reader schemas and values give the same result as Avro's own Java library, or both refuse."""

import math
import re
import struct
from decimal import Decimal
from random import Random
from typing import NamedTuple

import pytest

from harness.avro_cases import Case, Maker, zigzag
from strata.serdes.avro import Branch, compile_decoder, compile_encoder
from strata.serdes.avro.schema import Array, Map, Primitive, Record, Union, parse
from strata.serdes.errors import DecodeError, SerdeError

SHAPE = {"numeric_times": True, "tagged_unions": True}


class Answer(NamedTuple):
    """`{"value": …}` or `{"reason": …}` for each: the payload written again, and read with the reader schema."""

    written: dict
    read: dict


class Told(NamedTuple):
    """A case, our answers to it, and Avro's."""

    case: Case
    ours: Answer
    avro: Answer


@pytest.fixture(scope="module", params=[80, pytest.param(6000, marks=pytest.mark.slow)])
def told(request, run_library):
    """Return random cases with both answers."""
    maker = Maker(Random(2027))
    cases = [maker.case() for _ in range(request.param)]
    tasks = [
        {"writer": case.writer, "reader": case.reader, "payload": as_avro(case, case.payload).hex()} for case in cases
    ]
    answers = [Answer(**answer) for answer in run_library("strata.serdes.AvroJava", tasks)]
    return [Told(case, ours(case), avro) for case, avro in zip(cases, answers, strict=True)]


def as_avro(case, payload):
    """Return the payload with the length before a top-level `bytes`, which Avro has and registry clients leave out."""
    return zigzag(len(payload)) + payload if "a top-level bytes" in case.changes else payload


def ours(case):
    """Return the decoder's and the encoder's answers to a case."""
    return Answer(
        tried(lambda: as_avro(case, compile_encoder(case.writer)(value_of(case))).hex()),
        tried(lambda: plain(compile_decoder(case.writer, case.reader, **SHAPE)(case.payload), parse(case.reader))),
    )


def value_of(case):
    """Return the value, with dates and times within Python's range, and numbers for those beyond."""
    try:
        return compile_decoder(case.writer, tagged_unions=True)(case.payload)
    except DecodeError:
        return compile_decoder(case.writer, **SHAPE)(case.payload)


def tried(step):
    """Return the value, or the reason why there is no value."""
    try:
        return {"value": step()}
    except SerdeError as error:
        return {"reason": str(error)}


def plain(value, node):
    """Return a value in the form that `AvroJava.java` prints."""
    match node:
        case Union(branches=branches):
            at, inner = value if isinstance(value, Branch) else (only_branch(branches, value is None), value)
            return [at, plain(inner, branches[at])]
        case Record(fields=fields):
            return [plain(value[one.name], one.type) for one in fields]
        case Array(items=items):
            return [plain(one, items) for one in value]
        case Map(values=values):
            return {key: plain(one, values) for key, one in value.items()}
        case Primitive(kind="float" | "double" as kind):
            bits, number = ("<q", "<d") if kind == "double" else ("<i", "<f")
            return struct.unpack(bits, struct.pack(number, math.nan if math.isnan(value) else value))[0]
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int) else str(value)


def only_branch(branches, is_null):
    """Return the index of null in a union of null and another type, or the index of the other type."""
    return [isinstance(one, Primitive) and one.kind == "null" for one in branches].index(is_null)


def differing(ours, avro):
    """Return pairs of the parts in which two answers differ; a refusal differs from a value as a whole."""
    if ours == avro or ours.keys() == avro.keys() == {"reason"}:
        return []
    return list(parts(ours["value"], avro["value"])) if ours.keys() == avro.keys() else [(ours, avro)]


def parts(ours, avro):
    """Yield the places where two values differ."""
    match ours, avro:
        case list(), list() if len(ours) == len(avro):
            inner = zip(ours, avro, strict=True)
        case dict(), dict() if ours.keys() == avro.keys():
            inner = ((one, avro[key]) for key, one in ours.items())
        case _:
            inner = ()
            if ours != avro:
                yield ours, avro
    for pair in inner:
        yield from parts(*pair)


def says(answer, pattern):
    """Return whether an answer is a refusal that begins with these words."""
    return isinstance(answer, dict) and re.match(pattern, answer.get("reason", "")) is not None


def digits(number):
    """Return a decimal without its point and its trailing zeros."""
    return number.replace(".", "").lstrip("-0").rstrip("0") if isinstance(number, str) else None


ROUNDS = "out of range: a decimal has more than"
FOUND = 'AvroTypeException: (Field ".*" content mismatch: )?Found'

# Known differences from Avro, each with a condition on the pair of differing parts and the case.
READING = {
    "Avro takes the unscaled number of another scale as it stands; here the value stays, or is refused": (
        lambda case, ours, avro: (
            "scale of a decimal" in case.changes and (says(ours, ROUNDS) or digits(ours) == digits(avro) is not None)
        )
    ),
    "Avro takes the number of another unit of time as it stands; here the instant stays": (
        lambda case, ours, avro: (
            "unit of time" in case.changes and type(ours) is type(avro) is int and ours in (avro * 1000, avro // 1000)
        )
    ),
    "Avro does not hold a decimal against its precision": (
        lambda case, ours, _: says(ours, ROUNDS) and "scale of a decimal" not in case.changes
    ),
    "Avro has no number for a decimal of no bytes; here it is zero": (
        lambda _, ours, avro: says(avro, "NumberFormatException: Zero length BigInteger") and "value" in ours
    ),
    "Avro puts question marks for what is not UTF-8": lambda _, ours, avro: says(ours, "invalid utf-8"),
    "Avro tells names in unions apart by their namespace; here the name alone counts": (
        lambda case, _, avro: "namespace" in case.changes and says(avro, FOUND)
    ),
    "Avro holds the writer's own default against renamed fields": (
        lambda _, __, avro: says(avro, "AvroTypeException: Invalid default")
    ),
    "Avro refuses a default that is not a uuid; here a later branch of its union may take it": (
        lambda _, __, avro: says(avro, "IllegalArgumentException: Invalid UUID string")
    ),
    "Avro looks for a field's alias in a record of the same name only": (
        lambda case, _, avro: case.changes >= {"name", "alias of a field"} and says(avro, FOUND)
    ),
}
WRITING = {
    "Avro has no number for a decimal of no bytes; here it is zero": (
        lambda _, __, avro: says(avro, "NumberFormatException: Zero length BigInteger")
    ),
    "Avro takes the first of two decimals in a union, whichever was read; here the branch is known": (
        lambda case, ours, avro: has_two_decimals(parse(case.writer))
    ),
}


def has_two_decimals(node):
    """Return whether a union of the schema has two decimal branches."""
    match node:
        case Union(branches=inner):
            decimals = [one for one in inner if getattr(getattr(one, "logical", None), "name", "") == "decimal"]
            return len(decimals) > 1 or any(map(has_two_decimals, inner))
        case Record(fields=fields):
            return any(has_two_decimals(one.type) for one in fields)
        case Array(items=inner) | Map(values=inner):
            return has_two_decimals(inner)
    return False


def unexplained(pairs, table):
    """Return the pairs that no row of the table explains, and the rows that explained some."""
    explained = [[name for name, applies in table.items() if applies(*pair)] for pair in pairs]
    return [pair for pair, names in zip(pairs, explained, strict=True) if not names], set().union(*explained)


@pytest.mark.parametrize(("which", "table"), [("written", WRITING), ("read", READING)], ids=["write", "read"])
def test_same_or_both_refuse(told, which, table):
    """Both write the same bytes and read the same value; every difference has its row, and every row a case."""
    answers = [(one.case, getattr(one.ours, which), getattr(one.avro, which)) for one in told]
    pairs = [(case, *pair) for case, ours, avro in answers for pair in differing(ours, avro)]

    left, used = unexplained(pairs, table)

    assert [] == left
    assert len(answers) / 2 < sum("value" in ours and ours == avro for _, ours, avro in answers)
    if len(told) > 5000:
        assert table.keys() == used
