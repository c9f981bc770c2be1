"""Settings, references and asyncio work alike for all serializers and deserializers."""

import asyncio
import threading

import pytest

from strata.serdes.aio import AsyncDeserializer, AsyncSerializer, call
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.errors import NoSubject, RegistryError, SchemaError, SerdeError
from strata.serdes.framing import join, split
from strata.serdes.json_schema import JsonDeserializer, JsonSerializer
from strata.serdes.references import MAX_DEPTH, resolve
from strata.shared_cache import SharedCache

TEXT = '{"type":"record","name":"a.R","fields":[{"name":"n","type":"int"}]}'
WIDER = '{"type":"record","name":"a.R","fields":[{"name":"n","type":"long"}]}'
MORE = '{"type":"record","name":"a.R","fields":[{"name":"n","type":"int"},{"name":"m","type":"int"}]}'
OFF = {"auto.register.schemas": False}


def associate(client, topic, subject, kind="value"):
    """Associate a topic's records with a subject in the registry."""
    client._transport.request(
        "POST",
        "/associations",
        body={
            "resourceName": topic,
            "resourceNamespace": "lkc",
            "resourceId": f"id-{topic}",
            "resourceType": "topic",
            "associations": [{"subject": subject, "associationType": kind, "lifecycle": "WEAK"}],
        },
    )


def test_the_associated_subject(client):
    """The registry's association of a topic wins over the subject name that the topic implies."""
    client.register("elsewhere", TEXT)
    associate(client, "associated", "elsewhere")

    AvroSerializer(client, TEXT)({"n": 1}, topic="associated")

    assert "associated-value" not in client.get_subjects()
    assert [1] == client.get_versions("elsewhere")


def test_no_fall_back(client):
    """With the fallback NONE a topic without association is an error."""
    conf = {"subject.name.strategy.conf": {"subject.name.strategy.fallback.type": "NONE"}}
    with pytest.raises(NoSubject, match="no associated subject"):
        AvroSerializer(client, TEXT, conf=conf)({"n": 1}, topic="unassociated")


@pytest.mark.parametrize("status", [404, 403])
def test_a_registry_without_associations(scripted_servers, answer, status):
    """Status 404 means that there are no associations; another refusal is an error."""
    server = scripted_servers(answer(status, {"error_code": status, "message": "no"}), answer(body={"id": 3}))
    with RegistryClient(server.url) as client:
        serialize = AvroSerializer(client, TEXT)
        if status == 404:
            assert join(3, b"\x02") == serialize({"n": 1}, topic="t")
        else:
            with pytest.raises(RegistryError):
                serialize({"n": 1}, topic="t")


def test_contexts(client):
    """Ids belong to the context of the subject, for reading too."""
    client.register("ctx-default", '"string"')
    client.register(":.other:ctx-shared", '"long"')

    def strategy(context, record):
        return f":.other:{context.topic}-value"

    conf = {"subject.name.strategy": strategy}
    frame = AvroSerializer(client, TEXT, conf=conf)({"n": 1}, topic="ctx")

    assert split(frame)[0] == client.get_version(":.other:ctx-value").schema_id
    assert {"n": 1} == AvroDeserializer(client, conf=conf)(frame, topic="ctx")


def test_the_chosen_schema_goes_before_registering(client):
    """`use.schema.id` works without turning off registration, as in Confluent's Python client."""
    chosen = client.register("chosen-first", WIDER).schema_id

    assert chosen == split(AvroSerializer(client, TEXT, conf={"use.schema.id": chosen})({"n": 1}, topic="x"))[0]


def test_the_latest_with_metadata(client):
    """`use.latest.with.metadata` selects the newest version whose metadata has the properties."""
    for text, stage in ((TEXT, "live"), (WIDER, "test")):
        body = {"schema": text, "metadata": {"properties": {"stage": stage}}}
        client._transport.request("POST", "/subjects/meta-value/versions", body=body)
    conf = {"use.latest.with.metadata": {"stage": "live"}}

    frame = AvroSerializer(client, TEXT, conf=conf)({"n": 1}, topic="meta")

    assert client.get_version("meta-value", 1).schema_id == split(frame)[0]


@pytest.mark.parametrize("name", ["latest", "id"])
def test_the_registrys_schema_must_read_the_local_one(client, name):
    """The check applies unless `latest.compatibility.strict` or `id.compatibility.strict` is off."""
    found = client.register(f"strict-{name}-value", MORE)
    use = {"use.latest.version": True} if name == "latest" else {"use.schema.id": found.schema_id}
    value = {"n": 1, "m": 2}
    with pytest.raises(SchemaError, match="READER_FIELD_MISSING_DEFAULT_VALUE"):
        AvroSerializer(client, TEXT, conf=OFF | use)(value, topic=f"strict-{name}")

    loose = AvroSerializer(client, TEXT, conf=OFF | use | {f"{name}.compatibility.strict": False})

    assert value == AvroDeserializer(client)(loose(value, topic=f"strict-{name}"))


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"use.schema.id": "5"}, "use.schema.id: expected a schema id or None, got '5'"),
        ({"schema.id.serializer": "tail"}, "expected a function, prefix or guid or header"),
        ({"use.latest.with.metadata": {"a": 1}}, "a dict of strings"),
        ({"subject.name.strategy.type": "X"}, "unknown subject name strategy 'X'"),
        ({"subject.name.strategy.conf": {"x": 1}}, "unknown settings x"),
        ({"subject.name.strategy.conf": {"subject.name.strategy.fallback.type": "ASSOCIATED"}}, "expected TOPIC"),
        ({"validate": True}, "unknown setting .validate.; did you mean"),
    ],
)
def test_bad_settings_are_refused(client, conf, says):
    """The error names the setting and the allowed values."""
    with pytest.raises(ValueError, match=says):
        AvroSerializer(client, TEXT, conf=conf)


