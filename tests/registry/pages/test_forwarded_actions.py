"""An action on a node that may not write goes to the node that may, as a request of the API."""

import json
import re
import socket
import threading
from contextlib import closing

from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.log import MemoryLog


class _HeldLog(MemoryLog):
    """A memory log on which another node holds the pen."""

    url = ""

    def holder(self):
        """Return the URL of the other node."""
        return self.url


def _request(connection):
    """Return a request, whose head and body may come apart."""
    with connection.makefile("rb") as incoming:
        head = b"".join(iter(incoming.readline, b"\r\n"))
        size = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        return (head + b"\r\n" + incoming.read(size)).decode()


def test_an_action_is_forwarded(browser_of):
    """The other node gets the request of the API, with the body as JSON, and neither the form nor the cookie."""
    log, met = _HeldLog(), []

    def hold(listener):
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(65536).startswith(b"HEAD / ")  # asks whether a node answers there
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            met.append(_request(connection))
            body = b'{"compatibility": "FULL"}'
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        log.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        holder = threading.Thread(target=hold, args=(listener,))
        holder.start()
        with serving(lambda _: create_app(log, Settings(log="memory:", ui="full"))) as port:
            browser = browser_of(port)
            token = re.search(r'name="form_token" value="(\w+)"', browser.get("/ui/do/level?subject=a%2Fb"))[1]
            form = {"form_token": token, "subject": "a/b", "level": "FULL", "confirmed": "yes"}
            assert 303 == browser.post("/ui/do/level", form)[0]
        holder.join()
    head, _, body = met[0].partition("\r\n\r\n")
    assert head.startswith("PUT /config/a%2Fb HTTP/1.1")
    assert {"compatibility": "FULL"} == json.loads(body)
    assert "cookie" not in head.lower()
    assert token not in met[0]
