"""Paths of requests to a registry."""

from urllib.parse import quote

__all__ = ["segment", "setting_path"]

_DEFAULT_CONTEXT = ":.:"  # in front of a name it changes nothing


def segment(text: str) -> str:
    """Return a name as one quoted segment of a path.

    Proxies would read a segment of dots alone as a directory, and an empty one as none at all.
    """
    return text.replace(".", "%2E") if text in (".", "..") else quote(text or _DEFAULT_CONTEXT, safe="")


def setting_path(setting: str, scope: str | None) -> str:
    """Return the path of a setting (`config` or `mode`) of a subject or context; None is the registry."""
    return f"/{setting}" if scope is None else f"/{setting}/{segment(scope)}"
