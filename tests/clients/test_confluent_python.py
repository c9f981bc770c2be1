"""confluent-kafka's client and serdes, sync and async, unmodified against a node."""

import asyncio
import importlib.util
import json
from pathlib import Path

import grpc_tools
import pytest
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from grpc_tools import protoc

STORY = json.loads(Path(__file__).with_name("story.json").read_text())
VALUE = STORY["value"]
ORDER = Schema(json.dumps(STORY["avro"]["first"]), "AVRO")
WIDER = Schema(json.dumps(STORY["avro"]["second"]), "AVRO")
BROKEN = Schema(json.dumps(STORY["avro"]["incompatible"]), "AVRO")
TEXTS = {"AVRO": json.dumps(STORY["avro"]["first"]), "JSON": json.dumps(STORY["json"]), "PROTOBUF": STORY["protobuf"]}
LINE_PROTO = 'syntax = "proto3";\npackage acme;\n\nmessage Line {\n  string sku = 1;\n}\n'
CART_PROTO = """syntax = "proto3";
package acme;

import "acme/sub/line.proto";
import "google/protobuf/timestamp.proto";

message Cart {
  Line line = 1;
  google.protobuf.Timestamp at = 2;
  optional string note = 3;

  message Inner {
    int32 n = 1;
  }
}
"""


@pytest.fixture(scope="session")
def messages(tmp_path_factory):
    """Return the message classes that protoc generates from two files, one of which imports a third."""
    folder = tmp_path_factory.mktemp("proto")
    (folder / "acme/sub").mkdir(parents=True)
    (folder / "acme/sub/line.proto").write_text(LINE_PROTO)
    (folder / "acme/cart.proto").write_text(CART_PROTO)
    (folder / "order.proto").write_text(STORY["protobuf"])
    built_in = Path(grpc_tools.__file__).parent / "_proto"
    names = ["acme/sub/line.proto", "acme/cart.proto", "order.proto"]
    assert protoc.main(["protoc", f"-I{folder}", f"-I{built_in}", f"--python_out={folder}", *names]) == 0
    found = {}
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)
        for module in ("acme.sub.line_pb2", "acme.cart_pb2", "order_pb2"):
            found |= vars(importlib.import_module(module))
    return found


@pytest.fixture(scope="session")
def clients(conf):
    """Yield two clients for the session: creating one takes longer than most tests."""
    with SchemaRegistryClient(conf) as one, SchemaRegistryClient(conf) as other:
        yield one, other


@pytest.fixture
def client(clients):
    """Return confluent-kafka's client with empty caches."""
    clients[0].clear_caches()
    return clients[0]


@pytest.fixture
def writer(clients):
    """Return a second client, whose registrations are not in the cache of the first."""
    clients[1].clear_caches()
    return clients[1]


def value_of(topic, headers=None):
    """Return the context of a topic's value."""
    return SerializationContext(topic, MessageField.VALUE, headers)


