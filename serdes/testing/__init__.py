"""Tests of programs that use a registry, without one.

client = RegistryClient("mock://")                    # a registry in this process
pytest_plugins = ["strata.serdes.testing.plugin"]     # in conftest.py: the fixture `registry_client`
with record(url, "answers.json") as client: ...       # the answers of a registry, as a file
client = replay("answers.json")                       # the same answers without it
"""

from strata.serdes.testing.recording import Unrecorded, record, replay

__all__ = ["Unrecorded", "record", "replay"]
