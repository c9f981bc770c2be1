"""The layer that lets no exception escape, because the server would then drop a connection that other requests use.

It also writes the access log, which needs the status of errors.
"""

import logging

from starlette.requests import ClientDisconnect

from strata.registry import errors
from strata.registry.errors import RegistryError
from strata.registry.transport.asgi import App, Receive, Scope
from strata.registry.transport.reply import Reply
from strata.registry.transport.request_checks import plain_path

__all__ = ["ErrorBoundary"]

_log = logging.getLogger("strata.http")


class ErrorBoundary:
    """A layer that turns exceptions into answers.

    Args:
        app: the inner ASGI app.
        access_log: whether to log every request.
    """

    def __init__(self, app: App, *, access_log: bool) -> None:
        self._app, self.access_log = app, access_log

    async def answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Send the inner app's answer, or an error object."""
        method, path = scope["method"], plain_path(scope["raw_path"])
        try:
            await self._app(scope, receive, reply.send)
        except RegistryError as error:
            await reply.fail(error)
        except ClientDisconnect:
            _log.debug("%s %s: the client disconnected before its request was complete", method, path)
        except Exception:  # noqa: BLE001 - the outermost layer logs it and answers 500
            _log.exception("%s %s failed (request %s)", method, path, reply.request_id.decode())
            await reply.fail(errors.internal())
        if self.access_log:
            _log.info("%s %s %d %s", method, path, reply.status, reply.request_id.decode())
