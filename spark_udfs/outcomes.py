"""What becomes of frames that have no value: dead letters, an error that names the record, or the end of the task.

Rules of this file: the same for every format; nothing is decoded here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn
from uuid import UUID

import pyarrow as pa

from serdes.client import RegistryClient, Schema
from serdes.errors import RegistryError, SchemaError, SerdeError
from serdes.settings import ClientSettings
from spark_udfs.answers import SharedAnswers, application_folder
from spark_udfs.names import Name
from spark_udfs.plan import Mode, Plan

__all__ = ["UNKNOWN_GUID", "FrameRefused", "Refusal", "RegistryNotUsable", "client_of", "finished", "not_usable"]
__all__ += ["is_unknown", "reading_references", "schema_named"]

UNKNOWN_GUID = "unknown schema guid"

_ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("frame", pa.binary())])
_UNKNOWN_SCHEMA = 40403
_NOT_FOUND = 404


class FrameRefused(ValueError):
    """In mode FAILFAST: a frame that cannot be decoded."""


class RegistryNotUsable(RuntimeError):
    """The registry did not answer, or not as a registry: no record is to blame, the task may run again."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a frame has no value, and the schema that it names, where that can be read."""

    reason: str
    schema: Name | None

    @property
    def schema_id(self) -> int | None:
        """The id of the schema, when it was named by one."""
        return self.schema if isinstance(self.schema, int) else None


@lru_cache(maxsize=8)
def client_of(settings: ClientSettings) -> RegistryClient:
    """This process's client of a registry, which shares what it learns with the other workers of the executor."""
    folder = application_folder()
    transport = None if folder is None else SharedAnswers(settings, folder)
    return RegistryClient.from_settings(settings, transport=transport)


def schema_named(client: RegistryClient, name: Name) -> Schema:
    """The schema of an id or GUID, with the errors of the client."""
    return client.get_schema_by_guid(name) if isinstance(name, UUID) else client.get_schema(name)


def is_unknown(error: SerdeError) -> bool:
    """Whether the registry said that it does not know a schema."""
    return isinstance(error, RegistryError) and error.error_code == _UNKNOWN_SCHEMA


def not_usable(name: Name, error: SerdeError) -> RegistryNotUsable:
    """What ends the task when a schema could not be looked up."""
    return RegistryNotUsable(f"{_told(name)} could not be looked up: {error}")


@contextmanager
def reading_references(name: Name) -> Iterator[None]:
    """Tell what goes wrong while all that a schema refers to is read.

    Raises:
        SchemaError: the schema cannot be used; so when the registry does not have what it refers to.
        RegistryNotUsable: the registry did not answer, or not as one.
    """
    try:
        yield
    except SchemaError:
        raise
    except SerdeError as error:
        if isinstance(error, RegistryError) and error.status == _NOT_FOUND:
            raise SchemaError(f"a reference leads nowhere: {error}") from None
        raise not_usable(name, error) from None


def finished(
    plan: Plan,
    values: Callable[[], pa.Array],
    sent: pa.Array,
    refusals: Mapping[int, Refusal],
    origin: Sequence[pa.Array],
    explain: Callable[[int], str],
) -> pa.Array:
    """What a batch becomes, as the plan's mode has it.

    Args:
        plan: the plan.
        values: makes the array of values, in which the rows that were refused are null.
        sent: the bytes as they came.
        refusals: why rows have no value.
        origin: the columns that an error tells.
        explain: a refusal in full, by its row.

    Raises:
        FrameRefused: in mode FAILFAST, when a row was refused.
    """
    if refusals and plan.mode is Mode.FAILFAST:
        _fail(plan, refusals, origin, explain)
    if plan.mode is not Mode.DEADLETTER:
        return values()
    return pa.StructArray.from_arrays([values(), _errors(sent, refusals)], names=["value", "error"])


def _fail(
    plan: Plan, refusals: Mapping[int, Refusal], origin: Sequence[pa.Array], explain: Callable[[int], str]
) -> NoReturn:
    row = min(refusals)
    named = zip(plan.origin, (one[row].as_py() for one in origin), strict=True)
    place = ", ".join([_told(refusals[row].schema), *(f"{name} {value}" for name, value in named)])
    raise FrameRefused(f"a frame cannot be decoded ({place}): {explain(row)}")


def _told(name: Name | None) -> str:
    return f"schema guid {name}" if isinstance(name, UUID) else f"schema id {name}"


def _errors(sent: pa.Array, refusals: Mapping[int, Refusal]) -> pa.Array:
    if not refusals:
        return pa.nulls(len(sent), _ERROR_TYPE)
    errors: list[dict[str, Any] | None] = [None] * len(sent)
    for row, refusal in refusals.items():
        errors[row] = {"reason": refusal.reason, "schema_id": refusal.schema_id, "frame": sent[row].as_py()}
    return pa.array(errors, _ERROR_TYPE)
