"""Plain fields, which are read in one step, mean what they mean when they are read word by word."""

import pytest

from strata.compat.protobuf.parser import parse
from strata.compat.protobuf.reader import Reader
from strata.compat.schema import SchemaParseError

FIELDS = {
    "plain": "a = 1;\n",
    "no blanks": "a=1;}",
    "tabs": "a\t=\t1\t;\t\n",
    "lines": "a\n=\n1\n;\n",
    "blanks at the end": "a = 1;   \n",
    "a comment": "a = 1; // b = 2;\n",
    "a block comment": "a = 1; /* b */\n",
    "a block comment before more": "a = 1; /* b */ string b = 2;\n",
    "a single slash": "a = 1; / \n",
    "a comment inside": "a = /* b */ 1;\n",
    "the end of the text": "a = 1;",
    "the end of the text after blanks": "a = 1;  ",
    "another field behind": "a = 1; string b = 2;\n",
    "an empty statement behind": "a = 1;;\n",
    "options": "a = 1 [deprecated = true];\n",
    "a hexadecimal tag": "a = 0x10;\n",
    "leading zeros": "a = 007;\n",
    "a negative tag": "a = -1;\n",
    "a word as tag": "a = 1b;\n",
    "a tag of 31 bits": "a = 2147483647;\n",
    "a tag of 32 bits": "a = 2147483648;\n",
    "no tag": "a = ;\n",
    "no semicolon": "a = 1\n",
    "a hyphen": "a-b = 1;\n",
    "a dot": "a.b = 1;\n",
    "a digit first": "1a = 1;\n",
    "an underscore first": "_a = 1;\n",
    "parentheses": "(a) = 1;\n",
    "a name twice": "a = 1; string a = 2;\n",
}


def _outcome(text: str) -> object:
    """Return the file with the places of its fields, or why it is invalid."""
    try:
        schema = parse(text, strict=True)
    except SchemaParseError as error:
        return str(error)
    return schema.canonical, schema.file, [field.at for message in schema.file.messages for field in message.fields]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize("label", ["", "repeated ", "optional "])
@pytest.mark.parametrize("field", FIELDS.values(), ids=list(FIELDS))
def test_plain_field(monkeypatch, field, label, syntax):
    """A field reads the same, errors included, in one step and word by word."""
    is_open = field in (FIELDS["no blanks"], FIELDS["the end of the text"], FIELDS["the end of the text after blanks"])
    text = f'syntax = "{syntax}";\nmessage M {{\n  {label}string {field}{"" if is_open else "}"}'
    at_once = _outcome(text)
    monkeypatch.setattr(Reader, "plain_field", lambda _: None)

    assert _outcome(text) == at_once
