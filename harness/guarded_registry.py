"""A registry with access control that tests ask in process, as principals that a header names."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.access_rules import Claimed
from harness.serving import memory_settings
from strata.registry.app import create_app
from strata.registry.core.rights.rules import Rule
from strata.registry.features.access.control import AccessControl
from strata.registry.http.asgi import Message, Scope
from strata.registry.http.node_signature import NodeSecret
from strata.storage.log import Log, MemoryLog

__all__ = ["ADMIN", "Registry"]

ADMIN = "root"


class Registry:
    """A registry whose rules a test may exchange."""

    def __init__(
        self,
        runner: asyncio.Runner,
        rules: Iterable[Rule] = (),
        log: Log | None = None,
        secret: NodeSecret | None = None,
        **settings: Any,
    ) -> None:
        self.rules, self._runner = tuple(rules), runner
        self.log = log or MemoryLog()
        control = AccessControl(Claimed(), lambda: self.rules, [f"User:{ADMIN}"], secret)
        self.app = create_app(self.log, memory_settings(**settings), control=control)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        user: str | None = ADMIN,
        address: str = "10.0.0.1",
        **headers: str,
    ) -> tuple[int, Any, dict[str, str]]:
        """Return status, content and headers of the answer; a body is JSON, unless it is bytes."""
        # Without the handling of signals by `run`, which takes as long as a request.
        return self._runner.get_loop().run_until_complete(self._ask(method, path, body, user, address, headers))

    async def _ask(
        self, method: str, path: str, body: Any, user: str | None, address: str, headers: Mapping[str, str]
    ) -> tuple[int, Any, dict[str, str]]:
        raw, _, query = path.encode().partition(b"?")
        sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        kind = [] if "content_type" in headers else [(b"content-type", b"application/json")]
        scope: Scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path, "raw_path": raw,
            "query_string": query, "root_path": "", "server": ("localhost", 80), "client": (address, 1),
            "headers": [(b"host", b"localhost"), *kind, *sent]
            + ([(b"x-user", user.encode())] if user else []),
        }  # fmt: skip
        data: bytes | None = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        parts: list[Message] = []
        gone = asyncio.Event()

        async def receive() -> Message:
            nonlocal data
            if data is None:
                await gone.wait()
                return {"type": "http.disconnect"}
            message: Message = {"type": "http.request", "body": data, "more_body": False}
            data = None
            return message

        async def send(message: Message) -> None:
            parts.append(message)

        await self.app(scope, receive, send)
        content = b"".join(part.get("body", b"") for part in parts[1:])
        found: dict[str, str] = {}
        for name, value in parts[0]["headers"]:
            before = found.get(name.decode())
            found[name.decode()] = f"{before}, {value.decode()}" if before else value.decode()
        try:
            return parts[0]["status"], json.loads(content) if content else None, found
        except ValueError:
            return parts[0]["status"], content.decode(), found

    def code(self, method: str, path: str, body: Any = None, user: str | None = ADMIN, **more: str) -> int:
        """Return the error code of the answer, or its status if it is not an error."""
        status, content, _ = self.ask(method, path, body, user, **more)
        code: int = content.get("error_code", status) if isinstance(content, dict) else status
        return code

    def register(self, subject: str, schema: str = '"int"', user: str = ADMIN, **body: Any) -> int:
        """Register a schema and return its id."""
        status, content, _ = self.ask("POST", f"/subjects/{subject}/versions", {"schema": schema, **body}, user)
        assert status == 200, content
        schema_id: int = content["id"]
        return schema_id
