"""Can a reader schema accept all that a writer schema lets through? The reference's difference table.

Every difference is collected. A pair of schemas is judged once in a pass, and meeting it while it is being judged
counts as compatible unless an earlier pass found that it is not; passes are repeated until none is added: the
largest set of pairs that do not contradict each other. Work is counted, so a check always ends: over the limit, or
too deep for the stack, it says so instead of a verdict on the pair.
"""

from decimal import Decimal
from fractions import Fraction
from typing import Final

from compat.json_schema.arrays import compare_arrays
from compat.json_schema.combined import compare_combined, distinct
from compat.json_schema.findings import Difference, Findings, TooComplexError
from compat.json_schema.model import (
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
from compat.json_schema.objects import compare_bound, compare_objects
from compat.json_schema.patterns import found_in
from compat.json_schema.wording import TOO_COMPLEX, compatible, describe
from compat.levels import Policy
from compat.limits import DEFAULT_LIMITS, Limits
from compat.result import Incompatibility
from compat.schema import SchemaFormat

__all__ = ["check", "differences"]

_COST_OF_A_PATTERN: Final = 20
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
    """Every reason why the reader schema does not accept what the writer schema lets through."""
    try:
        found = differences(reader, writer, policy=policy, limits=limits)
    except (TooComplexError, RecursionError) as error:
        detail = str(error) if isinstance(error, TooComplexError) else "the schemas are nested too deeply"
        return [Incompatibility(SchemaFormat.JSON, TOO_COMPLEX, "#/", describe(TOO_COMPLEX, detail), detail=detail)]
    harmful = [difference for difference in found if not compatible(difference.kind, policy)]
    return [_finding(difference) for difference in harmful[: limits.incompatibilities]]


def differences(
    reader: JsonSchema, writer: JsonSchema, *, policy: Policy = Policy.STRICT, limits: Limits = DEFAULT_LIMITS
) -> list[Difference]:
    """Every difference, harmful or not."""
    context = _Comparison(policy, limits)
    while True:
        known = len(context.incompatible)
        findings = context.compare(reader.root, writer.root)
        if len(context.incompatible) == known or not context.assumed:
            return findings.found
        context.again()


def _finding(difference: Difference) -> Incompatibility:
    path = "#/" + "/".join(difference.steps)
    return Incompatibility(
        format=SchemaFormat.JSON,
        kind=difference.kind,
        path=path,
        message=describe(difference.kind, path),
        where=".".join(difference.steps),
    )


class _Comparison:
    def __init__(self, policy: Policy, limits: Limits):
        self._policy = policy
        self._limits = limits
        self._work = 0
        self._open: set[tuple[int, int]] = set()
        self._done: dict[tuple[int, int], Findings] = {}
        self.incompatible: dict[tuple[int, int], Findings] = {}  # with what was found of them first
        self.assumed = False  # whether a pair was met while it was being judged

    def again(self) -> None:
        """Begin another pass with what the last one has found out."""
        self._done = {}
        self.assumed = False

    def note(self, into: Findings, kind: str, *steps: str) -> None:
        self.charge()
        into.found.append(Difference(kind, steps))
        into.compatible = into.compatible and compatible(kind, self._policy)

    def take(self, into: Findings, findings: Findings, *steps: str) -> None:
        self.charge(len(findings.found))
        into.found += (Difference(one.kind, steps + one.steps) for one in findings.found)
        into.compatible = into.compatible and findings.compatible

    def descend(self, into: Findings, reader: Node | None, writer: Node | None, *steps: str) -> bool:
        findings = self.compare(reader, writer)
        self.take(into, findings, *steps)
        return findings.compatible

    def charge(self, amount: int = 1) -> None:
        self._work += amount
        if self._work > self._limits.comparisons:
            raise TooComplexError(f"comparing takes more than {self._limits.comparisons} steps")

    def matches(self, pattern: str, name: str) -> bool:
        self.charge(_COST_OF_A_PATTERN)
        return found_in(pattern, name)

    def compare(self, reader: Node | None, writer: Node | None) -> Findings:
        """Compare two schemas, or remember how they compared."""
        self.charge()
        findings = Findings()
        if reader is None or writer is None:
            if reader is not writer:
                self.note(findings, "SCHEMA_REMOVED" if reader is None else "SCHEMA_ADDED")
            return findings
        reader, writer = follow(reader), follow(writer)
        pair = (id(reader), id(writer))
        known = self._done.get(pair)
        if known is not None:
            return known
        if pair in self._open:
            self.assumed = True
            return self.incompatible.get(pair, Findings())
        self._open.add(pair)
        try:
            self._judge(reader, writer, findings)
        finally:
            self._open.discard(pair)
        if not findings.compatible:
            self.incompatible.setdefault(pair, findings)
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
            self.note(into, "TYPE_CHANGED")
            return
        self._annotations(reader, writer, into)
        self._same_kind(reader, writer, into)

    def _one_sided(self, reader: Node, writer: Node, into: Findings) -> bool:
        """Compare a combined schema with a plain one; false if there is nothing to compare."""
        if isinstance(reader, CombinedNode):
            branches = distinct(reader)
            several, kind = reader.criterion is not Criterion.ALL, "SUM_TYPE_EXTENDED"
            pairs = [(branch, writer) for branch in branches]
        elif isinstance(writer, CombinedNode):
            branches = distinct(writer)
            several, kind = writer.criterion is Criterion.ALL, "PRODUCT_TYPE_NARROWED"
            pairs = [(reader, branch) for branch in branches]
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
                self.note(into, "ENUM_ARRAY_CHANGED", "const")
        elif isinstance(reader, NotNode) and isinstance(writer, NotNode):
            # Turned round: what the new schema refuses has to be within what the old one refused.
            fits = self.compare(writer.inner, reader.inner).compatible
            self.note(into, "NOT_TYPE_NARROWED" if fits else "NOT_TYPE_EXTENDED", "not")

    def _strings(self, reader: StringNode, writer: StringNode, into: Findings) -> None:
        compare_bound(self, reader.max_length, writer.max_length, into, "MAX_LENGTH", "maxLength")
        compare_bound(self, reader.min_length, writer.min_length, into, "MIN_LENGTH", "minLength")
        if reader.pattern != writer.pattern:
            change = "ADDED" if writer.pattern is None else "REMOVED" if reader.pattern is None else "CHANGED"
            self.note(into, f"PATTERN_{change}", "pattern")

    def _numbers(self, reader: NumberNode, writer: NumberNode, into: Findings) -> None:
        for attribute, kind, word in _LIMITS_OF_NUMBERS:
            new, old = _double(getattr(reader, attribute)), _double(getattr(writer, attribute))
            compare_bound(self, new, old, into, kind, word)
        _multiples(self, reader.multiple_of, writer.multiple_of, into)
        if reader.integer != writer.integer:
            self.note(into, "TYPE_NARROWED" if reader.integer else "TYPE_EXTENDED")

    def _enums(self, reader: EnumNode, writer: EnumNode, into: Findings) -> None:
        if reader.values == writer.values:
            return
        if reader.values > writer.values:
            change = "EXTENDED"
        else:
            change = "NARROWED" if reader.values < writer.values else "CHANGED"
        self.note(into, f"ENUM_ARRAY_{change}", "enum")


def _double(value: Number | None) -> Number | None:
    """The number as the reference compares it, exactly what a double holds of it."""
    if value is None:
        return None
    try:
        return Decimal(float(value))
    except OverflowError:
        return Decimal("Infinity") if value > 0 else Decimal("-Infinity")


def _multiples(context: _Comparison, reader: Number | None, writer: Number | None, into: Findings) -> None:
    if reader == writer:
        return
    if reader is None or writer is None:
        context.note(into, "MULTIPLE_OF_ADDED" if writer is None else "MULTIPLE_OF_REMOVED", "multipleOf")
        return
    change = "CHANGED"
    if all(number and abs(Decimal(number).adjusted()) <= _LARGEST_FOR_DIVISION for number in (reader, writer)):
        quotient = Fraction(reader) / Fraction(writer)
        if quotient.denominator == 1:
            change = "EXPANDED"
        elif abs(quotient.numerator) == 1:
            change = "REDUCED"
    context.note(into, f"MULTIPLE_OF_{change}", "multipleOf")
