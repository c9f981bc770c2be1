"""The page of a subject's usage: which versions are still fetched from this node, by whom, and when last."""

from urllib.parse import urlencode

from strata.registry.api.views.subject import asked_subject
from strata.registry.api.views.view import Page

__all__ = ["show_usage", "usage_target"]


def usage_target(page: Page) -> str:
    """Return what the page asks of the API, since one process of the node has counted for all of them."""
    return "/v1/usage?" + urlencode({"subject": asked_subject(page), "deleted": "true"})


def show_usage(page: Page) -> dict[str, object]:
    """Return what the page of a subject's usage shows."""
    found = page.answered or {}
    return {"name": asked_subject(page), "since": found.get("since"), "versions": found.get("versions", [])}
