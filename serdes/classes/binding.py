"""A class bound to a format: its schema, and the functions between its objects and plain values.

Rules of this file: what serializers need of the package, in one value.
"""

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strata.serdes.classes.conversion import from_plain, has_record_choices, to_plain
from strata.serdes.classes.schemas import schema_text
from strata.serdes.classes.shapes import shape_of
from strata.serdes.model import AVRO, Schema

__all__ = ["Bound", "bound", "is_class", "schema_of"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A class in one format.

    Attributes:
        schema: its schema.
        lower: an object as the value that an encoder takes.
        lift: a decoded value as an object.
        names_records: whether the records of unions must be decoded with their names.
    """

    schema: Schema
    lower: Callable[[Any], Any]
    lift: Callable[[Any], Any]
    names_records: bool


def is_class(given: object) -> bool:
    """Return whether an argument is a class, or a generic class with its parameters, instead of a schema."""
    return isinstance(given, type) or isinstance(typing.get_origin(given), type)


def schema_of(cls: Any, format: str = AVRO) -> Schema:  # noqa: A002 - the field's word
    """Return the schema of a class.

    Args:
        cls: the class; see `shapes.shape_of`.
        format: `AVRO` or `JSON`.

    Raises:
        SchemaError: If a part of it has no type in the format; the error names the field.
    """
    return Schema(schema_text(shape_of(cls), format), format)


def bound(cls: Any, schema_format: str) -> Bound:
    """Return a class bound to a format.

    Raises:
        SchemaError: If a part of it has no type in the format; the error names the field.
    """
    shape = shape_of(cls)
    return Bound(
        Schema(schema_text(shape, schema_format), schema_format),
        to_plain(shape, schema_format),
        from_plain(shape, schema_format),
        has_record_choices(shape),
    )
