"""Fields of Avro records that need no full reading: those that were read before, and those of the plainest types.

`parser.py` reads all others.
"""

from collections.abc import Sequence
from typing import Final

from strata.compat.avro import model
from strata.compat.avro.printer import print_plain_field
from strata.compat.plain_json import orjson

__all__ = ["LONGEST", "KnownFields", "key_of_names", "plain_field", "starts_with_null"]

LONGEST: Final = 4 << 10  # bytes of one key
_MOST_BYTES: Final = 512 << 10  # of keys in one generation; a parsed field takes twenty times as much
_PLAIN_WORDS: Final = frozenset({"type", "name", "doc", "default"})


class KnownFields:
    """Fields that were read before, by their JSON, in two generations: the older is dropped when the younger is full.

    The versions of a subject share most of their fields, and so do many subjects. A settled field means the same in
    every schema, so it is read, checked and printed once. Both generations are bounded by the JSON that they hold.

    The JSON must come from `read_plain_json`: orjson writes equal values of it, and no others, as equal bytes.
    """

    def __init__(self) -> None:
        self._young: dict[bytes, model.Field] = {}
        self._old: dict[bytes, model.Field] = {}
        self._size = 0

    @staticmethod
    def key(json: model.Json) -> bytes:
        """Return bytes that are equal for equal JSON only: 1, 1.0 and true differ, and so does the order of keys."""
        return orjson.dumps(json)

    def find(self, texts: Sequence[model.Json]) -> list[model.Field | None]:
        """Return the field of each JSON value; None for those that are not known to be fields, or not kept lately."""
        return list(map(self._young.get, map(orjson.dumps, texts)))

    def get(self, key: bytes) -> model.Field | None:
        """Return the field of a key; None if there is none."""
        field = self._young.get(key)
        if field is None and (field := self._old.get(key)) is not None:
            self.put(key, field)
        return field

    def put(self, key: bytes, field: model.Field) -> None:
        """Store a field, unless it is very long."""
        if len(key) > LONGEST:
            return
        if self._size > _MOST_BYTES:
            self._old, self._young, self._size = self._young, {}, 0
        # What orjson returns keeps the buffer that it was written to, some 4 KiB; a copy does not.
        self._young[bytes(memoryview(key))] = field
        self._size += len(key)


def key_of_names(key: bytes, namespace: str) -> bytes:
    """Return the key of a field that defines names; a NUL is in no JSON, so no other key begins with it."""
    return b"\0%b %b" % (namespace.encode(), key)


def plain_field(json: model.Json, *, strict: bool) -> model.Field | None:
    """Return a field of a primitive type, or of one that is optional, as most are; None if it must be read in full."""
    if not isinstance(json, dict) or not json.keys() <= _PLAIN_WORDS:
        return None
    name, text, default = json.get("name"), json.get("type"), json.get("default", model.MISSING)
    node: model.Node | None
    if isinstance(text, list):
        node = model.PAIRS.get(tuple(text)) if len(text) == 2 and set(map(type, text)) == {str} else None
    else:
        node = model.BARE.get(text) if isinstance(text, str) else None
    if node is None or not isinstance(name, str) or (strict and model.name_fault(name)):
        return None
    if default is not model.MISSING and (default is not None or not starts_with_null(node)):
        return None
    doc = json.get("doc")
    if not isinstance(doc, str):  # as in Avro Java, it counts as absent
        doc = None
    field = model.Field(name, node, doc, default, "ascending", (), model.NO_PROPERTIES)
    field.settle(print_plain_field(field), ())
    return field


def starts_with_null(node: model.Node) -> bool:
    """Return whether a type is a union whose first branch is null, so that null is a legal default."""
    return isinstance(node, model.UnionType) and node.branches[:1] == (model.BARE["null"],)
