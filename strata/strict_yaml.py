"""YAML and JSON texts as mappings, lists and texts, and nothing else: no types to guess, no aliases, no tags.

Every scalar of YAML is a text, so a user called `no` or `007` keeps its name. An alias could make a short text a huge
value; neither format may repeat a key, since only one of the values would count.
"""

import json
from collections.abc import Iterable
from typing import Any

import yaml

__all__ = ["InvalidText", "read_text"]

_MOST_DEPTH = 10
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InvalidText(ValueError):
    """A text that cannot be read; the message says where and why."""


def read_text(text: str, *, most_depth: int = _MOST_DEPTH) -> object:
    """Return the value of a text: JSON if it begins with a brace, otherwise YAML.

    Args:
        text: the text.
        most_depth: how deep mappings and lists may be nested.

    Returns:
        Mappings, lists and texts; from JSON also numbers, booleans and None.

    Raises:
        InvalidText: if it is neither, nested too deeply, or repeats a key.
    """
    try:
        return _read_json(text, most_depth) if text.lstrip().startswith("{") else _read_yaml(text, most_depth)
    except yaml.MarkedYAMLError as error:
        raise InvalidText(f"{_line(error.problem_mark)}{error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        raise InvalidText(f"character {error.position}: {error.reason}") from None
    except json.JSONDecodeError as error:
        raise InvalidText(f"line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise InvalidText("the text is nested too deeply") from None


def _read_json(text: str, most_depth: int) -> object:
    value = json.loads(text, object_pairs_hook=_mapping, parse_int=str, parse_float=str)
    _check_depth(value, most_depth)
    return value


def _mapping(pairs: Iterable[tuple[str, Any]]) -> dict[str, object]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidText(f"the key {name!r} appears twice")
        found[name] = value
    return found


def _check_depth(value: Any, most_depth: int) -> None:
    left = [(value, 1)]
    while left:
        one, depth = left.pop()
        if depth > most_depth:
            raise InvalidText(f"the text is nested more than {most_depth} levels deep")
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left += [(each, depth + 1) for each in inner]


class _Open:
    """A mapping or list that has begun; a mapping keeps the key whose value comes next."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key: str | None = None

    def add(self, value: Any, mark: Any) -> None:
        """Add a key or a value."""
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is not None:
            self.value[self.key], self.key = value, None
        elif not isinstance(value, str):
            raise InvalidText(f"{_line(mark)}a key is not a string")
        elif value in self.value:
            raise InvalidText(f"{_line(mark)}the key {value!r} appears twice")
        else:
            self.key = value


def _read_yaml(text: str, most_depth: int) -> object:
    """Return the value of the one document in a text, from the parser's events."""
    root = _Open([])
    stack = [root]
    for event in yaml.parse(text, Loader=_Loader):
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InvalidText(f"{_line(mark)}anchors and aliases are not supported")
        if isinstance(event, yaml.DocumentStartEvent) and root.value:
            raise InvalidText(f"{_line(mark)}expected one document")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) is not None:
            raise InvalidText(f"{_line(mark)}tags are not supported")
        if isinstance(event, yaml.ScalarEvent):
            stack[-1].add(event.value, mark)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(stack) > most_depth:
                raise InvalidText(f"{_line(mark)}the text is nested more than {most_depth} levels deep")
            stack.append(_Open({} if isinstance(event, yaml.MappingStartEvent) else []))
        elif isinstance(event, yaml.CollectionEndEvent):
            stack[-2].add(stack.pop().value, mark)
    return root.value[0] if root.value else {}


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}: " if mark is not None else ""
