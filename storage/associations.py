"""Associations between resources (topics) and the subjects that hold their schemas, indexed from both sides.

An immutable value, as State is. A log may hold several associations of one resource or subject; the registry decides
which are allowed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from immutables import Map

from strata.storage.records import AssociationKey, AssociationValue, Subject

__all__ = ["Association", "Associations"]

Place = tuple[str, str]
"""What an association is found by, and its value."""


@dataclass(frozen=True, slots=True)
class Association:
    """One association; `updated` is the time of its newest record, in milliseconds since the epoch."""

    key: AssociationKey
    value: AssociationValue
    updated: int


@dataclass(frozen=True, slots=True)
class Associations:
    """All associations of a log; `index` has the keys by subject, by resource name and by resource id."""

    by_key: "Map[AssociationKey, Association]" = field(default_factory=Map)
    index: "Map[Place, frozenset[AssociationKey]]" = field(default_factory=Map)

    def after(self, key: AssociationKey, value: AssociationValue | None, timestamp: int) -> "Associations":
        """Return the associations with one added or changed.

        Args:
            key: The association.
            value: Its new value, or None to remove it.
            timestamp: The time of the record, in milliseconds since the epoch.
        """
        old, index = self.by_key.get(key), self.index
        if old is not None:
            for place in _places(old.key, old.value):
                left = index[place] - {key}
                index = index.set(place, left) if left else index.delete(place)
        if value is None:
            return replace(self, by_key=self.by_key.delete(key), index=index) if old else self
        for place in _places(key, value):
            index = index.set(place, index.get(place, frozenset()) | {key})
        return replace(self, by_key=self.by_key.set(key, Association(key, value, timestamp)), index=index)

    def of_subject(self, subject: Subject) -> list[Association]:
        """Return the associations of a subject, sorted by key."""
        return self._sorted(self.index.get(("subject", subject), ()))

    def of_name(self, name: str | None, namespace: str | None) -> list[Association]:
        """Return the associations of resources, sorted by key.

        Args:
            name: The name of the resources, or None for any name.
            namespace: The namespace of the resources, or None for any namespace.
        """
        keys = self.by_key if name is None else self.index.get(("name", name), ())
        return self._sorted(key for key in keys if namespace in (None, key.resource_namespace))

    def of_resource_id(self, resource_id: str) -> list[Association]:
        """Return the associations of a resource, sorted by key."""
        return self._sorted(self.index.get(("id", resource_id), ()))

    def _sorted(self, keys: Iterable[AssociationKey]) -> list[Association]:
        return [self.by_key[key] for key in sorted(keys)]


def _places(key: AssociationKey, value: AssociationValue) -> tuple[Place, ...]:
    return ("subject", key.subject), ("name", key.resource_name), ("id", value.resource_id)