def refusal(call, *arguments, **options):
    """Return the status and code of the error that a call raises."""
    with pytest.raises(SchemaRegistryError) as refused:
        call(*arguments, **options)
    return refused.value.http_status_code, refused.value.error_code


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("normalize", [False, True], ids=["as it is", "normalized"])
def test_a_schema_through_every_read(writer, client, name, kind, normalize):
    """Registration, look-up, and reads by id, GUID, version and latest return the same schema."""
    schema = Schema(TEXTS[kind], kind)

    full = writer.register_schema_full_response(name, schema, normalize_schemas=normalize)
    found = client.lookup_schema(name, schema, normalize_schemas=normalize)
    client.clear_caches()
    latest = client.get_latest_version(name)

    assert full.schema_id == writer.register_schema(name, schema, normalize_schemas=normalize)
    assert (full.schema_id, 1, name) == (found.schema_id, found.version, found.subject)
    assert (full.schema_id, full.guid, 1) == (latest.schema_id, latest.guid, latest.version)
    assert latest == client.get_version(name, 1)
    assert latest.schema == client.get_schema(full.schema_id)
    assert latest.schema == client.get_schema(full.schema_id, subject_name=name)
    assert latest.schema == client.get_schema_by_guid(full.guid)
    assert [name] == client.get_subjects(subject_prefix=name)
    assert name in client.get_subjects_by_schema_id(full.schema_id)
    assert name in [each.subject for each in client.get_schema_versions(full.schema_id)]


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
@pytest.mark.parametrize("framing", ["id in the frame", "GUID in a header"])
def test_serdes(client, messages, name, kind, framing):
    """The serializer registers and writes, and the deserializer reads the value back; a header may carry the GUID."""
    in_header = framing == "GUID in a header"
    writing = {"schema.id.serializer": header_schema_id_serializer} if in_header else {}
    reading = {"schema.id.deserializer": dual_schema_id_deserializer}
    order = messages["Order"]
    serializer, deserializer, value = {
        "AVRO": lambda: (
            AvroSerializer(client, ORDER, conf=writing),
            AvroDeserializer(client, conf=reading),
            VALUE,
        ),
        "JSON": lambda: (
            JSONSerializer(TEXTS["JSON"], client, conf=writing),
            JSONDeserializer(TEXTS["JSON"], schema_registry_client=client, conf=reading),
            VALUE,
        ),
        "PROTOBUF": lambda: (
            ProtobufSerializer(order, client, conf=writing),
            ProtobufDeserializer(order, reading, client),
            order(**VALUE),
        ),
    }[kind]()
    context = value_of(name, [])

    frame = serializer(value, context)

    assert value == deserializer(frame, context)
    assert [f"{name}-value"] == client.get_subjects(subject_prefix=name)
    registered = client.get_latest_version(f"{name}-value")
    if in_header:
        assert ["__value_schema_id"] == [header for header, _ in context.headers]
        assert b"\x01" + bytes.fromhex(registered.guid.replace("-", "")) == context.headers[0][1][:17]
    else:
        assert b"\x00" + registered.schema_id.to_bytes(4, "big") == frame[:5]


def test_avro_references(client, name):
    """A record with a named type of another subject survives a round trip."""
    line, cart = (json.dumps(STORY["references"][each]) for each in ("dependency", "dependent"))
    dependency = client.register_schema(f"{name}-line", Schema(line, "AVRO"))
    reference = SchemaReference("acme.Line", f"{name}-line", 1)
    schema = Schema(cart, "AVRO", [reference])
    value = {"line": {"sku": "a"}}

    frame = AvroSerializer(client, schema)(value, value_of(name))

    assert value == AvroDeserializer(client)(frame, value_of(name))
    registered = client.get_latest_version(f"{name}-value")
    assert [reference] == registered.schema.references
    assert [registered.schema_id] == client.get_referenced_by(f"{name}-line", 1)
    assert dependency != registered.schema_id
    assert (422, 42206) == refusal(client.delete_subject, f"{name}-line")


def test_json_references(client, name):
    """Both sides validate a property whose schema is in another subject."""
    line = {"$id": "line.json", "type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    cart = {"title": "Cart", "type": "object", "properties": {"line": {"$ref": "line.json"}}}
    client.register_schema(f"{name}-line", Schema(json.dumps(line), "JSON"))
    reference = SchemaReference("line.json", f"{name}-line", 1)
    schema = Schema(json.dumps(cart), "JSON", [reference])
    value = {"line": {"sku": "a"}}

    frame = JSONSerializer(schema, client)(value, value_of(name))

    assert value == JSONDeserializer(None, schema_registry_client=client)(frame, value_of(name))
    assert [reference] == client.get_latest_version(f"{name}-value").schema.references


def test_protobuf_references(client, messages, name):
    """The serializer registers imports under their file path, except built-in ones; a nested message works."""
    cart = messages["Cart"](line={"sku": "a"}, at={"seconds": 5}, note="")
    inner = messages["Cart"].Inner(n=5)

    frame = ProtobufSerializer(messages["Cart"], client)(cart, value_of(name))
    nested = ProtobufSerializer(messages["Cart"].Inner, client)(inner, value_of(name))

    assert cart == ProtobufDeserializer(messages["Cart"], {}, client)(frame, value_of(name))
    assert inner == ProtobufDeserializer(messages["Cart"].Inner, {}, client)(nested, value_of(name))
    assert "acme/sub/line.proto" in client.get_subjects()
    registered = client.get_latest_version(f"{name}-value")
    assert [("acme/sub/line.proto", 1)] == [(each.name, each.version) for each in registered.schema.references]
    assert LINE_PROTO == client.get_latest_version("acme/sub/line.proto").schema.schema_str
    assert frame[:5] == nested[:5]


def test_use_latest_version(client, messages, name):
    """Without auto-registration, the serializer writes the latest schema of the subject, in every format."""
    fixed = {"auto.register.schemas": False, "use.latest.version": True}
    order = messages["Order"]
    ids = {kind: client.register_schema(f"{name}-{kind}-value", Schema(TEXTS[kind], kind)) for kind in TEXTS}

    frames = {
        "AVRO": AvroSerializer(client, None, conf=fixed)(VALUE, value_of(f"{name}-AVRO")),
        "JSON": JSONSerializer(None, client, conf=fixed)(VALUE, value_of(f"{name}-JSON")),
        "PROTOBUF": ProtobufSerializer(order, client, conf=fixed)(order(**VALUE), value_of(f"{name}-PROTOBUF")),
    }

    assert ids == {kind: int.from_bytes(frame[1:5], "big") for kind, frame in frames.items()}


def test_only_what_is_registered(client, name):
    """Without auto-registration and use of the latest, the serializer refuses an unknown schema."""
    serializer = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False})

    assert (404, 40401) == refusal(serializer, VALUE, value_of(name))
    client.register_schema(f"{name}-value", BROKEN)
    assert (404, 40403) == refusal(serializer, VALUE, value_of(name))


