"""Both paths decode the same Protobuf frames alike in one Spark job, with random pairs of schemas and damage."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession

from harness.payload_columns import kind_of, proto
from harness.protobuf_cases import Kind, Maker, fill
from strata.serdes.client import ClientSettings, RegistryClient, Schema
from strata.serdes.framing import join, write_indexes
from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs import decode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

RICH = proto(
    'syntax = "proto3"; package shop; import "google/protobuf/wrappers.proto"; '
    'import "google/protobuf/timestamp.proto"; message M { int32 n = 1; string s = 2; repeated int32 many = 3; '
    "map<string, int64> map = 4; I inner = 5; oneof one { int32 a = 6; string b = 7; I c = 8; } optional int64 o = 9; "
    "google.protobuf.Int32Value w = 10; google.protobuf.Timestamp t = 11; uint64 u = 12; repeated I items = 13; "
    "E e = 14; map<int32, I> places = 15; fixed32 x = 16; bytes y = 17; repeated E kinds = 18; "
    "repeated google.protobuf.UInt64Value z = 19; } "
    "message I { int32 n = 1; string s = 2; repeated string more = 3; } enum E { ZERO = 0; ONE = 1; }"
)
BUT_TIMES = [name for name in kind_of(RICH).DESCRIPTOR.fields_by_name if name != "t"]  # Python's years end at 9999
# payloads in hexadecimal
ODD = {
    "empty": "",
    "a number twice": "08010802",
    "a text twice": "1201611201620801",
    "packed, alone and packed again, with others between": "1a020102 1803 0805 1a0104 1200 1a00",
    "a map with a key twice": "220508011001 22050a0161 1001 22050a01611002".replace("22050801 1001 ", ""),
    "a map entry without key": "22021005",
    "a map entry without value": "22030a0161",
    "an empty map entry": "2200",
    "a map entry whose key has another wire type": "220408011005",
    "a message twice is merged": "2a0208012a0312017a2a031a01782a031a0179",
    "one of two: the last": "30053a0161",
    "one of two: the number last": "3a01613005",
    "one of two: a message set again is not merged with what was before": "4202080130054203120178",
    "a wrapper of nothing": "5200",
    "a wrapper twice": "5202080152020802",
    "a time with an unknown part": "5a0408011801",
    "a time of another wire type": "5a020d0100000000",
    "a time out of range": "5a0a08ffffffffffffffff7f",
    "an unknown group": "9b06080112009c06",
    "an unknown group that does not end": "9b060801",
    "a group that ends with another number": "9b06a406",
    "an unknown wire type": "0e",
    "the number zero": "0001",
    "a tag of more than 32 bits": "888080808001 01",
    "a number that does not end": "08ffffffffffffffffffff01",
    "a number of ten bytes": "08ffffffffffffffffff01",
    "a text beyond the end": "120561",
    "a text that is not UTF-8": "1201ff",
    "a text that is not UTF-8, before a later one that is": "1201ff120161",
    "not UTF-8 and then truncated": "1201ff1205",
    "truncated inside, and not UTF-8 later": "2a02120512 01ff",
    "a number as a text": "0a0131",
    "a text as a number": "1001",
    "a message as a number": "2801",
    "a packed number cut short": "1a0180",
    "fixed as packed": "82010401000000",
    "an enum that is unknown": "7007",
    "an enum of ten bytes": "70ffffffffffffffffff01",
    "enums packed and not": "92010201079001 01",
    "items": "6a0008056a0208016a051a01611a00",
    "wrappers": "9a010208059a01009a010b08ffffffffffffffffff01",
    "the largest": "60ffffffffffffffffff01",
    "places": "7a02080 17a06080112020805 7a0208 01".replace(" ", ""),
    "not UTF-8 in a key": "22050a01ff1001",
}


def _columns(registry: ClientSettings, name: str, reader: Schema, columns: Sequence[str] | None = None) -> list[Column]:
    """Return the frames' column decoded on each path."""
    return [
        decode(name, registry=registry, reader_schema=reader, columns=columns, path=path).alias(f"{path}_{name}")
        for path in ("jvm", "python")
    ]


def _frame(client: RegistryClient, schema: Schema, payload: bytes) -> bytes:
    return join(client.register("protobuf-paths", schema).schema_id, write_indexes((0,)) + payload)


@pytest.mark.parametrize(
    "columns", [None, ["s", "inner", "a", "map"], ["s", "a", "s"]], ids=["all columns", "some", "one twice"]
)
def test_odd_payloads(spark: SparkSession, client: RegistryClient, columns: list[str] | None) -> None:
    """Every wire form that writers or accidents make gives the same value or reason on both paths."""
    frames = [_frame(client, RICH, bytes.fromhex(payload.replace(" ", ""))) for payload in ODD.values()]
    rows = spark.createDataFrame(pa.table({"f": pa.array(frames, pa.binary())})).coalesce(1)

    compared = _sorted(rows.select(*_columns(client.settings, "f", RICH, columns)), ["f"])

    assert {} == {name: pair for name, pair in zip(ODD, compared, strict=True) if pair[0] != pair[1]}


