"""The JSON of the operations API: the health of a node, and its log."""

from typing import Literal

from pydantic import Field

from strata.registry.wire.contracts import Answer

__all__ = ["LiveAnswer", "LogAnswer", "ReadyAnswer", "UsageAnswer"]


class LiveAnswer(Answer):
    """The liveness of the process."""

    live: bool


class _Progress(Answer):
    """How far a node has read the log (`offset`), and the end of the log when last seen (`end`)."""

    offset: int
    end: int
    behind: int
    seconds_since_read: float


class StandbyAnswer(Answer):
    """The registry that this one copies, and the age of the newest complete copy; null before the first one."""

    source: str
    context: str
    seconds_behind: float | None


class ReadyAnswer(_Progress):
    """Whether to route requests to this node; `reason` says why not.

    `auth` is `stale` while an older auth file is in force, because the newest one cannot be used. Only a standby has
    `standby`.
    """

    ready: bool
    reason: str | None = None
    auth: Literal["stale"] | None = None
    standby: StandbyAnswer | None = None


class UsedBy(Answer):
    """A client that fetched a version, by version or by id; `client` is its `User-Agent`."""

    client: str
    user: str | None = None
    by: list[Literal["version", "id"]]
    count: int
    last: str


class UsedVersion(Answer):
    """How often a version was fetched, and when last; `clients` holds the 100 that fetched it last."""

    subject: str
    version: int
    id: int
    deleted: bool | None = None
    count: int
    last: str | None = None
    clients: list[UsedBy]


class UsageAnswer(Answer):
    """What was fetched since a time; `forgotten` versions and ids were fetched too, but are no longer known."""

    since: str
    forgotten: int
    versions: list[UsedVersion]


class SetAsideAnswer(Answer):
    """A record that could not be read into the State."""

    offset: int
    reason: str


class SetAsideList(Answer):
    """The number of records set aside, and some of them, newest first."""

    count: int
    records: list[SetAsideAnswer]


class LogAnswer(_Progress):
    """The log and its contents; `holdsPen` and `holder` on logs where one node at a time may write."""

    backend: str
    holds_pen: bool | None = None
    holder: str | None = None
    foreign_records: int = Field(description="records that others wrote while this node held the pen")
    records: int = Field(description="the records read since this node started")
    counts: dict[str, int]
    set_aside: SetAsideList
