"""A registry on a memory log, to which a file of tests sends requests over one connection."""

import http.client
import json
import socket
import threading
import time

import pytest
import uvicorn

from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.memory_log import MemoryLog


@pytest.fixture(scope="module")
def call():
    """Yield a function that sends a request to a fresh registry and returns status and answer."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(MemoryLog(), Settings(log="memory:")), log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    connection = http.client.HTTPConnection(*listener.getsockname()[:2], timeout=60)

    def send(method, path, body=None):
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        text = response.read().decode()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text

    yield send
    connection.close()
    server.should_exit = True
    thread.join()
    listener.close()
