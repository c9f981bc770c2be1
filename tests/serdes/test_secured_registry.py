"""The client proves who it is to a real service with TLS and access control, and tells its refusals as they are."""

import asyncio
import pickle
import shutil

import pytest

from harness.oidc import CLIENT, SigningKey
from harness.secured import AUDIENCE, PASSWORD, SecuredNode
from strata.serdes import aio
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.errors import RegistryError, RegistryUnavailable, TokenError

pytestmark = pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="needs Node.js and npm")

USER = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}'
DENIED = "User is denied operation {} on Subject: {}"


@pytest.fixture(scope="module")
def provider(identity_providers, tmp_path_factory):
    """Yield a provider of tokens whose client is in the orders team."""
    folder = tmp_path_factory.mktemp("provider")
    with identity_providers(
        folder, [SigningKey("RS256", "1")], {AUDIENCE: "RS256"}, {"groups": ["orders-team"]}
    ) as running:
        yield running


@pytest.fixture(scope="module")
def node(tmp_path_factory, provider):
    """Yield a node with every mechanism, and a subject that its users may not read."""
    with SecuredNode(tmp_path_factory.mktemp("node"), provider) as started:
        with RegistryClient(started.url, **started.password("ada")) as admin:
            admin.register("pay-value", USER)
        yield started


@pytest.fixture(params=["password", "password in the URL", "token", "client credentials", "certificate"])
def settings(request, node, provider):
    """Return settings with one way to prove who the client is."""
    trust, url = {"ca_file": node.ca_file, "backoff": 0.01, "timeout": 60.0}, node.url
    ways = {
        "password": lambda: node.password("ann"),
        "password in the URL": dict,
        "token": lambda: {"token": provider.token(AUDIENCE)},
        "client credentials": lambda: oauth(provider),
        "certificate": lambda: node.certificate("etl"),
    }
    if request.param == "password in the URL":
        url = url.replace("://", f"://ann:{PASSWORD}@")
    return ClientSettings.of(url, **{**trust, **ways[request.param]()})


def oauth(provider, **changed):
    """Return the settings of OAuth client credentials."""
    given = {"token_url": f"{provider.issuer}/token", "client_id": CLIENT, "client_secret": "secret"}
    return {**given, "token_ca_file": provider.ca_file, **changed}


def secrets(settings):
    """Return what must not be shown."""
    return [text for text in (settings.password, settings.token, settings.client_secret) if text and text != "secret"]


def test_each_way_reads_and_writes(settings):
    """A client that proves who it is registers and reads; its pickled copy does too."""
    with RegistryClient.from_settings(settings) as client, pickle.loads(pickle.dumps(client)) as copy:
        frame = AvroSerializer(client, USER)({"id": 7}, topic="orders")

        assert {"id": 7} == AvroDeserializer(copy)(frame, topic="orders")
        assert "orders-value" in client.get_subjects()
        assert "pay-value" not in client.get_subjects()


def test_each_way_in_asyncio(settings):
    """The asynchronous serializer and deserializer prove it in the same way."""

    async def round_trip():
        with RegistryClient.from_settings(settings) as client:
            frame = await aio.AsyncSerializer(AvroSerializer(client, USER))({"id": 8}, topic="orders")
            value = await aio.AsyncDeserializer(AvroDeserializer(client))(frame, topic="orders")
            return value, await aio.call(client.get_versions, "orders-value")

    assert ({"id": 8}, [1]) == asyncio.run(round_trip())


def test_missing_right_names_operation_and_subject(settings):
    """A 403 is an error at once, and says what is denied; nothing shows a secret."""
    with RegistryClient.from_settings(settings) as client:
        for operation, call in (
            ("Write", lambda: client.register("new-value", USER)),
            ("Read", lambda: client.get_version("pay-value", 1)),
            ("Read", lambda: client.get_version("missing-value", 1)),
        ):
            with pytest.raises(RegistryError) as denied:
                call()
            subject = denied.value.message.rpartition(" ")[2]
            assert (403, 40301) == (denied.value.status, denied.value.error_code)
            assert DENIED.format(operation, subject) == denied.value.message
            assert subject in ("new-value", "pay-value", "missing-value")
            shown = f"{denied.value!r} {denied.value} {client!r} {settings!r} {vars(client)!r}"
            assert [] == [secret for secret in secrets(settings) if secret in shown]


def test_wrong_credentials(node, provider):
    """A wrong password, an invalid token and a wrong client secret are errors that show none of them."""
    wrong = "wr0ng-secret"
    cases = [
        (node.password("ann") | {"password": wrong}, RegistryError, "error code 401"),
        ({"token": wrong, "ca_file": node.ca_file}, RegistryError, "error code 401"),
        (oauth(provider, client_secret=wrong) | {"ca_file": node.ca_file}, TokenError, "refused the request"),
        ({"ca_file": node.ca_file}, RegistryError, "error code 401"),
    ]
    for options, kind, words in cases:
        with RegistryClient(node.url, **options) as client, pytest.raises(kind, match=words) as caught:
            client.get_subjects()
        assert wrong not in f"{caught.value!r} {caught.value}"
    assert wrong not in node.output


def test_other_authority(node):
    """A client sends no password to a service whose certificate it does not trust."""
    with RegistryClient(node.url, username="ann", password=PASSWORD, retries=0) as client:
        with pytest.raises(RegistryUnavailable, match="is not accepted: self-signed certificate") as caught:
            client.get_subjects()
        assert PASSWORD not in str(caught.value)
