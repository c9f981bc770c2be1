"""The parts of a schema that can have tags: records and fields, by path."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

__all__ = ["TAGS", "Entity", "EntityType", "Tags", "changed"]

TAGS: Final = "confluent:tags"


class EntityType(StrEnum):
    """The kind of a tagged entity, spelled as on the wire."""

    RECORD = "sr_record"
    FIELD = "sr_field"


class Entity(NamedTuple):
    """A record or a field; the path has no leading dot."""

    path: str
    type: EntityType


Tags: TypeAlias = Mapping[Entity, Sequence[str]]


def changed(tags: Iterable[str], add: Iterable[str], remove: Iterable[str]) -> list[str]:
    """Return tags after additions and then removals, without duplicates, in order of first occurrence."""
    gone = frozenset(remove)
    return [tag for tag in dict.fromkeys((*tags, *add)) if tag not in gone]
