"""Fields that were read before, by their JSON.

The versions of a subject share most of their fields, and so do many subjects. A field whose type has no names means the
same in every schema, so it is read, checked and printed once. Both tables are bounded by the JSON that they hold.

The JSON must come from `read_plain_json`: orjson writes equal values of it, and no others, as equal bytes.
"""

from collections.abc import Sequence
from typing import Final

try:
    import orjson
except ImportError:  # then `read_plain_json` reads nothing
    orjson = None  # type: ignore[assignment]

from strata.compat.avro.model import Field, Json

__all__ = ["KnownFields"]

_MOST_BYTES: Final = 512 << 10  # of keys in one generation; a parsed field takes some twenty times as much
_LONGEST: Final = 4 << 10  # bytes of one key


class KnownFields:
    """A bounded table of fields, in two generations: the older one is dropped when the younger one is full."""

    def __init__(self) -> None:
        self._young: dict[bytes, Field] = {}
        self._old: dict[bytes, Field] = {}
        self._size = 0

    @staticmethod
    def key(json: Json) -> bytes:
        """Return bytes that are equal for equal JSON only: 1, 1.0 and true differ, and so does the order of keys."""
        return orjson.dumps(json)

    def find(self, texts: Sequence[Json]) -> list[Field | None]:
        """Return the field of each JSON value; None for those that are not known to be fields, or not kept lately."""
        return list(map(self._young.get, map(orjson.dumps, texts)))

    def get(self, key: bytes) -> Field | None:
        """Return the field of a key; None if there is none."""
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.put(key, found)
        return found

    def put(self, key: bytes, field: Field) -> None:
        """Store a field, unless it is very long."""
        if len(key) > _LONGEST:
            return
        if self._size > _MOST_BYTES:
            self._old, self._young, self._size = self._young, {}, 0
        # What orjson returns keeps the buffer that it was written to, some 4 KiB; a copy does not.
        self._young[bytes(memoryview(key))] = field
        self._size += len(key)
