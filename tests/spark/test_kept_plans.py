"""Names of functions that permanent views keep are understood for good, whatever version of Strata made their plans."""

import base64
import json
import re
import zlib

import pytest

from harness.java_probes import RunJava
from harness.payload_columns import proto
from strata.serdes.client import Schema
from strata.serdes.framing import SchemaId
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding import jvm_function as decoding
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.encoding import jvm_function as encoding
from strata.spark_udfs.encoding.plan import EncodePlan, Target

pytestmark = pytest.mark.spark

SETTINGS = settings_of("http://nowhere")
ORDER = (
    'syntax = "proto3"; package shop; message Order { string id = 1; optional int32 count = 2; '
    "repeated sint64 all = 3; "
    "map<string, bool> flags = 4; State state = 5; enum State { NEW = 0; OLD = 1; } "
    "oneof one { bytes a = 6; double b = 7; } }"
)
JSON = (
    '{"type": "object", "properties": {"id": {"type": "string"}, "lines": {"type": "array", '
    '"items": {"$ref": "#/$defs/line"}}}, "$defs": {"line": {"type": "object", '
    '"properties": {"qty": {"type": "integer"}}}}}'
)
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "count", "type": ["null", "int"], "default": None},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}, "default": "OLD"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1000},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
                "default": "\u0001\u00ff",
            },
            {
                "name": "either",
                "type": [
                    "int",
                    "string",
                    {
                        "type": "record",
                        "name": "Line",
                        "fields": [
                            {"name": "sku", "type": "string", "default": "?"},
                            {"name": "qty", "type": "long"},
                        ],
                    },
                ],
                "default": {"qty": 3},
            },
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": ["a", "b"]},
        ],
    }
)
BAD_AVRO = (
    '{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "string"}, '
    '{"name": "n", "type": "int", "default": "one"}]}'
)
AVRO_WRITER = '{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "string"}]}'
# As the first version of plans had them: the driver in Python planned all.
ENCODE_1 = (
    "orders-value?id=7&mode=DEADLETTER&plan=eNq9lE1vgkAQhv-K4WwMWq22NxvxZEpjbXoQDisMStwPsgtNjeG_l9mtBta0o"
    "dGUEzPvzDyzH7NHJxGSkdx57DgvS3_lP73NnW7HUdEOGEHvMXAYKEW2EFRm4KidyHq-jEEGVeBZVKgem7J27FMem0wTn6RAYx29r"
    "lRO2HddYmResI3JvUczP2Ra7w_QomQD1IQLDiYhk6CARzoqlwVoH4n2oKkJoQrKbqeB2tiocQN1Q1Ia26h-HfXQBqULt2BFouC5j"
    "RvUcaMbroxQarPuGrs4sWCM8EOrxWEDNi2hZKts3rDB61_wsvZ7WbvI9i3vzZHt8VxW7dt9qZzkYPc1avQ1vOaM0QVVZZP6atNOQ"
    "_fsveOfi4q_mGluiUZEhaofYqidO5FGZmDX6_PgVUMRhjrph7X_aZr3cPi_m_9BaAG_3vzJVbiLXQvLssRXsspO0k98Jd3TN3ZdV"
    "JiIAf0zbzpbeKuVt0SvkOk25abCF5WDrRM="
)
PROTOBUF_1 = (
    "?mode=DEADLETTER&plan=eNrNVcFu2zAM_ZXA56CI06bbetsW91Q0ReFhhzkHOqZdobIUSPIwL_C_T5Sa1FaKoA18WE4R-fj4RL"
    "0wu6iUqgYT3Uyih8dVuvr24zaaTiKFUKCi6C6LatQaKszsMYv0k9xerJTNZhZ4SGrK7vrpi1sOlU6EUS3lftmkgPqF5RlbXy6aOi"
    "eqm0lMR9NuHeILHTjkyD1eCvT4rUKNYuNAJXCNFPyLSnrcbOZhmktDkZkjxT_uYFSD3XQyEPIbeIOhlHlfyueRpMTdehrML5wKhE"
    "Ku-0Li-XuU0CVPC1lMfa0s3YTCieShiE8DEedqGH6Giq5PK2LF_-GVjWyEOemVxTgvFIedgfOw7-XgVUKT1iDas4YwD1uX9CsOm1"
    "8NmsdHzbdn9b7s7ZNw2Qy2CeGemSg8KItCzdqAOfpRLwaar0YyjeOhzvsFOPO4--SnB8b-vLpbWp3duutovZIMgu-_WMWq2RhKlQ"
    "x5od1qcLyUZUWviLBMVBQRDbdX4Pgq1Y7PQAEGiL2juRxInHv7PEwYrOySHxJ5d57gsV588wqgFLSUQY41CpO-xLn0YjdSGGBC39"
    "tee8HdRy_h3Phme2s6its_lvRoTm7J78O5lBxBHOLfx9DlHDfCI0GfI2cCVPvR98n7FIVsqOwdFGu6cy0LV7ZMvi7vkjRNHqlUKl"
    "YxQZZcd_8ANAZ7tQ=="
)
JSON_1 = (
    "?mode=DEADLETTER&plan=eNqVT8tuwkAM_JXIZ76gNyRyqSqQaG5sDiZrIrf7oBtziKL9964DrajgkB4sWePxPCY4xeRR4KWC1_"
    "fdFlYVJEJLSZHJwCcHa8puIB4_qBNTGAZOTM4Oih8OBtgq-oc8SOLQG8jtqioMx4GGBxKmhONVkIW8ggsdv2R8UOMg1FNSzzbraB"
    "cZz6SyP4sGu3Sip6uiCk4Q0M9XtndPtxKKhItzeHSKln8qiCdBi4IqnnOJ8qsxd33qPffVCznyFKT5X7hS-j6di8uytSUddDEIch"
    "i2hXwj5qW_PtrZcFOvN29109R7tY2Jew6asM3fca-3QA=="
)
# As the second version had them: only Avro was still planned in Python, to the bytes of its defaults.
AVRO_2 = (
    "?mode=DEADLETTER&plan=eNq1VcGO2kAM_RWUUyuxVTatOPS2EtzQIm1Re1g4eBOHHXUmk85MKqEV_157JgFCskBWVFGkYHuenz1-5i"
    "36i8YKXUTfR8l4FOXaKHD0I3r4-bSIyGIQMjRseVtFBShc0fcqsq-6_LIw5FpRVPDYEtLaHYwgBVi0bHpes8FtyzrAYKpNFsJygTILUa"
    "0covYfTllnRLHpAd-NR62jqa4K1z79TP5KymAU7F33cqQc4OAuwxwq6QJcHK-i0xTWgcN2im6HfhyChnYIi0qFILtVL1rauojH2a9gXs"
    "ynVMPu-iKSbhHgOhUcGEjd9FrqjUhBLvcuJ6gYB6q8U0JKYT3ylTyyOM67TEojUjxD5mXrGLiXTYapUFBfbUmjJXik2TfxJCjYRyYDmv"
    "Utvs97aKJwr83MH02WaKbtMKHdYZiLAv-fWuzv6mq5vD8iX3tq_uO2p8iH0WjLkJ4hLaZ08aSb0MHGnhkFMAZqRsKhsu1iB91xMrmnN_"
    "H6Xu9433EaTth88MkqdewKnfeN92TZK7KjQzUHtvCqgRfJ1hykRTIpdJARCUbfccl7EL-tjnFonHBDW7cNRETO4_iVdAM-0CKz1_pgHK"
    "_pY6haqJ8m4-TzYLQgvY_c0Y2a2_TybHcv4vAW-EARJO8b3CxJ-RiFZXwVBv_NXKzyNOgyHRZ6by-8xNmDEhUWbtkpO9WFA1HYR8rX5N"
    "pdXYrSmcebzh6m89lyOXtiTG3ERhRhk_0DQ9TYbg=="
)
BAD_AVRO_2 = (
    "?mode=DEADLETTER&plan=eNqNUT1rwzAQ_StCSxanQ8dugXgrBELoUmW4WGdXIEtGOpcW4__eO8ttk9JCN-l96d1p0q-YsotBP6j7Su"
    "k2ph6IL3r3dDxoRhKCxSTIZHSAHg2fjc4vcbg7JKYMqwqTB2hWuoDgHWTMAj2fBaD3YRUkbGKyRdY69Laobt5wK__typRc6H4Jnyt1Yw"
    "0_nS7QH504Ewi2F7Bbiy2MnooD3wZsCK1ia6W6SGoTA26Mns-zLEayWTh9HiRobEioMtAyz9JJWGevTOsggoTRe7h4QVvwGRnqkcByJ0"
    "mfZbKvkHCdwb2w46_5T4gsSPfRLsZ9vds_1qdTfRRvTK5zoWzxA8CHowM="
)


