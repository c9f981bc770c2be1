"""The registry client: each call against the real registry, each trouble against a server that makes it."""

import base64
import pickle
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.processes import free_port
from serdes.client import ClientSettings, Reference, RegistryClient, Schema
from serdes.errors import RegistryError, RegistryUnavailable, SerdeError

USER = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}'
USER_2 = (
    '{"type":"record","name":"User","fields":[{"name":"id","type":"long"},'
    '{"name":"name","type":["null","string"],"default":null}]}'
)
USER_BAD = '{"type":"record","name":"User","fields":[{"name":"id","type":"string"},{"name":"z","type":"int"}]}'
SCHEMA_ANSWER = {"schema": USER, "schemaType": "AVRO", "guid": "g", "ts": 1}
MISSING = {"error_code": 40403, "message": "Schema 9 not found"}
SUBJECTS = ["plain", "a/b", "a%2Fb", "with space", "ünï/cödé €", "q?x=1&y#z", "semi;colon", "plus+sign", ":.:x", ".."]


# The real registry


def test_register_look_up_and_read_back(client):
    """A schema comes back under its id, its version and itself."""
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
    """A subject may hold what paths and queries are made of."""
    registered = client.register(subject, '"string"')

    assert registered.schema_id == client.get_version(subject).schema_id
    assert client.get_versions(subject) == [1]
    assert client.delete_subject(subject) == [1]


def test_the_registrys_refusal_is_an_error_with_its_parts(client):
    """Status, error code and message are the registry's own."""
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
    """A schema that would be refused is told why, before anybody registers it."""
    client.register("compat-value", USER)

    good = client.test_compatibility("compat-value", USER_2)
    bad = client.test_compatibility("compat-value", USER_BAD, None)

    assert good
    assert good.messages == ()
    assert not bad
    assert any("TYPE_MISMATCH" in message for message in bad.messages)
    assert client.test_compatibility("compat-value", USER_BAD, 1, verbose=False).messages == ()


def test_config_and_mode(client):
    """Levels and modes are set, read, defaulted and forgotten."""
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
    """After a deletion the same call registers again instead of telling the old answer."""
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
    """In another process a client opens connections of its own."""
    registered = client.register("pickle-value", USER)

    copy = pickle.loads(pickle.dumps(client))

    assert client.settings == copy.settings
    assert Schema(USER) == copy.get_schema(registered.schema_id)


# What is sent


def test_requests_carry_what_the_registry_expects(scripted_servers, answer):
    """Media types, flags only when set, format and references only when they say something."""
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
    """User and password, in the settings or in the URL, or a token."""
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
    """Two processes on one connection would read each other's answers."""
    server = scripted_servers(answer(body=[]))
    with RegistryClient(server.url) as client:
        client.get_subjects()
        client._transport._process = -1
        client.get_subjects()

    assert len({request.peer for request in server.requests}) == 2


@pytest.fixture
def certificate(tmp_path):
    """Files with a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert_file.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(cert_file), str(key_file)


def test_https(scripted_servers, answer, certificate):
    """A registry behind https is asked when its certificate is trusted, and only then."""
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
    for client in (anonymous, doubting):
        with pytest.raises(RegistryUnavailable, match="does not answer"):
            client.get_subjects()
    assert len(server.requests) == 1


# What is remembered


def test_a_schema_is_asked_for_once(scripted_servers, answer):
    """An id never changes its schema."""
    server = scripted_servers(answer(body=SCHEMA_ANSWER))
    with RegistryClient(server.url) as client:
        for _ in range(3):
            assert Schema(USER) == client.get_schema(9)
            assert Schema(USER) == client.get_schema(9, subject="any-value")

    assert [request.path for request in server.requests] == ["/schemas/ids/9"]


def test_contexts_have_ids_of_their_own(scripted_servers, answer):
    """The context in a qualified subject is part of what is remembered."""
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
    """However many threads miss an id at once, one request is in flight."""
    asked, gate = threading.Event(), threading.Event()
    server = scripted_servers(answer(body=SCHEMA_ANSWER, when=lambda: (asked.set(), gate.wait(30))))
    with RegistryClient(server.url) as client, ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(client.get_schema, 9) for _ in range(16)]
        asked.wait(30)
        gate.set()

        assert {Schema(USER)} == {one.result() for one in waiting}

    assert len(server.requests) == 1


def test_a_registration_is_sent_once(scripted_servers, answer):
    """The same schema under the same subject needs no second request."""
    server = scripted_servers(answer(body={"id": 7, "version": 1}))
    with RegistryClient(server.url) as client:
        ids = [client.register(subject, USER).schema_id for subject in ("a", "a", "b")]

    assert [7, 7, 7] == ids
    assert len(server.requests) == 2


def test_an_unknown_id_is_believed_for_a_while(scripted_servers, answer):
    """A topic full of damaged frames does not become as many requests; a late registration is still found."""
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
    """Only the registry's word that an id is unknown is kept."""
    server = scripted_servers(
        answer(404, {"error_code": 404, "message": "HTTP 404 Not Found"}), answer(body=SCHEMA_ANSWER)
    )
    with RegistryClient(server.url) as client:
        with pytest.raises(RegistryError):
            client.get_schema(9)

        assert Schema(USER) == client.get_schema(9)


