"""The code of a batch decoder: its instructions, and the data that they refer to.

Rules of this file: it stores what the compiler writes, and knows no plan.
"""

from dataclasses import dataclass, field

from strata.serdes.arrow import operations as op
from strata.serdes.arrow.layout import Column
from strata.serdes.arrow.output import COLUMN
from strata.serdes.errors import SchemaError

__all__ = ["Code", "Emitter"]

MAX_INSTRUCTIONS = 1_000_000
"""The limit for one program: plan and columns do not bound everything, such as nested defaults."""


@dataclass(slots=True)
class Code:
    """The data that the programs of one decoder share.

    Attributes:
        rows: instructions, each of `operations.WORDS` numbers.
        table: targets of branches; offsets and lengths of symbols.
        pool: bytes of symbols and defaults.
        messages: messages of refusals.
        deepest: how many stack entries one routine uses at most.
    """

    rows: list[list[int]] = field(default_factory=list)
    table: list[int] = field(default_factory=list)
    pool: bytearray = field(default_factory=bytearray)
    messages: list[str] = field(default_factory=list)
    deepest: int = 0

    def keep(self, raw: bytes) -> int:
        """Append bytes to the pool; return their offset."""
        self.pool += raw
        return len(self.pool) - len(raw)

    def say(self, message: str) -> int:
        """Append a message; return its number."""
        self.messages.append(message)
        return len(self.messages) - 1


class Emitter:
    """A writer of instructions, which counts them and the stack that they need."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._rows = code.rows
        self._depth = 0
        self._left = MAX_INSTRUCTIONS

    def _emit(self, operation: int, column: Column | None = None, *operands: int) -> list[int]:
        self._left -= 1
        if self._left < 0:
            raise SchemaError("the schemas are too large to read into columns")
        row = [operation, -1 if column is None else COLUMN * column.number, *operands]
        row += [0] * (op.WORDS - len(row))
        self._rows.append(row)
        return row

    def _distance(self, first: int, target: int) -> int:
        """Return the difference between the address of an instruction and that of the one before the target."""
        return op.INSTRUCTION * (target - first - 1)

    def _push(self, entries: int) -> None:
        self._depth += entries
        self._code.deepest = max(self._code.deepest, self._depth + 2)
