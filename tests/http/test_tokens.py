"""OAuth client credentials work against a token endpoint and a registry that checks its tokens, both on loopback."""

import base64
import json
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from harness.processes import free_port
from harness.waiting import until
from strata.http.errors import TokenRefused, TokenUnavailable
from strata.http.tokens import TokenSource
from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.errors import RegistryError, TokenError

SECRET = "s3cr3t-of-the-service"
CONF = {
    "bearer.auth.credentials.source": "OAUTHBEARER",
    "bearer.auth.client.id": "service",
    "bearer.auth.client.secret": SECRET,
    "bearer.auth.scope": "registry",
    "bearer.auth.logical.cluster": "lsrc-1",
    "bearer.auth.identity.pool.id": ["pool-1", "pool-2"],
}


@dataclass
class Endpoint:
    """A token endpoint that checks the secret, with a registry at `/registry/subjects` that checks the token."""

    url: str = ""
    life: Any = 300
    asked: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)
    in_force: set[str] = field(default_factory=set)
    statuses: list[int] = field(default_factory=list)
    raw: bytes | None = None
    location: str | None = None
    gate: threading.Event | None = None

    @property
    def token_url(self) -> str:
        """Return the address of the token endpoint."""
        return f"{self.url}/token"

    @property
    def conf(self) -> dict[str, Any]:
        """Return settings under Confluent's names."""
        return {"url": f"{self.url}/registry", "bearer.auth.issuer.endpoint.url": self.token_url, **CONF}

    def settings(self, **options: Any) -> ClientSettings:
        """Return settings under our names."""
        given = {"client_id": "service", "client_secret": SECRET, "backoff": 0.0} | options
        return ClientSettings.of(f"{self.url}/registry", **({"token_url": self.token_url} | given))

    def token(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        """Answer a form."""
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        self.asked.append({"id": name, "form": form})
        if self.gate is not None:
            self.gate.wait(60)
        if self.statuses:
            return self.statuses.pop(0), b""
        if self.raw is not None:
            return 200, self.raw
        if (name, secret) != ("service", SECRET):
            return 401, json.dumps({"error": "invalid_client", "error_description": f"not {secret}"}).encode()
        text = f"token-{len(self.asked)}"
        self.in_force.add(text)
        answer = {"access_token": text, "token_type": "Bearer", "expires_in": self.life}
        return 200, json.dumps({name: value for name, value in answer.items() if value is not None}).encode()

    def registry(self, headers: dict[str, str]) -> tuple[int, bytes]:
        """Answer a request to the registry."""
        self.seen.append(headers)
        known = headers.get("Authorization", "").removeprefix("Bearer ") in self.in_force
        refusal = {"error_code": 401, "message": "Unauthorized"}
        return (200, b'["s"]') if known else (401, json.dumps(refusal).encode())


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Yield a token endpoint."""
    one = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.answer(*one.token(self.headers["Authorization"], form))

        def do_GET(self) -> None:
            self.answer(*one.registry(dict(self.headers)))

        def answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if one.location is not None:
                self.send_header("Location", one.location)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Log nothing; tests look at the recorded requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    one.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield one
    server.shutdown()
    server.server_close()
    thread.join()


def waits() -> tuple[list[float], Any]:
    """Return a list of waits, and a sleep that records its wait there and returns at once."""
    slept: list[float] = []
    return slept, slept.append


def test_requests_carry_a_token_under_confluents_names(endpoint):
    """One token serves all requests, with cluster and pool; only the endpoint gets the secret."""
    with RegistryClient.from_settings(ClientSettings.from_conf(endpoint.conf)) as client:
        answers = [client.get_subjects() for _ in range(3)]

    assert [["s"]] * 3 == answers
    assert [{"id": "service", "form": {"grant_type": ["client_credentials"], "scope": ["registry"]}}] == endpoint.asked
    assert {("Bearer token-1", "lsrc-1", "pool-1,pool-2")} == {
        (one["Authorization"], one["target-sr-cluster"], one["Confluent-Identity-Pool-Id"]) for one in endpoint.seen
    }


def test_a_static_token_under_confluents_names(endpoint):
    """STATIC_TOKEN sends the given token with the cluster, and requests no token."""
    conf = {
        "url": f"{endpoint.url}/registry",
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": "fixed",
        "bearer.auth.logical.cluster": "lsrc-1",
    }
    endpoint.in_force.add("fixed")

    with RegistryClient.from_settings(ClientSettings.from_conf(conf)) as client:
        assert ["s"] == client.get_subjects()

    assert [] == endpoint.asked
    assert ["lsrc-1"] == [one["target-sr-cluster"] for one in endpoint.seen]


def test_the_other_names_of_confluents_client():
    """Confluent's settings are in milliseconds where their names say so."""
    conf = {
        "url": "http://a:1,http://b:2",
        "basic.auth.user.info": "ann:a:b",
        "ssl.ca.location": "ca.pem",
        "timeout": 5,
        "cache.capacity": 7,
        "max.retries": 2,
        "retries.wait.ms": 1500,
        "retries.max.wait.ms": 20_000,
    }

    expected = ClientSettings(
        urls=("http://a:1", "http://b:2"),
        username="ann",
        password="a:b",
        ca_file="ca.pem",
        timeout=5.0,
        cache_size=7,
        retries=2,
        backoff=1.5,
        max_backoff=20.0,
    )
    assert expected == ClientSettings.from_conf(conf)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"bearer.auth.credentials.source": "NOPE"}, "STATIC_TOKEN or .* or OAUTHBEARER", id="source"),
        pytest.param({"bearer.auth.credentials.source": None}, "need bearer.auth.credentials.source", id="no source"),
        pytest.param({"bearer.auth.client.secret": None}, "missing settings bearer.auth.client.secret", id="no secret"),
        pytest.param({"bearer.auth.client.secret": 17}, "bearer.auth.client.secret: expected a string", id="no string"),
        pytest.param({"bearer.auth.identity.pool.id": [1]}, "a string or a list of strings", id="pools"),
        pytest.param({"bearer.auth.logical.cluster": "a\r\nb: c"}, "no HTTP header may contain", id="header"),
        pytest.param({"bearer.auth.issuer.endpoint.url": "ftp://x/"}, "token_url: expected a URL", id="scheme"),
        pytest.param({"bearer.auth.issuer.endpoint.url": "http://x:y/"}, "token_url: expected a URL", id="port"),
        pytest.param({"bearer.auth.issuer.endpoint.url": "http://a:b@x/"}, "expected no credentials", id="userinfo"),
        pytest.param({"basic.auth.user.info": "a:b"}, "expected one of username", id="both"),
        pytest.param({"retries.wait.ms": "soon"}, "retries.wait.ms: expected a number", id="number"),
        pytest.param({"url": None}, "missing settings url", id="no url"),
        pytest.param({"colour": "red"}, "unknown setting .colour.", id="unknown"),
    ],
)
def test_bad_confluent_settings_are_refused(endpoint, change, says):
    """The message names the setting and the allowed values, and shows no secret."""
    with pytest.raises(ValueError, match=says) as refused:
        ClientSettings.from_conf(endpoint.conf | change)

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"client_secret": None}, "together, got some", id="no secret"),
        pytest.param({"token": "t"}, "expected one of username", id="token too"),
        pytest.param({"token_url": None, "client_id": None, "client_secret": None, "scope": "s"}, "scope", id="scope"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(endpoint, options, says):
    """Half of the credentials, or two kinds of them, are refused."""
    with pytest.raises(ValueError, match=says):
        endpoint.settings(**options)


def test_a_token_that_no_header_may_carry_is_refused_without_showing_it():
    """A token with a line end, as read from a file, is refused here, since http.client would show it in an error."""
    with pytest.raises(ValueError, match="no HTTP header may contain") as refused:
        ClientSettings.of("http://localhost:1", token="abc\n")

    assert "abc" not in str(refused.value)


def test_threads_share_one_request(endpoint):
    """Many threads that need a token send one request."""
    endpoint.gate = threading.Event()
    client = RegistryClient.from_settings(endpoint.settings(pool_size=8))
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(client.get_subjects) for _ in range(8)]
        until(lambda: endpoint.asked)
        endpoint.gate.set()
        answers = [one.result(60) for one in waiting]

    assert [["s"]] * 8 == answers
    assert 1 == len(endpoint.asked)


