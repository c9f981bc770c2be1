"""`/v1/usage`: which versions were fetched from this node, by whom and when last (docs/usage.md)."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Annotated

from starlette.responses import Response

from strata.registry.api.bodies.operations import UsageAnswer
from strata.registry.api.parameters import Deleted, Limit, Offset
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.lookup import everything, schemas
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.core.subject_names import subject_name
from strata.registry.features.usage.fetches import Client, Counted, Seen, Usage
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import ExchangeDep, Fetched
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import ContextForm, Kept
from strata.storage.records import context_of
from strata.storage.state import SchemaVersion

__all__ = ["router"]

router = Router("/v1/usage", "operations", place=210)
_MOST, _MOST_CLIENTS = 1000, 100
_NEVER = Seen(0, 0.0)


@router.reads(
    "GET", "", UsageAnswer, (404,), kept=Kept.NO, about_writer=True, context=ContextForm.SUBJECT_PARAMETER,
    need=listed(Operation.DESCRIBE),
)  # fmt: skip
async def usage(
    exchange: ExchangeDep,
    subject: Annotated[str, Query(description="only versions of this subject; empty: of all subjects")] = "",
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """List versions by subject, at most 1000 at a time, each with the clients that fetched it from this node."""
    counted = exchange.service.part(Usage)
    if counted is None:
        raise errors.not_found()
    state, most = await exchange.fresh(), limit if 0 < limit <= _MOST else _MOST
    name, visible = subject_name(subject), exchange.describable
    if name:
        every = state.versions(name, include_deleted=deleted) if visible(name) else []
        entries = every[offset : offset + most]
    else:
        entries = schemas(
            state, ":*:", include_deleted=deleted, latest_only=False, offset=offset, limit=most, visible=visible
        )
    by_item = counted.by_item()

    @cache
    def named(item: Fetched) -> bool:
        """Return whether all subjects that clients may have meant by an id are visible."""
        _, context, number = item
        entry = state.schema(context, number)
        return visible is everything or entry is None or all(visible(user) for user, _ in entry.used_by)

    rows = [_row(by_item, entry, named) for entry in entries]
    return answer({"since": _time(counted.since), "forgotten": counted.forgotten, "versions": rows})


def _row(
    by_item: Mapping[Fetched, Counted], entry: SchemaVersion, named: Callable[[Fetched], bool]
) -> dict[str, object]:
    """Return what was counted of a version, and of its id, which stands for all versions that use it.

    An id may stand for subjects that the request may not know of. Then its fetches count, but their clients have no
    names: they may be clients of those subjects.
    """
    items: tuple[Fetched, ...] = (
        ("version", entry.subject, entry.version),
        ("id", context_of(entry.subject), entry.schema.schema_id),
    )
    total, clients, ways = _NEVER, dict[Client, Seen](), dict[Client, list[str]]()
    for item in items:
        if (counted := by_item.get(item)) is not None:
            total = total.plus(counted.others)
            for client, seen in counted.clients.items():
                total = total.plus(seen)
                if item[0] == "id" and not named(item):
                    continue
                clients[client] = clients.get(client, _NEVER).plus(seen)
                ways.setdefault(client, []).append(item[0])
    newest = sorted(clients.items(), key=lambda item: item[1].last, reverse=True)
    return {
        "subject": entry.subject,
        "version": entry.version,
        "id": entry.schema.schema_id,
        **({"deleted": True} if entry.deleted else {}),
        "count": total.times,
        **({"last": _time(total.last)} if total.times else {}),
        "clients": [
            {
                "client": client.agent,
                **({"user": client.user} if client.user is not None else {}),
                "by": ways[client],
                "count": seen.times,
                "last": _time(seen.last),
            }
            for client, seen in newest[:_MOST_CLIENTS]
        ],
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
