"""The middle of the run: the table is published and read at the same time, until all of it is done.

The producer works in its own thread; the main thread watches both ends, and raises the errors of either.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.damage import DAMAGES
from demo.ending import Interrupts
from demo.flights import READER_SCHEMA, ROWS
from demo.producer import Cancelled, Publication, publish
from demo.screen import Screen
from demo.services import Services
from demo.stream import FlightStream, running_spark
from strata.serdes.client import RegistryClient

__all__ = ["TOPIC", "TOTAL", "Transfer"]

TOPIC: Final = "flights"
TOTAL: Final = ROWS + len(DAMAGES)

_POLL_S: Final = 0.25
_STANDSTILL_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """The services and settings of the transfer."""

    services: Services
    client: RegistryClient
    screen: Screen
    interrupts: Interrupts

    def run(self, output: Path, scratch: Path) -> tuple[Publication, FlightStream]:
        """Publish and read the whole table; return what was sent, and the stream with the tables.

        Raises:
            RuntimeError: one of the ends stopped early, or neither made progress for too long.
        """
        publication = Publication()
        with running_spark(scratch) as spark:
            self.interrupts.listen()
            stream = FlightStream(
                spark,
                bootstrap=self.services.bootstrap,
                topic=TOPIC,
                registry=self.services.registry,
                reader_schema=READER_SCHEMA,
                output=output,
            )
            with stream:
                self.screen.say(f"Spark {spark.version}: the job reads the topic and decodes it into one reader schema")
                self._watch(_Watch(self.screen, publication, stream))
        return publication, stream

    def _watch(self, watch: "_Watch") -> None:
        with self._published(watch) as is_published:
            while not is_published() or watch.read < watch.publication.sent:
                self.interrupts.check()
                watch.look()
                time.sleep(_POLL_S)

    @contextmanager
    def _published(self, watch: "_Watch") -> Iterator[Callable[[], bool]]:
        """Publish in a thread; yield a function that returns whether everything is published, and raises its errors."""
        publication = watch.publication
        problems: list[BaseException] = []

        def work() -> None:
            try:
                publish(
                    publication,
                    bootstrap=self.services.bootstrap,
                    topic=TOPIC,
                    client=self.client,
                    say=self.screen.say,
                    wait_for_reader=watch.wait_until_read,
                )
            except Cancelled:
                pass
            except BaseException as error:  # noqa: BLE001 - it is raised again in the main thread
                problems.append(error)

        def is_published() -> bool:
            ended = not thread.is_alive()
            if problems:
                raise problems[0]
            return ended

        thread = threading.Thread(target=work, name="producer", daemon=True)
        thread.start()
        try:
            yield is_published
        finally:
            publication.cancelled.set()
            thread.join(_STANDSTILL_S)


class _Watch:
    """A check that the numbers keep growing."""

    def __init__(self, screen: Screen, publication: Publication, stream: FlightStream) -> None:
        self.publication = publication
        self.read = 0
        self._screen = screen
        self._stream = stream
        self._last = (-1, -1)
        self._moved = time.monotonic()

    def look(self) -> None:
        """Show the progress of both ends.

        Raises:
            RuntimeError: the Spark job has ended, or neither end made progress for too long.
        """
        self.read = self._stream.position
        sent, read = now = (self.publication.sent, self.read)
        self._screen.progress(sent, read, TOTAL)
        if now != self._last:
            self._last, self._moved = now, time.monotonic()
        elif time.monotonic() - self._moved > _STANDSTILL_S:
            raise RuntimeError(
                f"no progress for {_STANDSTILL_S:.0f} s: of {TOTAL:,} records {sent:,} are published, {read:,} are read"
            )

    def wait_until_read(self, position: int) -> None:
        """Wait, in the producer's thread, until that many records are read; the main thread enforces the time limit."""
        while self.read < position:
            if self.publication.cancelled.wait(_POLL_S):
                raise Cancelled
