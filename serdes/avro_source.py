"""A plan as Python source: a straight line of statements for one pair of schemas.

Per record there is no look at the schema, no call for a field and no object but the values themselves: that is what
makes it quicker than a general decoder in C that is called once a byte. Names from schemas appear in the source only as
string literals (`repr`), everything else as a constant handed in beside it, so no text of a schema is ever code.

Every line knows the field it reads, so that the line in a traceback is the path of a failure: the good case pays
nothing for good messages. The variables of the code are

    buf, i, end   the payload, the position in it, its length
    room          how many records of a recursive type may still stand inside each other
    idle          how many values that take no bytes may still come, in a list so that all functions share it

Rules of this file: it writes text and runs nothing. What the source calls is in `serdes.avro_runtime`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from serdes.avro_plan import (
    Branches,
    Bytes,
    Entries,
    Fail,
    Fields,
    Items,
    Plan,
    Rest,
    Scalar,
    Symbols,
    Tag,
)
from serdes.avro_schema import Kind
from serdes.avro_values import Branch

__all__ = ["Source", "write"]

_DEEPEST_BLOCK = 12
"""Beyond so many indents a type gets a function of its own: Python bounds nested blocks at 20."""


@dataclass(slots=True)
class Source:
    """The text of a decoder, what it refers to by name, and the field that each line reads."""

    lines: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    paths: dict[int, str] = field(default_factory=dict)


def write(plan: Plan) -> Source:
    """The source of `decode(buf, room, idle)` for a plan."""
    writer = _Writer()
    writer.write_main(plan)
    return writer.source


class _Writer:
    """Writes functions until none is asked for any more."""

    def __init__(self) -> None:
        self.source = Source()
        self._indent = 0
        self._path = ""
        self._variables = 0
        self._functions: dict[tuple[int, bool], str] = {}
        self._pending: list[tuple[str, Plan, bool]] = []

    def write_main(self, plan: Plan) -> None:
        self._line("def decode(buf, room, idle):")
        self._indent = 1
        self._lines("i = 0", "end = len(buf)")
        self._read(plan, "value")
        self._lines("if i != end: trailing(i, end)", "return value")
        while self._pending:
            name, inner, skipped = self._pending.pop()
            self._indent, self._path = 0, ""
            self._line(f"def {name}(buf, i, end, room, idle):")
            self._indent = 1
            if isinstance(inner, Fields) and inner.recursive:
                self._lines("if not room: too_deep()", "room -= 1")
            if skipped:
                self._skip_here(inner)
                self._line("return i")
            else:
                self._read_here(inner, "value")
                self._line("return value, i")

    # Text

    def _line(self, text: str) -> None:
        self.source.lines.append("    " * self._indent + text)
        self.source.paths[len(self.source.lines)] = self._path

    def _lines(self, *texts: str) -> None:
        for text in texts:
            self._line(text)

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.source.constants)}"
        self.source.constants[name] = value
        return name

    def _inside(self, suffix: str, write: Callable[[], None], *, indent: int = 0) -> None:
        path = self._path
        self._path, self._indent = path + suffix, self._indent + indent
        write()
        self._path, self._indent = path, self._indent - indent

    def _function(self, plan: Plan, *, skipped: bool) -> str:
        key = (id(plan), skipped)
        if key not in self._functions:
            self._functions[key] = f"f{len(self._functions)}"
            self._pending.append((self._functions[key], plan, skipped))
        return self._functions[key]

    def _stands_alone(self, plan: Plan) -> bool:
        if isinstance(plan, Fields) and (plan.recursive or plan.uses > 1):
            return True
        return self._indent >= _DEEPEST_BLOCK and isinstance(plan, Fields | Items | Entries | Branches)

    # Reading

    def _read(self, plan: Plan, into: str) -> None:
        if self._stands_alone(plan):
            self._line(f"{into}, i = {self._function(plan, skipped=False)}(buf, i, end, room, idle)")
        else:
            self._read_here(plan, into)

    def _read_here(self, plan: Plan, into: str) -> None:
        match plan:
            case Scalar():
                self._read_scalar(plan, into)
            case Bytes():
                self._lines(f"j = i + {plan.size}", "if j > end: truncated()")
                self._lines(f"{into} = buf[i:j]", "i = j")
                self._convert(plan.convert, into)
            case Rest():
                self._lines(f"{into} = buf[i:]", "i = end")
                self._convert(plan.convert, into)
            case Symbols():
                self._read_symbol(plan, into)
            case Items():
                self._read_items(plan, into)
            case Entries():
                self._read_entries(plan, into)
            case Branches():
                self._choose(plan, lambda branch: self._read(branch, into))
            case Tag():
                self._read(plan.value, into)
                self._line(f"{into} = {self._constant(Branch)}({plan.position}, {into})")
            case Fields():
                self._read_fields(plan, into)
            case Fail():
                self._line(f"unresolved({self._constant(plan.message)})")

    def _convert(self, convert: Callable[[Any], Any] | None, name: str) -> None:
        if convert is not None:
            self._line(f"{name} = {self._constant(convert)}({name})")

    def _varint(self, more: str = "long_more") -> None:
        self._lines("b = buf[i]", "i += 1", f"if b > 127: b, i = {more}(buf, i, b)")

    def _length(self) -> None:
        self._varint()
        self._lines("j = i + (b >> 1)", "if b & 1 or j > end: bad_length(b)")

    def _read_scalar(self, plan: Scalar, into: str) -> None:
        match plan.kind:
            case Kind.NULL:
                self._line(f"{into} = None")
            case Kind.BOOLEAN:
                self._lines("b = buf[i]", "i += 1", "if b > 1: bad_boolean(b)", f"{into} = b == 1")
            case Kind.INT | Kind.LONG:
                self._varint(f"{plan.kind}_more")
                self._line(f"{into} = (b >> 1) ^ -(b & 1)")
            case Kind.FLOAT | Kind.DOUBLE:
                self._lines(f"{into}, = {plan.kind}_at(buf, i)", f"i += {4 if plan.kind is Kind.FLOAT else 8}")
            case Kind.BYTES:
                self._length()
                self._lines(f"{into} = buf[i:j]", "i = j")
            case Kind.STRING:
                self._length()
                self._lines(f"{into} = buf[i:j].decode()", "i = j")
        self._convert(plan.convert, into)

    def _read_symbol(self, plan: Symbols, into: str) -> None:
        self._varint("int_more")
        self._line(f"if b & 1 or b >= {2 * len(plan.written)}: bad_index(b)")
        self._line(f"{into} = {self._constant(plan.read)}[b >> 1]")
        if None in plan.read:
            self._line(f"if {into} is None: no_symbol({self._constant(plan.written)}[b >> 1])")

    def _blocks(self, weightless: int, each: Callable[[], None]) -> None:
        """The blocks of an array or a map; a negative count is followed by the block's length, which is not needed."""
        count = self._variable()
        self._line("while True:")
        self._indent += 1
        self._varint()
        self._lines("if not b: break", f"{count} = (b >> 1) ^ -(b & 1)")
        self._line(f"if {count} < 0: {count}, i = sized_block(buf, i, {count})")
        if weightless:
            self._line(f"spend(idle, {count} * {weightless})")
        else:
            self._line(f"if {count} > end - i: truncated()")
        self._line(f"for _ in range({count}):")
        self._indent += 1
        each()
        self._indent -= 2

    def _read_items(self, plan: Items, into: str) -> None:
        items, item = self._variable(), self._variable()
        self._line(f"{items} = []")

        def each() -> None:
            self._inside("[]", lambda: self._read(plan.item, item))
            self._line(f"{items}.append({item})")

        self._blocks(plan.weightless, each)
        self._line(f"{into} = {items}")

    def _read_entries(self, plan: Entries, into: str) -> None:
        entries, key, value = self._variable(), self._variable(), self._variable()
        self._line(f"{entries} = {{}}")

        def each() -> None:
            self._read_scalar(Scalar(Kind.STRING), key)
            self._inside("{}", lambda: self._read(plan.value, value))
            self._line(f"{entries}[{key}] = {value}")

        self._blocks(0, each)
        self._line(f"{into} = {entries}")

    def _choose(self, plan: Branches, each: Callable[[Plan], None]) -> None:
        self._varint("int_more")
        for index, branch in enumerate(plan.plans):
            self._line(f"{'elif' if index else 'if'} b == {2 * index}:")
            self._indent += 1
            self._line("pass")
            each(branch)
            self._indent -= 1
        self._line("else: bad_index(b)" if plan.plans else "bad_index(b)")

    def _read_fields(self, plan: Fields, into: str) -> None:
        names = {target: self._variable() for target in plan.targets if target not in plan.defaults}
        for step in plan.steps:
            if step.target is None:
                self._inside(f".{step.name}", lambda value=step.value: self._skip(value))  # type: ignore[misc]
            else:
                name = names[step.target]
                self._inside(f".{step.name}", lambda value=step.value, name=name: self._read(value, name))  # type: ignore[misc]
        values = (
            f"{target!r}: {names[target] if target in names else self._literal(plan.defaults[target])}"
            for target in plan.targets
        )
        self._line(f"{into} = {{{', '.join(values)}}}")

    def _literal(self, value: Any) -> str:
        """A default: containers are written out, so that each record gets its own."""
        match value:
            case Branch():
                return f"{self._constant(Branch)}({value.position}, {self._literal(value.value)})"
            case dict():
                return "{" + ", ".join(f"{key!r}: {self._literal(inner)}" for key, inner in value.items()) + "}"
            case list():
                return "[" + ", ".join(self._literal(inner) for inner in value) + "]"
        return self._constant(value)

    # Skipping

    def _skip(self, plan: Plan) -> None:
        if self._stands_alone(plan):
            self._line(f"i = {self._function(plan, skipped=True)}(buf, i, end, room, idle)")
        else:
            self._skip_here(plan)

    def _skip_here(self, plan: Plan) -> None:
        """Pass over a value; what its bytes mean is not looked at, only where they end."""
        match plan:
            case Scalar():
                self._skip_scalar(plan.kind)
            case Bytes():
                self._line(f"i += {plan.size}")
            case Symbols():
                self._varint("int_more")
                self._line(f"if b & 1 or b >= {2 * len(plan.written)}: bad_index(b)")
            case Items():
                self._blocks(plan.weightless, lambda: self._inside("[]", lambda: self._pass_over(plan.item)))
            case Entries():
                self._blocks(0, lambda: self._skip_entry(plan))
            case Branches():
                self._choose(plan, self._skip)
            case Tag():
                self._skip(plan.value)
            case Fields():
                for step in plan.steps:
                    self._inside(f".{step.name}", lambda value=step.value: self._skip(value))  # type: ignore[misc]

    def _pass_over(self, plan: Plan) -> None:
        self._line("pass")
        self._skip(plan)

    def _skip_entry(self, plan: Entries) -> None:
        self._skip_scalar(Kind.STRING)
        self._inside("{}", lambda: self._pass_over(plan.value))

    def _skip_scalar(self, kind: Kind) -> None:
        match kind:
            case Kind.BOOLEAN:
                self._line("i += 1")
            case Kind.INT | Kind.LONG:
                self._varint(f"{kind}_more")
            case Kind.FLOAT | Kind.DOUBLE:
                self._line(f"i += {4 if kind is Kind.FLOAT else 8}")
            case Kind.BYTES | Kind.STRING:
                self._length()
                self._line("i = j")
