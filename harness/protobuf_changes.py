"""Changes of a random Protobuf schema that readers may not survive: types, labels, oneofs and symbols."""

from dataclasses import replace
from random import Random
from typing import Final

from harness.protobuf_cases import Field, Kind

__all__ = ["changed"]

_SCALARS: Final = (
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64"),
    *("bool", "string", "bytes", "double", "float", "E"),
)
_LABELS: Final = ("", "optional", "repeated", "map int32", "map string", "oneof")


def changed(kind: Kind, chance: Random) -> Kind:
    """Return another version of a message type: fields dropped, added, and declared otherwise."""
    types = [*_SCALARS, *kind.inner]
    fields = [_field(one, types, chance) for one in kind.fields if chance.random() < 0.9]
    if chance.random() < 0.3:
        fields.append(Field(30, chance.choice(types), chance.choice(_LABELS)))
    used = {one.kind for one in fields}
    inner = {
        name: changed(one, chance) if chance.random() < 0.4 else one
        for name, one in kind.inner.items()
        if name in used or chance.random() < 0.7
    }
    return Kind(tuple(fields), inner)


def _field(one: Field, types: list[str], chance: Random) -> Field:
    if chance.random() < 0.15:
        one = replace(one, kind=chance.choice(types))
    return replace(one, label=chance.choice(_LABELS)) if chance.random() < 0.15 else one
