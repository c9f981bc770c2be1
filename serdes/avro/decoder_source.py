"""A decoding plan as Python source: straight-line code for one pair of schemas.

The code does not look at the schema per record, makes no call per field and creates no object but the values, so it
keeps up with a general decoder in C that fetches each piece by a Python call. Names from schemas appear in the source
only as string literals (`repr`); everything else is a constant passed in next to it, so no text of a schema is ever
code.

The variables of the code are

    buf, i, end   the payload, the position in it, its length
    room          how many more records of a recursive type may nest
    idle          how many more values that take no bytes may come; a list, so that all functions share it

Rules of this file: it writes text and runs nothing. `runtime.py` has the functions that the source calls.
"""

import itertools
from collections.abc import Callable

from strata.serdes.avro import resolution as plans
from strata.serdes.avro.logical_types import Branch, Convert
from strata.serdes.avro.schema import Kind
from strata.serdes.avro.source_lines import Listing, Part, SourceWriter

__all__ = ["write_decoder"]

_DEEPEST_BLOCK = 12
"""Deeper types get functions of their own: Python allows 20 nested blocks."""

_WIDTH = {Kind.FLOAT: 4, Kind.DOUBLE: 8}


def write_decoder(plan: plans.Plan) -> Listing:
    """Return the source of `decode(buf, room, idle)` for a plan."""
    writer = _DecoderWriter()
    writer.write(plan)
    return writer.listing


