"""A registry in memory, `mock://name`, answers as the service does: the same steps run on both."""

import dataclasses
import json
import pickle
from itertools import count

import pytest

from strata.serdes import AvroDeserializer, AvroSerializer, RegistryClient, RegistryError, Schema
from strata.serdes.client import Metadata, Reference, Rule, RuleSet

_contexts = count()


def _record(*fields, name="R"):
    parts = [
        {"name": one, "type": "int"} if one.islower() else {"name": one.lower(), "type": "int", "default": 0}
        for one in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": parts})


SUIT = '{"type": "enum", "name": "Suit", "symbols": ["CLUBS"]}'
CARD = '{"type": "record", "name": "Card", "fields": [{"name": "suit", "type": "Suit"}]}'
TURNED = '{"fields": [{"type": {"type": "int"}, "name": "a"}], "name": "R", "type": "record"}'
OWNED, SOLD = Metadata(properties={"owner": "ann"}), Metadata(properties={"owner": "bob"})
RULED = RuleSet(domain_rules=(Rule(name="r", type="CEL", kind="CONDITION", mode="WRITE", expr="true"),))
PROTO = 'syntax = "proto3";\nmessage M {\n  int32 a = 1;\n}\n'
PROTO_WIDER = PROTO.replace("a = 1;", "a = 1;\n  int32 b = 2;")
PROTO_OTHER = PROTO.replace("int32 a", "string a")
JSON_OPEN = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
JSON_OTHER = '{"type": "object", "properties": {"a": {"type": "string"}}}'

STEPS = {
    "register": lambda c, s: [
        lambda: c.register(s, _record("a")),
        lambda: c.register(s, _record("a")),
        lambda: c.register(s, _record("a").replace(" ", "   ")),
        lambda: c.register(s, _record("a", "B")),
        lambda: c.register(s + "-other", _record("a", "B")),
        lambda: c.register(s, _record("a", "c")),
        lambda: c.register(s, "{bad"),
        lambda: c.register(s, ""),
        lambda: c.register(s, Schema(JSON_OPEN, "JSON")),
        lambda: c.get_versions(s),
        lambda: c.get_version(s, 1),
        lambda: c.get_version(s),
        lambda: c.get_version(s, 9),
        lambda: c.get_version(s + "-nothing"),
        lambda: c.get_schema(1, subject=s),
        lambda: c.get_schema(77, subject=s),
    ],
    "lookup": lambda c, s: [
        lambda: c.lookup(s, _record("a")),
        lambda: c.register(s, _record("a")),
        lambda: c.register(s, _record("a", "B")),
        lambda: c.lookup(s, _record("a")),
        lambda: c.lookup(s, _record("a", "B")),
        lambda: c.lookup(s, _record("z")),
        lambda: c.lookup(s, TURNED, normalize=True),
        lambda: c.lookup(s, "{bad"),
    ],
    "normalize": lambda c, s: [
        lambda: c.register(s, TURNED, normalize=True),
        lambda: c.register(s, _record("a"), normalize=True),
        lambda: c.register(s, _record("a")),
        lambda: c.get_version(s),
    ],
    "levels": lambda c, s: [
        lambda: c.get_config(s),
        lambda: c.get_config(s, default_to_global=True),
        lambda: c.set_config("full", s),
        lambda: c.get_config(s),
        lambda: c.register(s, _record("a")),
        lambda: c.register(s, _record("a", "b")),
        lambda: c.register(s, _record("a", "B")),
        lambda: c.ask(dict, "PUT", f"/config/{s}", body={"compatibility": "FULLL"}),
        lambda: c.set_config("NONE", s, compatibilityGroup="app"),
        lambda: c.register(s, '"string"'),
        lambda: c.set_config("FORWARD_TRANSITIVE", s),
        lambda: c.register(s, '"int"'),
        lambda: c.get_config(s),
        lambda: c.delete_config(s),
        lambda: c.delete_config(s),
        lambda: c.get_config(s),
    ],
    "compatibility": lambda c, s: [
        lambda: c.test_compatibility(s, _record("a")),
        lambda: c.test_compatibility(s, _record("a"), 1),
        lambda: c.test_compatibility(s, _record("a"), None),
        lambda: c.register(s, _record("a")),
        lambda: c.register(s, _record("a", "B")),
        lambda: c.test_compatibility(s, _record("a", "c")),
        lambda: c.test_compatibility(s, _record("a", "c"), 1, verbose=False),
        lambda: c.test_compatibility(s, _record("a", "C"), None),
        lambda: c.test_compatibility(s, _record("a"), 7),
        lambda: c.test_compatibility(s, "{bad", verbose=False),
        lambda: bool(c.test_compatibility(s, "{bad")),
    ],
    "modes": lambda c, s: [
        lambda: c.get_mode(s),
        lambda: c.get_mode(s, default_to_global=True),
        lambda: c.register(s, _record("a")),
        lambda: c.set_mode("READONLY", s),
        lambda: c.get_mode(s),
        lambda: c.register(s, _record("a")),
        lambda: c.register(s, _record("a", "B")),
        lambda: c.delete_subject(s),
        lambda: c.set_config("NONE", s),
        lambda: c.set_mode("IMPORT", s),
        lambda: c.ask(dict, "PUT", f"/mode/{s}", body={"mode": "NOPE"}),
        lambda: c.delete_mode(s),
        lambda: c.delete_mode(s),
        lambda: c.register(s, _record("a", "B")),
    ],
    "delete versions": lambda c, s: [
        lambda: c.delete_version(s, 1),
        lambda: [c.register(s, _record("a")), c.register(s, _record("a", "B")), c.register(s, _record("a", "B", "C"))],
        lambda: c.delete_version(s, 9),
        lambda: c.delete_version(s, 2, permanent=True),
        lambda: c.delete_version(s, 2),
        lambda: c.delete_version(s, 2),
        lambda: c.get_versions(s),
        lambda: c.get_versions(s, deleted=True),
        lambda: c.get_version(s, 2),
        lambda: c.get_version(s, 2, deleted=True),
        lambda: c.lookup(s, _record("a", "B")),
        lambda: c.lookup(s, _record("a", "B"), deleted=True),
        lambda: c.delete_version(s, 2, permanent=True),
        lambda: c.get_version(s, 2, deleted=True),
        lambda: c.delete_version(s, "latest"),
        lambda: c.get_version(s),
        lambda: c.register(s, _record("a", "B", "C")),
    ],
    "delete subjects": lambda c, s: [
        lambda: c.delete_subject(s),
        lambda: [c.register(s, _record("a")), c.register(s, _record("a", "B"))],
        lambda: c.delete_subject(s, permanent=True),
        lambda: c.delete_subject(s),
        lambda: c.delete_subject(s),
        lambda: [one for one in c.get_subjects() if one == s],
        lambda: [one for one in c.get_subjects(deleted=True) if one == s],
        lambda: c.get_versions(s),
        lambda: c.register(s, _record("z")),
        lambda: c.delete_subject(s),
        lambda: c.delete_subject(s, permanent=True),
        lambda: [one for one in c.get_subjects(deleted=True) if one == s],
        lambda: c.register(s, _record("a")),
    ],
    "references": lambda c, s: [
        lambda: c.register(s, Schema(CARD, references=(Reference("Suit", s + "-suit", 1),))),
        lambda: c.register(s + "-suit", SUIT),
        lambda: c.register(s, Schema(CARD, references=(Reference("Suit", s + "-suit", 1),))),
        lambda: c.get_version(s),
        lambda: c.delete_version(s + "-suit", 1),
        lambda: c.delete_subject(s + "-suit"),
        lambda: c.ask(list, "GET", f"/subjects/{s}-suit/versions/1/referencedby"),
        lambda: c.delete_subject(s),
        lambda: c.delete_subject(s + "-suit"),
        lambda: c.delete_subject(s + "-suit", permanent=True),
    ],
    "contracts": lambda c, s: [
        lambda: c.register(s, Schema(_record("a"), metadata=OWNED)),
        lambda: c.register(s, _record("a")),
        lambda: c.register(s, Schema(_record("a", "B"), rule_set=RULED)),
        lambda: c.get_version(s),
        lambda: c.get_latest_with_metadata(s, {"owner": "ann"}),
        lambda: c.get_latest_with_metadata(s, {"owner": "bob"}),
        lambda: c.get_latest_with_metadata(s + "-nothing", {"owner": "bob"}),
        lambda: c.register(s, Schema(_record("a", "B"), metadata=SOLD, rule_set=RULED)),
    ],
    "protobuf": lambda c, s: [
        lambda: c.register(s, Schema(PROTO, "PROTOBUF")),
        lambda: c.register(s, Schema(PROTO_WIDER, "PROTOBUF")),
        lambda: c.register(s, Schema(PROTO_OTHER, "PROTOBUF")),
        lambda: c.get_version(s),
        lambda: c.test_compatibility(s, Schema(PROTO_OTHER, "PROTOBUF")),
    ],
    "json": lambda c, s: [
        lambda: c.register(s, Schema(JSON_OPEN, "JSON")),
        lambda: c.register(s, Schema(JSON_OTHER, "JSON")),
        lambda: c.get_version(s),
        lambda: c.register(s, Schema("{bad", "JSON")),
        lambda: c.register(s, Schema("x", "XML")),
    ],
}  # fmt: skip
"""What each scenario does with a client and a subject, in order."""


def _outcome(step):
    """Return what a step gives, or its status and code; without GUID and findings, which are the service's own."""
    try:
        result = step()
    except RegistryError as error:
        return error.status, error.error_code
    many = result if isinstance(result, list) else [result]
    many = [dataclasses.replace(one, guid=None) if hasattr(one, "guid") else one for one in many]
    many = [dataclasses.replace(one, findings=()) if hasattr(one, "findings") else one for one in many]
    return many if isinstance(result, list) else many[0]


@pytest.mark.parametrize("name", STEPS)
def test_contract(client, name):
    """Each step has the same outcome in memory and in the service: the same answer, or the same status and code."""
    subject = f":.memory-{next(_contexts)}:s"

    with RegistryClient("mock://") as mock:
        for number, (here, there) in enumerate(
            zip(STEPS[name](mock, subject), STEPS[name](client, subject), strict=True)
        ):
            assert _outcome(there) == _outcome(here), number


def test_global_settings():
    """The global config and mode are in force for subjects without their own."""
    with RegistryClient("mock://") as client:
        assert ({"compatibilityLevel": "BACKWARD"}, "READWRITE") == (client.get_config(), client.get_mode())
        client.set_config("NONE")
        client.register("s", '"int"')
        assert 2 == client.register("s", '"string"').version
        client.set_mode("READONLY")
        with pytest.raises(RegistryError, match="read-only"):
            client.register("s", '"bytes"')
        assert ("READONLY", "NONE") == (client.delete_mode(), client.delete_config()["compatibilityLevel"])


def test_names():
    """Clients of one name share a registry; without a name each has its own; it ends with its last client."""
    with (
        RegistryClient("mock://shared") as one,
        RegistryClient("mock://shared") as other,
        RegistryClient("mock://") as own,
    ):
        one.register("s", '"int"')
        assert (["s"], []) == (other.get_subjects(), own.get_subjects())
        assert "RegistryClient(mock://shared)" == repr(one)
        assert ["s"] == pickle.loads(pickle.dumps(one)).get_subjects()
    del one, other

    with RegistryClient("mock://shared") as later:
        assert [] == later.get_subjects()


def test_serializers():
    """Records go through serializers and deserializers, in other contexts too."""
    with RegistryClient("mock://") as client:
        frame = AvroSerializer(client, _record("a"))({"a": 1}, topic="t")

        assert b"\0\0\0\0\1\2" == frame
        assert {"a": 1, "b": 0} == AvroDeserializer(client, _record("a", "B"))(frame, topic="t")
        assert ["t-value"] == client.get_subjects()
        client.register(":.other:s", '"string"')
        assert [".", ".other"] == client.ask(list, "GET", "/contexts")
        assert '"string"' == client.get_schema(1, subject=":.other:s").text
        guid = client.get_version("t-value").guid
        assert client.get_schema(1) == client.get_schema_by_guid(guid)


def test_unknown_route():
    """What the registry in memory lacks is an error that names the route."""
    with RegistryClient("mock://") as client, pytest.raises(RegistryError, match="no route GET /exporters"):
        client.ask(list, "GET", "/exporters")


def test_from_conf():
    """confluent-kafka's setting `url` takes the address, too."""
    from strata.serdes.confluent import Schema as Theirs
    from strata.serdes.confluent import SchemaRegistryClient

    with SchemaRegistryClient.new_client({"url": "mock://"}) as client:
        assert 1 == client.register_schema("s", Theirs('"int"'))
        assert ["s"] == client.get_subjects("s")
        assert [] == client.get_subjects(deleted_only=True)
        assert ["s"] == client.get_subjects_by_schema_id(1)
        assert ["AVRO", "JSON", "PROTOBUF"] == sorted(client.get_schema_types())
