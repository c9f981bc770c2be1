"""The wording of validation errors of a JSON Schema: a sentence, the rule, and the path.

    expected an integer, got a string (rule properties/lines/items/properties/qty/type)    lines[3].qty

For `oneOf` and `anyOf` it explains the branch that the value resembles most.

Rules of this file: errors of the validator in, sentences out; they quote the schema, and of the value only the names of
properties.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any
from urllib.parse import unquote

from jsonschema_rs import ValidationError

from strata.serdes.errors import any_of, did_you_mean, index_part, join_path, key_part, one_of, unknown_field

__all__ = ["explain", "order", "path_of"]

Documents = Mapping[str, object]
"""A schema and what it refers to, by URI."""
Sentence = Callable[[ValidationError, Documents], tuple[str, str]]
"""Returns the sentence for an error, and the path from the error's place to the value at fault."""

_NAME = re.compile(r"[\w-]+")
_LONGEST_QUOTE = 40
_DEEPEST = 20
_TYPES = {
    "array": "an array",
    "boolean": "a boolean",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
}
_FORMATS = {
    "date": "an ISO 8601 date",
    "date-time": "an ISO 8601 date and time with a time zone",
    "time": "an ISO 8601 time of day with a time zone",
    "uuid": "a UUID",
}
_FIELD, _KEY, _ITEM = "field", "key", "item"
_STEPS: Mapping[str, tuple[str | None, int]] = {
    "properties": (_FIELD, 2),
    "patternProperties": (_KEY, 2),
    "additionalProperties": (_KEY, 1),
    "unevaluatedProperties": (_KEY, 1),
    "prefixItems": (_ITEM, 2),
    "items": (_ITEM, 1),
    "additionalItems": (_ITEM, 1),
    "unevaluatedItems": (_ITEM, 1),
    **dict.fromkeys(("allOf", "oneOf", "anyOf", "dependentSchemas", "dependencies"), (None, 2)),
}
"""The path part that a keyword adds, and how many steps of the schema path it takes."""


def explain(error: ValidationError, documents: Documents) -> tuple[str, str]:
    """Return the sentence for a validation error, with its rule, and the path of the value at fault.

    Args:
        error: an error of jsonschema-rs.
        documents: the schema and what it refers to, by URI.
    """
    nearest, branch = _nearest(error, 0)
    sentence: Sentence = _SENTENCES.get(nearest.kind.name, _fixed("the schema does not allow the value"))
    detail, part = _marks(error, nearest) or sentence(nearest, documents)
    rule = "/".join(map(str, nearest.schema_path)) or "false"
    return f"{detail} (rule {rule}{branch})", join_path(path_of(nearest), part)


def order(error: ValidationError) -> tuple[object, ...]:
    """Return the place of an error among those of a value: by the value's path, then by the rule.

    The validator's own order depends on its version.
    """
    return list(error.instance_path), "/".join(map(str, error.schema_path))


def path_of(error: ValidationError) -> str:
    """Return the path of the value that a validation error is about."""
    styles, way = [], list(error.evaluation_path)
    while way:
        style, steps = _STEPS.get(way[0], (None, 1)) if isinstance(way[0], str) else (None, 1)
        styles += [style] if style is not None else []
        way = way[steps:]
    parts = zip_longest(error.instance_path, styles[: len(error.instance_path)])
    return "".join(_part(part, style) for part, style in parts).lstrip(".")


def _part(part: str | int, style: str | None) -> str:
    if isinstance(part, int):
        return index_part(part)
    return f".{part}" if style != _KEY and _NAME.fullmatch(part) else key_part(part)


def _nearest(error: ValidationError, depth: int) -> tuple[ValidationError, str]:
    """Return the error in the nearest branch with a note on it; without branches the error itself."""
    context = _context(error) if error.kind.name in ("oneOf", "anyOf") and depth < _DEEPEST else []
    branches = [branch for branch in context if not _is_of_another_type(branch, error)]
    if not branches or not all(context):
        return error, ""
    best = min(branches, key=_distance)
    nearest, _ = _nearest(min(best, key=_importance), depth + 1)
    return nearest, f", in the nearest branch of {error.kind.name}"


def _facts(error: ValidationError) -> Any:
    """Return what a keyword says of an error; each keyword has attributes of its own."""
    return error.kind


def _context(error: ValidationError) -> list[list[ValidationError]]:
    """Return the errors of each branch, in order."""
    return [sorted(branch, key=order) for branch in _facts(error).context]


def _is_of_another_type(errors: list[ValidationError], error: ValidationError) -> bool:
    return any(error_.kind.name == "type" and error_.instance_path == error.instance_path for error_ in errors)


def _distance(errors: list[ValidationError]) -> tuple[int, int]:
    """Return how far a value is from a branch; a wrong constant suggests that another branch is meant."""
    return sum(error.kind.name in ("const", "enum") for error in errors), len(errors)


def _importance(error: ValidationError) -> int:
    """Rank errors: a constant identifies the branch, and an unknown property may be a misspelled one."""
    return {"const": 0, "additionalProperties": 1}.get(error.kind.name, 2)


