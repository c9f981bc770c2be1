"""The checker accepts the patterns that Java compiles."""

import pytest

from strata.compat.json_schema.java_regex import check_pattern
from strata.compat.schema import SchemaParseError


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("^[a-z]{1,}$", id="plain"),
        pytest.param("(?<n>a)\\k<n>\\1\\9", id="references, also to no group"),
        pytest.param("(?i-s:a)(?x) ( # (\n)", id="flags and comments"),
        pytest.param("(?=a)(?!b)(?<=c*)(?<!d)(?>e)", id="groups of every kind"),
        pytest.param("[]a][^]a][a-z&&[^b]][a-][-a][[a]b]", id="classes"),
        pytest.param("{1}a{2}{3}a*{4}", id="repetitions of nothing and of repetitions"),
        pytest.param(
            "\\p{L}\\pL\\P{javaLowerCase}\\p{IsLatin}\\p{InGreek}\\p{sc=Latin}(?U)\\p{alpha}", id="properties"
        ),
        pytest.param("\\cA\\x41\\x{1F600}\\u0041\\0377\\R\\X\\b{g}\\N{LATIN SMALL LETTER A}", id="escapes"),
        pytest.param("\\Q(\\E\\Q[", id="quotes, the last left open"),
        pytest.param("a}]\\_\\-", id="what means itself"),
    ],
)
def test_compiled(pattern):
    """A pattern that Java compiles is accepted."""
    check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(", id="a group without end"),
        pytest.param(")", id="an end without a group"),
        pytest.param("[a", id="a class without end"),
        pytest.param("[]", id="a class of a bracket without end"),
        pytest.param("[z-a]", id="a range from more to less"),
        pytest.param("[a-\\d]", id="a range up to a class"),
        pytest.param("[&&]", id="an intersection of nothing"),
        pytest.param("*a", id="a repetition of nothing"),
        pytest.param("a**", id="a repetition of a repetition"),
        pytest.param("a{", id="a brace alone"),
        pytest.param("a{,2}", id="a repetition from nothing"),
        pytest.param("a{2,1}", id="a repetition from more to less"),
        pytest.param("a{2147483648}", id="a repetition out of range"),
        pytest.param("(?<1>a)", id="a name that begins with a digit"),
        pytest.param("(?<n>a)(?<n>b)", id="a name given twice"),
        pytest.param("\\k<n>(?<n>a)", id="a name used before"),
        pytest.param("(?P<n>a)", id="a name as Python has it"),
        pytest.param("(?q)", id="an unknown flag"),
        pytest.param("(?i)*", id="flags repeated"),
        pytest.param("\\y", id="an unknown escape"),
        pytest.param("[\\b]", id="a boundary in a class"),
        pytest.param("\\x4", id="half a number"),
        pytest.param("\\u{1F600}", id="a number as JavaScript has it"),
        pytest.param("\\p{Foo}", id="an unknown property"),
        pytest.param("\\p{alpha}", id="a property in the wrong case"),
        pytest.param("a\\", id="a backslash at the end"),
    ],
)
def test_refused(pattern):
    """A pattern that Java does not compile is refused."""
    with pytest.raises(SchemaParseError):
        check_pattern(pattern)
