"""What a contract says of the data around the schema: servers, roles, service levels, prices and the like.

A registry has no words for it, so it is kept in metadata: one property for each key, `contract.servers` and so on, with
JSON as its value. An export puts it back.

Rules of this file: keys of a contract in, metadata properties out, and back.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["KEPT", "keys_of", "properties_of"]

KEPT: Final = (
    "name",
    "version",
    "domain",
    "dataProduct",
    "tenant",
    "tags",
    "servers",
    "roles",
    "slaProperties",
    "slaDefaultElement",
    "price",
    "support",
    "authoritativeDefinitions",
    "contractCreatedTs",
)
_FRONT: Final = "contract."
_NUMBERS: Final = ("port", "priceAmount", "value", "valueExt")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


def properties_of(contract: Mapping[str, Any], *, is_own: bool) -> dict[str, str]:
    """Return the metadata properties that keep a contract's keys.

    Args:
        contract: the contract.
        is_own: whether an export of ours wrote it, whose name and version are those of the subject.
    """
    names = [name for name in KEPT if name in contract and not (is_own and name in ("name", "version"))]
    return {
        f"{_FRONT}{name}": contract[name]
        if isinstance(contract[name], str)
        else json.dumps(contract[name], ensure_ascii=False)
        for name in names
    }


def keys_of(properties: dict[str, str]) -> dict[str, object]:
    """Take the properties of a contract's keys out of metadata, and return the keys.

    A property that does not hold what its key has stays.
    """
    keys = {}
    for name in KEPT:
        text = properties.get(f"{_FRONT}{name}")
        if text is None:
            continue
        value: Any = text
        if text[:1] in ("[", "{"):
            try:
                value = _typed(json.loads(text), "")
            except (ValueError, RecursionError):
                continue
        keys[name] = value
        del properties[f"{_FRONT}{name}"]
    return keys


def _typed(value: object, name: str) -> object:
    """Return a value with the numbers that the standard has in some places, since contracts are read as texts."""
    if isinstance(value, dict):
        return {key: _typed(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner, name) for inner in value]
    if name in _NUMBERS and isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value
