"""Decoding at a glance: a pasted or uploaded record, its frame, its schema, its value, or where it breaks and why."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from strata.compat.avro.model import AvroSchema
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.schema import ParsedSchema, ResolvedReference
from strata.registry.api.views.view import Page
from strata.registry.core import errors
from strata.registry.core.lookup import ids_of_guid, schema_by_id, versions_of_glue
from strata.registry.core.parsing import parse_version
from strata.registry.core.references import resolved
from strata.registry.core.rights.visibility import is_readable, readable_use, unknown_schema
from strata.registry.features.decoding.avro_value import decode_avro
from strata.registry.features.decoding.frames import (
    Frame,
    bytes_of,
    check_header,
    message_indexes,
    open_frame,
    open_header,
    unpacked,
)
from strata.registry.features.decoding.json_value import decode_json, refusal
from strata.registry.features.decoding.parts import Broken, Cursor, Part
from strata.registry.features.decoding.protobuf_value import decode_protobuf
from strata.storage.records import DEFAULT_CONTEXT
from strata.storage.state import SchemaVersion
from strata.strict_json import Json

__all__ = ["MOST_BYTES", "Decoded", "decoded", "show_decoding"]

_ENCODINGS = {"": "hex or base64", "hex": "hex", "base64": "base64"}
_MOST_SHOWN = 300
_AROUND = 8
_LARGEST_ID = 2**31 - 1
MOST_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a record holds.

    Attributes:
        value: the value; None if it broke.
        parts: the values without parts of their own, in the order of the bytes, up to a number.
        broken: where the record breaks and why; None if it does not.
        refused: the path of a JSON value that the schema refuses, and why.
        note: why a JSON value was not validated.
    """

    value: Json = None
    parts: Sequence[Part] = ()
    broken: Broken | None = None
    refused: tuple[str, str] | None = None
    note: str = ""


def decoded(
    data: bytes, frame: Frame, schema: ParsedSchema, text: str, references: Sequence[ResolvedReference]
) -> Decoded:
    """Return what a record holds, by its writer schema.

    Args:
        data: the record, of at most `MOST_BYTES`.
        frame: its frame.
        schema: the parsed schema.
        text: the text of the schema.
        references: what the schema refers to.
    """
    cursor = Cursor(data, frame.start, len(data))
    try:
        if isinstance(schema, ProtobufSchema):
            return Decoded(decode_protobuf(schema, message_indexes(cursor, frame), cursor), cursor.parts)
        check_header(frame.path)
        if isinstance(schema, AvroSchema):
            return Decoded(decode_avro(schema, cursor), cursor.parts)
        value = decode_json(cursor)
    except Broken as broken:
        return Decoded(parts=cursor.parts, broken=broken)
    except RecursionError:
        return Decoded(parts=cursor.parts, broken=Broken(cursor.offset, "", "the value is nested too deeply"))
    try:
        return Decoded(value, refused=refusal(value, text, references))
    except (ValueError, TypeError) as error:
        return Decoded(value, note=f"The value was not validated: {error}")


def show_decoding(page: Page) -> dict[str, object]:
    """Return the form, and what the record in it holds."""
    shown: dict[str, object] = {
        "encodings": _ENCODINGS,
        "fault": None,
        "frame": None,
        "entry": None,
        "found": None,
        "value": None,
        "around": None,
        "size": 0,
    }
    if not page.upload and not page.text("data"):
        return shown
    try:
        data = page.upload or bytes_of(page.query["data"], page.text("encoding"))
        if len(data) > MOST_BYTES:
            raise errors.unreadable_body(f"Expected a record of at most {MOST_BYTES} bytes, got {len(data)} bytes")
        frame = _frame(page, data)
        shown |= {"frame": frame, "size": len(data)}
        entry = _schema(page, frame)
        shown["entry"] = entry
        data = _unpacked(data, frame)
        record = _decoded(page, entry, frame, data)
    except Broken as broken:
        return shown | {"fault": f"The text is not a record: {broken.reason}, at character {broken.offset + 1}."}
    except errors.RegistryError as error:
        return shown | {"fault": error.message}
    value = None if record.broken else json.dumps(record.value, indent=2, ensure_ascii=False)
    around = _around(data, record.broken.offset) if record.broken else None
    return shown | {"found": record, "parts": record.parts[:_MOST_SHOWN], "value": value, "around": around}


def _frame(page: Page, data: bytes) -> Frame:
    """Return the frame of a record: that in its header, if the form has one, else the one in front of it."""
    if header := page.text("header"):
        frame = open_header(bytes_of(header, page.text("encoding")))
        if frame is None:
            raise errors.unreadable_body("Expected magic byte 1 and a GUID of 16 bytes in the record header")
        return frame
    if text := page.text("id"):
        if not (text.isascii() and text.isdecimal() and len(text) < 11):
            raise errors.unreadable_body(f"Expected a schema id, such as 7, got {text[:100]!r}")
        return Frame("none; the schema id was entered", int(text), 0)
    return open_frame(data)


def _schema(page: Page, frame: Frame) -> SchemaVersion:
    """Return a version with the writer schema that the person may read.

    Raises:
        RegistryError: 400 if the frame names none; 40403, or 40301 if the person may read no version that has it.
    """
    if frame.glue is not None:
        return _migrated(page, frame.glue)
    if frame.schema is None:
        raise errors.unreadable_body("The record has no frame that names a schema of this registry; enter a schema id")
    context = page.text("context", DEFAULT_CONTEXT)
    places = ids_of_guid(page.state, str(frame.schema)) if isinstance(frame.schema, UUID) else [(context, frame.schema)]
    for name, number in places:
        known = schema_by_id(page.state, number, f":{name}:") if number <= _LARGEST_ID else None
        if known and (entry := readable_use(page.access, page.state, *known)):
            return entry
    raise unknown_schema(page.access, frame.schema, context)


def _migrated(page: Page, version: UUID) -> SchemaVersion:
    """Return the version that was migrated from AWS Glue with this UUID.

    Raises:
        RegistryError: 400 if there is none that the person may read, or its format is not decoded here.
    """
    versions = versions_of_glue(page.state, str(version))
    entry = next(
        (
            candidate
            for candidate in versions
            if is_readable(page.access, page.state, candidate.subject, candidate.version)
        ),
        None,
    )
    if entry is None:
        raise errors.unreadable_body("No version of this registry was migrated from AWS Glue with this UUID")
    if entry.schema.schema_type == "PROTOBUF":
        raise errors.unreadable_body(
            "Records of AWS Glue in Protobuf are not decoded here; the deserializers read them"
        )
    return entry


def _unpacked(data: bytes, frame: Frame) -> bytes:
    try:
        return unpacked(data, frame, MOST_BYTES)
    except Broken as broken:
        raise errors.unreadable_body(f"At byte {broken.offset}: {broken.reason}") from None


def _decoded(page: Page, entry: SchemaVersion, frame: Frame, data: bytes) -> Decoded:
    limits = page.exchange.limits.started()
    schema = parse_version(page.state, entry, limits)
    references = resolved(page.state, entry.subject, entry.schema.value.references, limits)
    return decoded(data, frame, schema, entry.schema.text, references)


def _around(data: bytes, offset: int) -> tuple[str, str, str]:
    before = data[max(0, offset - _AROUND) : offset]
    return before.hex(" "), data[offset : offset + 1].hex() or "end", data[offset + 1 : offset + 1 + _AROUND].hex(" ")
