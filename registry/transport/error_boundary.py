"""The layer that lets no exception escape, because the server would then drop a connection that other requests use.

It also writes the access log, which needs the status of errors.
"""

import logging

from starlette.requests import ClientDisconnect

from strata.registry import errors
from strata.registry.errors import RegistryError
from strata.registry.transport.asgi import Receive, Scope
from strata.registry.transport.reply import Layer, Reply
from strata.registry.transport.request_checks import plain_path

__all__ = ["ErrorBoundary"]

_log = logging.getLogger("strata.http")


class ErrorBoundary:
    """A layer that turns exceptions into answers.

    Args:
        within: the next layer.
        access_log: whether to log every request.
    """

    def __init__(self, within: Layer, *, access_log: bool) -> None:
        self._within, self._access_log = within, access_log

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
            _log.exception("%s %s failed (request %s)", method, plain_path(raw_path), reply.request_id.decode())
            await reply.fail(errors.internal())
        self.note(method, raw_path, reply)

    def note(self, method: str, raw_path: bytes, reply: Reply) -> None:
        """Log a request that has its answer, if all requests are logged."""
        if self._access_log:
            _log.info("%s %s %d %s", method, plain_path(raw_path), reply.status, reply.request_id.decode())
