"""`from strata.serdes import *` takes the names whose extras are installed; a name without its extra says so."""

import json
import subprocess
import sys

import pytest

PROTOBUF = {"ProtobufDeserializer", "ProtobufSerializer"}
JSON = {"JsonDeserializer", "JsonSerializer"}
STAR = {
    "everything installed": ([], set()),
    "no google at all": (["google"], PROTOBUF),
    "no orjson": (["orjson"], JSON),
    "neither format": (["jsonschema_rs", "google.protobuf"], JSON | PROTOBUF),
}
NAMES = {
    "ProtobufSerializer": (["google.protobuf"], "strata.serdes.protobuf needs google.protobuf: install "),
    "JsonDeserializer": (["orjson"], "strata.serdes.json_schema needs orjson: install "),
}
# Imports what is always there, and forks for each program, so that it sees neither an extra nor another program.
FORKS = """
import asyncio, importlib.metadata, json, os, sys, traceback, typing, urllib3
answers = {}
for name, (blocked, program) in json.loads(sys.argv[1]).items():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(writer, 1), os.dup2(writer, 2)
        sys.modules.update(dict.fromkeys(blocked))
        try:
            exec(program, {})
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    answers[name] = open(reader).read()
    os.wait()
print(json.dumps(answers))
"""
TAKEN = """
import strata.serdes
every = {name for names in strata.serdes._MODULES.values() for name in names}
before = set(globals())
from strata.serdes import *
taken = set(globals()) - before - {"before"}
assert sorted(taken) == strata.serdes.__all__
print(*sorted(every - taken))
"""
LACKING = """
import traceback
for before in ("", "from strata.serdes import *\\n"):
    try:
        exec(f"{{before}}from strata.serdes import {name}")
    except ImportError:
        print(traceback.format_exc().splitlines()[-1])
"""


@pytest.fixture(scope="module")
def answers():
    """Return what programs print, by name, each in a Python that cannot import some modules."""
    programs = {name: (blocked, TAKEN) for name, (blocked, _) in STAR.items()}
    programs |= {name: (blocked, LACKING.format(name=name)) for name, (blocked, _) in NAMES.items()}
    command = [sys.executable, "-c", FORKS, json.dumps(programs)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout)


@pytest.mark.parametrize("name", STAR)
def test_a_star_takes_what_is_installed(answers, name):
    """The star leaves out the names of the missing extras and no other, and `__all__` lists the same."""
    assert STAR[name][1] == set(answers[name].split())


@pytest.mark.parametrize("name", NAMES)
def test_a_name_without_its_extra_says_so(answers, name):
    """The import of the name itself raises `MissingExtra`, also after a star."""
    first, after_star = answers[name].splitlines()

    assert f"strata.imports.MissingExtra: {NAMES[name][1]}" in first
    assert first == after_star
