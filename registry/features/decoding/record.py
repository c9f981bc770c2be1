"""One record decoded at a glance: its frame, its value with the place of each part, or where it breaks and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from strata.compat.avro.model import AvroSchema
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.schema import ParsedSchema, ResolvedReference
from strata.registry.features.decoding.avro_value import decode_avro
from strata.registry.features.decoding.frames import Frame, check_header, message_indexes
from strata.registry.features.decoding.json_value import decode_json, refusal
from strata.registry.features.decoding.parts import Broken, Cursor, Json, Part
from strata.registry.features.decoding.protobuf_value import decode_protobuf

__all__ = ["MOST_BYTES", "Decoded", "decoded"]

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
