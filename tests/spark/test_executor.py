"""A worker decodes batches and handles its registry's failures; no Spark session is needed."""

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.errors import RegistryUnavailable
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.avro_decoder import AvroDecoder, avro_decoder
from strata.spark_udfs.decoding.plan import DecodePlan, ReaderSource, plan_decode
from strata.spark_udfs.decoding.refusals import FrameRefused
from strata.spark_udfs.decoding.writer_schemas import RegistryNotUsable
from strata.spark_udfs.response_cache import SharedResponses

MakeFrame = Callable[[int, Any, Any], bytes]

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "int"}]}
WIDER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}
INSTANT = {
    "type": "record",
    "name": "Event",
    "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
}


def _decoder(registry: Any, reader: Any, *, mode: Mode = Mode.DEADLETTER, **options: Any) -> AvroDecoder:
    settings = settings_of(registry) if isinstance(registry, ClientSettings) else _impatient(registry.url)
    return avro_decoder(plan_decode(settings, ReaderSource(json.dumps(reader)), mode=mode, **options))


def _impatient(url: str, **options: Any) -> ClientSettings:
    return ClientSettings.of(url, **{"retries": 1, "backoff": 0.01, "timeout": 60.0, **options})


def _binary(frames: list[bytes | None]) -> pa.Array:
    return pa.array(frames, pa.binary())


def test_equal_plans_share_decoders(scripted_registry: Any) -> None:
    """An unpickled copy of a plan shares the decoder, with its cached schemas, of the process."""
    decided = plan_decode(_impatient(scripted_registry.url), ReaderSource(json.dumps(NUMBER)), mode=Mode.PERMISSIVE)

    assert avro_decoder(decided) is avro_decoder(pickle.loads(pickle.dumps(decided)))


def test_places_over_many_parts(scripted_registry: Any, frame: MakeFrame) -> None:
    """In a batch of many parts every value and every error stays at the place of its frame."""
    schema_id = scripted_registry.add(NUMBER)
    damaged = {3, 255, 256, 700, 999}
    frames = [b"\0" if n in damaged else frame(schema_id, NUMBER, {"n": n}) for n in range(1000)]

    decoded = _decoder(scripted_registry, NUMBER).decode(_binary(frames))

    assert [None if n in damaged else {"n": n} for n in range(1000)] == decoded.field("value").to_pylist()
    assert damaged == {n for n, error in enumerate(decoded.field("error").to_pylist()) if error is not None}


def test_empty_batch(scripted_registry: Any) -> None:
    """An empty batch gives no values, of the right type."""
    decoded = _decoder(scripted_registry, NUMBER, mode=Mode.PERMISSIVE).decode(_binary([]))

    assert pa.array([], pa.struct([pa.field("n", pa.int32(), nullable=False)])) == decoded


def test_any_bytes(scripted_registry: Any, frame: MakeFrame, everything: Any) -> None:
    """Any bytes give a valid value or an error for each frame, and do not fail the task."""
    schema, values = everything
    schema_id = scripted_registry.add(schema)
    good = [frame(schema_id, schema, value) for value in values]
    chance = random.Random(2026)
    frames = [_damaged(chance.choice(good), chance) for _ in range(5000)]

    decoded = _decoder(scripted_registry, schema).decode(_binary(frames))

    decoded.validate(full=True)
    has_value = decoded.field("value").is_valid().to_pylist()
    has_error = decoded.field("error").is_valid().to_pylist()
    assert [not one for one in has_value] == has_error
    assert frames == [
        error["frame"] if error else whole
        for error, whole in zip(decoded.field("error").to_pylist(), frames, strict=True)
    ]
    assert 500 < sum(has_error) < 5000


