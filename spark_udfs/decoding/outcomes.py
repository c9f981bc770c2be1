"""What frames without a value become: dead letters, an error that names the record, or a failed task.

Rules of this file: the same for every format; nothing is decoded here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn
from uuid import UUID

import pyarrow as pa

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import RegistryError, SchemaError, SerdeError
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.decoding.frame_names import Name
from strata.spark_udfs.decoding.plan import Mode, Plan
from strata.spark_udfs.response_cache import SharedAnswers, application_folder

__all__ = ["UNKNOWN_GUID", "FrameRefused", "Refusal", "RegistryNotUsable", "client_of", "finished", "not_usable"]
__all__ += ["is_unknown", "reading_references", "schema_named"]

UNKNOWN_GUID = "unknown schema guid"

_ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("frame", pa.binary())])
_UNKNOWN_SCHEMA = 40403
_NOT_FOUND = 404


class FrameRefused(ValueError):
    """A frame that cannot be decoded, in mode FAILFAST."""


class RegistryNotUsable(RuntimeError):
    """A registry that did not answer, or not as a registry: no record is at fault, and the task may run again."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a frame has no value, and the schema that it names, if that can be read."""

    reason: str
    schema: Name | None

    @property
    def schema_id(self) -> int | None:
        """Return the schema id, or None if the frame names its schema by GUID or not at all."""
        return self.schema if isinstance(self.schema, int) else None


@lru_cache(maxsize=8)
def client_of(settings: ClientSettings) -> RegistryClient:
    """Return this process's client of a registry, which shares responses with the other workers of the executor."""
    folder = application_folder()
    transport = None if folder is None else SharedAnswers(settings, folder)
    return RegistryClient.from_settings(settings, transport=transport)


def schema_named(client: RegistryClient, name: Name) -> Schema:
    """Return the schema of an id or GUID.

    Args:
        client: the client of the registry.
        name: the schema id or GUID.

    Raises:
        SerdeError: If the client cannot look the schema up.
    """
    return client.get_schema_by_guid(name) if isinstance(name, UUID) else client.get_schema(name)


def is_unknown(error: SerdeError) -> bool:
    """Return whether the registry said that it does not know a schema."""
    return isinstance(error, RegistryError) and error.error_code == _UNKNOWN_SCHEMA


def not_usable(name: Name, error: SerdeError) -> RegistryNotUsable:
    """Return the error that fails the task when a schema could not be looked up."""
    return RegistryNotUsable(f"{_told(name)} could not be looked up: {error}")


@contextmanager
def reading_references(name: Name) -> Iterator[None]:
    """Convert errors that occur while the references of a schema are read.

    Raises:
        SchemaError: If the schema cannot be used, or the registry does not have a reference.
        RegistryNotUsable: If the registry did not answer, or not as a registry.
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
    """Return the result of a batch, by the plan's mode.

    Args:
        plan: the plan.
        values: returns the array of values, in which refused rows are null.
        sent: the bytes as they came.
        refusals: by row, why it has no value.
        origin: the columns that an error shows.
        explain: returns the full reason of a row's refusal.

    Raises:
        FrameRefused: If a row was refused, in mode FAILFAST.
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