def _encode() -> str:
    target = Target(proto(ORDER), (), SchemaId(7, None, (0,)))
    plan = EncodePlan(SETTINGS, target, "orders-value", bytes.fromhex("000000000700"), Mode.DEADLETTER)
    return encoding.function_name(plan)


def _decode(reader: Schema, *, members_by_type: bool = False) -> str:
    source = ReaderSource(reader)
    plan = plan_decode(SETTINGS, source, mode=Mode.DEADLETTER, members_by_type=members_by_type)
    return decoding.function_name(plan)


def _version(name: str) -> int:
    packed = name.partition("plan=")[2]
    version: int = json.loads(zlib.decompress(base64.urlsafe_b64decode(packed))).get("version", 1)
    return version


def test_encode_of_protobuf(run_java: RunJava) -> None:
    """A kept plan writes the same frames and errors as one that is made today."""
    columns = {"id": "string", "count": "integer", "all": ["long"], "state": "string", "b": "double", "a": "binary"}
    kinds = {"list": lambda kind: {"type": "array", "elementType": kind[0], "containsNull": False}}
    fields = [
        {
            "name": name,
            "type": kinds["list"](kind) if isinstance(kind, list) else kind,
            "nullable": True,
            "metadata": {},
        }
        for name, kind in columns.items()
    ]
    rows = [
        ["6964", 3, [1, -1], "4f4c44", 4607182418800017408, None],
        ["", None, [], "4e4557", None, "00ff"],
        ["6964", 3, [1], "4e4f4e45", None, None],
        ["6964", 3, [1], "4e4557", 1, "00"],
    ]
    given = {"type": json.dumps({"type": "struct", "fields": fields}), "values": rows}

    kept, made = run_java("strata.spark.EncodeProbe", [{"plan": name, **given} for name in (ENCODE_1, _encode())])

    assert (1, 3) == (_version(ENCODE_1), _version(_encode()))
    assert kept == made
    assert [1, 1, 2, 2] == list(map(len, kept))
    assert ["00000000070" + "00a0269641003" + "1a020201" + "280139000000000000f03f"] == kept[0]


