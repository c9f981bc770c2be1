"""The whole run: `python -m demo`.

Exits with 0 when every line of the comparison is as expected, with 1 when one is not or anything else went wrong, with
130 when it was interrupted. Whatever happens, every process it started has ended.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NoReturn

from demo import summary
from demo.damage import DAMAGES
from demo.flights import READER_SCHEMA, ROWS, VERSIONS, read_table
from demo.producer import Cancelled, Publication, publish
from demo.screen import Screen, open_screen, quiet
from demo.services import Services, running_services
from demo.stream import FlightStream, start_spark
from harness.jars import kafka_jars, spark_kafka_jars
from harness.processes import tail
from serdes.client import RegistryClient

_CHECKOUT: Final = Path(__file__).resolve().parent.parent
_OUTPUT: Final = _CHECKOUT / "demo-output"
_LOGS: Final = _OUTPUT / "logs"
_LOG: Final = _LOGS / "spark.log"
_SCRATCH: Final = _OUTPUT / "tmp"

_TOPIC: Final = "flights"
_PARTITIONS: Final = 2
_TOTAL: Final = ROWS + len(DAMAGES)
_POLL_S: Final = 0.25
_STANDSTILL_S: Final = 120.0
_LIMIT_S: Final = 900
"""Far above any run that goes well: beyond it something hangs where no other bound holds."""


class Standstill(RuntimeError):
    """Nothing has moved for too long."""


class Watch:
    """Sees to it that the numbers keep moving."""

    def __init__(self, screen: Screen, publication: Publication, stream: FlightStream) -> None:
        self._screen = screen
        self._publication = publication
        self._stream = stream
        self._last = (-1, -1)
        self._moved = time.monotonic()
        self.read = 0

    def look(self) -> None:
        """Show how far both ends are.

        Raises:
            RuntimeError: the Spark job has ended.
            Standstill: neither end has moved for too long.
        """
        self.read = self._stream.position
        now = (self._publication.sent, self.read)
        self._screen.progress(*now, _TOTAL)
        if now != self._last:
            self._last, self._moved = now, time.monotonic()
        elif time.monotonic() - self._moved > _STANDSTILL_S:
            raise Standstill(
                f"Nothing has moved for {_STANDSTILL_S:.0f} s: {now[0]:,} of {_TOTAL:,} records are published, "
                f"{now[1]:,} are read"
            )


def main() -> int:
    """Run, and say how it went."""
    shutil.rmtree(_OUTPUT, ignore_errors=True)
    _SCRATCH.mkdir(parents=True)
    _LOGS.mkdir()
    tempfile.tempdir = str(_SCRATCH)  # what the services keep while they run
    signal.signal(signal.SIGTERM, _interrupt)
    with quiet(_LOG) as file:
        screen = open_screen(file)
        _limit(screen)
        try:
            return _run(screen)
        except KeyboardInterrupt:
            screen.close()
            screen.say("Interrupted: everything that was started has been ended")
            return 130
        except Exception as error:  # noqa: BLE001 - whatever it is, a person is told, and where to look further
            traceback.print_exc()
            screen.close()
            screen.say(f"{type(error).__name__}: {error}")
            screen.say(f"The end of {_LOG}:\n{tail(_LOG, 25)}\nMore logs: {_LOGS}")
            return 1
        finally:
            screen.close()
            shutil.rmtree(_SCRATCH, ignore_errors=True)


def _run(screen: Screen) -> int:
    begun = time.monotonic()
    screen.say("Jars: looking, and fetching what is not there yet")
    kafka_jars()
    spark_kafka_jars()
    with ExitStack() as stack:
        services = stack.enter_context(running_services(_LOGS))
        services.create_topic(_TOPIC, partitions=_PARTITIONS)
        screen.say(f"Kafka: a broker on {services.bootstrap}, topic {_TOPIC} with {_PARTITIONS} partitions")
        policy = services.cleanup_policy_of_schemas()
        screen.say(f"Registry: {services.registry}, its log is the topic _schemas on that broker ({policy})")
        client = stack.enter_context(RegistryClient(services.registry))
        publication, stream = _transfer(screen, services, client)
        checks = [
            summary.Check("cleanup policy of _schemas", "compact", policy),
            summary.Check(
                "versions in the registry",
                [version.number for version in VERSIONS],
                client.get_versions(f"{_TOPIC}-value"),
            ),
            summary.Check("incompatible changes refused", 1, int(publication.refusal is not None)),
            summary.Check("records in the topic", _TOTAL, services.records_in(_TOPIC)),
        ]
    checks += _comparison(publication, stream)
    screen.table(checks)
    off = [check.name for check in checks if not check.ok]
    screen.say(f"{time.monotonic() - begun:.0f} s. Tables and logs are in {_OUTPUT}")
    screen.say(f"OFF: {', '.join(off)}" if off else "Everything is as it should be")
    return 1 if off else 0


def _transfer(screen: Screen, services: Services, client: RegistryClient) -> tuple[Publication, FlightStream]:
    """Publish and read the whole table at the same time."""
    publication = Publication()
    with ExitStack() as stack:
        spark = start_spark(_SCRATCH)
        stack.callback(spark.stop)
        stream = FlightStream(
            spark,
            bootstrap=services.bootstrap,
            topic=_TOPIC,
            registry=services.registry,
            reader_schema=READER_SCHEMA,
            output=_OUTPUT,
        )
        stack.enter_context(stream)
        screen.say(f"Spark {spark.version}: the job reads the topic, and decodes into one reader schema")
        watch = Watch(screen, publication, stream)
        with _published(publication, services, client, screen.say, watch) as alive:
            while alive() or watch.read < publication.sent:
                watch.look()
                time.sleep(_POLL_S)
            watch.look()
    return publication, stream


@contextmanager
def _published(
    publication: Publication, services: Services, client: RegistryClient, say: Callable[[str], None], watch: Watch
) -> Iterator[Callable[[], bool]]:
    """Publish in a thread; gives whether it still does, and raises what it raised."""
    problems: list[BaseException] = []

    def wait_for_reader(position: int) -> None:
        while watch.read < position:
            if publication.cancelled.wait(_POLL_S):
                raise Cancelled

    def work() -> None:
        try:
            publish(
                publication,
                bootstrap=services.bootstrap,
                topic=_TOPIC,
                client=client,
                say=say,
                wait_for_reader=wait_for_reader,
            )
        except Cancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again in the main thread
            problems.append(error)

    def alive() -> bool:
        if problems:
            raise problems[0]
        return thread.is_alive()

    thread = threading.Thread(target=work, name="producer", daemon=True)
    thread.start()
    try:
        yield alive
    finally:
        publication.cancelled.set()
        thread.join(_STANDSTILL_S)
    alive()


def _comparison(publication: Publication, stream: FlightStream) -> list[summary.Check]:
    flights = summary.load(stream.flights, summary.COUNTED)
    letters = summary.load(stream.dead_letters, list(summary.DeadLetter.__dataclass_fields__))
    return summary.compare(
        summary.expect(read_table(), VERSIONS, publication.ids),
        summary.facts_of(flights),
        publication.damaged,
        summary.dead_letters_in(letters),
    )


def _limit(screen: Screen) -> None:
    """End the process when the run hangs where no other bound holds; what it started ends with it."""

    def end() -> None:
        screen.say(f"The run did not end within {_LIMIT_S} s. Logs: {_LOGS}")
        os._exit(1)

    timer = threading.Timer(_LIMIT_S, end)
    timer.daemon = True
    timer.start()


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
