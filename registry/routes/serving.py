"""Serves the routes: calls the one that a request names, and turns errors into responses."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from strata.registry import errors
from strata.registry.errors import RegistryError
from strata.registry.http.asgi import Receive, Scope, Send
from strata.registry.http.request_checks import route_of
from strata.registry.http.route_facts import RouteTable
from strata.registry.page_paths import is_page
from strata.registry.wire.json_bodies import answer

__all__ = ["Routes"]


class Routes:
    """The innermost ASGI app, which serves requests that have passed the checks.

    Args:
        routes: the routes.
        app: FastAPI's app, which documents them, and starts and ends the service; routes find it in the scope.
    """

    def __init__(self, routes: RouteTable, app: FastAPI) -> None:
        self._routes, self.app = routes, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response of the request's route."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["app"] = self.app
        try:
            response = await self._response(scope, receive)
        except RegistryError as error:
            if is_page(scope["path"]):
                raise  # the layers know how its errors look
            response = _refusal(error)
        await response(scope, receive, send)

    async def _response(self, scope: Scope, receive: Receive) -> Response:
        route = route_of(scope)
        if route is not None and route.respond is not None:
            return await route.respond(scope, receive)
        methods = self._routes.methods(scope["path"])
        if not methods:
            raise _http_error(HTTPStatus.NOT_FOUND)
        more = {"OPTIONS", "HEAD"} if "GET" in methods else {"OPTIONS"}
        allow = {"Allow": ", ".join(sorted(more.union(methods)))}
        if scope["method"] == "OPTIONS":
            return Response(headers=allow)
        refusal = _refusal(_http_error(HTTPStatus.METHOD_NOT_ALLOWED))
        refusal.headers.update(allow)
        return refusal


def _http_error(status: HTTPStatus) -> RegistryError:
    return errors.http_error(status.value, status.phrase)


def _refusal(error: RegistryError) -> Response:
    body: dict[str, Any] = {"error_code": error.code, "message": error.message}
    response = answer(body if error.findings is None else body | {"findings": error.findings}, error.status)
    for name, value in error.headers:
        response.headers.append(name, value)
    return response
