"""The commands for work by hand: register, get, list, compat, config, mode, edit, delete, undelete; completion."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from strata.gitops.commands.running import connected, reporting, service_at
from strata.gitops.errors import GitopsError
from strata.http.paths import segment, setting_path

__all__ = [
    "compat",
    "completion",
    "config",
    "delete",
    "edit",
    "get",
    "list_",
    "mode",
    "reference_in",
    "register",
    "undelete",
]

_FORMATS = ("AVRO", "JSON", "PROTOBUF")
_TAGS = "[record:]PATH=TAG[,TAG]"
_Command = Callable[..., object]
_Rows = Iterable[Sequence[object]]


def _output(default: str) -> Callable[[_Command], _Command]:
    return click.option(
        "--output", type=click.Choice(("json", "table", "raw")), default=default, help=f"format  [{default}]"
    )


def _schema_options(command: _Command) -> _Command:
    """Add the options that describe the schema in a file."""
    options = (
        click.option("--type", "kind", type=click.Choice(_FORMATS, case_sensitive=False), help="[the file's ending]"),
        click.option(
            "--reference", "references", multiple=True, metavar="NAME=SUBJECT:VERSION", help="a reference; repeatable"
        ),
        click.option("--normalize", is_flag=True, help="normalize the schema first"),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(short_help="Register a schema file under a subject.")
@click.argument("subject")
@click.argument("file")
@_schema_options
@click.option("--property", "properties", multiple=True, metavar="NAME=VALUE", help="metadata property; repeatable")
@_output("table")
@connected
@reporting
def register(
    *, subject: str, file: str, kind: str | None, references: tuple[str, ...], normalize: bool,
    properties: tuple[str, ...], output: str, connection: dict[str, object],
) -> None:  # fmt: skip
    """Register the schema in FILE (`-` is standard input) under SUBJECT, unless it is registered already."""
    body = _body(file, kind, references)
    if properties:
        body["metadata"] = {"properties": dict(_pair(property_) for property_ in properties)}
    query = {"normalize": "true"} if normalize else {}
    answer = service_at(connection).send("POST", f"/subjects/{segment(subject)}/versions", body, **query)
    _show(
        output, answer, [("subject", "version", "id"), (subject, answer.get("version", ""), answer["id"])], answer["id"]
    )


@click.command(short_help="Print a schema.")
@click.argument("subject", required=False)
@click.argument("version", default="latest")
@click.option("--id", "schema_id", type=int, help="the schema with this id instead")
@_output("raw")
@connected
@reporting
def get(
    *, subject: str | None, version: str, schema_id: int | None, output: str, connection: dict[str, object]
) -> None:
    """Print the schema of a version of SUBJECT, by default the latest, or the schema with an id."""
    if (subject is None) == (schema_id is None):
        raise click.UsageError("expected a subject or --id")
    tail = f"/subjects/{segment(subject)}/versions/{segment(version)}" if subject else f"/schemas/ids/{schema_id}"
    answer = service_at(connection).get(tail)
    names = ("subject", "version", "id", "schemaType")
    shown = {"id": schema_id, "schemaType": "AVRO", **answer}
    _show(output, answer, [names, [shown.get(name, "") for name in names]], answer["schema"])


@click.command("list", short_help="List subjects or versions.")
@click.argument("prefix", default="")
@click.option("--versions", is_flag=True, help="list the versions of the subjects too")
@click.option("--deleted", is_flag=True, help="list soft-deleted ones too")
@_output("raw")
@connected
@reporting
def list_(*, prefix: str, versions: bool, deleted: bool, output: str, connection: dict[str, object]) -> None:
    """List the subjects, in all contexts, whose names begin with PREFIX."""
    service = service_at(connection)
    query = {"deleted": "true"} if deleted else {}
    names = sorted(name for name in service.get("/subjects", subjectPrefix=":*:", **query) if name.startswith(prefix))
    if not versions:
        _show(output, names, [("subject",), *((name,) for name in names)], "\n".join(names))
        return
    numbers_by_name = {name: service.numbers(name, deleted=deleted) for name in names}
    rows = [(name, ", ".join(map(str, numbers))) for name, numbers in numbers_by_name.items()]
    _show(
        output, numbers_by_name, [("subject", "versions"), *rows], "\n".join(f"{name} {shown}" for name, shown in rows)
    )


@click.command(short_help="Ask whether a schema may follow a subject's versions.")
@click.argument("subject")
@click.argument("file")
@click.option("--version", help="the version to compare with  [those of the subject's level]")
@_schema_options
@_output("raw")
@connected
@reporting
def compat(
    *, subject: str, file: str, version: str | None, kind: str | None, references: tuple[str, ...], normalize: bool,
    output: str, connection: dict[str, object],
) -> int:  # fmt: skip
    """Ask the registry whether the schema in FILE is compatible with SUBJECT; the exit code is 1 if not."""
    query = {"verbose": "true", "witness": "true", **({"normalize": "true"} if normalize else {})}
    path = f"/compatibility/subjects/{segment(subject)}/versions" + (f"/{segment(version)}" if version else "")
    answer = service_at(connection).send("POST", path, _body(file, kind, references), **query)
    fits = bool(answer["is_compatible"])
    from strata.compat.witness.text import lines

    messages: list[str] = []
    for finding in answer.get("findings") or ():
        messages += [finding["advice"], *lines(finding, finding.get("direction"), finding.get("version"))]
    messages = messages or answer.get("messages") or []
    verdict = "compatible" if fits else "incompatible"
    rows = [("verdict", "reason"), *((verdict, message) for message in messages or [""])]
    _show(output, answer, rows, "\n".join([verdict, *messages]))
    return 0 if fits else 1


@click.command(short_help="Show or change a configuration.")
@click.argument("subject", default="")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="such as compatibility=FULL; repeatable")
@click.option("--delete", "deletes", is_flag=True, help="delete the configuration of the subject")
@click.option("--effective", is_flag=True, help="show what is in force, inherited values included")
@_output("table")
@connected
@reporting
def config(
    *, subject: str, changes: tuple[str, ...], deletes: bool, effective: bool, output: str, connection: dict[str, Any]
) -> None:
    """Show the configuration of SUBJECT (or of a context, such as `:.staging:`; of the registry without one)."""
    if deletes and changes:
        raise click.UsageError("expected --set or --delete, not both")
    service, path = service_at(connection), setting_path("config", subject or None)
    if deletes:
        answer = service.send("DELETE", path)
    elif changes:
        pairs = dict(_pair(change) for change in changes)
        answer = service.send("PUT", path, {name: _value(value) for name, value in pairs.items()})
    else:
        answer = service.get(path, **({"defaultToGlobal": "true"} if effective else {}))
    raw = answer.get("compatibilityLevel") or answer.get("compatibility") or ""
    rows = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in answer.items()]
    _show(output, answer, [("name", "value"), *rows], raw)


@click.command(short_help="Show or set a mode.")
@click.argument("subject", default="")
@click.option("--set", "wanted", metavar="MODE", help="READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD")
@click.option("--delete", "deletes", is_flag=True, help="delete the mode of the subject")
@click.option("--force", is_flag=True, help="enter IMPORT although there are schemas")
@_output("raw")
@connected
@reporting
def mode(
    *, subject: str, wanted: str | None, deletes: bool, force: bool, output: str, connection: dict[str, object]
) -> None:
    """Show the mode in force for SUBJECT (or a context; the registry without one), or set its own."""
    if deletes and wanted is not None:
        raise click.UsageError("expected --set or --delete, not both")
    service, path = service_at(connection), setting_path("mode", subject or None)
    flags: dict[str, str] = {"force": "true"} if force else {}
    if deletes:
        answer = service.send("DELETE", path)
    elif wanted is not None:
        answer = service.send("PUT", path, {"mode": wanted.upper()}, **flags)
    else:
        answer = service.get(path, **({"defaultToGlobal": "true"} if subject else {}))
    _show(output, answer, [("mode",), (answer.get("mode", ""),)], answer.get("mode", ""))


@click.command(short_help="Delete a subject or a version.")
@click.argument("subject")
@click.argument("version", required=False)
@click.option("--permanent", is_flag=True, help="hard-delete what is soft-deleted already")
@_output("raw")
@connected
@reporting
def delete(*, subject: str, version: str | None, permanent: bool, output: str, connection: dict[str, object]) -> None:
    """Soft-delete SUBJECT, or one of its versions."""
    tail = f"/versions/{segment(version)}" if version else ""
    query: dict[str, str] = {"permanent": "true"} if permanent else {}
    answer = service_at(connection).send("DELETE", f"/subjects/{segment(subject)}{tail}", None, **query)
    gone = answer if isinstance(answer, list) else [answer]
    _show(output, answer, [("subject", "version"), *((subject, number) for number in gone)], " ".join(map(str, gone)))


@click.command(short_help="Bring back a soft-deleted version.")
@click.argument("subject")
@click.argument("version")
@_output("table")
@connected
@reporting
def undelete(*, subject: str, version: str, output: str, connection: dict[str, object]) -> None:
    """Register a soft-deleted VERSION of SUBJECT again, with its metadata and rules, as a new version."""
    service, path = service_at(connection), f"/subjects/{segment(subject)}/versions"
    deleted = service.get(f"{path}/{segment(version)}", deleted="true")
    body = {name: deleted[name] for name in ("schema", "schemaType", "references") if name in deleted}
    # Empty ones too: without them, the new version would get those of the latest one.
    body |= {name: deleted.get(name) or {} for name in ("metadata", "ruleSet")}
    answer = service.send("POST", path, body)
    _show(
        output, answer, [("subject", "version", "id"), (subject, answer.get("version", ""), answer["id"])], answer["id"]
    )


@click.command(short_help="Change metadata and tags.")
@click.argument("subject")
@click.argument("version", default="latest")
@click.option("--metadata", metavar="JSON", help="the metadata of the new version  [that of VERSION]")
@click.option("--add-tags", multiple=True, metavar=_TAGS, help="tags to add to a field or record; repeatable")
@click.option("--remove-tags", multiple=True, metavar=_TAGS, help="tags to remove; repeatable")
@_output("table")
@connected
@reporting
def edit(
    *, subject: str, version: str, metadata: str | None, add_tags: tuple[str, ...], remove_tags: tuple[str, ...],
    output: str, connection: dict[str, object],
) -> None:  # fmt: skip
    """Register VERSION of SUBJECT (default: the latest) again with other metadata or tags, as a new version.

    PATH names a field, such as shop.Order.email, or a record, such as record:shop.Order.
    """
    body: dict[str, Any] = {}
    if metadata is not None:
        body["metadata"] = _json_object(metadata)
    for name, tags in (("tagsToAdd", add_tags), ("tagsToRemove", remove_tags)):
        if tags:
            body[name] = [_tagged(tag) for tag in tags]
    path = f"/subjects/{segment(subject)}/versions/{segment(version)}/tags"
    answer = service_at(connection).send("POST", path, body)
    _show(
        output, answer, [("subject", "version", "id"), (subject, answer.get("version", ""), answer["id"])], answer["id"]
    )


@click.command(short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(*, shell: str) -> None:
    """Print the script that completes commands and options: eval "$(strata completion bash)"."""
    from click.shell_completion import get_completion_class

    completion_class: Any = get_completion_class(shell)
    click.echo(completion_class(click.Group(), {}, "strata", "_STRATA_COMPLETE").source())


def _body(file: str, schema_type: str | None, references: Sequence[str]) -> dict[str, object]:
    """Return the body that describes the schema in a file."""
    from strata.gitops.names import file_format

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise GitopsError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise GitopsError(f"cannot read {file}: it is not UTF-8 at byte {error.start}") from None
    body: dict[str, Any] = {
        "schema": text,
        "schemaType": schema_type.upper() if schema_type else file_format(file) or "AVRO",
    }
    if references:
        body["references"] = [reference_in(reference) for reference in references]
    return body


def reference_in(text: str) -> dict[str, Any]:
    """Return a reference, given NAME=SUBJECT:VERSION, as a request has it."""
    name, target = _pair(text)
    subject, _, version = target.rpartition(":")
    if not subject or not (version.isascii() and version.isdigit()):
        raise click.UsageError(f"expected NAME=SUBJECT:VERSION, got {text!r}")
    return {"name": name, "subject": subject, "version": int(version)}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def _json_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise click.UsageError(f"expected a JSON object, got {text!r}")
    return value


def _tagged(text: str) -> dict[str, object]:
    path, equals, tags = text.rpartition("=")
    if not equals:
        raise click.UsageError(f"expected {_TAGS}, got {text!r}")
    entity_type = "sr_record" if path.startswith("record:") else "sr_field"
    entity = {"entityPath": path.removeprefix("record:"), "entityType": entity_type}
    return {"schemaEntity": entity, "tags": tags.split(",")}


def _value(text: str) -> object:
    """Return a value as JSON, if it is an object, a list, a boolean or null; else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, int | float) and not isinstance(value, bool) else value


def _show(output: str, answer: object, rows: _Rows, raw: object) -> None:
    """Print an answer as JSON, as a table whose first row is its head, or as the bare value for a script."""
    if output == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    elif output == "raw":
        if raw != "":
            click.echo(str(raw))
    else:
        _table([[str(cell) for cell in row] for row in rows])


def _table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
