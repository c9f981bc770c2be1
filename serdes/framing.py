"""Frames as clients see them: record headers, the ways to frame, and errors; the bytes are those of `strata.frames`.

Rules of this file: bytes in, values out; no schema, no registry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from strata import frames
from strata.frames import (
    GLUE_HEADER_SIZE,
    GUID_HEADER_SIZE,
    HEADER_SIZE,
    MAGIC_BYTE,
    MAGIC_BYTE_GUID,
    MAX_INDEXES,
    MAX_INFLATED,
    MAX_SCHEMA_ID,
    BadFrame,
    Frame,
    GlueVersion,
    MessagePath,
    SchemaName,
)
from strata.serdes.errors import FrameError

__all__ = [
    "FRAMINGS",
    "FRONTS",
    "GLUE_HEADER_SIZE",
    "GUID_HEADER_SIZE",
    "HEADER_SIZE",
    "MAGIC_BYTE",
    "MAX_INDEXES",
    "MAX_INFLATED",
    "MAX_SCHEMA_ID",
    "Frame",
    "Framing",
    "GlueVersion",
    "MessagePath",
    "SchemaId",
    "SchemaName",
    "header_name",
    "inflated",
    "join",
    "kind_of",
    "label",
    "open_frame",
    "read_header",
    "read_indexes",
    "read_path",
    "split",
    "split_name",
    "write_indexes",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _raising(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function of `strata.frames` that raises the clients' error."""

    @wraps(call)
    def run(*args: _P.args, **options: _P.kwargs) -> _R:
        try:
            return call(*args, **options)
        except BadFrame as fault:
            raise FrameError(fault.reason) from None

    return run


inflated = _raising(frames.inflated)
join = _raising(frames.join)
open_frame = _raising(frames.open_frame)
read_indexes = _raising(frames.read_indexes)
read_path = _raising(frames.read_path)
split = _raising(frames.split)
split_name = _raising(frames.split_name)
write_indexes = _raising(frames.write_indexes)


@dataclass(frozen=True, slots=True)
class SchemaId:
    """The id, GUID and message path of a schema, as functions for Confluent's `schema.id.serializer` expect them.

    Attributes:
        id: the id in the context of the subject.
        guid: the GUID, if the registry gave it.
        message_indexes: the path to a Protobuf message, outermost first; empty for other formats.
    """

    id: int
    guid: UUID | None = None
    message_indexes: tuple[int, ...] = ()

    def id_to_bytes(self) -> bytes:
        """Return the prefix with magic byte 0 and the id.

        Raises:
            FrameError: If the id is outside 0 to 2^31 - 1, or the message path is out of bounds.
        """
        try:
            return frames.join(self.id, self._indexes())
        except BadFrame as fault:
            raise FrameError(fault.reason) from None

    def guid_to_bytes(self) -> bytes:
        """Return the prefix, or header value, with magic byte 1 and the GUID.

        Raises:
            FrameError: If the GUID is unknown, or the message path is out of bounds.
        """
        if self.guid is None:
            raise FrameError("the schema has no GUID: the registry did not return one")
        return bytes([MAGIC_BYTE_GUID]) + self.guid.bytes + self._indexes()

    def _indexes(self) -> bytes:
        return write_indexes(self.message_indexes) if self.message_indexes else b""


def kind_of(schema: SchemaName | None) -> str:
    """Return the words for the kind of a name; `unknown` and these words is the reason why it has no schema."""
    match schema:
        case UUID():
            return "schema guid"
        case GlueVersion():
            return "Glue schema version"
    return "schema id"


def label(schema: SchemaName | None) -> str:
    """Return the words by which errors mention the schema of a frame."""
    return f"{kind_of(schema)} {schema}"


def header_name(field: str | None) -> str:
    """Return the name of the record header with the schema of a key or value."""
    return "__key_schema_id" if field == "key" else "__value_schema_id"


def read_header(context: Any) -> bytes | None:
    """Return the schema header of a record, or None.

    Args:
        context: any object with `field`; it may have no `headers`.

    Raises:
        FrameError: If the header is not bytes.
    """
    headers = getattr(context, "headers", None)
    if not headers:
        return None
    name = header_name(context.field)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    for key, value in pairs:
        if key == name:
            if value is not None and not isinstance(value, bytes | bytearray | memoryview):
                raise FrameError(f"header {name}: expected bytes, got {type(value).__name__}")
            return value if value is None else bytes(value)
    return None


def _in_header(payload: bytes, context: Any, schema: SchemaId) -> bytes:
    headers = getattr(context, "headers", None)
    name, value = header_name(context.field), schema.guid_to_bytes()
    if isinstance(headers, dict):
        headers[name] = value
    elif isinstance(headers, list):
        headers[:] = [pair for pair in headers if pair[0] != name]  # of several headers some readers take the first
        headers.append((name, value))
    else:
        raise FrameError("cannot add the schema header: the context has no headers (expected a dict or a list)")
    return payload


Framing = Callable[[bytes, Any, SchemaId], bytes]

FRAMINGS: dict[str, Framing] = {
    "prefix": lambda payload, _, schema: schema.id_to_bytes() + payload,
    "guid": lambda payload, _, schema: schema.guid_to_bytes() + payload,
    "header": _in_header,
}
"""How a record carries its schema: the id or the GUID in front of the payload, or the GUID in a header."""

FRONTS: dict[Framing, Callable[[SchemaId], bytes]] = {
    FRAMINGS["prefix"]: SchemaId.id_to_bytes,
    FRAMINGS["guid"]: SchemaId.guid_to_bytes,
}
"""What stands in front of the payload, for the framings in which it is the same for all records of a schema."""
