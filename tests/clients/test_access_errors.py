"""What clients show when the registry refuses them: a wrong password is a 401, a lacking right a 403 that says which.

Each client registers as an owner and reads as a reader, then asks for what it must not get. After the right is granted,
the same client objects get it: they have not remembered a refusal as a missing schema.
"""

import asyncio
import http.client
import json
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import fastavro
import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
)
from confluent_kafka.schema_registry.avro import AsyncAvroDeserializer, AvroDeserializer
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import DekRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext
from httpx import BasicAuth
from schema_registry.client import SchemaRegistryClient as MarcosschrohClient
from schema_registry.client.errors import ClientError
from schema_registry.client.schema import AvroSchema
from schema_registry.serializers import AvroMessageSerializer
from schema_registry.serializers.errors import SerializerError

from harness.access_rules import rule
from harness.clients import CLIENTS
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from strata.registry.core.rights.rules import rule_json
from strata.registry.features.access.auth_file_edits import add_user

STORY_FILE = Path(__file__).with_name("story.json")
STORY = json.loads(STORY_FILE.read_text())
RIGHT, WRONG = STORY["passwords"]["right"], STORY["passwords"]["wrong"]
FIRST, SECOND = STORY["avro"]["first"], STORY["avro"]["second"]

REASONS = {401: "401 Unauthorized", 403: "403 Forbidden"}

Steps = Iterator[tuple[str, object]]


