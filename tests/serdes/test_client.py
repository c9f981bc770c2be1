"""The registry client works against the real registry, and against a server that makes trouble."""

import base64
import pickle
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from harness.certificates import Authority, certificate_files
from strata.serdes.client import ClientSettings, Reference, RegistryClient, Schema
from strata.serdes.errors import RegistryError, RegistryUnavailable

USER = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}'
USER_2 = (
    '{"type":"record","name":"User","fields":[{"name":"id","type":"long"},'
    '{"name":"name","type":["null","string"],"default":null}]}'
)
USER_BAD = '{"type":"record","name":"User","fields":[{"name":"id","type":"string"},{"name":"z","type":"int"}]}'
SCHEMA_ANSWER = {"schema": USER, "schemaType": "AVRO", "guid": "g", "ts": 1}
MISSING = {"error_code": 40403, "message": "Schema 9 not found"}
SUBJECTS = ["plain", "a/b", "a%2Fb", "with space", "ünï/cödé €", "q?x=1&y#z", "semi;colon", "plus+sign", ":.:x", ".."]


DAY = timedelta(days=1)


def patient(url, **options):
    """Return a client that waits no longer than a test may."""
    return RegistryClient(url, backoff=0.001, max_backoff=0.01, timeout=60, **options)


# The real registry


def test_register_look_up_and_read_back(client):
    """A schema is found by its id, by its version and by its text."""
    registered = client.register("life-value", USER)

    assert ("life-value", 1) == (registered.subject, registered.version)
    assert registered.guid
    assert Schema(USER) == client.get_schema(registered.schema_id)
    assert Schema(USER) == client.get_schema(registered.schema_id, subject="life-value")
    assert registered == client.get_version("life-value", 1)
    assert registered == client.get_version("life-value", "latest")
    found = client.lookup("life-value", Schema(USER))
    assert (registered.schema_id, registered.version) == (found.schema_id, found.version)
    assert client.get_versions("life-value") == [1]
    assert ("life-value", 1) in client.get_schema_versions(registered.schema_id)
    assert "life-value" in client.get_subjects()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_any_subject_makes_the_round_trip(client, subject):
    """A subject may contain any character that has a meaning in paths and queries."""
    registered = client.register(subject, '"string"')

    assert registered.schema_id == client.get_version(subject).schema_id
    assert client.get_versions(subject) == [1]
    assert client.delete_subject(subject) == [1]


def test_the_registrys_refusal_is_an_error_with_its_parts(client):
    """The error has the registry's own status, error code and message."""
    client.register("refuse-value", USER)

    with pytest.raises(RegistryError) as incompatible:
        client.register("refuse-value", USER_BAD)
    with pytest.raises(RegistryError) as missing:
        client.get_version("nobody-value")
    with pytest.raises(RegistryError) as unknown:
        client.get_schema(987_654)
    with pytest.raises(RegistryError) as invalid:
        client.register("refuse-value", "{")

    assert (409, 40901) == (incompatible.value.status, incompatible.value.error_code)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in incompatible.value.message
    assert (404, 40401) == (missing.value.status, missing.value.error_code)
    assert (404, 40403) == (unknown.value.status, unknown.value.error_code)
    assert (422, 42201) == (invalid.value.status, invalid.value.error_code)


def test_compatibility_with_its_reasons(client):
    """The compatibility check returns the reasons of a refusal before the schema is registered."""
    client.register("compat-value", USER)

    good = client.test_compatibility("compat-value", USER_2)
    bad = client.test_compatibility("compat-value", USER_BAD, None)

    assert good
    assert good.messages == ()
    assert not bad
    assert any("TYPE_MISMATCH" in message for message in bad.messages)
    assert client.test_compatibility("compat-value", USER_BAD, 1, verbose=False).messages == ()


