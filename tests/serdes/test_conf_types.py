"""Settings and options are typed: mypy and pyright refuse what is wrong, and so does the package at run time."""

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from harness.npm import installed
from strata.compat.levels import Level
from strata.serdes import ClientSettings, RegistryClient, conf_types
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.confluent.settings import CLIENT_SETTINGS
from strata.serdes.serde_settings import DeserializerSettings, SerializerSettings

ROOT = Path(__file__).resolve().parents[2]
USES = Path(__file__).with_name("typing") / "uses.py"
PYRIGHT = "pyright@1.1.414"


def _marked() -> set[int]:
    return {number for number, line in enumerate(USES.read_text().splitlines(), 1) if line.endswith("# error")}


def test_mypy():
    """Mypy refuses the marked lines, and no others."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(USES)]
    printed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, cwd=ROOT)
    lines = [one.split(":") for one in printed.stdout.splitlines() if ": error:" in one]

    assert (_marked(), "") == ({int(line[1]) for line in lines if line[0].endswith("uses.py")}, printed.stderr)
    assert all(line[0].endswith("uses.py") for line in lines)


@pytest.mark.slow  # in `make test`, mypy alone
def test_pyright():
    """Pyright refuses the marked lines, and no others."""
    program = installed(PYRIGHT) / "node_modules" / ".bin" / "pyright"
    command = [program, "--pythonpath", sys.executable, "--outputjson", USES]
    printed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, cwd=ROOT)
    found = [one for one in json.loads(printed.stdout)["generalDiagnostics"] if one["severity"] == "error"]

    assert _marked() == {one["range"]["start"]["line"] + 1 for one in found}


KINDS = [
    (f"{name}{kind}Conf", settings, name.upper())
    for name in ("Avro", "Json", "Protobuf")
    for kind, settings in (("Serializer", SerializerSettings), ("Deserializer", DeserializerSettings))
]


@pytest.mark.parametrize(("name", "settings", "schema_format"), KINDS, ids=[row[0] for row in KINDS])
def test_names_of_settings(name, settings, schema_format):
    """The types have the names that serializers and deserializers know."""
    assert settings.names(schema_format) == get_type_hints(getattr(conf_types, name)).keys()


def test_names_of_options():
    """The types have the names of all options and settings of the client, and all levels."""
    options = {one.name for one in fields(ClientSettings)} - {"urls"}

    assert options == get_type_hints(conf_types.ClientOptions).keys()
    assert CLIENT_SETTINGS == get_type_hints(conf_types.ClientConf).keys()
    assert {one.value for one in Level} == set(get_args(conf_types.CompatibilityLevel))


WRONG = [
    (lambda client: RegistryClient("http://x", timeot=3), TypeError, "did you mean 'timeout'"),
    (lambda client: RegistryClient("http://x", timeout="abc"), TypeError, "timeout: expected a number, got str"),
    (
        lambda client: ClientSettings.from_conf({"url": "http://x", "max.retry": 3}),
        ValueError,
        "did you mean 'max.retries'",
    ),
    (lambda client: client.set_config("FULLL"), ValueError, "did you mean 'FULL'"),
    (lambda client: client.set_mode("READ"), ValueError, "mode: expected READWRITE"),
    (
        lambda client: AvroSerializer(client, '"int"', conf={"auto.register.schema": True}),
        ValueError,
        "did you mean 'auto.register.schemas'",
    ),
    (lambda client: AvroDeserializer(client, conf={"use.latest.versions": True}), ValueError, "use.latest.version"),
]


@pytest.mark.parametrize(("use", "kind", "words"), WRONG)
def test_wrong_at_run_time(use, kind, words):
    """The same mistakes are errors at run time, with the nearest name."""
    with RegistryClient("mock://") as client, pytest.raises(kind, match=words):
        use(client)


def test_rule_conf():
    """`rule.conf` gives all executors their settings, as confluent-kafka's `rule_conf` does."""
    settings = SerializerSettings.parse({"rule.conf": {"secret": "x"}}, "AVRO")

    assert {"_default_.param.secret": "x"} == settings.executor_settings
