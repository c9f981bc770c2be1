"""Texts of each format, and whether a text has a format, as jsonschema-rs judges it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from jsonschema_rs import Draft7Validator, Draft202012Validator

from strata.compat.json_schema.dialects import Dialect

__all__ = ["EXAMPLES", "FORMS", "contents_of", "has_format", "is_asserted"]

_CONTENTS: Final[dict[tuple[object, object], tuple[str, tuple[str, ...]]]] = {
    ("base64", None): ("content base64", ("YQ==", "AAAA")),
    (None, "application/json"): ("content JSON", ("{}", "0")),
    ("base64", "application/json"): ("content JSON in base64", ("e30=", "MA==")),
}
"""Names, and texts, for what jsonschema-rs checks of `contentEncoding` and `contentMediaType`, in drafts 6 and 7."""
EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "date": ("2024-01-31", "2000-02-29"),
    "date-time": ("2024-01-31T12:00:00Z", "2000-02-29T00:00:00.5+01:00"),
    "time": ("12:00:00Z", "00:00:00+01:00"),
    "duration": ("P1D", "PT1H"),
    "email": ("a@example.com", "b@example.org"),
    "idn-email": ("a@example.com", "b@example.org"),
    "hostname": ("a.example", "example.com"),
    "idn-hostname": ("a.example", "example.com"),
    "ipv4": ("10.0.0.1", "127.0.0.1"),
    "ipv6": ("::1", "fe80::1"),
    "uri": ("http://a.example/", "urn:a"),
    "uri-reference": ("/a", "http://a.example/"),
    "iri": ("http://a.example/", "urn:a"),
    "iri-reference": ("/a", "http://a.example/"),
    "uri-template": ("/a", "http://a.example/{b}"),
    "json-pointer": ("/a", "/a/0"),
    "relative-json-pointer": ("0", "1/a"),
    "regex": ("a", "^a$"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "00000000-0000-4000-8000-000000000000"),
    **dict(_CONTENTS.values()),
}
"""Formats that validators know, with texts about which they agree."""
_BY_CONTENT: Final = {name: words for words, (name, _) in _CONTENTS.items()}

FORMS: Final[dict[str, str]] = {
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "date-time": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}",
    "email": "@",
    "hostname": "^[A-Za-z0-9.-]{1,255}$",
    "ipv4": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}$",
    "ipv6": "^[0-9A-Fa-f:.]{2,45}$",
    "json-pointer": "^(/|$)",
    "uri": "^[A-Za-z][A-Za-z0-9+.-]*:",
}
"""Patterns that every text of a format matches; not every text that matches has the format."""
_SINCE: Final = {
    **dict.fromkeys(("date-time", "email", "hostname", "ipv4", "ipv6", "uri"), Dialect.DRAFT_4),
    **dict.fromkeys(("uri-reference", "uri-template", "json-pointer"), Dialect.DRAFT_6),
    **dict.fromkeys(("date", "time", "regex", "relative-json-pointer"), Dialect.DRAFT_7),
    **dict.fromkeys(("iri", "iri-reference", "idn-email", "idn-hostname"), Dialect.DRAFT_7),
}


def is_asserted(name: str, dialect: Dialect) -> bool:
    """Return whether validators refuse a text without the format: the older dialects assert those that they define."""
    return not dialect.modern and name in _SINCE and _SINCE[name] <= dialect


@lru_cache(maxsize=4096)
def has_format(name: str, text: str) -> bool:
    """Return whether a text has a format; a text has every format that is not known."""
    if name not in EXAMPLES:
        return True
    if name in _BY_CONTENT:
        encoding, media_type = _BY_CONTENT[name]
        return bool(_content_validator(encoding, media_type).is_valid(text))
    return bool(_validator(name).is_valid(text))


def contents_of(encoding: object, media_type: object, dialect: Dialect) -> Iterator[str]:
    """Yield the names of the formats that a dialect asserts for a text's content.

    Args:
        encoding: The value of `contentEncoding`, or None.
        media_type: The value of `contentMediaType`, or None.
        dialect: The dialect of the schema.
    """
    if dialect in (Dialect.DRAFT_6, Dialect.DRAFT_7):
        base64 = "base64" if encoding == "base64" else None
        json = "application/json" if media_type == "application/json" else None
        for words in dict.fromkeys(((base64, None), (base64, json))):
            if words in _CONTENTS:
                yield _CONTENTS[words][0]


@lru_cache(maxsize=4)
def _content_validator(encoding: object, media_type: object) -> Draft7Validator:
    words = {"contentEncoding": encoding, "contentMediaType": media_type}
    return Draft7Validator({word: value for word, value in words.items() if value is not None}, offline=True)


@lru_cache(maxsize=64)
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"format": name}, validate_formats=True, offline=True)