def test_config_and_mode(client):
    """Levels and modes can be set, read, defaulted and deleted."""
    client.register("conf-value", USER)

    assert client.set_config("FULL", "conf-value")["compatibility"] == "FULL"
    assert client.get_config("conf-value")["compatibilityLevel"] == "FULL"
    client.delete_config("conf-value")
    with pytest.raises(RegistryError) as unset:
        client.get_config("conf-value")
    assert client.get_config("conf-value", default_to_global=True) == client.get_config()
    assert unset.value.error_code == 40408
    assert client.set_mode("READONLY", "conf-value") == "READONLY"
    assert client.get_mode("conf-value") == "READONLY"
    assert client.delete_mode("conf-value") == "READONLY"
    assert client.get_mode("conf-value", default_to_global=True) == "READWRITE"


def test_deleting_forgets_registrations(client):
    """After a deletion the same call registers again instead of returning the cached result."""
    first = client.register("gone-value", USER)
    client.register("gone-value", USER_2)

    assert client.delete_version("gone-value", 1) == 1
    assert client.get_versions("gone-value") == [2]
    assert client.get_versions("gone-value", deleted=True) == [1, 2]
    assert client.get_version("gone-value", 1, deleted=True).schema_id == first.schema_id
    assert client.delete_subject("gone-value") == [2]
    assert "gone-value" not in client.get_subjects()
    assert "gone-value" in client.get_subjects(deleted=True)
    assert client.register("gone-value", USER).version == 3
    assert client.delete_subject("gone-value") == [3]
    assert client.get_versions("gone-value", deleted=True) == client.delete_subject("gone-value", permanent=True)


def test_normalized_registration(client):
    """With `normalize` two spellings of a schema are one."""
    spelled = '{"type":"int","b":1,"a":2}'

    first = client.register("norm-value", '{"type":"int","a":2,"b":1}', normalize=True)

    assert first.schema_id == client.register("norm-value", spelled, normalize=True).schema_id
    assert first.schema_id == client.lookup("norm-value", spelled, normalize=True).schema_id


def test_a_client_pickles_as_its_settings(client):
    """A client unpickled in another process opens its own connections."""
    registered = client.register("pickle-value", USER)

    copy = pickle.loads(pickle.dumps(client))

    assert client.settings == copy.settings
    assert Schema(USER) == copy.get_schema(registered.schema_id)


# What is sent


def test_requests_carry_what_the_registry_expects(scripted_servers, answer):
    """Requests have media types, flags only when set, and format and references only when they are not the default."""
    server = scripted_servers(answer(body={"id": 7}))
    with RegistryClient(f"{server.url}/api/") as client:
        plain = client.register("a/b", USER)
        client.register("s", Schema("{}", "JSON", (Reference("n", "other", 3),)), normalize=True)

    first, second = server.requests
    assert ("POST", "/api/subjects/a%2Fb/versions") == (first.method, first.path)
    assert {"schema": USER} == first.body
    assert "application/vnd.schemaregistry.v1+json" == first.headers["Content-Type"]
    assert second.path == "/api/subjects/s/versions?normalize=true"
    assert second.body == {
        "schema": "{}",
        "schemaType": "JSON",
        "references": [{"name": "n", "subject": "other", "version": 3}],
    }
    assert ("a/b", None, 7, None, Schema(USER)) == (
        plain.subject,
        plain.version,
        plain.schema_id,
        plain.guid,
        plain.schema,
    )


@pytest.mark.parametrize(
    ("url", "options", "header"),
    [
        ("http://", {"username": "u", "password": "p:w"}, "Basic " + base64.b64encode(b"u:p:w").decode()),
        ("http://us%40er:p%2Fw@", {}, "Basic " + base64.b64encode(b"us@er:p/w").decode()),
        ("http://", {"token": "t"}, "Bearer t"),
        ("http://", {}, None),
    ],
)
def test_credentials(scripted_servers, answer, url, options, header):
    """A request carries user and password, from the settings or the URL, or a token."""
    server = scripted_servers(answer(body=[]))

    RegistryClient(server.url.replace("http://", url), **options).get_subjects()

    assert header == server.requests[0].headers.get("Authorization")


