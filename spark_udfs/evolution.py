"""A streaming query that follows the schema evolution of a subject.

    def build(reader):
        decoded = decode("value", registry=URL, schema_id=reader.schema_id)
        writer = source.select("offset", decoded.alias("decoded")).writeStream
        return writer.option("checkpointLocation", "out/checkpoint").start("out/flights")

    run_stream(build, registry=URL, subject="flights-value", evolve="restart")

The type of a column is fixed when a query starts, so a newer reader schema needs a new query on the same checkpoint.
The new query skips what the old one has committed and processes the rest.

Rules of this file: it uses the registry and the query as a whole; no frames, no columns.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from strata.serdes.client import RegistryClient
from strata.serdes.compatibility import check_reads
from strata.serdes.errors import RegistryUnavailable, SchemaError, SerdeError
from strata.serdes.model import RegisteredSchema
from strata.spark_udfs.arguments import Registry, settings_of
from strata.spark_udfs.waits import open_client

__all__ = ["run_stream"]

Build = Callable[[RegisteredSchema], StreamingQuery]
"""Starts a query for a reader schema, always on the same checkpoint."""

Evolve = Literal["keep", "restart"]
"""What to do when the subject has a newer version."""

_POLL_S = 0.05
_SPARK_55271 = "scala.collection.IterableOps.map"
"""Part of the error of Kafka's source in Spark 4.1 after a batch that a query had to repeat at its start.

The batch is written, so the query only has to start again.
"""

_log = logging.getLogger("strata.spark_udfs")


def run_stream(
    build: Build,
    *,
    registry: Registry,
    subject: str,
    evolve: Evolve = "keep",
    poll: float = 30.0,
    patience: float = 60.0,
) -> StreamingQuery:
    """Run a streaming query with the latest version of a subject as its reader schema, until the query ends.

    A query that fails by SPARK-55271, after a batch that it had to repeat, is started again.

    With `evolve="restart"`, a newer version that cannot read the data of the current one, or for which `build` raises
    an exception, is skipped with a warning, and the query keeps running. It also keeps running while the registry does
    not answer; a restart waits for the registry.

    Args:
        build: starts the query, given the reader schema, whose `schema_id` is for `decode`. Every call must use the
            same checkpoint.
        registry: the registry, as for `decode`.
        subject: the subject of the reader schema.
        evolve: `keep` runs the first query until it ends. `restart` polls the subject; if a newer version can read the
            data of the current one, it stops the query between two batches and builds it again with that version.
        poll: seconds between two polls, more than 0.
        patience: how many seconds a restart waits for the running batch. A batch that takes longer is cancelled, and
            the new query processes it again.

    Returns:
        The query that ended, because it was stopped or had read everything.

    Raises:
        StreamingQueryException: If the query failed.
        SerdeError: If the registry does not have the subject, or does not answer at the start.
        TypeError: If `build` does not return a query, or `registry` has the wrong type.
        ValueError: If an argument is not allowed.
    """
    if evolve not in get_args(Evolve):
        raise ValueError(f"evolve is {evolve!r}; allowed are {', '.join(get_args(Evolve))}")
    if poll <= 0:
        raise ValueError(f"poll is {poll}; expected more than 0")
    if patience < 0:
        raise ValueError(f"patience is {patience}; expected 0 or more")
    settings = settings_of(registry)
    with open_client(settings) as client:
        reader = client.get_version(subject)
    # Between polls nothing waits: the query may end meanwhile.
    with RegistryClient.from_settings(replace(settings, wait=0)) as client:
        stream = _Stream(build, client, subject, reader)
        while not stream.has_ended(None if evolve == "keep" else poll):
            newer = stream.newer()
            if newer is not None:
                stream.restart(newer, patience=patience, pause=poll)
        return stream.query


class _Stream:
    """A query and the version that it reads with."""

    def __init__(self, build: Build, client: RegistryClient, subject: str, reader: RegisteredSchema) -> None:
        self._build = build
        self._client = client
        self._subject = subject
        self._reader = reader
        self._skipped = 0
        self._is_second_start = False
        self.query = self._started(self._reader)

    def has_ended(self, seconds: float | None) -> bool:
        """Wait for the end of the query, and start it again if a fault of Kafka's source has ended it.

        Args:
            seconds: how long to wait; None means until it ends.

        Raises:
            StreamingQueryException: If the query failed in another way, or again without finishing a batch.
        """
        try:
            ended = self.query.awaitTermination(seconds)  # type: ignore[arg-type]  # fractions are allowed
        except StreamingQueryException as error:
            if _SPARK_55271 not in str(error) or (self._is_second_start and _last_batch(self.query) is None):
                raise
            _log.warning("starting the query on %s again: Kafka's source failed by SPARK-55271", self._subject)
            self.query, self._is_second_start = self._started(self._reader), True
            return False
        return seconds is None or bool(ended)

    def newer(self) -> RegisteredSchema | None:
        """Return the latest version if it is newer and can read the data of the current one, else None."""
        try:
            latest = self._client.get_version(self._subject)
            if _number(latest) <= max(_number(self._reader), self._skipped):
                return None
            check_reads(self._client, latest.schema, self._reader.schema, self._subject)
        except SchemaError as error:
            self._skip(latest, error)
            return None
        except SerdeError as error:
            _log.warning("could not look for a newer version of %s: %s", self._subject, error)
            return None
        return latest

    def restart(self, newer: RegisteredSchema, *, patience: float, pause: float) -> None:
        """Restart the query with another reader schema."""
        _finish_batch(self.query, patience)
        if not self.query.isActive:  # it ended by itself, or was stopped elsewhere: do not restart it
            return
        self.query.stop()
        self._start(newer, pause)

    def _start(self, wanted: RegisteredSchema, pause: float) -> None:
        """Build with a version, or else with the current one; wait while the registry does not answer."""
        while True:
            try:
                self.query = self._started(wanted)
            except RegistryUnavailable as error:
                _log.warning("the restart of the query on %s waits for the registry: %s", self._subject, error)
                time.sleep(pause)
            except Exception as error:
                if wanted is self._reader:
                    raise
                self._skip(wanted, error)
                wanted = self._reader
            else:
                break
        if wanted is not self._reader:
            _log.info("now reading %s with version %s", self._subject, wanted.version)
            self._reader = wanted

    def _started(self, reader: RegisteredSchema) -> StreamingQuery:
        query = self._build(reader)
        if not hasattr(query, "awaitTermination"):  # Spark Connect has its own class
            raise TypeError(f"expected build to return the query that it started, got {type(query).__name__}")
        return query

    def _skip(self, version: RegisteredSchema, why: Exception) -> None:
        _log.warning("skipping version %s of %s: %s", version.version, self._subject, why)
        self._skipped = _number(version)


def _number(version: RegisteredSchema) -> int:
    return version.version or 0


def _finish_batch(query: StreamingQuery, patience: float) -> None:
    """Wait until no batch is running, or the next batch has begun, so that the previous one is committed."""
    batch, deadline = _last_batch(query), time.monotonic() + patience
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == batch:
        if time.monotonic() > deadline:
            return
        time.sleep(_POLL_S)


def _last_batch(query: StreamingQuery) -> int | None:
    progress = query.lastProgress
    return None if progress is None else int(progress["batchId"])
