"""Rules that turn the subject of a certificate into a user name, as in Kafka, whose own class is the second opinion."""

import shutil

import pytest

from strata.registry.features.access.principal_mapping import InvalidMapping, parse_mapping

SUBJECT = "CN=etl-1,OU=Services,O=Example\\, Inc.,C=DE"
# name, rules, subject, the user's name; None if no rule matches
NAMES = [
    ("default", "DEFAULT", SUBJECT, SUBJECT),
    ("a group", "RULE:^CN=(.*?),OU=Services.*$/$1/", SUBJECT, "etl-1"),
    ("two groups", "RULE:^CN=(.*?),OU=(.*?),.*$/$2.$1/", SUBJECT, "Services.etl-1"),
    ("lower case", "RULE:^CN=(.*?),OU=(.*?),.*$/$2/L", SUBJECT, "services"),
    ("upper case", "RULE:^CN=(.*?),.*$/$1/U", SUBJECT, "ETL-1"),
    ("no match", "RULE:^CN=(.*?),OU=People.*$/$1/", SUBJECT, None),
    ("the second rule", "RULE:^CN=(.*?),OU=People.*$/$1/,RULE:^CN=(.*?),.*$/x-$1/", SUBJECT, "x-etl-1"),
    ("the first of two", "RULE:^CN=(.*?),.*$/a/,RULE:^CN=(.*?),.*$/b/", SUBJECT, "a"),
    ("default at last", "RULE:^OU=(.*)$/$1/L, DEFAULT", SUBJECT, SUBJECT),
    ("spaces and commas between", " , RULE:^CN=(.*?),.*$/$1/ ,, DEFAULT ,", SUBJECT, "etl-1"),
    ("the whole subject must match", "RULE:CN=(.*?),OU/$1/", SUBJECT, None),
    ("an escaped slash in the pattern", r"RULE:^spiffe:\/\/prod\/(.*)$/$1/", "spiffe://prod/etl", "etl"),
    ("an escaped slash in the name", r"RULE:^CN=(.*?),.*$/team\/$1/", SUBJECT, "team/etl-1"),
    ("an escaped dollar", r"RULE:^CN=(.*?),.*$/\$1/", SUBJECT, "$1"),
    ("an escaped comma of the subject", r"RULE:^.*O=((\\,|[^,])*),.*$/$1/", SUBJECT, "Example\\, Inc."),
    ("the whole match", "RULE:^CN=(.*)$/<$0>/", "CN=a", "<CN=a>"),
    ("a group that does not exist", "RULE:^CN=(.*)$/$2/", "CN=a", "$2"),
    ("digits after a group", "RULE:^CN=(.*)$/$12/", "CN=a", "a2"),
    ("a group that takes no part", "RULE:^CN=(a)?(.*)$/[$1]$2/", "CN=b", "[]b"),
    ("an empty name", "RULE:^CN=(.*)$//", "CN=a", ""),
    ("a pattern that matches twice", "RULE:.*/x/", "CN=a", "xx"),
    ("a rule with the word of another", "RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/", "CN=x,OU=y", "x"),
    ("a comma in a pattern", "RULE:^CN=(.*?),OU=(.*?)$/$1@$2/L", "CN=Duke,OU=SME", "duke@sme"),
    ("case matters", "RULE:^cn=(.*)$/$1/", "CN=a", None),
    ("beyond ASCII", "RULE:^CN=(.*?),.*$/$1/U", "CN=jürgen,C=DE", "JÜRGEN"),
]
INVALID = [
    "default", "DEFAUL", "DEFAULT/L", "RULE:a", "RULE:a/b", "rule:a/b/", "RULE:a/b/X", "RULE:a/b/LU", "RULE:a/b/L/U",
    "RULE:(/b/", "DEFAULT;DEFAULT", "DEFAULT DEFAULT",
]  # fmt: skip


@pytest.mark.parametrize(("rules", "subject", "expected"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_a_subject_gets_a_name(rules, subject, expected):
    """The first rule that matches the whole subject names the user."""
    assert expected == parse_mapping(rules).name(subject)


@pytest.mark.parametrize("rules", [*INVALID, "", " , "])
def test_invalid_rules(rules):
    """A rule of another form is an error, and so is an empty list, by which no certificate would name a user."""
    with pytest.raises(InvalidMapping):
        parse_mapping(rules)


@pytest.mark.skipif(not shutil.which("java"), reason="needs Java")
def test_kafka_gives_the_same_names():
    """Kafka's own class gives the same name to each row, and rejects the same rules."""
    from harness.principal_names import kafka_names

    expected = [f"={name}" if name is not None else "none" for _, _, _, name in NAMES] + ["invalid"] * len(INVALID)

    assert expected == kafka_names([*(row[1:3] for row in NAMES), *((rules, "CN=a") for rules in INVALID)])
