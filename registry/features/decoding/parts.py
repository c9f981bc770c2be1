"""What decoders share: a cursor over the bytes, the parts that were read so far, and the place where reading broke."""

from dataclasses import dataclass, field

from strata.strict_json import Json

__all__ = ["Broken", "Cursor", "Part"]


_MOST_STEPS = 100_000  # values in one record, those of no bytes included
_MOST_PARTS = 2_000
_DEEPEST = 100
_LONGEST_SHOWN = 200


class Broken(Exception):
    """The bytes cannot be read on."""

    def __init__(self, offset: int, path: str, reason: str) -> None:
        super().__init__(reason)
        self.offset, self.path, self.reason = offset, path, reason


@dataclass(frozen=True, slots=True)
class Part:
    """A value without parts of its own: its place in the record, its path, its type, and itself as text."""

    offset: int
    length: int
    path: str
    type: str
    shown: str


@dataclass(slots=True)
class Cursor:
    """A place in a record; methods that read move it, and raise `Broken` where the bytes end.

    Attributes:
        data: the whole record, so that offsets count from its start.
        offset: the place of the next byte.
        end: the place after the last byte that may be read.
        parts: the parts that were read, up to a number.
        steps: how many values were read.
        depth: how deep in the value reading is.
    """

    data: bytes
    offset: int
    end: int
    parts: list[Part] = field(default_factory=list)
    steps: int = 0
    depth: int = 0

    def take(self, size: int, path: str, what: str) -> bytes:
        """Return the next bytes."""
        if size > self.end - self.offset:
            left = self.end - self.offset
            raise Broken(
                self.offset,
                path,
                f"expected {what} of {size} bytes, but only {left} {'byte is' if left == 1 else 'bytes are'} left",
            )
        taken = self.data[self.offset : self.offset + size]
        self.offset += size
        return taken

    def varint(self, path: str, what: str) -> int:
        """Return the next unsigned varint of at most 64 bits."""
        start, value = self.offset, 0
        for shift in range(0, 70, 7):
            if self.offset >= self.end:
                raise Broken(start, path, f"expected {what}, but the bytes end within its number")
            byte = self.data[self.offset]
            self.offset += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >= 1 << 64:
                    raise Broken(start, path, f"expected {what}, got a number of more than 64 bits")
                return value
        raise Broken(start, path, f"expected {what}, got a number of more than 10 bytes")

    def zigzag(self, path: str, what: str) -> int:
        """Return the next zigzag varint."""
        value = self.varint(path, what)
        return (value >> 1) ^ -(value & 1)

    def step(self, path: str) -> None:
        """Count a value, and refuse to go on beyond a number of them."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise Broken(self.offset, path, f"the record has more than {_MOST_STEPS} values; reading stops here")

    def descend(self, path: str) -> None:
        """Go one level deeper; `ascend` goes back."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Broken(self.offset, path, f"the value is nested deeper than {_DEEPEST} levels; reading stops here")

    def ascend(self) -> None:
        """Go one level back."""
        self.depth -= 1

    def note(self, start: int, path: str, kind: str, value: Json) -> None:
        """Keep a part that ends here."""
        if len(self.parts) < _MOST_PARTS:
            text = str(value)
            shown = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
            self.parts.append(Part(start, self.offset - start, path[:_LONGEST_SHOWN], kind, shown))
