"""The proofs of JSON Schema findings: a document that the writer schema allows and the reader schema refuses.

`strata.compat.json_schema.containment` searches for the document, and asks the validator of the deserializers about it.
A finding has no document if the search, which then is complete, shows that the reader schema refuses none at its place.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from strata.compat.difference.outcomes import Cause, Outcome
from strata.compat.json_schema.containment.decision import (
    Contained,
    Containment,
    Counterexample,
    Decision,
)
from strata.compat.json_schema.containment.values import Document
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import OutOfTime
from strata.compat.proofs import Altered, Budget, NoWitness, Proof, Refused, RuleOnly, Witness
from strata.compat.result import Incompatibility

__all__ = ["alters", "breaks"]

_SECONDS: Final = 0.8  # CPU time for all findings, and at least a tenth of it for each
_NOTHING_REFUSED: Final = "The reader schema allows every document that the writer schema allows."
_NOT_HERE: Final = (
    "The reader schema refuses no document for what it has at this place; it refuses some for other findings."
)


def breaks(
    reader: JsonSchema, writer: JsonSchema, findings: Sequence[Incompatibility], budget: Budget
) -> Iterator[Proof]:
    """Yield a proof for each finding of `strata.compat.json_schema.rules.check`.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        findings: The findings of the check of these two.
        budget: Bounds on time and size.

    Raises:
        OutOfTime: The time ran out; the findings left have no proof.
    """
    if not findings:
        return
    containment = Containment(writer, reader, budget.limits)
    seconds = _share(len(findings))
    whole = containment.decide(seconds=seconds, size=budget.size)
    if isinstance(whole, Contained):
        yield from [RuleOnly(_NOTHING_REFUSED)] * len(findings)
        return
    decisions: list[Decision] = []
    late: OutOfTime | None = None
    try:
        for finding in findings:
            budget.limits.look_at_clock()
            decisions.append(containment.decide(_steps(finding.path), seconds=seconds, size=budget.size))
    except OutOfTime as error:
        late = error
    has_witness = any(isinstance(decision, Counterexample) for decision in decisions)
    for decision in decisions:
        # That nothing is refused at a place counts for little if no finding is at the place where something is.
        yield _proof(whole if isinstance(decision, Contained) and not has_witness else decision)
    if late is not None:
        raise late


def alters(reader: JsonSchema, writer: JsonSchema, outcomes: Sequence[Outcome], budget: Budget) -> Iterator[Proof]:
    """Yield a proof for each outcome of reading with one schema what another allows.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        outcomes: The outcomes of the difference of these two.
        budget: Bounds on time and size.

    Raises:
        OutOfTime: The time ran out; the outcomes left have no proof.
    """
    containment = Containment(writer, reader, budget.limits)
    seconds = _share(len(outcomes))
    numbers = [outcome for outcome in outcomes if outcome.cause is Cause.NUMBER_ROUNDED]
    roundings, _ = containment.roundings(seconds=seconds * len(numbers), size=budget.size) if numbers else ((), True)
    by_place = {rounding.address: rounding for rounding in roundings}
    for outcome in outcomes:
        budget.limits.look_at_clock()
        if outcome.cause is Cause.NUMBERS_UNDECIDED:
            yield NoWitness("time")
        elif outcome.cause is not Cause.NUMBER_ROUNDED:
            yield _proof(containment.decide(_steps(outcome.at[0]), seconds=seconds, size=budget.size))
        elif (rounding := by_place.get(outcome.at[-1])) is None:
            yield NoWitness("undecided")
        else:
            # All digits: the shortest text of a double may be that of the integer that it cannot hold.
            altered = Altered(rounding.number, int(float(rounding.number)))
            yield Witness(rounding.document, _payload(rounding.document), altered)


def _share(number: int) -> float:
    return _SECONDS / min(max(number, 1), 10)


def _steps(path: str) -> tuple[str, ...]:
    return tuple(step for step in path.removeprefix("#").split("/")[1:] if step)


def _proof(decision: Decision) -> Proof:
    if isinstance(decision, Counterexample):
        return Witness(decision.document, _payload(decision.document), Refused(decision.error))
    return RuleOnly(_NOT_HERE) if isinstance(decision, Contained) else NoWitness(decision.why)


def _payload(document: Document) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
