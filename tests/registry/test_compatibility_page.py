"""docs/compatibility.md is complete: every operation and parameter of the API, and every error code."""

import inspect
import re
from pathlib import Path

from strata.registry.core import errors

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
ROUTE = re.compile(r"^\| `([A-Z]+) (/\S*)` \|(.*?)\|", re.MULTILINE)
CODE = re.compile(r"\b(?:RegistryError|_Case)\(\s*(\d+)")


def nameless(path):
    """Return a path with anonymous parameters, because the page may use the reference's names."""
    return re.sub(r"\{\w+\}", "{}", path)


def test_every_operation_and_parameter_is_on_the_page(document):
    """The table and the OpenAPI document hold the same operations with the same query parameters."""
    served = {
        (method.upper(), nameless(path)): sorted(
            p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    listed = {
        (method, nameless(path)): sorted(re.findall(r"`(\w+)`", parameters))
        for method, path, parameters in ROUTE.findall(PAGE.read_text())
    }

    assert served == listed


def test_every_error_code_is_on_the_page():
    """The table of codes lists each code that the service can return."""
    answered = set(CODE.findall(inspect.getsource(errors)))
    section = PAGE.read_text().partition("## Error codes")[2].partition("\n## ")[0]
    listed = {code for row in re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE) for code in row.split(", ")}

    assert set() == answered - listed
    assert len(answered) > 30
