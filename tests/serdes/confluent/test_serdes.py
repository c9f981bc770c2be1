"""The serializers with confluent-kafka's names: settings, errors, clients of others, caches."""

import pickle
import subprocess
import sys
from unittest import mock

import confluent_kafka.schema_registry as theirs
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

from strata.serdes import EncodeError, RegistryError, RegistryUnavailable
from strata.serdes.confluent import RegisteredSchema, Schema, SchemaRegistryClient, SchemaRegistryError
from strata.serdes.confluent.avro import AvroDeserializer, AvroSerializer
from strata.serdes.confluent.settings import client_settings

SCHEMA = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}'
WIDER = SCHEMA.replace("}]", '}, {"name": "m", "type": "int", "default": 7}]')
CONTEXT = SerializationContext("serdes-confluent", MessageField.VALUE)
URL = "http://127.0.0.1:9"


@pytest.fixture
def confluent(registry_url):
    """Yield a client with confluent-kafka's names."""
    with SchemaRegistryClient({"url": registry_url}) as one:
        yield one


def _provider(config):
    return {"bearer.auth.token": config["token"], "bearer.auth.logical.cluster": "lsrc-1"}


SETTINGS = [
    ({"ssl.key.password": "p"}, {"key_password": "p"}),
    ({"max.retries": 5, "retries.wait.ms": 50, "retries.max.wait.ms": 100}, {"retries": 5, "backoff": 0.05}),
    ({}, {"retries": 2, "backoff": 1.0, "max_backoff": 20.0, "cache_size": 1000}),
    ({"timeout": 3}, {"timeout": 3.0}),
    ({"basic.auth.user.info": "u:p:q"}, {"username": "u", "password": "p:q"}),
    ({"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "u:p"}, {"username": "u"}),
    (
        {
            "basic.auth.credentials.source": "SASL_INHERIT",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "p",
        },
        {"username": "u", "password": "p"},
    ),
    ({"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "t"}, {"token": "t"}),
]


@pytest.mark.parametrize(("conf", "expected"), SETTINGS)
def test_client_settings(conf, expected):
    """A setting has the effect of its name."""
    settings = client_settings({"url": URL, **conf})

    assert expected == {name: getattr(settings, name) for name in expected}


def test_url_credentials():
    """Credentials in the URL are used, and never shown."""
    settings = client_settings({"url": "http://u:p@127.0.0.1:9", "basic.auth.credentials.source": "URL"})

    assert ("u", "p", (URL,)) == (settings.username, settings.password, settings.urls)


WRONG = [
    ({}, "url"),
    ({"url": URL, "timeot": 3}, "did you mean 'timeout'"),
    ({"url": URL, "basic.auth.credentials.source": "NOPE"}, "expected USER_INFO, URL, SASL_INHERIT"),
    ({"url": URL, "basic.auth.credentials.source": "SASL_INHERIT"}, "sasl.username"),
    ({"url": URL, "basic.auth.credentials.source": "SASL_INHERIT", "sasl.mechanism": "GSSAPI"}, "GSSAPI"),
    ({"url": URL, "basic.auth.credentials.source": "USER_INFO"}, "basic.auth.user.info"),
    ({"url": URL, "bearer.auth.credentials.source": "CUSTOM"}, "bearer.auth.custom.provider.function"),
    ({"url": URL, "bearer.auth.credentials.source": "OAUTHBEARER_AZURE_IMDS"}, "issuer.endpoint.query"),
    (
        {"url": URL, "bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "t"}
        | {"bearer.auth.issuer.endpoint.query": "resource=x"},
        "OAUTHBEARER_AZURE_IMDS",
    ),
    ({"url": URL, "cache.latest.ttl.sec": "x"}, "cache.latest.ttl.sec"),
    ({"url": URL, "timeout": "abc"}, "timeout"),
]


@pytest.mark.parametrize(("conf", "words"), WRONG)
def test_wrong_client_settings(conf, words):
    """A wrong setting is a ValueError that names it."""
    with pytest.raises(ValueError, match=words):
        SchemaRegistryClient(conf)


def test_custom_provider(scripted_servers, answer):
    """A function of the caller gives the token of each attempt, and its logical cluster; another one after a 401."""
    server = scripted_servers(answer(401, {"error_code": 401, "message": "no"}), answer(body=["a"]))
    tokens = iter(["first", "second"])
    conf = {
        "url": server.url,
        "bearer.auth.credentials.source": "CUSTOM",
        "bearer.auth.custom.provider.function": lambda config: _provider({"token": next(tokens)}),
        "bearer.auth.custom.provider.config": {},
    }

    with SchemaRegistryClient(conf) as client:
        assert ["a"] == client.get_subjects()
    sent = [(one.headers["Authorization"], one.headers["target-sr-cluster"]) for one in server.requests]
    assert [("Bearer first", "lsrc-1"), ("Bearer second", "lsrc-1")] == sent


def test_custom_provider_fails(scripted_servers, answer):
    """A function that gives no token is an OAuthTokenError without its data."""
    from strata.serdes.confluent.error import OAuthTokenError

    server = scripted_servers(answer(body=[]))
    conf = {
        "url": server.url,
        "bearer.auth.credentials.source": "CUSTOM",
        "bearer.auth.custom.provider.function": lambda config: {"secret": "x"},
        "bearer.auth.custom.provider.config": {},
    }

    with SchemaRegistryClient(conf) as client, pytest.raises(OAuthTokenError, match="expected bearer"):
        client.get_subjects()


def test_errors_have_both_names(confluent):
    """A refused value is caught by confluent-kafka's names, by Python's and by ours."""
    serialize = AvroSerializer(confluent, SCHEMA)

    for kind in (SerializationError, KafkaException, ValueError, TypeError, EncodeError):
        with pytest.raises(kind, match="at field n"):
            serialize({"n": "x"}, CONTEXT)


def test_unavailable():
    """A registry that does not answer is a SchemaRegistryError and a RegistryUnavailable."""
    with SchemaRegistryClient({"url": URL, "max.retries": 0}) as client:
        for kind in (SchemaRegistryError, RegistryUnavailable):
            with pytest.raises(kind, match="does not answer"):
                client.get_subjects()


def test_persistent_status(scripted_servers, answer):
    """A status after all retries is in the error."""
    server = scripted_servers(answer(503, {"error_code": 50302, "message": "later"}))
    conf = {"url": server.url, "max.retries": 1, "retries.wait.ms": 1}

    with SchemaRegistryClient(conf) as client, pytest.raises(SchemaRegistryError) as caught:
        client.get_subjects()
    assert (503, 50302, 2) == (caught.value.http_status_code, caught.value.error_code, len(server.requests))


def test_pickles(confluent):
    """Clients and errors survive pickling."""
    error = pickle.loads(pickle.dumps(SchemaRegistryError(404, 40401, "m")))

    assert ("m (HTTP status code 404, SR code 40401)", 404) == (str(error), error.http_status_code)
    with pickle.loads(pickle.dumps(confluent)) as other:
        assert confluent.config() == other.config()


def test_their_client(registry_url):
    """A client of confluent-kafka serves our serializers, with its errors as ours."""
    with theirs.SchemaRegistryClient({"url": registry_url}) as client:
        context = SerializationContext("their-client", MessageField.VALUE)
        frame = AvroSerializer(client, SCHEMA)({"n": 1}, context)

        assert TheirSerializer(client, SCHEMA)({"n": 1}, context) == frame
        assert {"n": 1, "m": 7} == AvroDeserializer(client, WIDER)(frame, context)
        with pytest.raises(SchemaRegistryError) as caught:
            AvroDeserializer(client)(b"\0\0\0\x7f\xff\0", context)
        assert 404 == caught.value.http_status_code


class OneId(SchemaRegistryClient):
    """A client whose registration is a program's own."""

    def register_schema_full_response(self, subject_name, schema, normalize_schemas=False):
        """Return one id."""
        return RegisteredSchema(subject_name, 1, 77, None, schema)


def test_subclass_is_called():
    """The methods of a subclass are called."""
    with OneId({"url": URL, "max.retries": 0}) as client:
        conf = {"subject.name.strategy.type": "TOPIC"}

        assert b"\0\0\0\0\x4d\2" == AvroSerializer(client, SCHEMA, conf=conf)({"n": 1}, CONTEXT)


def test_autospec():
    """A stand-in that mocks the client serves, and is asked for what is needed."""
    client = mock.create_autospec(SchemaRegistryClient, instance=True)
    client.register_schema_full_response.return_value = RegisteredSchema("s", 1, 5, None, Schema(SCHEMA))
    client.get_schema.return_value = Schema(SCHEMA)

    frame = AvroSerializer(client, SCHEMA)({"n": 1}, CONTEXT)

    assert b"\0\0\0\0\5\2" == frame
    assert {"n": 1} == AvroDeserializer(client)(frame, CONTEXT)
    client.register_schema_full_response.assert_called_once()


def test_latest_is_kept_and_forgotten(confluent):
    """The latest version is kept until `clear_latest_caches`, or for `cache.latest.ttl.sec` seconds."""
    context = SerializationContext("latest-kept", MessageField.VALUE)
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    confluent.register_schema("latest-kept-value", Schema(SCHEMA))
    serialize = AvroSerializer(confluent, SCHEMA, conf=conf)
    first = serialize({"n": 1}, context)
    confluent.register_schema("latest-kept-value", Schema(WIDER))

    assert first == serialize({"n": 1}, context)
    confluent.clear_latest_caches()
    assert first + b"\x0e" == first[:5] + serialize({"n": 1}, context)[5:]
    with SchemaRegistryClient({**confluent.config(), "cache.latest.ttl.sec": 0}) as client:
        assert 0 == AvroSerializer(client, SCHEMA, conf=conf).engine._settings.latest_cache_ttl_sec


def test_latest_is_not_compared(confluent):
    """As in confluent-kafka, the latest version need not read the local schema, unless a setting says so."""
    other = SCHEMA.replace('"n"', '"k"')
    confluent.register_schema("uncompared-value", Schema(other))
    context = SerializationContext("uncompared", MessageField.VALUE)
    conf = {"auto.register.schemas": False, "use.latest.version": True}

    assert b"\2" == AvroSerializer(confluent, SCHEMA, conf=conf)({"k": 1}, context)[5:]
    with pytest.raises(SerializationError, match="cannot read"):
        AvroSerializer(confluent, SCHEMA, conf={**conf, "latest.compatibility.strict": True})({"k": 1}, context)


def test_frame_error_has_place(confluent):
    """What is not a frame is an error with the topic."""
    with pytest.raises(SerializationError, match="wrong magic byte 0x05"):
        AvroDeserializer(confluent)(b"\5zzzzzz", CONTEXT)


def test_registry_error_is_ours_too(confluent):
    """A refusal of the registry is caught by our name, too."""
    with pytest.raises(RegistryError) as caught:
        confluent.get_schema(123456)
    assert 40403 == caught.value.error_code


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({"auto.register.schema": True}, "did you mean 'auto.register.schemas'"),
        ({"subject.name.strategy": "TOPIC"}, "subject.name.strategy.type"),
        ({"subject.name.strategy.type": "TOPICS"}, "did you mean 'TOPIC'"),
        ({"use.latest.version": True}, "auto.register.schemas"),
        ({"validation.rules.execution": "BEFORE_DOMAIN_RULES"}, "DISABLED"),
        ({"unfit.values": "break"}, "refuse or bend"),
    ],
)
def test_wrong_settings(confluent, conf, words):
    """A wrong setting is a ValueError that says what is allowed."""
    with pytest.raises(ValueError, match=words):
        AvroSerializer(confluent, SCHEMA, conf=conf)


def test_wrong_order(confluent):
    """Arguments in the order of another class are named."""
    with pytest.raises(TypeError, match="schema_registry_client: expected a SchemaRegistryClient, got str"):
        AvroSerializer(SCHEMA, confluent)


def test_without_confluent_kafka():
    """Everything but Kafka's own classes works where confluent-kafka is not installed."""
    program = """
import sys
sys.modules["confluent_kafka"] = None
from strata.serdes.confluent import MessageField, SerializationContext, SerializationError
from strata.serdes.confluent.avro import AvroDeserializer, AvroSerializer
from strata.serdes.confluent import RegisteredSchema, Schema

class Registry:
    def register_schema_full_response(self, subject, schema, normalize):
        return RegisteredSchema(subject, 1, 5, None, schema)

    def get_latest_version(self, subject):
        raise NotImplementedError

serialize = AvroSerializer(Registry(), '"int"')
print(serialize(1, SerializationContext("t", MessageField.VALUE)), str(MessageField.KEY))
try:
    serialize("x", SerializationContext("t", MessageField.VALUE))
except SerializationError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert ["b'\\x00\\x00\\x00\\x00\\x05\\x02' key", "expected an integer, got str"] == printed.stdout.splitlines()
