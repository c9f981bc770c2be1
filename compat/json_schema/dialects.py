"""The five dialects, and how `$schema` selects one of them.

Without `$schema`, or with an unknown one, the dialect is draft 7. The loader of a schema also reads the documents to
which the schema refers: their own `$schema` counts only among the dialects of that loader. The URI is never fetched.
"""

from enum import IntEnum
from typing import Final

from strata.compat.json_schema.json_text import Json
from strata.compat.schema import SchemaParseError

__all__ = ["Dialect", "dialect_of", "dialect_within"]


class Dialect(IntEnum):
    """A dialect; the order is that of publication."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019_09 = 2019
    DRAFT_2020_12 = 2020

    modern: bool  # whether the reference reads the dialect with its newer loader
    id_keyword: str  # the keyword that names a schema

    def __init__(self, year: int) -> None:
        # Attributes, because each subschema asks several times.
        self.modern = year >= 2019
        self.id_keyword = "id" if year == 4 else "$id"


_KNOWN: Final = {  # by the beginning of the URI after http:// or https://
    "json-schema.org/draft-04/schema": Dialect.DRAFT_4,
    "json-schema.org/schema": Dialect.DRAFT_4,
    "json-schema.org/draft-06/schema": Dialect.DRAFT_6,
    "json-schema.org/draft-07/schema": Dialect.DRAFT_7,
    "json-schema.org/draft/2019-09/schema": Dialect.DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": Dialect.DRAFT_2020_12,
}


def dialect_of(root: Json) -> Dialect:
    """Return the dialect of a document.

    Raises:
        SchemaParseError: `$schema` is not a string.
    """
    return _named(root) or Dialect.DRAFT_7


def dialect_within(root: Json, referring: Dialect) -> Dialect:
    """Return the dialect in which to read a document that another one refers to.

    Args:
        root: The document.
        referring: The dialect of the document that refers to it.

    Raises:
        SchemaParseError: `$schema` is not a string.
    """
    own = _named(root)
    return own if own is not None and not own.modern and not referring.modern else referring


def _named(root: Json) -> Dialect | None:
    """Return the dialect that a document names, or None.

    Raises:
        SchemaParseError: `$schema` is not a string.
    """
    uri = root.get("$schema", "") if isinstance(root, dict) else ""
    if not isinstance(uri, str):
        raise SchemaParseError("'$schema' must be a string")
    scheme, _, rest = uri.partition("://")
    if scheme not in ("http", "https"):
        return None
    return next((dialect for start, dialect in _KNOWN.items() if rest.startswith(start)), None)
