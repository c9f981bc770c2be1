"""`strata plan` and `strata apply`: bring a registry to what the manifest says."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strata.gitops.commands.running import connected, environment_option, manifest_option, reporting, service_at

if TYPE_CHECKING:
    from strata.gitops.desired import Desired
    from strata.gitops.plans import Plan
    from strata.gitops.registries import Outcome, Registry

__all__ = ["apply", "plan"]

_TRIES = 5
_CHANGES, _FAILED = 1, 2
_DONE = {"settings": "changed", "rights": "changed", "delete": "deleted"}
_prune = click.option("--prune", is_flag=True, help="delete the owner's subjects that the manifest no longer has")


@click.command(short_help="Show what `strata apply` would change.")
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@manifest_option
@environment_option
@_prune
@click.option("--out", metavar="FILE", help="write the plan to a file, for `strata apply`")
@click.option("--output", type=click.Choice(("text", "markdown", "json")), default="text", help="format  [text]")
@connected
@reporting
def plan(
    *, paths: tuple[str, ...], manifests: tuple[str, ...], environment: str | None, prune: bool, out: str | None,
    output: str, connection: dict[str, object],
) -> int:  # fmt: skip
    """Compare the manifest with a registry, and list what would change, why, and what it means.

    A schema counts as a change if the subject's latest version does not hold it, as the registry itself sees it:
    metadata and rules count, and so does going back to an older schema, but white space does not.

    Exit codes: 0 nothing changes; 1 something does; 2 an error, or a schema that the registry would reject.

    \b
    strata plan --url https://registry.example.com
    strata plan --env production --prune --out plan.json --output markdown > comment.md
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.plans import make_plan, plan_json, plan_markdown, plan_text, write_plan
    from strata.gitops.registries import registry_at

    desired = _desired((*manifests, *paths), environment)
    made = make_plan(desired, registry_at(service_at(connection)), prune=prune, label="the tree")
    forms = {"text": plan_text, "markdown": plan_markdown, "json": plan_json}
    click.echo(forms[output](made), nl=False)
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
@click.option("--replay", "topics", multiple=True, metavar="TOPIC[=SUBJECT]",
              help="refuse a new schema of TOPIC-value that does not read the topic's records; repeatable")  # fmt: skip
@click.option("--replay-from", "start", default="earliest", metavar="earliest|TIME|-N", help="where to begin reading")
@click.option("--broker", envvar="STRATA_BROKER", help="HOST:PORT of a broker, for --replay  (STRATA_BROKER)")
@click.option("--kafka-config", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              envvar="STRATA_KAFKA_CONFIG", help="file with librdkafka settings  (STRATA_KAFKA_CONFIG)")  # fmt: skip
@click.option("--output", type=click.Choice(("text", "json")), default="text", help="format  [text]")
@connected
@reporting
def apply(
    *, plan_file: str | None, manifests: tuple[str, ...], environment: str | None, prune: bool, topics: tuple[str, ...],
    start: str, broker: str | None, kafka_config: Path | None, output: str, connection: dict[str, object],
) -> int:  # fmt: skip
    """Carry out what `strata plan` shows: a plan file, or the plan of the manifest.

    A Strata service takes all changes in one write, or none. It refuses a plan file if something that the plan depends
    on has changed since; without a file, the command plans again. Other registries take one change after the other, and
    a failure says what was done.

    With --replay, nothing is written if a new schema does not read the records that lie in its topic as they were
    written. The report of `strata replay` goes to standard error. With --output json, the report of a refused topic
    goes to standard output.

    Exit codes: 0 the registry has what the manifest says; 2 an error.

    \b
    strata apply --url https://registry.example.com
    strata apply plan.json
    strata apply --replay orders --broker localhost:9092
    """  # noqa: D301 - click wants the character itself
    from strata.gitops.registries import registry_at

    guard = partial(_replay, topics, start, broker, kafka_config, output, connection)
    if plan_file is not None:
        from strata.gitops.errors import GitopsError
        from strata.gitops.plans import read_plan

        if manifests or environment is not None or prune:
            raise click.UsageError("a plan file takes no --file, --env or --prune: `strata plan` took them")
        made = read_plan(Path(plan_file))
        service = service_at(connection, planned=made.registry)
        if service.label != made.registry:
            raise GitopsError(f"{plan_file} is a plan for {made.registry}, not for {service.label}; plan again")
        guard(made)
        return _apply_file(made, registry_at(service), output)
    return _apply_manifest(_desired(manifests, environment), connection, output, guard, prune=prune)


