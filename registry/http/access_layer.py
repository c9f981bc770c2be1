"""The layer that refuses what the principal of a request may not do, before the body is read.

It stands before the answers that are kept in memory; those in front of it (`front.py`) are kept by rights.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from strata.registry.access.needs import OPEN
from strata.registry.access.request_access import UNLIMITED, Access
from strata.registry.http.asgi import Receive, Scope
from strata.registry.http.reply import Layer, Reply
from strata.registry.http.request_checks import route_of
from strata.registry.http.route_facts import SUBJECT
from strata.registry.subject_names import subject_name
from strata.storage.state import State

__all__ = ["ACCESS", "AccessLayer", "access_of"]

ACCESS = "strata.access"
"""The name of a request's rights in its scope."""

_KEK = "{name}"


def access_of(scope: Scope) -> Access:
    """Return the rights of a request."""
    return scope.get(ACCESS, UNLIMITED)  # type: ignore[no-any-return]  # absent while access control is off


class AccessLayer:
    """A layer that lets requests pass that have the rights their route needs.

    Args:
        within: the next layer.
        newest: reads the log to its end and returns the State there.
    """

    def __init__(self, within: Layer, newest: Callable[[], Awaitable[State]]) -> None:
        self._within, self._newest = within, newest

    async def answer(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """Check the rights of a request and pass it on.

        Raises:
            RegistryError: 401, 40301 or 429 if it must not pass; 50301 if the newest rules cannot be read.
        """
        route, access = route_of(scope), access_of(scope)
        need = route.facts.need if route else None
        if route is not None and need is not None and need is not OPEN and access is not UNLIMITED:
            path = scope["path"]
            subject, kek = subject_name(route.segment(path, SUBJECT)), route.segment(path, _KEK)
            await access.reconsider(partial(access.enter, need, subject, kek), self._newest)
        await self._within(scope, receive, reply)
