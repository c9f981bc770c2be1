"""A pipeline without a service behind it, for tests of what it does itself."""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.responses import Response

from strata.registry.core.rights.route_rights import OPEN
from strata.registry.core.writer import Writer
from strata.registry.http.checks import BrowserGuard
from strata.registry.http.exchange import Exchange
from strata.registry.http.forward import Forward
from strata.registry.http.pipeline import Pipeline
from strata.registry.http.route_facts import DeclaredRoute, RouteFacts, RouteTable
from strata.registry.http.service import Service
from strata.registry.node.board import Seat
from strata.registry.node.health import Health
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog

__all__ = ["bare_pipeline"]


def bare_pipeline(respond: Callable[[Exchange], Awaitable[Response]], *, access_log: bool = False) -> Pipeline:
    """Return a pipeline to one route, `/x`, with bodies of at most 10 bytes.

    Args:
        respond: the route.
        access_log: whether to log every request.
    """
    routes = RouteTable([DeclaredRoute("GET", "/x", RouteFacts(need=OPEN), respond)])
    settings = Settings(log="memory:", max_body=10, access_log=access_log)
    writer = Writer(MemoryLog())
    service = Service(writer, settings, "bare", Health(writer, Seat()))
    forward = Forward(writer, max_waiting=1, max_waiting_bytes=10)
    return Pipeline(service, routes, FastAPI(), forward, BrowserGuard(None, ()), hot_bytes=1, kept_bytes=1)