def test_secrets_do_not_show():
    """Neither the client nor its settings print a password or a token."""
    shown = [
        f"{client!r} {client.settings!r}"
        for client in (
            RegistryClient("http://user:hunter2@localhost:1"),
            RegistryClient("http://localhost:1", token="hunter2"),
            RegistryClient("http://localhost:1", username="user", password="hunter2"),
        )
    ]

    assert not [text for text in shown if "hunter2" in text]


def test_connections_are_used_again(scripted_servers, answer):
    """One thread needs one connection."""
    server = scripted_servers(answer(body=[]))
    with RegistryClient(server.url) as client:
        for _ in range(5):
            client.get_subjects()

    assert len({request.peer for request in server.requests}) == 1


def test_a_forked_process_opens_connections_of_its_own(scripted_servers, answer):
    """A forked process opens its own connections: on a shared one each would read the other's responses."""
    server = scripted_servers(answer(body=[]))
    with RegistryClient(server.url) as client:
        client.get_subjects()
        client._transport._http._process = -1
        client.get_subjects()

    assert len({request.peer for request in server.requests}) == 2


@pytest.fixture
def certificate(tmp_path):
    """Return files with a certificate for 127.0.0.1 and its key."""
    return certificate_files(tmp_path)


def test_https(scripted_servers, answer, certificate):
    """The client talks to a registry behind https only if it trusts the certificate."""
    cert_file, key_file = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file, key_file)
    context.load_verify_locations(cert_file)
    context.verify_mode = ssl.CERT_REQUIRED
    server = scripted_servers(answer(body=["s"]), tls=context)

    trusting = patient(server.url, retries=0, ca_file=cert_file, cert_file=cert_file, key_file=key_file)
    anonymous = patient(server.url, retries=0, ca_file=cert_file)
    doubting = patient(server.url, retries=0)

    assert trusting.get_subjects() == ["s"]
    for client, why in ((anonymous, "does not answer"), (doubting, "is not accepted: self-signed certificate")):
        with pytest.raises(RegistryUnavailable, match=why):
            client.get_subjects()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("valid", "trusted", "why"),
    [
        ((-2 * DAY, -DAY), "ca", "certificate has expired"),
        ((DAY, 2 * DAY), "ca", "certificate is not yet valid"),
        ((-DAY, DAY), "other", "unable to get local issuer certificate"),
    ],
    ids=["expired", "not yet valid", "unknown authority"],
)
def test_a_certificate_that_is_not_accepted_fails_at_once(scripted_servers, answer, tmp_path, valid, trusted, why):
    """At the first contact the client names the certificate and what is wrong, and does not wait for another one."""
    files = {name: Authority(tmp_path, name) for name in ("ca", "other")}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files["ca"].issue("registry", valid=valid))
    server = scripted_servers(answer(body=["s"]), tls=context)
    client = patient(server.url, wait=3600, retries=10_000, ca_file=files[trusted].file)

    with pytest.raises(RegistryUnavailable, match=f"the certificate of {server.url} is not accepted: {why}"):
        client.get_subjects()


def test_a_certificate_that_expires_later_is_waited_for(scripted_servers, answer, tmp_path):
    """A registry that has answered before is asked again, since its certificate may be renewed at this moment."""
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("registry"))
    server = scripted_servers(answer(body=["s"]), tls=context)
    waits = []
    client = patient(server.url, retries=2, ca_file=authority.file)
    client._transport._http._sleep = waits.append
    assert ["s"] == client.get_subjects()
    context.load_cert_chain(*authority.issue("registry", valid=(-2 * DAY, -DAY)))
    client._transport.close()

    with pytest.raises(RegistryUnavailable, match="is not accepted: certificate has expired"):
        client.get_subjects()
    assert 2 == len(waits)


# What is cached


