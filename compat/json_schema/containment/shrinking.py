"""Smaller documents: what a witness does not need is left out."""

from collections.abc import Callable, Iterator

from strata.compat.json_schema.containment.goals import Work
from strata.compat.json_schema.containment.values import Document

__all__ = ["shrunk"]

_SIMPLEST: tuple[Document, ...] = (0, "", None, False, [], {})


def shrunk(document: Document, is_witness: Callable[[Document], bool], work: Work) -> Document:
    """Return a document that is still a witness and from which nothing more can be left out.

    Raises:
        OutOfWorkError: The work is used up.
    """
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for one in _smaller(document):
            work.charge(10)
            if is_witness(one):
                document, is_smaller = one, True
                break
    return document


def _smaller(document: Document) -> Iterator[Document]:
    """Yield documents that are smaller by one step, those that leave out most first."""
    if isinstance(document, dict):
        for name in document:
            yield {other: one for other, one in document.items() if other != name}
        for name, inner in document.items():
            for one in _smaller(inner):
                yield {**document, name: one}
    elif isinstance(document, list):
        for place in range(len(document)):
            yield document[:place] + document[place + 1 :]
        for place, inner in enumerate(document):
            for one in _smaller(inner):
                yield [*document[:place], one, *document[place + 1 :]]
    if isinstance(document, dict | list) and document:
        yield from _SIMPLEST[:2]
    if isinstance(document, str) and len(document) > 1:
        yield from ("", document[: len(document) // 2], document[:-1])
    if isinstance(document, float) and document:
        yield from (0, 1, int(document))
