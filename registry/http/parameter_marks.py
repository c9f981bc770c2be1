"""What a route's signature says about its parameters, in the words of FastAPI, without FastAPI.

A start does not import FastAPI, which only documents the routes (docs/decisions/0017): `api/openapi.py` translates
these marks when the document is first asked for.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Depends", "Path", "Query"]


@dataclass(frozen=True, slots=True)
class Query:
    """The parameter is read from the query string.

    Attributes:
        alias: its name there; None if that is the name of the parameter.
        description: what it is, for the document.
    """

    alias: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """The parameter is a segment of the path, which has its name.

    Attributes:
        description: what it is, for the document.
    """

    description: str | None = None


@dataclass(frozen=True, slots=True)
class Depends:
    """The parameter is the result of an asynchronous function, which has parameters of its own.

    Attributes:
        function: the function.
    """

    function: Callable[..., Awaitable[Any]]
