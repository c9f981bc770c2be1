"""`strata dump` and `strata diff`: a registry as files, and what differs between two sets of subjects."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strata.gitops.commands.running import connected, environment_option, reporting, service_at

if TYPE_CHECKING:
    from strata.gitops.dumps import Source

__all__ = ["diff", "dump"]

_FORBIDDEN = 403


@click.command(short_help="Write a registry as files and strata.yaml.")
@click.argument("folder")
@click.option("--export", metavar="FILE", help="read an export file instead of a registry")
@click.option("--subject", "subjects", multiple=True, metavar="NAME", help="only this subject, or PREFIX*; repeatable")
@click.option("--owner", metavar="NAME", help="write this owner into the manifest, as --prune needs")
@connected
@reporting
def dump(
    *, folder: str, export: str | None, subjects: tuple[str, ...], owner: str | None, connection: dict[str, object]
) -> None:
    """Write the latest version of each subject, and all settings, into FOLDER.

    `strata plan` on the result shows no change. Registries other than Strata do not list names that have only
    settings, such as aliases; an export file does.

    \b
    strata dump registry/ --url https://registry.example.com
    strata dump registry/ --export backup.jsonl.gz --owner platform
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.dumps import dump as write
    from strata.gitops.dumps import left_out
    from strata.gitops.service import Service

    if export is None:
        source: Source = service_at(connection)
    else:
        from strata.gitops.exports import ExportVersions

        source = ExportVersions(Path(export))
    may_read = _may_read_rights(source)
    count = write(source, Path(folder), subjects, owner, rights=may_read)
    click.echo(f"wrote {count or 'no'} subject{'' if count == 1 else 's'} to {folder}")
    for name in left_out(source, subjects):
        click.echo(f"left out: {name}, whose versions an alias hides, or whose format is unknown", err=True)
    if not may_read:
        click.echo("left out: rights, which this login may not read (DESCRIBE on the cluster)", err=True)
    if isinstance(source, Service) and not subjects and source.names_with_settings() is None:
        click.echo("left out: names that have settings only, such as aliases; --export reads them", err=True)


def _may_read_rights(source: "Source") -> bool:
    from strata.serdes.errors import RegistryError

    try:
        source.rules()
    except RegistryError as error:
        if error.status != _FORBIDDEN:
            raise
        return False
    return True


@click.command(short_help="Compare two registries, folders, files or revisions by meaning.")
@click.argument("a")
@click.argument("b", required=False)
@click.option("--output", type=click.Choice(("text", "json")), default="text", help="format  [text]")
@environment_option
@connected
@reporting
def diff(*, a: str, b: str | None, output: str, environment: str | None, connection: dict[str, object]) -> int:
    """Compare the latest versions of subjects in A and B, each a URL, folder, export file or Git revision.

    Without B, A is compared with the working folder. Differences of white space or of the order of keys do not count.

    Exit codes: 0 no difference; 1 differences; 2 an error.

    \b
    strata diff origin/main
    strata diff http://old:8081 http://new:8081 --output json
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.diffs import as_text, differences
    from strata.gitops.sources import is_url, select, versions_at
    from strata.gitops.versions import Versions

    selection = select([], (), environment)

    def named(text: str) -> Versions:
        return service_at(connection, text) if is_url(text) else versions_at(text, selection)

    changed = list(differences(named(a), named("." if b is None else b)))
    if output == "json":
        click.echo(json.dumps([difference.as_json() for difference in changed], indent=2, ensure_ascii=False))
    else:
        for difference in changed:
            for line in as_text(difference):
                click.echo(line)
    return 1 if changed else 0
