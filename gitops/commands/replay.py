"""`strata replay`: what a schema makes of the records that lie in a topic already."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strata.gitops.commands.running import connected, reporting, service_at
from strata.gitops.errors import GitopsError

if TYPE_CHECKING:
    from strata.gitops.replay.outcome import Outcome
    from strata.serdes.client import RegistryClient

__all__ = ["replay"]

_FORMATS = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_EVERY_S = 0.5


@click.command(short_help="Read a topic's records with a schema that is not registered yet.")
@click.argument("topic")
@click.option("--schema", "file", type=_FILE, required=True, help="the candidate")
@click.option("--type", "kind", type=click.Choice(("AVRO", "JSON", "PROTOBUF"), case_sensitive=False),
              help="its format  [the file's ending]")  # fmt: skip
@click.option(
    "--reference", "references", multiple=True, metavar="NAME=SUBJECT:VERSION", help="a reference; repeatable"
)
@click.option("--subject", help="the subject whose level says what is asked  [TOPIC-value]")
@click.option("--broker", envvar="STRATA_BROKER", help="HOST:PORT of a broker  (STRATA_BROKER)")
@click.option("--kafka-config", type=_FILE, envvar="STRATA_KAFKA_CONFIG",
              help="file with librdkafka settings, such as credentials  (STRATA_KAFKA_CONFIG)")  # fmt: skip
@click.option("--from", "start", default="earliest", metavar="earliest|TIME|-N",
              help="where to begin: a time (in UTC), or N records before each partition's end")  # fmt: skip
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="read about N records, in blocks spread evenly")
@click.option("--key", "is_key", is_flag=True, help="read the keys of records instead of their values")
@click.option("--output", type=click.Choice(("text", "json")), default="text", help="format of the report  [text]")
@connected
@reporting
def replay(
    *, topic: str, file: Path, kind: str | None, references: tuple[str, ...], subject: str | None, broker: str | None,
    kafka_config: Path | None, start: str, sample: int | None, is_key: bool, output: str, connection: dict[str, Any],
) -> int:  # fmt: skip
    """Read the records of TOPIC with the schema in a file, as if it were the newest version.

    Says which records the schema cannot read, by path and reason; which values it would read as others without an
    error; which schemas in the topic the registry does not know; and, where the level of the subject includes FORWARD,
    which records the schema could not have written. It joins no group and commits nothing.

    Exit codes: 0 every record is read as it was written; 1 something was found; 2 the topic or the registry could not
    be read. Ctrl-C prints what was seen until then.

    \b
    strata replay orders --schema new.avsc --broker localhost:9092
    strata replay orders --schema new.avsc --from -100000 --output json
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.replay.judges import judge_of
    from strata.gitops.replay.outcome import Outcome
    from strata.gitops.replay.reports import as_json, as_text, has_problems
    from strata.gitops.replay.topic import TopicReader, start_of

    client = service_at(connection).client
    where = start_of(start)
    subject = subject or f"{topic}-{'key' if is_key else 'value'}"
    candidate = _candidate(file, kind, references)
    outcome, is_whole = Outcome(), False
    with closing(TopicReader(topic, _settings(broker, kafka_config), is_key=is_key)) as reader:
        judge = judge_of(candidate, client, writes=_writes(client, subject))
        ranges = reader.plan(where, sample)
        outcome.planned = sum(end - first for _, first, end in ranges)
        progress = _Progress(outcome)
        try:
            for batch in reader.read(ranges):
                outcome.records += len(batch.frames)
                judge.judge(batch, outcome)
                progress.show(batch.passed)
            is_whole = True
        except KeyboardInterrupt:
            pass
        finally:
            progress.clear()
    names = {*outcome.schemas, *(key.schema for key in outcome.findings)}
    versions = {name: list(_versions(client, name)) for name in names}
    if output == "json":
        click.echo(as_json(outcome, versions, is_whole=is_whole))
    else:
        for line in as_text(outcome, versions, is_whole=is_whole):
            click.echo(line)
    if not is_whole:
        raise KeyboardInterrupt
    return 1 if has_problems(outcome) else 0


def _settings(broker: str | None, file: Path | None) -> dict[str, str]:
    """Return the settings of librdkafka.

    Raises:
        GitopsError: If no broker is named, or a line of the file is not a setting.
    """
    settings: dict[str, str] = {}
    for number, line in enumerate(file.read_text().splitlines() if file else (), 1):
        name, is_setting, value = line.partition("=")
        if line.strip() and not line.lstrip().startswith("#"):
            if not is_setting:
                raise GitopsError(f"{file}:{number}: expected NAME=VALUE")
            settings[name.strip()] = value.strip()
    if broker:
        settings["bootstrap.servers"] = broker
    if "bootstrap.servers" not in settings:
        raise GitopsError("no broker: name one with --broker, STRATA_BROKER or bootstrap.servers in --kafka-config")
    return settings


def _candidate(file: Path, kind: str | None, references: tuple[str, ...]) -> Any:
    from strata.serdes.model import Reference, Schema

    schema_format = (kind or _FORMATS.get(file.suffix, "")).upper()
    if not schema_format:
        raise GitopsError(f"{file}: the ending does not say the format; expected --type")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GitopsError(f"{file} cannot be read: {error}") from None
    return Schema(text, schema_format, tuple(_reference(one, Reference) for one in references))


def _reference(text: str, make: Any) -> Any:
    name, _, target = text.partition("=")
    subject, _, version = target.rpartition(":")
    if not name or not subject or not version.isdecimal():
        raise GitopsError(f"expected NAME=SUBJECT:VERSION, got {text!r}")
    return make(name, subject, int(version))


def _writes(client: "RegistryClient", subject: str) -> bool:
    """Return whether the level of a subject says that old readers must read new records."""
    level = str(client.get_config(subject, default_to_global=True).get("compatibilityLevel", ""))
    return level.startswith(("FORWARD", "FULL"))


def _versions(client: "RegistryClient", name: str) -> Iterator[str]:
    """Yield the versions that a schema in frames belongs to, as far as the registry knows."""
    from strata.serdes.errors import RegistryError

    if name.isdecimal():
        try:
            for subject, version in client.get_schema_versions(int(name)):
                yield f"{subject}:{version}"
        except RegistryError:
            return


class _Progress:
    """A line on standard error that says how far the reading is, if a person looks at it."""

    def __init__(self, outcome: "Outcome") -> None:
        self._outcome, self._passed = outcome, 0
        self._began = self._shown = time.monotonic()
        self._is_on = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, passed: int) -> None:
        """Show that so many offsets more have been read."""
        self._passed += passed
        now = time.monotonic()
        if self._is_on and now - self._shown >= _EVERY_S:
            self._shown = now
            share = self._passed / max(self._outcome.planned, 1)
            rate = self._outcome.records / (now - self._began)
            left = (self._outcome.planned - self._passed) / max(rate, 1)
            click.echo(
                f"\r{share:6.1%}  {self._outcome.records:,} records, {rate:,.0f}/s, {left:,.0f} s left \033[K",
                err=True,
                nl=False,
            )

    def clear(self) -> None:
        """Remove the line."""
        if self._is_on:
            click.echo("\r\033[K", err=True, nl=False)
