"""JSONata rules over whole values as JSON, the usual language of migrations.

Bounds: the length of an expression, the depth and time of its evaluation, and the size of each text and list in it.
Patterns are RE2's, whose time is linear in the text.

Rules of this file: JSON in, JSON out.
"""

import functools
import sys
import threading
import time
from collections.abc import Hashable, Iterable, Mapping
from importlib import import_module
from itertools import islice
from types import ModuleType
from typing import Any, Protocol

import re2

from strata.serdes.client import RegistryClient
from strata.serdes.errors import RuleError
from strata.serdes.rules.executors import RuleContext

__all__ = ["JsonataExecutor"]

MAX_EXPRESSION = 64 * 1024
"""Characters of an expression."""
MAX_DEPTH = 200
"""The depth of function calls and of results."""
MAX_SIZE = 4 * 1024 * 1024
"""Characters of a text, items of a list, values of a result."""
TIMEOUT = 1.0
"""CPU seconds of the evaluating thread; the setting `timeout.sec` changes it."""
_CACHED = 200
_TEXTS = 16
"""How many characters of text count as one value of a result."""
_COPIED = 256
"""How many characters are copied in the time that it takes to make one."""


def _library() -> ModuleType:
    """Import the library and restore the recursion limit of the process, which the import raises."""
    limit = sys.getrecursionlimit()
    try:
        return import_module("jsonata")
    finally:
        sys.setrecursionlimit(limit)


jsonata = _library()


class JsonataExecutor:
    """The executor of JSONATA rules, over whole values.

    Args:
        client: the registry; not used.
        settings: `timeout.sec`, CPU seconds of an evaluation.
    """

    takes_json = True

    def __init__(self, client: RegistryClient, settings: Mapping[str, Any]) -> None:  # noqa: ARG002 - an interface
        self._timeout = float(settings.get("timeout.sec", TIMEOUT))
        self._local = threading.local()  # a running expression of the library keeps state in itself

    def transform(self, context: RuleContext, message: object) -> object:
        """Return the result of the expression over a value.

        Raises:
            RuleError: If the expression is invalid, fails or exceeds a bound.
        """
        expression = self._compiled(context.rule.expr or "")
        jsonata.Jsonata.CURRENT.jsonata = expression  # functions such as $eval read it
        bounds = expression.create_frame()
        guard = _Guard(self._timeout)
        bounds.set_evaluate_entry_callback(guard.enter)
        bounds.set_evaluate_exit_callback(guard.leave)
        for name, function in _FUNCTIONS.items():
            bounds.bind(name, function)
        try:
            return _bounded(expression.evaluate(message, bounds))
        except RuleError:
            raise
        except RecursionError:
            raise RuleError("the expression or the value is nested too deeply") from None
        except Exception as error:  # noqa: BLE001 - the library raises many types
            raise RuleError(f"the expression cannot be evaluated: {_kind(error)}") from None

    def _compiled(self, text: str) -> Any:
        if not hasattr(self._local, "compiled"):
            self._local.compiled = functools.lru_cache(_CACHED)(_compiled)
        return self._local.compiled(text)


class _Frame(Protocol):
    """What is read of the library's frames, which have no types."""

    is_parallel_call: bool


class _Flags(Protocol):
    """What is read of the library's flags of a regular expression."""

    case_insensitive: bool
    multiline: bool


