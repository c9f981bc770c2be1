"""Leaky buckets that all workers of a node share: each event of a client fills its bucket, and time drains it.

So a limit holds for the whole node, however a client's connections are spread over the workers. The memory is a table
of fixed size. A client has its place among eight cells; if none of them is its own, it takes the one with the emptiest
bucket. So clients near their limit are never forgotten for those that have just come.

A cell is an aligned 8-byte number: a tag of its client (16 bits), and when its bucket will be empty, in microseconds of
the monotonic clock (48 bits, enough for eight years). As at the board, there is no lock: what two workers count in the
same microsecond may count once.
"""

import mmap
import time
from collections.abc import Callable

__all__ = ["Buckets"]

_CELL = 8
_ROW = 8
_CELLS = 1 << 16  # 512 KiB
_TIME_BITS = 48
_TIME = (1 << _TIME_BITS) - 1
_TAG = (1 << 16) - 1


def _now_us() -> int:
    return time.monotonic_ns() // 1000


class Buckets:
    """The buckets of all clients of a node.

    Clients are given by their hash. It must be the same in all workers, and such that no client can choose it: forks of
    one process share the secret of Python's `hash`.

    Args:
        now_us: the clock, in microseconds; the same for all processes.
        cells: for how many clients the table has room, a multiple of eight.
    """

    def __init__(self, now_us: Callable[[], int] = _now_us, *, cells: int = _CELLS) -> None:
        self._now_us, self._size = now_us, cells
        self._cells = memoryview(mmap.mmap(-1, _CELL * cells)).cast("Q")

    def pour(self, client: int, amount_us: int, most_us: int) -> int:
        """Add to the bucket of a client, unless it would overflow.

        Args:
            client: the hash of the client.
            amount_us: how much, as the time in which it drains, in microseconds; a negative amount takes back.
            most_us: how much the bucket holds, in microseconds.

        Returns:
            How long the client must wait until there is room, in microseconds; 0 if the amount was added.
        """
        tag, place = client & _TAG, (client >> 16) % self._size
        cell = self._cells[place]
        if cell >> _TIME_BITS != tag:
            place, cell = self._search(tag, place)
        now = self._now_us()
        level = (cell & _TIME) - now
        level = amount_us if level < 0 else level + amount_us
        if level > most_us and amount_us > 0:
            return level - most_us
        self._cells[place] = tag << _TIME_BITS | (now + level if level > 0 else now)
        return 0

    def level_us(self, client: int) -> int:
        """Return in which time the bucket of a client drains, in microseconds."""
        _, cell = self._search(client & _TAG, (client >> 16) % self._size)
        return max(0, (cell & _TIME) - self._now_us())

    def _search(self, tag: int, place: int) -> tuple[int, int]:
        """Return place and content of a client's cell; if it has none, the place of another one's, and 0."""
        first = place - place % _ROW
        row = self._cells[first : first + _ROW].tolist()
        for column, cell in enumerate(row):
            if cell >> _TIME_BITS == tag:
                return first + column, cell
        times = [cell & _TIME for cell in row]
        times[place % _ROW] -= 1  # of several empty ones its own
        return first + times.index(min(times)), 0
