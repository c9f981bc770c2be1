"""Writes and reads JSON records, with references and without a registry."""

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

SCHEMA = """{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Flight", "description": "A departure", "type": "object",
  "properties": {
    "carrier": {"description": "Two letters", "type": "string"},
    "delay": {"type": "number"}
  },
  "required": ["carrier", "delay"]
}"""
AIRPORT = '{"$schema": "http://json-schema.org/draft-07/schema#", "$id": "http://example.com/airport.json", "title": "Airport", "type": "string"}'
TRIP = '{"$schema": "http://json-schema.org/draft-07/schema#", "$id": "http://example.com/trip.json", "title": "Trip", "type": "object", "properties": {"from": {"$ref": "http://example.com/airport.json"}}}'


class Flight:
    def __init__(self, carrier, delay):
        self.carrier, self.delay = carrier, delay


def main(url):
    client = SchemaRegistryClient({"url": url})
    ctx = SerializationContext("flights-json", MessageField.VALUE)
    serialize = JSONSerializer(SCHEMA, client, lambda flight, ctx: {"carrier": flight.carrier, "delay": flight.delay})
    frame = serialize(Flight("UA", 1.5), ctx)
    print(frame)
    print(vars(JSONDeserializer(SCHEMA, from_dict=lambda values, ctx: Flight(**values))(frame, ctx)))
    print(JSONDeserializer(None, schema_registry_client=client)(frame, ctx))
    try:
        serialize(Flight(5, 1), ctx)
    except SerializationError:
        print("refused")
    try:
        JSONDeserializer(SCHEMA)(frame[:5] + b'{"carrier": "UA"}', ctx)
    except SerializationError:
        print("refused")
    print(JSONSerializer(SCHEMA, client, conf={"validate": False})({"carrier": 5}, ctx))
    client.register_schema("airport", Schema(AIRPORT, "JSON"))
    trip = Schema(TRIP, "JSON", [SchemaReference("http://example.com/airport.json", "airport", 1)])
    trips = SerializationContext("trips", MessageField.VALUE)
    frame = JSONSerializer(trip, client)({"from": "JFK"}, trips)
    print(frame, JSONDeserializer(trip, None, client)(frame, trips))
    import json

    encoded = JSONSerializer(SCHEMA, client, json_encode=lambda value: json.dumps(value, indent=1))
    frame = encoded({"carrier": "AA", "delay": 2}, ctx)
    print(frame, JSONDeserializer(SCHEMA, json_decode=json.loads)(frame, ctx))
    client.close()
