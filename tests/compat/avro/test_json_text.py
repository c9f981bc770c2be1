"""The reader and writer follow the JSON dialect of Avro Java."""

import pytest

from strata.compat.avro.json_text import in_java_order, json_equal, quote, read_json, read_plain_json, write_json
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError

SMALL = Limits(text=2000, depth=4, number=1000)
READ = [
    ("comment before", '/* a */ // b\n"int"', "int"),
    ("comments between", '{"a"/**/:/**/1/**/,/**/"b":[1//x\r,2]}', {"a": 1, "b": [1, 2]}),
    ("no comment in a string", '["/* a */", "// b"]', ["/* a */", "// b"]),
    ("escaped quote before slashes", r'["\"", "//"]', ['"', "//"]),
    ("control characters after the end", '"int"\x01\x1f \n', "int"),
    ("integer beyond 64 bits", "[100000000000000000000]", [100000000000000000000]),
    ("integer of the longest length", "9" * 1000, int("9" * 1000)),
    ("negative zero is zero", "[-0]", [0]),
    ("last of two equal keys, in the place of the first", '{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
    ("escapes", r'"\u0041\/\b\f\n\r\t\\"', "A/\b\f\n\r\t\\"),
]
REFUSED = [
    ("empty", ""),
    ("blank", "  \n"),
    ("comment after the end", '"int" /* x */'),
    ("two values", '"int" "int"'),
    ("a bracket too many", "[]]"),
    ("byte order mark", '\ufeff"int"'),
    ("no-break space after the end", '"int"\xa0'),
    ("unterminated comment", "[1 /* x"),
    ("control character in a comment", "[1 /* \f */]"),
    ("one slash", "[1/]"),
    ("comment inside a word", "[tr/**/ue]"),
    ("comment instead of a comma", "[1/**/2]"),
    ("hash comment", "[1 # x\n]"),
    ("NaN", "[NaN]"),
    ("Infinity", "[-Infinity]"),
    ("leading zero", "[01]"),
    ("point without digits", "[1.]"),
    ("plus sign", "[+1]"),
    ("trailing comma", "[1,]"),
    ("single quotes", "['a']"),
    ("bare key", "{a:1}"),
    ("tab in a string", '["a\tb"]'),
    ("unknown escape", r'["\x41"]'),
    ("integer too long", "9" * 1001),
    ("fraction too long", "0." + "9" * 1001),
    ("too deep", "[[[[[]]]]]"),
    ("too long", " " * 2001),
]
WRITTEN = [
    ("null", None, "null"),
    ("booleans are not numbers", [True, False, 1, 0], "[true,false,1,0]"),
    ("integer", 10**25, "1" + "0" * 25),
    ("float", [1e5, 1.10, 3.4e38, -0.0], "[100000.0,1.1,3.4E38,-0.0]"),
    ("no number in JSON", [float("inf"), float("-inf"), float("nan")], '["Infinity","-Infinity","NaN"]'),
    ("compact", {"b": [1, {"a": "x"}], "a": {}}, '{"b":[1,{"a":"x"}],"a":{}}'),
    ("short escapes", '"\\\b\f\n\r\t/', r'"\"\\\b\f\n\r\t/"'),
    ("control characters in capitals", "\x00\x1f\x0b", r'"\u0000\u001F\u000B"'),
    ("everything else as it is", "é\x7f\u2028😀", '"é\x7f\u2028😀"'),
    ("lone surrogate as its escape", "\ud83d", r'"\uD83D"'),
]
DIFFERENT = [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ("1", 1), (None, False), ([1], [1, 1]), ({"a": 1}, {"b": 1})]
EQUAL = [
    ({"a": 1, "b": [1.5]}, {"b": [1.5], "a": 1}),
    (float("nan"), float("nan")),
    ([None, True, "x"], [None, True, "x"]),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_read(text, expected):
    """Text that Jackson reads gives the same value."""
    value = read_json(text, SMALL)

    assert expected == value
    assert repr(expected) == repr(value)


@pytest.mark.parametrize("text", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(text):
    """Text that Jackson refuses, or that exceeds a bound, is an error that says so."""
    with pytest.raises(SchemaParseError):
        read_json(text, SMALL)


PLAIN = [
    (
        "a small schema",
        '{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"],"default":null}]}',
        True,
    ),
    ("numbers", "[0,-0,1.50,-0.0,1e5,0.1e-400,123456789012345678]", True),
    ("blanks and escapes", ' [ "\\u00e9\\ud83d\\ude00", "a\\/b" ]\r\n', True),
    ("equal keys", '{"a":1,"b":2,"a":3}', True),
    ("many digits", '[1234567890123456789, 1.2345678901234567890, "1234567890123456789012"]', True),
    ("integer beyond 64 bits", "[-9223372036854775809]", False),
    ("number beyond the largest double", "[1e400]", False),
    ("lone surrogate, escaped", r'"\ud800"', False),
    ("lone surrogate", '"\ud800"', False),
    ("comment", "[1/**/]", False),
    ("control character after the end", "1\x01", False),
]


@pytest.mark.parametrize(("text", "is_plain"), [row[1:] for row in PLAIN], ids=[row[0] for row in PLAIN])
def test_plain_json(text, is_plain):
    """The fast reader gives the same value or none."""
    expected = read_json(text, SMALL)

    assert repr(expected if is_plain else None) == repr(read_plain_json(text, SMALL))


@pytest.mark.parametrize("text", [row[1] for row in [*READ, *REFUSED]], ids=[row[0] for row in [*READ, *REFUSED]])
def test_the_fast_reader_agrees(text):
    """The fast reader refuses what the other one refuses, and reads nothing differently."""
    try:
        expected = read_json(text, SMALL)
    except SchemaParseError:
        expected = None
    try:
        value = read_plain_json(text, SMALL)
    except SchemaParseError:
        value = None

    assert repr(value) in ("None", repr(expected))


def test_the_fast_reader_refuses_long_numbers():
    """The limit on digits holds below the digits of 64 bits, too."""
    assert [12345] == read_plain_json("[12345]", Limits(number=5))
    with pytest.raises(SchemaParseError, match="more than 5 digits"):
        read_plain_json("[123456]", Limits(number=5))


def test_depth_counts_no_brackets_in_strings():
    """Only real brackets count as nesting."""
    assert ["[[[[[[", '\\"{{{{{'] == read_json('["[[[[[[", "\\\\\\"{{{{{"]', SMALL)


@pytest.mark.parametrize(("value", "expected"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_written(value, expected):
    """Values are printed as Jackson prints them."""
    assert expected == write_json(value)


def test_quoted_text_fits_into_utf_8():
    """Every value that was read can be encoded again."""
    assert b'"a\\uDC00"' == quote("a\udc00").encode()


@pytest.mark.parametrize(("left", "right"), DIFFERENT, ids=repr)
def test_different(left, right):
    """Values of different JSON types, and the two zeros, differ."""
    assert not json_equal(left, right)


@pytest.mark.parametrize(("left", "right"), EQUAL, ids=repr)
def test_equal(left, right):
    """The order of keys does not count, and NaN equals itself."""
    assert json_equal(left, right)


def test_java_order():
    """Strings are compared by UTF-16 units, as in Java: characters beyond the BMP sort before its last ones."""
    assert ["Z", "a", "é", "😀", "\uffee"] == in_java_order(["\uffee", "😀", "é", "a", "Z"])


@pytest.mark.parametrize("before", range(0, 1000, 83))
def test_a_long_number_is_found_wherever_it_stands(before):
    """The quick search for long numbers misses none, however it falls between the samples."""
    limits = Limits(number=100)
    blanks = " " * before

    assert read_json(f"[{blanks}{'1' * 100}]", limits)
    with pytest.raises(SchemaParseError, match="more than 100 digits"):
        read_json(f"[{blanks}{'1' * 101}]", limits)