def test_a_token_is_renewed_before_it_expires(endpoint):
    """A token is renewed after four fifths of its life, and not before."""
    now = [0.0]
    tokens = TokenSource(endpoint.settings(), clock=lambda: now[0])

    given = []
    for moment in (0, 239, 241, 480, 482):
        now[0] = moment
        given.append(tokens.get())

    assert ["token-1", "token-1", "token-2", "token-2", "token-3"] == given


def test_a_token_in_force_outlives_an_endpoint_that_is_down(endpoint):
    """While a token is valid, a failed renewal is not retried for a while; an expired token is no longer used."""
    now = [0.0]
    slept, sleep = waits()
    tokens = TokenSource(endpoint.settings(max_backoff=10, retries=2), sleep=sleep, clock=lambda: now[0])
    tokens.get()
    endpoint.statuses = [503] * 5

    given = []
    for moment in (250, 255, 261):
        now[0] = moment
        given.append(tokens.get())
    now[0] = 301
    with pytest.raises(TokenUnavailable):
        tokens.get()

    assert ["token-1"] * 3 == given
    assert 1 + 2 + 3 == len(endpoint.asked)
    assert 2 == len(slept)


def test_a_refused_token_is_replaced_once(endpoint):
    """A 401 makes the client fetch a new token and send again; a second 401 is the registry's answer."""
    with RegistryClient.from_settings(endpoint.settings()) as client:
        client.get_subjects()
        endpoint.in_force.clear()
        assert ["s"] == client.get_subjects()
        endpoint.in_force = frozenset()
        endpoint.raw = b'{"access_token": "never-good", "expires_in": 300}'
        with pytest.raises(RegistryError) as refused:
            client.get_subjects()

    assert 401 == refused.value.status
    assert 3 == len(endpoint.asked)
    assert 1 + 2 + 2 == len(endpoint.seen)


