"""The arguments that `decode` and `encode` share: the registry, columns, modes, and checks of values.

Rules of this file: it checks and converts arguments of the public calls; nothing here asks the registry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, SparkSession, functions

from strata.serdes.settings import ClientSettings
from strata.spark_udfs.waits import patient

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import DataclassInstance

__all__ = ["Mode", "Registry", "active_session", "check_id", "check_options", "column_of", "names_of", "one_of"]
__all__ += ["part_of", "settings_of", "shown_origin"]

Registry = str | Sequence[str] | ClientSettings
"""The ways of naming the registry."""

_E = TypeVar("_E", bound=StrEnum)
_D = TypeVar("_D", bound="DataclassInstance")


class Mode(StrEnum):
    """The modes, which say what a frame that cannot be decoded, or a row that cannot be encoded, becomes."""

    DEADLETTER = "DEADLETTER"
    PERMISSIVE = "PERMISSIVE"
    FAILFAST = "FAILFAST"


def check_options(settings: Mapping[str, object], options: type) -> None:
    """Check the names of options.

    Args:
        settings: the options of the call.
        options: the TypedDict that has them all.

    Raises:
        TypeError: If an option is unknown, or a required one is missing.
    """
    known = options.__annotations__
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        raise TypeError(f"unknown option {', '.join(unknown)}; expected {', '.join(known)}")
    missing = sorted(options.__required_keys__ - settings.keys())  # type: ignore[attr-defined]
    if missing:
        raise TypeError(f"missing option {', '.join(missing)}")


def part_of(settings: Mapping[str, object], part: type[_D]) -> _D:
    """Return the options that a dataclass has fields for; a missing one has its default.

    Args:
        settings: the options of the call.
        part: the dataclass.
    """
    return part(**{field.name: settings[field.name] for field in fields(part) if field.name in settings})


def one_of(allowed: type[_E], name: str, text: str) -> _E:
    """Return the member of an enum with this text.

    Args:
        allowed: the enum.
        name: the name of the argument, for the error.
        text: the text.

    Raises:
        ValueError: If there is no such member; the error lists those allowed.
    """
    try:
        return allowed(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}; allowed are {', '.join(allowed)}") from None


def settings_of(registry: Registry) -> ClientSettings:
    """Return the settings of a registry, named in any way; see `waits.patient` for how long it is waited for.

    Raises:
        TypeError: If the value is neither a URL nor several URLs nor `ClientSettings`.
        ValueError: If the value is not a valid URL.
    """
    if isinstance(registry, ClientSettings):
        return patient(registry)
    urls = [registry] if isinstance(registry, str) else registry
    if not isinstance(urls, Sequence) or not all(isinstance(url, str) for url in urls):
        raise TypeError(
            f"registry is a URL, several of them, or a strata.serdes.ClientSettings, not {type(registry).__name__}"
        )
    return patient(ClientSettings.of(registry))


def check_id(schema_id: object) -> None:
    """Raise TypeError unless a schema id is an int or None: a text would mean something else in a request path."""
    if schema_id is not None and type(schema_id) is not int:
        raise TypeError(f"schema_id is a number, not {schema_id!r}")


def names_of(name: str, names: Sequence[str], *, of: str) -> tuple[str, ...]:
    """Return names of columns or fields as a tuple.

    Args:
        name: the name of the argument, for the error.
        names: the list of names.
        of: what the names are of, for the error: `column` or `field`.

    Raises:
        TypeError: If it is a text, or holds something that is not a text.
    """
    if isinstance(names, str) or not all(isinstance(name_, str) for name_ in names):
        raise TypeError(f"{name} is a list of {of} names, not {names!r}")
    return tuple(names)


def shown_origin(names: Sequence[str], columns: Sequence["pa.Array"], row: int) -> list[str]:
    """Return the names and values of the `origin` columns of a row, for the error of FAILFAST.

    Args:
        names: the names of the columns.
        columns: their Arrow arrays.
        row: the row at fault.
    """
    return [f"{name} {column[row].as_py()}" for name, column in zip(names, columns, strict=True)]


def active_session() -> SparkSession | None:
    """Return the active session of this thread, or else of the process, or else None."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def column_of(column: Column | str) -> Column:
    """Return a column, given itself or its name.

    Raises:
        RuntimeError: If a name is given, and there is no Spark session yet.
    """
    if not isinstance(column, str):
        return column
    if active_session() is None:
        raise RuntimeError("there is no Spark session yet: start one before you make columns")
    return functions.col(column)
