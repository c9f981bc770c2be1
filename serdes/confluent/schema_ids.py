"""How a record carries its schema, by confluent-kafka's names: functions for `schema.id.serializer` and its reverse.

Rules of this file: bytes and headers belong to `strata.serdes.framing`.
"""

import io
from collections.abc import Callable
from typing import Any
from uuid import UUID

from strata.serdes import framing
from strata.serdes.confluent.error import FrameRefused
from strata.serdes.errors import FrameError
from strata.serdes.subject_name_strategies import RecordContext

__all__ = [
    "SchemaId",
    "dual_schema_id_deserializer",
    "engine_framing",
    "engine_opening",
    "header_schema_id_serializer",
    "prefix_schema_id_deserializer",
    "prefix_schema_id_serializer",
]

_PROTOBUF = "PROTOBUF"


class SchemaId:
    """The id and GUID of a schema and, for Protobuf, the path to a message.

    Args:
        schema_type: AVRO, JSON or PROTOBUF.
        schema_id: the id.
        guid: the GUID.
        message_indexes: the path to a Protobuf message.
    """

    def __init__(
        self,
        schema_type: str,
        schema_id: int | None = None,
        guid: str | None = None,
        message_indexes: list[int] | None = None,
    ) -> None:
        self.schema_type = schema_type
        self.id = schema_id
        self.guid = None if guid is None else UUID(str(guid))
        self.message_indexes = message_indexes

    def _frame(self) -> framing.SchemaId:
        if self.id is None and self.guid is None:
            raise FrameRefused("the schema has neither id nor GUID")
        return framing.SchemaId(-1 if self.id is None else self.id, self.guid, tuple(self.message_indexes or ()))

    def id_to_bytes(self) -> bytes:
        """Return the prefix with the id."""
        return self._frame().id_to_bytes()

    def guid_to_bytes(self) -> bytes:
        """Return the prefix, or header value, with the GUID."""
        return self._frame().guid_to_bytes()

    def from_bytes(self, payload: io.BytesIO) -> io.BytesIO:
        """Read the id or GUID, and the path to a Protobuf message, and return the stream behind them.

        Raises:
            FrameRefused: If the bytes are not the beginning of a frame.
        """
        data = payload.read()
        try:
            frame = framing.open_frame(data, indexed=self.schema_type == _PROTOBUF)
        except FrameError as error:
            raise FrameRefused(error.reason) from None
        self._take(frame)
        return io.BytesIO(frame.payload)

    def _take(self, frame: framing.Frame) -> None:
        if isinstance(frame.schema, int):
            self.id = frame.schema
        elif isinstance(frame.schema, UUID):
            self.guid = frame.schema
        if isinstance(frame.indexes, tuple) and frame.indexes:
            self.message_indexes = list(frame.indexes)


def prefix_schema_id_serializer(payload: bytes, ctx: RecordContext | None, schema_id: Any) -> bytes:  # noqa: ARG001
    """Return the payload with the id in front."""
    prefix: bytes = schema_id.id_to_bytes()
    return prefix + payload


def header_schema_id_serializer(payload: bytes, ctx: RecordContext | None, schema_id: Any) -> bytes:
    """Put the GUID into a header of the record, and return the payload.

    Raises:
        FrameRefused: If the context has no headers.
    """
    return framing.FRAMINGS["header"](payload, ctx, schema_id)


def dual_schema_id_deserializer(payload: bytes, ctx: RecordContext | None, schema_id: SchemaId) -> io.BytesIO:
    """Read the schema from a header of the record, else from the beginning of the payload."""
    header = None if ctx is None else framing.read_header(ctx)
    if header is None:
        return schema_id.from_bytes(io.BytesIO(payload))
    schema_id.from_bytes(io.BytesIO(header))
    return io.BytesIO(payload)


def prefix_schema_id_deserializer(payload: bytes, ctx: RecordContext | None, schema_id: SchemaId) -> io.BytesIO:  # noqa: ARG001
    """Read the schema from the beginning of the payload."""
    return schema_id.from_bytes(io.BytesIO(payload))


def engine_framing(serializer: Callable[..., bytes] | str, schema_type: str) -> Callable[..., bytes] | str:
    """Return `schema.id.serializer` as the engine takes it."""
    if not callable(serializer):
        return serializer
    if serializer in _FRAMINGS:
        return _FRAMINGS[serializer]

    def frame(payload: bytes, context: RecordContext, schema: framing.SchemaId) -> bytes:
        guid = None if schema.guid is None else str(schema.guid)
        return serializer(
            payload, context, SchemaId(schema_type, schema.id, guid, list(schema.message_indexes) or None)
        )

    return frame


def engine_opening(
    opening: Callable[..., io.BytesIO] | str, schema_type: str
) -> Callable[[bytes, RecordContext], framing.Frame] | str:
    """Return `schema.id.deserializer` as the engine takes it."""
    if not callable(opening):
        return opening
    if opening in _OPENINGS:
        return _OPENINGS[opening]

    def opened(data: bytes, context: RecordContext) -> framing.Frame:
        schema = SchemaId(schema_type)
        payload = opening(data, context, schema).read()
        name = schema.guid if schema.id is None else schema.id
        if name is None:
            raise FrameRefused("schema.id.deserializer found neither an id nor a GUID")
        return framing.Frame(name, tuple(schema.message_indexes or ()), payload)

    return opened


_FRAMINGS: dict[object, str] = {prefix_schema_id_serializer: "prefix", header_schema_id_serializer: "header"}
_OPENINGS: dict[object, str] = {dual_schema_id_deserializer: "dual", prefix_schema_id_deserializer: "prefix"}