def test_caches_are_bounded(scripted_servers, answer):
    """What is remembered has a limit."""
    server = scripted_servers(answer(body=SCHEMA_ANSWER))
    with RegistryClient(server.url, cache_size=2) as client:
        for schema_id in (1, 2, 3, 1, 3):
            client.get_schema(schema_id)

    assert len(server.requests) == 4


# What goes wrong


def patient(url, **options):
    """A client that waits no longer than a test may."""
    return RegistryClient(url, backoff=0.001, max_backoff=0.01, timeout=10, **options)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_passing_troubles_are_tried_again(scripted_servers, answer, status):
    """The statuses that mean «later» are repeated, and the answer that comes then counts."""
    server = scripted_servers(
        answer(status, {"error_code": status, "message": "later"}), answer(502, b"<html>"), answer(body=["s"])
    )

    assert patient(server.url).get_subjects() == ["s"]
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 415, 422, 501])
def test_lasting_troubles_are_not_repeated(scripted_servers, answer, status):
    """A refusal is told at once."""
    server = scripted_servers(answer(status, {"error_code": status * 100 + 1, "message": "no"}))

    with pytest.raises(RegistryError) as caught:
        patient(server.url).get_subjects()

    assert (status, status * 100 + 1, "no") == (caught.value.status, caught.value.error_code, caught.value.message)
    assert len(server.requests) == 1


def test_trouble_that_stays_ends(scripted_servers, answer):
    """After the retries the caller hears that the registry is not available, and what it said."""
    server = scripted_servers(answer(500, {"error_code": 50001, "message": "store"}))

    with pytest.raises(RegistryUnavailable, match="keeps answering: store") as caught:
        patient(server.url, retries=2).get_subjects()

    assert isinstance(caught.value.__cause__, RegistryError)
    assert len(server.requests) == 3


def test_dropped_connections_are_tried_again(scripted_servers, answer):
    """A connection that breaks is opened anew."""
    server = scripted_servers(answer(drop=True), answer(drop=True), answer(body={"id": 7}))

    assert patient(server.url).register("s", USER).schema_id == 7
    assert len(server.requests) == 3


def test_a_deletion_is_not_sent_twice_when_it_may_have_been_done(scripted_servers, answer):
    """The answer to the second one would be about the first one's result."""
    dropping = scripted_servers(answer(drop=True), answer(body=[1]))
    refusing = scripted_servers(answer(503, {"error_code": 50003, "message": "later"}), answer(body=[1]))

    with pytest.raises(RegistryUnavailable, match="may or may not have done"):
        patient(dropping.url).delete_subject("s")

    assert len(dropping.requests) == 1
    assert patient(refusing.url).delete_subject("s") == [1]


def test_nobody_there():
    """An address without a server is named, and its credentials are not."""
    with pytest.raises(RegistryUnavailable, match="does not answer") as caught:
        patient(f"http://user:hunter2@127.0.0.1:{free_port()}", retries=1).get_subjects()

    assert "hunter2" not in str(caught.value)