class _DecoderWriter(SourceWriter):
    """The writer of the entry function, then of the functions that it calls."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: dict[tuple[int, bool], str] = {}
        self._pending: list[tuple[str, plans.Plan, bool]] = []

    def write(self, plan: plans.Plan) -> None:
        self.begin("def decode(buf, room, idle):")
        self.lines("i = 0", "end = len(buf)")
        self._read(plan, "value")
        self.lines("if i != end: trailing(i, end)", "return value")
        while self._pending:
            self._write_function(*self._pending.pop())

    def _write_function(self, name: str, plan: plans.Plan, skipped: bool) -> None:
        self.begin(f"def {name}(buf, i, end, room, idle):")
        if isinstance(plan, plans.Fields) and plan.recursive:
            self.lines("if not room: too_deep()", "room -= 1")
        if skipped:
            self._skip_here(plan)
            self.line("return i")
        else:
            self._read_here(plan, "value")
            self.line("return value, i")

    def _function(self, plan: plans.Plan, *, skipped: bool) -> str:
        key = (id(plan), skipped)
        if key not in self._functions:
            self._functions[key] = f"f{len(self._functions)}"
            self._pending.append((self._functions[key], plan, skipped))
        return self._functions[key]

    def _stands_alone(self, plan: plans.Plan) -> bool:
        if isinstance(plan, plans.Fields) and (plan.recursive or plan.uses > 1):
            return True
        return self.indent >= _DEEPEST_BLOCK and isinstance(
            plan, plans.Fields | plans.Items | plans.Entries | plans.Branches
        )

    # Reading

    def _read(self, plan: plans.Plan, into: str) -> None:
        if self._stands_alone(plan):
            self.line(f"{into}, i = {self._function(plan, skipped=False)}(buf, i, end, room, idle)")
        else:
            self._read_here(plan, into)

    def _read_here(self, plan: plans.Plan, into: str) -> None:
        match plan:
            case plans.Scalar():
                self._read_scalar(plan, into)
            case plans.Bytes():
                self.lines(f"j = i + {plan.size}", "if j > end: truncated()", f"{into} = buf[i:j]", "i = j")
                self._convert(plan.convert, into)
            case plans.Rest():
                self.lines(f"{into} = buf[i:]", "i = end")
                self._convert(plan.convert, into)
            case plans.Symbols():
                self._read_symbol(plan, into)
            case plans.Items():
                self._read_items(plan, into)
            case plans.Entries():
                self._read_entries(plan, into)
            case plans.Branches():
                self._choose(plan, lambda branch: self._read(branch, into))
            case plans.Tag():
                self._read(plan.value, into)
                pair = f"{self.constant(Branch)}({plan.position}, {into})"
                self.line(f"{into} = {pair if plan.name is None else f'({plan.name!r}, {into})'}")
            case plans.Fields():
                self._read_fields(plan, into)
            case plans.Fail():
                self.line(f"unresolved({self.constant(plan.message)})")

    def _convert(self, convert: Convert | None, name: str) -> None:
        if convert is not None:
            self.line(f"{name} = {self.constant(convert)}({name})")

    def _varint(self, more: str = "long_more") -> None:
        self.lines("b = buf[i]", "i += 1", f"if b > 127: b, i = {more}(buf, i, b)")

    def _length(self) -> None:
        self._varint()
        self.lines("j = i + (b >> 1)", "if b & 1 or j > end: bad_length(b)")

    def _read_scalar(self, plan: plans.Scalar, into: str) -> None:
        match plan.kind:
            case Kind.NULL:
                self.line(f"{into} = None")
            case Kind.BOOLEAN:
                self.lines("b = buf[i]", "i += 1", "if b > 1: bad_boolean(b)", f"{into} = b == 1")
            case Kind.INT | Kind.LONG:
                self._varint(f"{plan.kind}_more")
                self.line(f"{into} = (b >> 1) ^ -(b & 1)")
            case Kind.FLOAT | Kind.DOUBLE:
                self.lines(f"{into}, = {plan.kind}_at(buf, i)", f"i += {_WIDTH[plan.kind]}")
            case Kind.BYTES:
                self._length()
                self.lines(f"{into} = buf[i:j]", "i = j")
            case Kind.STRING:
                self._length()
                self.lines(f"{into} = buf[i:j].decode()", "i = j")
        self._convert(plan.convert, into)

    def _symbol_index(self, plan: plans.Symbols) -> None:
        self._varint("int_more")
        self.line(f"if b & 1 or b >= {2 * len(plan.written)}: bad_index(b)")

    def _read_symbol(self, plan: plans.Symbols, into: str) -> None:
        self._symbol_index(plan)
        self.line(f"{into} = {self.constant(plan.read)}[b >> 1]")
        if None in plan.read:
            self.line(f"if {into} is None: no_symbol({self.constant(plan.written)}[b >> 1])")

    def _blocks(self, weightless: int, each: Callable[[], None]) -> None:
        """Write the loop over the blocks of an array or map; the length after a negative count is not used."""
        count = self.variable()
        with self.block("while True:"):
            self._varint()
            self.lines("if not b: break", f"{count} = (b >> 1) ^ -(b & 1)")
            self.line(f"if {count} < 0: {count}, i = sized_block(buf, i, {count})")
            if weightless:
                self.line(f"spend(idle, {count} * {weightless})")
            else:
                self.line(f"if {count} > end - i: truncated()")
            with self.block(f"for _ in range({count}):"):
                each()

    def _read_items(self, plan: plans.Items, into: str) -> None:
        items, item = self.variable(), self.variable()
        self.line(f"{items} = []")

        def each() -> None:
            with self.inside(_number_of(items)):
                self._read(plan.item, item)
            self.line(f"{items}.append({item})")

        self._blocks(plan.weightless, each)
        self.line(f"{into} = {items}")

    def _read_entries(self, plan: plans.Entries, into: str) -> None:
        entries, key, value = self.variable(), self.variable(), self.variable()
        self.line(f"{entries} = {{}}")

        def each() -> None:
            with self.inside("{}"):
                self._read_scalar(plans.Scalar(Kind.STRING), key)
                self._read(plan.value, value)
            self.line(f"{entries}[{key}] = {value}")

        self._blocks(0, each)
        self.line(f"{into} = {entries}")

    def _choose(self, plan: plans.Branches, each: Callable[[plans.Plan], None]) -> None:
        self._varint("int_more")
        self.cases("b", range(0, 2 * len(plan.plans), 2), lambda b: each(plan.plans[b // 2]), otherwise="bad_index(b)")

    def _read_fields(self, plan: plans.Fields, into: str) -> None:
        start = ""
        names = {target: self.variable() for target in plan.targets if target not in plan.defaults}
        for step, following in itertools.zip_longest(plan.steps, plan.steps[1:]):
            with self.inside(f".{step.name}"):
                if step.again:
                    self.line(f"i = {start}")
                elif following is not None and following.again:
                    start = self.variable()
                    self.line(f"{start} = i")
                if step.target is None:
                    self._skip(step.value)
                else:
                    self._read(step.value, names[step.target])
        values = (
            f"{target!r}: {names[target] if target in names else self._literal(plan.defaults[target])}"
            for target in plan.targets
        )
        self.line(f"{into} = {{{', '.join(values)}}}")

    def _literal(self, value: object) -> str:
        """Return the source of a default; containers are written out, so that each record gets its own."""
        match value:
            case Branch():
                return f"{self.constant(Branch)}({value.position}, {self._literal(value.value)})"
            case dict():
                return "{" + ", ".join(f"{key!r}: {self._literal(inner)}" for key, inner in value.items()) + "}"
            case list():
                return "[" + ", ".join(self._literal(inner) for inner in value) + "]"
        return self.constant(value)

    # Skipping

    def _skip(self, plan: plans.Plan) -> None:
        if self._stands_alone(plan):
            self.line(f"i = {self._function(plan, skipped=True)}(buf, i, end, room, idle)")
        else:
            self._skip_here(plan)

    def _skip_here(self, plan: plans.Plan) -> None:
        """Skip a value; only its length matters."""
        match plan:
            case plans.Scalar():
                self._skip_scalar(plan.kind)
            case plans.Bytes():
                self.line(f"i += {plan.size}")
            case plans.Symbols():
                self._symbol_index(plan)
            case plans.Items():
                self._blocks(plan.weightless, lambda: self._skip_inside("[]", plan.item))
            case plans.Entries():
                self._blocks(0, lambda: self._skip_entry(plan))
            case plans.Branches():
                self._choose(plan, self._skip)
            case plans.Tag():
                self._skip(plan.value)
            case plans.Fields():
                for step in plan.steps:
                    self._skip_inside(f".{step.name}", step.value)

    def _skip_inside(self, part: str, plan: plans.Plan) -> None:
        with self.inside(part):
            self._skip(plan)

    def _skip_entry(self, plan: plans.Entries) -> None:
        with self.inside("{}"):
            self._skip_scalar(Kind.STRING)
            self._skip(plan.value)

    def _skip_scalar(self, kind: Kind) -> None:
        match kind:
            case Kind.BOOLEAN:
                self.line("i += 1")
            case Kind.INT | Kind.LONG:
                self._varint(f"{kind}_more")
            case Kind.FLOAT | Kind.DOUBLE:
                self.line(f"i += {_WIDTH[kind]}")
            case Kind.BYTES | Kind.STRING:
                self._length()
                self.line("i = j")


def _number_of(items: str) -> Part:
    """Return a path part: the number of finished items is the index of the item that failed."""
    return lambda known: f"[{len(known[items])}]"