def test_incompatible_through_the_serializer(client, name):
    """A serializer with an incompatible schema raises the registry's error."""
    client.register_schema(f"{name}-value", ORDER)

    assert (409, 40901) == refusal(AvroSerializer(client, BROKEN), {"id": "o", "must": 1}, value_of(name))


def test_evolution(client, name):
    """A reader schema fills in fields that an older writer did not know."""
    frame = AvroSerializer(client, ORDER)(VALUE, value_of(name))
    AvroSerializer(client, WIDER)({**VALUE, "tag": "x"}, value_of(name))

    assert {**VALUE, "tag": ""} == AvroDeserializer(client, WIDER)(frame, value_of(name))
    assert {**VALUE, "tag": ""} == AvroDeserializer(client, conf={"use.latest.version": True})(frame, value_of(name))
    assert [1, 2] == client.get_versions(f"{name}-value")


def test_compatibility_checks(client, name):
    """The client checks against one version, and against all that a registration would check."""
    client.register_schema(name, ORDER)

    assert [True, False] == [client.test_compatibility(name, schema) for schema in (WIDER, BROKEN)]
    assert [True, False] == [client.test_compatibility(name, schema, 1) for schema in (WIDER, BROKEN)]
    assert [True, False] == [client.test_compatibility_all_versions(name, schema) for schema in (WIDER, BROKEN)]
    assert client.test_compatibility(f"{name}-unknown", ORDER)


