"""Rules in JSONata, over whole values as JSON: what migrations are mostly written in.

Bounded are the length of an expression, the depth and time of its evaluation, and the size of each text and list that
comes up in it; its patterns are RE2's, which take time in proportion to the text.

Rules of this file: JSON in, JSON out.
"""

import sys
import threading
import time
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import re2

from serdes.client import RegistryClient
from serdes.errors import RuleError
from serdes.rules.executors import RuleContext

__all__ = ["JsonataExecutor"]

MAX_EXPRESSION = 64 * 1024
"""Characters of an expression."""
MAX_DEPTH = 200
"""How deep functions may call each other, and results stand inside each other."""
MAX_SIZE = 4 * 1024 * 1024
"""Characters of a text, or items of a list."""
TIMEOUT = 1.0
"""Seconds of the computing thread's own time, however busy the machine is; another number by `timeout.sec`."""
_CACHED = 200


def _library() -> Any:
    """The library; to import it raises the recursion limit of the whole process, in which others count on theirs."""
    limit = sys.getrecursionlimit()
    try:
        return import_module("jsonata")
    finally:
        sys.setrecursionlimit(limit)


jsonata = _library()


class JsonataExecutor:
    """Runs JSONata over whole values."""

    takes_json = True

    def __init__(self, client: RegistryClient, settings: Mapping[str, Any]) -> None:  # noqa: ARG002 - an interface
        self._timeout = float(settings.get("timeout.sec", TIMEOUT))
        self._local = threading.local()  # an expression of the library keeps its state while it runs

    def transform(self, context: RuleContext, message: Any) -> Any:
        """What the expression makes of the value."""
        expression = self._compiled(context.rule.expr or "")
        jsonata.Jsonata.CURRENT.jsonata = expression  # functions such as $eval ask for it
        bounds = expression.create_frame()
        guard = _Guard(self._timeout)
        bounds.set_evaluate_entry_callback(guard.enter)
        bounds.set_evaluate_exit_callback(guard.leave)
        bounds.bind("pad", jsonata.Jsonata.JLambda(_pad))
        try:
            return _bounded(expression.evaluate(message, bounds))
        except RuleError:
            raise
        except RecursionError:
            raise RuleError("the expression or the value is nested too deeply") from None
        except Exception as error:  # noqa: BLE001 - the library raises many kinds
            raise RuleError(f"the expression cannot be evaluated: {_kind(error)}") from None

    def _compiled(self, text: str) -> Any:
        programs: dict[str, Any] | None = getattr(self._local, "programs", None)
        if programs is None:
            programs = self._local.programs = {}
        found = programs.get(text)
        if found is None:
            if len(programs) >= _CACHED:
                programs.clear()
            found = programs[text] = _compiled(text)
        return found


class _Guard:
    """Looks at each step of an evaluation."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._until = time.thread_time() + timeout
        self._depth = 0

    def enter(self, expression: Any, value: Any, frame: Any) -> None:  # noqa: ARG002 - an interface
        if time.thread_time() > self._until:
            raise RuleError(f"the expression took longer than {self._timeout} seconds")
        if not frame.is_parallel_call:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise RuleError(f"the expression calls itself more than {MAX_DEPTH} deep")

    def leave(self, expression: Any, value: Any, frame: Any, result: Any) -> None:  # noqa: ARG002 - an interface
        if not frame.is_parallel_call:
            self._depth -= 1
        if isinstance(result, str | list) and len(result) > MAX_SIZE:
            raise RuleError(f"the expression makes something larger than {MAX_SIZE}")


def _compiled(text: str) -> Any:
    if not text.strip():
        raise RuleError("the rule has no expression")
    if len(text) > MAX_EXPRESSION:
        raise RuleError(f"the expression is longer than {MAX_EXPRESSION} characters")
    try:
        return jsonata.Jsonata(text, regex_engine=_pattern)
    except (jsonata.JException, re2.error, RecursionError, ValueError) as error:
        raise RuleError(f"the expression is no JSONata that is read: {_kind(error)}") from None


def _bounded(result: Any) -> Any:
    """The result, if whoever walks through it comes to an end: parts of it may be one and the same."""
    level, seen = [result], 0
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _inside(one)]
        seen += len(level)
        if seen > MAX_SIZE:
            raise RuleError(f"the expression makes something larger than {MAX_SIZE}")
        if not level:
            return result
    raise RuleError(f"the expression makes something nested deeper than {MAX_DEPTH}")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _kind(error: Exception) -> str:
    """The library's code for it: its words may quote the record."""
    return str(getattr(error, "error", None) or type(error).__name__)


def _pattern(pattern: str, flags: Any) -> Any:
    options = re2.Options()
    options.case_sensitive = not flags.case_insensitive
    options.log_errors = False
    return re2.compile(f"(?m){pattern}" if flags.multiline else pattern, options)


def _pad(text: Any, width: Any, filling: Any = " ") -> Any:
    if isinstance(width, int | float) and abs(width) > MAX_SIZE:
        raise RuleError(f"the expression makes something larger than {MAX_SIZE}")
    return jsonata.functions.Functions.pad(text, width, filling)
