"""Two values of one record: as it was written, and as it is read with another schema.

Rules of this file: values in, paths out; no bytes.
"""

import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from strata.serdes.avro.schema import Array, Field, Kind, Map, Node, Primitive, Record, Union

__all__ = ["differences", "lost"]


def differences(written: object, read: object, reader: Node, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where a reader gets another value than was written: the path, what was written, and what is read.

    What only one of the two schemas has is left out: a default, or a field that is not read.

    Args:
        written: the value as the writer schema reads it.
        read: the value as the reader schema reads it.
        reader: the reader schema, whose aliases say which field is which.
        path: the path so far.
    """
    if isinstance(written, dict) and isinstance(read, dict):
        if isinstance(reader, Map):
            for key, value in read.items():
                yield from differences(written.get(key), value, reader.values, f"{path}{{}}")
            return
        fields = _fields(reader)
        for name, value in read.items():
            known = fields.get(name)
            source = next((old for old in (name, *(known.aliases if known else ())) if old in written), None)
            if source is not None:
                inner = known.type if known else Union(())
                yield from differences(written[source], value, inner, f"{path}.{name}".lstrip("."))
    elif isinstance(written, list) and isinstance(read, list):
        items = next((branch.items for branch in _branches(reader) if isinstance(branch, Array)), Union(()))
        for before, after in zip_longest(written, read):
            yield from differences(before, after, items, f"{path}[]")
    elif not _same(written, read):
        yield path, written, read


def _fields(reader: Node) -> dict[str, Field]:
    records = [branch for branch in _branches(reader) if isinstance(branch, Record)]
    return {field.name: field for field in records[0].fields} if len(records) == 1 else {}


def _branches(reader: Node) -> list[Node]:
    branches = reader.branches if isinstance(reader, Union) else (reader,)
    return [branch for branch in branches if not (isinstance(branch, Primitive) and branch.kind is Kind.NULL)]


def _same(written: object, read: object) -> bool:
    if isinstance(written, str) and isinstance(read, bytes):
        return written.encode() == read
    if isinstance(written, bytes) and isinstance(read, str):
        return written == read.encode()
    if isinstance(written, float) and isinstance(read, float) and math.isnan(written):
        return math.isnan(read)
    try:
        return bool(written == read)
    except TypeError:
        return False


def lost(written: object, again: object, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that a value no longer has after it was written again.

    Args:
        written: the value.
        again: the same value, written and read by another schema.
        path: the path so far.
    """
    if isinstance(written, dict) and isinstance(again, dict):
        for name, value in written.items():
            inner = f"{path}.{name}".lstrip(".")
            if name not in again:
                yield inner
            else:
                yield from lost(value, again[name], inner)
    elif isinstance(written, list) and isinstance(again, list):
        for before, after in zip(written, again, strict=False):
            yield from lost(before, after, f"{path}[]")
