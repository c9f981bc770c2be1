"""A log on which another node holds the pen."""

from collections.abc import Sequence

from strata.storage.log import Entry, MemoryLog, Record

__all__ = ["HeldLog"]


class HeldLog(MemoryLog):
    """A memory log on which another node holds the pen, until this node writes."""

    url: str | None = None

    def holder(self) -> str | None:
        """Return the URL of the other node."""
        return self.url

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append, which takes the pen."""
        entries = super().append(after, records)
        self.url = None
        return entries
