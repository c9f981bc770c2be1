"""`strata acl`: list, add, remove and test the rules of access of a running service."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from strata.registry.commands.exit_codes import ExitCode, reporting
from strata.registry.commands.service_options import auth_option, tls_options

if TYPE_CHECKING:
    from strata.registry.core.rights.rules import Resource
    from strata.registry.transfer.rest import Connection
    from strata.registry.transfer.tls_files import TlsFiles

__all__ = ["acl"]

_ACLS = "/security/acls"
_Command = Callable[..., None]


class _ResourceOptions(TypedDict):
    subject: str | None
    kek: str | None
    registry: bool
    cluster: bool


class _RuleOptions(_ResourceOptions):
    principal: str
    role: str | None
    subjects: tuple[str, ...]
    operations: tuple[str, ...]
    host: str
    deny: bool


@click.group()
def acl() -> None:
    """List, add, remove and test the rules of access in the log of a running service (docs/access.md)."""


def _service(command: _Command) -> _Command:
    """Add the service's URL and the options for talking to it."""
    with_url: _Command = click.argument("url")(auth_option("auth", "the service")(tls_options(command)))
    return with_url


def _resource_options(command: _Command) -> _Command:
    """Add the options that name a resource."""
    options = [
        click.option("--subject", metavar="NAME", help="a subject, PREFIX*, or * for all"),
        click.option("--kek", metavar="NAME", help="a key encryption key, PREFIX*, or * for all"),
        click.option("--registry", is_flag=True, help="the registry: its configuration, mode and contexts"),
        click.option("--cluster", is_flag=True, help="the log, and the rules in it"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@acl.command("list")
@_service
@click.option("--principal", help="only rules of this principal")
@reporting
def list_rules(url: str, *, auth: str | None, tls: "TlsFiles", principal: str | None) -> None:
    """List the rules in the log, one per line; rules in auth files are not listed."""
    query = {"principal": principal} if principal else {}
    for rule in _connection(url, auth, tls).get(_ACLS, **query):
        click.echo(_shown(rule))


@acl.command()
@_service
@click.option("--principal", required=True, help="User:NAME, User:* (every user), Group:NAME or Anonymous")
@click.option("--role", help="a role: consumer, producer, owner, viewer or admin")
@click.option("--on", "subjects", multiple=True, metavar="NAME", help="subject of the role, PREFIX* or *; repeatable")
@click.option("--operation", "operations", multiple=True, metavar="NAME", help="an operation, such as READ; repeatable")
@_resource_options
@click.option("--host", default="*", show_default=True, help="address or network of the client")
@click.option("--deny", is_flag=True, help="deny the operations instead of allowing them")
@reporting
def add(url: str, *, auth: str | None, tls: "TlsFiles", **options: Unpack[_RuleOptions]) -> None:
    """Add rules: those of a role, or operations on one resource.

    \b
    strata acl add http://localhost:8081 --principal Group:orders --role owner --on 'orders-*'
    strata acl add http://localhost:8081 --principal User:ci --operation DELETE --subject '*' --deny
    """  # noqa: D301 - click wants the character itself
    made = _connection(url, auth, tls).must("POST", _ACLS, _rules(**options))
    for rule in made:
        click.echo(_shown(rule))


@acl.command()
@_service
@click.option("--principal", help="only rules of this principal")
@click.option("--operation", help="only rules about this operation")
@_resource_options
@click.option("--all", "everything", is_flag=True, help="remove all rules, if no other option chooses some")
@reporting
def remove(
    url: str, *, auth: str | None, tls: "TlsFiles", principal: str | None, operation: str | None,
    everything: bool, **named: Unpack[_ResourceOptions],
) -> None:  # fmt: skip
    """Remove the rules that match all options, and print them."""
    fields = {name: value for name, value in (("principal", principal), ("operation", operation)) if value}
    resource = _named(**named)
    if resource is not None:
        fields |= _resource_fields(resource)
    if not fields and not everything:
        raise click.UsageError("name the rules to remove, or --all")
    gone = _connection(url, auth, tls).must("DELETE", _ACLS, [fields])
    for rule in gone:
        click.echo(_shown(rule))
    if not gone:
        click.echo("strata: no rule in the log matches; nothing was removed", err=True)


@acl.command()
@_service
@click.option("--principal", required=True, help="User:NAME or Anonymous")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="group of the user; repeatable")
@click.option("--operation", required=True, help="what the principal wants to do, such as READ")
@_resource_options
@click.option("--host", default="", help="address of the client")
@reporting
def test(
    url: str, *, auth: str | None, tls: "TlsFiles", principal: str, groups: tuple[str, ...], operation: str,
    host: str, **named: Unpack[_ResourceOptions],
) -> ExitCode:  # fmt: skip
    """Say whether a principal may do something, and by which rule; the exit code is 1 if not."""
    resource = _named(**named)
    if resource is None:
        raise click.UsageError("name a resource: --subject, --kek, --registry or --cluster")
    query = [
        ("principal", principal),
        ("operation", operation),
        ("host", host),
        *(("group", group) for group in groups),
    ]
    query += [("resource_type", resource.type.value), ("resource", resource.name)]
    from urllib.parse import urlencode

    verdict = _connection(url, auth, tls).get(f"{_ACLS}/verdict?{urlencode(query)}")
    reason = f"by the rule: {_shown(verdict['rule'])}" if "rule" in verdict else "no rule matches"
    if verdict["allowed"] and "rule" not in verdict:
        reason = "a superuser"
    click.echo(f"{'allowed' if verdict['allowed'] else 'refused'}, {reason}")
    if not verdict["enabled"]:
        click.echo("access control is off: until it is on, everything is allowed")
    return ExitCode.DONE if verdict["allowed"] else ExitCode.DIFFERENT


def _connection(url: str, auth: str | None, tls: "TlsFiles") -> "Connection":
    from strata.registry.transfer.rest import Connection

    return Connection(url, auth, tls)


def _rules(
    *, principal: str, role: str | None, subjects: tuple[str, ...], operations: tuple[str, ...], host: str,
    deny: bool, **named: Unpack[_ResourceOptions],
) -> list[dict[str, str]]:  # fmt: skip
    """Return the JSON of the rules that the options of `add` describe."""
    from strata.registry.core.rights.rules import RuleError, parse_rule, rule_json
    from strata.registry.features.access.roles import expand_role

    resource = _named(**named)
    if (role is None) == (not operations):
        raise click.UsageError("expected --role, or --operation with a resource")
    try:
        if role is not None:
            if resource is not None or deny or host != "*":
                raise click.UsageError("--role can only be combined with --principal and --on")
            return [rule_json(rule) for on in subjects or (None,) for rule in expand_role(role, principal, on)]
        if resource is None or subjects:
            raise click.UsageError("name a resource: --subject, --kek, --registry or --cluster")
        fields = {"principal": principal, "host": host, "permission": "DENY" if deny else "ALLOW"}
        return [
            rule_json(parse_rule({**fields, **_resource_fields(resource), "operation": operation}))
            for operation in operations
        ]
    except RuleError as error:
        raise click.UsageError(str(error)) from None


def _named(*, subject: str | None, kek: str | None, registry: bool, cluster: bool) -> "Resource | None":
    """Return the resource that the options name; None if they name none."""
    from strata.registry.core.rights.rules import ResourceType, RuleError, parse_resource

    resources = [
        (resource_type, name)
        for resource_type, name in (
            (ResourceType.SUBJECT, subject),
            (ResourceType.KEK, kek),
            (ResourceType.REGISTRY, "" if registry else None),
            (ResourceType.CLUSTER, "" if cluster else None),
        )
        if name is not None
    ]
    if len(resources) > 1:
        raise click.UsageError("name one resource only")
    try:
        return parse_resource(*resources[0]) if resources else None
    except RuleError as error:
        raise click.UsageError(str(error)) from None


def _resource_fields(resource: "Resource") -> dict[str, str]:
    return {
        "resource_type": resource.type.value,
        "resource": resource.name,
        "pattern_type": resource.pattern.value,
    }


def _shown(rule: dict[str, str]) -> str:
    from strata.registry.core.rights.rules import parse_rule

    return str(parse_rule(rule))
