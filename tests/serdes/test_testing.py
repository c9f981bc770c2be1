"""Programs are tested without a registry: a fixture, recorded answers, and stand-ins for the client."""

import json
import os
import subprocess
import sys
from unittest import mock

import pytest

from strata.serdes import (
    AvroDeserializer,
    AvroSerializer,
    RegisteredSchema,
    RegistryClient,
    RegistryError,
    Schema,
)
from strata.serdes.testing import Unrecorded, record, replay

SCHEMA = '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}'

pytest_plugins = ["strata.serdes.testing.plugin"]


def test_fixture(registry_client):
    """The fixture is a client of an empty registry."""
    assert [] == registry_client.get_subjects()
    assert 1 == registry_client.register("s", SCHEMA).schema_id


def test_fixture_again(registry_client):
    """Each test has a registry of its own."""
    assert [] == registry_client.get_subjects()


def test_plugin_in_conftest(tmp_path):
    """The fixture is there after one line in conftest.py."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["strata.serdes.testing.plugin"]\n')
    (tmp_path / "test_it.py").write_text(
        "def test(registry_client):\n    assert [] == registry_client.get_subjects()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # most of its time would be for plugins
    printed = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path, env=environment
    )

    assert "1 passed" in printed.stdout


def _run(client):
    frame = AvroSerializer(client, SCHEMA)({"n": 1}, topic="recorded")
    try:
        client.get_version("recorded-nothing")
    except RegistryError as error:
        missing = error.error_code
    return frame, AvroDeserializer(client)(frame, topic="recorded"), missing


def test_record_and_replay(registry_url, tmp_path):
    """A program gets the same answers from the file as from the registry, errors included."""
    path = tmp_path / "answers.json"
    with record(registry_url, path) as client:
        expected = _run(client)

    assert expected == _run(replay(path))


def test_recording_has_no_credentials(tmp_path):
    """Credentials do not get into the file."""
    path = tmp_path / "answers.json"
    with record("mock://", path, username="ann", password="s3cret") as client:
        client.register("s", SCHEMA)

    text = path.read_text()
    assert "s3cret" not in text
    assert "ann" not in text
    assert ["POST"] == [one["method"] for one in json.loads(text)["answers"]]


def test_answers_in_order(tmp_path):
    """A repeated request gets its answers in order; the last one repeats; another request is named."""
    path = tmp_path / "answers.json"
    with record("mock://", path) as client:
        client.get_subjects()
        client.register("s", SCHEMA)
        client.get_subjects()

    with replay(path) as client:
        assert [[], ["s"], ["s"]] == [client.get_subjects() for _ in range(3)]
        with pytest.raises(Unrecorded, match="has no answer to GET /mode; record it again"):
            client.get_mode()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2, "answers": []}', '{"version": 1, "answers": 5}'])
def test_not_a_recording(tmp_path, text):
    """Another file is an error that says so."""
    path = tmp_path / "answers.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not a recording"):
        replay(path)


def test_autospec():
    """A stand-in made by `create_autospec` serves both ways, and is asked as the client would be."""
    client = mock.create_autospec(RegistryClient, instance=True)
    client.register.return_value = RegisteredSchema("t-value", 1, 5, None, Schema(SCHEMA))
    client.get_schema.return_value = Schema(SCHEMA)
    conf = {"subject.name.strategy": "TOPIC"}

    frame = AvroSerializer(client, SCHEMA, conf=conf)({"n": 1}, topic="t")

    assert b"\0\0\0\0\5\2" == frame
    assert {"n": 1} == AvroDeserializer(client, conf=conf)(frame, topic="t")
    client.register.assert_called_once_with("t-value", Schema(SCHEMA), normalize=False)
    client.get_schema.assert_called_once_with(5, subject=None)


class Registry:
    """A program's own stand-in, of no class of ours."""

    def __init__(self, **schemas):
        self.schemas = schemas

    def get_schema(self, schema_id, *, subject=None):
        """Return a schema."""
        return Schema(self.schemas[f"id{schema_id}"])


def test_any_object_with_the_methods():
    """A deserializer takes any object that has the methods which it needs."""
    read = AvroDeserializer(Registry(id7=SCHEMA), conf={"subject.name.strategy": "TOPIC"})

    assert {"n": 1} == read(b"\0\0\0\0\7\2", topic="t")


@pytest.mark.parametrize("other", ["http://localhost:8081", {"url": "x"}, None])
def test_other_arguments(other):
    """What has no such methods is an error that says what to pass."""
    with pytest.raises(TypeError, match="client: expected"):
        AvroDeserializer(other)
