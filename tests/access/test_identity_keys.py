"""The keys of an identity provider: when they are asked for, and what happens while it is silent."""

import asyncio
import http.server
import json
import ssl
import threading

import pytest

from harness.certificates import certificate_files
from strata.registry.features.access.identity_keys import KeysUnavailable, ProviderKeys, UnknownKey, fetch_json

ISSUER = "https://id.example.com"
KEY = {"kty": "RSA", "kid": "a"}


class Provider:
    """A provider whose answers the test sets, and a clock."""

    def __init__(self):
        self.now = 1000.0
        self.keys = [KEY]
        self.asked = self.changes = 0
        self.silent = False

    def fetch(self, _url):
        """Return the keys."""
        self.asked += 1
        if self.silent:
            raise KeysUnavailable("silent")
        return {"keys": self.keys}

    def changed(self):
        """Count a change of the keys."""
        self.changes += 1

    def time(self):
        """Return the time."""
        return self.now


@pytest.fixture
def provider():
    """Return a provider with one key."""
    return Provider()


@pytest.fixture
def keys(provider):
    """Return its keys."""
    return ProviderKeys(ISSUER, ISSUER + "/jwks", provider.fetch, provider.changed, now=provider.time)


async def find(keys, kid="a", kind="RSA"):
    """Return a key, or the error."""
    try:
        return await keys.find(kid, kind, "RS256")
    except (UnknownKey, KeysUnavailable) as error:
        return error


async def settled(keys):
    """Wait until the keys are no longer asked for."""
    if keys._asking:
        await keys._asking


async def test_keys_are_fresh_for_five_minutes(keys, provider):
    """Keys are asked for again when they are five minutes old, while the old ones answer."""
    assert KEY == await find(keys)
    provider.now += 300
    assert KEY == await find(keys)
    assert 1 == provider.asked

    provider.now += 1
    provider.keys = [KEY, {"kty": "RSA", "kid": "b"}]
    assert KEY == await find(keys)
    await settled(keys)

    assert (2, 2) == (provider.asked, provider.changes)
    assert "b" == (await find(keys, "b"))["kid"]


async def test_an_unknown_key_is_asked_for_once_in_ten_seconds(keys, provider):
    """Invented names of keys do not make the service ask more often; the client learns how long to wait."""
    await find(keys)
    provider.now += 4
    waits = [(await find(keys, f"x{number}")).wait_s for number in range(20)]
    assert (1, [6.0] * 20) == (provider.asked, waits)

    provider.now += 6
    answers = [(await find(keys, f"x{number}")).wait_s for number in range(20)]
    assert (2, [0.0] + [10.0] * 19) == (provider.asked, answers)
    assert KEY == await find(keys)


async def test_unknown_keys_at_once_share_one_look(keys, provider):
    """Many tokens with an unknown key at the same time ask once."""
    await find(keys)
    provider.now += 10
    provider.keys = [{"kty": "RSA", "kid": "b"}]
    found = await asyncio.gather(*(find(keys, "b") for _ in range(30)))

    assert ({"b"}, 2) == ({one["kid"] for one in found}, provider.asked)


async def test_a_silent_provider_before_the_first_answer(keys, provider):
    """Without keys the answer is that the provider is silent; it is asked again after two seconds."""
    provider.silent = True
    assert [KeysUnavailable] * 3 == [type(await find(keys)) for _ in range(3)]
    assert 1 == provider.asked

    provider.silent = False
    provider.now += 2
    assert KEY == await find(keys)


async def test_a_silent_provider_later(keys, provider):
    """The last keys stay in use for an hour; a key that is unknown then is not the fault of the client."""
    await find(keys)
    provider.silent = True
    provider.now += 3599
    assert KEY == await find(keys)
    await settled(keys)
    assert isinstance(await find(keys, "b"), KeysUnavailable)

    provider.now += 10
    assert isinstance(await find(keys), KeysUnavailable)


