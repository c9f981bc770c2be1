"""The kinds of difference, which of them are compatible, and the messages for the others.

The wire text looks like JSON but is not (it opens with a double quote and closes with a single one). Clients match on
it, so it is reproduced letter by letter.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from strata.compat.avro.java_numbers import to_double
from strata.compat.levels import Direction, Policy
from strata.compat.result import Incompatibility, Value

__all__ = ["TOO_COMPLEX", "compatible", "describe", "explain", "wire_message"]

TOO_COMPLEX: Final = "TOO_COMPLEX"
_LONGEST_VALUE: Final = 100
_LONGEST_NUMBER: Final = 20  # digits before the point, or zeros after it

_LENIENT: Final = frozenset(  # the incompatible kinds that the policy LENIENT accepts
    {
        "ADDITIONAL_PROPERTIES_REMOVED",
        "ADDITIONAL_PROPERTIES_NARROWED",
        "UNEVALUATED_PROPERTIES_REMOVED",
        "UNEVALUATED_PROPERTIES_NARROWED",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    }
)

_APPEARED: Final = "The keyword at path '{path}' in the {reader} schema is not present in the {writer} schema"
_MORE: Final = "The value at path '{path}' in the {reader} schema is more than its value in the {writer} schema"
_LESS: Final = "The value at path '{path}' in the {reader} schema is less than its value in the {writer} schema"
_CHANGED: Final = "The value at path '{path}' is different between the {reader} and {writer} schema"
_FEWER: Final = (
    "An array or combined type at path '{path}' has fewer elements in the {reader} schema than the {writer} schema"
)
_LONGER: Final = (
    "An array or combined type at path '{path}' has more elements in the {reader} schema than the {writer} schema"
)
_TYPE: Final = "A type at path '{path}' is different between the {reader} schema and the {writer} schema"
_OPEN: Final = (
    "The {reader} schema has an open content model and has a property or item at path '{path}' "
    "which is missing in the {writer} schema"
)
_UNOPEN: Final = (
    "The {reader} schema has an unopen content model and has a required property at path '{path}' "
    "which is missing in the {writer} schema"
)
_CLOSED: Final = (
    "The {reader} has a closed content model and is missing a property or item present at path '{path}' "
    "in the {writer} schema"
)
_REMOVED_NOT_COVERED: Final = (
    "A property or item is missing in the {reader} schema but present at path '{path}' in the {writer} schema "
    "and is not covered by its partially open content model"
)
_ADDED_NOT_COVERED: Final = (
    "The {reader} schema has a property or item at path '{path}' which is missing in the {writer} schema "
    "and is not covered by its partially open content model"
)

# The incompatible kinds of difference, by their sentence; every other kind is compatible.
_WORDINGS: Final[Mapping[str, str]] = {
    "": "SCHEMA_ADDED",
    _APPEARED: """
    MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED
    EXCLUSIVE_MINIMUM_ADDED MULTIPLE_OF_ADDED REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED MIN_PROPERTIES_ADDED
    DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED MAX_CONTAINS_ADDED
    MIN_CONTAINS_ADDED UNIQUE_ITEMS_ADDED ADDITIONAL_PROPERTIES_REMOVED ADDITIONAL_ITEMS_REMOVED
    UNEVALUATED_PROPERTIES_REMOVED UNEVALUATED_ITEMS_REMOVED""",
    _MORE: """
    MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED MULTIPLE_OF_EXPANDED MIN_PROPERTIES_INCREASED
    MIN_ITEMS_INCREASED MIN_CONTAINS_INCREASED""",
    _LESS: """
    MAX_LENGTH_DECREASED MAXIMUM_DECREASED EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED MAX_ITEMS_DECREASED
    MAX_CONTAINS_DECREASED""",
    _CHANGED: "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED",
    _FEWER: """
    ADDITIONAL_PROPERTIES_NARROWED ADDITIONAL_ITEMS_NARROWED UNEVALUATED_PROPERTIES_NARROWED
    UNEVALUATED_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED""",
    _LONGER: "DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED NOT_TYPE_EXTENDED",
    _TYPE: """
    TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED ENUM_ARRAY_CHANGED""",
    _OPEN: """
    REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL""",
    _UNOPEN: "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    _CLOSED: "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    _REMOVED_NOT_COVERED: """
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
    _ADDED_NOT_COVERED: """
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
}
_DESCRIPTIONS: Final = {kind: text for text, kinds in _WORDINGS.items() for kind in kinds.split()}
_UNFINISHED: Final = "Unexpected exception during compatibility check: {path}"

# Advice, first if the new schema is the reader, then if the previous version is. {old} and {new} are the values of the
# two schemas at the path, {previous} names the version.
_REMEDIES: Final[Mapping[str, tuple[str, str]]] = {
    _APPEARED: (
        "The new schema is stricter than {previous}. Keep the previous value of the keyword ({old}).",
        "{previous} is stricter than the new schema. Keep the previous value of the keyword ({old}).",
    ),
    _MORE: (
        "The lower bound is {new}, and {previous} allowed {old}. Set it to {old} or lower.",
        "The lower bound is {new}, and {previous} accepts no less than {old}. Set it to {old} or higher.",
    ),
    _LESS: (
        "The upper bound is {new}, and {previous} allowed {old}. Set it to {old} or higher.",
        "The upper bound is {new}, and {previous} accepts no more than {old}. Set it to {old} or lower.",
    ),
    _CHANGED: ("{new} and {old} cannot be ordered. Keep {old}.", "{new} and {old} cannot be ordered. Keep {old}."),
    _FEWER: (
        "The new schema allows fewer values ({new}) than {previous} ({old}). Keep them; you can add others.",
        "The new schema allows more values ({new}) than {previous} ({old}). Do not add values.",
    ),
    _LONGER: (
        "The new schema requires more elements ({new}) than {previous} ({old}). Keep the previous elements.",
        "{previous} requires more elements ({old}) than the new schema ({new}). Keep the previous elements.",
    ),
    _TYPE: (
        (
            "The new schema ({new}) does not accept all values of {previous} ({old}). "
            "Keep the previous type, or use one that includes it."
        ),
        (
            "{previous} ({old}) does not accept all values of the new schema ({new}). "
            "Keep the previous type, or use one that it includes."
        ),
    ),
    _OPEN: (
        (
            "The object of {previous} is open, so its data may have any value here. Close it "
            "(additionalProperties: false) before you add to it, give the addition an empty schema, or set the "
            "compatibility policy LENIENT."
        ),
        (
            "The object of the new schema is open, so its data may have values here that {previous} does not accept. "
            "Keep the property, close the object (additionalProperties: false), or set the policy LENIENT."
        ),
    ),
    _UNOPEN: (
        "Data of {previous} lacks the property. Make it optional, or give it a default.",
        "{previous} requires the property. Keep it.",
    ),
    _CLOSED: (
        "The new schema is closed and rejects data of {previous} here. Keep the property or item, or open the model.",
        "{previous} is closed and rejects the property or item. Remove it.",
    ),
    _REMOVED_NOT_COVERED: (
        "Keep the property or item, or change the additional or pattern schema so that it accepts it.",
        "Give it a schema that the additional or pattern schema of {previous} includes, or remove it.",
    ),
    _ADDED_NOT_COVERED: (
        "Give it a schema that accepts every value of the additional or pattern schema of {previous}.",
        "Keep the property or item, or change the additional or pattern schema so that {previous} accepts its values.",
    ),
}
_AS_IT_WAS: Final = ("Keep the previous value.", "Keep the previous value.")
_REMEDIES_BY_KIND: Final[Mapping[str, tuple[str, str]]] = {
    "ENUM_ARRAY_CHANGED": (
        "The new schema ({new}) lacks values of {previous} ({old}). Keep the previous values; you can add others.",
        "{previous} ({old}) does not accept all values of the new schema ({new}). Use only values of {previous}.",
    ),
    "MULTIPLE_OF_EXPANDED": (
        "{previous} allowed every multiple of {old}. Use {old} or a number that divides it.",
        "{previous} accepts only multiples of {old}. Use {old} or a multiple of it.",
    ),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (
        (
            "Data of {previous} may lack the property, or have any value here. Give it an empty schema, or make it "
            "optional and set the compatibility policy LENIENT."
        ),
        "{previous} requires the property. Keep it.",
    ),
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": (
        (
            "The array of {previous} is open, so its data may have any value here. Close the array "
            "(additionalItems: false) before you add to it, or give the new item an empty schema."
        ),
        (
            "The array of the new schema is open, so its data may have values here that {previous} does not accept. "
            "Keep the item, or close the array (additionalItems: false)."
        ),
    ),
}


def compatible(kind: str, policy: Policy) -> bool:
    """Return whether a kind of difference is compatible under a policy."""
    return kind not in _DESCRIPTIONS or (policy is Policy.LENIENT and kind in _LENIENT)


def describe(kind: str, path: str, *, reader: str = "reader", writer: str = "writer") -> str:
    """Return one sentence about a difference, empty for kinds without a sentence in the reference.

    Args:
        kind: The kind of difference.
        path: Its path.
        reader: The word for the reader schema.
        writer: The word for the writer schema.
    """
    if kind == TOO_COMPLEX:
        return _UNFINISHED.format(path=path)
    return _DESCRIPTIONS.get(kind, "").format(path=path, reader=reader, writer=writer)


def wire_message(finding: Incompatibility, *, reader: str, writer: str) -> str:
    """Return the message of a finding as in the reference's answers.

    Args:
        finding: The finding.
        reader: The word for the reader schema, "new" or "old".
        writer: The word for the writer schema, "old" or "new".
    """
    if finding.kind == TOO_COMPLEX:
        return _UNFINISHED.format(path=finding.detail)
    text = describe(finding.kind, finding.path, reader=reader, writer=writer)
    return f'{{errorType:"{finding.kind}", description:"{text}\'}}'


def explain(finding: Incompatibility) -> str:
    """Return what is wrong and which change would be accepted, for the person who wants to register the new schema."""
    previous = finding.previous
    if finding.kind == TOO_COMPLEX:
        return f"The new schema and {previous} are too complex to compare: {finding.detail}. Register a simpler schema."
    backward = finding.direction is not Direction.FORWARD
    values = (finding.writer_value, finding.reader_value)
    old, new = values if backward else reversed(values)
    described = _DESCRIPTIONS.get(finding.kind, "")
    remedies = _REMEDIES_BY_KIND.get(finding.kind) or _REMEDIES.get(described, _AS_IT_WAS)
    remedy = remedies[0 if backward else 1].format(previous=previous, old=_shown(old), new=_shown(new))
    return f"At {finding.path} (rule {finding.kind}): {remedy[0].upper()}{remedy[1:]}"


def _shown(value: Value) -> str:
    """Return the value of a schema at a path as text for a sentence."""
    if value is None:
        return "none"
    if isinstance(value, Decimal) and abs(value.adjusted()) > _LONGEST_NUMBER:
        return repr(to_double(value))
    text = str(value) if isinstance(value, str | Decimal) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
