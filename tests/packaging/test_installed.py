"""The installed wheel works beside foreign modules with the names of our folders, and names a missing extra."""

import json
import re
import subprocess
import time
from urllib.request import urlopen

import pytest

from harness.environments import site_packages
from strata import __version__


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

client = RegistryClient("{node}")
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


@pytest.mark.parametrize(
    ("module", "log", "extra"),
    [
        ("confluent_kafka", "kafka://127.0.0.1:1/_schemas", "kafka"),
        ("psycopg", "postgresql+psycopg://u@127.0.0.1:1/d", "postgres"),
    ],
)
def test_a_log_names_its_missing_extra(run_in, full_python, module, log, extra):
    """`strata serve` on a log whose driver is not installed prints one line that says how to install it."""
    program = f"import sys; sys.modules['{module}'] = None; from strata.command import main; main()"
    done = run_in(full_python, "-c", program, "serve", f"--log={log}", "--listen=127.0.0.1:0", "--log-level=error")
    assert 2 == done.returncode
    assert f"install strata-registry[{extra}] (docs/installing.md)" in done.stderr
    assert "Traceback" not in done.stderr


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


@pytest.fixture
def node(full_python, foreign_folder):
    """Yield the URL of a registry that the installed command serves from the folder of foreign modules."""
    command = [full_python.with_name("strata"), "serve", "--listen=127.0.0.1:0", "--log=memory:", "--drain-seconds=0"]
    output = foreign_folder / "node.log"
    with output.open("wb") as log:
        process = subprocess.Popen(command, cwd=foreign_folder, env={}, stdout=log, stderr=log)
    try:
        while not (found := re.search(r" serving memory: on (http://\S+),", output.read_text())):
            assert process.poll() is None, output.read_text()
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        process.wait(60)


def test_the_service_runs_beside_foreign_modules(node):
    """The installed command serves, and lists no subjects."""
    with urlopen(f"{node}/subjects", timeout=60) as response:
        assert [] == json.load(response)
