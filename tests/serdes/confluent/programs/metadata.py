"""Finds versions by metadata, associates subjects with topics, and changes the mode of the registry."""

from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}%s]}'
MORE = ', {"name": "note", "type": "string", "default": ""}'
USER = '{"type": "record", "name": "User", "fields": [{"name": "order", "type": "Order"}]}'


def versions(major, more=""):
    metadata = Metadata(None, MetadataProperties({"application.major.version": major}), ["owner"])
    return Schema(SCHEMA % more, "AVRO", metadata=metadata)


def main(url):
    client = SchemaRegistryClient.new_client({"url": url, "timeout": 30})
    print(sorted(client.config()) == ["timeout", "url"])
    print(
        client.register_schema("orders-value", versions("1")),
        client.register_schema("orders-value", versions("2", MORE)),
    )
    first = client.get_latest_with_metadata("orders-value", {"application.major.version": "1"})
    print(first.version, first.schema.metadata.properties.properties, first.schema.schema_str)
    try:
        client.get_latest_with_metadata("orders-value", {"application.major.version": "9"})
    except SchemaRegistryError as error:
        print(error.http_status_code, error.error_code)

    ctx = SerializationContext("orders", MessageField.VALUE)
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    chosen = {"auto.register.schemas": False, "use.latest.with.metadata": {"application.major.version": "1"}}
    for conf in (latest, chosen):
        print(AvroSerializer(client, conf=conf)({"id": 7, "note": "n"} if conf is latest else {"id": 7}, ctx))
    frame = AvroSerializer(client, conf=latest)({"id": 7, "note": "n"}, ctx)
    reading = {"use.latest.with.metadata": {"application.major.version": "1"}}
    print(AvroDeserializer(client, conf=reading)(frame, ctx))

    reference = SchemaReference(name="Order", subject="orders-value", version=2)
    user = Schema(USER, "AVRO", references=[reference])
    print(client.register_schema("users-value", user), client.get_referenced_by("orders-value", 2))
    ctx = SerializationContext("users", MessageField.VALUE)
    frame = AvroSerializer(client, user)({"order": {"id": 1, "note": ""}}, ctx)
    print(frame, AvroDeserializer(client)(frame, ctx))

    info = AssociationCreateOrUpdateInfo(subject="orders-value", association_type="value", lifecycle="WEAK")
    request = AssociationCreateOrUpdateRequest("orders", "lkc-1", "lkc-1:orders", "topic", [info])
    made = client.create_association(request)
    print(
        made.resource_name, made.resource_namespace, [(one.subject, one.association_type) for one in made.associations]
    )
    for types in (None, ["value"], ["key"]):
        found = client.get_associations_by_resource_name("orders", "lkc-1", "topic", types)
        print([(one.subject, one.resource_id, one.association_type, one.frozen) for one in found])
    ctx = SerializationContext("orders", MessageField.VALUE)
    named = {
        **latest,
        "subject.name.strategy.type": "ASSOCIATED",
        "subject.name.strategy.conf": {"subject.name.strategy.kafka.cluster.id": "lkc-1"},
    }
    print(AvroSerializer(client, conf=named)({"id": 7, "note": "n"}, ctx))
    print(client.delete_associations("lkc-1:orders", "topic", ["value"], cascade_lifecycle=False))
    print(client.get_associations_by_resource_name("orders", "lkc-1"))

    print(client.get_global_mode(), client.update_global_mode("READONLY"), client.get_global_mode())
    try:
        client.register_schema("late-value", Schema('"int"', "AVRO"))
    except SchemaRegistryError as error:
        print(error.http_status_code, error.error_code)
    print(client.update_global_mode("READWRITE", force=True))
    client.close()
