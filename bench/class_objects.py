"""Objects of classes against plain values, in each format: a record of 8 fields and one with nested classes.

The plain side writes and reads dicts of the same values: in JSON functions turn times into text and back, in Protobuf
messages are made from keywords. All schemas are cached; one thread, thread CPU time.
"""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from bench.encrypted_fields import best_of
from bench.report import table
from strata.serdes import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryClient,
    Schema,
)
from strata.serdes.classes import schema_of
from strata.serdes.protobuf.files import find_message, link

__all__ = ["run"]

RECORDS = 3_000
ROUNDS = 9


@dataclass
class _Flat:
    id: int
    count: int
    price: float
    weight: float
    name: str
    city: str
    paid: bool
    gate: str | None = None


@dataclass
class _Line:
    sku: str
    amount: int
    price: float


@dataclass
class _Order:
    id: int
    at: datetime
    customer: str
    lines: list[_Line] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)


class _FlatStruct(msgspec.Struct):
    id: int
    count: int
    price: float
    weight: float
    name: str
    city: str
    paid: bool
    gate: str | None = None


class _LineStruct(msgspec.Struct):
    sku: str
    amount: int
    price: float


class _OrderStruct(msgspec.Struct):
    id: int
    at: datetime
    customer: str
    lines: list[_LineStruct] = msgspec.field(default_factory=list)
    tags: dict[str, str] = msgspec.field(default_factory=dict)


_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_FLAT: Any = (7, 42, 9.75, 0.5, "customer 12", "Zürich", True, "C7")
_LINES: Any = [("ab-1", 3, 1.5), ("cd-2", 1, 20.0), ("ef-3", 7, 0.25)]
_SIDES: Any = {
    "8 fields": (_Flat(*_FLAT), _FlatStruct(*_FLAT)),
    "order, 3 lines": (
        _Order(7, _AT, "customer 12", [_Line(*line) for line in _LINES], {"a": "b"}),
        _OrderStruct(7, _AT, "customer 12", [_LineStruct(*line) for line in _LINES], {"a": "b"}),
    ),
}
_SERDES: Any = {
    "AVRO": (AvroSerializer, AvroDeserializer),
    "JSON": (JsonSerializer, JsonDeserializer),
    "PROTOBUF": (ProtobufSerializer, ProtobufDeserializer),
}


def run() -> str:
    """Measure each format, and return the table."""
    with RegistryClient("mock://bench") as client:
        rows = [
            [f"{name}, {what}", *_measure(client, name, what, *objects)]
            for name in _SERDES
            for what, objects in _SIDES.items()
        ]
    head = ["µs a record", "write", "dataclass", "msgspec", "read", "dataclass", "msgspec"]
    return (
        f"{RECORDS:,} records, one thread, best of {ROUNDS} runs in turn; in brackets the ratio.\n\n{table(head, rows)}"
    )


def _measure(client: RegistryClient, name: str, what: str, data: Any, struct: Any) -> list[str]:
    writes, reads = [], []
    for write, read, value, topic in (
        _plain(client, name, what, data),
        *(
            (_SERDES[name][0](client, type(one)), _SERDES[name][1](client, type(one)), one, f"{name} {what} {number}")
            for number, one in enumerate((data, struct))
        ),
    ):
        frame = write(value, topic=topic)
        read(frame, topic=topic)
        writes.append(lambda write=write, value=value, topic=topic: write(value, topic=topic))
        reads.append(lambda read=read, frame=frame, topic=topic: read(frame, topic=topic))
    times = best_of([*writes, *reads], RECORDS, ROUNDS)
    return [*_row(times[:3]), *_row(times[3:])]


def _row(times: list[float]) -> list[str]:
    return [f"{times[0]:.2f}", *(f"{time:.2f} ({time / times[0]:.2f})" for time in times[1:])]


def _plain(client: RegistryClient, name: str, what: str, value: Any) -> tuple[Any, Any, Any, str]:
    """Return the serdes of plain values, and such a value."""
    schema = schema_of(type(value), name)
    plain = asdict(value)
    topic = f"{name} {what} plain"
    if name != "PROTOBUF":
        write, read = _SERDES[name]
        if name == "JSON" and "at" in plain:
            return write(client, schema, _with_text), read(client, from_dict=_with_time), plain, topic
        return write(client, schema), read(client), plain, topic
    from google.protobuf.message_factory import GetMessageClass

    kind: Any = GetMessageClass(find_message(link(Schema(schema.text, name), {}), (0,)))
    write_message = ProtobufSerializer(client, kind)

    def write_keywords(fields: Any, topic: str) -> Any:
        return write_message(kind(**fields), topic=topic)

    return write_keywords, ProtobufDeserializer(client, as_dict=True), plain, topic


def _with_text(value: Any, _context: Any) -> Any:
    return {**value, "at": value["at"].isoformat()}


def _with_time(value: Any, _context: Any) -> Any:
    return {**value, "at": datetime.fromisoformat(value["at"])}
