"""The documents for contributors name files, functions and tests that exist."""

import re
import subprocess
from pathlib import Path

import pytest

from harness.contents import contents

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
ROOM = re.compile(r"^\| `([\w/]+)/` \|", re.MULTILINE)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_page_names_every_folder(package):
    """Each folder with modules is a row of a table of rooms, on the page of its package or of a folder around it.

    What one file holds is said in its docstring only: `python -m harness.contents FOLDER` prints them.
    """
    root = ROOT / package
    rooms = {page.parent / room for page in root.rglob("README.md") for room in ROOM.findall(page.read_text())}
    folders = {file.parent for file in root.rglob("*.py")} - {root}
    within = {root / "features/pages", root / "confluent"}  # a sentence of their pages has the folders below

    assert [] == sorted(str(folder) for folder in folders - rooms if not within & set(folder.parents))
    assert [] == sorted(str(room) for room in rooms if not room.is_dir())


def test_a_sentence_for_each_file():
    """The contents of a folder are its modules and classes, each with a sentence."""
    entries = {path.name: sentence for path, sentence in contents(ROOT / "spark_udfs")}

    assert [] == [name for name, sentence in entries.items() if not sentence]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_page_names_no_file_that_is_gone(package):
    """Each file on the page of a package exists in it, or where its whole path says."""
    folder = ROOT / package
    names = NAMED.findall((folder / "README.md").read_text())
    assert names
    known = [f"/{file.relative_to(folder)}" for file in folder.rglob("*.py")]
    gone = (one for one in names if not any(file.endswith(f"/{one}") for file in known) and not (ROOT / one).exists())
    assert [] == sorted(gone)


LINK = re.compile(r"\]\(([^)\s]+)\)")


def _prose(page):
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def _anchors(page):
    headings = (heading for heading in re.findall(r"^#+ (.*)", _prose(page), re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    """Each link of a document that stays in the repository names a file, and a heading of it."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    links = [
        (page, target, anchor)
        for page in map(ROOT.joinpath, listed.stdout.split())
        for target, _, anchor in (link.partition("#") for link in LINK.findall(_prose(page)))
        if not target.startswith(("http:", "https:", "mailto:"))
    ]
    dead = {
        (str(page.relative_to(ROOT)), target, anchor)
        for page, target, anchor in links
        if not (place := page.parent / target if target else page).exists()
        or (anchor and place.suffix == ".md" and anchor not in _anchors(place))
    }

    assert len(links) > 200
    assert set() == dead
