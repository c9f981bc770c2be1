"""Lines and columns in schema files, for errors and findings that name a place in the schema."""

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out

__all__ = ["Position", "position_in_error", "position_of"]

_AT = re.compile(r"line (\d+),? column (\d+)")
_POINTER = re.compile(r"\(at (#[^)]*)\)")
_FIELD = re.compile(r"\(in field ([^)]*)\)|field ([\w.]+)\)")
_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,\]}]+")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file; both numbers count from 1."""

    line: int = 1
    column: int = 1


def position_in_error(text: str, message: str, schema_format: str) -> Position:
    """Return the place that the message of a parse error names, or the start of the file."""
    if match := _AT.search(message):
        return Position(int(match[1]), int(match[2]))
    if match := _POINTER.search(message):
        return position_of(text, match[1], "", schema_format)
    if match := _FIELD.search(message):
        return position_of(text, "", match[1] or match[2], schema_format)
    return Position()


def position_of(text: str, path: str, names: str, schema_format: str) -> Position:
    """Return the place of a finding, as near to it as the file goes.

    Args:
        text: the text of the file.
        path: the path of the finding: a JSON pointer, or the rule's own path in Protobuf.
        names: the same place by the names of fields.
        schema_format: the format.
    """
    if schema_format == "PROTOBUF":
        return _at(
            text, _in_protobuf(text, re.findall(r"\w+", names.partition(" (")[0]) or path.strip("#/").split("/"))
        )
    try:
        by_path = _in_json(text, [_unescaped(part) for part in path.lstrip("#").split("/") if part])
        if schema_format == "AVRO" and names:
            return _at(text, _avro_field(text, names.split(".")) or by_path)
    except (ValueError, IndexError, RecursionError):
        return Position()
    return _at(text, by_path)


def _at(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _in_json(text: str, path: list[str]) -> int:
    """Return the offset of the value at a path, or of the last value on the way that exists."""
    offset = _skip(text, 0)
    for part in path:
        inner = dict(_children(text, offset))
        if part not in inner:
            return offset
        offset = inner[part]
    return offset


def _avro_field(text: str, names: list[str]) -> int | None:
    """Return the offset of the last of some nested fields that the text has; None if it has none of them."""
    start, position = 0, None
    for name in names:
        match = re.compile(rf'"name"\s*:\s*{re.escape(json.dumps(name))}').search(text, start)
        if match is None:
            return position
        start = position = match.start()
    return position


def _children(text: str, offset: int) -> list[tuple[str, int]]:
    """Return the values directly inside an object or array, by key or index, with their offsets."""
    if text[offset] not in "{[":
        return []
    closing = {"{": "}", "[": "]"}[text[offset]]
    children: list[tuple[str, int]] = []
    at = _skip(text, offset + 1)
    while text[at] != closing:
        key = str(len(children))
        if closing == "}":
            key, at = scanstring(text, at + 1)
            at = _skip(text, _skip(text, at) + 1)
        children.append((key, at))
        at = _skip(text, _end(text, at))
        if text[at] == ",":
            at = _skip(text, at + 1)
    return children


def _end(text: str, offset: int) -> int:
    """Return the offset after a value."""
    if text[offset] == '"':
        return int(scanstring(text, offset + 1)[1])
    if text[offset] not in "{[":
        match = _SCALAR.match(text, offset)
        return match.end() if match else offset + 1
    depth, at = 0, offset
    while True:
        if text[at] == '"':
            at = int(scanstring(text, at + 1)[1])
            continue
        depth += (text[at] in "{[") - (text[at] in "}]")
        at += 1
        if depth == 0:
            return at


def _skip(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


def _in_protobuf(text: str, names: list[str]) -> int:
    """Return the offset of the last of some nested definitions that the text has; names that it lacks are passed."""
    plain = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    start = 0
    for name in names:
        definition = rf"\b(?:message|enum|service|oneof|extend)\s+({re.escape(name)})\b|\b({re.escape(name)})\s*="
        match = re.compile(definition).search(plain, start)
        if match is not None:
            start = match.start(match.lastindex or 0)
    return start