class Registry:
    """A node with access control, and the superuser's requests to it."""

    def __init__(self, node: RegistryNode, audit: Path) -> None:
        self.url = node.url
        self._node, self._audit = node, audit

    def ask(self, method: str, path: str, body: object) -> object:
        """Send a request as the superuser and return the answer."""
        token = b64encode(f"root:{RIGHT}".encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {token}"}
        with closing(self._node.connect()) as connection:
            connection.request(method, path, json.dumps(body), headers)
            answer = connection.getresponse()
            assert answer.status in (http.client.OK, http.client.CREATED), answer.read()
            return json.load(answer)

    def refused(self) -> list[int]:
        """Return the status of every request that the node has refused."""
        lines = map(json.loads, self._audit.read_text().splitlines())
        return [line["status"] for line in lines if line["event"].startswith("auth_")]


class Case(NamedTuple):
    """What a client gets: the registry, its name there, and a schema that the reader may not read."""

    url: str
    name: str
    schema_id: int
    frame: bytes

    @property
    def open(self) -> str:
        """The subject of the owner, which the reader may read."""
        return f"open-{self.name}"

    @property
    def closed(self) -> str:
        """The subject with the schema, which the reader may not read until it is granted."""
        return f"closed-{self.name}"


@pytest.fixture(scope="session")
def registry(tmp_path_factory):
    """Yield a registry with a superuser, and an owner, a producer and a reader of the subjects `open-*`.

    Each client also has a user of its own for wrong passwords, because too many of them keep a user out.
    """
    folder = tmp_path_factory.mktemp("access")
    auth_file, audit = folder / "auth.yaml", folder / "audit.jsonl"
    hashed = cheap_hash(RIGHT)
    for client in SHOWN:
        add_user(auth_file, client, hashed)
    add_user(auth_file, "root", hashed, role="admin")
    add_user(auth_file, "owner", hashed, role="owner", on=["open-*"])
    add_user(auth_file, "producer", hashed, role="producer", on=["open-*"])
    add_user(auth_file, "reader", hashed, role="consumer", on=["open-*"])
    also_tokens = ("--oidc-issuer=https://id.example.com", "--oidc-audience=strata")  # so that a 401 names two schemes
    with RegistryNode("memory:", f"--auth-file={auth_file}", f"--audit={audit}", *also_tokens) as node:
        yield Registry(node, audit)


@pytest.fixture
def case(registry, client):
    """Return the case of a client, with a schema that no other case has."""
    schema = {**SECOND, "doc": client}
    schema_id = registry.ask("POST", f"/subjects/closed-{client}/versions", {"schema": json.dumps(schema)})["id"]
    record = BytesIO()
    fastavro.schemaless_writer(record, schema, {**STORY["value"], "tag": "x"})
    return Case(registry.url, client, schema_id, b"\x00" + schema_id.to_bytes(4, "big") + record.getvalue())


def confluent(
    case: Case, client=SchemaRegistryClient, deserializer=AvroDeserializer, wait=lambda result: result
) -> Steps:
    """Run the steps with confluent-kafka; `wait` gives the result of a call."""
    with ExitStack() as stack:

        def open_as(user, password):
            opened = client({"url": case.url, "basic.auth.user.info": f"{user}:{password}"})
            leave = opened.__exit__ if client is SchemaRegistryClient else opened.__aexit__
            stack.callback(lambda: wait(leave(None, None, None)))
            return opened

        def shown(call, *arguments):
            with pytest.raises(SchemaRegistryError) as refused:
                wait(call(*arguments))
            error = refused.value
            return {"status": error.http_status_code, "code": error.error_code, "text": str(error)}

        first, second = Schema(json.dumps(FIRST), "AVRO"), Schema(json.dumps(SECOND), "AVRO")
        context = SerializationContext("closed", MessageField.VALUE)
        registered = wait(open_as("owner", RIGHT).register_schema(case.open, first))
        yield "registered", registered
        reader = open_as("reader", RIGHT)
        yield "read", json.loads(wait(reader.get_schema(registered)).schema_str)["fields"]
        decode = wait(deserializer(reader))
        wrong = open_as(case.name, WRONG)
        yield "wrong password", shown(wrong.get_latest_version, case.open)
        yield "wrong password, registration", shown(wrong.register_schema, case.open, second)
        yield "id", shown(reader.get_schema, case.schema_id)
        yield "latest", shown(reader.get_latest_version, case.closed)
        yield "registration", shown(reader.register_schema, case.closed, first)
        yield "next version", shown(reader.register_schema, case.open, second)
        yield "frame", shown(decode, case.frame, context)
        yield "waiting", None
        wait(reader.get_schema(case.schema_id))
        wait(decode(case.frame, context))
        latest = wait(reader.get_latest_version(case.closed))
        yield "after the grant", [latest.version, latest.schema_id]


def confluent_async(case: Case) -> Steps:
    """Run the steps with confluent-kafka's asynchronous client."""
    with asyncio.Runner() as runner:
        yield from confluent(case, AsyncSchemaRegistryClient, AsyncAvroDeserializer, runner.run)


def marcosschroh(case: Case) -> Steps:
    """Run the steps with python-schema-registry-client."""

    def client(user, password):
        return MarcosschrohClient(case.url, auth=BasicAuth(user, password), timeout=60)

    def shown(call, *arguments):
        with pytest.raises((ClientError, SerializerError)) as refused:
            call(*arguments)
        shown_by = refused.value if isinstance(refused.value, ClientError) else refused.value.__cause__
        answer = shown_by.server_traceback
        return {"status": shown_by.http_code, "code": answer["error_code"], "text": f"{shown_by}: {answer['message']}"}

    first, second = AvroSchema(FIRST), AvroSchema(SECOND)
    reader, wrong = client("reader", RIGHT), client(case.name, WRONG)
    registered = client("owner", RIGHT).register(case.open, first)
    yield "registered", registered
    yield "read", reader.get_by_id(registered).raw_schema["fields"]
    serializer = AvroMessageSerializer(reader)
    yield "wrong password", shown(wrong.get_versions, case.open)
    yield "wrong password, registration", shown(wrong.register, case.open, second)
    yield "id", shown(reader.get_by_id, case.schema_id)
    yield "latest", reader.get_schema(case.closed)
    yield "registration", shown(reader.register, case.closed, first)
    yield "next version", shown(reader.register, case.open, second)
    yield "frame", shown(serializer.decode_message, case.frame)
    yield "waiting", None
    reader.get_by_id(case.schema_id)
    serializer.decode_message(case.frame)
    latest = reader.get_schema(case.closed)
    yield "after the grant", [latest.version, latest.schema_id]


def program(command: list[str], case: Case) -> Steps:
    """Run the steps with a client in another language, which waits for the end of its input at the step `waiting`."""
    arguments = ["access", case.url, case.name, str(STORY_FILE), str(case.schema_id), case.frame.hex()]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, *arguments], stdin=pipe, stdout=pipe, text=True, encoding="utf-8") as running:
        try:
            for line in running.stdout:
                step = json.loads(line)
                yield step["step"], step["got"]
                if step["step"] == "waiting":
                    running.stdin.close()
        finally:
            running.kill()


class Shown(NamedTuple):
    """What a client's error has: the status, the code, and a text; `words` are those of the registry."""

    text: str
    fields: frozenset[str] = frozenset({"status", "code"})