@pytest.mark.parametrize(
    "keys_of_set", [[], [{"kty": "oct", "kid": "a", "k": "c2VjcmV0"}], [KEY | {"use": "enc"}], [7, None]]
)
async def test_keys_that_do_not_sign(keys, provider, keys_of_set):
    """Shared secrets, keys for encryption and what is not a key are not found."""
    provider.keys = keys_of_set

    assert isinstance(await find(keys), UnknownKey)


async def test_without_a_name_there_must_be_one_key(keys, provider):
    """A token without the name of its key is accepted if only one key fits."""
    assert KEY == await find(keys, None)
    provider.keys = [KEY, {"kty": "RSA", "kid": "b"}]
    provider.now += 301
    await find(keys)
    await settled(keys)

    assert 0.0 == (await find(keys, None)).wait_s
    assert 2 == provider.asked


async def test_a_fault_of_ours_is_not_the_end(caplog):
    """An unexpected exception is logged, and counts as a provider that is silent."""

    def fetch(_url):
        raise RuntimeError("a fault")

    assert isinstance(await find(ProviderKeys(ISSUER, None, fetch)), KeysUnavailable)
    [line] = [record for record in caplog.records if record.exc_info]
    assert "a fault" == str(line.exc_info[1])


@pytest.mark.parametrize("answer", [[], {}, {"keys": {}}, {"keys": [KEY] * 201}, "keys"])
async def test_an_answer_that_is_no_key_set(answer):
    """An answer of another form counts as none."""
    keys = ProviderKeys(ISSUER, ISSUER + "/jwks", lambda _: answer)

    assert isinstance(await find(keys), KeysUnavailable)


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example.com", "jwks_uri": ISSUER + "/jwks"},
        {"issuer": ISSUER, "jwks_uri": "http://id.example.com/jwks"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"},
        {"issuer": ISSUER},
        [],
    ],
)
async def test_a_discovery_document_that_is_not_trusted(document):
    """A document of another issuer, or with keys that anyone on the way could change, is not followed."""
    asked = []

    def fetch(url):
        asked.append(url)
        return document

    assert isinstance(await find(ProviderKeys(ISSUER, None, fetch)), KeysUnavailable)
    assert [ISSUER + "/.well-known/openid-configuration"] == asked


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers of a server that is not what it should be."""

    def do_GET(self):
        """Answer by the path."""
        status, headers, body = {
            "/good": (200, {}, json.dumps({"keys": []}).encode()),
            "/error": (500, {}, b"{}"),
            "/redirect": (302, {"Location": "/good"}, b""),
            "/html": (200, {}, b"<html>"),
            "/large": (200, {}, b'"' + b"x" * (300 << 10) + b'"'),
            "/deep": (200, {}, b"[" * 100_000),
        }[self.path]
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Log nothing."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield the URL of an https server, and its certificate."""
    certificate, key = certificate_files(tmp_path_factory.mktemp("server"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"https://127.0.0.1:{running.server_port}", certificate
        running.shutdown()
        thread.join()


def test_a_good_answer(server):
    """JSON over https is returned."""
    url, certificate = server

    assert {"keys": []} == fetch_json(url + "/good", certificate)


@pytest.mark.parametrize("path", ["/error", "/redirect", "/html", "/large", "/deep"])
def test_a_bad_answer(server, path):
    """An error, a redirect, what is not JSON, and what is too large are not used."""
    url, certificate = server

    with pytest.raises(KeysUnavailable):
        fetch_json(url + path, certificate)


def test_a_server_that_is_not_trusted(server):
    """Without its certificate among the trusted ones, the server is not asked."""
    with pytest.raises(KeysUnavailable, match=r"(?i)certificate verify failed"):
        fetch_json(server[0] + "/good")


@pytest.mark.parametrize("url", ["https://127.0.0.1:1/jwks", "https://" + "a" * 80 + ".invalid/", "https://a..b/"])
def test_a_server_that_does_not_answer(url):
    """A refused connection and an impossible name are errors of this kind too."""
    with pytest.raises(KeysUnavailable):
        fetch_json(url)