def test_config(client, name):
    """The client sets, reads and deletes a subject's level; the registry refuses an invalid one."""
    assert "BACKWARD" == client.get_compatibility()
    assert (404, 40408) == refusal(client.get_compatibility, name)
    client.set_compatibility(name, "full")
    assert "FULL" == client.get_compatibility(name)
    assert (422, 42203) == refusal(client.set_compatibility, name, "SIDEWAYS")

    client.set_config(name, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert ConfigCompatibilityLevel.NONE == client.get_config(name).compatibility_level
    client.delete_config(name)
    assert (404, 40408) == refusal(client.get_config, name)
    assert (404, 40401) == refusal(client.delete_config, name)


def test_mode(client, name):
    """The client makes a subject read-only, importable, and writable again."""
    assert "READWRITE" == client.get_global_mode()
    assert (404, 40409) == refusal(client.get_mode, name)
    assert "READONLY" == client.update_mode(name, "READONLY")
    assert (422, 42205) == refusal(client.register_schema, name, ORDER)
    assert "READONLY" == client.get_mode(name)
    assert "IMPORT" == client.update_mode(name, "IMPORT", force=True)
    assert "IMPORT" == client.delete_mode(name)
    assert (422, 42204) == refusal(client.update_mode, name, "SIDEWAYS")
    assert 0 < client.register_schema(name, ORDER)


def test_deletes(client, name):
    """A soft and then a hard delete remove a version, then the subject; the id resolves until the end."""
    schema_id = client.register_schema(name, Schema('"string"', "AVRO"))
    client.set_compatibility(name, "NONE")
    client.register_schema(name, ORDER)
    gone = client.register_schema(name, Schema(json.dumps({"type": "fixed", "name": name, "size": 3}), "AVRO"))

    assert (404, 40407) == refusal(client.delete_version, name, 3, permanent=True)
    assert 3 == client.delete_version(name, 3)
    assert (404, 40406) == refusal(client.delete_version, name, 3)
    assert (404, 40402) == refusal(client.get_version, name, 3)
    assert gone == client.get_version(name, 3, deleted=True).schema_id
    assert 3 == client.delete_version(name, 3, permanent=True)
    client.clear_caches()
    assert (404, 40403) == refusal(client.get_schema, gone)

    assert [1, 2] == client.delete_subject(name)
    assert (404, 40401) == refusal(client.get_versions, name)
    assert [1, 2] == client.get_versions(name, deleted=True)
    assert [name] == client.get_subjects(subject_prefix=name, deleted=True)
    assert (404, 40401) == refusal(client.lookup_schema, name, ORDER)
    client.clear_caches()
    assert '"string"' == client.get_schema(schema_id).schema_str
    assert [1, 2] == client.delete_subject(name, permanent=True)
    assert [] == client.get_subjects(subject_prefix=name, deleted=True)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(lambda client, name: client.get_latest_version(name), (404, 40401), id="subject"),
        pytest.param(lambda client, name: client.get_schema(2**30), (404, 40403), id="id"),
        pytest.param(lambda client, name: client.get_schema_by_guid("0" * 32), (404, 40403), id="GUID"),
        pytest.param(lambda client, name: client.get_version(name, "0"), (422, 42202), id="no version number"),
        pytest.param(lambda client, name: client.delete_subject(name), (404, 40401), id="subject to delete"),
        pytest.param(lambda client, name: client.register_schema(name, Schema("{", "AVRO")), (422, 42201), id="text"),
        pytest.param(lambda client, name: client.register_schema(name, Schema("{}", "XML")), (422, 42201), id="type"),
    ],
)
def test_errors(client, name, call, expected):
    """The client's error has the registry's status and code."""
    assert expected == refusal(call, client, name)


@pytest.mark.parametrize("odd", STORY["odd"])
def test_names_of_subjects(client, name, odd):
    """Every character of a subject name survives a round trip."""
    subject = f"{name}-{odd}"

    schema_id = client.register_schema(subject, ORDER)

    assert [subject] == client.get_subjects(subject_prefix=name)
    assert (subject, schema_id) == (lambda one: (one.subject, one.schema_id))(client.get_latest_version(subject))
    client.set_compatibility(subject, "NONE")
    assert "NONE" == client.get_compatibility(subject)
    assert client.test_compatibility(subject, BROKEN)
    assert [1] == client.delete_subject(subject)


def test_contexts_by_base_url(conf, client, name):
    """A client with `/contexts/.c` in its address has separate ids and subjects, and serdes work there."""
    with SchemaRegistryClient(conf | {"url": f"{conf['url']}/contexts/.{name}"}) as inside:
        frame = AvroSerializer(inside, ORDER)(VALUE, value_of(name))

        assert b"\x00\x00\x00\x00\x01" == frame[:5]
        assert VALUE == AvroDeserializer(inside)(frame, value_of(name))
        assert f":.{name}:{name}-value" in inside.get_subjects()
    assert f".{name}" in client.get_contexts()
    assert "AVRO" == client.get_latest_version(f":.{name}:{name}-value").schema.schema_type


def test_async_client(conf, messages, name):
    """The async client and its serdes behave like the sync ones."""

    async def story():
        async with AsyncSchemaRegistryClient(conf) as client:
            serializer = await AsyncAvroSerializer(client, ORDER)
            deserializer = await AsyncAvroDeserializer(client)
            frame = await serializer(VALUE, value_of(name))
            assert VALUE == await deserializer(frame, value_of(name))
            subject = f"{name}-value"
            latest = await client.get_latest_version(subject)
            assert latest.schema_id == (await client.lookup_schema(subject, ORDER)).schema_id
            assert not await client.test_compatibility(subject, BROKEN)
            with pytest.raises(SchemaRegistryError) as refused:
                await client.register_schema(subject, BROKEN)
            assert 40901 == refused.value.error_code
            await client.set_compatibility(subject, "NONE")
            assert "NONE" == await client.get_compatibility(subject)
            assert [1] == await client.delete_subject(subject)
            assert [1] == await client.delete_subject(subject, permanent=True)

    asyncio.run(story())


