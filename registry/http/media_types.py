"""Content negotiation: choose the media type of an answer from an `Accept` header. Pure."""

from functools import lru_cache

__all__ = ["BODY_TYPES", "FORM_TYPES", "TYPES", "media_type_for"]

TYPES = (
    b"application/vnd.schemaregistry.v1+json",
    b"application/vnd.schemaregistry+json",
    b"application/json",
)
"""The media types of answers, most preferred first."""

BODY_TYPES = (*TYPES, b"application/octet-stream")
"""The media types of request bodies, all of which hold JSON."""

FORM_TYPES = (b"application/x-www-form-urlencoded", b"multipart/form-data")
"""The media types of the forms of pages."""


@lru_cache(maxsize=256)
def media_type_for(accept: bytes) -> bytes | None:
    """Return our media type with the highest quality, the most preferred among equals; None if none is accepted.

    The most specific matching range gives a type its quality. As in the reference, `*` and ranges such as `*/json`
    match every type; so does an empty header.
    """
    if not accept:
        return TYPES[0]
    ranges = [_range(part) for part in accept.lower().split(b",")]
    quality, chosen = max(((_quality(known, ranges), known) for known in TYPES), key=lambda pair: pair[0])
    return chosen if quality > 0 else None


def _range(part: bytes) -> tuple[bytes, float]:
    name, *parameters = (piece.strip() for piece in part.split(b";"))
    weights = [
        value for key, _, value in (parameter.partition(b"=") for parameter in parameters) if key.strip() == b"q"
    ]
    try:
        return name, float(weights[0]) if weights else 1.0
    except ValueError:
        return name, 1.0


def _quality(known: bytes, ranges: list[tuple[bytes, float]]) -> float:
    matching = ((_specificity(name, known), quality) for name, quality in ranges)
    return max((match for match in matching if match[0]), default=(0, 0.0))[1]


def _specificity(name: bytes, known: bytes) -> int:
    """Return how specifically a range matches a type, 0 if it does not match."""
    if name == known:
        return 3
    main_type, _, subtype = name.partition(b"/")
    if main_type == b"*":
        return 1
    return 2 if subtype == b"*" and known.startswith(main_type + b"/") else 0
