"""A class bound to a format: its schema, and the functions between its objects and plain values.

Rules of this file: what serializers need of the package, in one value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strata.serdes.classes.conversion import from_plain, has_record_choices, to_plain
from strata.serdes.classes.schemas import schema_text
from strata.serdes.classes.shapes import shape_of
from strata.serdes.errors import EncodeError
from strata.serdes.model import AVRO, Schema
from strata.serdes.subject_name_strategies import RecordContext

__all__ = ["Bound", "bound", "schema_of"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A class in one format.

    Attributes:
        name: its name, for errors.
        schema: its schema.
        lower: an object as the value that an encoder takes; a context may follow it.
        lift: a decoded value as an object; a context may follow it.
        names_records: whether the records of unions must be decoded with their names.
    """

    name: str
    schema: Schema
    lower: Callable[..., object]
    lift: Callable[..., object]
    names_records: bool

    def to_dict(self, value: object, _context: RecordContext) -> object:
        """Return an object as the value that an encoder takes, as `to_dict` of a serializer.

        Raises:
            EncodeError: If it is not an object of the class.
        """
        try:
            return self.lower(value)
        except (AttributeError, KeyError, TypeError) as error:
            raise EncodeError(f"expected {self.name}, got {type(value).__name__}: {error}") from error

    @property
    def from_dict(self) -> Callable[[object, RecordContext], Any]:
        """The function from a decoded value to an object, for a deserializer; errors of the class pass through."""
        return self.lift


def schema_of(cls: object, format: str = AVRO) -> Schema:  # noqa: A002 - the field's word
    """Return the schema of a class.

    Args:
        cls: the class; see `shapes.shape_of`.
        format: `AVRO` or `JSON`.

    Raises:
        SchemaError: If a part of it has no type in the format; the error names the field.
    """
    return Schema(schema_text(shape_of(cls), format), format)


def bound(cls: object, schema_format: str) -> Bound:
    """Return a class bound to a format.

    Raises:
        SchemaError: If a part of it has no type in the format; the error names the field.
    """
    shape = shape_of(cls)
    return Bound(
        getattr(cls, "__name__", str(cls)),
        Schema(schema_text(shape, schema_format), schema_format),
        to_plain(shape, schema_format),
        from_plain(shape, schema_format),
        has_record_choices(shape),
    )
