"""The JSON of a search."""

from strata.registry.api.bodies.contracts import Answer
from strata.registry.features.search.index import Found

__all__ = ["SearchAnswer", "search_answer"]


class MatchAnswer(Answer):
    """A place of a schema that fits: its kind (`name`, `field`, `doc`, `tag` or `meta`), its path, its text."""

    kind: str
    path: str
    text: str


class HitAnswer(Answer):
    """A version that fits, and the first places that do."""

    subject: str
    version: int
    id: int
    schema_type: str
    matches: list[MatchAnswer]


class SearchAnswer(Answer):
    """A page of hits; `complete` is false while the index is being built, or if the registry is beyond its bounds.

    `partial` names subjects with a schema of so many words that only the first ones were searched, at most 20.
    """

    hits: list[HitAnswer]
    more: bool
    complete: bool
    partial: list[str]


def search_answer(found: Found) -> dict[str, object]:
    """Return the JSON of a page of hits."""
    return {
        "hits": [
            {
                "subject": hit.entry.subject,
                "version": hit.entry.version,
                "id": hit.entry.schema.schema_id,
                "schemaType": hit.entry.schema.schema_type,
                "matches": [
                    {"kind": match.kind.value, "path": match.path, "text": match.text} for match in hit.matches
                ],
            }
            for hit in found.hits
        ],
        "more": found.more,
        "complete": found.complete,
        "partial": list(found.partial),
    }
