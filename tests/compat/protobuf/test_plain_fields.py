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


LABELS = ["", "repeated ", "optional ", "required ", "optional\n", "optional/**/ ", "optional repeated "]
TYPES = [
    "int32", "a.B", ".a.B", "a. B", "a .B", "1a", "a-b", "stream", "map<string, string>", "optional", "required",
    "group", "map", "option", "message", "enum", "extend", "extensions", "oneof", "reserved", "rpc", "package",
]  # fmt: skip
DEFINED = {name: f"message {name} {{}}\n" if name.isalpha() else "message a { message B {} }\n" for name in TYPES}
BODIES = [
    "message M {{\n  {}}}",
    "message M {{ oneof o {{ {}}} }}",
    "extend M {{ {}}}",
    "message M {{ message N {{ {}}} }}",
]


def _compare(monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> int:
    """Compare what texts mean in one step and word by word; return how many of them are valid."""
    at_once = [_outcome(text) for text in texts]
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "plain_field", lambda _, _labels: None)
        for text, outcome in zip(texts, at_once, strict=True):
            assert _outcome(text) == outcome, text
    return sum(not isinstance(outcome, str) for outcome in at_once)


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
@pytest.mark.parametrize("label", ["", "repeated ", "optional "])
def test_plain_field(monkeypatch, label, syntax):
    """A field reads the same, errors included, in one step and word by word."""
    is_open = [FIELDS[name] for name in ("no blanks", "the end of the text", "the end of the text after blanks")]
    start = f'syntax = "{syntax}";\nmessage M {{\n  {label}string '
    texts = [f"{start}{field}{'' if field in is_open else '}'}" for field in FIELDS.values()]
    assert (_compare(monkeypatch, texts) > 10) == (bool(label) or syntax == "proto3")


@pytest.mark.parametrize("start", ["", 'syntax = "proto3";\n'])
def test_what_a_field_begins_with(monkeypatch, start):
    """Labels, types and words that begin other statements are read alike, wherever fields may stand."""
    texts = [
        f"{start}{body.format(f'{label}{type_} f = 1; {more}')}\n{DEFINED[type_]}"
        for body in BODIES
        for label in LABELS
        for type_ in TYPES
        for more in ("", "string g = 2;\n")
    ]
    assert _compare(monkeypatch, texts) > 50
