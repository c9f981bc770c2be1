"""`strata usage`: which versions are still fetched, by whom and when last, over all nodes that are named."""

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from strata.registry.commands.exit_codes import reporting
from strata.registry.commands.service_options import auth_option, tls_options

if TYPE_CHECKING:
    from strata.registry.transfer.tls_files import TlsFiles

__all__ = ["merged", "usage"]

_PAGE = 1000
_OUTPUTS = ("table", "json")


class Counted(TypedDict):
    """How often something was fetched, and when last; never if the count is 0."""

    count: int
    last: NotRequired[str]


class ClientUsage(Counted):
    """The part of one client."""

    client: str
    user: NotRequired[str | None]
    by: list[str]


class VersionUsage(Counted):
    """What was fetched of a version."""

    subject: str
    version: int
    id: int
    deleted: NotRequired[bool]
    clients: list[ClientUsage]


class UsageAnswer(TypedDict):
    """The answer of `GET /v1/usage`."""

    since: str
    forgotten: int
    versions: list[VersionUsage]


@click.command()
@click.argument("url")
@click.argument("subject", default="")
@click.option("--node", "others", multiple=True, metavar="URL", help="a further node to ask; repeatable")
@click.option("--deleted", is_flag=True, help="include soft-deleted versions")
@click.option("--unused", is_flag=True, help="only versions that no client has fetched")
@click.option("--output", type=click.Choice(_OUTPUTS), default="table", help="format  [table]")
@click.option("--format", "earlier", type=click.Choice(_OUTPUTS), hidden=True, help="the earlier name of --output")
@auth_option("auth", "the service")
@tls_options
@reporting
def usage(
    url: str, subject: str, *, others: tuple[str, ...], deleted: bool, unused: bool, output: str,
    earlier: str | None, auth: str | None, tls: "TlsFiles",
) -> None:  # fmt: skip
    """List versions with the clients that fetched them, from the memory of running nodes.

    URL is a node; --node names the others. A load balancer would answer for one of them only. SUBJECT limits the list.
    A node counts from its start: the time in the first line is the latest start.
    """
    counted = merged([_asked(address, auth, tls, subject, deleted) for address in (url, *others)])
    if unused:
        counted["versions"] = [
            counted_version for counted_version in counted["versions"] if not counted_version["count"]
        ]
    if (earlier or output) == "json":
        click.echo(json.dumps(counted, indent=2))
        return
    click.echo(f"since {counted['since']}")
    if counted["forgotten"]:
        click.echo(f"{counted['forgotten']} versions and ids were also fetched, but are no longer known")
    for version in counted["versions"]:
        last = f"{_times(version)}, last {version['last']}" if version["count"] else "not fetched"
        deleted_mark = " (deleted)" if version.get("deleted") else ""
        click.echo(f"{version['subject']}  version {version['version']}{deleted_mark}, id {version['id']}: {last}")
        for client in version["clients"]:
            user = f" as {client['user']}" if "user" in client else ""
            by = " and ".join(client["by"])
            name = client["client"] or "(no User-Agent)"
            click.echo(f"    {name}{user}, by {by}: {_times(client)}, last {client['last']}")


def _times(counted: Counted) -> str:
    return "once" if counted["count"] == 1 else f"{counted['count']} times"


def merged(answers: list[UsageAnswer]) -> UsageAnswer:
    """Return the answers of several nodes as one."""
    versions: dict[tuple[str, int], VersionUsage] = {}
    for answer in answers:
        for version in answer["versions"]:
            key = version["subject"], version["version"]
            versions[key] = _both(versions[key], version) if key in versions else version
    return {
        "since": max(answer["since"] for answer in answers),
        "forgotten": sum(answer["forgotten"] for answer in answers),
        "versions": list(versions.values()),
    }


def _both(ours: VersionUsage, theirs: VersionUsage) -> VersionUsage:
    clients: dict[tuple[str, str | None], ClientUsage] = {}
    for client in (*ours["clients"], *theirs["clients"]):
        key = client["client"], client.get("user")
        known = clients.get(key)
        if known is None:
            clients[key] = client
        else:
            by = sorted({*known["by"], *client["by"]})
            clients[key] = {**client, **known, **_sum(known, client), "by": by}
    newest = sorted(clients.values(), key=lambda client: str(client["last"]), reverse=True)
    return {**theirs, **ours, **_sum(ours, theirs), "clients": newest}


def _sum(ours: Counted, theirs: Counted) -> Counted:
    """Return the sum of the counts and the later time; texts of times compare as times."""
    summed: Counted = {"count": ours["count"] + theirs["count"]}
    if summed["count"]:
        summed["last"] = max(ours.get("last", ""), theirs.get("last", ""))
    return summed


def _asked(url: str, auth: str | None, tls: "TlsFiles", subject: str, deleted: bool) -> UsageAnswer:
    from strata.registry.transfer.copies import TransferError
    from strata.registry.transfer.rest import Connection

    connection = Connection(url, auth, tls)
    query: dict[str, str | int] = {"subject": subject, "deleted": str(deleted).lower(), "limit": _PAGE}
    first = connection.ask("GET", "/v1/usage", **query, offset=0)
    if first.code == HTTPStatus.NOT_FOUND:
        raise TransferError(f"{connection.name} does not note which versions are fetched (--usage off)")
    if not first.good:
        raise TransferError(f"{connection.name} rejected GET /v1/usage: {first.body}")
    page: UsageAnswer = first.body
    answer = page
    while len(page["versions"]) == _PAGE:
        page = connection.get("/v1/usage", **query, offset=len(answer["versions"]))
        answer["versions"] += page["versions"]
    return answer
