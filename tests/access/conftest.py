"""A registry with access control that is asked in process, by principals that a header names."""

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest

from harness.access_rules import Claimed
from strata.registry.access.control import AccessControl
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.log import Log
from strata.storage.memory_log import MemoryLog

ADMIN = "root"


class Registry:
    """A registry whose rules a test may exchange."""

    def __init__(self, runner, rules=(), log: Log | None = None, **settings):
        self.rules, self._runner = tuple(rules), runner
        self.log = log or MemoryLog()
        control = AccessControl(Claimed(), lambda: self.rules, [f"User:{ADMIN}"])
        self.app = create_app(self.log, Settings(log="memory:", **settings), control=control)

    def ask(self, method, path, body=None, user=ADMIN, address="10.0.0.1", **headers):
        """Return status, content and headers of the answer."""
        return self._runner.run(self._ask(method, path, body, user, address, headers))

    async def _ask(self, method, path, body, user, address, headers):
        raw, _, query = path.encode().partition(b"?")
        sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path, "raw_path": raw,
            "query_string": query, "root_path": "", "server": ("localhost", 80), "client": (address, 1),
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), *sent]
            + ([(b"x-user", user.encode())] if user else []),
        }  # fmt: skip
        data, parts = b"" if body is None else json.dumps(body).encode(), []
        gone = asyncio.Event()

        async def receive():
            nonlocal data
            if data is None:
                await gone.wait()
                return {"type": "http.disconnect"}
            message, data = {"type": "http.request", "body": data}, None
            return message

        async def send(message):
            parts.append(message)

        await self.app(scope, receive, send)
        content = b"".join(part.get("body", b"") for part in parts[1:])
        found = {name.decode(): value.decode() for name, value in parts[0]["headers"]}
        try:
            return parts[0]["status"], json.loads(content) if content else None, found
        except ValueError:
            return parts[0]["status"], content.decode(), found

    def code(self, method, path, body=None, user=ADMIN, **more):
        """Return the error code of the answer, or its status if it is not an error."""
        status, content, _ = self.ask(method, path, body, user, **more)
        return content.get("error_code", status) if isinstance(content, dict) else status

    def register(self, subject, schema='"int"', user=ADMIN, **body):
        """Register a schema and return its id."""
        status, content, _ = self.ask("POST", f"/subjects/{subject}/versions", {"schema": schema, **body}, user)
        assert status == 200, content
        return content["id"]


@pytest.fixture
def guarded() -> Iterator[Callable[..., Registry]]:
    """Start registries with access control."""
    with asyncio.Runner() as runner:
        yield lambda rules=(), log=None, **settings: Registry(runner, rules, log, **settings)
