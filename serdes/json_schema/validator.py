"""Validation of values against a JSON Schema.

Rules of this file: orjson, which bounds the depth, has parsed the values, since the validator does not bound it; the
validator fetches nothing, whatever a schema says.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NoReturn

import jsonschema_rs

from strata.serdes.errors import DecodeError, DecodeReason, SchemaError
from strata.serdes.json_schema.explanations import explain, order
from strata.serdes.json_schema.places import base_uri, is_recursive

__all__ = ["Validator", "compiled"]

_LONGEST_MESSAGE = 300
_MOST_EXPLAINED = 10_000
"""The most paths through a schema's branches for which an error names the path that failed."""
_MOST_ROUNDS = 10
"""How often unknown properties are dropped: those of one level may hide those of the next."""
_UNKNOWN = ("additionalProperties", "unevaluatedProperties")


class Validator:
    """A callable that raises DecodeError for values that a schema does not allow."""

    def __init__(self, validator: Any, documents: Mapping[str, object]) -> None:
        self._validator = validator
        self.is_valid: Callable[[object], bool] = validator.is_valid
        self._documents = documents

    @cached_property
    def _branches(self) -> int:
        """The most branches in one place, or 1 if no `$ref` can make them nest in themselves."""
        return _most_branches(list(self._documents.values())) if is_recursive(self._documents) else 1

    def __call__(self, value: object) -> None:
        """Validate a value.

        Raises:
            DecodeError: If the schema does not allow the value; it has the rule and the path.
        """
        self._validate(value, self._validator.validate)

    def in_order(self, value: object) -> None:
        """Validate a value; of several errors, raise that of the first path and rule.

        Raises:
            DecodeError: If the schema does not allow the value.
        """
        self._validate(value, self._raise_first)

    def _raise_first(self, value: object) -> NoReturn:
        raise min(self._validator.iter_errors(value), key=order)

    def _validate(self, value: object, refuse: Callable[[object], None]) -> None:
        """Validate a value, and explain the error that `refuse` raises for it."""
        if self.is_valid(value):
            return
        if self._has_many_ways(value):
            raise DecodeError(
                DecodeReason.INVALID_VALUE, "the schema does not allow the value; too many branches to say which rule"
            )
        try:
            refuse(value)
        except jsonschema_rs.ValidationError as error:
            detail, path = explain(error, self._documents)
            raise DecodeError(DecodeReason.INVALID_VALUE, detail, path=path) from None
        except ValueError:  # the value is nested too deeply for the validator's error
            raise DecodeError(
                DecodeReason.INVALID_VALUE, "the schema does not allow the value; it is nested too deeply to say where"
            ) from None

    def drop_unknown(self, value: Any) -> bool:
        """Remove the properties that a closed schema lacks from a value, in place.

        Returns:
            Whether there were any.
        """
        dropped = False
        for _ in range(_MOST_ROUNDS):
            if self.is_valid(value) or self._has_many_ways(value):
                break
            errors = [error for error in self._validator.iter_errors(value) if error.kind.name in _UNKNOWN]
            for error in errors:
                place = value
                for step in error.instance_path:
                    place = place[step]
                for name in error.kind.unexpected:
                    place.pop(name, None)
            dropped = dropped or bool(errors)
            if not errors:
                break
        return dropped

    def _has_many_ways(self, value: object) -> bool:
        """Return whether the validator would try too many branches to explain the error."""
        return self._branches > 1 and self._branches ** _depth(value) > _MOST_EXPLAINED


def compiled(document: Any, resources: Mapping[str, Any], base: str) -> Validator:
    """Return the validator of a document.

    Args:
        document: the parsed schema.
        resources: the documents that it may refer to, by URI.
        base: the URI of the document.

    Raises:
        SchemaError: If the schema cannot be used.
    """
    try:
        registry = jsonschema_rs.Registry(list(resources.items()), draft=jsonschema_rs.Draft7) if resources else None
        validator = jsonschema_rs.validator_for(document, registry=registry, base_uri=base or None, offline=True)
    except (ValueError, TypeError) as error:
        raise SchemaError(f"the JSON Schema cannot be used: {_brief(error)}") from None
    return Validator(validator, {base: document, **resources, base_uri(document, base): document})


def _most_branches(documents: list[object]) -> int:
    """Return the most branches that a schema has in one place."""
    most, rest = 1, documents
    while rest:
        below: list[object] = []
        for node in rest:
            if isinstance(node, dict):
                most = max([most, *(len(node[key]) for key in ("oneOf", "anyOf") if isinstance(node.get(key), list))])
                below += node.values()
            elif isinstance(node, list):
                below += node
        rest = below
    return most


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        inner = (node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list))
        depth, level = depth + 1, [value for values in inner for value in values if isinstance(value, dict | list)]
    return depth


def _brief(error: Exception) -> str:
    return str(error).partition("\n")[0][:_LONGEST_MESSAGE]