@pytest.mark.parametrize(
    ("probe", "kept", "reader", "payloads", "more"),
    [
        (
            "ProtobufProbe",
            PROTOBUF_1,
            proto(ORDER),
            ["0a0269641003", "1a020201280139000000000000f03f", "2807", "0a05"],
            True,
        ),
        ("JsonProbe", JSON_1, Schema(JSON, "JSON"), [b'{"lines":[{"qty":1}]}'.hex(), b'{"id":1}'.hex()], False),
    ],
    ids=["protobuf", "json"],
)
def test_decode(run_java: RunJava, probe: str, kept: str, reader: Schema, payloads: list[str], *, more: bool) -> None:
    """A kept plan reads the same values and reasons as one that is made today."""
    from strata.compat.protobuf.formats import serialized
    from strata.compat.protobuf.parser import parse

    files = {key: serialized(parse(ORDER, strict=False)) for key in ("writer", "reader")} if more else {}
    names = [kept, _decode(reader)]

    old, new = run_java(f"strata.spark.{probe}", [{"plan": name, "payloads": payloads, **files} for name in names])

    assert [1, 3] == list(map(_version, names))
    assert old == new
    assert len(payloads) == len(old["ours"])
    assert {"value", "reason"} == {next(iter(one)) for one in old["ours"]}


def test_decode_of_avro(run_java: RunJava) -> None:
    """So does one of Avro, with its defaults, the names of its members, and a default that is not valid."""
    made = [_decode(Schema(AVRO), members_by_type=True), _decode(Schema(BAD_AVRO))]
    payloads = ["046964", "00", "04"]

    answers = run_java(
        "strata.spark.Probe",
        [{"plan": name, "writer": AVRO_WRITER, "payloads": payloads} for name in (AVRO_2, BAD_AVRO_2, *made)],
    )

    assert [2, 2, 3, 3] == [_version(name) for name in (AVRO_2, BAD_AVRO_2, *made)]
    assert answers[:2] == answers[2:]
    assert "expected int, got 'one'" in answers[1]["ours"][0]["reason"]
    assert ["id", None, "OLD", 1_000_000, "5.11", [None, None, ["?", 3]], ["a", "b"]] == answers[0]["ours"][0]["value"]


def test_the_type_of_avro(run_java: RunJava) -> None:
    """A kept plan of Avro, which states the column's type, states the one that the JVM makes today."""
    told = run_java(
        "strata.spark.ColumnsProbe", [{"plan": name} for name in (AVRO_2, _decode(Schema(AVRO), members_by_type=True))]
    )

    assert [told[0], told[0]] == told
    assert "Line" in json.dumps(told)


def test_a_plan_of_a_newer_version(run_java: RunJava) -> None:
    """A jar that is older than the plan says so, and does not guess."""
    content = {"version": 4, "format": "JSON", "mode": "DEADLETTER", "origin": []}
    newer = base64.urlsafe_b64encode(zlib.compress(json.dumps(content).encode())).decode()
    with pytest.raises(
        AssertionError, match=re.escape("a plan of version 4, and this jar of Strata reads versions up to 3")
    ):
        run_java("strata.spark.JsonProbe", [{"plan": f"?plan={newer}", "payloads": []}])
