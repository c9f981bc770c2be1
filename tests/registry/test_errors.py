"""The table of errors: its rows, and the calls that fill them in."""

import ast
import string
from pathlib import Path

from strata.registry.core import errors

ROWS = {name: row for name, row in vars(errors).items() if isinstance(row, errors._Case)}


def calls():
    """Yield each call that fills in a row: its place in the code, the row's name, and the syntax."""
    for path in sorted(Path(errors.__file__).parents[1].rglob("*.py")):
        for node in ast.walk(ast.parse(text)) if "errors." in (text := path.read_text()) else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="errors"), attr=name)) if name in ROWS:
                    yield f"{path.name}:{node.lineno}", name, node


def test_each_call_fills_every_place_of_its_sentence():
    """Every error gets as many arguments as its sentence has places, and each row of the table is raised somewhere."""
    places = {
        name: [place for _, place, _, _ in string.Formatter().parse(row.sentence) if place is not None]
        for name, row in ROWS.items()
    }
    made = list(calls())

    assert [] == [where for where, name, call in made if len(places[name]) != len(call.args) or call.keywords]
    assert ROWS.keys() <= {name for _, name, _ in made}


def test_arguments_are_not_taken_for_places():
    """Braces in an argument appear as they are."""
    error = errors.invalid_schema("{subject}")

    assert (42201, 422, "{subject}") == (error.code, error.status, error.message)
