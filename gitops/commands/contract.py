"""`strata contract`: data contracts of the Open Data Contract Standard, out of a registry and into files."""

from pathlib import Path

import click

from strata.gitops.commands.running import connected, reporting, service_at
from strata.gitops.errors import GitopsError

__all__ = ["contract"]

_DEEP = 200


@click.group(short_help="Convert data contracts (ODCS 3.1).")
def contract() -> None:
    """Export and import data contracts of the Open Data Contract Standard 3.1."""


@contract.command("export")
@click.argument("subject")
@click.option("--version", type=click.IntRange(1), help="the version  [the latest]")
@click.option("--out", metavar="FILE", help="write to a file  [standard output]")
@connected
@reporting
def export_(*, subject: str, version: int | None, out: str | None, connection: dict[str, object]) -> None:
    """Write the contract of SUBJECT: owner, status, descriptions, types, classifications, quality.

    SUBJECT is an Avro record, a JSON Schema of an object, or a Protobuf message. The command names what a contract
    cannot express.
    """
    import yaml

    from strata.gitops.contracts.envelope import TEXT, to_contract

    held = service_at(connection).version(subject, version)
    if held is None:
        raise GitopsError(f"no such version: {subject} {version or ''}".rstrip())
    made, left_out = to_contract(held)
    text = yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=1_000_000)
    if out is None:
        click.echo(text, nl=False)
    else:
        _write(Path(out), text)
    for part in left_out:
        click.echo(f"{subject}: only {TEXT} says {part}; an import of an edited contract leaves it out", err=True)


@contract.command("import")
@click.argument("file")
@click.option("--folder", default=".", help="folder for the schemas and the manifest  [.]")
@click.option("--manifest", default="strata.yaml", help="name of the manifest, which must not exist  [strata.yaml]")
@click.option("--type", "schema_type", type=click.Choice(("AVRO", "JSON", "PROTOBUF"), case_sensitive=False),
              help="format of the schemas  [as the contract says, or AVRO]")  # fmt: skip
@reporting
def import_(*, file: str, folder: str, manifest: str, schema_type: str | None) -> None:
    """Write the schemas of a contract as files, and a manifest with owner, status, tags and rules."""
    from strata.gitops.contracts.envelope import from_contract
    from strata.gitops.dumps import manifest_text
    from strata.strict_yaml import InvalidText, read_text

    try:
        imported = from_contract(
            read_text(Path(file).read_text(encoding="utf-8"), most_depth=_DEEP), schema_type and schema_type.upper()
        )
    except OSError as error:
        raise GitopsError(f"cannot read {file}: {error.strerror}") from None
    except (InvalidText, UnicodeDecodeError) as error:
        raise GitopsError(f"{file}: {error}") from None
    target = Path(folder) / manifest
    if target.exists():
        raise GitopsError(f"{target} exists; choose another name with --manifest")
    entries = []
    for schema in imported:
        name = schema.subject.replace("/", "_").replace(":", "_").lstrip(".")
        _write(Path(folder) / f"{name}.{schema.ending}", schema.text)
        entries.append({"name": schema.subject, "file": f"{name}.{schema.ending}", **schema.entry})
        for check in schema.checks_left_out:
            click.echo(f"{schema.subject}: left out the check {check}, which takes more than one record", err=True)
        for part in schema.left_out:
            click.echo(f"{schema.subject}: left out {part}, which its schema cannot express", err=True)
    for path in dict.fromkeys(path for schema in imported for path in schema.unread):
        click.echo(f"{file}: left out {path}, which an import does not take", err=True)
    _write(target, manifest_text({"subjects": entries}))
    click.echo(f"wrote {', '.join(schema.subject for schema in imported)} to {target}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GitopsError(f"cannot write {path}: {error.strerror}") from None
