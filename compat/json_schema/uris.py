"""The syntax of URIs as in Java's `java.net.URI`; ids and references of a schema must follow it."""

import re
from typing import Final

from strata.compat.json_schema.json_text import excerpt
from strata.compat.schema import SchemaParseError

__all__ = ["check_uri"]

_PATH: Final = r"(?:[a-zA-Z0-9_\-!.~'()*:@&=+$,;/]|%[0-9a-fA-F]{2}|[^\x00-\x7f])*"
_ANY: Final = r"(?:[a-zA-Z0-9_\-!.~'()*:@&=+$,;/?\[\]]|%[0-9a-fA-F]{2}|[^\x00-\x7f])"
_AUTHORITY: Final = r"(?:[a-zA-Z0-9_\-!.~'()*:@&=+$,;]|\[[0-9a-fA-F:.]+\]|%[0-9a-fA-F]{2}|[^\x00-\x7f])+"
_HIERARCHY: Final = rf"(?://(?:{_AUTHORITY}(?=[/?#]|\Z)|(?=[/?#])))?{_PATH}(?:\?{_ANY}*)?"
_SCHEME: Final = r"[a-zA-Z][a-zA-Z0-9+\-.]*:"
_OPAQUE: Final = rf"(?!/){_ANY}+"
_URI: Final = re.compile(
    rf"(?:{_SCHEME}(?:{_OPAQUE}|(?=/){_HIERARCHY})|(?![^/?#]*:){_HIERARCHY})(?:\#{_ANY}*)?", re.DOTALL
)


def check_uri(uri: str) -> None:
    """Check the syntax of a URI, which may be relative.

    Raises:
        SchemaParseError: The text is not a URI.
    """
    if _URI.fullmatch(uri) is None:
        raise SchemaParseError(f"{excerpt(uri)!r} is not a URI; percent-encode characters that a URI must not contain")
