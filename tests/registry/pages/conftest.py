"""Registries whose pages are looked at over real HTTP."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest

from harness.serving import memory_settings, serving
from strata.registry.app import create_app
from strata.storage.log import MemoryLog

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Browser:
    """A person's browser without JavaScript: it keeps cookies, and follows no redirect by itself."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}
        self.headers: dict[str, str] = {}

    def call(self, method, path, body=None, **headers):
        """Send a request; return the status and the text of the answer."""
        sent = {**BROWSER, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        for name, value in response.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]
        return response.status, text

    def get(self, path, **headers):
        """Return the page at an address, which must exist."""
        status, text = self.call("GET", path, **headers)
        assert 200 == status, text
        return text

    def post(self, path, fields, **headers):
        """Send a form as a page of this registry does; return the status and the text of the answer."""
        given = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        return self.call("POST", path, urlencode(fields), **{**given, **headers})


@pytest.fixture(scope="module")
def open_pages() -> Iterator[Callable[..., Browser]]:
    """Start registries with settings of the test, over a log in memory, and open their pages."""
    with ExitStack() as stack:

        def start(log=None, **settings):
            app = create_app(log or MemoryLog(), memory_settings(**settings))
            return Browser(stack.enter_context(serving(lambda _: app)))

        yield start


@pytest.fixture
def browser_of() -> Callable[[int], Browser]:
    """Return a function that opens the pages of a port of this machine."""
    return Browser
