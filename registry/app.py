"""Assembles the service: the routes and the layers in front."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from fastapi import FastAPI

from strata import __version__
from strata.registry.access.audit import Audit, open_sink
from strata.registry.access.authenticator import Authenticator
from strata.registry.access.control import AccessControl
from strata.registry.access.node_secret import NodeSecret
from strata.registry.access.rate_limit import RateLimit
from strata.registry.access.rules import Rule
from strata.registry.access.sessions import SessionAuthenticator, Sessions
from strata.registry.audit_settings import AuditFailure
from strata.registry.exporters.assembly import exporters_of
from strata.registry.following.assembly import follower_of
from strata.registry.health import WITH_RIGHTS_S, Health
from strata.registry.http.admission import Admission
from strata.registry.http.checks import BrowserGuard
from strata.registry.http.cors import Cors
from strata.registry.http.exchange import Exchange
from strata.registry.http.forward import Forward
from strata.registry.http.link import Followers, Link
from strata.registry.http.pipeline import Pipeline
from strata.registry.http.request_traces import RequestTraces
from strata.registry.http.route_facts import RouteTable
from strata.registry.log_reader import RecentRecords
from strata.registry.metrics.tally import Tally
from strata.registry.metrics_settings import Switch
from strata.registry.pages.failure import failure_page
from strata.registry.pages.routes import with_pages
from strata.registry.pages.sign_in import SignIn
from strata.registry.routes.all import ROUTERS
from strata.registry.scraping.assembly import Metrics
from strata.registry.scraping.facts import Counted
from strata.registry.scraping.page import metrics_page
from strata.registry.service import Service
from strata.registry.settings import Reads, Settings, Ui
from strata.registry.tail_reader import TailReader
from strata.registry.tracing import Tracing
from strata.registry.trends import Trends
from strata.registry.usage import Usage, UsageReports
from strata.registry.workers.board import Seat
from strata.registry.workers.buckets import Buckets
from strata.registry.writer import Writer
from strata.storage.log import Log
from strata.storage.state import State

__all__ = ["create_app"]

_log = logging.getLogger("strata.access")
_HOT_BYTES, _KEPT_BYTES = 64 << 20, 32 << 20  # of the cached answers of all processes of the node


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
    control: AccessControl | None = None,
    certificates: Callable[[], Mapping[str, float]] = dict,
    tracing: Tracing | None = None,
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
        tracing: the tracer, which shutting the app down closes; None if tracing is off.

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
    core = _core(settings, seat, tally, writer, control)
    follower = follower_of(settings, writer, tally, calling) if seat.writes else None
    exporters = exporters_of(settings, writer, cluster_id, tally, calling) if seat.writes else None
    service = Service(writer, settings, cluster_id, core.health, control=core.control)
    service.trends = _trends(seat, core.health) if settings.ui is not Ui.OFF else None
    service.usage = Usage() if settings.usage is Switch.ON else None
    reports = UsageReports(service.usage, link.report) if service.usage is not None and link is not None else None
    watched: list[_Watched | None] = [core.health, core.authenticator, service.trends, reports, follower, exporters]
    watched.append(TailReader(writer) if settings.reads is Reads.LOCAL else None)
    flow = core.authenticator.code_flow()
    routes = with_pages(settings.ui, SignIn(core.sessions, core.authenticator, flow, settings.ui_url))
    forward = Forward(
        writer,
        max_waiting=settings.max_waiting,
        max_waiting_bytes=settings.max_waiting_bytes,
        link=link,
        tls=calling,
        control=core.control,
        is_leaving=lambda: seat.board.is_leaving,
    )
    processes, rate = seat.board.workers, _rate_limit(settings, seat.board.buckets)
    has_admission = core.control is not None or rate is not None
    pipeline = Pipeline(
        service,
        routes,
        _application(partial(_lifespan, core, watched, tracing)),
        forward,
        BrowserGuard(settings.hosts, settings.origins),
        hot_bytes=_HOT_BYTES // processes,
        kept_bytes=_KEPT_BYTES // processes,
        admission=Admission(core.control, rate, lambda: writer.state, core.authenticator.address)
        if has_admission
        else None,
        audit=core.audit,
        cors=Cors(settings.cors) if settings.cors else None,
        failure_page=failure_page if settings.ui is not Ui.OFF else None,
    )
    writer.gathering.reads = pipeline.reads_from_memory
    metrics = _metrics(core, routes, pipeline, certificates) if settings.metrics is Switch.ON else None
    if metrics is not None:
        watched.append(metrics)
        service.scrape = None if settings.metrics_listen else metrics.scrape
        pipeline.counts, pipeline.metrics_page = metrics.counts, metrics_page(metrics.scrape)
    _observe(
        pipeline, metrics, service.usage, RequestTraces(tracing, routes, lambda: writer.state) if tracing else None
    )
    return pipeline


def _observe(pipeline: Pipeline, metrics: Metrics | None, usage: Usage | None, traces: RequestTraces | None) -> None:
    """Let requests be counted and traced."""
    if traces is not None:
        pipeline.begins = pipeline.begins_inner = (traces.begin,)
    if metrics is not None:
        pipeline.begins, pipeline.ends = (*pipeline.begins, metrics.counts.begin), (metrics.counts.end,)
    if usage is not None:
        pipeline.ends = (*pipeline.ends, partial(_note_fetch, usage))
    if traces is not None:
        pipeline.ends, pipeline.ends_inner = (*pipeline.ends, traces.end), (traces.end,)


def _note_fetch(usage: Usage, exchange: Exchange) -> None:
    if exchange.fetched is not None and exchange.status == 200:
        usage.note(exchange.fetched, exchange.headers.get(b"user-agent", b""), exchange.access.principal.user)


class _Watched(Protocol):
    """A part with a task of its own while the app runs."""

    async def watch(self) -> None:
        """Run until it is cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class _Core:
    """The parts of a node that several layers use."""

    settings: Settings
    seat: Seat
    tally: Tally
    writer: Writer
    authenticator: Authenticator
    sessions: Sessions
    control: AccessControl | None
    audit: Audit | None
    health: Health


