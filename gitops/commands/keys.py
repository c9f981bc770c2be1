"""`strata keys rewrap`: data keys of field encryption, wrapped again by their KMS."""

from pathlib import Path

import click

from strata.gitops.commands.running import connected, reporting, service_at
from strata.gitops.errors import GitopsError

__all__ = ["keys"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FAILED = 1


@click.group(short_help="Work with the keys of field encryption.")
def keys() -> None:
    """Work with the keys of field encryption (docs/guides/rules.md)."""


@keys.command()
@click.argument("kek")
@click.option("--subject", "subjects", multiple=True, metavar="NAME", help="only the keys of this subject; repeatable")
@click.option(
    "--kms-config",
    type=_FILE,
    envvar="STRATA_KMS_CONFIG",
    help="file with the settings of the KMS, such as kms.allowed and token.id, one NAME=VALUE per line  "
    "(STRATA_KMS_CONFIG)",
)
@click.option("--dry-run", is_flag=True, help="unwrap and wrap, but do not change the registry")
@connected
@reporting
def rewrap(
    *, kek: str, subjects: tuple[str, ...], kms_config: Path | None, dry_run: bool, connection: dict[str, object]
) -> int:
    """Wrap the data keys of the key encryption key KEK again, and replace them in the registry.

    Do this after the rotation of its key in the KMS, before old versions are disabled there. The data keys stay the
    same, so records stay readable. Soft-deleted versions are left alone. Keys that fail are named, and set exit code 1.

    \b
    strata keys rewrap customers --url http://localhost:8081 --kms-config vault.properties
    """  # noqa: D301 - click wants the character itself
    from strata.imports import MissingExtra

    try:
        from strata.serdes.encryption.ciphers import CipherError
        from strata.serdes.encryption.rewrapping import rewrap_keys
    except MissingExtra as error:
        raise GitopsError(str(error)) from None

    settings = {} if kms_config is None else _settings(kms_config)
    client, done, failed = service_at(connection).client, 0, 0
    try:
        for key in rewrap_keys(client, kek, settings, subjects=subjects, is_trial=dry_run):
            place = f"{key.subject}  {key.algorithm}  version {key.version}"
            if key.failure:
                failed += 1
                click.echo(f"strata: {place}: {key.failure}", err=True)
            else:
                done += 1
                click.echo(place)
    except CipherError as error:
        raise GitopsError(str(error)) from None
    what = "would be wrapped again" if dry_run else "wrapped again"
    click.echo(f"{done} data key{'' if done == 1 else 's'} {what}, {failed} failed")
    return _FAILED if failed else 0


def _settings(file: Path) -> dict[str, str]:
    settings = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise GitopsError(f"{file}, line {number}: expected NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings
