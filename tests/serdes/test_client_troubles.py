"""A server that misbehaves on purpose shows how the client handles failures of a registry."""

import pickle

import pytest

from harness.processes import free_port
from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.errors import RegistryError, RegistryUnavailable, SerdeError
from strata.serdes.observer import Observer

USER = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}'
SCHEMA_ANSWER = {"schema": USER, "schemaType": "AVRO", "guid": "g", "ts": 1}
MISSING = {"error_code": 40403, "message": "Schema 9 not found"}


def patient(url, **options):
    """Return a client that waits no longer than a test may."""
    return RegistryClient(url, backoff=0.001, max_backoff=0.01, timeout=60, **options)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_passing_troubles_are_tried_again(scripted_servers, answer, status):
    """Transient statuses are retried, and the later response counts."""
    server = scripted_servers(
        answer(status, {"error_code": status, "message": "later"}), answer(502, b"<html>"), answer(body=["s"])
    )

    assert patient(server.url).get_subjects() == ["s"]
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 415, 422, 501])
def test_lasting_troubles_are_not_repeated(scripted_servers, answer, status):
    """A refusal is reported at once, without a retry."""
    server = scripted_servers(answer(status, {"error_code": status * 100 + 1, "message": "no"}))

    with pytest.raises(RegistryError) as caught:
        patient(server.url).get_subjects()

    assert (status, status * 100 + 1, "no") == (caught.value.status, caught.value.error_code, caught.value.message)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [{"error_code": 404, "message": "HTTP 404 Not Found"}, b"HTTP 404 Not Found"])
def test_not_a_registry(scripted_servers, answer, body):
    """If the server does not know the route, the error names the address, which may not be a registry's."""
    server = scripted_servers(answer(404, body))

    with pytest.raises(RegistryError, match=f"HTTP 404 Not Found: is {server.url}/v2 the address of a schema registry"):
        patient(f"{server.url}/v2").get_subjects()


def test_trouble_that_stays_ends(scripted_servers, answer):
    """After the last retry the error says that the registry is unavailable, and quotes its answer."""
    server = scripted_servers(answer(500, {"error_code": 50001, "message": "store"}))

    with pytest.raises(RegistryUnavailable, match="keeps answering: store") as caught:
        patient(server.url, retries=2).get_subjects()

    assert isinstance(caught.value.__cause__, RegistryError)
    assert len(server.requests) == 3


def test_dropped_connections_are_tried_again(scripted_servers, answer):
    """After a dropped connection the client reconnects and retries."""
    server = scripted_servers(answer(drop=True), answer(drop=True), answer(body={"id": 7}))

    assert patient(server.url).register("s", USER).schema_id == 7
    assert len(server.requests) == 3


def test_a_deletion_is_not_sent_twice_when_it_may_have_been_done(scripted_servers, answer):
    """A deletion that may have succeeded is not sent again: the second answer would be about the first one's result."""
    dropping = scripted_servers(answer(drop=True), answer(body=[1]))
    refusing = scripted_servers(answer(503, {"error_code": 50003, "message": "later"}), answer(body=[1]))

    with pytest.raises(RegistryUnavailable, match="may or may not have carried out"):
        patient(dropping.url).delete_subject("s")

    assert len(dropping.requests) == 1
    assert patient(refusing.url).delete_subject("s") == [1]


def test_nobody_there():
    """The error names an address without a server, but not its credentials."""
    with pytest.raises(RegistryUnavailable, match="does not answer") as caught:
        patient(f"http://user:hunter2@127.0.0.1:{free_port()}", retries=1).get_subjects()

    assert "hunter2" not in str(caught.value)


def test_the_other_addresses_are_tried(scripted_servers, answer):
    """Of several addresses the client uses the one that answers, and prefers it from then on."""
    broken = scripted_servers(answer(500, {"error_code": 500, "message": "down"}))
    good = scripted_servers(answer(body=["s"]))
    client = patient([f"http://127.0.0.1:{free_port()}", broken.url, good.url], retries=0)

    assert ["s"] == client.get_subjects() == client.get_subjects() == client.get_subjects()
    assert (1, 3) == (len(broken.requests), len(good.requests))


def test_addresses_may_come_in_one_string(scripted_servers, answer):
    """Several addresses may come in one string, as in the settings of other clients."""
    good = scripted_servers(answer(body=["s"]))

    assert patient(f"http://127.0.0.1:{free_port()} , {good.url}/").get_subjects() == ["s"]


def test_the_wait_that_the_registry_asks_for_is_kept_within_bounds(scripted_servers, answer):
    """The client honours Retry-After up to its own limit."""
    server = scripted_servers(
        answer(429, {}, {"Retry-After": "3"}), answer(429, {}, {"Retry-After": "9999"}), answer(body=[])
    )
    client, waits = RegistryClient(server.url, backoff=0.5, max_backoff=5), []
    client._transport._http._sleep = waits.append

    client.get_subjects()

    assert [3, 5] == waits


def test_waits_grow(scripted_servers, answer):
    """The ceiling of the waits doubles up to a limit, and each wait is at least half of its ceiling."""
    server = scripted_servers(answer(503, {}))
    client, waits = RegistryClient(server.url, backoff=1, max_backoff=4, retries=5), []
    client._transport._http._sleep = waits.append

    with pytest.raises(RegistryUnavailable):
        client.get_subjects()

    assert all(ceiling / 2 <= wait <= ceiling for wait, ceiling in zip(waits, [1, 2, 4, 4, 4], strict=True))


def test_a_wait_lasts_longer_than_the_retries(scripted_servers, answer):
    """With `wait` a request is repeated for so many seconds, even after its retries, and the observer learns of it."""
    server = scripted_servers(*[answer(503, {})] * 9, answer(body=["s"]))
    told = Repeats()
    client = RegistryClient(server.url, retries=1, wait=600, observer=told)
    client._transport._http._sleep = lambda _: None

    assert client.get_subjects() == ["s"]
    assert [("GET", "/subjects", 503)] * 9 == told.repeats


def test_a_wait_ends(scripted_servers, answer):
    """A registry that does not come back within `wait` is unavailable."""
    server = scripted_servers(answer(503, {}))
    client = RegistryClient(server.url, retries=0, wait=0.05, backoff=0.01)

    with pytest.raises(RegistryUnavailable, match="keeps answering"):
        client.get_subjects()


class Repeats(Observer):
    """An observer that keeps which requests were sent again, and why."""

    def __init__(self):
        self.repeats = []

    def retry(self, method, path, error, seconds):
        """Keep a repeated request."""
        assert seconds >= 0
        self.repeats.append((method, path, error.status))


def test_redirects_are_not_followed(scripted_servers, answer):
    """Redirects are not followed: credentials go to the configured addresses only."""
    elsewhere = scripted_servers(answer(body=["s"]))
    server = scripted_servers(answer(302, {}, {"Location": elsewhere.url}))

    with pytest.raises(RegistryError) as caught:
        patient(server.url, token="t").get_subjects()

    assert caught.value.status == 302
    assert elsewhere.requests == []


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"\xff\xfe", b"[" * 100_000], ids=["html", "no text", "deep"])
def test_an_answer_that_is_no_json(scripted_servers, answer, body):
    """An answer that is not JSON is an error, since the server may not be a registry."""
    server = scripted_servers(answer(body=body))

    with pytest.raises(SerdeError, match="is it a schema registry"):
        patient(server.url).get_subjects()


@pytest.mark.parametrize("body", [{}, [], 5, "text", None, {"id": "x"}, {"schema": None, "references": 5}])
def test_an_answer_that_is_not_understood(scripted_servers, answer, body):
    """JSON in an unexpected form is a proper error, not a KeyError."""
    client = patient(scripted_servers(answer(body=body)).url)
    calls = [
        lambda: client.get_schema(1),
        lambda: client.register("s", USER),
        lambda: client.get_version("s"),
        lambda: client.test_compatibility("s", USER),
        client.get_mode,
    ]

    for call in calls:
        with pytest.raises(SerdeError, match="is not understood"):
            call()


