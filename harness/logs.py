"""Logs for tests that stand in for a real one."""

from strata.storage.memory_log import MemoryLog

__all__ = ["ServerLog"]


class ServerLog(MemoryLog):
    """A memory log that, like one on a server, must be read to know whether anything was appended."""

    def unchanged(self, _after: int) -> bool:
        """Return False; see `Log.unchanged`."""
        return False
