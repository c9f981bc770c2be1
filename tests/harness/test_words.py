"""The word list finds quaint words in prose, and only there."""

import pytest

from harness.words import quaint

FOUND = [
    ("a docstring", "a.py", '"""Ask whoever knows."""\n', [(1, "whoever")]),
    ("a comment", "a.py", "x = 1  # read anew\n", [(1, "anew")]),
    ("a message", "a.py", 'raise ValueError("a date that is none")\n', [(1, "that is none")]),
    ("a piece of an f-string", "a.py", 'x = f"{y} had better wait"\n', [(1, "had better")]),
    ("over two lines", "a.py", '"""Clients are\ntold nothing."""\n', [(1, "are\ntold")]),
    ("the second line of a docstring", "a.py", '"""One.\n\nIt is told.\n"""\n', [(3, "is told")]),
    ("Markdown", "a.md", "# T\n\nHence it works.\n", [(3, "Hence")]),
    ("Java", "a.java", 'int anew = 1; // lest it fail\nString s = "anew";\n', [(1, "lest"), (2, "anew")]),
    ("an inversion", "a.md", "This is no record.\n", [(1, "is no ")]),
    ("what looks like one", "a.md", "There is no record. It is no longer there.\n", []),
    ("names in code", "a.py", "anew = whoever()\n", []),
    ("a value in quotes", "a.py", 'user = "nobody"\n', []),
    ("wire text", "a.py", 'MESSAGE = "is told"  # wire text\n', []),
    ("plain English", "a.md", "The client retries.\n", []),
]


@pytest.mark.parametrize(("name", "text", "found"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_words_are_found_where_people_read(name, text, found):
    """Each find has its line and the word as it is written."""
    assert [(line, word.replace("\n", " ")) for line, word in found] == [
        (line, word) for line, word, _ in quaint(name, text)
    ]
