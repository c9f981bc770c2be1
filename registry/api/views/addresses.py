"""The addresses of pages, percent-encoded as in the API, so that each view can be shared as a link. Pure."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from strata.registry.http.page_paths import PAGES

__all__ = [
    "ADDRESSES",
    "api_path",
    "local_path",
    "page_address",
    "subject_address",
    "subject_segment",
    "version_address",
    "with_query",
]

_IN_DEFAULT = ":.:"
_NO_SEGMENT = ("", ".", "..")  # names that no path can hold: browsers resolve dots, however they are encoded


def page_address(*segments: object, **query: object) -> str:
    """Return the address of a page.

    Args:
        segments: the parts of the path after `/ui`, not encoded.
        query: the parameters; those that are empty, None or False are left out.
    """
    return api_path(PAGES[1:], *segments, **query)


def api_path(*segments: object, **query: object) -> str:
    """Return a path of the API with its query string; the arguments are those of `page_address`."""
    return with_query("".join("/" + quote(str(part), safe="", errors="replace") for part in segments), query)


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Return a path with a query string; parameters that are empty, None or False are left out."""
    parameters = {name: value for name, value in query.items() if value not in ("", None, False)}
    return f"{path}?{urlencode(parameters, errors='replace')}" if parameters else path


def subject_address(subject: str, *segments: object, **query: object) -> str:
    """Return the address of a subject's page, or of a page below it."""
    return page_address("subjects", subject_segment(subject), *segments, **query)


def version_address(subject: str, version: int) -> str:
    """Return the address of a version's page."""
    return subject_address(subject, "versions", version)


def subject_segment(subject: str) -> str:
    """Return a subject as a segment of a path: a name that cannot be one gets the prefix of the default context."""
    return f"{_IN_DEFAULT}{subject}" if subject in _NO_SEGMENT else subject


def local_path(text: str) -> str:
    """Return a path of these pages to go to next; the first page for anything else, such as another site."""
    is_ours = text == PAGES or text.startswith((f"{PAGES}/", f"{PAGES}?"))
    return text if is_ours and text.isascii() and text.isprintable() and "\\" not in text else PAGES


ADDRESSES = {
    "page_address": page_address,
    "subject_address": subject_address,
    "version_address": version_address,
    "subject_segment": subject_segment,
    "api_path": api_path,
}
"""The functions that templates call."""
