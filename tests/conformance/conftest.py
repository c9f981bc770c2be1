"""A registry on a memory log, to which a file of tests sends requests over one connection."""

import http.client
import json
from contextlib import closing

import pytest

from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.memory_log import MemoryLog


@pytest.fixture(scope="module")
def call():
    """Yield a function that sends a request to a fresh registry and returns status and answer."""
    app = create_app(MemoryLog(), Settings(log="memory:"))
    with (
        serving(lambda _: app) as port,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection,
    ):

        def send(method, path, body=None):
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            text = response.read().decode()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text

        yield send
