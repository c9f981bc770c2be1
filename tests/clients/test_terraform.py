"""Resources of a Terraform provider for schemas: apply, an empty plan, a change, destruction; beside our own plan."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.jars import cache_folder
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient
from strata.serdes.errors import RegistryError

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("go") is None, reason="go is not on the PATH")]

BASE = {"type": "record", "name": "Base", "fields": [{"name": "x", "type": "int", "doc": "spaces\n and all"}]}
RESOURCES = [
    {"subject": "base", "schema": json.dumps(BASE, indent=4), "schema_type": "AVRO", "compatibility_level": "FULL"},
    {"subject": "user", "schema": '{"type": "record", "name": "User", "fields": [{"name": "b", "type": "Base"}]}',
     "schema_type": "AVRO", "references": [{"name": "Base", "subject": "base", "version": 1}], "hard_delete": True},
    {"subject": "j", "schema": '{ "type" : "object", "properties": {"a": {"type": "number", "maximum": 1.0}} }',
     "schema_type": "JSON"},
    {"subject": "p", "schema": 'syntax = "proto3";\n\nmessage P {\n  string s = 1;\n}\n', "schema_type": "PROTOBUF"},
]  # fmt: skip


@pytest.fixture(scope="module")
def terraform():
    """Build the program, and return the function that runs it."""
    program = cache_folder().parent / "clients" / "terraform"
    program.parent.mkdir(parents=True, exist_ok=True)
    sources = Path(__file__).with_name("terraform")
    subprocess.run(["go", "build", "-o", program, "."], cwd=sources, check=True, timeout=900)

    def run(command, url, resources):
        text = json.dumps(resources)
        done = subprocess.run(
            [program, command, url], input=text, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def test_the_life_of_resources(terraform):
    """The plan is empty after an apply, names a change, is empty after that, and destruction leaves nothing."""
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        assert ["base", "user", "j", "p"] == terraform("plan", node.url, RESOURCES)
        terraform("apply", node.url, RESOURCES)
        assert [] == terraform("plan", node.url, RESOURCES)
        more = {"name": "y", "type": "int", "default": 0}
        changed = [{**RESOURCES[0], "schema": json.dumps({**BASE, "fields": [*BASE["fields"], more]})}, *RESOURCES[1:]]
        assert ["base"] == terraform("plan", node.url, changed)
        terraform("apply", node.url, changed)
        assert [] == terraform("plan", node.url, changed)
        assert [1, 2] == client.get_versions("base")
        assert "FULL" == client.get_config("base")["compatibilityLevel"]
        terraform("destroy", node.url, changed)
        assert [] == client.get_subjects()
        with pytest.raises(RegistryError):
            client.get_versions("user", deleted=True)
        assert [1, 2] == client.get_versions("base", deleted=True)
