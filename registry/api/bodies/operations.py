"""The JSON of the operations API: the health of a node, and its log."""

from typing import Literal

from pydantic import ConfigDict, Field

from strata.registry.api.bodies.contracts import Answer, Body

__all__ = ["HighestIdAnswer", "HighestIdChange", "LiveAnswer", "LogAnswer", "ReadyAnswer", "UsageAnswer"]


class HighestIdChange(Body):
    """The highest id that is to count as assigned; without it, the highest that a version has.

    Unknown properties are refused: without `highestId`, as many ids as possible are assigned again.
    """

    model_config = ConfigDict(extra="forbid")

    highest_id: int | None = Field(None, ge=0)


class HighestIdAnswer(Answer):
    """The highest id that a context has assigned, and the highest that one of its versions has; 0 if there is none.

    `before` is the highest id before it was lowered: records and clients may hold the ids up to it.
    """

    context: str
    highest_id: int
    highest_in_use: int
    before: int | None = None


class LiveAnswer(Answer):
    """The liveness of the process."""

    live: bool


class _Progress(Answer):
    """How far a node has read the log (`offset`), and the end of the log when last seen (`end`)."""

    offset: int
    end: int
    behind: int
    seconds_since_read: float


class ReadingAnswer(Answer):
    """How far a standby has read the service that it copies: pages or names, and their number if that is known."""

    step: str
    done: int
    total: int | None


class StandbyAnswer(Answer):
    """The registry that this one copies, and the age of the newest complete copy; null before the first one.

    It has `reading` while the node reads a service.
    """

    source: str
    context: str
    seconds_behind: float | None
    reading: ReadingAnswer | None = None


class ReadyAnswer(Answer):
    """Whether to send requests, or writes, to this node; `reason` says why not, and `canWrite` whether it can write.

    `auth` is `stale` while an older auth file is in force, because the newest one cannot be used. Only a standby has
    `standby`. With access control, clients that may not DESCRIBE the cluster get only `ready` and `canWrite`.
    """

    ready: bool
    reason: str | None = None
    can_write: bool
    offset: int | None = None
    end: int | None = None
    behind: int | None = None
    seconds_since_read: float | None = None
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