def test_an_endless_answer_is_not_read(scripted_servers, answer):
    """The client does not read an answer longer than the limit."""
    server = scripted_servers(answer(body=b" " * 100_000))

    with pytest.raises(SerdeError, match="longer than 1000 bytes"):
        patient(server.url, max_answer_bytes=1000).get_subjects()


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        ([], {}, "at least one URL"),
        ("localhost:8081", {}, "expected one such as http"),
        ("ftp://localhost", {}, "expected one such as http"),
        ("http://", {}, "expected one such as http"),
        ("http://localhost:port", {}, "cannot be read"),
        ("http://localhost/?a=1", {}, "expected no query"),
        ("http://localhost", {"username": "u"}, "expected username and password together"),
        (
            "http://localhost",
            {"username": "u", "password": "p", "token": "t"},
            "expected one of username",
        ),
        ("http://localhost", {"retries": -1}, "retries: expected 0 or more, got -1"),
        ("http://localhost", {"timeout": 0}, "timeout: expected more than 0, got 0"),
        ("http://localhost", {"cache_size": 0}, "cache_size: expected more than 0, got 0"),
    ],
)
def test_bad_settings_are_refused(url, options, says):
    """The error names the setting, its value and the allowed values."""
    with pytest.raises(ValueError, match=says):
        RegistryClient(url, **options)


def test_credentials_in_bare_settings_are_refused():
    """Settings made directly refuse a password in an address, since every repr would show it, and do not quote it."""
    with pytest.raises(ValueError, match="urls: expected no credentials") as caught:
        ClientSettings(urls=("http://u:hunter2@localhost",))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(ClientSettings.of("http://u:hunter2@localhost"))


def test_through_a_proxy(scripted_servers, answer):
    """The proxy gets the whole address and its own credentials, which show nowhere else."""
    proxy = scripted_servers(answer(body=["s"]))
    url = proxy.url.replace("http://", "http://ann:s%2Fecret@")

    client = patient("http://registry.invalid:8081/base", proxy=url, username="bob", password="p")

    assert ["s"] == client.get_subjects()
    (request,) = proxy.requests
    assert "http://registry.invalid:8081/base/subjects" == request.path
    assert "Basic YW5uOnMvZWNyZXQ=" == request.headers["proxy-authorization"]
    assert "Basic Ym9iOnA=" == request.headers["Authorization"]
    assert "ecret" not in repr(client.settings)
    assert ["s"] == pickle.loads(pickle.dumps(client)).get_subjects()


def test_a_proxy_that_is_not_there():
    """An unreachable proxy is reported like a registry that does not answer."""
    url = f"http://ann:secret@127.0.0.1:{free_port()}"
    with pytest.raises(RegistryUnavailable) as caught:
        patient("http://registry.invalid", proxy=url, retries=1).get_subjects()

    assert "secret" not in str(caught.value)


def test_an_outage_names_each_address(scripted_servers, answer):
    """The error of an outage names all addresses that were tried, not only the last."""
    urls = [f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"]
    with pytest.raises(RegistryUnavailable, match="does not answer") as caught:
        patient(urls, retries=1).get_subjects()
    assert f"(tried {', '.join(urls)})" in str(caught.value)
    with pytest.raises(RegistryUnavailable) as caught:
        patient(urls[:1], retries=1).get_subjects()
    assert "tried" not in str(caught.value)


@pytest.mark.parametrize("name", ["ca_file", "cert_file", "key_file", "token_ca_file"])
def test_a_file_that_is_missing_is_named_when_the_client_is_made(tmp_path, name):
    """A certificate that cannot be opened is an error of the constructor, not of the first request."""
    path = tmp_path / "missing.pem"
    oauth = {"token_url": "https://idp/token", "client_id": "c", "client_secret": "s"}
    with pytest.raises(ValueError, match=f"{name}: cannot open {path}: No such file or directory"):
        RegistryClient("https://localhost:1", **oauth, **{name: str(path)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"timeot": 3}, "unknown option 'timeot' of a client; did you mean 'timeout'?", id="misspelled"),
        pytest.param({"zzz": 1}, "unknown option 'zzz' of a client", id="nothing like it"),
        pytest.param({"timeout": "abc"}, "timeout: expected a number, got str", id="text for a number"),
        pytest.param({"retries": True}, "retries: expected a number, got bool", id="truth for a number"),
        pytest.param({"cache_size": None}, "cache_size: expected a number, got NoneType", id="nothing for a number"),
    ],
)
def test_a_wrong_option_is_named_when_the_client_is_made(options, message):
    """An unknown option, or a value of another type, is an error that says what is expected."""
    with pytest.raises(TypeError) as caught:
        RegistryClient("http://localhost:1", **options)
    assert message == str(caught.value)