class _Guard:
    """The checks of depth, time and sizes at each step of an evaluation."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._until = time.thread_time() + timeout
        self._depth = 0

    def enter(self, expression: object, value: object, frame: _Frame) -> None:  # noqa: ARG002 - an interface
        if time.thread_time() > self._until:
            raise RuleError(f"the expression took longer than {self._timeout} seconds")
        if not frame.is_parallel_call:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise RuleError(f"the expression nests calls deeper than {MAX_DEPTH}")

    def leave(self, expression: object, value: object, frame: _Frame, result: object) -> None:  # noqa: ARG002 - an interface
        if not frame.is_parallel_call:
            self._depth -= 1
        if isinstance(result, str | list):
            _check_size(len(result))


def _compiled(text: str) -> Any:
    if not text.strip():
        raise RuleError("the rule has no expression")
    if len(text) > MAX_EXPRESSION:
        raise RuleError(f"the expression is longer than {MAX_EXPRESSION} characters")
    try:
        return jsonata.Jsonata(text, regex_engine=_pattern)
    except (jsonata.JException, re2.error, RecursionError, ValueError) as error:
        raise RuleError(f"invalid JSONata expression: {_kind(error)}") from None


def _bounded(result: object) -> object:
    """Return the result if walking through it ends within the bounds: parts of it may be shared."""
    level, seen = [result], 0
    for _ in range(MAX_DEPTH):
        level = list(islice((inner for node in level for inner in _inside(node)), MAX_SIZE - seen + 1))
        seen += len(level) + sum(len(node) for node in level if isinstance(node, str)) // _TEXTS
        _check_size(seen)
        if not level:
            return result
    raise RuleError(f"the result is nested deeper than {MAX_DEPTH}")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _kind(error: Exception) -> str:
    """Return the library's error code, since its message may quote the record."""
    return str(getattr(error, "error", None) or type(error).__name__)


def _pattern(pattern: str, flags: _Flags) -> object:
    options = re2.Options()
    options.case_sensitive = not flags.case_insensitive
    options.log_errors = False
    return re2.compile(f"(?m){pattern}" if flags.multiline else pattern, options)


_PLAIN = jsonata.functions.Functions


class _Bounded:
    """The library's functions that multiply a value, or walk through all of it, in one step; they check sizes first."""

    @staticmethod
    def pad(text: object, width: float | None, filling: object) -> object:
        _check_size(abs(width or 0))
        return _PLAIN.pad(text, width, filling)

    @staticmethod
    def replace(text: object, pattern: Any, replacement: object, limit: float | None) -> object:
        if isinstance(text, str):
            size = len(replacement) if isinstance(replacement, str) else 0
            count = len(text) + 1
            if isinstance(pattern, str):
                count = text.count(pattern)
                _check_size(count * len(text) // _COPIED)  # each match copies the rest of the text
            elif count * size > MAX_SIZE:
                count = sum(1 for _ in pattern.finditer(text))
            _check_size(len(text) + min(count, limit or count) * size)
        return _PLAIN.replace(text, pattern, replacement, limit)

    @staticmethod
    def join(texts: object, separator: str | None) -> object:
        if isinstance(texts, list):
            _check_size(sum(map(len, texts)) + len(texts) * len(separator or ""))
        return _PLAIN.join(texts, separator)

    @staticmethod
    def string(value: object, prettify: object) -> object:
        _bounded(value)
        return _PLAIN.string(value, prettify)

    @staticmethod
    def distinct(values: object) -> object:
        if not isinstance(values, list) or len(values) <= 1:
            return values
        _bounded(values)
        kept: dict[Hashable, object] = {}
        for value in values:
            kept.setdefault(_hashable(value), value)
        made = jsonata.utils.Utils.create_sequence() if isinstance(values, jsonata.utils.Utils.JList) else []
        made.extend(kept.values())
        return made


_FUNCTIONS = {
    name: jsonata.Jsonata.JNativeFunction(name, signature, _Bounded, name)
    for name, signature in (
        ("pad", "<s-ns?:s>"),
        ("replace", "<s-(sf)(sf)n?:s>"),
        ("join", "<a<s>s?:s>"),
        ("string", "<x-b?:s>"),
        ("distinct", "<x:x>"),
    )
}
"""With the library's signatures, which say where the context replaces a missing argument."""


def _check_size(size: float) -> None:
    if size > MAX_SIZE:
        raise RuleError(f"the expression makes a value larger than {MAX_SIZE} characters or items")


def _hashable(value: object) -> Any:
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
