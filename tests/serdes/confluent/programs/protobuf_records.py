"""Writes and reads Protobuf records."""

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message_factory import GetMessageClass

NUMBER, TEXT = descriptor_pb2.FieldDescriptorProto.TYPE_INT64, descriptor_pb2.FieldDescriptorProto.TYPE_STRING


def message_classes():
    """Return two generated classes, one nested in the other's file, as protoc would make them."""
    pool = descriptor_pool.DescriptorPool()
    airport = descriptor_pb2.FileDescriptorProto(name="program/airport.proto", package="program", syntax="proto3")
    airport.message_type.add(name="Airport").field.add(name="code", number=1, type=TEXT, label=1)
    flight = descriptor_pb2.FileDescriptorProto(name="program/flight.proto", package="program", syntax="proto3")
    flight.dependency.append("program/airport.proto")
    message = flight.message_type.add(name="Flight")
    message.field.add(name="carrier", number=1, type=TEXT, label=1)
    message.field.add(name="delay", number=2, type=NUMBER, label=1)
    message.field.add(name="origin", number=3, type=11, type_name=".program.Airport", label=1)
    flight.message_type.add(name="Other").field.add(name="n", number=1, type=NUMBER, label=1)
    for file in (airport, flight):
        pool.Add(file)
    return [GetMessageClass(pool.FindMessageTypeByName(f"program.{name}")) for name in ("Flight", "Other", "Airport")]


def main(url):
    Flight, Other, Airport = message_classes()
    client = SchemaRegistryClient({"url": url})
    ctx = SerializationContext("flights-protobuf", MessageField.VALUE)
    serialize = ProtobufSerializer(Flight, client, {"use.deprecated.format": False})
    frame = serialize(Flight(carrier="UA", delay=11, origin=Airport(code="JFK")), ctx)
    print(frame)
    print(ProtobufDeserializer(Flight, {"use.deprecated.format": False})(frame, ctx))
    print(ProtobufDeserializer(Flight, schema_registry_client=client)(frame, ctx).origin.code)
    frame = ProtobufSerializer(Other, client, {"subject.name.strategy.type": "RECORD"})(Other(n=3), ctx)
    print(frame, ProtobufDeserializer(Other)(frame, ctx).n)
    print(sorted(client.get_subjects()))
    try:
        serialize(Other(n=1), ctx)
    except ValueError:
        print("refused")
    conf = {"reference.subject.name.strategy": lambda ctx, file: "refs/" + file.name}
    print(
        ProtobufSerializer(Flight, client, conf)(
            Flight(carrier="B6"), SerializationContext("others", MessageField.VALUE)
        )
    )
    print(sorted(client.get_subjects("refs/")))
    client.close()
