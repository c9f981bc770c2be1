"""`strata promote`: a thin command that imports `strata.registry.features.standby` when run."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from strata.registry.commands.exit_codes import ExitCode, reporting
from strata.registry.commands.service_options import auth_option, output_option, print_json, tls_options

if TYPE_CHECKING:
    from strata.registry.transfer.tls_files import TlsFiles

__all__ = ["promote"]

_SHOWN = 20
_GAP = 1000
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("promote", short_help="Make a standby the writer.")
@click.argument("log")
@click.option("--context", default=".", metavar="CONTEXT", help="context of the copy  [the whole registry]")
@click.option("--source", metavar="URL|LOG", help="address of the copied registry  [the one in the log]")
@click.option("--accept-loss", is_flag=True, help="promote although something is lost, or cannot be compared")
@click.option(
    "--gap",
    type=click.IntRange(0),
    default=_GAP,
    help=f"ids that stay unused in each context if the source does not answer: it may have assigned them  [{_GAP}]",
)
@click.option(
    "--kafka-config", type=_FILE, envvar="STRATA_KAFKA_CONFIG", help="file with librdkafka settings for LOG on Kafka"
)
@click.option("--source-kafka-config", type=_FILE, help="file with librdkafka settings for a source on Kafka")
@auth_option("source-auth", "the source")
@tls_options
@output_option
@reporting
def promote(
    log: str,
    *,
    context: str,
    source: str | None,
    accept_loss: bool,
    gap: int,
    kafka_config: Path | None,
    source_kafka_config: Path | None,
    source_auth: str | None,
    tls: "TlsFiles",
    output: str,
) -> ExitCode:
    """Make the standby whose log is LOG a registry of its own, which accepts writes.

    The command first compares LOG with the source, and lists what the source holds that LOG does not. If something
    would be lost, or the source does not answer, it promotes only with --accept-loss, and exits with 1 otherwise. Stop
    the clients of the source first, or put it into mode READONLY.

    --output json prints one object: log, context, source, promoted, `differences` (null if they are not known, with the
    reason as `error`), `next_ids` of contexts, and the mode that clients meet.

    Nodes that serve LOG accept writes at once; their flag --follow is ignored from then on.

    \b
    strata promote sqlite:///standby.db
    strata promote kafka://dr-broker:9092/_schemas --accept-loss
    """  # noqa: D301 - click wants the character itself
    from strata.registry.core.effective_settings import Mode, mode_in_force
    from strata.registry.core.subject_names import context_name
    from strata.registry.features.standby.promotion import assumed_highest, loss_of, standby_in, state_of
    from strata.registry.features.standby.promotion import promote as end_copy
    from strata.registry.features.standby.sources import source_at
    from strata.registry.node.settings import properties_in
    from strata.registry.transfer.copies import TransferError
    from strata.registry.transfer.logs import opened
    from strata.storage.addresses import without_password
    from strata.storage.log import LogError
    from strata.storage.records import Subject

    into = "." if context.strip(":") in (".", "") else context_name(context)
    differences: tuple[str, ...] | None = None
    reason = None
    with opened(log, properties_in(kafka_config), must_exist=True) as own:
        state = state_of(own)
        standby = standby_in(state, into)
        where = source or standby.source
        try:
            loss = loss_of(state, standby, into, source_at(where, source_auth, tls, properties_in(source_kafka_config)))
            highest, differences = loss.highest, loss.things
        except (TransferError, LogError, ValueError) as error:
            highest, reason = assumed_highest(state, into, gap), str(error)
        report: dict[str, object] = {"log": without_password(log), "context": into, "source": where, "promoted": False,
                                 "differences": differences, "error": reason}  # fmt: skip
        if output == "text":
            _report(differences, where, reason, standby.copied_at)
        if (differences is None or differences) and not accept_loss:
            if output == "json":
                print_json(report)
            click.echo("strata: not promoted; add --accept-loss to promote anyway", err=True)
            return ExitCode.DIFFERENT
        after = end_copy(own, into, highest)
    mode = mode_in_force(after, None if into == "." else Subject(f":{into}:"))
    next_ids = {name: after.next_id(name) for name in sorted(highest)}
    if output == "json":
        print_json(report | {"promoted": True, "next_ids": next_ids, "mode": mode})
        return ExitCode.DONE
    for name, number in next_ids.items():
        click.echo(f"context {name}: the next id is {number}")
    if mode is not Mode.READWRITE:
        click.echo(f"the mode copied from the source is {mode}: set READWRITE before clients write")
    click.echo(f"{log} is a writer now" if into == "." else f"context {into} is writable now")
    return ExitCode.DONE


def _report(things: tuple[str, ...] | None, where: str, reason: str | None, copied_at: int) -> None:
    """Print what would be lost, or why that is not known."""
    if things is None:
        click.echo(f"{where} cannot be compared: {reason}")
        click.echo(f"what it accepted after {_when(copied_at)} and was not copied would be lost")
        return
    for thing in things[:_SHOWN]:
        click.echo(thing)
    if len(things) > _SHOWN:
        click.echo(f"… and {len(things) - _SHOWN} more")
    click.echo(f"{len(things) or 'no'} difference{'' if len(things) == 1 else 's'} to {where}")


def _when(ms: int) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(ms / 1000))
