"""The rules of decoding: a named row each, with what every executor of Spark has to make of its frames.

`tests/spark/test_decode_rules.py` runs the rows of a format through each executor, all of them in one query.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from harness.plain_values import plain
from strata.serdes.client import ClientSettings, Schema
from strata.spark_udfs.arguments import Mode, settings_of
from strata.spark_udfs.decoding.plan import DecodePlan, ReaderSource, plan_decode, reader_type

__all__ = ["Answer", "Rule", "framed", "raw_frames", "schema_of"]

Answer: TypeAlias = dict[str, Any]
"""`{"value": …}`, in the form of `plain_values`, or `{"reason": …}` of a frame."""


def framed(schema_id: int, payload: bytes) -> bytes | None:
    """Return the frame of a payload: magic byte, schema id, payload."""
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def schema_of(document: Any) -> Schema:
    """Return an Avro schema."""
    return Schema(json.dumps(document))


_types: dict[tuple[Schema, str], DataType] = {}
"""The types of columns; each executor asks for all of them."""


class Rule(NamedTuple):
    """Payloads of a writer schema, and what a reader schema makes of them."""

    name: str
    writer: Schema
    reader: Schema
    payloads: Sequence[bytes]
    """Each begins with the indexes of its message if it is Protobuf."""
    answers: Sequence[Answer] = ()
    """The answers for the first payloads."""
    type: str | None = None
    """The reader's type in Spark; None if another row says it."""
    values: Sequence[Any] = ()
    """The values of the other payloads as Arrow gives them."""
    options: Mapping[str, Any] = MappingProxyType({})
    """More options of `decode`: `columns`, `message`, `union_names`."""
    frame: Callable[[int, bytes], bytes | None] = framed
    """Makes a frame of a schema id and a payload, for frames that are damaged outside their payload."""
    only_python: bool = False
    """Whether the JVM refuses the reader schema."""
    not_in_sql: bool = False
    """Whether no registry has the reader schema, or SQL has no such option."""

    @property
    def plan(self) -> DecodePlan:
        """Return the plan for a registry that nothing asks."""
        return self.plan_for(settings_of("http://nowhere"))

    def plan_for(self, registry: ClientSettings) -> DecodePlan:
        """Return the plan as `decode` makes it."""
        options = {**self.options}
        by_type = options.pop("union_names", "member") == "type"
        source = ReaderSource(self.reader)
        return plan_decode(registry, source, mode=Mode.DEADLETTER, members_by_type=by_type, **options)

    @property
    def column(self) -> tuple[Schema, str]:
        """Return what names a column of frames: rules of the same reader schema and options share it."""
        return self.reader, repr(sorted(self.options.items()))

    @property
    def read_type(self) -> DataType:
        """Return the type of the reader schema in Spark."""
        if self.column not in _types:
            _types[self.column] = reader_type(self.plan)
        return _types[self.column]

    @property
    def expected(self) -> list[Answer]:
        """Return the answers for all payloads."""
        values = plain(pa.array(self.values, to_arrow_type(self.read_type))) if self.values else []
        return [*self.answers, *({"value": value} for value in values)]


# name, frame, reason
_RAW: list[tuple[str, Callable[[int, bytes], bytes], str]] = [
    ("no bytes", lambda *_: b"", "frame too short"),
    ("too short for an id", lambda *_: b"\0\0\0", "frame too short"),
    ("another magic byte", lambda _, payload: b"\2" + bytes(4) + payload, "wrong magic byte 0x02"),
    ("a text", lambda *_: b'{"n": 1}', "wrong magic byte 0x7b"),
    ("an unknown id", lambda _, payload: b"\0\x7f\xff\xff\xff" + payload, "unknown schema id"),
    (
        "an id beyond 31 bits",
        lambda _, payload: b"\0\xff\xff\xff\xff" + payload,
        "schema id 4294967295 is outside 0 to 2147483647",
    ),
    ("an unknown GUID", lambda _, payload: b"\1" * 17 + payload, "unknown schema guid"),
    ("a GUID cut short", lambda *_: b"\1" * 16, "frame too short"),
    ("a version of Glue", lambda _, payload: b"\3\0" + b"u" * 16 + payload, "unknown Glue schema version"),
    ("a header of Glue cut short", lambda *_: b"\3\0" + b"u" * 15, "frame too short"),
]


def raw_frames(reader: Schema, payload: bytes, others: Sequence[Schema]) -> Iterator[Rule]:
    """Yield the rules of frames that the header spoils, and of null.

    Args:
        reader: reader and writer schema.
        payload: a payload of it.
        others: schemas of other formats.
    """
    for name, frame, reason in _RAW:
        yield Rule(f"frame: {name}", reader, reader, [payload], ({"reason": reason},), frame=frame)
    for other in others:
        reason = f"writer schema is {other.format}"
        yield Rule(f"frame: a schema of {other.format}", other, reader, [payload], ({"reason": reason},))
    yield Rule("frame: null", reader, reader, [payload], ({"value": None},), frame=lambda *_: None)
