"""A snippet that does not run, or prints something other than the document shows, makes the runner fail."""

import pytest

from harness.processes import free_port
from harness.snippets import SnippetError, run

GOOD = [
    ("a configuration file", "```yaml\na: 1\n```"),
    ("a value", "```python\n1 + 1\n# 2\n```"),
    ("a value that is not shown", "```python\n1 + 1\n```"),
    ("an output below its statement", "```python\nprint('a')\n# a\n```"),
    ("an output of two lines", "```python\nprint('a\\nb')\n# a\n# b\n```"),
    ("an error that is shown", "```python\n{}['x']\n# KeyError: 'x'\n```"),
    ("names from an earlier block", "```python\nx = 1\n```\n\n```python\nx\n# 1\n```"),
    ("output in a block of its own", "```python\nprint(1)\nprint(2)\n```\n\n```text\n1\n2\n```"),
    (
        "a decorated class",
        "```python\nimport dataclasses\n\n\n@dataclasses.dataclass\nclass A:\n    x: int\n\n\nA(1)\n# A(x=1)\n```",
    ),
    ("a part that is left out", "```python\n'a' * 9\n# 'aa…'\n```"),
    ("a time", "```python\n{'ts': 1234567890123}\n# {'ts': 1795276770062}\n```"),
    ("a comment above a statement", "```python\nx = 1\n\n# Two more.\nx += 2\nx\n# 3\n```"),
    ("files of an earlier command", "```sh\necho a > f\n```\n\n```sh\ncat f\n```\n\n```text\na\n```"),
    ("a failure that is shown", "```sh\necho no; exit 3\n```\n\n```text\nno\n```"),
    ("JSON in another form", '```sh\necho \'{"a":1}\'\n```\n\n```json\n{\n  "a": 1\n}\n```'),
    ("a block in a list", "- x:\n\n  ```python\n  if True:\n      y = 1\n  y\n  # 1\n  ```"),
    ("a listing", "```\nfile.py    what it holds\n```"),
]
WRONG = [
    ("a broken configuration file", "```yaml\na: [\n```", "line 2: while parsing"),
    ("another value", "```python\n1 + 1\n# 3\n```", "a.md:2: the document shows\n3"),
    ("only the beginning of a value", "```python\n'abc'\n# 'ab\n```", "the document shows"),
    (
        "a name that is not imported",
        "```python\nx = 1\n\n\n@dataclass\nclass A: ...\n```",
        "name 'dataclass' is not defined",
    ),
    ("an error that is not shown", "```python\nx = 1\n1 / 0\n```", "(?s)^a.md:3: .*ZeroDivisionError"),
    ("a value instead of an error", "```python\n1\n# ValueError: no\n```", "ValueError: no"),
    ("nothing instead of an output", "```python\nx = 1\n# 1\n```", "the document shows\n1"),
    ("another output", "```python\nprint(1)\n```\n\n```text\n2\n```", "a.md:6: the document shows\n2"),
    ("invalid Python", "```python\nx = = 1\n```", "a.md:2: invalid syntax"),
    ("a failing command", "```sh\nfalse\necho a\n```", "a.md:2: the command ended with 1"),
    ("a failing part of a pipe", "```sh\nfalse | cat\n```", "the command ended with 1"),
    ("another output of a command", "```sh\necho a\n```\n\n```text\nb\n```", "a.md:6: the document shows\nb"),
    ("another number in JSON", '```sh\necho \'{"a":1}\'\n```\n\n```json\n{"a": 2}\n```', "the document shows"),
    ("a session that ends", "```python\nimport os\n\nos._exit(3)\n```", "the session ended"),
    ("a server that does not start", "```sh\nstrata serve --no-such-setting\n```", "the server is not ready"),
    ("a prompt", "```sh\n$ ls\n```", "a prompt cannot be pasted"),
    ("a language that nothing runs", "```ruby\nputs 1\n```", "nothing runs a block of language 'ruby'"),
    ("an output of nothing", "```text\n1\n```", "follows no block"),
    ("a block that does not end", "```python\nx = 1\n", "line 1: the block does not end"),
    ("a block without fences", "Run:\n\n    ls\n", "line 3: an indented block; put it between fences"),
    ("a second fault", "```python\n1\n# 2\n3\n# 4\n```", "(?s)the document shows\n2.*the document shows\n4"),
]


@pytest.fixture
def read(tmp_path):
    """Return a function that runs a text as a document."""

    def run_text(text, program=None):
        document, folder = tmp_path / "a.md", tmp_path / "reader"
        document.write_text(text)
        folder.mkdir()
        return run(document, folder, {"localhost:8081": f"127.0.0.1:{free_port()}"}, program=program)

    return run_text


@pytest.mark.parametrize("text", [row[1] for row in GOOD], ids=[row[0] for row in GOOD])
def test_a_right_snippet_passes(text, read):
    """A snippet that prints what the document shows passes."""
    assert [] == read(text)


@pytest.mark.parametrize(("text", "fault"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_snippet_fails(text, fault, read):
    """A planted fault is found, and the message has its line."""
    with pytest.raises(SnippetError, match=fault):
        read(text)


def test_a_marked_block_is_not_run(read):
    """The comment before a block gives the reason, and holds for this block only."""
    assert ["needs Docker"] == read("<!-- not run: needs Docker -->\n\n```sh\nfalse\n```\n\n```sh\ntrue\n```")


def test_a_mark_before_text_has_no_effect(read):
    """Text between the comment and the block ends what the comment says."""
    with pytest.raises(SnippetError, match="the command ended with 1"):
        read("<!-- not run: needs Docker -->\n\nText.\n\n```sh\nfalse\n```")


def test_addresses_are_those_of_the_live_services(read, program):
    """The text's address reaches the server that the document starts, and is the one that its output shows."""
    shown = "…no differences between A (http://localhost:8081) and B (http://localhost:8081)…"
    commands = ["strata serve --log memory:", "strata verify http://localhost:8081 http://localhost:8081"]
    blocks = [f"```sh\n{command}\n```" for command in commands]
    assert [] == read("\n\n".join([*blocks, f"```text\n{shown}\n```"]), program)
