"""Paths of requests to a registry."""

from urllib.parse import quote

__all__ = ["segment"]

_DEFAULT_CONTEXT = ":.:"  # in front of a name it changes nothing


def segment(text: str) -> str:
    """Return a name as one quoted segment of a path.

    Proxies would read a segment of dots alone as a directory, and an empty one as none at all.
    """
    return text.replace(".", "%2E") if text in (".", "..") else quote(text or _DEFAULT_CONTEXT, safe="")
