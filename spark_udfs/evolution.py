"""A streaming query that takes up the newer schemas of a subject.

    def build(reader):
        decoded = decode("value", registry=URL, schema_id=reader.schema_id)
        writer = source.select("offset", decoded.alias("decoded")).writeStream
        return writer.option("checkpointLocation", "out/checkpoint").start("out/flights")

    run_stream(build, registry=URL, subject="flights-value", evolve="restart")

The type of a column is fixed when a query starts. So a newer reader schema means another query on the checkpoint of the
one before: what that one has committed is not read again, what it has not is done by the new one.

Rules of this file: it looks at the registry and at the query as a whole; no frames, no columns.
"""

import logging
import time
from collections.abc import Callable
from typing import Literal, get_args

from pyspark.sql.streaming.query import StreamingQuery

from serdes.client import RegistryClient
from serdes.compatibility import check_reads
from serdes.errors import RegistryUnavailable, SchemaError, SerdeError
from serdes.model import RegisteredSchema
from spark_udfs.plan import Registry, settings_of

__all__ = ["run_stream"]

Build = Callable[[RegisteredSchema], StreamingQuery]
"""A reader schema becomes a query that runs, always on the same checkpoint."""

Evolve = Literal["keep", "restart"]
"""What becomes of a query when its subject has a newer version."""

_LOOK_S = 0.05

_log = logging.getLogger("spark_udfs")


def run_stream(
    build: Build,
    *,
    registry: Registry,
    subject: str,
    evolve: Evolve = "keep",
    poll: float = 30.0,
    patience: float = 60.0,
) -> StreamingQuery:
    """Run a streaming query with the latest version of a subject as its reader schema, until it ends.

    Args:
        build: starts the query; called with the reader schema, whose `schema_id` is for `decode`. Its checkpoint must
            be the same at each call.
        registry: as `decode` takes it.
        subject: where the reader schema comes from.
        evolve: `keep` runs the query that was built first. `restart` looks at the subject from time to time; when there
            is a newer version that can read what the present one describes, the query is stopped between two batches
            and built again with it.
        poll: seconds between two looks.
        patience: for how many seconds the batch under way may finish before a restart. One that takes longer is cut,
            and done again by the new query.

    Returns:
        The query that ended, because it was stopped or had read everything.

    A newer version that cannot read the present one, or for which `build` raises an exception, is passed over with a
    warning, and the query goes on as it was. So it does while the registry does not answer; a restart waits for it.

    Raises:
        StreamingQueryException: the query failed.
        SerdeError: the registry does not have the subject, or does not answer at the start.
        TypeError: `build` returns no query.
        ValueError: an argument is not one that is allowed.
    """
    if evolve not in get_args(Evolve):
        raise ValueError(f"evolve is {evolve!r}; allowed are {', '.join(get_args(Evolve))}")
    if poll <= 0:
        raise ValueError(f"poll is {poll}; allowed is more than 0")
    if patience < 0:
        raise ValueError(f"patience is {patience}; allowed is 0 or more")
    with RegistryClient.from_settings(settings_of(registry)) as client:
        stream = _Stream(build, client, subject)
        if evolve == "keep":
            stream.query.awaitTermination()
            return stream.query
        while not stream.query.awaitTermination(poll):  # type: ignore[arg-type]  # seconds with a fraction are taken
            newer = stream.newer()
            if newer is not None:
                stream.restart(newer, patience=patience, pause=poll)
        return stream.query


class _Stream:
    """A query, and the version that it reads with."""

    def __init__(self, build: Build, client: RegistryClient, subject: str) -> None:
        self._build = build
        self._client = client
        self._subject = subject
        self._reader = client.get_version(subject)
        self._passed_over = 0
        self.query = self._built(self._reader)

    def newer(self) -> RegisteredSchema | None:
        """The latest version, when it is newer and reads what the present one describes."""
        try:
            latest = self._client.get_version(self._subject)
            if _number(latest) <= max(_number(self._reader), self._passed_over):
                return None
            check_reads(self._client, latest.schema, self._reader.schema, self._subject)
        except SchemaError as error:
            self._pass_over(latest, error)
            return None
        except SerdeError as error:
            _log.warning("no look at newer versions of %s: %s", self._subject, error)
            return None
        return latest

    def restart(self, newer: RegisteredSchema, *, patience: float, pause: float) -> None:
        """The same query with another reader schema."""
        _finish_batch(self.query, patience)
        if not self.query.isActive:  # by itself, or by another hand: that is its end
            return
        self.query.stop()
        self._start(newer, pause)

    def _start(self, wanted: RegisteredSchema, pause: float) -> None:
        """Build with a version, or else with the one before; both may have to wait for the registry."""
        while True:
            try:
                self.query = self._built(wanted)
            except RegistryUnavailable as error:
                _log.warning("the query on %s waits for the registry: %s", self._subject, error)
                time.sleep(pause)
            except Exception as error:
                if wanted is self._reader:
                    raise
                self._pass_over(wanted, error)
                wanted = self._reader
            else:
                break
        if wanted is not self._reader:
            _log.info("%s is read with version %s from now on", self._subject, wanted.version)
            self._reader = wanted

    def _built(self, reader: RegisteredSchema) -> StreamingQuery:
        query = self._build(reader)
        if not hasattr(query, "awaitTermination"):  # Spark Connect has a class of its own
            raise TypeError(f"build returned {type(query).__name__}, and not the query that it started")
        return query

    def _pass_over(self, version: RegisteredSchema, why: Exception) -> None:
        _log.warning("version %s of %s is not taken up: %s", version.version, self._subject, why)
        self._passed_over = _number(version)


def _number(version: RegisteredSchema) -> int:
    return version.version or 0


def _finish_batch(query: StreamingQuery, patience: float) -> None:
    """Wait until no batch is under way, or another one has begun: the one before it is committed then."""
    batch, deadline = _last_batch(query), time.monotonic() + patience
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == batch:
        if time.monotonic() > deadline:
            return
        time.sleep(_LOOK_S)


def _last_batch(query: StreamingQuery) -> int | None:
    progress = query.lastProgress
    return None if progress is None else int(progress["batchId"])
