"""The installed wheel works beside foreign modules with the names of our folders, and names a missing extra."""

import json
import re
from urllib.request import urlopen

import pytest

from harness.environments import site_packages
from strata import __version__


@pytest.mark.long
def test_a_foreign_module_would_be_imported(run_in, small_python):
    """The foreign modules are on the path of the installed Python: importing one fails as they do."""
    done = run_in(small_python, "-c", "import registry")
    assert "RuntimeError: this registry belongs to the user" in done.stderr


def test_the_client_needs_urllib3_only(run_in, small_python):
    """Without extras the wheel installs urllib3, and the Avro serializers and the client can be imported."""
    done = run_in(small_python, "-c", "from strata.serdes import AvroDeserializer, AvroSerializer, RegistryClient")
    assert (0, "") == (done.returncode, done.stderr)
    installed = {path.name.partition("-")[0] for path in site_packages(small_python).glob("*.dist-info")}
    assert {"strata_registry", "urllib3"} == installed


def test_records_are_written_and_read_without_extras(run_in, small_python, node):
    """A program on the small environment registers a schema, and writes and reads a record."""
    program = f"""
from strata.serdes import AvroDeserializer, AvroSerializer, RegistryClient

client = RegistryClient("{node.url}")
write = AvroSerializer(client, '{{"type": "record", "name": "A", "fields": [{{"name": "x", "type": "int"}}]}}')
frame = write({{"x": 7}}, topic="small")
print(frame.hex(), AvroDeserializer(client)(frame))
"""
    done = run_in(small_python, "-c", program)
    assert ("00000000010e {'x': 7}\n", "") == (done.stdout, done.stderr)


EXTRAS = [
    ("strata.registry", "server"),
    ("strata.registry.app", "server"),
    ("strata.gitops", "gitops"),
    ("strata.storage", "server"),
    ("strata.storage.kafka.log", "server"),
    ("strata.compat.json_schema", "json"),
    ("strata.compat.protobuf", "protobuf"),
    ("strata.serdes.json_schema", "json"),
    ("strata.serdes.protobuf", "protobuf"),
    ("strata.serdes.protobuf.serializer", "protobuf"),
    ("strata.serdes.arrow", "arrow"),
    ("strata.serdes.encryption", "encryption"),
    ("strata.serdes.encryption.csfle", "encryption"),
    ("strata.spark_udfs", "pyspark"),
    ("strata.spark_udfs.decoding.columns", "pyspark"),
]
NAMES = [("JsonSerializer", "json"), ("JsonDeserializer", "json"), ("ProtobufSerializer", "protobuf")]


_IMPORTS = """
import sys

for statement in sys.argv[1:]:
    try:
        exec(statement)
    except ImportError as error:
        print(statement, type(error).__name__, error, sep=": ")
"""


def test_modules_and_names_name_their_missing_extra(run_in, small_python):
    """Importing a module, or a public name, whose extra is not installed fails, and says how to install it."""
    expected = {f"import {module}": extra for module, extra in EXTRAS}
    expected |= {f"from strata.serdes import {name}": extra for name, extra in NAMES}
    done = run_in(small_python, "-c", _IMPORTS, *expected)
    line = r"^(.+): MissingExtra: strata\..+: install strata-registry\[(\w+)\] \(docs/installing\.md\)$"
    assert (expected, "") == (dict(re.findall(line, done.stdout, re.MULTILINE)), done.stderr)


def test_all_public_names_are_those_of_installed_extras(run_in, small_python):
    """`from strata.serdes import *` leaves out the serializers whose extras are not installed."""
    program = "from strata.serdes import *; print(*(name for name in dir() if name.endswith('Serializer')))"
    done = run_in(small_python, "-c", program)
    assert ("AsyncSerializer AvroSerializer\n", "") == (done.stdout, done.stderr)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["serve"]], ids=" ".join)
def test_the_command_names_its_missing_extra(run_in, small_python, arguments):
    """Without the extra `server` the command prints one line that says how to install it, and ends with 2."""
    done = run_in(small_python.with_name("strata"), *arguments)
    assert (2, "") == (done.returncode, done.stdout)
    assert re.fullmatch(
        r"strata: strata\.registry needs .+: install strata-registry\[server\] \(docs/installing\.md\)\n", done.stderr
    )


def test_a_command_for_schemas_names_its_missing_extra(run_in, small_python):
    """Without any extra, a command that may be of either command line names both extras."""
    done = run_in(small_python.with_name("strata"), "check")
    assert (2, "") == (done.returncode, done.stdout)
    assert ["gitops", "server"] == re.findall(r": install strata-registry\[(\w+)\]", done.stderr)


# What serves on either log, once; then a command for each, in a process of its own.
_LOGS = """
import os
import sys

from strata.command import main
import strata.registry.server

arguments = sys.argv[1:]
for module, log in zip(arguments[::2], arguments[1::2]):
    if os.fork() == 0:
        sys.modules[module] = None
        sys.argv[1:] = ["serve", f"--log={log}", "--listen=127.0.0.1:0", "--log-level=error"]
        main()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.mark.long
def test_a_log_names_its_missing_extra(run_in, full_python):
    """`strata serve` on a log whose driver is not installed prints one line that says how to install it."""
    kafka, postgres = "kafka://127.0.0.1:1/_schemas", "postgresql+psycopg://u@127.0.0.1:1/d"
    done = run_in(full_python, "-c", _LOGS, "confluent_kafka", kafka, "psycopg", postgres)
    assert ["2", "2"] == done.stdout.split(), done.stderr
    line = r"strata: .+; install strata-registry\[(\w+)\] \(docs/installing\.md\)"
    assert ["kafka", "postgres"] == [re.fullmatch(line, text)[1] for text in done.stderr.splitlines()]


def test_help_and_version_beside_foreign_modules(run_in, full_python):
    """`strata --help` lists the commands, and `strata --version` says what `strata.__version__` is."""
    strata = full_python.with_name("strata")
    helped = run_in(strata, "--help")
    assert (0, "") == (helped.returncode, helped.stderr)
    assert "serve" in helped.stdout
    assert f"strata, version {__version__}\n" == run_in(strata, "--version").stdout
    program = (
        "import strata; from importlib.metadata import version; print(strata.__version__, version('strata-registry'))"
    )
    assert f"{__version__} {__version__}\n" == run_in(full_python, "-c", program).stdout


def test_the_service_runs_beside_foreign_modules(node):
    """The installed command serves, and lists the formats of schemas."""
    with urlopen(f"{node.url}/schemas/types", timeout=60) as response:
        assert {"AVRO", "JSON", "PROTOBUF"} == set(json.load(response))
