"""Which subjects an exporter copies, and their names at the destination.

Rules of this file: pure.
"""

from dataclasses import dataclass, replace

from strata.registry.core.decide.exporters import (
    AUTO,
    CUSTOM,
    DEFAULT,
    EVERY_SUBJECT,
    EVERYWHERE,
    SUBJECT,
    is_copy_below,
)
from strata.registry.core.subject_names import context_name
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.selection import referred_to
from strata.storage.records import (
    DEFAULT_CONTEXT,
    ExporterValue,
    Reference,
    SchemaValue,
    Subject,
    Version,
    context_of,
    qualified,
)
from strata.storage.state import State

__all__ = ["Choice", "Place", "choice_of"]

Place = tuple[Subject, Version]


@dataclass(frozen=True, slots=True)
class Choice:
    """The subjects that are copied, and their names at the destination.

    Attributes:
        patterns: names of subjects; `*` at the end matches any rest within the context, `:.c:*` is the context `.c`,
            and `:*:` everything.
        into: the context that the contexts of the source are put below; the default context leaves them as they are.
        is_flat: whether all contexts become the default one.
        subject_format: the name within its context, with `${subject}` for the name at the source.
    """

    patterns: tuple[str, ...] = (EVERY_SUBJECT,)
    into: str = DEFAULT_CONTEXT
    subject_format: str = SUBJECT
    is_flat: bool = False

    @property
    def _keeps_names(self) -> bool:
        return self.into == DEFAULT_CONTEXT and self.subject_format == SUBJECT and not self.is_flat

    def wanted(self, state: State) -> dict[Place, SchemaValue]:
        """Return every version that the destination must hold: the chosen ones, and those that they refer to.

        Raises:
            TransferError: if two subjects have one name there.
        """
        chosen: set[str] = {subject for subject in state.subjects if self.chooses(subject)}
        if state.referrers:
            chosen |= referred_to(chosen, state)
        versions: dict[Place, SchemaValue] = {}
        names: dict[Subject, str] = {}
        for subject in sorted(chosen) if self.is_flat else chosen:
            name = self.renamed(subject)
            if (other := names.setdefault(name, subject)) != subject:
                raise TransferError(
                    f"{other!r} and {subject!r} would both be {name!r} at the destination; choose one of them"
                )
            for version, entry in state.subjects[Subject(subject)].items():
                value = entry.schema.value
                references = tuple(self._reference(reference, context_of(subject)) for reference in value.references)
                versions[name, version] = value._replace(
                    subject=name, version=version, references=references, deleted=entry.deleted
                )
        return versions

    def renamed(self, subject: str) -> Subject:
        """Return the name of a subject at the destination."""
        if self._keeps_names:
            return Subject(subject)
        context = context_of(subject)
        plain = self.subject_format.replace(SUBJECT, subject.removeprefix(f":{context}:"))
        into = self._home(context)
        return Subject(plain if into == DEFAULT_CONTEXT else f":{into}:{plain}")

    def chooses(self, subject: str) -> bool:
        """Return whether a pattern names a subject that did not come below the context of the destination already."""
        return not is_copy_below(self.into, subject) and any(_matches(pattern, subject) for pattern in self.patterns)

    def _home(self, context: str) -> str:
        return DEFAULT_CONTEXT if self.is_flat else _joined(self.into, context)

    def _reference(self, reference: Reference, context: str) -> Reference:
        """Return a reference of a schema in a context as it reads at the destination."""
        if self._keeps_names:
            return reference
        target = self.renamed(qualified(reference.subject, context))
        home = self._home(context)
        if context_of(target) == home:
            return replace(reference, subject=target.removeprefix(f":{home}:"))
        return replace(reference, subject=target if target.startswith(":.") else f":.:{target}")


def choice_of(exporter: ExporterValue, auto: str) -> Choice:
    """Return the choice of an exporter.

    Args:
        exporter: the exporter.
        auto: the context of the type AUTO.
    """
    into = {AUTO: auto, CUSTOM: context_name(exporter.context)}.get(exporter.context_type, DEFAULT_CONTEXT)
    is_flat = exporter.context_type == DEFAULT
    return Choice(exporter.subjects or (EVERY_SUBJECT,), into, exporter.subject_format or SUBJECT, is_flat)


def _joined(into: str, context: str) -> str:
    if into == DEFAULT_CONTEXT:
        return context
    return into if context == DEFAULT_CONTEXT else f"{into}{context}"


def _matches(pattern: str, subject: str) -> bool:
    if pattern in EVERYWHERE:
        return True
    name = qualified(pattern, DEFAULT_CONTEXT) if not pattern.startswith(":.:") else pattern[3:]
    if name.endswith("*"):
        name = name[:-1]
    elif not (name.startswith(":.") and name.endswith(":")):  # a context alone stands for all of it
        return subject == name
    return context_of(name) == context_of(subject) and subject.startswith(name)