def _core(settings: Settings, seat: Seat, tally: Tally, writer: Writer, control: AccessControl | None) -> _Core:
    authenticator = Authenticator(settings.identity, buckets=seat.board.buckets)
    sessions = _sessions(settings, authenticator, seat)
    if control is None and authenticator.is_on:
        control = _control(settings, authenticator, sessions)
    audit = _audit(settings) if settings.audit else None
    health = Health(writer, seat, auth_file=authenticator.file, every_s=WITH_RIGHTS_S if control else None)
    return _Core(settings, seat, tally, writer, authenticator, sessions, control, audit, health)


@asynccontextmanager
async def _lifespan(
    core: _Core, watched: Sequence[_Watched | None], tracing: Tracing | None, _app: FastAPI
) -> AsyncIterator[None]:
    """Run the watches while the app runs, then close what is open."""
    watches = [asyncio.create_task(one.watch()) for one in watched if one is not None]
    yield
    for watch in watches:
        watch.cancel()
    core.authenticator.close()
    await core.writer.close()
    if core.audit is not None:
        core.audit.close()
    if tracing is not None:
        await asyncio.to_thread(tracing.close)


def _metrics(
    core: _Core,
    routes: RouteTable,
    pipeline: Pipeline,
    certificates: Callable[[], Mapping[str, float]],
) -> Metrics:
    return Metrics(
        core.seat,
        core.tally,
        routes,
        core.writer,
        core.health,
        {"hot_answers": pipeline.hot, "kept_answers": pipeline.kept},
        _counted(core.audit, core.authenticator),
        has_access_control=core.control is not None,
        has_auth_file=core.authenticator.file is not None,
        certificates=certificates,
    )


def _sessions(settings: Settings, authenticator: Authenticator, seat: Seat) -> Sessions:
    secret = settings.read_node_secret() or seat.board.secret
    return Sessions(secret, authenticator.file, settings.ui_session_minutes * 60)


def _trends(seat: Seat, health: Health) -> Trends:
    board = seat.board

    def progress() -> tuple[int, int]:
        found = health.progress()
        return found["offset"], found["behind"]

    return Trends([board.numbers(worker) for worker in range(board.workers)], progress, board.all_connections)


def _control(settings: Settings, authenticator: Authenticator, sessions: Sessions) -> AccessControl:
    given = settings.read_node_secret()
    secret = NodeSecret(given) if given else None
    if secret is None and settings.log.startswith("kafka:"):
        _log.warning(
            "without --node-secret this node forwards no writes, but takes the pen for each; set it on all",
            {"event": "node_secret_missing"},
        )
    return AccessControl(
        SessionAuthenticator(authenticator, sessions),
        partial(_file_rules, authenticator),
        settings.superuser_names,
        secret,
    )


def _audit(settings: Settings) -> Audit:
    refuses = settings.audit_on_failure is AuditFailure.REFUSE
    return Audit(open_sink(settings.audit or ""), refuses=refuses, reads=settings.audit_reads)


def _counted(audit: Audit | None, authenticator: Authenticator) -> Counted:
    counted: dict[tuple[str, ...], Callable[[], float]] = {}
    if audit is not None:
        counted["strata_audit_lines_total", "written"] = lambda: audit.written
        counted["strata_audit_lines_total", "dropped"] = lambda: audit.dropped
    if (file := authenticator.file) is not None:
        counted["strata_auth_file_failures_total",] = lambda: file.failures
    return counted


def _rate_limit(settings: Settings, buckets: Buckets) -> RateLimit | None:
    per_user, per_address = settings.rate_limit, settings.address_rate_limit
    if not per_user and not per_address:
        return None
    return RateLimit(buckets, per_user=per_user, per_address=per_address, burst_s=settings.rate_burst_seconds)


def _file_rules(authenticator: Authenticator) -> tuple[Rule, ...]:
    return authenticator.file.content.rules if authenticator.file else ()


def _application(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> "_Application":
    return _Application(
        title="Strata",
        description="A schema registry: versioned schemas, and the rules by which they evolve.",
        version=__version__,
        license_info={"name": "Apache-2.0"},
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url=None,  # routes/docs.py
        docs_url=None,
        redoc_url=None,
    )


class _Application(FastAPI):
    """What documents the service, and starts and ends it. It gets its routes when the document is first asked for."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        if self.openapi_schema is None:
            for router in ROUTERS:
                self.router.routes.extend(router.documented().routes)
        return super().openapi()
