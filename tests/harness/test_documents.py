"""The documents for contributors name files, functions and tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["docs/architecture.md", "CONTRIBUTING.md"]
PATH = re.compile(r"`((?:bench|compat|docs|harness|registry|serdes|spark_udfs|storage|strata|tests)/[\w./]+)`")
PLACE = re.compile(r"`([\w/]+\.py)`: `(\w+)`")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_exist(document):
    """Each path in a document is a file or folder of the repository."""
    paths = set(PATH.findall((ROOT / document).read_text()))
    assert len(paths) > 5
    assert [] == sorted(path for path in paths if not (ROOT / path).exists())


def test_names_are_defined():
    """Each name after a file is a function, class or field that the file defines."""
    places = PLACE.findall((ROOT / "docs/architecture.md").read_text())
    assert 8 == len(places)
    for path, name in places:
        assert re.search(
            rf"^ *(?:(?:async )?def|class) {name}\b|^ +{name}: ", (ROOT / path).read_text(), re.MULTILINE
        ), name


def test_the_fast_tests_leave_out_what_exists():
    """Each file that `make test-fast` ignores exists, and so does each test that it deselects."""
    for line in (ROOT / "tests/fast.args").read_text().splitlines()[2:]:
        path, _, name = line.partition("=")[2].partition("::")
        assert (ROOT / path).exists(), line
        assert not name or f"def {name}(" in (ROOT / path).read_text(), line