def test_a_schema_is_asked_for_once(scripted_servers, answer):
    """A schema id is requested once, since its schema never changes."""
    server = scripted_servers(answer(body=SCHEMA_ANSWER))
    with RegistryClient(server.url) as client:
        for _ in range(3):
            assert Schema(USER) == client.get_schema(9)
            assert Schema(USER) == client.get_schema(9, subject="any-value")

    assert [request.path for request in server.requests] == ["/schemas/ids/9"]


def test_contexts_have_ids_of_their_own(scripted_servers, answer):
    """Cached schemas are kept separately for each context of a qualified subject."""
    server = scripted_servers(answer(body=SCHEMA_ANSWER))
    with RegistryClient(server.url) as client:
        for subject in (None, ":.a:s", ":.a:t", ":.b:s"):
            client.get_schema(9, subject=subject)

    assert [request.path for request in server.requests] == [
        "/schemas/ids/9",
        "/schemas/ids/9?subject=%3A.a%3As",
        "/schemas/ids/9?subject=%3A.b%3As",
    ]


def test_many_threads_ask_once(scripted_servers, answer):
    """Any number of threads that miss an id at once send one request."""
    asked, gate = threading.Event(), threading.Event()
    server = scripted_servers(answer(body=SCHEMA_ANSWER, when=lambda: (asked.set(), gate.wait(60))))
    with RegistryClient(server.url) as client, ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(client.get_schema, 9) for _ in range(16)]
        asked.wait(60)
        gate.set()

        assert {Schema(USER)} == {one.result() for one in waiting}

    assert len(server.requests) == 1


def test_a_registration_is_sent_once(scripted_servers, answer):
    """Registering the same schema under the same subject again sends no request."""
    server = scripted_servers(answer(body={"id": 7, "version": 1}))
    with RegistryClient(server.url) as client:
        ids = [client.register(subject, USER).schema_id for subject in ("a", "a", "b")]

    assert [7, 7, 7] == ids
    assert len(server.requests) == 2


def test_an_unknown_id_is_believed_for_a_while(scripted_servers, answer):
    """Unknown ids are cached, so that damaged frames cost few requests; a late registration is still found."""
    server = scripted_servers(answer(404, MISSING), answer(body=SCHEMA_ANSWER))
    now = [100.0]
    client = RegistryClient.from_settings(ClientSettings.of(server.url, missing_ttl=10), clock=lambda: now[0])

    for _ in range(3):
        with pytest.raises(RegistryError, match="Schema 9 not found"):
            client.get_schema(9)
        now[0] += 3
    now[0] += 2

    assert Schema(USER) == client.get_schema(9)
    assert len(server.requests) == 2


def test_another_error_is_not_believed(scripted_servers, answer):
    """Only the registry's answer that an id is unknown is cached."""
    server = scripted_servers(
        answer(404, {"error_code": 404, "message": "HTTP 404 Not Found"}), answer(body=SCHEMA_ANSWER)
    )
    with RegistryClient(server.url) as client:
        with pytest.raises(RegistryError):
            client.get_schema(9)

        assert Schema(USER) == client.get_schema(9)


def test_caches_are_bounded(scripted_servers, answer):
    """The caches have a limit."""
    server = scripted_servers(answer(body=SCHEMA_ANSWER))
    with RegistryClient(server.url, cache_size=2) as client:
        for schema_id in (1, 2, 3, 1, 3):
            client.get_schema(schema_id)

    assert len(server.requests) == 4


def test_a_client_for_settings() -> None:
    """A client takes settings where it takes a URL, and options replace those of the settings."""
    settings = ClientSettings.of("http://localhost:8081", token="secret", timeout=3)

    assert settings == RegistryClient(settings).settings
    assert (
        ClientSettings.of("http://localhost:8081", token="secret", timeout=7)
        == RegistryClient(settings, timeout=7).settings
    )
    with pytest.raises(TypeError, match="tokn"):
        RegistryClient(settings, tokn="x")
