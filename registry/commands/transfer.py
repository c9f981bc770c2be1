"""`strata export`, `import`, `migrate` and `verify`: thin commands that import `strata.registry.transfer` when run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strata.registry.commands.exit_codes import ExitCode, reporting
from strata.registry.commands.service_options import auth_option, output_option, print_json, tls_options

if TYPE_CHECKING:
    from strata.registry.transfer.copies import Copy
    from strata.registry.transfer.tls_files import TlsFiles

__all__ = ["COMMANDS"]

_kafka_config = click.option(
    "--kafka-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="STRATA_KAFKA_CONFIG",
    help="file with librdkafka settings for Kafka logs (TLS, SASL), one NAME=VALUE per line  (STRATA_KAFKA_CONFIG)",
)


@click.command("export", short_help="Write a registry to an export file.")
@click.argument("source", metavar="URL|LOG")
@click.argument("file")
@click.option("--force", is_flag=True, help="replace FILE if it exists")
@click.option(
    "--subject", "subjects", multiple=True, metavar="NAME", help="export only this subject, or PREFIX*; repeatable"
)
@click.option("--context", "contexts", multiple=True, metavar="NAME", help="export only this context; repeatable")
@auth_option("auth", "the registry at URL")
@tls_options
@_kafka_config
@output_option
@reporting
def _export(
    source: str,
    file: str,
    *,
    force: bool,
    subjects: tuple[str, ...],
    contexts: tuple[str, ...],
    auth: str | None,
    tls: "TlsFiles",
    kafka_config: Path | None,
    output: str,
) -> None:
    """Write a registry to FILE, from a running service (URL) or directly from its log (LOG).

    A log is exported record by record; a service exports all that its API can express. FILE appears under its name only
    when it is complete. A name ending in `.gz` means gzip, `-` means standard output.

    --subject and --context export a part: these subjects, the subjects that they refer to, and the settings in force
    for them.

    \b
    strata export postgresql+psycopg://strata@db/strata backup.jsonl.gz
    strata export kafka://broker:9092/_schemas backup.jsonl.gz
    strata export https://user:password@registry.example:8081 backup.jsonl.gz
    strata export sqlite:///strata.db orders.jsonl --subject 'orders-*' --context .staging
    """  # noqa: D301 - click wants the character itself
    from strata.registry.transfer.files import check_free, write_export

    check_free(file, force=force)
    copy = _read(source, auth, tls, kafka_config)
    if subjects or contexts:
        from strata.registry.transfer.selection import part_of

        copy = part_of(copy, subjects, contexts)
        _print_notes(copy)
    write_export(file, copy)
    if output == "json":
        print_json({"source": copy.source, "file": file, **copy.counts(), "notes": copy.notes}, err=file == "-")
    else:
        click.echo(f"exported {_counted(copy)} to {file}", err=file == "-")


@click.command("import", short_help="Restore an export file into an empty log.")
@click.argument("file")
@click.argument("log")
@click.option("--batch", type=click.IntRange(1), help="records per append  [SQL: all, Kafka: 5000]")
@_kafka_config
@output_option
@reporting
def _import(file: str, log: str, *, batch: int | None, kafka_config: Path | None, output: str) -> None:
    """Restore FILE into LOG, which must be empty: the same ids, versions, deletions, settings and contexts.

    FILE is validated before anything is written. A SQL log takes all records or none. A Kafka topic takes large imports
    in batches; after an interruption, run the command again, and it continues where it stopped.

    \b
    strata import backup.jsonl.gz sqlite:///restored.db
    strata import backup.jsonl.gz kafka://broker:9092/_schemas
    """  # noqa: D301 - click wants the character itself
    from strata.registry.transfer.files import read_export
    from strata.storage.addresses import without_password

    copy = read_export(file)
    written = _restore(copy, log, kafka_config, batch)
    if output == "json":
        print_json({"file": file, "log": without_password(log), **copy.counts(), "written": written})
    else:
        _print_restored(copy, written)


@click.command("migrate", short_help="Copy a registry to another registry or a log.")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="URL|LOG",
    help="a running registry (Confluent, Karapace, Strata, …), a log, glue:REGION/REGISTRY or glue-export:FILE",
)
@click.option("--to", "target", required=True, metavar="URL|LOG", help="an empty registry or an empty log")
@click.option(
    "--mode",
    type=click.Choice(["READWRITE", "READONLY"]),
    help="registry-wide mode of the target at the end  [that of the source]",
)
@click.option("--into", metavar="CONTEXT", help="context for a registry of AWS Glue  [.glue]")
@click.option("--batch", type=click.IntRange(1), help="records per append to a log  [SQL: all, Kafka: 5000]")
@auth_option("from-auth", "the source")
@auth_option("to-auth", "the target")
@tls_options
@_kafka_config
@output_option
@reporting
def _migrate(
    source: str,
    target: str,
    *,
    mode: str | None,
    into: str | None,
    batch: int | None,
    from_auth: str | None,
    to_auth: str | None,
    tls: "TlsFiles",
    kafka_config: Path | None,
    output: str,
) -> ExitCode:
    """Copy a registry to another registry or a log, keeping ids and versions, and compare both at the end.

    A target URL is put into mode IMPORT while schemas are registered, and ends in the source's modes, or in the mode
    given by --mode. It must be empty; after an interruption, run the command again, and it continues where it stopped.
    Put the source into mode READONLY first, so that it does not change.

    Differences at the end are printed one per line and set exit code 1. --output json prints the object of `verify`.

    \b
    strata migrate --from http://confluent:8081 --to http://strata:8081 --mode READWRITE
    strata migrate --from http://confluent:8081 --to postgresql+psycopg://strata@db/strata
    strata migrate --from glue:eu-west-1/my-registry --to http://strata:8081
    """  # noqa: D301 - click wants the character itself
    from strata.registry.transfer.copies import TransferError
    from strata.registry.transfer.glue_source import GLUE, is_glue
    from strata.registry.transfer.rest import Connection, is_service
    from strata.registry.transfer.same_registry import is_same_registry

    if is_same_registry(source, target):
        raise TransferError(
            "--from and --to are the same registry; expected an empty registry or log after --to. Nothing was written"
        )
    if is_glue(source):
        return _migrate_glue(source, target, into or GLUE, to_auth, tls, kafka_config, batch, output)
    if into is not None:
        raise TransferError("--into is for registries of AWS Glue; expected --from glue:… or glue-export:…")
    copy = _read(source, from_auth, tls, kafka_config)
    if is_service(target):
        from strata.registry.transfer.rest_target import write_service

        write_service(copy, Connection(target, to_auth, tls), mode)
        if copy.state.exporters:
            names = ", ".join(sorted(copy.state.exporters))
            click.echo(f"left out the exporters {names}, which are not copied over REST; create them again", err=True)
        if copy.state.acls:
            click.echo(
                f"left out {len(copy.state.acls)} rules of access, which are not copied over REST; `strata acl add` "
                "adds rules, and a copy from log to log keeps them",
                err=True,
            )
    else:
        _print_restored(copy, _restore(copy, target, kafka_config, batch), err=output == "json")
    return _compared(copy, _read(target, to_auth, tls, kafka_config), but_for_mode=mode is not None, output=output)


def _migrate_glue(
    source: str,
    target: str,
    into: str,
    auth: str | None,
    tls: "TlsFiles",
    kafka_config: Path | None,
    batch: int | None,
    output: str,
) -> ExitCode:
    """Copy a registry of AWS Glue into a context of a registry, or into an empty log."""
    from strata.registry.transfer.glue_source import read_glue
    from strata.registry.transfer.rest import Connection, is_service
    from strata.registry.transfer.rest_target import write_service
    from strata.registry.transfer.selection import only_context

    context = into if into.startswith(".") else f".{into}"
    copy = read_glue(source, context)
    _print_notes(copy)
    if is_service(target):
        write_service(copy, Connection(target, auth, tls), None, context)
    else:
        _print_restored(copy, _restore(copy, target, kafka_config, batch), err=output == "json")
    return _compared(copy, only_context(_read(target, auth, tls, kafka_config), context), output=output)


@click.command("verify", short_help="Compare two registries, logs or export files.")
@click.argument("a")
@click.argument("b")
@auth_option("a-auth", "A")
@auth_option("b-auth", "B")
@tls_options
@_kafka_config
@output_option
@reporting
def _verify(
    a: str,
    b: str,
    *,
    a_auth: str | None,
    b_auth: str | None,
    tls: "TlsFiles",
    kafka_config: Path | None,
    output: str,
) -> ExitCode:
    """Compare A with B, each the URL of a service, a log or an export file, and print one difference per line.

    The comparison covers versions, ids, GUIDs, types, texts, references, metadata, rule sets, deletion, configurations,
    modes, contexts with their highest ids, encryption keys and associations, and between logs and files exporters and
    records of other kinds. It ignores timestamps, credentials of exporters and whether these are paused. --output json
    prints one object: a, b, what A holds, and the list of differences with their full values.

    Differences set exit code 1.

    \b
    strata verify http://old:8081 http://new:8081
    strata verify backup.jsonl.gz kafka://broker:9092/_schemas
    """  # noqa: D301 - click wants the character itself
    return _compared(_read(a, a_auth, tls, kafka_config), _read(b, b_auth, tls, kafka_config), output=output)


COMMANDS = (_export, _import, _migrate, _verify)


def _read(where: str, auth: str | None, tls: "TlsFiles", kafka_config: Path | None) -> "Copy":
    from strata.registry.transfer.files import read_export
    from strata.registry.transfer.logs import is_log, read_log
    from strata.registry.transfer.rest import Connection, is_service
    from strata.registry.transfer.rest_source import read_service

    if is_service(where):
        copy = read_service(Connection(where, auth, tls))
    elif is_log(where):
        copy = read_log(where, _kafka_settings(kafka_config))
    else:
        copy = read_export(where)
    _print_notes(copy)
    return copy


def _print_notes(copy: "Copy") -> None:
    from strata.registry.transfer.progress import print_line

    for note in copy.notes:
        print_line(f"{copy.source}: {note}")


def _restore(copy: "Copy", log: str, kafka_config: Path | None, batch: int | None) -> int:
    """Restore a copy into an empty log, and return the number of records that this run wrote."""
    from strata.registry.transfer.copies import TransferError
    from strata.registry.transfer.logs import is_log, restore

    if not is_log(log):
        raise TransferError(
            f"{log} is not the URL of a persistent log; expected sqlite:///FILE, postgresql+psycopg://… or kafka://…"
        )
    return restore(copy, log, _kafka_settings(kafka_config), batch)


def _print_restored(copy: "Copy", written: int, *, err: bool = False) -> None:
    click.echo(f"imported {_counted(copy)}; this run wrote {_number(written, 'records')}", err=err)


def _compared(a: "Copy", b: "Copy", *, but_for_mode: bool = False, output: str = "text") -> ExitCode:
    from strata.registry.transfer.facts import differences, facts_of, without_shown_defaults

    mine, theirs = (facts_of(copy.state, copy.records, copy.served_guids) for copy in (a, b))
    if a.over_rest and not b.over_rest:
        mine = without_shown_defaults(mine, theirs, a.unlisted)
    if b.over_rest and not a.over_rest:
        theirs = without_shown_defaults(theirs, mine, b.unlisted)
    if but_for_mode:
        for facts in (mine, theirs):
            facts.pop(("mode of", "the registry", 0), None)
    different = list(differences(mine, theirs))
    if output == "json":
        print_json(
            {"a": a.source, "b": b.source, **a.counts(), "differences": [entry.as_json() for entry in different]}
        )
    else:
        for difference in different:
            click.echo(str(difference))
    click.echo(
        f"{_number(len(different), 'differences')} between A ({a.source}) and B ({b.source}); A holds {_counted(a)}",
        err=True,
    )
    return ExitCode.DIFFERENT if different else ExitCode.DONE


def _counted(copy: "Copy") -> str:
    counts = {noun: _number(count, noun) for noun, count in copy.counts().items()}
    return "{records}: {versions} of {subjects}, {contexts}".format_map(counts)


def _number(count: int, plural: str) -> str:
    return f"{count or 'no'} {plural.removesuffix('s') if count == 1 else plural}"


def _kafka_settings(file: Path | None) -> Mapping[str, str]:
    if file is None:
        return {}
    from strata.registry.settings import load_settings

    return load_settings(kafka_config=file).kafka_settings()
