"""Decide what a standby allows: no write of a client until it is promoted.

A standby is marked in its own log, not in the settings of a node, so that every node that opens the log knows it, and a
promotion is a record after which no copied record can follow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.errors import RegistryError
from strata.storage.log import Record
from strata.storage.record_json import RecordError, decode_key, encode
from strata.storage.records import (
    DEFAULT_CONTEXT,
    ContextKey,
    HighWaterKey,
    LoweredKey,
    StandbyKey,
    StandbyValue,
    context_of,
)
from strata.storage.state import State

__all__ = ["check_not_copied", "copied_parts", "decided", "is_within", "promotion", "source_of_everything"]

_T = TypeVar("_T")
_JUDGED = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)


def is_within(context: str, scope: str) -> bool:
    """Return whether a context is the scope or below it; the default context as scope means everything."""
    return scope == DEFAULT_CONTEXT or context == scope or context.startswith(f"{scope}.")


def copied_parts(state: State) -> dict[str, StandbyValue]:
    """Return the parts of a registry that are copies of another one, by their contexts, without promoted ones."""
    return {scope: value for scope, value in sorted(state.standbys.items()) if not value.promoted_at}


def source_of_everything(state: State) -> str | None:
    """Return the registry that this one copies as a whole, or None."""
    standby = state.standbys.get(DEFAULT_CONTEXT)
    return None if standby is None or standby.promoted_at else standby.source


def check_not_copied(state: State, records: Sequence[Record]) -> None:
    """Reject a client's records that would change what is copied from another registry.

    Raises:
        RegistryError: 42205 with the address of the other registry.
    """
    parts = copied_parts(state) if state.standbys and records else {}
    for scope, value in parts.items():
        if scope == DEFAULT_CONTEXT or any(is_within(_context(record), scope) for record in records):
            raise standby_error(scope, value.source)


def decided(state: State, decide: Callable[[], Decision[_T]]) -> Decision[_T]:
    """Return a client's decision, if a standby allows it.

    A write that changes nothing is answered, such as the registration of a schema that is there. What this copy lacks
    proves nothing: the source may have it.

    Raises:
        RegistryError: 42205 if it would change what is copied; any error of `decide` otherwise.
    """
    if not state.standbys:
        return decide()
    source = source_of_everything(state)
    try:
        decision = decide()
    except RegistryError as error:
        if source is not None and error.status in _JUDGED:
            raise standby_error(DEFAULT_CONTEXT, source) from None
        raise
    check_not_copied(state, decision.records)
    return decision


def standby_error(scope: str, source: str) -> RegistryError:
    """Return the error for a write to what is copied."""
    what = "registry" if scope == DEFAULT_CONTEXT else f"context {scope}"
    return errors.standby(what, source)


def promotion(state: State, scope: str, now: int, highest: Mapping[str, int]) -> Decision[None]:
    """Return the records that end a copy, after which clients may write.

    Args:
        state: the State to decide on.
        scope: the context of the copy; `.` for the whole registry.
        now: the time, in milliseconds since the epoch.
        highest: the highest ids that the source may have given, by context of the copy; they are never given again.

    Raises:
        KeyError: if there is no such copy.
        ValueError: if it was promoted before.
    """
    standby = state.standbys[scope]
    if standby.promoted_at:
        raise ValueError
    marks = [
        encode(HighWaterKey(name), number)
        for name, number in sorted(highest.items())
        if number > state.context(name).high_water
    ]
    return Decision(None, [*marks, encode(StandbyKey(scope), replace(standby, promoted_at=now))])


def _context(record: Record) -> str:
    """Return the context that a record belongs to; that of records without one is the default."""
    try:
        key = decode_key(record.key)
    except RecordError:
        return DEFAULT_CONTEXT
    if isinstance(key, ContextKey | HighWaterKey | LoweredKey):
        return key.context
    return context_of(getattr(key, "subject", None) or "")
