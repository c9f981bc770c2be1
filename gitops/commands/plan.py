"""`strata plan` and `strata apply`: bring a registry to what the manifest says."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strata.gitops.commands.running import connected, environment_option, manifest_option, reporting, service_at

if TYPE_CHECKING:
    from strata.gitops.desired import Desired
    from strata.gitops.plans import Plan
    from strata.gitops.registries import Outcome, Registry

__all__ = ["apply", "plan"]

_TRIES = 5
_CHANGES, _FAILED = 2, 1
_DONE = {"settings": "changed", "rights": "changed", "delete": "deleted"}
_prune = click.option(
    "--prune", is_flag=True, help="delete subjects with the owner's mark that the manifest no longer has"
)


class _Plan(click.Command):
    """A command whose exit code for wrong arguments is 1: 2 means changes."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return the context of a run."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            error.exit_code = _FAILED  # type: ignore[misc]  # click reads it from the instance
            raise


@click.command(cls=_Plan, short_help="Show what `strata apply` would change.")
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@manifest_option
@environment_option
@_prune
@click.option("--out", metavar="FILE", help="write the plan to a file, for `strata apply`")
@click.option("--output", type=click.Choice(("text", "markdown")), default="text", help="format  [text]")
@connected
@reporting(_FAILED)
def plan(
    *, paths: tuple[str, ...], manifests: tuple[str, ...], environment: str | None, prune: bool, out: str | None,
    output: str, connection: dict[str, Any],
) -> int:  # fmt: skip
    """Compare the manifest with a registry, and list what would change, why, and what it means.

    A schema counts as a change if the subject's latest version does not hold it, as the registry itself sees it:
    metadata and rules count, and so does going back to an older schema, but white space does not.

    Exit codes: 0 nothing changes; 2 something does; 1 an error, or a schema that the registry would reject.

    \b
    strata plan --url https://registry.example.com
    strata plan --env production --prune --out plan.json --output markdown > comment.md
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.plans import make_plan, plan_markdown, plan_text, write_plan
    from strata.gitops.registries import registry_at

    desired = _desired((*manifests, *paths), environment)
    made = make_plan(desired, registry_at(service_at(connection)), prune=prune, label="the tree")
    click.echo(plan_markdown(made) if output == "markdown" else plan_text(made), nl=False)
    if made.errors:
        return _FAILED
    if out is not None:
        write_plan(made, Path(out))
    return _CHANGES if made.changes else 0


@click.command(short_help="Bring a registry to what the manifest says.")
@click.argument("plan_file", required=False, metavar="[PLAN]")
@manifest_option
@environment_option
@_prune
@connected
@reporting(_FAILED)
def apply(
    *, plan_file: str | None, manifests: tuple[str, ...], environment: str | None, prune: bool,
    connection: dict[str, Any],
) -> int:  # fmt: skip
    """Carry out what `strata plan` shows: a plan file, or the plan of the manifest.

    A Strata service takes all changes in one write, or none. It refuses a plan file if the registry has changed since;
    without a file, the command plans again. Other registries take one change after the other, and a failure says what
    was done.

    \b
    strata apply --url https://registry.example.com
    strata apply plan.json
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.registries import registry_at

    if plan_file is not None:
        from strata.gitops.errors import GitopsError
        from strata.gitops.plans import read_plan

        if manifests or environment is not None or prune:
            raise click.UsageError("a plan file takes no --file, --env or --prune: `strata plan` took them")
        made = read_plan(Path(plan_file))
        service = service_at(connection, planned=made.registry)
        if service.label != made.registry:
            raise GitopsError(f"{plan_file} is a plan for {made.registry}, not for {service.label}; plan again")
        return _apply_file(made, registry_at(service))
    return _apply_manifest(_desired(manifests, environment), connection, prune=prune)


def _desired(manifests: Sequence[str], environment: str | None) -> "Desired":
    from strata.gitops.errors import GitopsError
    from strata.gitops.sources import select
    from strata.gitops.trees import Folder

    selection = select([], manifests, environment)
    if not selection.manifests:
        raise GitopsError("no strata.yaml here; name a manifest with --file")
    return selection.desired(Folder(selection.root))


def _apply_file(made: "Plan", registry: "Registry") -> int:
    from strata.gitops.registries import Moved

    try:
        return _report(made, _carry_out(made, registry))
    except Moved:
        if any(one.changed or one.error for one in registry.judge(made.steps).outcomes):
            raise
        click.echo("nothing to do: the registry has all of this already")
        return 0


def _apply_manifest(desired: "Desired", connection: dict[str, Any], *, prune: bool) -> int:
    from strata.gitops.errors import GitopsError
    from strata.gitops.plans import make_plan, plan_text
    from strata.gitops.registries import Moved, registry_at

    for tries_left in reversed(range(_TRIES)):
        registry = registry_at(service_at(connection))
        made = make_plan(desired, registry, prune=prune, label="the tree")
        if made.errors:
            click.echo(plan_text(made), err=True, nl=False)
            raise GitopsError("nothing was written: the registry would reject a part")
        try:
            return _report(made, _carry_out(made, registry))
        except Moved:
            if not tries_left:
                raise
    return _FAILED


def _carry_out(made: "Plan", registry: "Registry") -> "list[Outcome]":
    if not made.changes:
        return []

    def done(number: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if number == len(made.changes) else ""
            sys.stderr.write(f"\r{number} of {len(made.changes)}{end}")
            sys.stderr.flush()

    return registry.carry_out(made.steps, made.offset, done)


def _report(made: "Plan", outcomes: "Sequence[Outcome]") -> int:
    from strata.gitops.plans import name_of

    for change, outcome in zip(made.changes, outcomes, strict=True):
        version = f" version {outcome.version}" if outcome.version and change.step["action"] == "register" else ""
        verb = _DONE.get(change.step["action"], "registered")
        click.echo(f"{verb} {name_of(change.step)}{version}")
    click.echo(f"{len(outcomes)} changed, {made.unchanged} unchanged")
    return 0
