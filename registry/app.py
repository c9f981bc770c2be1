"""Makes the service: the core, and the features of a list."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from threading import Lock

from starlette.routing import Router as StarletteRouter

from strata.registry.api.all import ROUTERS as CORE_ROUTERS
from strata.registry.api.router import Router
from strata.registry.core import parsing
from strata.registry.core.log_reader import RecentRecords
from strata.registry.core.tail_reader import TailReader
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.access.feature import ACCESS
from strata.registry.features.associations.feature import ASSOCIATIONS
from strata.registry.features.audit.feature import AUDIT
from strata.registry.features.decoding.feature import DECODING
from strata.registry.features.exporters.feature import EXPORTERS
from strata.registry.features.feature import Feature, Node, Part
from strata.registry.features.glue.feature import GLUE
from strata.registry.features.keys.feature import KEYS
from strata.registry.features.metrics.feature import METRICS
from strata.registry.features.pages.feature import PAGES
from strata.registry.features.search.feature import SEARCH
from strata.registry.features.standby.feature import STANDBY
from strata.registry.features.tracing.feature import TRACING
from strata.registry.features.usage.feature import USAGE
from strata.registry.http.checks import BrowserGuard
from strata.registry.http.cors import Cors
from strata.registry.http.forward import Forward
from strata.registry.http.link import Followers, Link
from strata.registry.http.pipeline import Pipeline
from strata.registry.http.route_facts import DeclaredRoute, RouteTable
from strata.registry.http.service import Control, Service
from strata.registry.node.board import Seat
from strata.registry.node.settings import Reads
from strata.registry.settings import Settings
from strata.storage.log import Log
from strata.storage.state import State

__all__ = ["FEATURES", "ROUTERS", "create_app", "route_table", "routers_of"]

FEATURES = (
    STANDBY,
    ACCESS,  # before those that want to know who asks
    AUDIT,
    TRACING,
    USAGE,
    SEARCH,
    EXPORTERS,
    KEYS,
    ASSOCIATIONS,
    GLUE,
    DECODING,
    PAGES,  # shows the views of all
    METRICS,  # publishes what all have counted
)
"""The features, in the order in which their parts of a node are made."""
_HOT_BYTES, _KEPT_BYTES = 64 << 20, 32 << 20  # of the cached answers of all processes of the node


def routers_of(features: Iterable[Feature]) -> tuple[Router, ...]:
    """Return the groups of routes of the service with some features, in the order in which they are matched."""
    groups = [*CORE_ROUTERS, *(router for feature in features for router in feature.routers)]
    return tuple(sorted(groups, key=lambda router: router.place))


ROUTERS = routers_of(FEATURES)
"""The groups of routes with all features."""


def route_table(routers: Iterable[Router] = ROUTERS, own: Iterable[DeclaredRoute] = ()) -> RouteTable:
    """Return the routes of some groups.

    Args:
        routers: the groups.
        own: routes that are matched before them.
    """
    return RouteTable([*own, *(route for router in routers for route in router.declared)])


def create_app(
    log: Log,
    settings: Settings,
    *,
    cluster_id: str = "strata",
    state: State | None = None,
    recent: RecentRecords | None = None,
    seat: Seat | None = None,
    link: Link | None = None,
    followers: Followers | None = None,
    calling: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    control: Control | None = None,
    certificates: Callable[[], Mapping[str, float]] = dict,
    variables: Mapping[str, str] | None = None,
    features: Sequence[Feature] = FEATURES,
) -> Pipeline:
    """Return the ASGI app of one node over an open log; shutting the app down closes the log.

    Reads the log first, which blocks.

    Args:
        log: the log.
        settings: the settings of the service.
        cluster_id: the name of the log in `/v1/metadata/id`.
        state: the State from which to read on; by default the log is read from the start.
        recent: the newest records up to `state`.
        seat: the place of this process among the workers of the node; by default it is the only one.
        link: the connection to the worker that writes, if this is not the one.
        followers: the workers to tell what is appended, if this is the one that writes.
        calling: returns the TLS context for calls to other nodes.
        control: access control; by default that of the settings, which may be none.
        certificates: returns when the first certificate of each TLS file ends, in seconds since the epoch.
        variables: the environment; by default none of it.
        features: the features.

    Raises:
        LogError: if the log cannot be read.
        AuthFileError: if the auth file cannot be used.
    """
    seat = seat or Seat()
    tally = Tally(seat.board.numbers(seat.number))
    writer = Writer(
        log,
        state=state,
        write_timeout_s=settings.write_timeout,
        read_timeout_s=settings.read_timeout,
        tally=tally,
        recent=recent,
    )
    writer.replay(quietly=state is not None)
    if link is not None:
        link.on_append = writer.follow
    if followers is not None:
        writer.on_append = followers.tell
    routers = routers_of(features)
    views = sorted((view for feature in features for view in feature.views), key=lambda view: view.place)
    node = Node(
        settings, seat, tally, writer, cluster_id, link, calling, certificates, variables or {}, routers, views, control
    )
    parts = dict[str, Part]()
    for feature in features:
        if (part := feature.part(node)) is not None:
            parts[feature.name] = part
            node.counted.update(part.counted)
            node.measured.update(part.measured)
            node.facts.update(part.facts)
    node.health.conditions = [part.health for part in parts.values() if part.health is not None]
    pipeline = _pipeline(node, parts)
    for part in parts.values():
        _join(pipeline, part)
    return pipeline


def _pipeline(node: Node, parts: Mapping[str, Part]) -> Pipeline:
    settings, board, writer = node.settings, node.seat.board, node.writer
    keeps = {type(part.keeps): part.keeps for part in parts.values() if part.keeps is not None}
    service = Service(writer, settings, node.cluster_id, node.health, node.control, frozenset(parts), keeps)
    own = [route for part in parts.values() for route in part.routes]
    pipeline = Pipeline(
        service,
        route_table(node.routers, own),
        _Application(node.routers, partial(_lifespan, node, tuple(parts.values()))),
        Forward(
            writer,
            max_waiting=settings.max_waiting,
            max_waiting_bytes=settings.max_waiting_bytes,
            link=node.link,
            tls=node.calling,
            control=node.control,
            is_leaving=lambda: board.is_leaving,
        ),
        BrowserGuard(settings.hosts, settings.origins),
        hot_bytes=_HOT_BYTES // board.workers,
        kept_bytes=_KEPT_BYTES // board.workers,
        admission=next((part.admission for part in parts.values() if part.admission), None),
        audit=next((part.audit for part in parts.values() if part.audit), None),
        cors=Cors(settings.cors) if settings.cors else None,
        failure_page=next((part.failure_page for part in parts.values() if part.failure_page), None),
    )
    writer.gathering.reads = pipeline.reads_from_memory
    return pipeline


def _join(pipeline: Pipeline, part: Part) -> None:
    """Let a part see the requests of a pipeline."""
    if part.begin is not None:
        pipeline.begins = (*pipeline.begins, part.begin)
        pipeline.begins_inner = (*pipeline.begins_inner, *((part.begin,) if part.sees_passed_on else ()))
    if part.end is not None:
        pipeline.ends = (part.end, *pipeline.ends)
        pipeline.ends_inner = (*((part.end,) if part.sees_passed_on else ()), *pipeline.ends_inner)
    if part.news is not None:
        pipeline.news = part.news
    if part.join is not None:
        part.join(pipeline)


@asynccontextmanager
async def _lifespan(node: Node, parts: Sequence[Part], _app: object) -> AsyncIterator[None]:
    """Run what runs beside the service, then close what is open."""
    beside = [node.health.watch, *_tail_of(node), *(watch for part in parts for watch in part.watch), _load_formats]
    tasks = [asyncio.ensure_future(watch()) for watch in beside]
    yield
    for task in tasks:
        task.cancel()
    await node.writer.close()
    for part in parts:
        if part.close is not None:
            await asyncio.to_thread(part.close)


async def _load_formats() -> None:
    """Import what the first schemas need, which a start does not wait for."""
    await asyncio.to_thread(parsing.load)


def _tail_of(node: Node) -> list[Callable[[], Awaitable[None]]]:
    return [TailReader(node.writer).watch] if node.settings.reads is Reads.LOCAL else []


class _Application(StarletteRouter):
    """What starts and ends the service, and has its OpenAPI document; the pipeline answers all requests."""

    def __init__(
        self, routers: Sequence[Router], lifespan: Callable[[object], AbstractAsyncContextManager[None]]
    ) -> None:
        super().__init__(lifespan=lifespan, redirect_slashes=False)
        self._routers = routers
        self._lock = Lock()

    def openapi(self) -> dict[str, object]:
        """Return the OpenAPI document; the first call takes a second."""
        with self._lock:
            from strata.registry.api.openapi import openapi_document

            return openapi_document(tuple(self._routers))
