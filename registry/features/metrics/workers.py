"""The workers of a node as one of them sees them, through the memory that they share."""

from strata.registry.core.tally import PLACES, Cells
from strata.registry.features.metrics.facts import fact
from strata.registry.node.board import Seat

__all__ = ["Node"]


class Node:
    """The workers of a node as one of them sees them.

    Args:
        seat: the place of this process.
        cells: its own cells.
    """

    def __init__(self, seat: Seat, cells: Cells) -> None:
        self.seat, self._own = seat, cells

    @property
    def ever(self) -> list[Cells]:
        """The cells of all workers, also of those that do not run: what they have counted stays counted."""
        board = self.seat.board
        return [self._own if number == self.seat.number else board.numbers(number) for number in range(board.workers)]

    @property
    def running(self) -> list[Cells]:
        """The cells of the workers that run and have told their facts."""
        board, every = self.seat.board, self.ever
        return [
            cells
            for number, cells in enumerate(every)
            if number == self.seat.number or (board.runs(number) and fact([cells], "pid") != [0.0])
        ]

    def connections(self) -> tuple[float, float]:
        """Return how many connections were ever opened, and how many are open."""
        opened = PLACES["strata_connections_opened_total",]
        return sum(cells[opened] for cells in self.ever), self.seat.board.all_connections()
