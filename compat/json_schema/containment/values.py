"""Documents: JSON values as Python has them, their types and their equality in JSON Schema."""

from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from strata.compat.json_schema.json_text import Json

__all__ = ["Document", "Key", "as_document", "exact", "key_of", "number_of", "type_of"]

Document: TypeAlias = "bool | int | float | str | list[Document] | dict[str, Document] | None"
Key: TypeAlias = Hashable  # equal for equal values: 1 and 1.0 are equal, 1 and true are not

_LARGEST_EXPONENT: Final = 300
_LARGEST_EXPONENT_OF_SCHEMA: Final = 18


def type_of(value: Document) -> str:
    """Return the name of a value's type; `number` for integers too."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def exact(value: float) -> Fraction:
    """Return the number that a document has, by its digits: 0.1 is a tenth, though the double is a bit more."""
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def key_of(value: Document) -> Key:
    """Return what equal values share."""
    if isinstance(value, bool) or value is None:
        return (str(value),)
    if isinstance(value, int | float):
        return exact(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ("[", *map(key_of, value))
    return frozenset((name, key_of(item)) for name, item in value.items()) | {"{"}


def as_document(value: Json) -> Document:
    """Return a value of a schema (of an `enum`, say) as a document has it.

    Raises:
        OverflowError: A number has no place in a double.
    """
    if isinstance(value, Decimal):
        if abs(value.adjusted()) > _LARGEST_EXPONENT:
            raise OverflowError
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list):
        return [as_document(item) for item in value]
    if isinstance(value, dict):
        return {name: as_document(item) for name, item in value.items()}
    return value


def number_of(value: Json) -> Fraction | None:
    """Return the number in a schema, or None if the value is not a number, or one that validators may round.

    A number with more digits than a double, or far away from 1, is not the same for each validator.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if isinstance(value, int) and abs(value) < 1 << 63:
        return Fraction(value)
    number = Decimal(value)
    if abs(number.adjusted()) > _LARGEST_EXPONENT_OF_SCHEMA or len(number.normalize().as_tuple().digits) > 15:
        return None
    return Fraction(number)