def test_associated_strategy_falls_back(client, name):
    """Without an association, the default strategy uses the topic's name."""
    frame = AvroSerializer(client, ORDER, conf={"subject.name.strategy.type": "ASSOCIATED"})(VALUE, value_of(name))

    assert VALUE == AvroDeserializer(client, conf={"subject.name.strategy.type": "ASSOCIATED"})(frame, value_of(name))
    assert [f"{name}-value"] == client.get_subjects(subject_prefix=name)


def test_associated_subject(client, name):
    """The default strategy uses the subject associated with a topic, but not that of another cluster's topic."""
    client.register_schema(f"{name}-own", ORDER)
    own = AssociationCreateOrUpdateInfo(f"{name}-own", "value", lifecycle="WEAK")
    request = AssociationCreateOrUpdateRequest(name, "cluster", f"{name}-id", "topic", [own])
    elsewhere = {"subject.name.strategy.conf": {"subject.name.strategy.kafka.cluster.id": "other"}}

    made = client.create_association(request)
    frame = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False})(VALUE, value_of(name))

    assert VALUE == AvroDeserializer(client)(frame, value_of(name))
    assert [(f"{name}-own", "WEAK")] == [(each.subject, each.lifecycle) for each in made.associations]
    assert [(f"{name}-own", "cluster", f"{name}-id", "value")] == [
        (each.subject, each.resource_namespace, each.resource_id, each.association_type)
        for each in client.get_associations_by_resource_name(name, "-")
    ]
    assert [f"{name}-own"] == client.get_subjects(subject_prefix=name)
    AvroSerializer(client, ORDER, conf=elsewhere)(VALUE, value_of(name))
    client.delete_associations(f"{name}-id", cascade_lifecycle=True)
    assert [f"{name}-own", f"{name}-value"] == client.get_subjects(subject_prefix=name)
    assert [] == client.get_associations_by_resource_name(name, "-")


def test_frozen_association(client, name):
    """A schema in a topic's association gets its own subject, in the context of the cluster."""
    frozen = AssociationCreateOrUpdateInfo(association_type="value", schema=ORDER)
    request = AssociationCreateOrUpdateRequest(name, name, f"{name}-id", "topic", [frozen])

    made = client.create_association(request)
    frame = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False})(VALUE, value_of(name))

    assert VALUE == AvroDeserializer(client)(frame, value_of(name))
    assert f":.{name}:{name}-value" in client.get_subjects()
    assert [(f":.{name}:{name}-value", "STRONG")] == [(each.subject, each.lifecycle) for each in made.associations]
    assert [f":.{name}:{name}-value"] == [each.subject for each in client.get_associations_by_resource_name(name, name)]


@pytest.mark.parametrize("strategy", ["RECORD", "TOPIC_RECORD"])
def test_record_strategies(client, name, strategy):
    """The subject is named after the record; a reader of another topic still finds the id."""
    conf = {"subject.name.strategy.type": strategy}
    frame = AvroSerializer(client, ORDER, conf=conf)(VALUE, value_of(name))

    assert VALUE == AvroDeserializer(client, conf=conf)(frame, value_of(name))
    assert VALUE == AvroDeserializer(client)(frame, value_of(f"{name}-copied"))
    assert {"RECORD": "acme.Order", "TOPIC_RECORD": f"{name}-acme.Order"}[strategy] in client.get_subjects()


def test_use_latest_with_metadata(client, name):
    """The serializer takes the newest version with the requested metadata."""
    marked, newer = (
        Schema(schema.schema_str, "AVRO", metadata=Metadata(None, MetadataProperties({"stage": stage}), None))
        for schema, stage in ((ORDER, "prod"), (WIDER, "test"))
    )
    schema_id = client.register_schema(f"{name}-value", marked)
    client.register_schema(f"{name}-value", newer)
    conf = {"auto.register.schemas": False, "use.latest.with.metadata": {"stage": "prod"}}

    frame = AvroSerializer(client, None, conf=conf)(VALUE, value_of(name))

    assert schema_id == int.from_bytes(frame[1:5], "big")
    assert VALUE == AvroDeserializer(client, conf={"use.latest.with.metadata": {"stage": "prod"}})(
        frame, value_of(name)
    )
