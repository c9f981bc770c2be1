"""Protobuf columns: schema evolution, references, messages named by a frame; no Spark session is needed."""

import pyarrow as pa
import pytest

from harness.payload_columns import FrameRefused, PayloadColumn, kind_of, proto, proto_frame
from strata.serdes.client import Reference, RegistryClient
from strata.serdes.framing import split
from strata.serdes.protobuf import ProtobufSerializer
from strata.serdes.subject_name_strategies import Context
from strata.spark_udfs.arguments import Mode

PROTO3 = 'syntax = "proto3"; package shop; '


def test_three_versions_in_one_column(client: RegistryClient) -> None:
    """Frames of several versions, written by the serializer, may be mixed with nulls."""
    versions = [
        proto(PROTO3 + "message M { int32 id = 1; string gone = 2; }"),
        proto(PROTO3 + "message M { int64 id = 1; }"),
        proto(PROTO3 + "message Before {} message M { int64 id = 1; repeated string tags = 3; }"),
    ]
    kinds = [kind_of(versions[0]), kind_of(versions[1]), kind_of(versions[2], 1)]
    values = [kinds[0](id=1, gone="x"), kinds[1](id=2**40), kinds[2](id=3, tags=["t"])]
    frames = [ProtobufSerializer(client, type(one))(one, topic="proto-growing") for one in values]
    column = PayloadColumn(client, client.get_version("proto-growing-value", "latest").schema, message="shop.M")

    assert 3 == len({split(one)[0] for one in frames})
    assert [
        {"id": 1, "tags": []},
        {"id": 2**40, "tags": []},
        None,
        {"id": 3, "tags": ["t"]},
    ] == column.read(frames[0], frames[1], None, frames[2])


def test_references(client: RegistryClient) -> None:
    """Files import each other, in writer and reader schema, each in its own versions."""
    texts = ["message Base { int32 n = 1; }", "message Base { int64 n = 1; string s = 2; }"]
    bases = [
        client.register("proto-columns-base", proto(f'syntax = "proto3"; package b; {one}')).version for one in texts
    ]
    tops = [
        proto(
            'syntax = "proto3"; import "b.proto"; message Top { b.Base base = 1; repeated b.Base more = 2; }',
            Reference("b.proto", "proto-columns-base", version or 0),
        )
        for version in bases
    ]
    frames = [proto_frame(client, one, b"\x0a\x02\x08\x05\x12\x02\x08\x06") for one in tops]
    column = PayloadColumn(client, tops[1])

    assert "struct<base:struct<n:bigint,s:string>,more:array<struct<n:bigint,s:string>>>" == column.type.simpleString()
    assert [{"base": {"n": 5, "s": ""}, "more": [{"n": 6, "s": ""}]}] * 2 == column.read(*frames)


def test_message_behind_a_map(client: RegistryClient) -> None:
    """A path counts map entries in a descriptor that a client registers: there they are messages too."""
    text = "message A { map<string, int32> m = 1; B b = 2; message B { int32 n = 1; } }"
    outer = kind_of(proto(PROTO3 + text))
    inner = type(outer().b)
    frame = ProtobufSerializer(client, inner)(inner(n=5), topic="proto-behind")
    as_registered = client.get_version("proto-behind-value", "latest").schema

    for reader in (as_registered, proto(PROTO3 + text)):
        assert [{"n": 5}] == PayloadColumn(client, reader, message="shop.A.B").read(frame)


def test_guids(client: RegistryClient) -> None:
    """A frame may name its schema by GUID, followed by a path."""
    schema = proto(PROTO3 + "message A {} message M { int32 n = 1; }")
    serializer = ProtobufSerializer(client, kind_of(schema, 1), {"schema.id.serializer": "guid"})
    frames = [serializer(kind_of(schema, 1)(n=one), topic="proto-guids") for one in (5, 0)]
    column = PayloadColumn(client, schema, message="shop.M")

    assert [{"n": 5}, {"n": 0}, ("malformed", None)] == column.read(*frames, frames[0] + b"\0")


def test_headers(client: RegistryClient) -> None:
    """A record's header may name schema and message; then the payload is bare, and other records may be frames."""
    schema = proto(PROTO3 + "message A {} message M { int32 n = 1; }")
    kind = kind_of(schema, 1)
    headers: list[tuple[str, bytes]] = []
    serializer = ProtobufSerializer(client, kind, {"schema.id.serializer": "header"})
    payload = serializer(kind(n=5), Context("proto-headers", "value", headers))
    (name,) = (value for _, value in headers)
    column = PayloadColumn(client, schema, message="shop.M")

    def records(*given: tuple[bytes | None, bytes | None]) -> pa.Array:
        values, names = (pa.array(one, pa.binary()) for one in zip(*given, strict=True))
        return pa.StructArray.from_arrays([values, names], names=["value", "header"])

    framed = proto_frame(client, schema, b"\x08\x06", 1)
    decoded = column.decode(
        records(
            (payload, name), (framed, None), (None, name), (payload, b"\0"), (payload, name + b"\0"), (b"\x08", name)
        )
    )

    assert b"\x08\x05" == payload
    assert [{"n": 5}, {"n": 6}, None, None, None, None] == decoded.field("value").to_pylist()
    errors = [(one["reason"], one["frame"]) if one else None for one in decoded.field("error").to_pylist()]
    assert [
        None,
        None,
        None,
        ("frame too short", payload),
        ("trailing bytes in the header of the schema", payload),
        ("malformed", b"\x08"),
    ] == errors


def test_modes(client: RegistryClient) -> None:
    """PERMISSIVE gives null; FAILFAST names record, message and reason, and never the payload."""
    schema = proto(
        PROTO3
        + "message M { google.protobuf.Timestamp at = 1; }".replace(
            "message", 'import "google/protobuf/timestamp.proto"; message', 1
        )
    )
    good, bad = (
        proto_frame(client, schema, b""),
        proto_frame(client, schema, b"\x0a\x0c\x08" + b"\xff" * 8 + b"\x7f\x10\x01"),
    )
    failing = PayloadColumn(client, schema, mode=Mode.FAILFAST, origin=["offset"])
    frames = pa.array([good, bad], pa.binary())

    assert [{"at": None}, None, None] == PayloadColumn(client, schema, mode=Mode.PERMISSIVE).read(good, bad, b"\1")
    with pytest.raises(FrameRefused) as caught:
        failing.decode(frames, pa.array([41, 42]))
    number = split(bad)[0]
    assert f"a frame cannot be decoded (schema id {number}, offset 42): out of range (at field at)" == str(caught.value)
