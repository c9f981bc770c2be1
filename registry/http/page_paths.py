"""Which paths are pages for people. The layers treat them in their own way: errors are pages, and sessions count."""

__all__ = ["PAGES", "is_page"]

PAGES = "/ui"
"""The path below which the pages are."""

_BELOW = f"{PAGES}/"


def is_page(path: str) -> bool:
    """Return whether a path is that of a page."""
    return path == PAGES or path.startswith(_BELOW)
