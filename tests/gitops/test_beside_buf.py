"""Changes that `buf breaking` has rules for, and what `strata check` says of each; docs/guides/git.md has the table."""

from pathlib import Path

import pytest

BASE = """syntax = "proto3";
package shop;
message Order {
  int32 id = 1;
  string note = 2;
  repeated string tags = 3;
  State state = 4;
  oneof pay { string card = 5; string iban = 6; }
  message Line { string sku = 1; }
  Line line = 7;
  fixed32 sum = 8;
}
enum State { NEW = 0; PAID = 1; }
message Old { int32 x = 1; }
service Shop { rpc Get(Order) returns (Order); }
"""
NOTE, CARD = "  string note = 2;\n", "oneof pay { string card = 5;"

# change, the categories of buf 1.34 that report it, replacements, levels at which strata reports it
CASES = [
    ("field deleted", "all", [(NOTE, "")], ""),
    ("field deleted, its number reserved", "FILE, PACKAGE, WIRE_JSON", [(NOTE, "  reserved 2;\n")], ""),
    ("int32 to string", "all", [("int32 id", "string id")], "BACKWARD, FORWARD"),
    ("int32 to int64", "FILE, PACKAGE, WIRE_JSON", [("int32 id", "int64 id")], ""),
    ("fixed32 to int32", "all", [("fixed32 sum", "int32 sum")], "BACKWARD, FORWARD"),
    ("another message as type", "all", [("  Line line", "  Old line")], "BACKWARD, FORWARD"),
    ("field renamed", "FILE, PACKAGE, WIRE_JSON", [("string note", "string text")], ""),
    ("repeated string to string", "all", [("repeated string tags", "string tags")], ""),
    ("field moved into an existing oneof", "all", [(NOTE, ""), (CARD, "oneof pay { string note = 2; string card = 5;")],
     "BACKWARD"),
    ("field moved out of a oneof", "all", [(CARD, "string card = 5; oneof pay {")], "FORWARD"),
    ("enum value deleted", "all", [("PAID = 1; ", "")], ""),
    ("enum value renamed", "FILE, PACKAGE, WIRE_JSON", [("PAID = 1", "DONE = 1")], ""),
    ("enum replaced by int32", "all", [("enum State { NEW = 0; PAID = 1; }\n", ""), ("State s", "int32 s")], ""),
    ("message deleted", "FILE, PACKAGE", [("message Old { int32 x = 1; }\n", "")], "BACKWARD"),
    ("package renamed", "all", [("package shop", "package store")], "BACKWARD, FORWARD"),
    ("service deleted", "FILE, PACKAGE", [("service Shop { rpc Get(Order) returns (Order); }\n", "")], ""),
    ("method deleted", "FILE, PACKAGE", [("rpc Get(Order) returns (Order);", "")], ""),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_change(files, monkeypatch, case):
    """`strata check` reports the change at these levels and at no other."""
    _, _, changes, expected = case
    files.put("old/o.proto", BASE)
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    files.put("new/o.proto", text)
    monkeypatch.chdir(files.root / "new")

    found = [
        level
        for level in ("BACKWARD", "FORWARD")
        if ": error: " in files.run("check", "--against=../old", f"--level={level}")
    ]

    assert expected == ", ".join(found)


def test_the_guide_has_the_table():
    """The table of the guide has these rows."""
    guide = (Path(__file__).parents[2] / "docs/guides/git.md").read_text()
    rows = "".join(f"| {change} | {buf} | {levels or 'none'} |\n" for change, buf, _, levels in CASES)
    assert rows in guide
