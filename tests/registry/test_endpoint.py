"""An endpoint gives its function the parameters that FastAPI would, which documents the same signature."""

from typing import Annotated

import orjson
import pytest
from fastapi import FastAPI
from pydantic import AfterValidator, BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.openapi import with_marks_of_fastapi
from strata.registry.api.parameters import Endpoint
from strata.registry.core.errors import RegistryError
from strata.registry.http.bodies import Flag
from strata.registry.http.exchange import Exchange
from strata.registry.http.parameter_marks import Depends, Path, Query

pytestmark = pytest.mark.anyio
PATH = "/things/{name}/{number}"


async def _twice(name: str, extra: Annotated[str | None, Query(description="added")] = None) -> str:
    return f"{name}{name}{extra or ''}"


async def _all_of(
    request: Request,
    name: Annotated[str, BeforeValidator(lambda text: text.upper()), AfterValidator(lambda text: text + "!")],
    number: Annotated[int, Path(description="how many")],
    twice: Annotated[str, Depends(_twice)],
    flag: Flag = False,
    size: Annotated[int, Query(alias="maxSize")] = 7,
    tags: Annotated[list[str], Query(alias="tag")] = [],  # noqa: B006 - it must be copied
) -> Response:
    given = [request.method, name, number, twice, flag, size, tags.copy()]
    tags.append("seen")
    return Response(orjson.dumps(given))


async def _asked(app, path, query):
    """Return status and JSON of the answer of an ASGI app."""
    messages = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": [], "root_path": "",
             "query_string": query.encode(), "http_version": "1.1", "server": ("h", 1), "client": ("c", 1)}  # fmt: skip
    await app(scope, receive, send)
    return messages[0]["status"], orjson.loads(messages[1]["body"])


def _served_by_fastapi():
    app = FastAPI()
    app.get(PATH)(with_marks_of_fastapi(_all_of))
    return app


def _served_here():
    endpoint = Endpoint(_all_of, PATH)

    async def app(scope, receive, send):
        exchange = Exchange(None, scope, receive, send, {}, b"id")
        await (await endpoint(exchange))(scope, receive, send)

    return app


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/things/a/1", ""),
        ("/things/a/1", "other=1"),
        ("/things/a/1", "extra=x&flag=TRUE&maxSize=3&size=9"),
        ("/things/a/1", "tag=x&tag=&tag=y%20z"),
        ("/things/a/1", "maxSize=3&maxSize=4&flag=yes"),
        ("/things/a/1", "extra="),
        ("/things/a/1", "&&extra&tag=a=b&tag=&tag&maxSize=3&"),
        ("/things/a/1", "extra=a+b&tag=x%26y"),
        ("/things/a%2Fb/-12", "flag="),
    ],
)
async def test_parameters_are_those_of_fastapi(path, query):
    """Path, query string, functions and defaults give the same arguments."""
    served = _served_here()

    assert await _asked(_served_by_fastapi(), path, query) == await _asked(served, path, query)
    assert await _asked(_served_by_fastapi(), path, query) == await _asked(served, path, query)


@pytest.mark.parametrize(
    ("path", "query", "where"), [("/things/a/x", "", "path.number"), ("/things/a/1", "maxSize=x", "query.maxSize")]
)
async def test_invalid_parameter(path, query, where):
    """The error names the parameter, as the client writes it, and what is wrong."""
    with pytest.raises(RegistryError, match=f"{where}: Input should be a valid integer"):
        await _asked(_served_here(), path, query)


def test_parameter_without_a_default():
    """A parameter of the query string needs a default, so that no request lacks it."""

    async def route(size: int) -> Response:
        return Response(orjson.dumps(size))

    with pytest.raises(TypeError, match="the parameter size"):
        Endpoint(route, "/things")