def _marks(error: ValidationError, nearest: ValidationError) -> tuple[str, str] | None:
    """Return the sentence for a value that has none of the constants that identify the branches."""
    if error is nearest or nearest.kind.name != "const" or not isinstance(nearest.instance, str):
        return None
    others = [other for branch in _context(error) for other in branch if other.kind.name == "const"]
    marks = [str(_facts(other).expected_value) for other in others if other.instance_path == nearest.instance_path]
    return f"expected {one_of(marks)}, got another string{did_you_mean(nearest.instance, marks)}", ""


def _kind(value: object) -> str:
    return _TYPES[_KINDS.get(type(value), "object")]


def _types(names: Iterable[str]) -> str:
    return any_of([_TYPES.get(name, name) for name in sorted(names, key=lambda name: name == "null")])


def _type(error: ValidationError, _: Documents) -> tuple[str, str]:
    return f"expected {_types(_facts(error).types)}, got {_kind(error.instance)}", ""


def _branch(error: ValidationError, _: Documents) -> tuple[str, str]:
    """Word an error of `oneOf` or `anyOf`: all branches want another type, or several accept the value."""
    if not all(_facts(error).context):
        return "expected a value that fits one branch of oneOf, got one that fits several", ""
    errors = [inner for branch in _context(error) for inner in branch if inner.kind.name == "type"]
    if not errors:
        return f"expected a value that fits a branch of {error.kind.name}", ""
    types = dict.fromkeys(type_name for error_ in errors for type_name in _facts(error_).types)
    return f"expected {_types(types)}, got {_kind(error.instance)}", ""


def _required(error: ValidationError, documents: Documents) -> tuple[str, str]:
    name, known = _facts(error).property, _properties(error, documents)
    keys = error.instance if isinstance(error.instance, dict) else ()
    misspelled = next((key for key in sorted(keys) if key not in known and did_you_mean(key, [name])), None)
    advice = "" if misspelled is None else f"; is it misspelled as {str(misspelled)[:_LONGEST_QUOTE]!r}?"
    return f"expected a value, got none: the property is required{advice}", _part(name, _FIELD)


def _additional(error: ValidationError, documents: Documents) -> tuple[str, str]:
    problem = unknown_field(_facts(error).unexpected[0], _properties(error, documents))
    return problem.detail, _part(_facts(error).unexpected[0], _FIELD)


def _properties(error: ValidationError, documents: Documents) -> Mapping[str, object]:
    """Return the properties of the schema whose keyword an error is about."""
    uri, _, pointer = str(error.absolute_keyword_location or "").partition("#")
    part = documents.get(uri)
    for step in unquote(pointer).split("/")[1:-1]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, list) and name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        else:
            part = part.get(name) if isinstance(part, dict) else None
    known = part.get("properties") if isinstance(part, dict) else None
    return known if isinstance(known, dict) else {}


def _enum(error: ValidationError, _: Documents) -> tuple[str, str]:
    texts = [option for option in _facts(error).options if isinstance(option, str)]
    near = did_you_mean(error.instance, texts) if isinstance(error.instance, str) else ""
    got = "another string" if texts and isinstance(error.instance, str) else _kind(error.instance)
    listed = one_of(texts) if len(texts) == len(_facts(error).options) else "a value of the enum"
    return f"expected {listed}, got {got}{near}", ""


def _constant(error: ValidationError, _: Documents) -> tuple[str, str]:
    return f"expected {json.dumps(_facts(error).expected_value)[:_LONGEST_QUOTE]}, got {_other(error)}", ""


def _other(error: ValidationError) -> str:
    return _kind(error.instance).replace("a ", "another ", 1).replace("an ", "another ", 1)


def _format(error: ValidationError, _: Documents) -> tuple[str, str]:
    wanted = _FORMATS.get(_facts(error).format, f"a string in the format {_facts(error).format[:_LONGEST_QUOTE]}")
    return f"expected {wanted}, got another string", ""


def _pattern(error: ValidationError, _: Documents) -> tuple[str, str]:
    return f"expected a string that matches {_facts(error).pattern[:_LONGEST_QUOTE]!r}, got another string", ""


def _bound(what: str, got: str) -> Sentence:
    return lambda error, _: (f"expected {what.format(_facts(error).value)}, got {got}", "")


def _fixed(detail: str) -> Sentence:
    return lambda _, __: (detail, "")


_SENTENCES: Mapping[str, Sentence] = {
    "type": _type,
    "oneOf": _branch,
    "anyOf": _branch,
    "required": _required,
    "additionalProperties": _additional,
    "unevaluatedProperties": _additional,
    "enum": _enum,
    "const": _constant,
    "format": _format,
    "pattern": _pattern,
    "minimum": _bound("a number of at least {}", "a smaller one"),
    "maximum": _bound("a number of at most {}", "a larger one"),
    "exclusiveMinimum": _bound("a number above {}", "a smaller or equal one"),
    "exclusiveMaximum": _bound("a number below {}", "a larger or equal one"),
    "multipleOf": _bound("a multiple of {}", "another number"),
    "minLength": _bound("a string of at least {} characters", "a shorter one"),
    "maxLength": _bound("a string of at most {} characters", "a longer one"),
    "minItems": _bound("an array of at least {} items", "a shorter one"),
    "maxItems": _bound("an array of at most {} items", "a longer one"),
    "minProperties": _bound("an object of at least {} properties", "fewer"),
    "maxProperties": _bound("an object of at most {} properties", "more"),
    "uniqueItems": _fixed("expected unique items, got equal ones"),
    "falseSchema": _fixed("the schema allows no value here"),
}
