"""The identity hash: what it includes, and what it leaves out."""

from hashlib import md5

import pytest

from strata.storage.records import fingerprint, guid_of

CASES = [
    ("text alone", ('"int"',), b'"int"'),
    ("text outside ASCII", ('"é"',), '"é"'.encode()),
    ("references in order", ("t", [("n", "s", 1), ("m", "r", 258)]), b"tns\0\0\0\1mr\0\0\1\2"),
    (
        "metadata sorted",
        ("t", (), {"tags": {"b": ["y", "x"], "a": ["z"]}, "properties": {"p": "1"}, "sensitive": ["q"]}),
        b"t\1azbxyp1q",
    ),
    (
        "rules in order",
        (
            "t",
            (),
            None,
            {
                "domainRules": [
                    {"name": "n", "kind": "K", "mode": "M", "type": "T", "tags": ["b", "a"], "params": {"k": "v"},
                     "expr": "e", "onSuccess": "S", "onFailure": "F", "disabled": True},
                ],
                "enableAt": "ALL",
            },
        ),
        b"t\1nKMTabkveSF\1ALL",
    ),
    ("empty metadata is none", ("t", (), {}, {}), b"t"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "hashed"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_what_enters_the_fingerprint(arguments, hashed):
    """The digest is the MD5 of exactly these bytes."""
    assert md5(hashed).digest() == fingerprint(*arguments)


def test_guid_is_the_digest_as_uuid():
    """A GUID prints the sixteen bytes as a UUID, dashes included."""
    assert "00010203-0405-0607-0809-0a0b0c0d0e0f" == guid_of(bytes(range(16)))
