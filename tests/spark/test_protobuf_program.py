"""The JVM's Protobuf program agrees outside Spark with Google's own Java library.

A small Java program reads schemas and payloads and writes values, so that thousands of cases take seconds.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import pytest

from harness.java_probes import RunJava
from harness.payload_columns import kind_of, proto
from harness.protobuf_cases import Field, Kind, Maker, fill
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.parser import parse
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode

pytestmark = pytest.mark.spark


class Case(NamedTuple):
    """A reader's and a writer's message, a payload, our answer and Google's."""

    reader: Kind
    writer: Kind
    payload: bytes
    ours: dict[str, Any]
    google: dict[str, Any]
    chosen: dict[str, Any]
    """Our answer of some columns."""
    of_google: dict[str, Any]
    """The part of Google's that these columns are."""


def _cases(run_java: RunJava, readers: int, writers: int, each: int) -> list[Case]:
    chance = Random(2026)
    maker = Maker(chance)
    pairs = [
        (reader, writer)
        for reader in (maker.kind() for _ in range(readers))
        for writer in (reader, *(maker.changed(reader) for _ in range(writers - 1)))
    ]
    payloads = [
        [fill(message(), chance).SerializeToString() for _ in range(each)]
        for message in (kind_of(proto(writer.text())) for _, writer in pairs)
    ]
    for given in payloads:
        given.append(b"".join(chance.sample(given, 2)))  # fields twice, and several members of a oneof
    chosen = [sorted(chance.sample(range(len(one.fields)), chance.randint(1, len(one.fields)))) for one, _ in pairs]
    lines = [
        {
            "plan": _plan(reader, places),
            "writer": _descriptor(writer),
            "reader": _descriptor(reader),
            "payloads": [payload.hex() for payload in given],
        }
        for columns in ([None] * len(pairs), chosen)
        for (reader, writer), given, places in zip(pairs, payloads, columns, strict=True)
    ]
    answers = run_java("strata.spark.ProtobufProbe", lines)
    whole, parts = answers[: len(pairs)], answers[len(pairs) :]
    return [
        Case(reader, writer, *one, _part(one[2], places))
        for (reader, writer), given, answer, part, places in zip(pairs, payloads, whole, parts, chosen, strict=True)
        for one in zip(given, answer["ours"], answer["google"], part["ours"], strict=True)
    ]


def _plan(reader: Kind, places: Sequence[int] | None) -> str:
    source = ReaderSource(proto(reader.text()))
    numbers = sorted(field.number for field in reader.fields)
    columns = None if places is None else [f"f{numbers[place]}" for place in places]
    return function_name(plan_decode(settings_of("http://nowhere"), source, mode=Mode.DEADLETTER, columns=columns))


def _part(answer: dict[str, Any], places: Sequence[int]) -> dict[str, Any]:
    return {"value": [answer["value"][place] for place in places]} if "value" in answer else answer


def _descriptor(kind: Kind) -> str:
    return serialized(parse(kind.text(), strict=False))


def _changes(reader: Kind, writer: Kind) -> bool:
    """Return whether a field has another type in the writer's message."""
    written: dict[int, Field] = {one.number: one for one in writer.fields}
    return any(one.number in written and one.kind != written[one.number].kind for one in reader.fields) or any(
        name in writer.inner and _changes(inner, writer.inner[name]) for name, inner in reader.inner.items()
    )


@pytest.mark.parametrize("readers", [25, pytest.param(250, marks=pytest.mark.slow)], ids=["700", "7000"])
def test_google_agrees(run_java: RunJava, readers: int) -> None:
    """Google's own library reads the same value, or cannot, as long as each field has one type.

    A field of another type it drops, and a number it cuts to the width of the reader's type. Some columns have what
    they have among all.
    """
    cases = _cases(run_java, readers, 4, 6)

    differing = [one for one in cases if one.ours != one.google]

    assert [] == [one for one in differing if not _changes(one.reader, one.writer)][:2]
    assert (
        []
        == [
            one
            for one in cases
            if one.chosen != one.of_google and "value" in one.of_google and not _changes(one.reader, one.writer)
        ][:2]
    )
    assert readers * 28 == len(cases)
    assert len(cases) / 2 < sum("value" in one.ours and one.ours == one.google for one in cases)
    assert [] != differing
