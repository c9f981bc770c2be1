"""`strata replay`: what a schema makes of the records that lie in a topic already."""

from pathlib import Path
from typing import Any

import click

from strata.gitops.commands.running import connected, reporting, service_at
from strata.gitops.commands.subjects import reference_in
from strata.gitops.errors import GitopsError

__all__ = ["replay"]

_FORMATS = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Read a topic's records with a schema that is not registered yet.")
@click.argument("topic")
@click.option("--schema", "file", type=_FILE, required=True, help="the candidate")
@click.option("--type", "kind", type=click.Choice(("AVRO", "JSON", "PROTOBUF"), case_sensitive=False),
              help="its format  [the file's ending]")  # fmt: skip
@click.option(
    "--reference", "references", multiple=True, metavar="NAME=SUBJECT:VERSION", help="a reference; repeatable"
)
@click.option("--subject", help="the subject whose compatibility level applies  [TOPIC-value]")
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
    kafka_config: Path | None, start: str, sample: int | None, is_key: bool, output: str, connection: dict[str, object],
) -> int:  # fmt: skip
    """Read the records of TOPIC with the schema in a file, as if it were the newest version.

    Says which records the schema cannot read, by path and reason; which values it would read differently, without an
    error; which schemas in the topic the registry does not know; and, where the level of the subject includes FORWARD,
    which records the schema could not have written. It joins no group and commits nothing.

    Exit codes: 0 every record is read as it was written; 1 something was found; 2 the topic or the registry could not
    be read. Ctrl-C prints what was seen until then.

    \b
    strata replay orders --schema new.avsc --broker localhost:9092
    strata replay orders --schema new.avsc --from -100000 --output json
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.replay.reports import as_json, as_text, has_problems
    from strata.gitops.replay.run import Replay, kafka_settings
    from strata.gitops.replay.start import start_of

    client = service_at(connection).client
    candidate, settings = _candidate(file, kind, references), kafka_settings(broker, kafka_config)
    run = Replay(client, topic, settings, subject or f"{topic}-{'key' if is_key else 'value'}", is_key=is_key)
    is_whole = run.read(candidate, start_of(start), sample)
    outcome, versions = run.outcome, run.versions()
    if output == "json":
        click.echo(as_json(outcome, versions, is_whole=is_whole))
    else:
        for line in as_text(outcome, versions, is_whole=is_whole, part="key" if is_key else "value"):
            click.echo(line)
    if not is_whole:
        raise KeyboardInterrupt
    return 1 if has_problems(outcome) else 0


def _candidate(file: Path, schema_type: str | None, references: tuple[str, ...]) -> Any:
    from strata.serdes.model import Reference, Schema

    schema_format = (schema_type or _FORMATS.get(file.suffix, "")).upper()
    if not schema_format:
        raise GitopsError(f"{file}: the ending does not say the format; expected --type")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GitopsError(f"{file} cannot be read: {error}") from None
    return Schema(text, schema_format, tuple(Reference(**reference_in(reference)) for reference in references))
