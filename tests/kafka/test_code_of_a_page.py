"""The Python code that the page of a version shows, run as it is against a broker."""

import json
import re
import uuid
from html import unescape
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from harness.registry import RegistryNode

pytestmark = pytest.mark.kafka
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "other", "type": "bytes"}]}
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture(scope="module")
def registry():
    """Start a registry."""
    with RegistryNode("memory:") as node:
        yield node


def register(registry, subject, schema):
    """Register an Avro schema."""
    body = json.dumps({"schema": json.dumps(schema)}).encode()
    url = f"{registry.url}/subjects/{quote(subject, safe='')}/versions"
    with urlopen(Request(url, body, {"Content-Type": "application/json"})) as answer:
        assert 200 == answer.status


def code_of(registry, subject):
    """Return the Python code on the page of a subject's latest version."""
    url = f"{registry.url}/ui/subjects/{quote(subject, safe='')}/versions/latest"
    with urlopen(url) as answer:
        page = answer.read().decode()
    return unescape(re.search(r'<pre id="python"[^>]*>(.*?)</pre>', page, re.DOTALL)[1])


@pytest.mark.parametrize(("context", "part"), [("", "value"), (":.eu:", "key")])
def test_the_code_writes_and_reads_a_record(registry, kafka_broker, capsys, context, part):
    """A record goes through the topic with the schema of the page, in a context too, where ids mean other schemas."""
    register(registry, f"filler-{uuid.uuid4()}", OTHER)
    subject = f"{context}orders-{uuid.uuid4().hex[:8]}-{part}"
    register(registry, subject, ORDER)
    code = code_of(registry, subject).replace("localhost:9092", kafka_broker.bootstrap)
    exec(compile(code.replace("record = {}", "record = {'id': 7}"), subject, "exec"), {})
    assert "{'id': 7}\n" == capsys.readouterr().out
