"""Registries that follow each other, served in this process, and a client for them."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

import urllib3

from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.open_log import open_log

__all__ = ["Registry", "served"]


class Registry:
    """A client of a service."""

    def __init__(self, url: str, log: str) -> None:
        self.url, self.log, self._pool = url, log, urllib3.PoolManager()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; return the status and the JSON of its answer."""
        data = None if body is None else json.dumps(body)
        response = self._pool.request(method, self.url + path, body=data)
        return response.status, response.json() if response.data else None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed and return the JSON of its answer."""
        status, found = self.ask(method, path, body)
        assert 200 <= status < 300, (method, path, status, found)
        return found

    def register(self, subject: str, schema: str = '"int"', **more: Any) -> int:
        """Register a schema and return its id."""
        path = f"/subjects/{quote(subject, safe='')}/versions"
        return int(self.call("POST", path, {"schema": schema, **more})["id"])

    def subjects(self) -> list[str]:
        """Return all subjects with a live version, of all contexts."""
        return list(self.call("GET", "/subjects?subjectPrefix=:*:"))

    def ready(self) -> dict[str, Any]:
        """Return what the readiness probe says."""
        return dict(self.ask("GET", "/health/ready")[1])


@contextmanager
def served(log_url: str, **settings: Any) -> Iterator[Registry]:
    """Serve a log in this process."""
    chosen = Settings(log=log_url, **settings)
    with closing(open_log(log_url)) as log, serving(lambda _: create_app(log, chosen)) as port:
        yield Registry(f"http://127.0.0.1:{port}", log_url)
