"""The settings and options of this package as types, for type checkers and editors.

    conf: AvroSerializerConf = {"auto.register.schemas": False}

`tests/serdes/test_conf_types.py` compares the names with those that the package knows at run time. Settings of rule
executors under `rule.executors.` have names that no type can list: `rule.conf` takes what all executors get.

Rules of this file: types; nothing is checked here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

__all__ = [
    "AvroDeserializerConf",
    "AvroSerializerConf",
    "ClientConf",
    "ClientOptions",
    "CompatibilityLevel",
    "JsonDeserializerConf",
    "JsonSerializerConf",
    "Mode",
    "ProtobufDeserializerConf",
    "ProtobufSerializerConf",
]

CompatibilityLevel = Literal[
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"
]
Mode = Literal["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"]

_TokenSource = Literal["STATIC_TOKEN", "OAUTHBEARER", "OAUTHBEARER_AZURE_IMDS", "CUSTOM"]
_Strategy = (
    Callable[..., str | None]
    | Literal[
        "TOPIC",
        "RECORD",
        "TOPIC_RECORD",
        "ASSOCIATED",
        "TopicNameStrategy",
        "RecordNameStrategy",
        "TopicRecordNameStrategy",
        "AssociatedNameStrategy",
    ]
)

_Serde = TypedDict(
    "_Serde",
    {
        "use.latest.version": bool,
        "use.latest.with.metadata": Mapping[str, str] | None,
        "latest.cache.ttl.sec": float,
        "subject.name.strategy": _Strategy | None,
        "subject.name.strategy.type": str | None,
        "subject.name.strategy.conf": Mapping[str, object] | None,
        "rule.conf": Mapping[str, object] | None,
        "rule.executors": Mapping[str, Callable[..., object]] | None,
        "rule.actions": Mapping[str, Callable[..., object]] | None,
        "dlq.topic": str | None,
        "dlq.producer": object,
        "dlq.auto.flush": bool,
        "dlq.redact.rule.types": str,
    },
    total=False,
)
_Serializer = TypedDict(
    "_Serializer",
    {
        "auto.register.schemas": bool,
        "normalize.schemas": bool,
        "use.schema.id": int | None,
        "id.compatibility.strict": bool,
        "latest.compatibility.strict": bool,
        "unknown.fields": Literal["refuse", "drop"],
        "schema.id.serializer": Callable[..., bytes] | Literal["prefix", "guid", "header"],
    },
    total=False,
)
_Deserializer = TypedDict(
    "_Deserializer",
    {"schema.id.deserializer": Callable[..., object] | Literal["dual", "prefix"]},
    total=False,
)
_Avro = TypedDict(
    "_Avro",
    {
        "round.times": bool,
        "validate.strict": bool,
        "validate.strict.allow.default": bool,
        "unfit.values": Literal["refuse", "bend"],
    },
    total=False,
)


class _Validation(TypedDict, total=False):
    validate: bool


_Json = TypedDict("_Json", {"unfit.values": Literal["refuse", "bend"]}, total=False)
_Protobuf = TypedDict(
    "_Protobuf",
    {
        "skip.known.types": bool,
        "reference.subject.name.strategy": Callable[..., str | None] | None,
        "use.deprecated.format": Literal[False],
    },
    total=False,
)


class AvroSerializerConf(_Serde, _Serializer, _Avro, total=False):
    """The settings of an Avro serializer."""


class JsonSerializerConf(_Serde, _Serializer, _Validation, _Json, total=False):
    """The settings of a JSON serializer."""


class ProtobufSerializerConf(_Serde, _Serializer, _Protobuf, total=False):
    """The settings of a Protobuf serializer."""


class AvroDeserializerConf(_Serde, _Deserializer, total=False):
    """The settings of an Avro deserializer."""


class JsonDeserializerConf(_Serde, _Deserializer, _Validation, total=False):
    """The settings of a JSON deserializer."""


class ProtobufDeserializerConf(_Serde, _Deserializer, total=False):
    """The settings of a Protobuf deserializer."""


class ClientOptions(TypedDict, total=False):
    """The options of `RegistryClient`: the fields of `ClientSettings`, which describes them, except for the URLs."""

    username: str | None
    password: str | None
    token: str | None
    token_url: str | None
    client_id: str | None
    client_secret: str | None
    scope: str | None
    authorize: Callable[[], Mapping[str, str]] | None
    token_ca_file: str | None
    logical_cluster: str | None
    identity_pool: str | None
    timeout: float
    retries: int
    wait: float | None
    backoff: float
    max_backoff: float
    pool_size: int
    max_answer_bytes: int
    max_answer_seconds: float
    ca_file: str | None
    ca_data: str | None
    cert_file: str | None
    key_file: str | None
    key_password: str | None
    proxy: str | None
    cache_size: int
    missing_ttl: float
    glue_region: str | None
    mock: str | None
    cache_dir: str | None


ClientConf = TypedDict(
    "ClientConf",
    {
        "url": str,
        "basic.auth.user.info": str | None,
        "basic.auth.credentials.source": Literal["USER_INFO", "URL", "SASL_INHERIT"] | None,
        "sasl.mechanism": str | None,
        "sasl.mechanisms": str | None,
        "sasl.username": str | None,
        "sasl.password": str | None,
        "bearer.auth.credentials.source": Literal["STATIC_TOKEN", "OAUTHBEARER", "OAUTHBEARER_AZURE_IMDS", "CUSTOM"]
        | None,
        "bearer.auth.token": str | None,
        "bearer.auth.issuer.endpoint.url": str | None,
        "bearer.auth.issuer.endpoint.query": str | None,
        "bearer.auth.client.id": str | None,
        "bearer.auth.client.secret": str | None,
        "bearer.auth.scope": str | None,
        "bearer.auth.logical.cluster": str | None,
        "bearer.auth.identity.pool.id": str | list[str] | None,
        "bearer.auth.custom.provider.function": Callable[[Any], Mapping[str, object]] | None,
        "bearer.auth.custom.provider.config": Mapping[str, object] | None,
        "ssl.ca.location": str | None,
        "ssl.certificate.location": str | None,
        "ssl.key.location": str | None,
        "ssl.key.password": str | None,
        "proxy": str | None,
        "timeout": float | None,
        "cache.capacity": int | None,
        "cache.latest.ttl.sec": float | None,
        "max.retries": int | None,
        "retries.wait.ms": float | None,
        "retries.max.wait.ms": float | None,
    },
    total=False,
)
"""The settings of `SchemaRegistryClient` under confluent-kafka's names; `url` is required."""
