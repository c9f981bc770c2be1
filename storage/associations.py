"""What is associated with what: resources (topics) and the subjects that hold their schemas, found from either side.

An immutable value, as State is. Several associations of a resource or a subject may stand in a log; which may be made
is decided elsewhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from immutables import Map

from storage.records import AssociationKey, AssociationValue, Subject

__all__ = ["Association", "Associations"]


@dataclass(frozen=True, slots=True)
class Association:
    """One association: `updated` (milliseconds since the epoch) is the time of its newest record."""

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
        """Return these with one more or one changed, or (None) without it."""
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
        """Return the associations of a subject, in the order of their keys."""
        return self._sorted(self.subjects.get(subject, ()))

    def of_name(self, name: str | None, namespace: str | None) -> list[Association]:
        """Return the associations of the resources of a name or (None) any, in one namespace or (None) in any."""
        keys = self.by_key if name is None else self.names.get(name, ())
        return self._sorted(key for key in keys if namespace in (None, key.resource_namespace))

    def of_resource_id(self, resource_id: str) -> list[Association]:
        """Return the associations of a resource."""
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
