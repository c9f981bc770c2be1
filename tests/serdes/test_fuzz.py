"""Any bytes give a value within its limits or a named error, never a crash, from framing and from each decoder."""

import importlib.util

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from harness.fuzz import fuzz
from harness.fuzz_targets import TARGETS

EXAMPLES = {"arrow": 120}
RUNS = {"arrow": 10_000}


@pytest.fixture(scope="module", params=TARGETS)
def target(request):
    """Return the name of a target, what to call, and good inputs."""
    made = TARGETS[request.param]
    return request.param, made.make(), made.seeds()


def damaged(seeds):
    """Draw good inputs with some bytes changed, cut or added."""
    edits = st.lists(st.tuples(st.integers(0, 80), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=4)

    def edit(data, changes):
        changed = bytearray(data)
        for at, length, new in changes:
            changed[at : at + length] = new
        return bytes(changed)

    return st.builds(edit, st.sampled_from(seeds), edits)


def test_good_inputs(target):
    """Each target accepts the good inputs that damaged inputs are made from."""
    _, run, seeds = target

    for data in seeds:
        run(data)


def test_any_bytes(target):
    """Random bytes and damaged records give a value or a named error."""
    name, run, seeds = target

    @settings(max_examples=examples(EXAMPLES.get(name, 200), part=8), deadline=None)
    @given(st.binary(max_size=300) | damaged(seeds) | damaged(seeds))
    def holds(data):
        run(data)

    holds()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this machine")
@pytest.mark.parametrize("name", TARGETS)
def test_guided(name):
    """The same holds for a coverage-guided fuzzer, in its own process."""
    runs = RUNS.get(name, 50_000)

    outcome = fuzz(name, runs=runs, seconds=600)

    assert "" == outcome.defect, outcome
    assert runs == outcome.inputs
