"""`from strata.serdes import *` takes the names whose extras are installed; a name without its extra says so."""

import subprocess
import sys

import pytest

PROTOBUF = {"ProtobufDeserializer", "ProtobufSerializer"}
JSON = {"JsonDeserializer", "JsonSerializer"}


def run(program, blocked):
    """Run a program in a Python that cannot import some modules."""
    block = f"import sys; sys.modules.update(dict.fromkeys({blocked}))"
    command = [sys.executable, "-c", f"{block}\n{program}"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("blocked", "lacking"),
    [
        ([], set()),
        (["google"], PROTOBUF),
        (["orjson"], JSON),
        (["jsonschema_rs", "google.protobuf"], JSON | PROTOBUF),
    ],
    ids=["everything installed", "no google at all", "no orjson", "neither format"],
)
def test_a_star_takes_what_is_installed(blocked, lacking):
    """The star leaves out the names of the missing extras and no other, and `__all__` lists the same."""
    program = """
import strata.serdes
every = {name for names in strata.serdes._MODULES.values() for name in names}
before = set(globals())
from strata.serdes import *
taken = set(globals()) - before - {"before"}
assert sorted(taken) == strata.serdes.__all__
print(*sorted(every - taken))
"""
    done = run(program, blocked)
    assert (lacking, "") == (set(done.stdout.split()), done.stderr)


@pytest.mark.parametrize(
    ("name", "blocked", "sentence"),
    [
        ("ProtobufSerializer", ["google.protobuf"], "strata.serdes.protobuf needs google.protobuf: install "),
        ("JsonDeserializer", ["orjson"], "strata.serdes.json_schema needs orjson: install "),
    ],
)
def test_a_name_without_its_extra_says_so(name, blocked, sentence):
    """The import of the name itself raises `MissingExtra`, also after a star."""
    program = f"""
import traceback
for before in ("", "from strata.serdes import *\\n"):
    try:
        exec(f"{{before}}from strata.serdes import {name}")
    except ImportError:
        print(traceback.format_exc().splitlines()[-1])
"""
    first, after_star = run(program, blocked).stdout.splitlines()
    assert f"strata.imports.MissingExtra: {sentence}" in first
    assert first == after_star