def _sorted(decoded: DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the values of both paths, name by name, as Python values whose maps compare by content."""
    rows = decoded.collect()
    return [(_plain(row[f"jvm_{name}"]), _plain(row[f"python_{name}"])) for name in names for row in rows]


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return {name: _plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _families(chance: Random, readers: int, writers: int) -> list[tuple[Kind, list[Kind]]]:
    maker = Maker(chance)
    kinds = [maker.kind() for _ in range(readers)]
    return [(kind, [kind, *(maker.changed(kind) for _ in range(writers - 1))]) for kind in kinds]


def _payloads(kind: Kind, chance: Random, count: int) -> list[bytes]:
    message = kind_of(proto(kind.text()))
    return [fill(message(), chance).SerializeToString() for _ in range(count)]


@pytest.mark.parametrize(("readers", "each"), [(3, 10), pytest.param(40, 40, marks=pytest.mark.slow)])
def test_random_schemas(spark: SparkSession, client: RegistryClient, readers: int, each: int) -> None:
    """Both paths decode messages of several writer schemas for each reader schema to the same columns."""
    chance = Random(7)
    families = _families(chance, readers, 4)
    names = [f"f{index}" for index in range(readers)]
    table = {}
    for name, (_, writers) in zip(names, families, strict=True):
        frames = [
            _frame(client, proto(one.text()), payload) for one in writers for payload in _payloads(one, chance, each)
        ]
        table[name] = pa.array(frames, pa.binary())
    rows = spark.createDataFrame(pa.table(table)).coalesce(1)

    decoded = rows.select(
        *(
            column
            for name, (reader, _) in zip(names, families, strict=True)
            for column in _columns(client.settings, name, proto(reader.text()))
        )
    )

    kinds = [kind for _, kind in decoded.dtypes]
    assert kinds[::2] == kinds[1::2]
    compared = _sorted(decoded, names)
    assert readers * 4 * each == len(compared)
    assert [] == [one for one in compared if one[0] != one[1]][:3]
    assert 0.5 < sum(one[0]["error"] is None for one in compared) / len(compared) < 1


@pytest.mark.parametrize("count", [1500, pytest.param(200_000, marks=pytest.mark.slow)])
def test_damaged_frames(spark: SparkSession, client: RegistryClient, count: int) -> None:
    """No task fails; each frame is a value or a dead letter with exactly its bytes, the same on both paths."""
    chance = Random(2026)
    message = kind_of(RICH)
    good = [_frame(client, RICH, fill(message(), chance).SerializeToString()) for _ in range(50)]
    for start in range(0, count, 20_000):
        damaged = [_damaged(chance.choice(good), chance) for _ in range(min(20_000, count - start))]
        rows = spark.createDataFrame(pa.table({"f": pa.array(damaged, pa.binary())})).repartition(2)
        patience = ClientSettings.of(client.settings.urls[0], missing_ttl=600)
        install(spark, registry=patience)
        compared = _sorted(rows.select(*_columns(patience, "f", RICH, BUT_TIMES)), ["f"])

        assert [] == [one for one in compared if one[0] != one[1]][:3]
        dead = [jvm for jvm, _ in compared if jvm["error"] is not None]
        assert all(jvm["value"] is None for jvm in dead)
        assert not Counter(bytes(jvm["error"]["frame"]) for jvm in dead) - Counter(damaged)
        assert len(damaged) / 10 < len(dead) < len(damaged)


def _damaged(frame: bytes, chance: Random) -> bytes:
    """Return a frame that is cut, or of which some bytes are changed, doubled or lost."""
    made = bytearray(frame)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(made)) if chance.random() < 0.2 else chance.randrange(5, len(made))
        what = chance.randrange(4)
        if what == 0:
            made[place] = chance.randrange(256)
        elif what == 1:
            del made[place:]
        elif what == 2:
            made[place:place] = made[place : place + chance.randint(1, 9)]
        else:
            del made[place : place + chance.randint(1, 3)]
        if len(made) < 7:
            break
    return bytes(made)


def test_parts_that_only_python_decodes(client: RegistryClient, caplog: pytest.LogCaptureFixture) -> None:
    """A reader schema with such a part is refused for the JVM, and says which part it is."""
    schema = proto(
        'syntax = "proto3"; package shop; import "google/protobuf/struct.proto"; '
        "message M { int32 n = 1; google.protobuf.Struct s = 2; }"
    )
    says = r"path='jvm' does not decode the google\.protobuf\.Struct shop\.M\.s"

    with pytest.raises(ValueError, match=says):
        decode("f", registry=client.settings, reader_schema=schema, path="jvm")
    decode("f", registry=client.settings, reader_schema=schema, columns=["n"], path="jvm")


def test_a_message_inside_another(spark: SparkSession, client: RegistryClient) -> None:
    """Frames name nested messages by their indexes, and other messages become dead letters."""
    schema = proto(
        'syntax = "proto3"; message A { int32 n = 1; message B { string s = 1; message C {} } } message D {}'
    )
    schema_id = client.register("protobuf-paths", schema).schema_id
    paths = [(0, 0), (0,), (1,), (0, 0, 0), (2,), (0, 5)]
    frames = [join(schema_id, write_indexes(path) + b"\x0a\x01x") for path in paths]
    frames += [join(schema_id, bytes.fromhex(one)) for one in ("", "02", "01", "04 00", "8002", "ffffffffff", "0480")]
    rows = spark.createDataFrame(pa.table({"f": pa.array(frames, pa.binary())})).coalesce(1)

    decoded = rows.select(
        *(
            decode("f", registry=client.settings, reader_schema=schema, message="A.B", path=path).alias(f"{path}_f")
            for path in ("jvm", "python")
        )
    )
    jvm, python = zip(*_sorted(decoded, ["f"]), strict=True)

    assert find_message(link(schema, {}), (0, 0)).full_name == "A.B"
    assert list(python) == list(jvm)
    assert {"s": "x"} == jvm[0]["value"]
    assert "message is A" == jvm[1]["error"]["reason"]