def _replay(
    topics: Sequence[str], start: str, broker: str | None, kafka_config: Path | None, output: str,
    connection: dict[str, object], made: "Plan",
) -> None:  # fmt: skip
    """Read the records of topics with the new schemas of their subjects, and say so on standard error.

    Raises:
        GitopsError: If a schema does not read its records as they were written, a topic cannot be read, or there is no
            such subject.
    """
    from strata.gitops.errors import GitopsError
    from strata.gitops.replay.reports import as_json, as_text, has_problems
    from strata.gitops.replay.run import Replay, kafka_settings
    from strata.gitops.replay.start import start_of
    from strata.serdes.model import Schema

    if not topics:
        return
    settings = kafka_settings(broker, kafka_config)
    service = service_at(connection, planned=made.registry)
    new = {step["subject"]: step for step in made.steps if step["action"] == "register"}
    for topic in topics:
        name, _, named = topic.partition("=")
        subject = named or f"{name}-value"
        if subject not in new:
            if not service.numbers(subject):
                raise GitopsError(
                    f"--replay {topic}: {subject} is neither in the plan nor in the registry; name the subject of the "
                    "topic with TOPIC=SUBJECT"
                )
            click.echo(f"{subject} gets no new schema, so the records of {name} are not read", err=True)
            continue
        run = Replay(service.client, name, settings, subject)
        if not run.read(Schema.from_answer(new[subject]["schema"]), start_of(start)):
            raise KeyboardInterrupt
        click.echo(f"the records of {name}, read with the new schema of {subject}:", err=True)
        versions = run.versions()
        for line in as_text(run.outcome, versions, is_whole=True):
            click.echo(line, err=True)
        if has_problems(run.outcome):
            if output == "json":
                click.echo(as_json(run.outcome, versions, is_whole=True))
            raise GitopsError(f"nothing was written: the records of {name} do not fit the new schema of {subject}")


def _desired(manifests: Sequence[str], environment: str | None) -> "Desired":
    from strata.gitops.errors import GitopsError
    from strata.gitops.sources import select
    from strata.gitops.trees import Folder

    selection = select([], manifests, environment)
    if not selection.manifests:
        raise GitopsError("no strata.yaml here; name a manifest with --file")
    return selection.desired(Folder(selection.root))


def _apply_file(made: "Plan", registry: "Registry", output: str) -> int:
    from strata.gitops.registries import Moved

    try:
        return _report(made, _carry_out(made, registry), output)
    except Moved:
        if any(outcome.changed or outcome.error for outcome in registry.judge(made.steps).outcomes):
            raise
        if output == "json":
            return _report(replace(made, changes=(), unchanged=made.unchanged + len(made.changes)), (), output)
        click.echo("nothing to do: the registry has all of this already")
        return 0


def _apply_manifest(
    desired: "Desired", connection: dict[str, object], output: str, guard: "Callable[[Plan], None]", *, prune: bool
) -> int:
    from strata.gitops.errors import GitopsError
    from strata.gitops.plans import make_plan, plan_text
    from strata.gitops.registries import Moved, registry_at

    for tries_left in reversed(range(_TRIES)):
        registry = registry_at(service_at(connection))
        made = make_plan(desired, registry, prune=prune, label="the tree")
        if made.errors:
            click.echo(plan_text(made), err=True, nl=False)
            raise GitopsError("nothing was written: the registry would reject a part")
        guard(made)
        try:
            return _report(made, _carry_out(made, registry), output)
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


def _report(made: "Plan", outcomes: "Sequence[Outcome]", output: str) -> int:
    from strata.gitops.plans import name_of

    pairs = list(zip(made.changes, outcomes, strict=True))
    if output == "json":
        changes = [{"title": change.title, "action": change.step["action"], "subject": change.step["subject"],
                    "version": outcome.version} for change, outcome in pairs]  # fmt: skip
        report = {"registry": made.registry, "changes": changes, "changed": len(pairs), "unchanged": made.unchanged}
        click.echo(json.dumps({**report, "kept": list(made.kept)}, indent=2))
        return 0
    for change, outcome in pairs:
        version = f" version {outcome.version}" if outcome.version and change.step["action"] == "register" else ""
        verb = _DONE.get(change.step["action"], "registered")
        click.echo(f"{verb} {name_of(change.step)}{version}")
    click.echo(f"{len(pairs)} changed, {made.unchanged} unchanged")
    return 0
