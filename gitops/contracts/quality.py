"""Quality checks of ODCS 3.1 as conditions in CEL, as far as one record decides them; and such conditions as checks.

A check of all rows (their number, duplicates) or of a database (SQL) is not about one record and has no condition.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["ENGINE", "Form", "checks_of", "conditions_of"]

ENGINE = "cel"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NUMBERS = ("integer", "number")
_BOUNDS = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
_LENGTHS = {"minLength": ">=", "maxLength": "<="}
_NONE_AT_ALL = {"mustBe": "0", "mustBeLessThan": "1", "mustBeLessOrEqualTo": "0"}
"""The ways to say that no row may fail; less than one percent is another thing."""


class Form(NamedTuple):
    """What conditions depend on besides the field.

    Attributes:
        absent: an expression for an absent value.
        has_options: whether the schema itself has the options of types and the values of enums.
    """

    absent: str = "{} == null"
    has_options: bool = False


def conditions_of(
    path: Sequence[str],
    field: Mapping[str, Any],
    form: Form = Form(),  # noqa: B008 - frozen
    *,
    nullable: bool,
) -> tuple[list[dict[str, object]], list[str]]:
    """Return the rules of a field's options and checks, and the names of checks that no rule can express.

    Args:
        path: the names of the fields from the top; empty for the record itself.
        field: the property or schema object of the contract.
        form: what the schema format needs.
        nullable: whether the field may be null; its conditions then hold for null.
    """
    rules, left_out = [], []
    value = ".".join(("message", *path))
    absent = form.absent.format(value)
    for name, expression in () if form.has_options else _options(value, field):
        rules.append(_rule((*path, name), _guarded(expression, absent, nullable=nullable and bool(path))))
    for number, check in enumerate(field.get("quality") or (), 1):
        name = str(check.get("name") or check.get("metric") or f"quality{number}")
        condition = _check(value, check, str(field.get("logicalType")))
        if (
            form.has_options
            and check.get("metric") == "invalidValues"
            and "validValues" in (check.get("arguments") or {})
        ):
            continue  # the schema has an enum
        if condition is None:
            left_out.append(".".join((*path, name)))
        elif check.get("engine"):
            rules.append(_rule((name,), condition, check.get("description")))
        else:
            keeps_null = nullable and check.get("metric") != "nullValues" and bool(path)
            rules.append(
                _rule((*path, name), _guarded(condition, absent, nullable=keeps_null), check.get("description"))
            )
    return rules, left_out


def _options(value: str, field: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    options, logical_type = field.get("logicalTypeOptions") or {}, field.get("logicalType")
    for name, operator in _BOUNDS.items():
        if name in options and logical_type in _NUMBERS:
            yield name, f"{value} {operator} {_number(options[name], logical_type)}"
    for name, operator in _LENGTHS.items():
        if name in options and logical_type == "string":
            yield name, f"size({value}) {operator} {int(options[name])}"
    if "pattern" in options and logical_type == "string":
        yield "pattern", f"{value}.matches({_text(options['pattern'])})"


def _number(text: Any, logical_type: str) -> str:
    return str(int(float(text))) if logical_type == "integer" else repr(float(text))


def _check(value: str, check: Mapping[str, Any], logical_type: str) -> str | None:
    """Return the condition of one check; None if one record does not decide it."""
    if check.get("type") == "custom":
        return str(check["implementation"]) if check.get("engine") == ENGINE and check.get("implementation") else None
    metric, arguments = check.get("metric"), check.get("arguments") or {}
    bounds = [name for name, bound in _NONE_AT_ALL.items() if str(check.get(name)) == bound]
    if not bounds or (bounds == ["mustBeLessThan"] and check.get("unit") == "percent"):
        return None
    if metric == "nullValues":
        return f"{value} != null"
    if metric == "missingValues" and arguments.get("missingValues"):
        return f"!({value} in {_texts(arguments['missingValues'])})"
    if metric == "invalidValues" and arguments.get("validValues"):
        return f"{value} in {_values(arguments['validValues'], logical_type)}"
    if metric == "invalidValues" and arguments.get("pattern"):
        return f"{value}.matches({_text(arguments['pattern'])})"
    return None


def _guarded(expression: str, absent: str, *, nullable: bool) -> str:
    return f"{absent} || {expression}" if nullable else expression


def _text(text: object) -> str:
    return json.dumps(str(text), ensure_ascii=False)


def _texts(texts: Sequence[object]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _values(values: Sequence[object], logical_type: str) -> str:
    """Return a list in CEL of values of a logical type."""
    if logical_type == "boolean":
        return f"[{', '.join(str(value).lower() for value in values)}]"
    return (
        f"[{', '.join(_number(value, logical_type) for value in values)}]"
        if logical_type in _NUMBERS
        else _texts(values)
    )


def _rule(path: Sequence[str], expression: str, doc: object = None) -> dict[str, Any]:
    name = _NOT_IN_NAMES.sub("-", "_".join(path))
    name = name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
    rule = {"name": name, "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": expression}
    return rule | ({"doc": str(doc)} if doc else {})


def checks_of(rule_set: Mapping[str, Any] | None) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Return the conditions in CEL of a rule set as checks, and the rest of it."""
    checks: list[dict[str, object]] = []
    rest = {name: value for name, value in (rule_set or {}).items() if value}
    kept = []
    for rule in rest.pop("domainRules", ()):
        if not _is_check(rule):
            kept.append(rule)
            continue
        check = {"name": rule["name"], "type": "custom", "engine": ENGINE, "implementation": rule["expr"]}
        checks.append(check | ({"description": rule["doc"]} if rule.get("doc") else {}))
    return checks, rest | ({"domainRules": kept} if kept else {})


def _is_check(rule: Mapping[str, object]) -> bool:
    plain = {"name", "kind", "type", "mode", "expr", "doc", "disabled"}
    shape = (rule.get("kind"), rule.get("type"), rule.get("mode"), bool(rule.get("disabled")))
    return set(rule) <= plain and shape == ("CONDITION", "CEL", "WRITE", False) and "expr" in rule
