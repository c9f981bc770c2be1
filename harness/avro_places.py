"""Positions in Avro schemas, valid or not: those of any value, of types, and of named types."""

from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Place", "is_named", "named_in", "places_in", "types_in"]

Json = Any


class Place(NamedTuple):
    """The position of a value: its object or list, and its key or index."""

    holder: Any
    key: Any

    @property
    def value(self) -> Json:
        """The value."""
        return self.holder[self.key]

    def put(self, value: Json) -> None:
        """Replace the value."""
        self.holder[self.key] = value


def is_named(value: Json) -> bool:
    """Return whether a value is an object with a name."""
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def named_in(schema: Json) -> list[Place]:
    """Return the positions of the named types of a schema."""
    return [place for place in types_in([schema]) if is_named(place.value)]


def places_in(holder: Any) -> Iterator[Place]:
    """Yield every position in a value."""
    keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
    for key in keys:
        yield Place(holder, key)
        yield from places_in(holder[key])


def types_in(holder: list[Json]) -> Iterator[Place]:
    """Yield every position of a type in a list of types."""
    for index, one in enumerate(holder):
        yield Place(holder, index)
        if isinstance(one, list):
            yield from types_in(one)
        if not isinstance(one, dict):
            continue
        fields = one.get("fields")
        inner = [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
        for key, objects in (("items", [one]), ("values", [one]), ("type", inner)):
            for each in objects:
                if key in each:
                    yield Place(each, key)
                    yield from _inner_types(each, key)


def _inner_types(holder: dict[str, Json], key: str) -> Iterator[Place]:
    value = holder[key]
    if isinstance(value, list):
        yield from types_in(value)
    elif isinstance(value, dict):
        yield from list(types_in([value]))[1:]
