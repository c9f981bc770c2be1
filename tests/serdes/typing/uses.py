"""Right and wrong uses of the package: each line that a type checker refuses says so in a comment."""

from dataclasses import dataclass
from typing import Any, assert_type

from google.protobuf.timestamp_pb2 import Timestamp

from strata.serdes import (
    AsyncDeserializer,
    AvroDeserializer,
    AvroDeserializerConf,
    AvroSerializer,
    AvroSerializerConf,
    ClientConf,
    ClientOptions,
    ClientSettings,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    RecordContext,
    Registry,
    RegistryClient,
)


@dataclass
class Flight:
    """What programs make of values."""

    carrier: str
    delay: int


def to_dict(flight: Flight, context: RecordContext) -> dict[str, Any]:
    """Return the value of a schema."""
    return {"carrier": flight.carrier, "delay": flight.delay, "topic": context.topic}


def from_dict(value: dict[str, Any], context: RecordContext) -> Flight:
    """Return an object."""
    return Flight(value["carrier"], value["delay"])


# Options of the client

client = RegistryClient("http://localhost:8081", timeout=3, retries=0, cache_dir="cache")
options: ClientOptions = {"timeout": 3.5, "username": "ann", "password": "x"}
RegistryClient("http://localhost:8081", **options)
ClientSettings.of("http://localhost:8081", wait=None)
RegistryClient("http://localhost:8081", timeot=3)  # error
RegistryClient("http://localhost:8081", timeout="abc")  # error
ClientSettings.of("http://localhost:8081", retires=1)  # error
wrong_options: ClientOptions = {"timeot": 3}  # error
conf: ClientConf = {"url": "http://localhost:8081", "basic.auth.user.info": "ann:x", "max.retries": 3}
ClientSettings.from_conf(conf)
ClientSettings.from_conf({"url": "http://localhost:8081", "max.retry": 3})  # error
ClientSettings.from_conf({"url": "http://localhost:8081", "timeout": "abc"})  # error
client.set_config("FULL", "flights-value")
client.set_config(compatibility="FULLL")  # error
client.set_mode("READONLY")
client.set_mode("readonly")  # error

# Settings of serializers and deserializers

AvroSerializer(client, "schema", conf={"auto.register.schemas": False, "unfit.values": "bend"})
AvroSerializer(client, "schema", conf={"auto.register.schema": False})  # error
AvroSerializer(client, "schema", conf={"auto.register.schemas": "no"})  # error
AvroSerializer(client, "schema", conf={"unfit.values": "break"})  # error
AvroSerializer(client, "schema", conf={"validate": False})  # error
AvroSerializer(client, "schema", conf={"subject.name.strategy": "TOPICS"})  # error
AvroSerializer(client, "schema", conf={"subject.name.strategy": "TOPIC", "rule.conf": {"secret": "x"}})
JsonSerializer(client, "schema", conf={"validate": False})
JsonSerializer(client, "schema", conf={"round.times": True})  # error
ProtobufSerializer(client, Timestamp, {"skip.known.types": True})
ProtobufSerializer(client, Timestamp, {"use.deprecated.format": True})  # error
AvroDeserializer(client, conf={"use.latest.version": True})
AvroDeserializer(client, conf={"auto.register.schemas": True})  # error
writing: AvroSerializerConf = {"use.schema.id": 7, "auto.register.schemas": False}
reading: AvroDeserializerConf = {"schema.id.deserializer": "dual"}
AvroSerializer(client, "schema", conf=writing)
AvroDeserializer(client, conf=reading)
AvroDeserializer(client, conf=writing)  # error

# Values

serialize = AvroSerializer[Flight](client, "schema", to_dict)
assert_type(serialize(Flight("UA", 11), topic="flights"), bytes | None)
serialize(None)
serialize({"carrier": "UA"})  # error
deserialize = AvroDeserializer(client, None, from_dict)
assert_type(deserialize(b"", topic="flights"), Flight | None)
typed: AvroDeserializer[Flight] = AvroDeserializer(client, from_dict=from_dict)
plain: AvroDeserializer[dict[str, Any]] = AvroDeserializer(client)
assert_type(plain(b""), dict[str, Any] | None)
anything = AvroDeserializer(client)(b"")
AvroSerializer(client, "schema")({"any": "value"})
JsonDeserializer[Flight](client, from_dict=from_dict)
wrong: AvroDeserializer[int] = AvroDeserializer(client, from_dict=from_dict)  # error
assert_type(ProtobufDeserializer(client, Timestamp)(b""), Timestamp | None)
ProtobufDeserializer[Timestamp](client, Timestamp)
ProtobufDeserializer(client, 7)  # error
ProtobufSerializer(client, Timestamp)(Timestamp(seconds=1), topic="times")
ProtobufSerializer(client, Timestamp)({"seconds": 1})  # error
assert_type(ProtobufDeserializer(client, Flight)(b""), Flight | None)
ProtobufSerializer(client, Flight)(Timestamp())  # error
as_dicts = ProtobufDeserializer(client, as_dict=True)(b"")


async def read(data: bytes) -> Flight | None:
    """Read in an event loop."""
    return await AsyncDeserializer(typed)(data, topic="flights")


# Stand-ins for the client


def program(registry: Registry) -> None:
    """Take any registry."""
    AvroDeserializer(registry)


program(client)
program(RegistryClient("mock://"))
program("http://localhost:8081")  # error
