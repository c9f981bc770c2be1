"""Which part of a source is copied, and where to: a choice of subjects and contexts, and a context that takes it all.

Rules of this file: pure.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

from strata.registry.core.decide.standby import is_within
from strata.registry.core.subject_names import GLOBAL_SCOPE, is_scope_name
from strata.registry.transfer.contents import Contents, contents_of
from strata.registry.transfer.selection import referred_to
from strata.storage.records import (
    DEFAULT_CONTEXT,
    AclKey,
    AssociationKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DekKey,
    HighWaterKey,
    KekKey,
    Key,
    LoweredKey,
    ModeKey,
    Reference,
    SchemaKey,
    SchemaValue,
    Subject,
    Value,
    context_of,
    qualified,
)
from strata.storage.state import State

__all__ = ["Scope"]

_ALIASES = ("alias", "aliasForDeks")


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a source that is copied, and where to.

    Attributes:
        subjects: names of chosen subjects; a trailing `*` matches any rest.
        contexts: chosen contexts. Without subjects and contexts, everything is chosen.
        into: the context that takes the place of the source's default context; the source's context `.a` becomes
            `.INTO.a`. The default context copies every name as it is.
    """

    subjects: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    into: str = DEFAULT_CONTEXT

    @property
    def is_everything(self) -> bool:
        """Whether the copy is a whole registry under the same names."""
        return not self.subjects and not self.contexts and self.into == DEFAULT_CONTEXT

    def wanted(self, source: State, subjects: Collection[Subject] | None = None) -> Contents:
        """Return what the copy of a source must hold.

        Rules of access belong to a whole registry, so only a copy of everything has them.

        Args:
            source: the State of the source.
            subjects: for a copy of everything, the subjects whose versions to return; None for all.
        """
        contents: Contents = contents_of(source, subjects)
        if self.subjects or self.contexts:
            contents = self._chosen(contents, source)
        if self.into != DEFAULT_CONTEXT:
            contents = _moved(contents, self.into)
        if not self.is_everything:
            contents = {key: value for key, value in contents.items() if not isinstance(key, AclKey)}
        return contents

    def times(self, source: State) -> Callable[[Key], int | None]:
        """Return what says when a version of the copy was written at the source, in milliseconds since the epoch.

        Args:
            source: the State of the source.
        """

        @cache
        def names() -> Mapping[Subject, Subject]:
            """Return the names at the source by those of the copy."""
            return {_subject(name, self.into): name for name in source.subjects}

        def time_of(key: Key) -> int | None:
            if not isinstance(key, SchemaKey):
                return None
            name = key.subject if self.into == DEFAULT_CONTEXT else names().get(key.subject, key.subject)
            entry = source.version(name, key.version)
            return (entry and entry.timestamp) or None

        return time_of

    def context(self, name: str) -> str:
        """Return the context of the copy that a context of the source becomes."""
        return name if self.into == DEFAULT_CONTEXT else _context(name, self.into)

    def covers(self, key: Key) -> bool:
        """Return whether a key belongs to the copy, so that it goes when the source does not have it.

        Key encryption keys have no context, so a copy into a context removes none.
        """
        if self.into == DEFAULT_CONTEXT:
            return self.is_everything or not isinstance(key, AclKey)
        match key:
            case ContextKey(context) | HighWaterKey(context) | LoweredKey(context):
                return is_within(context, self.into)
            case SchemaKey() | DekKey() | AssociationKey():
                return is_within(context_of(key.subject), self.into)
            case ConfigKey(subject) | ModeKey(subject):
                return subject is not None and is_within(context_of(subject), self.into)
            case _:
                return False

    def _chosen(self, contents: Contents, source: State) -> Contents:
        subjects: set[str] = {name for name in source.subjects if self._chooses(name)}
        subjects |= referred_to(subjects, source)
        contexts = {context_of(name) for name in subjects} | set(self.contexts)
        keks = {key.kek for key in contents if isinstance(key, DekKey) and key.subject in subjects}
        return {key: value for key, value in contents.items() if _belongs(key, subjects, contexts, keks)}

    def _chooses(self, subject: str) -> bool:
        if context_of(subject) in self.contexts:
            return True
        return any(subject.startswith(name[:-1]) if name.endswith("*") else subject == name for name in self.subjects)


def _belongs(key: Key, subjects: Collection[str], contexts: Collection[str], keks: Collection[str]) -> bool:
    match key:
        case SchemaKey() | AssociationKey() | DekKey():
            return key.subject in subjects
        case ConfigKey(subject) | ModeKey(subject):
            if subject is None or subject == GLOBAL_SCOPE or subject in subjects:
                return True
            return context_of(subject) in contexts and is_scope_name(subject)
        case HighWaterKey(context) | ContextKey(context) | LoweredKey(context):
            return context in contexts
        case KekKey(name):
            return name in keks
        case _:
            return False


def _moved(contents: Contents, into: str) -> Contents:
    """Return contents under the names that they have below a context."""
    moved = {_key(key, into): _value(key, value, into) for key, value in contents.items()}
    for key_class, key in ((ConfigKey, ConfigKey(Subject(GLOBAL_SCOPE))), (ModeKey, ModeKey(Subject(GLOBAL_SCOPE)))):
        # What is set for all contexts of the source: each that has no setting of its own gets it.
        if (value := contents.get(key)) is not None:
            moved.pop(_key(key, into), None)
            for name in {context_of(moved_key.subject) for moved_key in moved if isinstance(moved_key, SchemaKey)}:
                moved.setdefault(key_class(Subject(f":{name}:")), _value(key, value, into))
    return moved


def _subject(name: str | None, into: str) -> Subject:
    """Return the name of a subject or of a scope of settings below a context."""
    context = context_of(name or "")
    if context == DEFAULT_CONTEXT:
        return Subject(f":{into}:{name or ''}")
    return Subject(f":{into}{context}:{(name or '').removeprefix(f':{context}:')}")


def _context(name: str, into: str) -> str:
    return into if name == DEFAULT_CONTEXT else f"{into}{name}"


def _key(key: Key, into: str) -> Key:
    match key:
        case SchemaKey() | DekKey() | AssociationKey() | ConfigKey() | ModeKey():
            return replace(key, subject=_subject(key.subject, into))
        case ContextKey() | HighWaterKey() | LoweredKey():
            return replace(key, context=_context(key.context, into))
        case _:
            return key


def _value(key: Key, value: Value, into: str) -> Value:
    match value:
        case SchemaValue():
            references = tuple(_reference(reference, into) for reference in value.references)
            return value._replace(subject=_subject(value.subject, into), references=references)
        case ConfigValue():
            aliases = {name: str(alias) for name in _ALIASES if (alias := value.fields.get(name))}
            home = context_of(getattr(key, "subject", None) or "")
            moved = {name: _subject(qualified(alias, home), into) for name, alias in aliases.items()}
            return ConfigValue({**value.fields, **moved})
        case str() if isinstance(key, ContextKey):
            return _context(value, into)
        case _:
            return value


def _reference(reference: Reference, into: str) -> Reference:
    """Return a reference as it reads below a context; a name without a context belongs to its schema's and stays."""
    if not reference.subject.startswith(":."):
        return reference
    return replace(reference, subject=_subject(qualified(reference.subject, DEFAULT_CONTEXT), into))
