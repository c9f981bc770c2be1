"""The proof of a finding as a value: a record, or the reason why none is shown.

A witness is a record that the writer schema allows and that the reader schema does not read as it was written. A
finding without such a record is about a rule only, and says why no reader needs the rule. A search that ends without
either says why it ended.
"""

import base64
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.strict_json import Json

__all__ = [
    "LARGEST_WITNESS",
    "Altered",
    "Budget",
    "NoWitness",
    "Proof",
    "Refused",
    "RuleOnly",
    "Witness",
    "as_json",
]

LARGEST_WITNESS: Final = 4096
"""The most bytes of a witness: of its record as JSON text in UTF-8, and of its payload, each."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A reader refuses the record; `error` is a sentence about the reason."""

    error: str


@dataclass(frozen=True, slots=True)
class Altered:
    """A reader reads another value: the part of the record at the finding's place, as written and as read."""

    written_as: Json
    read_as: Json


@dataclass(frozen=True, slots=True)
class Witness:
    """A record that a reader does not read as it was written.

    Attributes:
        record: the record as a JSON value, in the JSON encoding of its format.
        payload: the record in the binary encoding of its format, without a frame.
        outcome: what the reader makes of it.
    """

    record: Json
    payload: bytes
    outcome: Refused | Altered


@dataclass(frozen=True, slots=True)
class RuleOnly:
    """A rule refuses the change, but readers read each record as it was written; `because` is a sentence."""

    because: str


@dataclass(frozen=True, slots=True)
class NoWitness:
    """The search has no answer: time ran out, the smallest record is too large, or no method decides."""

    why: Literal["time", "size", "undecided"]


Proof: TypeAlias = Witness | RuleOnly | NoWitness


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on the search for the proofs of one comparison.

    Attributes:
        limits: bounds on time and work. A search calls `limits.look_at_clock()` in its loops; the caller turns the
            `OutOfTime` that it raises into `NoWitness("time")` for the findings that are left.
        size: the most bytes of the JSON text of a record, and of its payload. A larger one is `NoWitness("size")`.
    """

    limits: Limits = field(default=DEFAULT_LIMITS)
    size: int = LARGEST_WITNESS


def as_json(proof: Proof) -> dict[str, object]:
    """Return the members that a proof adds to the JSON of its finding."""
    if isinstance(proof, NoWitness):
        return {"witness": None, "noWitness": proof.why}
    if isinstance(proof, RuleOnly):
        return {"witness": {"ruleOnly": True, "because": proof.because}}
    outcome = proof.outcome
    shown: dict[str, object] = {"record": proof.record, "payload": base64.b64encode(proof.payload).decode("ascii")}
    if isinstance(outcome, Refused):
        return {"witness": shown | {"error": outcome.error}}
    return {"witness": shown | {"writtenAs": outcome.written_as, "readAs": outcome.read_as}}
