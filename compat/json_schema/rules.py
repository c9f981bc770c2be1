"""The JSON Schema compatibility rules: whether a reader schema accepts everything that a writer schema allows.

The rules are the reference's table of differences, and every difference is collected. A pair of schemas is judged once
in a pass. A pair that is still being judged counts as compatible unless an earlier pass found otherwise. Passes repeat
until no pair is added: the result is the largest set of pairs that do not contradict each other.

Work is counted, so a check always ends. Beyond the limit, or too deep for the stack, its finding is TOO_COMPLEX.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Final

from strata.compat.json_schema.arrays import compare_arrays
from strata.compat.json_schema.combined import compare_combined
from strata.compat.json_schema.findings import Difference, Findings, Shown, TooComplexError, described, value_of
from strata.compat.json_schema.json_text import as_double
from strata.compat.json_schema.model import (
    ArrayNode,
    CombinedNode,
    ConstNode,
    Criterion,
    EmptyNode,
    EnumNode,
    FalseNode,
    JsonSchema,
    Node,
    NotNode,
    Number,
    NumberNode,
    ObjectNode,
    StringNode,
    follow,
)
from strata.compat.json_schema.objects import compare_bound, compare_objects
from strata.compat.json_schema.patterns import found_in
from strata.compat.json_schema.wording import TOO_COMPLEX, compatible, describe
from strata.compat.levels import Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.result import Incompatibility
from strata.compat.schema import SchemaFormat

__all__ = ["check", "differences"]

_COST_OF_A_PATTERN: Final = 20
_COST_OF_A_DIVISION: Final = 20
_STEPS_PER_CHARGE: Final = 8  # steps of a copied path that cost as much as one compared pair
_DEEPEST: Final = 80  # pairs on the stack, each of which takes several calls
_STRIDE: Final = 100  # units of work between two checks of the clock
_LARGEST_FOR_DIVISION: Final = 1000  # decimal places
_LIMITS_OF_NUMBERS: Final = (
    ("maximum", "MAXIMUM", "maximum"),
    ("minimum", "MINIMUM", "minimum"),
    ("exclusive_maximum", "EXCLUSIVE_MAXIMUM", "exclusiveMaximum"),
    ("exclusive_minimum", "EXCLUSIVE_MINIMUM", "exclusiveMinimum"),
)


def check(
    reader: JsonSchema, writer: JsonSchema, *, policy: Policy = Policy.STRICT, limits: Limits = DEFAULT_LIMITS
) -> list[Incompatibility]:
    """Return every reason why the reader schema does not accept everything that the writer schema allows.

    A check that exceeds the comparisons of `limits`, or is nested too deeply, returns the single finding TOO_COMPLEX.

    Args:
        reader: The reader schema.
        writer: The writer schema.
        policy: How strictly to treat differences.
        limits: Bounds on work, findings and time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    try:
        found = _Comparison(policy, limits, harmless=False).run(reader.root, writer.root)
    except (TooComplexError, RecursionError) as error:
        detail = str(error) if isinstance(error, TooComplexError) else "the schemas are nested too deeply"
        return [Incompatibility(SchemaFormat.JSON, TOO_COMPLEX, "#/", describe(TOO_COMPLEX, detail), detail=detail)]
    return [_finding(difference) for difference in found[: limits.incompatibilities]]


def differences(
    reader: JsonSchema, writer: JsonSchema, *, policy: Policy = Policy.STRICT, limits: Limits = DEFAULT_LIMITS
) -> list[Difference]:
    """Return every difference, compatible ones included; the arguments are those of `check`.

    Raises:
        TooComplexError: The comparison takes too much work.
        OutOfTime: The time of `limits` ran out.
    """
    return _Comparison(policy, limits, harmless=True).run(reader.root, writer.root)


def _finding(difference: Difference) -> Incompatibility:
    path = "#/" + "/".join(difference.steps)
    return Incompatibility(
        format=SchemaFormat.JSON,
        kind=difference.kind,
        path=path,
        message=describe(difference.kind, path),
        where=".".join(difference.steps),
        reader_value=value_of(difference.reader),
        writer_value=value_of(difference.writer),
    )


class _TooDeepError(Exception):
    """A pair is too deep below the current one and must be judged separately first."""

    def __init__(self, reader: Node, writer: Node):
        super().__init__()
        self.pair = (reader, writer)


