"""Any bytes, on framing and on each decoder: a value within its limits or a fault by its name, and never a crash."""

import importlib.util

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.fuzz import fuzz
from harness.fuzz_targets import TARGETS

EXAMPLES = {"arrow": 150}
RUNS = {"arrow": 10_000}


@pytest.fixture(scope="module", params=TARGETS)
def target(request):
    """The name of a target, what to call, and good inputs."""
    made = TARGETS[request.param]
    return request.param, made.make(), made.seeds()


def damaged(seeds):
    """Good inputs with some bytes changed, cut or added."""
    edits = st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=4)

    def edit(data, changes):
        changed = bytearray(data)
        for at, length, new in changes:
            changed[at : at + length] = new
        return bytes(changed)

    return st.builds(edit, st.sampled_from(seeds), edits)


def test_good_inputs(target):
    """What inputs are made of is taken."""
    _, run, seeds = target

    for data in seeds:
        run(data)


def test_any_bytes(target):
    """Random bytes, and damaged records."""
    name, run, seeds = target

    @settings(max_examples=EXAMPLES.get(name, 400), deadline=None)
    @given(st.binary(max_size=300) | damaged(seeds) | damaged(seeds))
    def holds(data):
        run(data)

    holds()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this machine")
@pytest.mark.parametrize("name", TARGETS)
def test_guided(name):
    """The same with inputs that a fuzzer chooses by what they reach, in a process of their own."""
    runs = RUNS.get(name, 50_000)

    outcome = fuzz(name, runs=runs, seconds=600)

    assert "" == outcome.defect, outcome
    assert runs == outcome.inputs
