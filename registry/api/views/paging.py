"""Pages of a list: what one page shows, and the addresses of the pages before and after it."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from strata.registry.api.views.view import Page

__all__ = ["Paged", "paged", "paged_from"]

_PER_PAGE = 50
_T = TypeVar("_T")


class Paged(NamedTuple, Generic[_T]):
    """A page of a list; `before` and `after` are None where there is no such page."""

    items: list[_T]
    number: int
    before: str | None
    after: str | None


def paged(page: Page, items: Iterable[_T]) -> Paged[_T]:
    """Return the page of a list that a request asks for; no more items are drawn than it needs."""
    return paged_from(page, lambda skip: islice(items, skip, None))


def paged_from(page: Page, items: Callable[[int], Iterable[_T]]) -> Paged[_T]:
    """Return the page of a list that a request asks for.

    Args:
        page: the page.
        items: returns the items after a number of them.
    """
    number = page.number("page", 1)
    shown = list(islice(items((number - 1) * _PER_PAGE), _PER_PAGE + 1))
    before = _address(page, number - 1) if number > 1 else None
    after = _address(page, number + 1) if len(shown) > _PER_PAGE else None
    return Paged(shown[:_PER_PAGE], number, before, after)


def _address(page: Page, number: int) -> str:
    asked: dict[str, object] = dict(page.query)
    return page.at(**asked | {"page": number})