def _damaged(good: bytes, chance: random.Random) -> bytes:
    """Return the frame with some bytes changed after its header, perhaps cut, perhaps longer."""
    changed = bytearray(good)
    for _ in range(chance.randrange(4)):
        changed[chance.randrange(5, len(changed))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    end = chance.choice((None, None, None, chance.randrange(5, len(changed))))
    return bytes(changed[:end]) + chance.choice((b"", b"", b"", b"\0"))


def test_value_that_spark_cannot_hold(scripted_registry: Any, frame: MakeFrame) -> None:
    """An instant beyond Spark's microseconds makes its row a dead letter; its neighbours are decoded."""
    schema_id = scripted_registry.add(INSTANT)
    raw = {**INSTANT, "fields": [{"name": "at", "type": "long"}]}
    frames = [frame(schema_id, raw, {"at": at}) for at in (1000, 2**62, 2000)]

    decoded = _decoder(scripted_registry, INSTANT).decode(_binary(frames))

    assert [False, True, False] == [value is None for value in decoded.field("value").to_pylist()]
    assert [
        None,
        {"reason": "out of range", "schema_id": schema_id, "frame": frames[1]},
        None,
    ] == decoded.field("error").to_pylist()


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_registry_that_refuses(scripted_registry: Any, frame: MakeFrame, status: int) -> None:
    """Any answer except `no such id` fails the task, since nothing is known about the record."""
    schema_id = scripted_registry.add(NUMBER)
    scripted_registry.status = status

    with pytest.raises(RegistryNotUsable, match=f"schema id {schema_id} could not be looked up: .*out of order"):
        _decoder(scripted_registry, NUMBER).decode(_binary([frame(schema_id, NUMBER, {"n": 1})]))


def test_registry_that_is_down(scripted_registry: Any, frame: MakeFrame) -> None:
    """A registry that does not answer fails the task after some attempts; cached ids still decode."""
    known = scripted_registry.add(NUMBER)
    unknown = scripted_registry.add(WIDER)
    decoder = _decoder(scripted_registry, NUMBER, mode=Mode.PERMISSIVE)
    decoder.decode(_binary([frame(known, NUMBER, {"n": 1})]))
    scripted_registry.close()

    assert [{"n": 2}] == decoder.decode(_binary([frame(known, NUMBER, {"n": 2})])).to_pylist()
    with pytest.raises(RegistryNotUsable, match=f"schema id {unknown} could not be looked up: .*does not answer"):
        decoder.decode(_binary([frame(unknown, WIDER, {"n": 1})]))


@pytest.mark.parametrize("kind", ["token", "password", "client_secret"])
def test_workers_with_other_credentials_share_nothing(
    scripted_registry: Any, frame: MakeFrame, tmp_path: Path, kind: str
) -> None:
    """What the registry has answered to one principal, no other one gets, even while the registry is down."""
    schema_id = scripted_registry.add(NUMBER)
    more = {"password": {"username": "ann"}, "client_secret": {"token_url": "http://127.0.0.1:1/", "client_id": "job"}}

    def worker(secret: str) -> AvroDecoder:
        given = {**more.get(kind, {}), kind: secret}
        settings = ClientSettings.of(scripted_registry.url, retries=0, timeout=60.0, **given)
        shared = SharedResponses(settings, tmp_path / "answers")
        shared._once._http._tokens = None  # there is no token endpoint
        plan = plan_decode(settings, ReaderSource(json.dumps(NUMBER)), mode=Mode.PERMISSIVE)
        return AvroDecoder(plan, RegistryClient.from_settings(settings, transport=shared))

    frames = _binary([frame(schema_id, NUMBER, {"n": 1})])
    worker("first").decode(frames)
    scripted_registry.close()

    assert [{"n": 1}] == worker("first").decode(frames).to_pylist()
    with pytest.raises(RegistryNotUsable):
        worker("second").decode(frames)
    assert not [file for file in (tmp_path / "answers").iterdir() if "first" in file.name + file.read_text()]


def test_failfast_names_the_record(scripted_registry: Any, frame: MakeFrame) -> None:
    """A FAILFAST error names the origin, the schema id, the reason and the field."""
    schema_id = scripted_registry.add(NUMBER)
    frames = [frame(schema_id, NUMBER, {"n": 1}), frame(schema_id, NUMBER, {"n": 1})[:-1]]
    decoder = _decoder(scripted_registry, NUMBER, mode=Mode.FAILFAST, origin=["topic", "offset"])

    with pytest.raises(FrameRefused) as caught:
        decoder.decode(_binary(frames), [pa.array(["orders", "orders"]), pa.array([41, 42])])

    expected = f"a frame cannot be decoded (schema id {schema_id}, topic orders, offset 42): truncated (at field n"
    assert str(caught.value).startswith(expected)


def test_credentials_are_sent_and_hidden(scripted_registry: Any, frame: MakeFrame) -> None:
    """The password in a URL goes to the registry, and the plan that carries it does not show it."""
    schema_id = scripted_registry.add(NUMBER)
    settings = settings_of(scripted_registry.url.replace("http://", "http://ann:s3cret@"))
    decided = plan_decode(settings, ReaderSource(schema_id=schema_id), mode=Mode.PERMISSIVE)

    avro_decoder(decided).decode(_binary([frame(schema_id, NUMBER, {"n": 1})]))

    assert {"Basic YW5uOnMzY3JldA=="} == scripted_registry.authorizations
    assert "s3cret" not in repr(decided)
    assert isinstance(decided, DecodePlan)


def test_reader_schema_when_registry_is_down(scripted_registry: Any) -> None:
    """Without a registry, a reader schema that must be fetched is an error that says so."""
    scripted_registry.close()

    with pytest.raises(RegistryUnavailable):
        plan_decode(_impatient(scripted_registry.url), ReaderSource(schema_id=1), mode=Mode.PERMISSIVE)


# name, arguments
CONTRADICTIONS: list[tuple[str, dict[str, Any]]] = [
    ("none", {}),
    ("text and subject", {"reader_schema": '"int"', "subject": "s"}),
    ("subject and id", {"subject": "s", "schema_id": 1}),
    ("version without subject", {"reader_schema": '"int"', "version": 2}),
]


@pytest.mark.parametrize("arguments", [row[1] for row in CONTRADICTIONS], ids=[row[0] for row in CONTRADICTIONS])
def test_reader_source_refuses(arguments: dict[str, Any]) -> None:
    """A reader schema must be named in exactly one way."""
    with pytest.raises(ValueError, match=r"expected exactly one of|version needs subject"):
        ReaderSource(**arguments)