def test_threads_whose_token_is_refused_share_the_new_one(endpoint):
    """If many threads have a token refused, one request replaces it."""
    client = RegistryClient.from_settings(endpoint.settings(pool_size=8))
    client.get_subjects()
    endpoint.in_force.clear()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: client.get_subjects(), range(8)))

    assert [["s"]] * 8 == answers
    assert 2 == len(endpoint.asked)


def test_a_token_without_a_life_is_good_until_it_is_refused(endpoint):
    """`expires_in` is optional (RFC 6749, section 5.1); without it a token is used until it is refused."""
    endpoint.life = None
    now = [0.0]
    tokens = TokenSource(endpoint.settings(), clock=lambda: now[0])
    tokens.get()
    now[0] = 1e9

    assert "token-1" == tokens.get()
    assert "token-2" == tokens.get(refused="token-1")


def test_a_wrong_secret_is_told_at_once(endpoint):
    """A refusal is not retried; the error has the RFC's code and none of the endpoint's words."""
    client = RegistryClient.from_settings(endpoint.settings(client_secret="wr0ng"))

    with pytest.raises(TokenError, match="refused the request: invalid_client") as refused:
        client.get_subjects()

    assert "wr0ng" not in repr(refused.value)
    assert 1 == len(endpoint.asked)
    assert [] == endpoint.seen


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_troubles_are_tried_again(endpoint, status):
    """The endpoint is retried as often as the registry."""
    endpoint.statuses = [status, status]
    slept, sleep = waits()

    assert "token-3" == TokenSource(endpoint.settings(retries=2), sleep=sleep).get()
    assert 2 == len(slept)


