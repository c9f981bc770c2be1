"""Programs in the forms of confluent-kafka's documentation print the same after the import is changed."""

import contextlib
import io
import types
import warnings
from pathlib import Path

import pytest

from harness.registry import RegistryNode

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))
THEIRS, OURS = "confluent_kafka.schema_registry", "strata.serdes.confluent"


def _printed(path: Path, url: str, package: str) -> str:
    """Run a program with one of the packages and return what it prints."""
    text = path.read_text().replace(THEIRS, package)
    program = types.ModuleType(path.stem)
    output = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(output):
        if package == THEIRS:
            warnings.simplefilter("ignore")  # what its libraries deprecate is not the matter here
        exec(compile(text, f"{path.stem} with {package}", "exec"), vars(program))
        program.main(url)
    return output.getvalue()


@pytest.fixture(scope="module")
def urls():
    """Yield the addresses of two registries that are alike: both packages register the same in the same order."""
    with RegistryNode("memory:") as one, RegistryNode("memory:") as other:
        yield {THEIRS: one.url, OURS: other.url}


@pytest.mark.usefixtures("their_cel")
@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_program(urls, path):
    """A program prints the same, line by line, and its frames are the same bytes."""
    theirs = _printed(path, urls[THEIRS], THEIRS)
    ours = _printed(path, urls[OURS], OURS)

    assert theirs.splitlines() == ours.splitlines()
    assert theirs.count("\n") > 5
