"""The layer that lets no exception escape, because the server would then drop a connection that other requests use.

It also logs slow requests and, in the access log, all requests, since it sees the status of errors.
"""

import logging
import time

from starlette.requests import ClientDisconnect

from strata.registry import errors
from strata.registry.errors import RegistryError
from strata.registry.http.access_layer import access_of
from strata.registry.http.asgi import Receive, Scope
from strata.registry.http.reply import Layer, Reply
from strata.registry.http.request_checks import plain_path, route_of

__all__ = ["ErrorBoundary"]

_log = logging.getLogger("strata.http")


class ErrorBoundary:
    """A layer that turns exceptions into answers.

    Args:
        within: the next layer.
        access_log: whether to log every request.
        slow_s: the shortest time of a request that is logged as slow, in seconds; None: none is.
    """

    def __init__(self, within: Layer, *, access_log: bool, slow_s: float | None = None) -> None:
        self._within, self._access_log, self._slow_s = within, access_log, slow_s

    async def answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Let the next layer answer, or an error object."""
        method, raw_path = scope["method"], scope["raw_path"]  # the next layer may replace the path
        try:
            await self._within(scope, receive, reply)
        except RegistryError as error:
            await reply.fail(error)
        except ClientDisconnect:
            _log.debug("%s %s: the client disconnected before its request was complete", method, plain_path(raw_path))
        except Exception:  # noqa: BLE001 - the outermost layer logs it and answers 500
            _log.exception(
                "%(method)s %(path)s failed",
                {"event": "request_failed", "method": method, "path": plain_path(raw_path)},
            )
            await reply.fail(errors.internal())
        self.note(scope, raw_path, reply)

    def note(self, scope: Scope, raw_path: bytes, reply: Reply) -> None:
        """Log a request that has its answer, if it was slow or all requests are logged."""
        seconds = time.perf_counter() - reply.began
        # Without an answer, it was the client that was slow, or that left.
        is_slow = self._slow_s is not None and seconds >= self._slow_s and reply.status != 0
        if not is_slow and not self._access_log:
            return
        route, access, client = route_of(scope), access_of(scope), scope.get("client")
        fields = {
            "method": "HEAD" if reply.is_head else scope["method"],
            "path": plain_path(raw_path),
            "route": route.path if route else None,
            "status": reply.status,
            "seconds": round(seconds, 6),
            "bytes": 0 if reply.is_head else reply.size,
            "address": access.address or (client[0] if client else None),
            "actor": access.principal.name,
        }
        if self._access_log:
            _log.info(
                "%(method)s %(path)s %(status)d, %(bytes)d bytes in %(seconds).6f s for %(actor)s at %(address)s",
                {"event": "request", **fields},
            )
        if is_slow:
            _log.warning(
                "%(method)s %(path)s was slow: %(status)d after %(seconds).3f s for %(actor)s at %(address)s",
                {"event": "request_slow", **fields},
            )