class _Comparison:
    def __init__(self, policy: Policy, limits: Limits, *, harmless: bool):
        self._harmless = harmless  # whether to keep compatible differences as well
        self._policy = policy
        self._limits = limits
        self._work = 0
        self._next_look = 0
        self._open: set[tuple[int, int]] = set()
        self._done: dict[tuple[int, int], Findings] = {}
        self._incompatible: dict[tuple[int, int], Findings] = {}  # with their first findings
        self._assumed = False  # whether a pair occurred while it was being judged
        self._depth = 0

    def run(self, reader: Node, writer: Node) -> list[Difference]:
        """Compare in passes, each with the incompatible pairs of the earlier ones."""
        reader, writer = follow(reader), follow(writer)
        while True:
            known = len(self._incompatible)
            findings = self._pass(reader, writer)
            if len(self._incompatible) == known or not self._assumed:
                return findings.found
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
        self.charge()
        is_harmless = compatible(kind, self._policy)
        if self._harmless or (not is_harmless and len(into.found) < self._limits.incompatibilities):
            into.found.append(Difference(kind, steps, reader, writer))
        into.compatible = into.compatible and is_harmless

    def take(self, into: Findings, findings: Findings, *steps: str) -> None:
        found = findings.found if self._harmless else findings.found[: self._limits.incompatibilities - len(into.found)]
        self.charge(1 + sum(_STEPS_PER_CHARGE + len(one.steps) for one in found) // _STEPS_PER_CHARGE)
        into.found += (Difference(one.kind, steps + one.steps, one.reader, one.writer) for one in found)
        into.compatible = into.compatible and findings.compatible

    def descend(self, into: Findings, reader: Node | None, writer: Node | None, *steps: str) -> bool:
        findings = self.compare(reader, writer)
        self.take(into, findings, *steps)
        return findings.compatible

    def charge(self, amount: int = 1) -> None:
        self._work += amount
        if self._work >= self._next_look:
            self._next_look = self._work + _STRIDE
            self._limits.look_at_clock()
        if self._work > self._limits.comparisons:
            raise TooComplexError(f"the comparison needs more than {self._limits.comparisons} steps")

    def matches(self, pattern: str, name: str) -> bool:
        self.charge(_COST_OF_A_PATTERN)
        return found_in(pattern, name, self._limits)

    def compare(self, reader: Node | None, writer: Node | None) -> Findings:
        """Compare two schemas, or return the earlier result."""
        self.charge()
        findings = Findings()
        if reader is None or writer is None:
            if reader is not writer:
                kind = "SCHEMA_REMOVED" if reader is None else "SCHEMA_ADDED"
                self.note(findings, kind, reader=described(reader), writer=described(writer))
            return findings
        reader, writer = follow(reader), follow(writer)
        pair = (id(reader), id(writer))
        known = self._done.get(pair)
        if known is not None:
            return known
        if pair in self._open:
            self._assumed = True
            return self._incompatible.get(pair, Findings())
        if self._depth >= _DEEPEST:
            raise _TooDeepError(reader, writer)
        return self._judged(reader, writer)

    def _judged(self, reader: Node, writer: Node) -> Findings:
        pair = (id(reader), id(writer))
        findings = Findings()
        self._open.add(pair)
        self._depth += 1
        try:
            self._judge(reader, writer, findings)
        finally:
            self._open.discard(pair)
            self._depth -= 1
        if not findings.compatible:
            self._incompatible.setdefault(pair, findings)
        self._done[pair] = findings
        return findings

    def _judge(self, reader: Node, writer: Node, into: Findings) -> None:
        if reader.connect_type == "bytes" and writer.connect_type == "bytes":
            return
        if isinstance(reader, CombinedNode) != isinstance(writer, CombinedNode) and self._one_sided(
            reader, writer, into
        ):
            return
        if isinstance(writer, FalseNode) or isinstance(reader, EmptyNode):
            return
        if type(reader) is not type(writer):
            self.note(into, "TYPE_CHANGED", reader=described(reader), writer=described(writer))
            return
        self._annotations(reader, writer, into)
        self._same_kind(reader, writer, into)

    def _one_sided(self, reader: Node, writer: Node, into: Findings) -> bool:
        """Compare a combined schema with a plain one; return whether that settles the pair."""
        if isinstance(reader, CombinedNode):
            several, kind = reader.criterion is not Criterion.ALL, "SUM_TYPE_EXTENDED"
            pairs = [(branch, writer) for branch in reader.branches]
        elif isinstance(writer, CombinedNode):
            several, kind = writer.criterion is Criterion.ALL, "PRODUCT_TYPE_NARROWED"
            pairs = [(reader, branch) for branch in writer.branches]
        else:
            return False
        if len(pairs) == 1:
            self.take(into, self.compare(*pairs[0]))
            return True
        for pair in pairs if several else ():
            findings = self.compare(*pair)
            if findings.compatible:
                self.take(into, findings)
                self.note(into, kind)
                return True
        return False

    def _annotations(self, reader: Node, writer: Node, into: Findings) -> None:
        for kind, new, old in (
            ("ID_CHANGED", reader.id, writer.id),
            ("TITLE_CHANGED", reader.title, writer.title),
            ("DESCRIPTION_CHANGED", reader.description, writer.description),
            ("DEFAULT_CHANGED", reader.default, writer.default),
        ):
            if new != old:
                self.note(into, kind)

    def _same_kind(self, reader: Node, writer: Node, into: Findings) -> None:
        if isinstance(reader, CombinedNode) and isinstance(writer, CombinedNode):
            compare_combined(self, reader, writer, into)
        elif isinstance(reader, ObjectNode) and isinstance(writer, ObjectNode):
            compare_objects(self, reader, writer, into)
        elif isinstance(reader, ArrayNode) and isinstance(writer, ArrayNode):
            compare_arrays(self, reader, writer, into)
        elif isinstance(reader, StringNode) and isinstance(writer, StringNode):
            self._strings(reader, writer, into)
        elif isinstance(reader, NumberNode) and isinstance(writer, NumberNode):
            self._numbers(reader, writer, into)
        elif isinstance(reader, EnumNode) and isinstance(writer, EnumNode):
            self._enums(reader, writer, into)
        elif isinstance(reader, ConstNode) and isinstance(writer, ConstNode):
            if reader.value != writer.value:
                self.note(into, "ENUM_ARRAY_CHANGED", "const", reader=reader, writer=writer)
        elif isinstance(reader, NotNode) and isinstance(writer, NotNode):
            # Swap the sides: values that the new schema refuses must be among those that the old one refused.
            fits = self.compare(writer.inner, reader.inner).compatible
            kind = "NOT_TYPE_NARROWED" if fits else "NOT_TYPE_EXTENDED"
            self.note(into, kind, "not", reader=described(reader.inner), writer=described(writer.inner))

    def _strings(self, reader: StringNode, writer: StringNode, into: Findings) -> None:
        compare_bound(self, reader.max_length, writer.max_length, into, "MAX_LENGTH", "maxLength")
        compare_bound(self, reader.min_length, writer.min_length, into, "MIN_LENGTH", "minLength")
        if reader.pattern != writer.pattern:
            change = "ADDED" if writer.pattern is None else "REMOVED" if reader.pattern is None else "CHANGED"
            self.note(into, f"PATTERN_{change}", "pattern", reader=reader.pattern, writer=writer.pattern)

    def _numbers(self, reader: NumberNode, writer: NumberNode, into: Findings) -> None:
        for attribute, kind, word in _LIMITS_OF_NUMBERS:
            new, old = _double(getattr(reader, attribute)), _double(getattr(writer, attribute))
            compare_bound(self, new, old, into, kind, word)
        _multiples(self, reader.multiple_of, writer.multiple_of, into)
        if reader.integer != writer.integer:
            kind = "TYPE_NARROWED" if reader.integer else "TYPE_EXTENDED"
            self.note(into, kind, reader=described(reader), writer=described(writer))

    def _enums(self, reader: EnumNode, writer: EnumNode, into: Findings) -> None:
        if reader.values == writer.values:
            return
        if reader.values > writer.values:
            change = "EXTENDED"
        else:
            change = "NARROWED" if reader.values < writer.values else "CHANGED"
        self.note(into, f"ENUM_ARRAY_{change}", "enum", reader=reader.values, writer=writer.values)


def _double(value: Number | None) -> Number | None:
    """Return the exact value of the double nearest to a number, as the reference compares it."""
    return None if value is None else Decimal(as_double(value))


def _multiples(context: _Comparison, reader: Number | None, writer: Number | None, into: Findings) -> None:
    if reader == writer:
        return
    if reader is None or writer is None:
        kind = "MULTIPLE_OF_ADDED" if writer is None else "MULTIPLE_OF_REMOVED"
        context.note(into, kind, "multipleOf", reader=reader, writer=writer)
        return
    context.charge(_COST_OF_A_DIVISION)
    change = "CHANGED"
    if all(number and abs(Decimal(number).adjusted()) <= _LARGEST_FOR_DIVISION for number in (reader, writer)):
        quotient = Fraction(reader) / Fraction(writer)
        if quotient.denominator == 1:
            change = "EXPANDED"
        elif abs(quotient.numerator) == 1:
            change = "REDUCED"
    context.note(into, f"MULTIPLE_OF_{change}", "multipleOf", reader=reader, writer=writer)