def test_nobody_there():
    """An unreachable endpoint is a transient error, to retry later."""
    settings = ClientSettings.of(
        "http://127.0.0.1:1",
        token_url=f"http://127.0.0.1:{free_port()}/token?tenant=hidden",
        client_id="service",
        client_secret=SECRET,
        retries=0,
    )

    with pytest.raises(TokenUnavailable, match=r"token endpoint .*/token does not answer") as down:
        TokenSource(settings).get()

    assert SECRET not in str(down.value)
    assert "hidden" not in str(down.value)


def test_a_slow_endpoint(endpoint):
    """Each attempt at a slow endpoint ends after the timeout of the settings."""
    endpoint.gate = threading.Event()

    with pytest.raises(TokenUnavailable, match="does not answer"):
        TokenSource(endpoint.settings(timeout=0.3, retries=1)).get()

    endpoint.gate.set()
    until(lambda: 2 == len(endpoint.asked))  # the request that the client gave up may still be under way


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"<html>", id="not JSON"),
        pytest.param(b"[" * 60_000, id="deep"),
        pytest.param(b'"text"', id="no object"),
        pytest.param(b"{}", id="no token"),
        pytest.param(b'{"access_token": 7}', id="a number"),
        pytest.param(b'{"access_token": ""}', id="empty"),
        pytest.param(b'{"access_token": "a\\r\\nX-Header: b"}', id="two lines"),
        pytest.param('{"access_token": "ünï"}'.encode(), id="not ASCII"),
        pytest.param(b'{"access_token": "leak", "token_type": "mac"}', id="another type"),
        pytest.param(b'{"access_token": "leak", "token_type": []}', id="type of no kind"),
        pytest.param(b'{"access_token": "leak", "expires_in": -5}', id="negative"),
        pytest.param(b'{"access_token": "leak", "expires_in": 0}', id="zero"),
        pytest.param(b'{"access_token": "leak", "expires_in": NaN}', id="not a number"),
        pytest.param(b'{"access_token": "leak", "expires_in": true}', id="a flag"),
        pytest.param(b'{"access_token": "leak", "expires_in": "soon"}', id="words"),
        pytest.param(b'{"access_token": "leak", "expires_in": 1' + b"0" * 5000 + b"}", id="many digits"),
        pytest.param(b'{"access_token": "leak", "pad": "' + b"x" * 70_000 + b'"}', id="huge"),
        pytest.param(b"\xff\xfe{", id="not text"),
    ],
)
def test_hostile_answers_are_errors(endpoint, raw):
    """An answer without a valid token is a TokenRefused that shows nothing of the answer."""
    endpoint.raw = raw

    with pytest.raises(TokenRefused) as wrong:
        TokenSource(endpoint.settings()).get()

    assert "leak" not in repr(wrong.value)
    assert 1 == len(endpoint.asked)


def test_redirects_are_not_followed(endpoint):
    """Redirects are not followed: the secret goes to the configured endpoint only."""
    endpoint.statuses = [307]
    endpoint.location = f"{endpoint.url}/elsewhere"

    with pytest.raises(TokenRefused, match="307"):
        TokenSource(endpoint.settings()).get()

    assert 1 == len(endpoint.asked)


def test_secrets_do_not_show(endpoint):
    """A repr or an error shows no secret; a pickle has the settings and no token."""
    client = RegistryClient.from_settings(endpoint.settings())
    client.get_subjects()

    shown = [repr(one) for one in (client, client.settings, client._transport, client._transport._http._tokens)]
    held = [repr(client._transport._http._tokens._last), repr(client._transport._http._tokens._tokens)]
    pickled = pickle.dumps(client)

    assert not [text for text in shown + held if SECRET in text or "token-1" in text]
    assert b"token-1" not in pickled
    assert ["s"] == pickle.loads(pickled).get_subjects()


def test_a_forked_process_asks_for_itself(endpoint):
    """A forked process shares neither connections nor a pending request."""
    client = RegistryClient.from_settings(endpoint.settings())
    client.get_subjects()
    client._transport._http._process = -1

    assert ["s"] == client.get_subjects()
    assert 2 == len(endpoint.asked)
