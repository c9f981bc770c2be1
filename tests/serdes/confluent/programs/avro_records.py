"""Writes and reads Avro records by functions between objects and dicts."""

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, StringSerializer

SCHEMA = """{
  "namespace": "flights.avro", "name": "Flight", "type": "record",
  "fields": [
    {"name": "carrier", "type": "string"},
    {"name": "delay", "type": "long"},
    {"name": "gate", "type": ["null", "string"], "default": null}
  ]
}"""
WIDER = SCHEMA.replace('"default": null}', '"default": null}, {"name": "origin", "type": "string", "default": "JFK"}')


class Flight:
    def __init__(self, carrier, delay, gate, secret):
        self.carrier, self.delay, self.gate, self._secret = carrier, delay, gate, secret


def flight_to_dict(flight, ctx):
    return {"carrier": flight.carrier, "delay": flight.delay, "gate": flight.gate}


def dict_to_flight(values, ctx):
    return None if values is None else Flight(secret=ctx.topic, **values)


def main(url):
    client = SchemaRegistryClient({"url": url})
    serialize = AvroSerializer(client, SCHEMA, flight_to_dict)
    deserialize = AvroDeserializer(client, SCHEMA, dict_to_flight)
    ctx = SerializationContext("flights-avro", MessageField.VALUE)
    for flight in (Flight("UA", 11, None, "x"), Flight("AA", -4, "C7", "y")):
        frame = serialize(flight, ctx)
        print(frame)
        print(vars(deserialize(frame, ctx)))
    print(serialize(None, ctx), deserialize(None, ctx))
    print(StringSerializer("utf_8")("key"))
    key = AvroSerializer(client, '"string"')("k1", SerializationContext("flights-avro", MessageField.KEY))
    print(key, AvroDeserializer(client)(key, SerializationContext("flights-avro", MessageField.KEY)))
    print(AvroDeserializer(client, WIDER.replace('"Flight"', '"Flight"'))(frame, ctx))
    registered = client.get_latest_version("flights-avro-value")
    print(registered.schema_id, registered.version, registered.subject, registered.schema.schema_type)
    strict = {"auto.register.schemas": False, "use.latest.version": True}
    print(AvroSerializer(client, SCHEMA, flight_to_dict, strict)(Flight("DL", 0, "A1", "z"), ctx))
    print(AvroSerializer(client, schema_str=None, conf={**strict})({"carrier": "B6", "delay": 3, "gate": None}, ctx))
    union = '[{"type": "record", "name": "A", "fields": []}, {"type": "record", "name": "B", "fields": [{"name": "n", "type": "int"}]}]'
    frame = AvroSerializer(client, union)({"n": 5}, SerializationContext("unions", MessageField.VALUE))
    print(
        frame,
        AvroDeserializer(client, return_record_name=True)(frame, SerializationContext("unions", MessageField.VALUE)),
    )
    named = ("B", {"n": 6})
    print(AvroSerializer(client, union)(named, SerializationContext("unions", MessageField.VALUE)))
    client.close()
