"""A node serves an existing topic as it is: old and new forms, damage, and another product that keeps writing."""

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.registry import RegistryNode
from harness.waiting import until

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka


def _json(**content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _schema_key(subject: str, version: int, magic: int = 1) -> bytes:
    return _json(keytype="SCHEMA", subject=subject, version=version, magic=magic)


def _schema(subject: str, version: int, schema_id: int, text: str, **more: Any) -> tuple[bytes, bytes]:
    value = _json(subject=subject, version=version, id=schema_id, schema=text, deleted=False, **more)
    return _schema_key(subject, version), value


# Records of a topic after years: name of the row, key, value.
LEFT: list[tuple[str, bytes | None, bytes | None]] = [
    ("a NOOP", _json(keytype="NOOP", magic=0), None),
    ("a key of magic 0", _schema_key("old", 1, magic=0), _json(subject="old", version=1, id=1, schema='"int"')),
    ("a value with the bare minimum", _schema_key("bare", 1), _json(id=2, schema='"long"')),
    ("a value with an md5", *_schema("new", 1, 3, '"string"', md5="B6Yr", schemaType="AVRO")),
    ("another property", *_schema("new", 2, 4, '"bytes"', futureProperty={"a": [1]})),
    ("nulls where there is nothing", *_schema("nulls", 1, 1, '"int"', schemaType=None, references=None, metadata=None)),
    ("a global level, subject null", _json(keytype="CONFIG", subject=None, magic=0), b'{"compatibilityLevel":"FULL"}'),
    ("a level", _json(keytype="CONFIG", subject="new", magic=0), b'{"subject":"new","compatibilityLevel":"NONE"}'),
    ("a mode", _json(keytype="MODE", subject="bare", magic=0), b'{"subject":"bare","mode":"READONLY"}'),
    ("a version to be deleted", *_schema("gone", 1, 5, '"float"')),
    ("another", *_schema("gone", 2, 6, '"double"')),
    ("the deletion of its subject", _json(keytype="DELETE_SUBJECT", subject="gone", magic=0),
        b'{"subject":"gone","version":2}'),
    ("a version to be cleared", *_schema("cleared", 1, 7, '"boolean"')),
    ("its deletion", _json(keytype="DELETE_SUBJECT", subject="cleared", magic=0), b'{"subject":"cleared","version":1}'),
    ("its clearing", _json(keytype="CLEAR_SUBJECT", subject="cleared", magic=0), b'{"subject":"cleared"}'),
    ("a version to be taken", *_schema("new", 3, 8, '"null"')),
    ("its tombstone", _schema_key("new", 3), None),
    ("a context", _json(keytype="CONTEXT", tenant="default", context=".c", magic=0),
        b'{"tenant":"default","context":".c"}'),
    ("a schema in it", *_schema(":.c:s", 1, 1, '"bytes"')),
    ("an id in another spelling", *_schema("spelled", 1, 2, ' "long"')),
    ("a version by Karapace", b'{"subject":"k","version":1,"magic":1,"keytype":"SCHEMA"}',
        _json(subject="k", version=1, id=5, schema='"float"', deleted=False)),
    ("its hard deletion by Karapace", b'{"subject":"k","version":1,"magic":1,"keytype":"SCHEMA"}', b""),
    ("an association", _json(keytype="ASSOC", tenant="default", resourceName="t", subject="new", magic=0),
        b'{"guid":"g"}'),
]  # fmt: skip

# Records that a node sets aside: name of the row, key, value, words of the reason.
DAMAGED: list[tuple[str, bytes | None, bytes | None, str]] = [
    ("no key", None, b"no key", "no key"),
    ("a key that is not JSON", b"\xff\x00junk", b"\x80", "not JSON"),
    ("a key of an unknown kind", _json(keytype="TEAPOT", magic=0), b"{}", "TEAPOT"),
    ("a value that is not JSON", _schema_key("torn", 1), b'{"subject":"torn","ver', "not JSON"),
    ("a value without a schema", _schema_key("empty", 1), b'{"subject":"empty","version":1,"id":9}', "'schema'"),
    ("a version that is text", b'{"keytype":"SCHEMA","subject":"s","version":"1","magic":1}', b"{}", "'version'"),
    ("an id that is taken", *_schema("thief", 1, 1, '"long"'), "id 1"),
    ("a reference out of range", *_schema("far", 1, 10, '"int"',
        references=[{"name": "n", "subject": "s", "version": 2**40}]), "fingerprint"),
    ("a version out of range", *_schema("high", 2**40, 11, '"int"'), "version"),
]  # fmt: skip


def _filled(topic: "Topic") -> None:
    """Write all records into a topic; the broker accepts records without a key only until the topic is compacted."""
    topic.create(cleanup_policy="delete")
    topic.write_all_plainly([(key, value) for _, key, value, *_ in (*LEFT, *DAMAGED)])
    topic.alter("cleanup.policy", "compact")


def _call(node: RegistryNode, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


# path, answer
SERVED: list[tuple[str, tuple[int, Any]]] = [
    ("/subjects", (200, [":.c:s", "bare", "new", "nulls", "old", "spelled"])),
    ("/subjects?deletedOnly=true", (200, ["gone"])),
    ("/subjects/new/versions", (200, [1, 2])),
    ("/subjects/gone/versions?deleted=true", (200, [1, 2])),
    ("/schemas/ids/1/schema", (200, "int")),
    ("/schemas/ids/1/subjects", (200, ["nulls", "old"])),
    ("/schemas/ids/2/schema", (200, "long")),
    ("/schemas/ids/2/subjects", (200, ["bare", "spelled"])),
    ("/schemas/ids/5/schema", (200, "float")),
    ("/schemas/ids/1/schema?subject=:.c:", (200, "bytes")),
    ("/contexts", (200, [".", ".c"])),
    ("/config", (200, {"compatibilityLevel": "FULL"})),
    ("/config/new", (200, {"compatibilityLevel": "NONE"})),
    ("/mode/bare", (200, {"mode": "READONLY"})),
]


def test_a_topic_is_served_as_it_stands(topic: "Topic") -> None:
    """The node serves every form ever written, lists damaged records with offset and reason, and continues the ids."""
    _filled(topic)
    with RegistryNode(f"kafka://{topic.bootstrap}/{topic.name}") as node:
        assert SERVED == [(path, _call(node, "GET", path)) for path, _ in SERVED]
        for gone in (7, 8):
            assert 404 == _call(node, "GET", f"/schemas/ids/{gone}")[0]
        _, log = _call(node, "GET", "/v1/log")
        aside = {item["offset"]: item["reason"] for item in log["setAside"]["records"]}
        for offset, (_, _, _, reason) in enumerate(DAMAGED, start=len(LEFT)):
            assert reason in aside[offset]
        assert (len(LEFT) + len(DAMAGED), "kafka", False) == (log["records"], log["backend"], log["holdsPen"])
        assert (
            9
            == _call(node, "POST", "/subjects/fresh/versions", {"schema": '{"type":"fixed","name":"F","size":2}'})[1][
                "id"
            ]
        )


def test_another_writer_is_reported(topic: "Topic") -> None:
    """If another product writes while this node has the pen, the node counts the record, logs it, and applies it."""
    with RegistryNode(f"kafka://{topic.bootstrap}/{topic.name}") as node:
        _call(node, "POST", "/subjects/mine/versions", {"schema": '"int"'})
        assert (True, 0) == tuple(_call(node, "GET", "/v1/log")[1][name] for name in ("holdsPen", "foreignRecords"))
        topic.write_plainly(*_schema("theirs", 1, 2, '"long"'))
        # A read under the lease asks no broker.
        until(lambda: _call(node, "GET", "/subjects") == (200, ["mine", "theirs"]))

        assert 1 == _call(node, "GET", "/v1/log")[1]["foreignRecords"]
        (told,) = until(lambda: [line for line in node.output.splitlines() if "ANOTHER PRODUCT" in line])
        assert "ERROR" in told
        assert '"subject":"theirs"' in told
