"""The comparison of two schemas: its state, its bounds and its results so far.

A pair of schemas is judged once in a pass. A pair that is still being judged counts as compatible unless an earlier
pass found otherwise. Passes repeat until no pair is added: the result is the largest set of pairs that do not
contradict each other. Work is counted, so a comparison always ends.

Most schemas inside two versions are equal. Equal JSON is not judged if it means the same at both places: it holds no
reference and no name, and both are read by one dialect.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from strata.compat.json_schema.findings import Difference, Findings, Shown, TooComplexError, described
from strata.compat.json_schema.json_text import Json
from strata.compat.json_schema.model import Node, follow
from strata.compat.json_schema.patterns import found_in
from strata.compat.json_schema.wording import compatible
from strata.compat.levels import Policy
from strata.compat.limits import Limits
from strata.compat.plain_json import orjson

__all__ = ["Comparison", "Judge"]

_COST_OF_A_PATTERN: Final = 20
_STEPS_PER_CHARGE: Final = 8  # steps of a copied path that cost as much as one compared pair
_DEEPEST: Final = 80  # pairs on the stack, each of which takes several calls
_STRIDE: Final = 100  # units of work between two checks of the clock
_NAMES_AND_REFERENCES: Final = (b'"$', b'"id"')  # how the keywords begin that tie a schema to what is around it
_MOST_FAILURES: Final = 64  # schemas that cannot be written as bytes, before no more are tried

Judge: TypeAlias = Callable[["Comparison", Node, Node, Findings], None]


class _TooDeepError(Exception):
    """A pair is too deep below the current one and must be judged separately first."""

    def __init__(self, reader: Node, writer: Node):
        super().__init__()
        self.pair = (reader, writer)


class Comparison:
    """A comparison of a reader schema with a writer schema.

    Args:
        judge: The rules: adds the differences of a pair to its findings.
        policy: How strictly to treat differences.
        limits: Bounds on work, findings and time.
        room: How many bytes of JSON to write in search of equal schemas; 0 if equal JSON may differ in meaning.
    """

    def __init__(self, judge: Judge, policy: Policy, limits: Limits, *, room: int = 0):
        self._judge = judge
        self._policy = policy
        self._limits = limits
        self._work = 0
        self._next_look = 0
        self._open: set[tuple[int, int]] = set()
        self._done: dict[tuple[int, int], Findings] = {}
        self._incompatible: dict[tuple[int, int], Findings] = {}  # with their first findings
        self._assumed = False  # whether a pair occurred while it was being judged
        self._depth = 0
        self._room = room if orjson else 0
        self._failure = room // _MOST_FAILURES

    def run(self, reader: Node, writer: Node) -> list[Difference]:
        """Compare in passes, each with the incompatible pairs of the earlier ones.

        Raises:
            TooComplexError: The comparison takes too much work.
            OutOfTime: The time of the limits ran out.
        """
        reader, writer = follow(reader), follow(writer)
        while True:
            known = len(self._incompatible)
            findings = self._pass(reader, writer)
            if len(self._incompatible) == known or not self._assumed:
                return findings.differences
            self._done = {}
            self._assumed = False

    def _pass(self, reader: Node, writer: Node) -> Findings:
        """Judge a pair; first judge the pairs that are too deep for the stack, deepest first."""
        waiting = [(reader, writer)]
        while True:
            pair = waiting[-1]
            self._depth = 0
            try:
                findings = self._judged(*pair)
            except _TooDeepError as deeper:
                self._open.add((id(pair[0]), id(pair[1])))  # still being judged, although not on the stack
                waiting.append(deeper.pair)
                continue
            waiting.pop()
            if not waiting:
                return findings

    def note(self, into: Findings, kind: str, *steps: str, reader: Shown = None, writer: Shown = None) -> None:
        """Add a difference to the findings of a pair.

        Args:
            into: The findings.
            kind: The kind of difference.
            *steps: The path from the pair to the difference.
            reader: What the reader schema has there.
            writer: What the writer schema has there.
        """
        self.charge()
        if compatible(kind, self._policy):
            return
        if len(into.differences) < self._limits.incompatibilities:
            into.differences.append(Difference(kind, steps, reader, writer))
        into.compatible = False

    def take(self, into: Findings, findings: Findings, *steps: str) -> None:
        """Add the findings of schemas below a pair, under some steps."""
        differences = findings.differences[: self._limits.incompatibilities - len(into.differences)]
        self.charge(
            1 + sum(_STEPS_PER_CHARGE + len(difference.steps) for difference in differences) // _STEPS_PER_CHARGE
        )
        into.differences += (
            Difference(difference.kind, steps + difference.steps, difference.reader, difference.writer)
            for difference in differences
        )
        into.compatible = into.compatible and findings.compatible

    def descend(self, into: Findings, reader: Node | None, writer: Node | None, *steps: str) -> bool:
        """Compare two schemas below a pair and add their findings; return whether they are compatible."""
        findings = self.compare(reader, writer)
        self.take(into, findings, *steps)
        return findings.compatible

    def charge(self, amount: int = 1) -> None:
        """Count work.

        Raises:
            TooComplexError: The comparison takes too much work.
            OutOfTime: The time of the limits ran out.
        """
        self._work += amount
        if self._work >= self._next_look:
            self._next_look = self._work + _STRIDE
            self._limits.look_at_clock()
        if self._work > self._limits.comparisons:
            raise TooComplexError(f"the comparison needs more than {self._limits.comparisons} steps")

    def matches(self, pattern: str, name: str) -> bool:
        """Return whether a pattern matches somewhere in a property name."""
        self.charge(_COST_OF_A_PATTERN)
        return found_in(pattern, name, self._limits)

    def compare(self, reader: Node | None, writer: Node | None) -> Findings:
        """Return the findings of comparing two schemas, from an earlier comparison if there was one."""
        self.charge()
        findings = Findings()
        if reader is None or writer is None:
            if reader is not writer:
                change = "SCHEMA_REMOVED" if reader is None else "SCHEMA_ADDED"
                self.note(findings, change, reader=described(reader), writer=described(writer))
            return findings
        reader, writer = follow(reader), follow(writer)
        pair = (id(reader), id(writer))
        known = self._done.get(pair)
        if known is not None:
            return known
        if pair in self._open:
            self._assumed = True
            return self._incompatible.get(pair, Findings())
        if self._room > 0 and 0 < len(reader.written) == len(writer.written) and self._are_same(reader, writer):
            return findings
        if self._depth >= _DEEPEST:
            raise _TooDeepError(reader, writer)
        return self._judged(reader, writer)

    def _judged(self, reader: Node, writer: Node) -> Findings:
        pair = (id(reader), id(writer))
        findings = Findings()
        self._open.add(pair)
        self._depth += 1
        try:
            self._judge(self, reader, writer, findings)
        finally:
            self._open.discard(pair)
            self._depth -= 1
        if not findings.compatible:
            self._incompatible.setdefault(pair, findings)
        self._done[pair] = findings
        return findings

    def _are_same(self, reader: Node, writer: Node) -> bool:
        """Return whether two schemas are the same JSON that means the same wherever it stands."""
        text = _bytes_of(reader.written)
        self._room -= self._failure if text is None else len(text)
        if text is None or any(word in text for word in _NAMES_AND_REFERENCES):
            return False
        return text == _bytes_of(writer.written)


def _bytes_of(json: Mapping[str, Json]) -> bytes | None:
    """Return bytes that are equal for equal JSON only, whose keys have one order; None if there are none."""
    try:
        return orjson.dumps(json, default=_of_decimal)
    except TypeError:  # an integer beyond 64 bits, a lone surrogate
        return None


def _of_decimal(number: object) -> object:
    """Return what stands for a number with a point or an exponent: no JSON is written like that."""
    if isinstance(number, Decimal):
        return orjson.Fragment(repr(number))
    raise TypeError
