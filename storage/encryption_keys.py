"""The keys of client-side field level encryption (CSFLE): KEKs by name, and under each the versions of its DEKs.

An immutable value, as State is. The registry decides which keys may be created and deleted; a log may hold a DEK
without its KEK.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from immutables import Map

from strata.storage.records import DekKey, DekValue, KekKey, KekValue, Subject

__all__ = ["Dek", "EncryptionKeys", "Series"]

Series = tuple[Subject, str]
"""The subject and algorithm that identify a DEK, which has versions."""


class Dek(NamedTuple):
    """A version of a DEK."""

    key: DekKey
    value: DekValue


_NO_SERIES: "Map[Series, Map[int, DekValue]]" = Map()
_NO_VERSIONS: "Map[int, DekValue]" = Map()


@dataclass(frozen=True, slots=True)
class EncryptionKeys:
    """All KEKs and DEKs of a log; `dek_count` counts versions, soft-deleted ones included."""

    keks: "Map[str, KekValue]" = field(default_factory=Map)
    deks: "Map[str, Map[Series, Map[int, DekValue]]]" = field(default_factory=Map)
    dek_count: int = 0

    def after(self, key: KekKey | DekKey, value: KekValue | DekValue | None) -> "EncryptionKeys":
        """Return the keys with one added or changed, or removed if `value` is None."""
        if isinstance(key, KekKey):
            return self._with_kek(key.name, value if isinstance(value, KekValue) else None)
        return self._with_dek(key, value if isinstance(value, DekValue) else None)

    def _with_kek(self, name: str, value: KekValue | None) -> "EncryptionKeys":
        if value is not None:
            return replace(self, keks=self.keks.set(name, value))
        return replace(self, keks=self.keks.delete(name)) if name in self.keks else self

    def _with_dek(self, key: DekKey, value: DekValue | None) -> "EncryptionKeys":
        name = (key.subject, key.algorithm)
        series = self.deks.get(key.kek, _NO_SERIES)
        versions = series.get(name, _NO_VERSIONS)
        known = key.version in versions
        if value is not None:
            changed = series.set(name, versions.set(key.version, value))
            return replace(self, deks=self.deks.set(key.kek, changed), dek_count=self.dek_count + (not known))
        if not known:
            return self
        left = versions.delete(key.version)
        rest = series.set(name, left) if left else series.delete(name)
        deks = self.deks.set(key.kek, rest) if rest else self.deks.delete(key.kek)
        return replace(self, deks=deks, dek_count=self.dek_count - 1)

    def kek(self, name: str, *, include_deleted: bool) -> KekValue | None:
        """Return a KEK, or None if there is no such KEK."""
        value = self.keks.get(name)
        return None if value is None or (value.deleted and not include_deleted) else value

    def dek(self, key: DekKey) -> Dek | None:
        """Return a version of a DEK, soft-deleted or not, or None if there is no such version."""
        value = self.deks.get(key.kek, _NO_SERIES).get((key.subject, key.algorithm), _NO_VERSIONS).get(key.version)
        return Dek(key, value) if value else None

    def versions(self, kek: str, subject: Subject, algorithm: str, *, include_deleted: bool) -> list[Dek]:
        """Return the versions of a DEK, oldest first."""
        versions = self.deks.get(kek, _NO_SERIES).get((subject, algorithm), _NO_VERSIONS)
        return [
            Dek(DekKey(kek, subject, algorithm, number), versions[number])
            for number in sorted(versions)
            if include_deleted or not versions[number].deleted
        ]

    def subjects(self, kek: str, *, include_deleted: bool) -> Iterator[Subject]:
        """Yield the subjects that have DEKs under a KEK, unordered, once for each of their algorithms."""
        for (subject, _), versions in self.deks.get(kek, _NO_SERIES).items():
            if include_deleted or any(not value.deleted for value in versions.values()):
                yield subject
