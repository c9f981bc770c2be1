"""Schemas as the standard reads them: a conjunction of rules, each a value.

The checker compares the model that the reference makes of a schema (`compat/json_schema/model.py`); what a document may
be follows from the standard alone, and from the dialect. Equal schemas are one object, in both schemas of a comparison.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias

from strata.compat.json_schema.containment.values import Document, Key

__all__ = [
    "ALL_TYPES",
    "Absent",
    "All",
    "Branches",
    "Contains",
    "Count",
    "Dependent",
    "Format",
    "If",
    "Items",
    "Limit",
    "MultipleOf",
    "Names",
    "Not",
    "Opaque",
    "Pattern",
    "Properties",
    "Reference",
    "Required",
    "Rule",
    "Schema",
    "Size",
    "Types",
    "Unevaluated",
    "Unique",
    "Values",
]

ALL_TYPES: Final = ("number", "string", "null", "boolean", "array", "object")
"""The types of JSON values, in the order in which a search tries them."""


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """A schema: what all its rules allow; one without rules allows everything."""

    rules: tuple["Rule", ...]
    allows: bool | None  # True or False for everything and nothing


@dataclass(frozen=True, slots=True)
class Types:
    """`type`."""

    names: frozenset[str]
    written: bool = False  # whether `integer` is about how a number is written (draft 4), not about its value


@dataclass(frozen=True, slots=True)
class Values:
    """`enum` and `const`."""

    keys: frozenset[Key]
    values: tuple[Document, ...] = field(compare=False)
    word: str = field(default="enum", compare=False)


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a number."""

    value: Fraction
    is_low: bool
    is_open: bool  # whether the bound itself is outside
    word: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class MultipleOf:
    """`multipleOf`."""

    divisor: Fraction


@dataclass(frozen=True, slots=True)
class Size:
    """A bound on the length of a string or array, or on the number of properties."""

    type: str
    low: int = 0
    high: int | None = None
    word: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """`pattern`."""

    text: str


@dataclass(frozen=True, slots=True)
class Format:
    """`format`."""

    name: str
    is_asserted: bool  # in the newer dialects it is an annotation, unless the validator is set to assert it


@dataclass(frozen=True, slots=True)
class Properties:
    """`properties`, `patternProperties` and `additionalProperties`."""

    named: tuple[tuple[str, Schema], ...]
    patterns: tuple[tuple[str, Schema], ...]
    rest: Schema | None


@dataclass(frozen=True, slots=True)
class Unevaluated:
    """`unevaluatedProperties` or `unevaluatedItems`.

    Whether a member is evaluated depends on the document. At least `certain` are, and at most `possible`.
    """

    certain: "Properties | Items"
    possible: "Properties | Items | None"  # None: everything may be


@dataclass(frozen=True, slots=True)
class Required:
    """`required`, or a part of it."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A property that must not be there."""

    name: str


@dataclass(frozen=True, slots=True)
class Names:
    """`propertyNames`."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class Dependent:
    """What the presence of a property requires."""

    name: str
    names: tuple[str, ...] = ()
    schema: Schema | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """The schemas of the first items, and of all others."""

    first: tuple[Schema, ...]
    rest: Schema | None


@dataclass(frozen=True, slots=True)
class Contains:
    """`contains`, with `minContains` and `maxContains`."""

    schema: Schema
    low: int = 1
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many items a schema allows: what `contains`, or its contrary, comes to."""

    schema: Schema
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Unique:
    """`uniqueItems`."""


@dataclass(frozen=True, slots=True)
class All:
    """`allOf`."""

    schemas: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class Branches:
    """`anyOf`, or `oneOf` if only one branch may allow the value."""

    schemas: tuple[Schema, ...]
    is_exclusive: bool


@dataclass(frozen=True, slots=True)
class Not:
    """`not`."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class If:
    """`if`, `then` and `else`."""

    condition: Schema
    then: Schema
    otherwise: Schema


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference. Equal targets are equal references."""

    target: tuple[int, int, str]  # the comparison's number of the schema, the identity of the JSON value, its base
    follow: Callable[[], Schema] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A keyword whose effect is not known, or differs between validators."""

    word: str


Rule: TypeAlias = (
    Types
    | Values
    | Limit
    | MultipleOf
    | Size
    | Pattern
    | Format
    | Properties
    | Unevaluated
    | Required
    | Absent
    | Names
    | Dependent
    | Items
    | Contains
    | Count
    | Unique
    | All
    | Branches
    | Not
    | If
    | Reference
    | Opaque
)