def test_the_other_addresses_are_tried(scripted_servers, answer):
    """Of several addresses the one that answers is used, and stays the first choice."""
    broken = scripted_servers(answer(500, {"error_code": 500, "message": "down"}))
    good = scripted_servers(answer(body=["s"]))
    client = patient([f"http://127.0.0.1:{free_port()}", broken.url, good.url], retries=0)

    assert ["s"] == client.get_subjects() == client.get_subjects() == client.get_subjects()
    assert (1, 3) == (len(broken.requests), len(good.requests))


def test_addresses_may_come_in_one_string(scripted_servers, answer):
    """As in the settings of other clients."""
    good = scripted_servers(answer(body=["s"]))

    assert patient(f"http://127.0.0.1:{free_port()} , {good.url}/").get_subjects() == ["s"]


def test_the_wait_that_the_registry_asks_for_is_kept_within_bounds(scripted_servers, answer):
    """Retry-After is heard, and so is the client's own limit."""
    server = scripted_servers(
        answer(429, {}, {"Retry-After": "3"}), answer(429, {}, {"Retry-After": "9999"}), answer(body=[])
    )
    client, waits = RegistryClient(server.url, backoff=0.5, max_backoff=5), []
    client._transport._sleep = waits.append

    client.get_subjects()

    assert [3, 5] == waits


def test_waits_grow(scripted_servers, answer):
    """Each wait is up to twice the one before, at least half of that, and bounded."""
    server = scripted_servers(answer(503, {}))
    client, waits = RegistryClient(server.url, backoff=1, max_backoff=4, retries=5), []
    client._transport._sleep = waits.append

    with pytest.raises(RegistryUnavailable):
        client.get_subjects()

    assert all(ceiling / 2 <= wait <= ceiling for wait, ceiling in zip(waits, [1, 2, 4, 4, 4], strict=True))


def test_redirects_are_not_followed(scripted_servers, answer):
    """Credentials go to the addresses given and nowhere else."""
    elsewhere = scripted_servers(answer(body=["s"]))
    server = scripted_servers(answer(302, {}, {"Location": elsewhere.url}))

    with pytest.raises(RegistryError) as caught:
        patient(server.url, token="t").get_subjects()

    assert caught.value.status == 302
    assert elsewhere.requests == []


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"\xff\xfe", b"[" * 100_000], ids=["html", "no text", "deep"])
def test_an_answer_that_is_no_json(scripted_servers, answer, body):
    """What answers may be no registry at all."""
    server = scripted_servers(answer(body=body))

    with pytest.raises(SerdeError, match="is it a schema registry"):
        patient(server.url).get_subjects()


@pytest.mark.parametrize("body", [{}, [], 5, "text", None, {"id": "x"}, {"schema": None, "references": 5}])
def test_an_answer_that_is_not_understood(scripted_servers, answer, body):
    """JSON that is not what the route answers is an error of its own, not a KeyError."""
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
    """An answer longer than the limit is left unread."""
    server = scripted_servers(answer(body=b" " * 100_000))

    with pytest.raises(SerdeError, match="more than 1000 bytes"):
        patient(server.url, max_answer_bytes=1000).get_subjects()


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        ([], {}, "at least one URL"),
        ("localhost:8081", {}, "must look like http"),
        ("ftp://localhost", {}, "must look like http"),
        ("http://", {}, "must look like http"),
        ("http://localhost:port", {}, "cannot be read"),
        ("http://localhost/?a=1", {}, "must not have a query"),
        ("http://localhost", {"username": "u"}, "username and password go together"),
        (
            "http://localhost",
            {"username": "u", "password": "p", "token": "t"},
            "either username and password, or a token",
        ),
        ("http://localhost", {"retries": -1}, "retries is -1; allowed is 0 or more"),
        ("http://localhost", {"timeout": 0}, "timeout is 0; allowed is more than 0"),
        ("http://localhost", {"cache_size": 0}, "cache_size is 0; allowed is more than 0"),
    ],
)
def test_bad_settings_are_refused(url, options, says):
    """The error says which setting, what it is and what is allowed."""
    with pytest.raises(ValueError, match=says):
        RegistryClient(url, **options)


def test_credentials_in_bare_settings_are_refused():
    """A password in an address would show in every repr: settings made directly refuse it, without telling it."""
    with pytest.raises(ValueError, match="do not belong into urls") as caught:
        ClientSettings(urls=("http://u:hunter2@localhost",))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(ClientSettings.of("http://u:hunter2@localhost"))
