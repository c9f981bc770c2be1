"""The reader of the log's tail, for nodes with `--reads local`.

Such a node answers from the State that it has. Without this reader, an idle node would learn of the writes of others
only from its health check. The pause between two looks at the log is ten times what a look takes, so the reader uses a
tenth of a core at most; beside a quick log it is 10 ms. `strata_log_read_age_seconds` says how far the node may be
behind.
"""

import asyncio
import time
from contextlib import suppress

from strata.registry.core.errors import RegistryError
from strata.registry.core.log_reader import LogReader

__all__ = ["TailReader"]

_LEAST_S, _MOST_S, _TIMES = 0.01, 1.0, 10


class TailReader:
    """Keeps the State of a node close to the end of the log.

    Args:
        reader: the State of the node.
    """

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader

    async def watch(self) -> None:
        """Read the log again and again, until cancelled."""
        while True:
            began = time.monotonic()
            with suppress(RegistryError):  # the reader keeps the reason
                await self._reader.catch_up()
            took = time.monotonic() - began
            await asyncio.sleep(min(_MOST_S, max(_LEAST_S, took * _TIMES)))
