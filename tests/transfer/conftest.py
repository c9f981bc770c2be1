"""A registry with an example of everything, served in this process; and the command line."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import urllib3
from click.testing import CliRunner

from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.commands.cli import main
from strata.registry.settings import Settings
from strata.storage.log import Record
from strata.storage.open_log import open_log
from strata.storage.record_json import encode
from strata.storage.records import (
    AssociationKey,
    AssociationValue,
    Reference,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Version,
)


@contextmanager
def _served(log_url: str) -> Iterator[str]:
    with closing(open_log(log_url)) as log, serving(lambda _: create_app(log, Settings(log=log_url))) as port:
        yield f"http://127.0.0.1:{port}"


class Registry:
    """A client of a service; every call must succeed."""

    def __init__(self, url: str) -> None:
        self.url, self._pool = url, urllib3.PoolManager()

    def call(self, method, path, body=None):
        """Send a request and return the JSON of its answer."""
        data = None if body is None else json.dumps(body)
        response = self._pool.request(method, self.url + path, body=data)
        assert 200 <= response.status < 300, (method, path, response.status, response.data)
        return response.json() if response.data else None

    def register(self, subject, schema, schema_type="AVRO", *references):
        """Register a schema and return its version."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        named = [{"name": name, "subject": target, "version": version} for name, target, version in references]
        body = {"schema": text, "schemaType": schema_type, "references": named}
        return self.call("POST", f"/subjects/{quote(subject, safe='')}/versions", body)["version"]

    def delete(self, subject, version=None, *, permanent=False):
        """Delete a version or a subject softly, then permanently on request."""
        path = f"/subjects/{quote(subject, safe='')}" + (f"/versions/{version}" if version else "")
        self.call("DELETE", path)
        if permanent:
            self.call("DELETE", f"{path}?permanent=true")

    def setting(self, kind, scope, **body):
        """Set the configuration or mode of a scope."""
        self.call("PUT", f"/{kind}/{quote(scope, safe='')}".rstrip("/"), body)


