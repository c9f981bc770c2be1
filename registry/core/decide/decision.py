"""The value that every decision returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from strata.storage.log import Record
from strata.storage.state import State

__all__ = ["Decide", "Decision"]

_T = TypeVar("_T")
_AnswerT = TypeVar("_AnswerT", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[_AnswerT]):
    """The outcome of deciding a write: the answer, and the records to append (empty if nothing has to change)."""

    answer: _AnswerT
    records: Sequence[Record] = ()


Decide = Callable[[State], Decision[_T]]
