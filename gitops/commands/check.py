"""`strata check`: are the schemas of a tree valid, and may they follow the ones that exist?"""

import os
from pathlib import Path

import click

from strata.gitops.commands.running import connected, environment_option, manifest_option, reporting, service_at

__all__ = ["check"]

_LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_OF_GITHUB = ("github", "sarif")
_OUTPUTS = ("text", "json", "github", "sarif", "junit")


def _engines(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the engines that an option names."""
    from strata.compat.logical.tables import ENGINES

    names = tuple(dict.fromkeys(name.strip().lower() for name in value.split(","))) if value is not None else ()
    if unknown := [name for name in names if name not in ENGINES]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(ENGINES)}.")
    return names


@click.command(short_help="Check schema files, offline, against earlier ones.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--against",
    metavar="PATH|REVISION|URL",
    help="what the schemas follow: a folder, an export file, a Git revision or a registry  [only parse]",
)
@click.option("--level", type=click.Choice(_LEVELS, case_sensitive=False), help="compatibility level of all subjects")
@click.option("--policy", type=click.Choice(("STRICT", "LENIENT", "LOGICAL"), case_sensitive=False),
              help="how strictly differences count  [compatibilityPolicy, or STRICT]")  # fmt: skip
@click.option("--silent", type=click.Choice(("note", "error")), default="note",
              help="how to report an accepted change that alters values without an error  [note]")  # fmt: skip
@click.option("--tables", metavar="ENGINES", callback=_engines,
              help="engines whose tables must be able to follow: iceberg, delta and flink, with commas")  # fmt: skip
@click.option("--output", type=click.Choice(_OUTPUTS), default="text", help="format of the report  [text]")
@click.option("--output-file", metavar="FILE", help="write the report to a file")
@manifest_option
@environment_option
@connected
@reporting
def check(
    *, paths: tuple[str, ...], against: str | None, level: str | None, policy: str | None, silent: str,
    tables: tuple[str, ...], output: str, output_file: str | None, manifests: tuple[str, ...],
    environment: str | None, connection: dict[str, object],
) -> int:  # fmt: skip
    """Check that schemas can be parsed, and are compatible with those that they follow.

    PATH is a folder, a strata.yaml or a schema file; without one it is the working folder. Subjects and levels come
    from strata.yaml. Without it each .avsc, .proto and .schema.json file is the subject of its name without the ending;
    a .proto file in the folder of its package is that of its import.

    Each incompatibility comes with the smallest record that shows it. An accepted change that alters
    values without an error is a note; with --silent error it fails the check.

    With --tables, tables of these engines must be able to follow too: a table that has the columns of all earlier
    versions gets the new ones, keeps every value that it has, and takes the new values as they are.

    Exit codes: 0 no problem; 1 a schema is invalid or incompatible; 2 something could not be judged.

    \b
    strata check --against origin/main
    strata check schemas/ --against https://registry.example.com --level FULL
    strata check --against backup.jsonl.gz --output sarif --output-file strata.sarif
    strata check --against origin/main --tables iceberg,delta
    """  # noqa: D301 - click wants the character itself
    from strata.compat.levels import Level, Policy
    from strata.gitops.checks import Options, Severity, check_tree
    from strata.gitops.errors import GitopsError
    from strata.gitops.places import placed
    from strata.gitops.reports import REPORTS
    from strata.gitops.sources import is_url, select, versions_at
    from strata.gitops.trees import Folder
    from strata.gitops.versions import Versions

    selection = select(paths, manifests, environment)
    if environment is not None and not selection.manifests:
        raise GitopsError("--env needs a manifest, and there is no strata.yaml; name one with --file")
    desired = selection.desired(Folder(selection.root))
    earlier: Versions | None = None
    if against is not None:
        earlier = service_at(connection, against) if is_url(against) else versions_at(against, selection)
    options = Options(
        Level(level.upper()) if level else None, Policy(policy.upper()) if policy else None, Severity(silent), tables
    )
    problems = check_tree(desired, earlier, options, str(selection.root))
    checked = selection.part(desired)
    if selection.files:
        problems = [problem for problem in problems if problem.subject in checked.subjects]
    report = REPORTS[output](*placed(problems, checked, selection, _base(output)))
    if output_file is None:
        click.echo(report, nl=False)
    else:
        try:
            Path(output_file).write_text(report, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise GitopsError(f"cannot write {output_file}: {error.strerror}") from None
    severities = {problem.severity for problem in problems}
    # A hook runs at each commit: also before there are schemas, and after the last one is deleted.
    if not any(subject.text is not None for subject in checked.subjects.values()) and (paths or against is None):
        raise GitopsError("no schema files found")
    return 1 if Severity.ERROR in severities else 2 if Severity.UNJUDGED in severities else 0


def _base(output: str) -> Path:
    """Return the folder from which a report names files: GitHub reads two formats from the top of its checkout."""
    workspace = os.environ.get("GITHUB_WORKSPACE") if output in _OF_GITHUB else None
    return Path(workspace) if workspace else Path.cwd()
