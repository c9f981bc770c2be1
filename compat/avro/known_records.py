"""Fields and records that were read lately, and the plainest fields: what need not be read by all rules (`parser.py`).

A field is known by its JSON, a record by the start of its text: a text that differs in a few fields is not read whole.

A new version of a schema is mostly the text of another one with a field more or less. If two texts differ only between
two commas of the fields of the record at the root, then their JSON differs only in the elements between these commas.
So those alone are read, and the fields whose meaning depends on names (`parser.py`). All other fields are shared.

This holds for every text, because JSON is read from left to right: whatever precedes a position decides what may follow
there. So only the texts are compared, not what they mean.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from strata.compat.avro import model
from strata.compat.avro.json_text import holds_long_number
from strata.compat.avro.printer import print_plain_field
from strata.compat.limits import Limits
from strata.compat.plain_json import orjson

__all__ = [
    "LONGEST_KEY",
    "Edit",
    "KnownFields",
    "KnownRecord",
    "KnownRecords",
    "key_of_names",
    "plain_field",
    "starts_with_null",
]

LONGEST_KEY: Final = 4 << 10  # bytes of the JSON of one field
_MOST_KEYS: Final = 512 << 10  # bytes of one generation; a parsed field takes twenty times as much
_PLAIN_WORDS: Final = frozenset({"type", "name", "doc", "default"})
_LONGEST: Final = 64 << 10  # characters of one text
_MOST: Final = 512 << 10  # characters of one generation; what is read from a text takes twenty times as much
_MOST_HEADS: Final = 4096
_WAIT: Final = 20  # texts that differ from the known one too much before it is replaced, if none was an edit of it
_LARGEST_EDIT: Final = 1024  # characters, beyond a quarter of the known text
_FIELDS: Final = '"fields"'
_PRINTED_FIELDS: Final = '"fields":['  # is in no string, where a quote has a backslash before it
_HEAD: Final = re.compile(rf"[ \t\r\n]*+\{{[^{{}}\[\]\\]*?{_FIELDS}[ \t\r\n]*+:[ \t\r\n]*+\[")
_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_DECODER: Final = json.JSONDecoder()


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
        if len(key) > LONGEST_KEY:
            return
        if self._size > _MOST_KEYS:
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


class KnownRecord(NamedTuple):
    """The text of a record and what was read from it.

    Attributes:
        text: The text.
        starts: Where each field begins in the text, and where the array of the fields ends.
        record: The record.
        names: The names of its fields.
        dependent: The fields that use or define names, by position, as JSON.
        canonical: The canonical text.
        printed: Where each field begins in the canonical text, and one behind the end of the last one.
        depth: The limit on depth under which the text was read.
    """

    text: str
    starts: Sequence[int]
    record: model.RecordType
    names: frozenset[str]
    dependent: Mapping[int, model.Json]
    canonical: str
    printed: Sequence[int]
    depth: int


class Edit(NamedTuple):
    """A text as an edit of a known one: fields before `first` and from `last` on are the same.

    `values` are the fields between them, as JSON.
    """

    known: KnownRecord
    first: int
    last: int
    values: list[model.Json]

    def printed(self, record: model.RecordType) -> str | None:
        """Return the canonical text of the edited record; None if that depends on more than the texts of its fields."""
        known, first, last, values = self
        fields, before, behind = record.fields, known.record.fields, first + len(values)
        if not known.printed or fields[:first] != before[:first] or fields[behind:] != before[last:]:
            return None
        texts = []
        for field in fields[first:behind]:
            if field.text is None or field.types:
                return None
            texts.append(field.text)
        if last < len(known.printed) - 1:
            end = known.printed[last]
            texts.append("")  # a comma follows each
        else:
            end = known.printed[last] - 1
        return f"{known.canonical[: known.printed[first]]}{','.join(texts)}{known.canonical[end:]}"


class KnownRecords:
    """Records that were read lately, in two generations: the older is dropped when the younger is full."""

    def __init__(self) -> None:
        self._young: dict[str, KnownRecord] = {}
        self._old: dict[str, KnownRecord] = {}
        self._size = 0
        self._waits: dict[int, int] = {}

    def find(self, text: str, limits: Limits) -> Edit | None:
        """Return a text as an edit of a known one; None if there is none that differs in a few fields only."""
        head = _head(text)
        known = self._young.get(head)
        if known is None:
            known = self._old.get(head)
            if known is None:
                return None
            self._put(head, known)
        edit = _edit(text, known, limits)
        if edit is not None:
            self._waits[hash(head)] = 0  # if texts move away from the known one, keep the next one at once
        return edit

    def put(self, text: str, values: Sequence[model.Json], schema: model.AvroSchema, limits: Limits) -> None:
        """Store a schema, unless texts that begin like this one were seldom edits of each other.

        Args:
            text: The text of a record, as it was read.
            values: Its fields, as JSON.
            schema: What was read, without references.
            limits: The limits under which it was read.
        """
        head, record = _head(text), schema.root
        if not head or len(text) > _LONGEST or not isinstance(record, model.RecordType):
            return
        if self._must_wait(hash(head)):
            return
        starts = _starts(text)
        if starts is None or len(starts) != len(record.fields) + 1:
            return
        dependent = {
            position: values[position]
            for position, field in enumerate(record.fields)
            if field.text is None or field.types
        }
        texts = [field.text or "" for field in record.fields]
        begin = schema.canonical.index(_PRINTED_FIELDS) + len(_PRINTED_FIELDS)
        is_joined = schema.canonical.startswith(f"{','.join(texts)}]", begin)
        printed = list(accumulate([len(text) + 1 for text in texts], initial=begin)) if is_joined else ()
        names = frozenset([field.name for field in record.fields])
        known = KnownRecord(text, starts, record, names, dependent, schema.canonical, printed, limits.depth)
        self._put(head, known)

    def _must_wait(self, number: int) -> bool:
        """Return whether more texts of a start must come before one is kept: most starts never come again."""
        wait = self._waits.get(number, 1)
        if len(self._waits) >= _MOST_HEADS and number not in self._waits:
            self._waits = {}
        self._waits[number] = wait - 1 if wait else _WAIT
        return wait > 0

    def _put(self, head: str, known: KnownRecord) -> None:
        if self._size > _MOST:
            self._old, self._young, self._size = self._young, {}, 0
        self._young[head] = known
        self._size += len(known.text)


def _head(text: str) -> str:
    """Return what comes before the fields; empty if that is not near the start of the text."""
    return text[: max(text.find(_FIELDS, 0, _LONGEST), 0)]


def _edit(text: str, known: KnownRecord, limits: Limits) -> Edit | None:
    before, starts = known.text, known.starts
    count = len(starts) - 1
    if known.depth > limits.depth or len(text) > limits.text or not text.startswith(before[: starts[0]]):
        return None
    # Each step halves the number of fields that may differ. Most new fields come last.
    first = count - 1 if text.startswith(before[: starts[count - 1]]) else 0
    over = count if first else count - 1
    while over - first > 1:
        middle = (first + over) // 2
        if text.startswith(before[starts[first] : starts[middle]], starts[first]):
            first = middle
        else:
            over = middle
    last, under = count, first - 1
    if not text.endswith(before[starts[last] :]):
        return None
    while last - under > 1:
        middle = (last + under) // 2
        if text.endswith(before[starts[middle] :]):
            last = middle
        else:
            under = middle
    end = len(text) - (len(before) - starts[last])
    if end < starts[first]:  # what both begin and end with overlaps
        return None
    changed = text[starts[first] : end]
    if len(changed) > len(before) // 4 + _LARGEST_EDIT:
        return None
    values = _elements(changed, limits, is_followed=last < count)
    return None if values is None or not (values or last < count) else Edit(known, first, last, values)


def _elements(text: str, limits: Limits, *, is_followed: bool) -> list[model.Json] | None:
    """Return the elements in a part of the text of an array, in which a comma follows each if more elements follow."""
    deepest = limits.depth - 2
    if len(text) > deepest and text.count("{") + text.count("[") > deepest:
        return None
    try:
        if holds_long_number(text.encode(), limits):
            return None
        values: list[model.Json] = orjson.loads(f"[{text}null]" if is_followed else f"[{text}]")
    except ValueError:
        return None
    if is_followed:
        values.pop()
    return values


def _starts(text: str) -> list[int] | None:
    """Return where the elements of the array `fields` begin in the text of an object, and where it ends.

    Return None if it is not certain that this array is the object's.
    """
    head = _HEAD.match(text)
    # Without a backslash, a quote begins or ends a string.
    if head is None or text.count('"', 0, head.end()) % 2:
        return None
    starts, at = [], _after_blanks(text, head.end())
    try:
        while True:
            starts.append(at)
            at = _after_blanks(text, _DECODER.raw_decode(text, at)[1])
            if text[at] != ",":
                break
            at = _after_blanks(text, at + 1)
    except (ValueError, IndexError, RecursionError):
        return None
    if text[at] != "]" or _FIELDS in text[at:] or "\\" in text[at:]:  # its last key of this name counts
        return None
    return [*starts, at]


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
