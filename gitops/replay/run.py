"""One replay: a topic, a candidate, and what the registry says of both.

Rules of this file: it puts the parts together; the commands print.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from strata.gitops.errors import GitopsError
from strata.gitops.replay.outcome import Outcome
from strata.imports import require
from strata.properties import PropertiesRefused, read_properties

if TYPE_CHECKING:
    from strata.gitops.replay.judges import Judge
    from strata.gitops.replay.start import Start
    from strata.gitops.replay.topic import Batch
    from strata.serdes.client import RegistryClient, Schema

__all__ = ["Replay", "kafka_settings"]

_EVERY_S: Final = 0.5


class Replay:
    """The reading of a topic with a candidate.

    Args:
        client: the registry.
        topic: the topic.
        settings: the settings of librdkafka.
        subject: the subject whose compatibility level applies.
        is_key: whether the keys of records are read instead of their values.
    """

    def __init__(
        self, client: "RegistryClient", topic: str, settings: Mapping[str, str], subject: str, *, is_key: bool = False
    ) -> None:
        self._client, self._topic, self._settings = client, topic, settings
        self._subject, self._is_key = subject, is_key
        self.outcome = Outcome()

    def read(self, candidate: "Schema", start: "Start", sample: int | None = None) -> bool:
        """Read the records, and return whether all were read; Ctrl-C ends the reading.

        Args:
            candidate: the schema.
            start: where to begin.
            sample: about how many records to read; None means all.

        Raises:
            GitopsError: If the topic cannot be read, or the candidate cannot be used.
            SerdeError: If the registry does not answer.
        """
        require("kafka", "strata replay", "confluent_kafka")
        require("arrow", "strata replay", "pyarrow", "numba")
        from strata.gitops.replay.judges import judge_of
        from strata.gitops.replay.topic import TopicReader

        outcome = self.outcome
        judge = judge_of(candidate, self._client, writes=self._writes())
        with closing(TopicReader(self._topic, self._settings, is_key=self._is_key)) as reader:
            ranges = reader.plan(start, sample)
            outcome.planned = sum(end - first for _, first, end in ranges)
            progress = _Progress(outcome)
            try:
                _judge_all(reader.read(ranges), judge, outcome, progress)
            except KeyboardInterrupt:
                return False
            finally:
                progress.clear()
        return True

    def versions(self) -> dict[str, list[str]]:
        """Return the versions that each schema in the topic belongs to, as `subject:version`.

        A schema that is named by its GUID, or by a version in AWS Glue, is looked up in the subject of the topic.
        """
        names = {*self.outcome.schemas, *(key.schema for key in self.outcome.findings)}
        return {name: list(self._versions(name)) for name in names}

    def _versions(self, name: str) -> Iterator[str]:
        from strata.serdes.errors import RegistryError

        try:
            if name.isdecimal():
                for subject, version in self._client.get_schema_versions(int(name)):
                    yield f"{subject}:{version}"
            elif name:
                registered = self._client.lookup(self._subject, self._by_uuid(name), deleted=True)
                yield f"{registered.subject}:{registered.version}"
        except RegistryError:
            return

    def _by_uuid(self, name: str) -> "Schema":
        """Return the schema with a GUID or with the UUID of a version in AWS Glue."""
        from strata.serdes.errors import RegistryError

        try:
            return self._client.get_schema_by_guid(name)
        except RegistryError:
            return self._client.get_schema_by_glue_version(name)

    def _writes(self) -> bool:
        """Return whether the level of the subject says that old readers must read new records."""
        config = self._client.get_config(self._subject, default_to_global=True)
        return str(config.get("compatibilityLevel", "")).startswith(("FORWARD", "FULL"))


def _judge_all(batches: "Iterator[Batch]", judge: "Judge", outcome: Outcome, progress: "_Progress") -> None:
    """Judge each batch while the next one is consumed: the decoder of batches leaves the interpreter to that."""
    with ThreadPoolExecutor(1) as worker:
        judged: Future[None] | None = None
        for batch in batches:
            if judged is not None:
                judged.result()
                progress.show()
            judged = worker.submit(_judge, batch, judge, outcome)
        if judged is not None:
            judged.result()


def _judge(batch: "Batch", judge: "Judge", outcome: Outcome) -> None:
    outcome.records += len(batch)
    outcome.passed += batch.passed
    judge.judge(batch, outcome)


def kafka_settings(broker: str | None, file: Path | None) -> dict[str, str]:
    """Return the settings of librdkafka.

    Raises:
        GitopsError: If no broker is named, or the file is not lines of NAME=VALUE.
    """
    try:
        settings = read_properties(file) if file else {}
    except PropertiesRefused as error:
        raise GitopsError(str(error)) from None
    if broker:
        settings["bootstrap.servers"] = broker
    if "bootstrap.servers" not in settings:
        raise GitopsError("no broker: name one with --broker, STRATA_BROKER or bootstrap.servers in --kafka-config")
    return settings


class _Progress:
    """A line on standard error that says how far the reading is, if a person looks at it."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._began = self._shown = time.monotonic()
        self._is_on = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self) -> None:
        """Show how far it is, if the last time is a while ago."""
        now = time.monotonic()
        if self._is_on and now - self._shown >= _EVERY_S:
            self._shown = now
            share = self._outcome.passed / max(self._outcome.planned, 1)
            rate = self._outcome.records / (now - self._began)
            left = (self._outcome.planned - self._outcome.passed) / max(rate, 1)
            line = f"{share:6.1%}  {self._outcome.records:,} records, {rate:,.0f}/s, {left:,.0f} s left"
            click.echo(f"\r{line} \033[K", err=True, nl=False)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_on:
            click.echo("\r\033[K", err=True, nl=False)
