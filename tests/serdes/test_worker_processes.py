"""Serializers and deserializers work after pickling in a process that shares nothing with this one."""

import asyncio
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest
from google.protobuf.duration_pb2 import Duration

from strata.serdes.aio import AsyncDeserializer, AsyncSerializer
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Rule, RuleSet, Schema
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.protobuf import ProtobufDeserializer, ProtobufSerializer
from strata.serdes.subject_name_strategies import record_name

AVRO = '{"type": "record", "name": "Shipped", "fields": [{"name": "n", "type": "long"}]}'
RULED = Schema(
    AVRO,
    rule_set=RuleSet(domain_rules=(Rule(name="more", type="CEL", mode="WRITE", expr="{'n': message.n + 1}"),)),
)
JSON = '{"title": "Shipped", "type": "object", "properties": {"n": {"type": "integer"}}}'


def times_two(value, context):
    """Double a number; both processes can import this function."""
    return {"n": 2 * value["n"]}


def there_and_back(serialize, deserialize, value, topic):
    """Return the value after a round trip."""
    return deserialize(serialize(value, topic=topic), topic=topic)


def there_and_back_awaited(serialize, deserialize, value, topic):
    """Return the value after a round trip in an event loop."""

    async def run():
        return await deserialize(await serialize(value, topic=topic), topic=topic)

    return asyncio.run(run())


def pairs(client):
    """Return serializers and deserializers of all formats, with settings, a value, and the expected result."""
    named = {"subject.name.strategy": record_name}
    return {
        "avro": (AvroSerializer(client, AVRO, conf=named), AvroDeserializer(client, AVRO), {"n": 1}, {"n": 1}),
        "avro-functions": (AvroSerializer(client, AVRO, times_two), AvroDeserializer(client), {"n": 2}, {"n": 4}),
        "avro-rules": (AvroSerializer(client, RULED), AvroDeserializer(client), {"n": 2}, {"n": 3}),
        "json": (JsonSerializer(client, JSON), JsonDeserializer(client, JSON), {"n": 1}, {"n": 1}),
        "protobuf": (
            ProtobufSerializer(client, Duration),
            ProtobufDeserializer(client, as_dict=True),
            Duration(seconds=5),
            "5s",
        ),
    }


@pytest.fixture(scope="module")
def worker():
    """Yield a process made by `spawn`: it inherits nothing, and gets everything by pickling."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", ["avro", "avro-functions", "avro-rules", "json", "protobuf"])
def test_they_work_in_another_process(client, worker, name):
    """The plain and async serdes work there, pickled before and after their first record."""
    serialize, deserialize, value, expected = pairs(client)[name]

    assert expected == worker.submit(there_and_back, serialize, deserialize, value, f"ship-{name}").result(60)
    assert expected == there_and_back(serialize, deserialize, value, f"ship-{name}")
    awaited = AsyncSerializer(serialize), AsyncDeserializer(deserialize)
    assert expected == worker.submit(there_and_back_awaited, *awaited, value, f"ship-{name}").result(60)


def test_a_pickle_is_as_small_as_what_it_was_made_of(client):
    """A pickle does not contain the caches."""
    for name, (serialize, deserialize, value, _) in pairs(client).items():
        fresh = len(pickle.dumps((serialize, deserialize)))
        there_and_back(serialize, deserialize, value, f"ship-{name}")

        assert fresh == len(pickle.dumps((serialize, deserialize)))


def test_what_does_not_pickle_is_named(client):
    """A function that the other process cannot import is pickle's own error."""
    deserialize = AvroDeserializer(client, from_dict=lambda value, _: value)

    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(deserialize)
