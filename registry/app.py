"""Assembles the service: the routes and the layers in front."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI

from strata import __version__
from strata.registry.access.audit import Audit, open_sink
from strata.registry.access.authenticator import Authenticator
from strata.registry.access.control import AccessControl
from strata.registry.access.node_secret import NodeSecret
from strata.registry.access.rate_limit import RateLimit
from strata.registry.access.rules import Rule
from strata.registry.audit_settings import AuditFailure
from strata.registry.health import Health
from strata.registry.routes.all import ROUTERS, ROUTES
from strata.registry.routes.serving import Routes
from strata.registry.service import Service
from strata.registry.settings import Settings
from strata.registry.transport.answer_cache import AnswerCache
from strata.registry.transport.cors import Cors
from strata.registry.transport.cross_site import BrowserGuard
from strata.registry.transport.forward import Forward
from strata.registry.transport.front import Front, Key
from strata.registry.transport.kept_answers import KeptAnswers
from strata.registry.transport.link import Link
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
    seat: Seat | None = None,
    link: Link | None = None,
    calling: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    control: AccessControl | None = None,
) -> Front:
    """Return the ASGI app of one node over an open log; shutting the app down closes the log.

    Reads the log first, which blocks.

    Args:
        log: the log.
        settings: the settings of the service.
        cluster_id: the name of the log in `/v1/metadata/id`.
        state: the State from which to read on; by default the log is read from the start.
        seat: the place of this process among the workers of the node; by default it is the only one.
        link: the connection to the worker that writes, if this is not the one.
        calling: returns the TLS context for calls to other nodes.
        control: access control; by default that of the settings, which may be none.

    Raises:
        LogError: if the log cannot be read.
        AuthFileError: if the auth file cannot be used.
    """
    writer = Writer(log, state=state, write_timeout_s=settings.write_timeout)
    writer.replay(quietly=state is not None)
    seat = seat or Seat()
    authenticator = Authenticator(settings.identity, buckets=seat.board.buckets)
    if control is None and authenticator.is_on:
        control = _control(settings, authenticator)
    audit = _audit(settings) if settings.audit else None
    health = Health(writer, seat, auth_file=authenticator.file)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        watches = [asyncio.create_task(one.watch()) for one in (health, authenticator)]
        yield
        for watch in watches:
            watch.cancel()
        authenticator.close()
        await writer.close()
        if audit is not None:
            audit.close()

    app = _Application(
        title="Strata",
        description="A schema registry: versioned schemas, and the rules by which they evolve.",
        version=__version__,
        license_info={"name": "Apache-2.0"},
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url=None,  # routes/pages.py
        docs_url=None,
        redoc_url=None,
    )
    forward = Forward(
        Routes(ROUTES, app),
        writer,
        max_waiting=settings.max_waiting,
        max_waiting_bytes=settings.max_waiting_bytes,
        link=link,
        tls=calling,
        control=control,
    )
    guard = BrowserGuard(settings.hosts, settings.origins)
    processes = seat.board.workers
    service = Service(writer, settings, cluster_id, health, control=control)
    kept = KeptAnswers(forward, service, most_bytes=_KEPT_BYTES // processes)
    # Of a node that lags no answer is valid: a new object is the same as no other.
    cache: AnswerCache[Key] = AnswerCache(
        lambda: object() if writer.lags else writer.state.removals, _HOT_BYTES // processes
    )
    return Front(
        forward,
        kept.answer,
        cache,
        ROUTES,
        guard,
        control=control,
        state=lambda: writer.state,
        newest=writer.catch_up,
        audit=audit,
        cors=Cors(settings.cors) if settings.cors else None,
        rate=_rate_limit(settings, seat.board.buckets),
        address=authenticator.address,
        max_body=settings.max_body,
        access_log=settings.access_log,
    )


def _control(settings: Settings, authenticator: Authenticator) -> AccessControl:
    given = settings.read_node_secret()
    secret = NodeSecret(given) if given else None
    if secret is None and settings.log.startswith("kafka:"):
        _log.warning("without --node-secret this node forwards no writes, but takes the pen for each; set it on all")
    return AccessControl(authenticator, partial(_file_rules, authenticator), settings.superuser_names, secret)


def _audit(settings: Settings) -> Audit:
    refuses = settings.audit_on_failure is AuditFailure.REFUSE
    return Audit(open_sink(settings.audit or ""), refuses=refuses, reads=settings.audit_reads)


def _rate_limit(settings: Settings, buckets: Buckets) -> RateLimit | None:
    per_user, per_address = settings.rate_limit, settings.address_rate_limit
    if not per_user and not per_address:
        return None
    return RateLimit(buckets, per_user=per_user, per_address=per_address, burst_s=settings.rate_burst_seconds)


def _file_rules(authenticator: Authenticator) -> tuple[Rule, ...]:
    return authenticator.file.content.rules if authenticator.file else ()


class _Application(FastAPI):
    """What documents the service, and starts and ends it. It gets its routes when the document is first asked for."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        if self.openapi_schema is None:
            for router in ROUTERS:
                self.router.routes.extend(router.documented().routes)
        return super().openapi()
