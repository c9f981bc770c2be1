"""A registry on a memory log, to which a file of tests sends requests over one connection."""

import http.client
import json
from contextlib import closing

import pytest

from harness.access_rules import Claimed
from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.features.access.control import AccessControl
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog


@pytest.fixture(scope="module", params=["access control off", pytest.param("a superuser", marks=pytest.mark.slow)])
def call(request):
    """Yield a function that sends a request to a fresh registry and returns status and answer."""
    is_on = request.param == "a superuser"
    control = AccessControl(Claimed(), superusers=["User:root"]) if is_on else None
    headers = {"x-user": "root"} if is_on else {}
    app = create_app(MemoryLog(), Settings(log="memory:"), control=control)
    with (
        serving(lambda _: app) as port,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection,
    ):

        def send(method, path, body=None):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text

        yield send
