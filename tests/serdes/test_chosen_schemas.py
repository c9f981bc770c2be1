"""A serializer without a schema of its own takes one from the registry, which a setting selects."""

import pickle

import pytest

from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Metadata, Schema
from strata.serdes.errors import EncodeError, NoSubject, RegistryError
from strata.serdes.framing import split
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer

AVRO = '{"type":"record","name":"n.Chosen","fields":[{"name":"x","type":"int"}]}'
JSON = '{"title": "Chosen", "properties": {"x": {"type": "integer"}}}'
FORMATS = [
    pytest.param(AvroSerializer, AvroDeserializer, Schema(AVRO), id="Avro"),
    pytest.param(JsonSerializer, JsonDeserializer, Schema(JSON, "JSON"), id="JSON"),
]
LATEST = {"use.latest.version": True, "auto.register.schemas": False}


@pytest.mark.parametrize(("serializer", "deserializer", "schema"), FORMATS)
def test_the_registry_has_it(client, serializer, deserializer, schema):
    """The schema is selected by id, as the latest version or by its metadata, also by a pickled copy."""
    topic = f"chosen-{schema.format}".lower()
    marked = Schema(schema.text, schema.format, metadata=Metadata(properties={"major": topic}))
    found = client.register(f"{topic}-value", marked)
    for conf in ({"use.schema.id": found.schema_id}, LATEST, {"use.latest.with.metadata": {"major": topic}}):
        for serialize in (one := serializer(client, None, conf=conf), pickle.loads(pickle.dumps(one))):
            frame = serialize({"x": 5}, topic=topic)

            assert found.schema_id == split(frame)[0]
            assert {"x": 5} == deserializer(client)(frame)
        with pytest.raises(EncodeError):
            serialize({"x": "5"}, topic=topic)


@pytest.mark.parametrize(("serializer", "deserializer", "schema"), FORMATS)
def test_a_setting_must_say_which(client, serializer, deserializer, schema):
    """A serializer without a schema or such a setting is refused when it is made."""
    for conf in (None, {"auto.register.schemas": False}):
        with pytest.raises(ValueError, match=r"expected a schema or one of the settings use\.schema\.id"):
            serializer(client, None, conf=conf)


@pytest.mark.parametrize(("serializer", "deserializer", "schema"), FORMATS)
def test_it_has_no_name(client, serializer, deserializer, schema):
    """A strategy by record name has no subject here; one by topic may have no version yet."""
    with pytest.raises(NoSubject, match="needs a named record"):
        serializer(client, None, conf={**LATEST, "subject.name.strategy.type": "RECORD"})({"x": 1}, topic="chosen-none")
    with pytest.raises(RegistryError, match="not found"):
        serializer(client, None, conf=LATEST)({"x": 1}, topic="chosen-none")
