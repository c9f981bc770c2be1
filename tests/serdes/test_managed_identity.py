"""Tokens of a managed identity of Azure (IMDS), as confluent-kafka asks for them."""

import pickle
import time

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient

from strata.http.errors import TokenRefused, TokenUnavailable
from strata.serdes.confluent import SchemaRegistryClient
from strata.serdes.managed_identity import ManagedIdentity

QUERY = "api-version=2018-02-01&resource=api%3A%2F%2Fregistry"


def token(text="first", life="86399", **more):
    """Return what the service answers; it writes numbers as strings."""
    known = {"access_token": text, "expires_in": life, "expires_on": str(int(time.time()) + 86_399)}
    return {**known, "token_type": "Bearer", **more}


def test_a_client_asks_as_confluent_kafka_does(scripted_servers, answer):
    """One request without a secret gives the token of all requests; both clients send the same."""
    sent = []
    for client_class in (TheirClient, SchemaRegistryClient):
        service = scripted_servers(answer(body=token()))
        registry = scripted_servers(answer(body=["a"]), answer(body=["a"]))
        conf = {
            "url": registry.url,
            "bearer.auth.credentials.source": "OAUTHBEARER_AZURE_IMDS",
            "bearer.auth.issuer.endpoint.url": f"{service.url}/metadata/identity/oauth2/token",
            "bearer.auth.issuer.endpoint.query": QUERY,
            "bearer.auth.logical.cluster": "lsrc-1",
            "bearer.auth.identity.pool.id": "pool-1",
        }
        with client_class(conf) as client:
            assert [["a"], ["a"]] == [client.get_subjects(), client.get_subjects()]
            if client_class is TheirClient:
                client._rest_client.bearer_field_provider.client.close()  # it leaves this one open
        names = ("Authorization", "target-sr-cluster", "Confluent-Identity-Pool-Id")
        asked = [(one.method, one.path, one.headers["Metadata"]) for one in service.requests]
        assert not any("Authorization" in one.headers for one in service.requests)
        sent.append((asked, [[one.headers[name] for name in names] for one in registry.requests]))

    assert sent[0] == sent[1]
    assert [("GET", f"/metadata/identity/oauth2/token?{QUERY}", "true")] == sent[1][0]
    assert [["Bearer first", "lsrc-1", "pool-1"]] * 2 == sent[1][1]


def test_a_token_is_renewed_before_it_expires(scripted_servers, answer):
    """After four fifths of its lifetime the service is asked again."""
    service = scripted_servers(answer(body=token("first", "100")), answer(body=token("second", 100)))
    now = [0.0]
    identity = ManagedIdentity(service.url, QUERY, clock=lambda: now[0])
    seen = []
    for now[0] in (0.0, 79.0, 81.0, 160.0):
        seen.append(identity()["Authorization"])

    assert ["Bearer first", "Bearer first", "Bearer second", "Bearer second"] == seen


BAD = {
    "no JSON": (200, "x", TokenRefused),
    "no token": (200, {"expires_in": "5"}, TokenRefused),
    "a token that no header may hold": (200, token("a b"), TokenRefused),
    "an expired token": (200, token(life="0"), TokenRefused),
    "a lifetime that is not a number": (200, token(life="soon"), TokenRefused),
    "a refusal": (400, {"error": "invalid_request", "error_description": "secret words"}, TokenRefused),
    "no service": (None, None, TokenUnavailable),
}


@pytest.mark.parametrize(("status", "body", "error"), BAD.values(), ids=BAD)
def test_bad_answers(scripted_servers, answer, status, body, error):
    """An answer without a usable token is an error, which names the service and repeats none of the answer."""
    url = "http://127.0.0.1:9" if status is None else scripted_servers(answer(status, body)).url

    with pytest.raises(error, match=r"http://127\.0\.0\.1:\d+/token") as caught:
        ManagedIdentity(f"{url}/token", QUERY)()
    assert "secret" not in str(caught.value)
    assert "a b" not in str(caught.value)


def test_it_pickles(scripted_servers, answer):
    """A client that is sent to another process asks there."""
    service = scripted_servers(answer(body=token()))

    assert {"Authorization": "Bearer first"} == pickle.loads(pickle.dumps(ManagedIdentity(service.url, QUERY)))()


def test_the_resource_is_needed():
    """Without a query, the service would not know for what the token is."""
    with pytest.raises(ValueError, match=r"bearer\.auth\.issuer\.endpoint\.query"):
        ManagedIdentity()