SHOWN = {
    "confluent-kafka": Shown("{words} (HTTP status code {status}, SR code {code})"),
    "confluent-kafka-async": Shown("{words} (HTTP status code {status}, SR code {code})"),
    "python-schema-registry-client": Shown(": {words}"),  # in `server_traceback`
    "go-franz": Shown("{words}"),
    "go-confluent": Shown("schema registry request failed error code: {code}: {words}", frozenset({"code"})),
    "node-confluent": Shown("Error: {words}; Error code: {code}"),
    "node-kafkajs": Shown("ResponseError: Confluent_Schema_Registry - {words}", frozenset({"status"})),
    "rust": Shown("failed with status {status}, was cause by error_code: {code}, message: {words}, it's", frozenset()),
    "java": Shown("RestClientException: {words}; error code: {code}\n"),
}
# What a client asks for before it registers.
ASKS_FIRST = {"node-kafkajs": "ReadCompatibility", "python-schema-registry-client": "Read"}
PYTHON = {
    "confluent-kafka": confluent,
    "confluent-kafka-async": confluent_async,
    "python-schema-registry-client": marcosschroh,
}


def refusals(client: str, case: Case) -> dict[str, tuple[int, int, str]]:
    """Return status, code and message of the registry's answer to each step that it must refuse."""
    denied = {
        "id": f"Read on Schema: {case.schema_id}",
        "latest": f"Read on Subject: {case.closed}",
        "registration": f"{ASKS_FIRST.get(client, 'Write')} on Subject: {case.closed}",
        "next version": f"Write on Subject: {case.open}",
        "frame": f"Read on Schema: {case.schema_id}",
    }
    steps = {step: (403, 40301, f"User is denied operation {words}") for step, words in denied.items()}
    if client == "node-kafkajs":
        steps["level"] = (403, 40301, f"User is denied operation WriteCompatibility on Subject: {case.open}-unset")
    if client == "go-franz":  # has no deserializer that asks the registry
        del steps["frame"]
    unknown = dict.fromkeys(("wrong password", "wrong password, registration"), (401, 401, "Unauthorized"))
    return {**unknown, **steps}


def expected(client: str, refused: dict[str, tuple[int, int, str]]) -> dict[str, object]:
    """Return what a client must show for each refusal."""
    text, fields = SHOWN[client]
    steps: dict[str, object] = {}
    for step, (status, code, words) in refused.items():
        told = REASONS[status] if client == "rust" else status
        steps[step] = {
            **{name: value for name, value in (("status", status), ("code", code)) if name in fields},
            "text": text.format(words=words, status=told, code=code),
        }
    if client == "python-schema-registry-client":
        steps["latest"] = None  # the client's answer to every error
    return steps


SLOW = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("client", [*PYTHON, *(pytest.param(name, marks=SLOW) for name in CLIENTS)])
def test_refusals(client, registry, case, commands, certificate, monkeypatch):
    """The client shows 401 and 403 with the registry's words, asks once each time, and remembers none of them."""
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    steps = PYTHON[client](case) if client in PYTHON else program(commands(client), case)
    refused = refusals(client, case)
    wanted, seen = expected(client, refused), {}
    before = len(registry.refused())

    for step, got in steps:
        if step == "waiting":
            registry.ask("POST", "/security/acls", [rule_json(rule("reader", "READ", case.closed))])
            asked = registry.refused()[before:]  # the audit has a refusal before the node takes the next request
        elif isinstance(got, dict) and wanted[step]["text"] in got.get("text", ""):
            seen[step] = {**got, "text": wanted[step]["text"]}
        else:
            seen[step] = got

    assert 0 < seen["registered"] != case.schema_id
    accepted = {"registered": seen["registered"], "read": FIRST["fields"], "after the grant": [1, case.schema_id]}
    assert accepted | wanted == seen
    assert [status for status, _, _ in refused.values()] == asked


def test_keys(registry, name):
    """confluent-kafka's DEK client shows the same, so that a producer without the right does not make a key."""
    registry.ask("POST", "/dek-registry/v1/keks", {"name": name, "kmsType": "t", "kmsKeyId": "k"})

    def shown(client, call, *arguments):
        with pytest.raises(SchemaRegistryError) as refused:
            call(client, *arguments)
        return refused.value.http_status_code, refused.value.error_code, refused.value.error_message

    def open_as(password):
        return DekRegistryClient({"url": registry.url, "basic.auth.user.info": f"reader:{password}"})

    with open_as(RIGHT) as reader, open_as(WRONG) as wrong:
        seen = [
            shown(wrong, DekRegistryClient.get_kek, name),
            shown(reader, DekRegistryClient.get_kek, name),
            shown(reader, DekRegistryClient.register_kek, name, "t", "k"),
        ]
        registry.ask("POST", "/security/acls", [rule_json(rule("reader", "READ", name, "KEK"))])
        assert "t" == reader.get_kek(name).kms_type

    denied = f"User is denied operation {{}} on KEK: {name}"
    assert [(401, 401, "Unauthorized"), *((403, 40301, denied.format(each)) for each in ("Read", "Write"))] == seen
