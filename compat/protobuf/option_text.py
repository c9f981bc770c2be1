"""The parser of options: names with parts in parentheses, and values with maps and lists."""

from collections.abc import Mapping
from typing import Final

from strata.compat.protobuf.model import Kind, ListValue, MapValue, Option, Scalar, Value, in_maps
from strata.compat.protobuf.reader import Reader

__all__ = ["read_option", "read_options", "strip_option"]

_NUMBER_STARTS: Final = "-0123456789"
_CLOSING: Final[Mapping[str, str]] = {"(": ")", "[": "]"}
_WORDS: Final[Mapping[str, Kind]] = {"true": Kind.BOOLEAN, "false": Kind.BOOLEAN}


def read_options(reader: Reader, depth: int) -> tuple[Option, ...]:
    """Read the options in brackets, if there are any.

    Args:
        reader: The reader.
        depth: The largest depth of a value.

    Raises:
        SchemaParseError: The text is invalid, or a value is nested too deeply.
    """
    if not reader.take("["):
        return ()
    options = [read_option(reader, depth)]
    while not reader.take("]"):
        if not reader.take(","):
            raise reader.fault("',' or ']' is missing after an option")
        options.append(read_option(reader, depth))
    return tuple(options)


def read_option(reader: Reader, depth: int) -> Option:
    """Read `name = value`; see `read_options` for the arguments.

    Raises:
        SchemaParseError: The text is invalid, or the value is nested too deeply.
    """
    reader.peek()
    at = reader.position
    name, path, custom = _read_name(reader, depth)
    if not reader.take("="):
        raise reader.fault(f"'=' is missing after the option name {'.'.join((name, *path))[:60]}")
    return Option(name, _read_value(reader, depth - len(path)), custom, path, at)


def _read_name(reader: Reader, depth: int) -> tuple[str, tuple[str, ...], bool]:
    first = reader.peek()
    name = reader.name()
    if first == "[":
        name = f"[{name}]"
    path: list[str] = []
    while reader.take("."):
        opening = reader.peek()
        word = reader.name(dots=False)
        path.append(f"{opening}{word}{_CLOSING[opening]}" if opening in _CLOSING else word)
        if len(path) > depth:
            raise reader.fault("The name of an option has too many parts")
    return name, tuple(path), first == "("


def _read_value(reader: Reader, depth: int) -> Value:
    if depth <= 0:
        raise reader.fault("The value of an option is nested too deeply")
    reader.limits.look_at_clock()
    character = reader.peek()
    if character == "{":
        return _read_map(reader, depth)
    if character == "[":
        return _read_list(reader, depth)
    if character in "\"'":
        return Scalar(Kind.STRING, reader.literal())
    word = reader.word()
    return Scalar(Kind.NUMBER if character in _NUMBER_STARTS else _WORDS.get(word, Kind.ENUM), word)


def _read_list(reader: Reader, depth: int) -> Value:
    reader.require("[")
    items: list[Value] = []
    while not reader.take("]"):
        items.append(_read_value(reader, depth - 1))
        if not reader.take(",") and reader.peek() != "]":
            raise reader.fault("',' or ']' is missing in a list")
    return ListValue(tuple(items))


def _read_map(reader: Reader, depth: int) -> Value:
    """Read entries; a repeated key makes a list. The colon before a brace and the comma or semicolon are optional."""
    reader.require("{")
    entries: dict[str, list[Value]] = {}
    while not reader.take("}"):
        name, path, _ = _read_name(reader, depth)
        if not reader.take(":") and reader.peek() != "{":
            raise reader.fault(f"':' or a value in braces is missing after the key {name[:60]}")
        entries.setdefault(name, []).append(in_maps(path, _read_value(reader, depth - len(path) - 1)))
        if not reader.take(","):
            reader.take(";")
    return MapValue(tuple((name, _joined(values)) for name, values in entries.items()))


def _joined(values: list[Value]) -> Value:
    if len(values) == 1:
        return values[0]
    items: list[Value] = []
    for value in values:
        items += value.items if isinstance(value, ListValue) else (value,)
    return ListValue(tuple(items))


def strip_option(
    reader: Reader, start: int, name: str, options: tuple[Option, ...]
) -> tuple[str | None, tuple[Option, ...]]:
    """Remove a field attribute that is written as an option; return its last value and the other options."""
    named = [option for option in options if option.name == name]
    if not named:
        return None, options
    value = named[-1].value
    if not isinstance(value, Scalar) or named[-1].path:
        raise reader.fault(f"{name} takes a single value, not a list or a map", start)
    return value.text, tuple(option for option in options if option.name != name)
