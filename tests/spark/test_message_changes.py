"""The JVM finds the same changed values in messages as Python, outside Spark."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from random import Random
from typing import Any

import pytest
from google.protobuf.message import DecodeError as ParseError
from google.protobuf.message_factory import GetMessageClass

from harness.java_probes import RunJava
from harness.proof_cases import Pair, random_pairs, recorded_pairs
from harness.protobuf_readers import filled
from harness.registry import RegistryNode
from strata.compat.limits import Limits
from strata.compat.protobuf.formats import serialized
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.schema import SchemaFormat
from strata.compat.witness.protobuf_types import message_types
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import SerdeError
from strata.serdes.framing import write_indexes
from strata.serdes.protobuf.differences import differences, first_missing
from strata.serdes.protobuf.files import indexes_of
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema
from strata.spark_udfs.outcomes import judge_message

pytestmark = pytest.mark.spark


def tasks_of(pairs: Iterator[Pair], chance: Random, each: int) -> Iterator[tuple[dict[str, Any], Any, Any]]:
    """Yield what the probe is asked of a pair without references, and the two messages."""
    for pair in pairs:
        readers, writers = (message_types(side, Limits())[0] for side in (pair.reader, pair.writer))
        for name in sorted(readers.keys() & writers.keys()):
            ours, theirs = readers[name], writers[name]
            if ours.full_name != theirs.full_name:
                continue
            payloads = [filled(GetMessageClass(theirs)(), chance).SerializeToString() for _ in range(each)]
            payloads.append(b"".join(chance.sample(payloads, 2)))  # fields twice, and several members of a oneof
            damaged = [damage(payload, chance) for payload in payloads for _ in range(4)]
            yield (
                {
                    "writer": serialized(pair.writer),
                    "reader": serialized(pair.reader),
                    "message": ours.full_name,
                    "payloads": [payload.hex() for payload in payloads],
                    "damaged": [payload.hex() for payload in (*payloads, *damaged)],
                    **plan_of(pair.reader, ours.full_name),
                    "indexes": write_indexes(indexes_of(theirs)).hex(),
                },
                theirs,
                ours,
            )


def damage(payload: bytes, chance: Random) -> bytes:
    """Return a payload with a byte changed, put in or cut off, which a parser may still read."""
    at = chance.randint(0, len(payload))
    byte = bytes([chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.getrandbits(8)])])
    return payload[:at] + chance.choice([byte, byte + payload[at:], byte + payload[at + 1 :], byte * 10])


def plan_of(reader: Any, message: str) -> dict[str, str]:
    """Return the name of the function that decodes messages; nothing if the JVM does not."""
    source = ReaderSource(Schema(reader.canonical, "PROTOBUF"))
    try:
        plan = plan_decode(settings_of("http://nowhere"), source, mode=Mode.DEADLETTER, message=message)
        return {"plan": function_name(plan)}
    except (UnsupportedSchema, OnlyInPython, SerdeError, ValueError):  # the last for an entry of a map
        return {}


def is_whole(pair: Pair) -> bool:
    """Return whether both schemas of a pair refer to no others."""
    return not any(side.imports for side in (pair.reader, pair.writer) if isinstance(side, ProtobufSchema))


def in_python(writer: Any, reader: Any, payload: bytes) -> list[str] | None:
    """Return the paths that change; None if a parser refuses the bytes, or a required field is missing."""
    try:
        written, read = (GetMessageClass(kind).FromString(payload) for kind in (writer, reader))
    except ParseError:
        return None
    try:
        if written.IsInitialized() and first_missing(read) is not None:
            return None
        return [one.path for one in differences(written, read)]
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize(("size", "every"), [(60, 60), pytest.param(3000, 1, marks=pytest.mark.slow)])
def test_the_same_paths(run_java: RunJava, size: int, every: int) -> None:
    """Both find the same paths; a message that the JVM does not look at closely has none.

    What is only checked is refused as what is built, damaged or not.
    """
    pairs = chain(
        islice(random_pairs(SchemaFormat.PROTOBUF, Random(2041)), size),
        filter(is_whole, recorded_pairs(SchemaFormat.PROTOBUF, every)),
    )
    tasks = list(tasks_of(pairs, Random(43), 6))
    seen: Counter[bool] = Counter()
    seen_decoded: Counter[bool] = Counter()
    seen_read: Counter[bool] = Counter()
    wrong = []
    for (task, writer, reader), answers in zip(
        tasks, run_java("strata.spark.ChangesProbe", [task for task, _, _ in tasks]), strict=True
    ):
        seen_read.update(answer["read"] for answer in answers[len(task["payloads"]) :])
        for payload, answer in zip(task["payloads"], answers[: len(task["payloads"])], strict=True):
            expected = in_python(writer, reader, bytes.fromhex(payload))
            paths = None if "refused" in answer else answer["paths"]
            place = (task["message"], payload, task["writer"], task["reader"])
            are_same = (expected is None) == (paths is None) and Counter(expected) == Counter(paths)
            if not are_same or (expected != [] and not answer["doubt"]):
                wrong.append((place, expected, answer))
            decoded = answer.get("decoded")
            if decoded is not None and (decoded["doubt"], decoded["paths"]) != (answer["doubt"], answer["paths"]):
                wrong.append((place, expected, answer))
            seen_decoded[decoded is not None and decoded["doubt"]] += 1
            seen[answer["doubt"]] += 1
    assert wrong == []
    assert min(*seen.values(), *seen_decoded.values()) > 40
    assert min(seen_read.values()) > 400


JUDGED = [  # the bytes of a message, and reason, path and values before and after of each outcome of a bool, by reason
    ("", [[None, None, None, None]]),
    ("0801", [[None, None, None, None]]),
    ("0805", [[None, None, None, None], ["another value is read", "a", "5", "true"]]),
    ("0a", [["malformed", None, None, None]]),
]


def test_a_judge_of_frames(run_java: RunJava) -> None:
    """The function behind `replay` says what is read, what changes, and why the rest cannot be read; so does Python."""
    text = 'syntax = "proto3"; message A { int32 a = 1; }'
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE")
        schema_id = client.register("judged", Schema(text, "PROTOBUF")).schema_id
        frames = [b"\0" + schema_id.to_bytes(4, "big") + b"\0" + bytes.fromhex(payload) for payload, _ in JUDGED]
        settings = settings_of(node.url)
        answers = {}
        for type_ in ("bool", "string"):
            candidate = Schema(text.replace("int32", type_), "PROTOBUF")
            plan = function_name(plan_decode(settings, ReaderSource(candidate), mode=Mode.DEADLETTER))
            task = {"url": node.url, "plan": plan, "frames": [frame.hex() for frame in frames]}
            [answers[type_]] = run_java("strata.spark.JudgeProbe", [task])
        messages = [
            judge_message(Schema(text.replace("int32", "bool"), "PROTOBUF"), settings, frame, None, None)
            for frame in frames
        ]

    assert [outcomes for _, outcomes in JUDGED] == answers["bool"]
    reasons = [[outcome[0].partition(":")[0] for outcome in outcomes] for outcomes in answers["string"]]
    assert [*[["another value is read", "resolution"]] * 3, ["resolution"]] == reasons
    paths = [{outcome[2] for outcome in outcomes if outcome[0] == "another value is read"} for outcomes in messages]
    assert [set(), set(), {"a"}, set()] == paths
    assert "malformed" == messages[3][0][0].partition(":")[0]
