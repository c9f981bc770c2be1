"""Texts of each format, and whether a text has a format, as jsonschema-rs judges it."""

from functools import lru_cache
from typing import Final

from jsonschema_rs import Draft202012Validator

from strata.compat.json_schema.dialects import Dialect

__all__ = ["EXAMPLES", "FORMS", "has_format", "is_asserted"]

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
}
"""Formats that validators know, with texts about which they agree."""

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
    return bool(_validator(name).is_valid(text))


@lru_cache(maxsize=64)
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"format": name}, validate_formats=True, offline=True)
