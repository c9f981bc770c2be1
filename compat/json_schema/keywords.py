"""The keyword values of one JSON object, checked as the reference's loaders check them.

One loader reads the older dialects and another the newer ones. They know different keywords and check them differently.
"""

import math
from decimal import ROUND_DOWN, Decimal
from typing import Final, TypeGuard, TypeVar

from strata.compat.avro.java_numbers import to_double
from strata.compat.json_schema.dialects import Dialect
from strata.compat.json_schema.java_regex import check_pattern
from strata.compat.json_schema.json_text import Json, excerpt, write_json
from strata.compat.json_schema.model import Number
from strata.compat.json_schema.uris import check_uri
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError

__all__ = ["ARRAY_WORDS", "NUMBER_WORDS", "OBJECT_WORDS", "STRING_WORDS", "Keywords"]

STRING_WORDS: Final = frozenset({"minLength", "maxLength", "pattern", "format"})
NUMBER_WORDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
OBJECT_WORDS: Final = frozenset(
    {
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
    }
)
ARRAY_WORDS: Final = frozenset(
    {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "unevaluatedItems", "contains"}
)
_MODERN_ONLY: Final = frozenset(
    {"dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems"}
)
_OLD_ONLY: Final = frozenset({"dependencies", "additionalItems"})
_NOT_IN_DRAFT_4: Final = frozenset({"propertyNames", "contains"})
_FLAGS: Final[dict[Dialect, tuple[str, ...]]] = {
    Dialect.DRAFT_7: ("readOnly", "writeOnly"),
    Dialect.DRAFT_2019_09: ("readOnly", "writeOnly", "deprecated"),
    Dialect.DRAFT_2020_12: ("readOnly", "writeOnly", "deprecated"),
}
_TYPE_NAMES: Final[dict[type, str]] = {str: "a string", bool: "a boolean", list: "an array", dict: "an object"}
_INT: Final = 1 << 31  # the older loader reads counts into 32 bits

_T = TypeVar("_T")


class Keywords:
    """The keywords of one schema."""

    def __init__(self, json: dict[str, Json], dialect: Dialect, limits: Limits):
        self._json = json
        self._limits = limits
        self._dialect = dialect
        self._used: set[str] = set()

    def use(self, words: frozenset[str]) -> None:
        """Mark keywords as read by one of the schema's types."""
        self._used |= words

    def check_annotations(self) -> None:
        """Check the keywords that are not compared.

        Raises:
            SchemaParseError: A value is invalid.
        """
        for start, word in (("", self._dialect.id_keyword), ("#", "$anchor"), ("#", "$dynamicAnchor")):
            name = self._json.get(word)
            if isinstance(name, str) and (self._dialect.modern or not start):
                check_uri(start + name)
        for word in _FLAGS.get(self._dialect, ()):
            self.typed(word, bool)
        if self._dialect.modern:
            self.typed("$dynamicAnchor", str)

    def pattern(self) -> str | None:
        """Return the pattern of strings, or None if it is absent.

        Raises:
            SchemaParseError: The value is not a pattern that Java compiles.
        """
        pattern = self.typed("pattern", str)
        if pattern is not None:
            check_pattern(pattern, self._limits)
        return pattern

    def strings(self, value: Json, word: str) -> list[str]:
        """Return the strings of an array.

        Args:
            value: The array.
            word: The keyword, for the error message.

        Raises:
            SchemaParseError: The value is not an array of strings.
        """
        if not isinstance(value, list):
            raise self.fault(word, "an array")
        strings: list[str] = []
        for item in value:
            if not isinstance(item, str):
                raise self.fault(word, "an array of strings")
            strings.append(item)
        return strings

    def counts(self, *words: str) -> dict[str, Number]:
        """Return the keywords that are present of those that count things, such as `minLength`.

        Raises:
            SchemaParseError: A value is not a number or, in the older dialects, not a 32-bit integer.
        """
        return {word: self._count(word, value) for word, value in self.numbers(*words).items()}

    def _count(self, word: str, value: Number) -> Number:
        if self._dialect.modern:  # the newer loader cuts off the digits after the point
            return value.to_integral_value(ROUND_DOWN) if isinstance(value, Decimal) else value
        if isinstance(value, Decimal) or not -_INT <= value < _INT:
            raise self.fault(word, "a 32-bit integer")
        return value

    def multiple_of(self) -> Number | None:
        """Return `multipleOf`, or None if it is absent.

        Raises:
            SchemaParseError: The value is not a number or, in the older dialects, 0 or out of a double's range.
        """
        value = self.numbers("multipleOf").get("multipleOf")
        if value is not None and not self._dialect.modern and not 0 < abs(to_double(value)) < math.inf:
            raise self.fault("multipleOf", "a number other than 0, in the range of a double")
        return value

    def lenient_numbers(self, *words: str) -> dict[str, Number]:
        """Return the keywords of some that have a number as value."""
        return {word: value for word in words if _is_number(value := self._json.get(word))}

    def numbers(self, *words: str) -> dict[str, Number]:
        """Return the keywords that are present of those that take numbers.

        Raises:
            SchemaParseError: A value is not a number.
        """
        numbers: dict[str, Number] = {}
        for word in words:
            if word in self._json:
                if not _is_number(value := self._json[word]):
                    raise self.fault(word, "a number")
                numbers[word] = value
        return numbers

    def typed(self, word: str, type_: type[_T], *, strict: bool = True) -> _T | None:
        """Return a value of a type, or None if the keyword is absent.

        Args:
            word: The keyword.
            type_: The type.
            strict: Refuse a value of another type; otherwise return None for it.

        Raises:
            SchemaParseError: The value has another type, and `strict` is set.
        """
        if word not in self._json:
            return None
        value = self._json[word]
        if isinstance(value, type_):
            return value
        if not strict:
            return None
        raise self.fault(word, _TYPE_NAMES[type_])

    def has(self, words: frozenset[str]) -> bool:
        """Return whether the object has one of the keywords that the dialect defines and no type has used."""
        if words.isdisjoint(self._json):  # mostly
            return False
        words -= _OLD_ONLY if self._dialect.modern else _MODERN_ONLY
        if self._dialect is Dialect.DRAFT_4:
            words -= _NOT_IN_DRAFT_4
        return not (words - self._used).isdisjoint(self._json)

    def fault(self, word: str, name: str) -> SchemaParseError:
        """Return the error for an invalid value of a keyword; `name` says what is expected."""
        return SchemaParseError(f"{excerpt(word)!r} must be {name}, got {excerpt(write_json(self._json.get(word)))}")


def _is_number(value: Json) -> TypeGuard[Number]:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)
