"""Associations between resources (topics) and the subjects that hold their schemas, indexed from both sides.

An immutable value, as State is. A log may hold several associations of one resource or subject; the registry decides
which are allowed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from immutables import Map

from strata.storage.records import AssociationKey, AssociationValue, Subject

__all__ = ["Association", "Associations"]


@dataclass(frozen=True, slots=True)
class Association:
    """One association; `updated` is the time of its newest record, in milliseconds since the epoch."""

    key: AssociationKey
    value: AssociationValue
    updated: int


@dataclass(frozen=True, slots=True)
class Associations:
    """All associations of a log."""

    by_key: "Map[AssociationKey, Association]" = field(default_factory=Map)
    subjects: "Map[str, frozenset[AssociationKey]]" = field(default_factory=Map)
    names: "Map[str, frozenset[AssociationKey]]" = field(default_factory=Map)
    resource_ids: "Map[str, frozenset[AssociationKey]]" = field(default_factory=Map)

    def after(self, key: AssociationKey, value: AssociationValue | None, timestamp: int) -> "Associations":
        """Return the associations with one added or changed.

        Args:
            key: The association.
            value: Its new value, or None to remove it.
            timestamp: The time of the record, in milliseconds since the epoch.
        """
        rest = self._without(key)
        if value is None:
            return rest
        return replace(
            rest,
            by_key=rest.by_key.set(key, Association(key, value, timestamp)),
            subjects=_added(rest.subjects, key.subject, key),
            names=_added(rest.names, key.resource_name, key),
            resource_ids=_added(rest.resource_ids, value.resource_id, key),
        )

    def _without(self, key: AssociationKey) -> "Associations":
        old = self.by_key.get(key)
        if old is None:
            return self
        return replace(
            self,
            by_key=self.by_key.delete(key),
            subjects=_removed(self.subjects, key.subject, key),
            names=_removed(self.names, key.resource_name, key),
            resource_ids=_removed(self.resource_ids, old.value.resource_id, key),
        )

    def of_subject(self, subject: Subject) -> list[Association]:
        """Return the associations of a subject, sorted by key."""
        return self._sorted(self.subjects.get(subject, ()))

    def of_name(self, name: str | None, namespace: str | None) -> list[Association]:
        """Return the associations of resources, sorted by key.

        Args:
            name: The name of the resources, or None for any name.
            namespace: The namespace of the resources, or None for any namespace.
        """
        keys = self.by_key if name is None else self.names.get(name, ())
        return self._sorted(key for key in keys if namespace in (None, key.resource_namespace))

    def of_resource_id(self, resource_id: str) -> list[Association]:
        """Return the associations of a resource, sorted by key."""
        return self._sorted(self.resource_ids.get(resource_id, ()))

    def _sorted(self, keys: Iterable[AssociationKey]) -> list[Association]:
        return [self.by_key[key] for key in sorted(keys)]


def _added(
    index: "Map[str, frozenset[AssociationKey]]", name: str, key: AssociationKey
) -> "Map[str, frozenset[AssociationKey]]":
    return index.set(name, index.get(name, frozenset()) | {key})


def _removed(
    index: "Map[str, frozenset[AssociationKey]]", name: str, key: AssociationKey
) -> "Map[str, frozenset[AssociationKey]]":
    left = index[name] - {key}
    return index.set(name, left) if left else index.delete(name)
