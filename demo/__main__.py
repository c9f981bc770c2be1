"""The whole demo: `python -m demo`.

Exits with 0 when every line of the comparison is as expected, with 1 when a line differs or anything else failed, and
with 130 when interrupted. In every case, all processes that it started have ended.
"""

import shutil
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from demo import summary
from demo.ending import Interrupts, limit
from demo.flights import VERSIONS, read_table
from demo.producer import Publication
from demo.screen import Screen, open_screen, quiet
from demo.services import running_services
from demo.stream import FlightStream
from demo.transfer import TOPIC, TOTAL, Transfer
from harness.jars import kafka_jars, spark_kafka_jars
from harness.processes import tail
from strata.serdes.client import RegistryClient

_OUTPUT: Final = Path(__file__).resolve().parent.parent / "demo-output"
_LOGS: Final = _OUTPUT / "logs"
_LOG: Final = _LOGS / "spark.log"
_SCRATCH: Final = _OUTPUT / "tmp"
_PARTITIONS: Final = 2
_ERROR_LINES: Final = 12
_LOG_LINES: Final = 25


def main() -> int:
    """Run the demo, report the result, and return the exit code."""
    shutil.rmtree(_OUTPUT, ignore_errors=True)
    _SCRATCH.mkdir(parents=True)
    _LOGS.mkdir()
    tempfile.tempdir = str(_SCRATCH)  # for the services' data while they run
    interrupts = Interrupts()
    interrupts.listen()
    screen = open_screen(quiet(_LOG))
    limit(screen.say)
    try:
        return _run(screen, interrupts)
    except KeyboardInterrupt:
        screen.close()
        screen.say("Interrupted; all started processes have ended")
        return 130
    except Exception as error:  # noqa: BLE001 - every error is shown, with the place to look further
        screen.close()
        _tell(error, screen)
        return 1
    finally:
        screen.close()
        shutil.rmtree(_SCRATCH, ignore_errors=True)


def _tell(error: Exception, screen: Screen) -> None:
    log = tail(_LOG, _LOG_LINES)
    traceback.print_exc()  # into the log
    screen.say("\n".join(f"{type(error).__name__}: {error}".splitlines()[:_ERROR_LINES]))
    screen.say(f"Last lines of {_LOG}:\n{log}")
    screen.say(f"More logs: {_LOGS}")


def _run(screen: Screen, interrupts: Interrupts) -> int:
    begun = time.monotonic()
    screen.say("Jars: downloading those that are missing")
    kafka_jars()
    spark_kafka_jars()
    with ExitStack() as stack:
        services = stack.enter_context(running_services(_LOGS))
        services.create_topic(TOPIC, partitions=_PARTITIONS)
        screen.say(f"Kafka: a broker on {services.bootstrap}, topic {TOPIC} with {_PARTITIONS} partitions")
        policy = services.cleanup_policy_of_schemas()
        screen.say(f"Registry: {services.registry}, its log is the topic _schemas on that broker ({policy})")
        client = stack.enter_context(RegistryClient(services.registry))
        publication, stream = Transfer(services, client, screen, interrupts).run(_OUTPUT, _SCRATCH)
        versions = client.get_versions(f"{TOPIC}-value")
        records = services.records_in(TOPIC)
    checks = [
        summary.Check("cleanup policy of _schemas", "compact", policy),
        summary.Check("versions in the registry", [version.number for version in VERSIONS], versions),
        summary.Check("incompatible changes rejected", 1, int(publication.refusal is not None)),
        summary.Check("records in the topic", TOTAL, records),
        *_comparison(publication, stream),
    ]
    screen.table(checks)
    off = [check.name for check in checks if not check.ok]
    screen.say(f"{time.monotonic() - begun:.0f} s. Tables and logs are in {_OUTPUT}")
    screen.say(f"FAILED: {', '.join(off)}" if off else "All checks passed")
    return 1 if off else 0


def _comparison(publication: Publication, stream: FlightStream) -> list[summary.Check]:
    flights = summary.load(stream.flights, summary.COUNTED)
    letters = summary.load(stream.dead_letters, list(summary.DeadLetter.__dataclass_fields__))
    return summary.compare(
        summary.expect(read_table(), VERSIONS, publication.ids),
        summary.facts_of(flights),
        publication.damaged,
        summary.dead_letters_in(letters),
    )


if __name__ == "__main__":
    sys.exit(main())
