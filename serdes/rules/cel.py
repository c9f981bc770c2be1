"""CEL rules (Common Expression Language): over whole values, or over fields.

    CEL        message                                          the value
    CEL_FIELD  value, fullName, name, typeName, tags, message   a field of a primitive type, and the record around it

Both have `now`. A guard and a semicolon may precede an expression: where the guard is false, a condition holds and a
transform leaves the value unchanged. Strings have isEmail, isHostname, isIpv4, isIpv6, isUri, isUriRef and isUuid, as
in every client, and CEL's own extensions for strings and numbers.

Timestamps are CEL's, dates are days since 1970, times of day are durations, decimals and UUIDs strings. Protobuf
messages are messages.

The library is Google's, over their C++ implementation. It bounds the depth of an expression, the rounds of its macros
and the time of its patterns. It does not bound the depth of a value, so this file does, nor memory, so
`strata.serdes.rules.cel_cost` does.

Rules of this file: one compiled expression for each text; values in and out.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from cel_expr_python import cel
from cel_expr_python.ext import ext_math, ext_strings
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import StringValue

from strata.serdes.branch import Branch
from strata.serdes.client import RegistryClient
from strata.serdes.errors import RuleError
from strata.serdes.functions import Convert
from strata.serdes.rules.cel_cost import Cost
from strata.serdes.rules.cel_functions import FUNCTIONS
from strata.serdes.rules.executors import FieldContext, FieldTransform, RuleContext
from strata.shared_cache import SharedCache

__all__ = ["CelExecutor", "CelFieldExecutor"]

MAX_EXPRESSION = 16 * 1024
"""Characters of an expression."""
MAX_DEPTH = 200
"""How deep values may nest."""

_PRIMITIVES = frozenset({"INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "NULL", "STRING", "BYTES"})
_LITERAL = r'"""(?:[^\\]|\\.)*?"""|' + r"'''(?:[^\\]|\\.)*?'''|" + r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_GUARDED = re.compile(rf"((?:{_LITERAL}|[^;\"'])*);(.*)", re.DOTALL)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LEAST, _MOST = -(2**63), 2**64
_QUOTABLE = re.compile(
    r"no_such_field : \w+|No matching overloads found : .*|(?:divide|modulus) by zero|budget exceeded"
)
_CACHED = 1000
_LONGEST_REASON = 200

_Variables = Mapping[str, cel.Type]
_MESSAGE: _Variables = {"message": cel.Type.DYN, "now": cel.Type.TIMESTAMP}
_FIELD: _Variables = {
    **_MESSAGE,
    "value": cel.Type.DYN,
    "fullName": cel.Type.STRING,
    "name": cel.Type.STRING,
    "typeName": cel.Type.STRING,
    "tags": cel.Type.List(cel.Type.STRING),
}


class CelExecutor:
    """The executor of CEL rules over whole values.

    Args:
        client: the registry; not used.
        settings: not used.
    """

    def __init__(self, client: RegistryClient, settings: Mapping[str, object]) -> None:  # noqa: ARG002 - an interface
        self._programs = _Programs(_MESSAGE)

    def transform(self, context: RuleContext, message: object) -> object:
        """Return the new value or, for a condition, whether it holds.

        Raises:
            RuleError: If the expression is invalid, fails or exceeds a bound.
        """
        return self._programs.result(context, message, message, {})


class CelFieldExecutor:
    """The executor of CEL_FIELD rules, over fields of primitive types.

    Args:
        client: the registry; not used.
        settings: not used.
    """

    def __init__(self, client: RegistryClient, settings: Mapping[str, object]) -> None:  # noqa: ARG002 - an interface
        self._programs = _Programs(_FIELD)

    def field_transform(self, context: RuleContext) -> FieldTransform:
        """Return the function to call with each field of one record.

        Raises:
            RuleError: From the function, if the expression is invalid, fails or exceeds a bound.
        """
        asks = context.rule.kind == "CONDITION"

        def transformed(field: FieldContext, value: object) -> object:
            if field.type_name not in _PRIMITIVES:
                return asks or value
            data = {
                "value": _to_cel(value),
                "fullName": field.full_name,
                "name": field.name,
                "typeName": field.type_name,
                "tags": sorted(field.tags),
            }
            return self._programs.result(context, field.message, value, data)

        return transformed


class _Program(NamedTuple):
    compiled: Any
    cost: Cost


class _Programs:
    """Compiled expressions over some variables."""

    def __init__(self, variables: _Variables) -> None:
        self._variables = variables
        self._environments: SharedCache[object, object] = SharedCache(_CACHED)
        self._programs: SharedCache[object, tuple[_Program | None, _Program]] = SharedCache(_CACHED)

    def result(self, context: RuleContext, message: object, value: object, data: dict[str, object]) -> object:
        expression = context.rule.expr or ""
        descriptor = type(message).DESCRIPTOR if isinstance(message, Message) else None
        pool = None if descriptor is None else descriptor.file.pool
        guard, program = self._programs.get((expression, pool), lambda: self._compiled(expression, pool))
        data["message"] = _to_cel(message)
        if "now" in expression:
            data["now"] = _timestamp(datetime.now(UTC))
        asks = context.rule.kind == "CONDITION"
        if guard is not None and _evaluated(guard, data) is not True:
            return asks or value
        return _evaluated(program, data)

    def _compiled(self, expression: str, pool: object) -> tuple[_Program | None, _Program]:
        if not expression.strip():
            raise RuleError("the rule has no expression")
        if len(expression) > MAX_EXPRESSION:
            raise RuleError(f"the expression is longer than {MAX_EXPRESSION} characters")
        if "\0" in expression:
            raise RuleError("the expression contains a zero character")
        guarded = _GUARDED.fullmatch(expression)
        guard, expression = guarded.groups() if guarded else ("", expression)
        environment = self._environments.get(pool, lambda: self._environment(pool))
        return self._program(environment, guard) if guard.strip() else None, self._program(environment, expression)

    def _program(self, environment: Any, expression: str) -> _Program:
        try:
            compiled = environment.compile(expression)
            cost = Cost(compiled.serialize(), tuple(self._variables))
        except RuntimeError as error:
            reason = str(error).partition("\n")[0][:_LONGEST_REASON]
            raise RuleError(f"invalid CEL expression: {reason}") from None
        return _Program(compiled, cost)

    def _environment(self, pool: object) -> object:
        return cel.NewEnv(
            descriptor_pool=pool,
            variables=self._variables,
            functions=FUNCTIONS,
            extensions=[ext_strings.ExtStrings(), ext_math.ExtMath()],
        )


def _evaluated(program: _Program, data: Mapping[str, object]) -> object:
    program.cost.check(data)
    try:
        result = program.compiled.eval(data=data)
        plain = result.plain_value()
    except RuntimeError as error:
        raise RuleError(f"the expression cannot be evaluated: {_reason(error)}") from None
    if result.type() == cel.Type.ERROR:
        raise RuleError(f"the expression cannot be evaluated: {_reason(plain)}")
    return _from_cel(plain)


def _reason(error: object) -> str:
    """Return the parts of an error that cannot quote the record, else the kind of error alone."""
    text = str(error)
    safe = _QUOTABLE.search(text)
    return (safe.group() if safe is not None else text.partition(":")[0])[:_LONGEST_REASON]


def _timestamp(value: datetime) -> Timestamp:
    made = Timestamp()
    made.FromDatetime(value)  # a datetime without a time zone counts as UTC
    return made


def _duration(value: timedelta) -> Duration:
    made = Duration()
    made.FromTimedelta(value)
    return made


def _time_of_day(value: time) -> Duration:
    whole = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return _duration(whole)


def _text(value: str) -> str | StringValue:
    """Return a string for the library, which ends strings at their first zero, except those in messages."""
    return StringValue(value=value) if "\0" in value else value


def _whole(value: int) -> int:
    if not _LEAST <= value < _MOST:
        raise RuleError("the value contains an integer of more than 64 bits")
    return value


_INTO: tuple[tuple[type | tuple[type, ...], Convert], ...] = (
    ((bool, float, Message), lambda value: value),
    (str, _text),
    (int, _whole),
    ((bytes, bytearray, memoryview), bytearray),  # the library cuts bytes at their first zero
    (datetime, _timestamp),
    (date, lambda value: value.toordinal() - _EPOCH_ORDINAL),
    (time, _time_of_day),
    (timedelta, _duration),
    ((Decimal, UUID), str),
)


_AS_IT_IS = frozenset({type(None), bool, float})


def _to_cel(value: object, depth: int = 0) -> object:
    """Convert a value for the library, which breaks on values that nest too deeply."""
    if type(value) in _AS_IT_IS:
        return value
    if depth > MAX_DEPTH:
        raise RuleError(f"the value is nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        return {_key(key): _to_cel(item, depth + 1) for key, item in value.items()}
    for python_type, convert in _INTO:
        if isinstance(value, python_type):
            return convert(value)
    if isinstance(value, tuple) and len(value) == 2 and (isinstance(value, Branch) or isinstance(value[0], str)):
        return _to_cel(value[1], depth + 1)  # a branch of a union and its value
    if isinstance(value, Sequence):
        return [_to_cel(item, depth + 1) for item in value]
    if hasattr(value, "__index__"):
        return _whole(value.__index__())
    if hasattr(value, "__float__"):
        return float(value)
    raise RuleError(f"the value contains a {type(value).__name__}, which CEL has no type for")


def _key(key: object) -> object:
    if isinstance(key, bool | int):
        return key
    text = str(key)
    if "\0" in text:
        raise RuleError("the value contains a key with a zero character, which CEL cannot read")
    return text


def _from_cel(value: object) -> object:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return {key: _from_cel(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_cel(item) for item in value]
    return value
