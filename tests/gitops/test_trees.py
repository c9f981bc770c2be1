"""Trees of files as they are found: in hooks, with links, pipes and names that are hard to print."""

import json
import os
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import pytest

WRONG = '{\n  "type": "record",\n  "name": "X",\n  "fields": [{"name": "a", "type": "lng"}]\n}'
BROKEN = "orders.avsc:5:6: error: Field 'b' is in the new schema"


@pytest.fixture
def changed(files, record):
    """Commit a schema in a folder, and change it so that it breaks the level."""
    files.write(schemas___orders__avsc=record("a"), other___other__avsc=record("x", name="Other"))
    files.commit()
    files.write(schemas___orders__avsc=record("b"))
    return files


def test_places_are_seen_from_the_working_folder(changed, monkeypatch):
    """A report names files as the user, or GitHub, would open them: not from the folder that is checked."""
    check = ("check", "schemas", "--against", "HEAD")
    assert changed.run(*check, code=1).startswith(f"schemas/{BROKEN}")
    monkeypatch.chdir("schemas")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(changed.root))
    assert changed.run("check", "--against", "HEAD", code=1).startswith(BROKEN)
    assert "::error file=schemas/orders.avsc,line=5," in changed.run("check", "--against=HEAD", "--output=github")
    assert [("schemas/orders.avsc", 5)] == places(changed.run("check", "--against=HEAD", "--output=sarif"))


def places(report):
    """Return the file and the line of each result of a SARIF report."""
    found = [one["locations"][0]["physicalLocation"] for one in json.loads(report)["runs"][0]["results"]]
    return [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in found]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("subjects:\n- name: x\n  schema: |\n" + "".join(f"    {one}\n" for one in WRONG.split("\n")), 7, 19),
        ("subjects:\n- name: x\n  schema: '" + WRONG.replace("\n", "") + "'\n", 3, 60),
        ("subjects:\n- name: x\n  schema: " + json.dumps(WRONG) + "\n", 1, 1),
    ],
)
def test_a_schema_in_the_manifest(files, text, line, column):
    """A mistake in a schema that stands in the manifest is in that file, at its line if it can be found."""
    files.put("strata.yaml", text)
    assert files.run("check", code=1).startswith(f"strata.yaml:{line}:{column}: error: Unknown type lng")
    assert [("strata.yaml", line)] == places(files.run("check", "--output", "sarif", code=1))


def test_a_sarif_report_has_a_file_for_each_result(changed):
    """GitHub takes only results with a file: that a subject is gone is not one. A path is written as a URI."""
    changed.git("mv", "schemas/orders.avsc", "schemas/a b%:.avsc")
    changed.put("schemas/a b%:.avsc", WRONG)
    found = places(changed.run("check", "--against", "HEAD", "--output", "sarif", code=1))
    assert [("schemas/a%20b%25%3A.avsc", 4)] == found
    assert "schemas/a b%:.avsc" == unquote(found[0][0])


@pytest.mark.parametrize("variable", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"])
def test_the_variables_of_a_hook_change_nothing(changed, monkeypatch, variable):
    """A hook of Git sets variables that would make a folder below the repository its top."""
    monkeypatch.setenv(variable, str(changed.root / ".git"))
    output = changed.run("check", "schemas", "--against", "HEAD", code=1)
    assert output.startswith(f"schemas/{BROKEN}")
    assert output.endswith("1 schema checked, 1 error\n")


def test_the_first_commit_of_a_repository(files, record):
    """Before the first commit, when a hook may run already, HEAD has no schemas; other names are a mistake."""
    files.git("init", "--quiet")
    files.put("orders.avsc", record("a"))
    assert "1 schema checked, no errors\n" == files.run("check", "--against", "HEAD", code=0)
    assert "not a URL, a folder, an export file or a Git revision" in files.run("check", "--against", "main", code=2)


def test_a_revision_has_the_files_that_a_folder_has(files, record):
    """Hidden folders and those of build tools are left out of both, unless a manifest names their files."""
    for folder in ("", "build/", "src/target/", ".hidden/"):
        files.put(f"{folder}orders.avsc", record("a"))
    files.commit()
    files.put("orders.avsc", record("b"))
    assert files.run("check", "--against", "HEAD", code=1).startswith(BROKEN)
    files.put("strata.yaml", "subjects: [{name: o, file: build/orders.avsc}]")
    files.commit()
    files.put("build/orders.avsc", record("b"))
    assert files.run("check", "--against", "HEAD", code=1).startswith(f"build/{BROKEN}")


def test_links_in_a_revision_are_followed(files, record):
    """A symbolic link is the file that it points to, in a revision as in a folder; a circle of links cannot be read."""
    files.write(shared___orders__avsc=record("a"), strata__yaml="subjects: [{name: o, file: link.avsc}]")
    (files.root / "link.avsc").symlink_to("shared/orders.avsc")
    files.commit()
    files.write(shared___orders__avsc=record("b"))
    assert files.run("check", "--against", "HEAD", code=1).startswith(f"link.avsc{BROKEN.removeprefix('orders.avsc')}")
    (files.root / "link.avsc").unlink()
    (files.root / "link.avsc").symlink_to("link.avsc")
    files.commit()
    (files.root / "link.avsc").unlink()
    files.write(link__avsc=record("b"))
    assert "too many symbolic links" in files.run("check", "--against", "HEAD", code=2)


def test_a_pipe_is_no_schema(files):
    """A named pipe is refused at once: to read it would wait for a writer."""
    os.mkfifo(files.root / "pipe.avsc")
    assert "it is not a file" in files.run("check", code=2)


@pytest.mark.parametrize("output", ["text", "json", "github", "sarif", "junit"])
def test_what_cannot_be_printed(files, output):
    """Half of a character pair, a line break and what XML cannot hold end no report, and no line of it."""
    files.put(
        "a\nb\x1b.avsc", r'{"type": "record", "name": "X", "fields": [{"name": "a", "type": "l\ud800\n::x\uffff"}]}'
    )
    files.run("check", "--output", output, "--output-file", "report", code=1)
    report = (files.root / "report").read_text(encoding="utf-8")
    assert files.run("check", "--output", output, code=1)
    assert "\x1b" not in report
    if output == "junit":
        assert 1 == len(ET.fromstring(report).findall("testcase/failure"))
    if output in ("text", "github"):
        assert 2 - (output == "github") == len(report.splitlines())


@pytest.mark.parametrize("option", ["", 'option go_package = "x//y"; ', "/* one */ "])
def test_imports_on_one_line(files, option):
    """An import is found wherever it stands, also after a string with two slashes; in a comment it is none."""
    header = f'syntax = "proto3"; {option}'
    files.put(
        "a.proto",
        header + 'import "b.proto"; import "c.proto"; message A { x.B b = 1; x.C c = 2; } // import "a.proto";',
    )
    for name in "bc":
        files.put(f"{name}.proto", f"{header}package x; message {name.upper()} {{ int32 a = 1; }}")
    files.put("strata.yaml", "subjects: [{name: '{fullname}', files: '*.proto'}]")
    checked = json.loads(files.run("check", "--output", "json", code=0))["checked"]
    assert ["x.B", "x.C", "A"] == [one["subject"] for one in checked]