def test_only_the_prefix_is_looked_at_when_told_so(client):
    """With `prefix` a wrong header is ignored."""
    frame = AvroSerializer(client, TEXT)({"n": 1}, topic="lies")
    headers = [("__value_schema_id", b"\x01" + bytes(16))]

    assert {"n": 1} == AvroDeserializer(client, conf={"schema.id.deserializer": "prefix"})(frame, headers=headers)
    with pytest.raises(RegistryError):
        AvroDeserializer(client)(frame, headers=headers)


def test_references_deep_and_deleted(client):
    """References of references are resolved, also to versions that were soft-deleted since."""
    inner = client.register("deep-inner", '{"type":"fixed","name":"d.F","size":2}').version
    middle_text = '{"type":"record","name":"d.M","fields":[{"name":"f","type":"d.F"}]}'
    middle = client.register(
        "deep-middle", Schema(middle_text, references=(Reference("d.F", "deep-inner", inner),))
    ).version
    text = '{"type":"record","name":"d.T","fields":[{"name":"m","type":"d.M"},{"name":"f","type":"d.F"}]}'
    references = (Reference("d.M", "deep-middle", middle), Reference("d.F", "deep-inner", inner))
    schema, value = Schema(text, references=references), {"m": {"f": b"ab"}, "f": b"cd"}

    frame = AvroSerializer(client, schema)(value, topic="deep")

    assert ["d.F", "d.M"] == list(resolve(client, schema))
    assert value == AvroDeserializer(client)(frame) == AvroDeserializer(client, schema)(frame)


def test_references_are_bounded(scripted_servers, answer):
    """A registry that returns references without end is followed to a limit only."""
    count = iter(range(10_000))

    server = scripted_servers(answer())
    one = {"subject": "s", "version": 1, "id": 1, "schema": "{}"}

    def answered(request):
        return answer(body={**one, "references": [{"name": f"n{next(count)}", "subject": "s", "version": 1}]})

    server._next = answered
    with RegistryClient(server.url) as client, pytest.raises(SchemaError, match=f"more than {MAX_DEPTH} deep"):
        resolve(client, Schema("{}", references=(Reference("first", "s", 1),)))


def test_asyncio_reads_and_writes_the_same(client):
    """The asyncio serdes give the same frames and values as the plain ones."""
    plain, read = JsonSerializer(client, "{}"), JsonDeserializer(client)

    async def trip():
        serialize, deserialize = AsyncSerializer(plain), AsyncDeserializer(read)
        frames = await asyncio.gather(*(serialize({"n": n}, topic="aio") for n in range(50)))
        values = await asyncio.gather(*(deserialize(frame, topic="aio") for frame in frames))
        nothing = await serialize(None), await deserialize(None)
        return frames, values, nothing, await call(client.get_versions, "aio-value")

    frames, values, nothing, versions = asyncio.run(trip())

    assert [plain({"n": n}, topic="aio") for n in range(50)] == frames
    assert [{"n": n} for n in range(50)] == values
    assert ((None, None), [1]) == (nothing, versions)


def test_the_event_loop_never_asks_the_registry(client, monkeypatch):
    """Unknown schemas are fetched in a thread; known ones need no thread."""
    request, threads = client._transport.request, []
    monkeypatch.setattr(
        client._transport,
        "request",
        lambda *args, **more: threads.append(threading.current_thread()) or request(*args, **more),
    )
    serialize, deserialize = AsyncSerializer(AvroSerializer(client, TEXT)), AsyncDeserializer(AvroDeserializer(client))

    async def trip():
        assert {"n": 1} == await deserialize(await serialize({"n": 1}, topic="loop"), topic="loop")
        asked = len(threads)
        monkeypatch.setattr(asyncio, "to_thread", None)
        assert {"n": 2} == await deserialize(await serialize({"n": 2}, topic="loop"), topic="loop")
        return asked

    asked = asyncio.run(trip())

    assert len(threads) == asked > 0
    assert threading.main_thread() not in threads


def test_errors_in_asyncio(client):
    """Errors in asyncio are those of the plain serdes, wherever they arise."""
    with pytest.raises(SerdeError, match="needs a topic"):
        asyncio.run(AsyncSerializer(AvroSerializer(client, TEXT))({"n": 1}))
    with pytest.raises(RegistryError):
        asyncio.run(AsyncDeserializer(AvroDeserializer(client))(join(99_999, b"")))


def test_peeking_never_loads():
    """`peek` returns the cached value, or None, and never loads."""
    cache = SharedCache(2)

    assert cache.peek("a") is None
    assert 1 == cache.get("a", lambda: 1) == cache.peek("a")