def record(name, *fields):
    """Return an Avro record; a field is a string with a default, or a name and a type."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": f, "type": "string", "default": ""} if isinstance(f, str) else {"name": f[0], "type": f[1]}
            for f in fields
        ],
    }


def fill(registry: Registry) -> None:
    """Fill a registry: three formats, references, contexts, gaps, deletions, an id in several places, settings."""
    for fields in (["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        registry.register("orders-value", record("Order", *fields))
    registry.delete("orders-value", 1, permanent=True)
    registry.delete("orders-value", 3)
    registry.register("bestellungen größe ☃/a b", record("Order", "a", "b"))
    registry.register("item", record("Item", "sku"))
    registry.register("basket", record("Basket", ("i", "Item")), "AVRO", ("Item", "item", 1))
    registry.register("old-item", record("OldItem", "sku"))
    registry.register("old-basket", record("OldBasket", ("i", "OldItem")), "AVRO", ("OldItem", "old-item", 1))
    registry.delete("old-basket")
    registry.delete("old-item")
    registry.register("old-item", record("OldItem", "sku"))
    address = {
        "$id": "https://example.org/address.json",
        "type": "object",
        "properties": {"street": {"type": "string"}},
    }
    registry.register("address", address, "JSON")
    customer = {"type": "object", "properties": {"home": {"$ref": "https://example.org/address.json"}}}
    registry.register("customer", customer, "JSON", ("https://example.org/address.json", "address", 1))
    registry.register("acme/money.proto", 'syntax = "proto3"; package acme; message Money { int64 c = 1; }', "PROTOBUF")
    paid = 'syntax = "proto3"; package acme; import "acme/money.proto"; message Paid { Money m = 1; }'
    registry.register("paid", paid, "PROTOBUF", ("acme/money.proto", "acme/money.proto", 1))
    registry.register(":.staging:item", record("Item", "sku", "staged"))
    registry.register(":.staging:basket", record("Basket", ("i", "Item")), "AVRO", ("Item", "item", 1))
    registry.register(":.staging:orders-value", record("Order", "a"))
    registry.delete(":.staging:orders-value")
    registry.register("scratch", record("Scratch", "highest_id"))
    registry.delete("scratch", permanent=True)
    keys(registry)
    associations(registry)
    registry.setting("config", "", compatibility="FULL")
    registry.setting("config", "item", compatibility="NONE", normalize=True)
    registry.setting("config", ":.staging:", compatibility="FORWARD")
    registry.setting("config", ":.__GLOBAL:", compatibility="BACKWARD_TRANSITIVE")
    registry.setting("mode", "basket", mode="READONLY")
    registry.setting("mode", ":.staging:", mode="READONLY")


def associations(registry: Registry) -> None:
    """Make associations: a subject of one topic, one that two topics share, one in a context."""
    for name, wanted in (
        ("paid", {"schema": {"schema": '"long"'}}),
        ("houses", {"subject": "address"}),
        ("homes", {"subject": "address"}),
        ("goods", {"subject": ":.staging:basket"}),
    ):
        body = {"resourceName": name, "resourceNamespace": "lkc", "resourceId": f"id of {name}"}
        body["associations"] = [{"associationType": "value", **wanted}]
        registry.call("POST", "/associations", body)


def keys(registry: Registry) -> None:
    """Make key encryption keys and data encryption keys: several algorithms and versions, some soft-deleted."""
    path = "/dek-registry/v1/keks"
    for name, more in (("k", {"doc": "ö", "kmsProps": {"p": "1"}}), ("gone", {})):
        registry.call("POST", path, {"name": name, "kmsType": "aws-kms", "kmsKeyId": "arn", **more})
    for kek, subject, version, algorithm in (
        ("k", "orders-value", 1, "AES256_GCM"),
        ("k", "orders-value", 2, "AES256_GCM"),
        ("k", ":.staging:a b/c", 1, "AES256_SIV"),
        ("gone", "orders-value", 1, "AES128_GCM"),
    ):
        body = {"version": version, "algorithm": algorithm, "encryptedKeyMaterial": "QUJD"}
        registry.call("POST", f"{path}/{kek}/deks/{quote(subject, safe='')}", body)
    registry.call("DELETE", f"{path}/k/deks/orders-value/versions/1")
    registry.call("DELETE", f"{path}/gone/deks/orders-value?algorithm=AES128_GCM")
    registry.call("DELETE", f"{path}/gone")


# Records that REST cannot write or show: metadata and rules in the log, an unknown kind, arbitrary bytes.
RAW = [
    encode(
        SchemaKey(Subject("ruled"), Version(7)),
        SchemaValue(
            Subject("ruled"),
            Version(7),
            SchemaId(700),
            '"string"',
            references=(Reference("gone", "gone", 1),),
            metadata={"properties": {"owner": "ops", "sla": "24h"}, "tags": {"a": ["PII"]}},
            rule_set={"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE"}]},
        ),
    ),
    Record(b'{"keytype":"ASSOC","tenant":"default","resourceName":"orders","magic":0}', b'{"guid":"1"}'),
    encode(
        AssociationKey("lkc", "orders", "topic", "value", Subject("orders-value")),
        AssociationValue("g", "t-1", "STRONG", frozen=False, created=1),
    ),
    Record(b"\xff\xfe not text", b"\x00\x80"),
    Record(b'{"keytype":"CONFIG","subject":"no-versions","magic":0}', b'{"compatibilityLevel":"NONE"}'),
    Record(b'{"keytype":"MODE","magic":0}', b'{"mode":"READONLY"}'),
]


def append(log_url, *records):
    """Append raw records to a log."""
    with closing(open_log(log_url)) as log:
        log.append(log.end(), records)


@pytest.fixture(scope="session")
def filled_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a SQLite log, filled over REST; tests work on copies."""
    path = tmp_path_factory.mktemp("transfer") / "filled.db"
    with _served(f"sqlite:///{path}") as url:
        fill(Registry(url))
    return path


@pytest.fixture
def source(filled_log: Path, tmp_path: Path) -> str:
    """Return the URL of a copied log with an example of everything that REST can write."""
    shutil.copy(filled_log, tmp_path / "source.db")
    return f"sqlite:///{tmp_path / 'source.db'}"


@pytest.fixture
def raw_source(source: str) -> str:
    """Return the same log with records that only a log can hold."""
    append(source, *RAW)
    return source


@pytest.fixture
def serve() -> Iterator[Callable[[str], Registry]]:
    """Yield a function that serves a log in this process until the test ends."""
    with ExitStack() as stack:
        yield lambda log_url: Registry(stack.enter_context(_served(log_url)))


@pytest.fixture
def write_raw() -> Callable[..., None]:
    """Return a function that appends raw records to the log at a URL."""
    return append


@pytest.fixture
def strata() -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command of `strata` and returns its exit code, output and errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
        return result.exit_code, result.stdout, result.stderr

    return run
