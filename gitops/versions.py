"""Versions that exist already, and how schemas are parsed with what they refer to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from strata.compat.formats import FORMATS
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat
from strata.gitops.desired import Desired, Reference, Subject, qualified
from strata.gitops.errors import GitopsError

__all__ = ["Held", "Parser", "TreeVersions", "Versions", "held"]


@dataclass(frozen=True, slots=True)
class Held:
    """A version of a subject; `normalize` says that a registry will normalize it."""

    subject: str
    version: int
    format: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, object] | None = None
    file: str = ""
    normalize: bool = False


class Versions(Protocol):
    """Where versions come from: a tree, an export file or a registry."""

    @property
    def label(self) -> str:
        """What the source is called in messages."""

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects with live versions, sorted."""

    def versions(self, subject: str) -> Sequence[Held]:
        """Return the live versions of a subject, oldest first; empty if there is none."""

    def version(self, subject: str, number: int | None) -> Held | None:
        """Return a version, deleted or not; None for the number is the latest live one."""

    def level(self, subject: str) -> str | None:
        """Return the compatibility level in force for a subject; None if the source does not say."""

    def group(self, subject: str) -> str | None:
        """Return the metadata property that divides a subject's versions into groups; None if none does."""

    def policy(self, subject: str) -> str | None:
        """Return how strictly differences of a subject count; None if the source does not say."""


class TreeVersions:
    """The one version of each subject of a tree."""

    def __init__(self, desired: Desired, label: str) -> None:
        self._desired, self.label = desired, label

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects with a schema, sorted."""
        return sorted(name for name, subject in self._desired.subjects.items() if subject.text is not None)

    def versions(self, subject: str) -> Sequence[Held]:
        """Return the version of a subject, if there is one."""
        version = self.version(subject, None)
        return [version] if version else []

    def version(self, subject: str, number: int | None) -> Held | None:  # noqa: ARG002 - a tree has one version
        """Return the version of a subject."""
        desired = self._desired.subjects.get(subject)
        return held(desired) if desired and desired.text is not None else None

    def level(self, subject: str) -> str | None:
        """Return the compatibility level that the tree sets."""
        return self._desired.level(subject)

    def group(self, subject: str) -> str | None:
        """Return the property of groups that the tree sets."""
        return self._desired.group(subject)

    def policy(self, subject: str) -> str | None:
        """Return how strictly differences of a subject count; None if the tree does not say."""
        return self._desired.policy(subject)


def held(subject: Subject) -> Held:
    """Return a desired subject as a version."""
    return Held(
        subject.name, 1, subject.format, subject.text or "", subject.references, subject.metadata, subject.rule_set,
        subject.file, subject.normalize,
    )  # fmt: skip


@dataclass(slots=True)
class Parser:
    """Parses versions, and finds what they refer to in some sources, the first of which counts."""

    sources: Sequence[Versions]
    _parsed: dict[tuple[str, int, str, bool], ParsedSchema] = field(default_factory=dict)

    def parse(self, version: Held, *, strict: bool) -> ParsedSchema:
        """Return a version parsed.

        Raises:
            SchemaParseError: If it is not a schema of its format.
            GitopsError: If a reference leads nowhere.
        """
        key = (version.subject, version.version, version.text, strict)
        known = self._parsed.get(key)
        if known is None:
            references = tuple(self._resolved(version, {}))
            parse = FORMATS[SchemaFormat(version.format)].parse
            known = self._parsed[key] = parse(version.text, strict=strict, references=references)
        return known

    def normalized(self, version: Held) -> ParsedSchema:
        """Return a version parsed, as normalizing would store it.

        Raises:
            SchemaParseError: If it is not a schema of its format.
            GitopsError: If a reference leads nowhere.
        """
        schema = self.parse(version, strict=False)
        return self.parse(replace(version, text=FORMATS[schema.format].normalize(schema)), strict=False)

    def _resolved(self, version: Held, seen: dict[tuple[str, str, int | None], None]) -> Iterator[ResolvedReference]:
        """Yield what a version refers to, directly or not, each after what it needs itself."""
        for reference in version.references:
            target = reference.subject if reference.version is None else qualified(reference.subject, version.subject)
            key = (reference.name, target, reference.version)
            if key in seen:
                continue
            seen[key] = None
            sources = self.sources if reference.version is None else sorted(self.sources, key=_has_no_numbers)
            held = next(filter(None, (source.version(*key[1:]) for source in sources)), None)
            if held is None:
                shown = "" if reference.version is None else f" version {reference.version}"
                places = " or ".join(source.label for source in self.sources)
                where = version.file or version.subject
                raise GitopsError(f"{where}: it refers to {reference.subject}{shown}, which is not in {places}")
            yield from self._resolved(held, seen)
            yield ResolvedReference(reference.name, held.text, f"{held.subject}\0{held.version}")


def _has_no_numbers(source: Versions) -> bool:
    """Return whether a source may have another version than the one that is asked for."""
    return isinstance(source, TreeVersions)
