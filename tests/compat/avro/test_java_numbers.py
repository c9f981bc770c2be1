"""Numbers are printed as Java prints them."""

import math

import pytest

from strata.compat.avro.java_numbers import java_double, java_float, parse_java_double

DOUBLES = [
    (0.0, "0.0"),
    (-0.0, "-0.0"),
    (1.0, "1.0"),
    (-1.5, "-1.5"),
    (100000.0, "100000.0"),
    (9999999.0, "9999999.0"),
    (1e7, "1.0E7"),
    (12345678.9, "1.23456789E7"),
    (0.001, "0.001"),
    (0.00099, "9.9E-4"),
    (1e-7, "1.0E-7"),
    (3.4e38, "3.4E38"),
    (1e23, "1.0E23"),
    (2**53 + 0.0, "9.007199254740992E15"),
    (1.7976931348623157e308, "1.7976931348623157E308"),
    (2.2250738585072014e-308, "2.2250738585072014E-308"),
    (5e-324, "4.9E-324"),
    (2e-323, "2.0E-323"),
    (math.nan, "NaN"),
    (math.inf, "Infinity"),
    (-math.inf, "-Infinity"),
]
FLOATS = [
    (0.1, "0.1"),
    (1, "1.0"),
    (16777217, "1.6777216E7"),
    (3.4028235e38, "3.4028235E38"),
    (1.4e-45, "1.4E-45"),
    (2.0**-149 * 7, "9.8E-45"),
    (1e-46, "0.0"),
    (1e39, "Infinity"),
    (-1e39, "-Infinity"),
    (123.456, "123.456"),
]
TEXTS = [
    ("1", 1.0),
    ("+1.5", 1.5),
    ("1.", 1.0),
    (".5", 0.5),
    ("1e3", 1000.0),
    (" \t1\n", 1.0),
    ("1d", 1.0),
    ("1.5F", 1.5),
    ("NaN", math.nan),
    ("-NaN", math.nan),
    ("+Infinity", math.inf),
    ("-Infinity", -math.inf),
    ("0x1.8p1", 3.0),
    ("0x1p3d", 8.0),
    ("-0X.8P0", -0.5),
    ("0x1p99999", math.inf),
    ("1e400", math.inf),
]
NO_NUMBERS = ["", "abc", "nan", "inf", "infinity", "1_0", "1dd", "0x1", "1,5", "1 2", "++1", "d", "٣", "e5", "."]


@pytest.mark.parametrize(("value", "expected"), DOUBLES, ids=[text for _, text in DOUBLES])
def test_double(value, expected):
    """A double has Java's shortest digits in Java's layout."""
    assert expected == java_double(value)


@pytest.mark.parametrize(("value", "expected"), FLOATS, ids=[text for _, text in FLOATS])
def test_float(value, expected):
    """A float is rounded to single precision first and printed with the digits that single precision needs."""
    assert expected == java_float(value)


@pytest.mark.parametrize(("text", "expected"), TEXTS, ids=[repr(text) for text, _ in TEXTS])
def test_parse(text, expected):
    """Every text that Double.parseDouble reads gives the same value."""
    assert java_double(expected) == java_double(parse_java_double(text))


@pytest.mark.parametrize("text", NO_NUMBERS, ids=repr)
def test_no_number(text):
    """Texts that Double.parseDouble refuses are not numbers, even where Python accepts them."""
    assert parse_java_double(text) is None
