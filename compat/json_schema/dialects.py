"""The five dialects, and how `$schema` decides between them.

None, or one that nobody knows, is draft 7. Nothing is ever looked up under the URI.
"""

from enum import IntEnum
from typing import Final

from compat.json_schema.json_text import Json

__all__ = ["Dialect", "dialect_of"]


class Dialect(IntEnum):
    """A dialect, in the order of time."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019_09 = 2019
    DRAFT_2020_12 = 2020

    @property
    def modern(self) -> bool:
        """Whether it is one of those that the reference reads with its second loader."""
        return self >= Dialect.DRAFT_2019_09

    @property
    def id_keyword(self) -> str:
        """The keyword that names a schema."""
        return "id" if self is Dialect.DRAFT_4 else "$id"


_KNOWN: Final = {
    "json-schema.org/draft-04/schema": Dialect.DRAFT_4,
    "json-schema.org/draft-06/schema": Dialect.DRAFT_6,
    "json-schema.org/draft-07/schema": Dialect.DRAFT_7,
    "json-schema.org/draft/2019-09/schema": Dialect.DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": Dialect.DRAFT_2020_12,
}


def dialect_of(root: Json) -> Dialect:
    """The dialect that a document is written in."""
    uri = root.get("$schema") if isinstance(root, dict) else None
    if not isinstance(uri, str):
        return Dialect.DRAFT_7
    return _KNOWN.get(uri.partition("://")[2].removesuffix("#"), Dialect.DRAFT_7)
