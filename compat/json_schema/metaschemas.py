"""The metaschemas of the five dialects and their vocabularies, as json-schema.org publishes them.

A `$ref` to one of them resolves to this copy. Nothing is fetched.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Final

from strata.compat.json_schema.json_text import Json

__all__ = ["metaschema_of"]

_FILE: Final = "metaschemas.json"  # an object: URI to document


def metaschema_of(uri: str) -> tuple[str, Json] | None:
    """Return the metaschema that a URI names, with its own URI, or None.

    Args:
        uri: The URI without a fragment; http and https are equivalent.
    """
    host_and_path = uri.partition("://")[2]
    for scheme in ("http", "https") if host_and_path.startswith("json-schema.org/") else ():
        own = f"{scheme}://{host_and_path}"
        document = _documents().get(own)
        if document is not None:
            return own, document
    return None


@cache
def _documents() -> dict[str, Json]:
    documents: dict[str, Json] = json.loads(
        files("strata.compat.json_schema").joinpath(_FILE).read_text(encoding="utf-8")
    )
    return documents
