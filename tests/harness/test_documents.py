"""The documents for contributors name files, functions and tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["docs/architecture.md", "CONTRIBUTING.md"]
PATH = re.compile(r"`((?:bench|compat|docs|harness|registry|serdes|spark_udfs|storage|strata|tests)/[\w./]+)`")
PLACE = re.compile(r"\[([\w/]+\.\w+)\]\(\.\./\1\): ((?:`\w+`(?:, )?)+)")
DEFINED = {
    ".py": r"^ *(?:(?:async )?def|class) {0}\b|^ +{0}: |^{0}\b.* = ",
    ".java": r"\b(?:class|interface|record|enum) {0}\b|^ +[\w<>, \[\]]+ {0}\(",
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_exist(document):
    """Each path in a document is a file or folder of the repository."""
    paths = set(PATH.findall((ROOT / document).read_text()))
    assert len(paths) > 5
    assert [] == sorted(path for path in paths if not (ROOT / path).exists())


# What a new contributor must find, one click from the page: each row of its table leads to files and names in them.
QUESTIONS = [
    "a missing default is decided",
    "the next id is given",
    "a DELETE is refused",
    "rights are checked",
    "a worker is replaced",
    "the difference page is made",
    "a `oneOf` is decoded in Spark",
    "a field is encrypted",
    "an exporter keeps its place",
    "a lease is checked",
]
_ROWS = re.findall(r"^\| (.+?) \| (.+) \|$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
TABLE = dict(_ROWS[2 + [row[0] for row in _ROWS].index("what") :])


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_table_of_places_answers_what_contributors_ask(question):
    """One row of the table begins with the question."""
    assert 1 == sum(row.startswith(question) for row in TABLE)


@pytest.mark.parametrize("row", TABLE)
def test_a_row_of_the_table_leads_to_what_it_names(row):
    """Each link of a row is a file, and each name after it is a function, class, field or table of that file."""
    places = PLACE.findall(TABLE[row])
    assert TABLE[row] == "; ".join(f"[{path}](../{path}): {names}" for path, names in places)
    for path, names in places:
        text = (ROOT / path).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(DEFINED[Path(path).suffix].format(name), text, re.MULTILINE), name


def test_the_fast_tests_leave_out_what_exists():
    """Each file that `make test-fast` ignores exists, and so does each test that it deselects."""
    for line in (ROOT / "tests/fast.args").read_text().splitlines()[2:]:
        path, _, name = line.partition("=")[2].partition("::")
        assert (ROOT / path).exists(), line
        assert not name or f"def {name}(" in (ROOT / path).read_text(), line


NAMED = re.compile(r"`([\w./]+\.py)`")
PACKAGES = ["compat", "gitops", "registry", "serdes", "spark_udfs", "storage"]


@pytest.mark.parametrize("package", [package for package in PACKAGES if package != "registry"])
def test_a_package_page_names_every_file(package):
    """Each file of a package is on its page, or on that of the folder that it is in."""
    folder = ROOT / package
    named = set(re.findall(r"\w+\.py|(?<=`)\w+(?=`)", "".join(page.read_text() for page in folder.rglob("README.md"))))
    files = [file for file in folder.rglob("*.py") if file.name != "__init__.py"]
    assert [] == sorted(str(file.relative_to(ROOT)) for file in files if file.name not in named)
    assert [] == sorted(file.name for file in folder.glob("jvm/strata/spark/*.java") if file.stem not in named)


def test_the_page_of_registry_names_every_folder():
    """Each folder with modules is a row of the page's table of rooms, and each row is such a folder."""
    folder = ROOT / "registry"
    rooms = re.findall(r"^\| `([\w/]+)/` \|", (folder / "README.md").read_text(), re.MULTILINE)
    inside = {str(file.parent.relative_to(folder)) for file in folder.rglob("*.py")} - {"."}

    assert sorted(inside - {"features", "features/pages/views"}) == sorted(set(rooms) - {"features"})
    assert {"__main__.py", "app.py", "server.py", "settings.py", "variables.py"} == {
        file.name for file in folder.glob("*.py") if file.name != "__init__.py"
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_page_names_no_file_that_is_gone(package):
    """Each file on the page of a package exists in it, or where its whole path says."""
    folder = ROOT / package
    names = NAMED.findall((folder / "README.md").read_text())
    assert names
    known = [f"/{file.relative_to(folder)}" for file in folder.rglob("*.py")]
    gone = (one for one in names if not any(file.endswith(f"/{one}") for file in known) and not (ROOT / one).exists())
    assert [] == sorted(gone)
