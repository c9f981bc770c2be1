"""The table of errors: its rows, and the calls that fill them in."""

import ast
import string
from pathlib import Path

import pytest

from strata.registry.core import errors

ROWS = {name: row for name, row in vars(errors).items() if isinstance(row, errors._Case)}
CALLS = [
    pytest.param(call, id=f"{path.name}:{call.lineno}")
    for path in sorted(Path(errors.__file__).parents[1].rglob("*.py"))
    for call in ast.walk(ast.parse(path.read_text()))
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "errors"
    if call.func.attr in ROWS
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_fills_every_place_of_the_sentence(call):
    """Every error gets as many arguments as its sentence has places."""
    places = [name for _, name, _, _ in string.Formatter().parse(ROWS[call.func.attr].sentence) if name is not None]

    assert (len(places), []) == (len(call.args), call.keywords)


def test_every_row_is_used():
    """Each row of the table is raised somewhere."""
    used = {call.func.attr for param in CALLS for call in param.values}

    assert ROWS.keys() <= used


def test_arguments_are_not_taken_for_places():
    """Braces in an argument appear as they are."""
    error = errors.invalid_schema("{subject}")

    assert (42201, 422, "{subject}") == (error.code, error.status, error.message)
