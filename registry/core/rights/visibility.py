"""What of a State the principal of a request may see, where the name of a subject alone does not say it. Pure.

Who may read a version may read what it refers to, directly or not: without its references a schema cannot be parsed. A
rule that denies reading the referenced subject still wins.
"""

from collections.abc import Sequence

from strata.registry.core import errors
from strata.registry.core.rights.request_access import Access
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.storage.records import Reference, Subject, Version, context_of, qualified
from strata.storage.state import IdEntry, SchemaVersion, State

__all__ = ["check_chosen_id", "check_references", "check_version", "is_readable", "readable_use", "unknown_schema"]

_LATEST = -1
_FARTHEST, _LAST_NEAR_ID = 1_000_000, 2_000_000_000
"""How far above the highest id the next one may be chosen, and the last id so chosen: the rest is left for others."""
_MOST_REFERRERS, _MOST_USES = 10_000, 100
"""How many versions that refer to one, and how many uses of an id, are searched; so a refusal costs milliseconds."""


def is_readable(access: Access, state: State, subject: str, version: int) -> bool:
    """Return whether a version, deleted or not, may be read: its subject, or a version that refers to it."""
    if access.reads(subject):
        return True
    if access.denies(Operation.READ, ResourceType.SUBJECT, subject):
        return False
    waiting = [(Subject(subject), Version(version))]
    seen = set(waiting)
    while waiting and len(seen) < _MOST_REFERRERS:
        for referrer in state.referrers.get(waiting.pop(), ()):
            if access.reads(referrer[0]):
                return True
            if referrer not in seen:
                seen.add(referrer)
                waiting.append(referrer)
    return False


def check_version(access: Access, state: State, subject: str, version: int, named: str | None = None) -> None:
    """Check that a version may be read; -1 means the latest.

    Args:
        access: the rights of the request.
        state: the State to search.
        subject: the subject.
        version: the version.
        named: the name by which the request knows the subject, for the error; None if it is the same.

    Raises:
        RegistryError: 40301 if not, whether or not it exists.
    """
    if access.is_unlimited or access.reads(subject):
        return
    latest = state.latest(subject) if version == _LATEST else None
    if not is_readable(access, state, subject, latest.version if latest else version):
        raise access.refuse(Operation.READ, subject if named is None else named)


def check_references(access: Access, state: State, subject: str, references: Sequence[Reference]) -> None:
    """Check that everything that a new schema refers to may be read.

    Args:
        access: the rights of the request.
        state: the State to search.
        subject: the subject of the schema, whose context plain references belong to.
        references: the references.

    Raises:
        RegistryError: 40301 for the first that may not, whether or not it exists.
    """
    if access.is_unlimited:
        return
    for reference in references:
        check_version(access, state, qualified(reference.subject, context_of(subject)), reference.version)


def check_chosen_id(access: Access, state: State, subject: str, schema_id: int) -> None:
    """Check that a request may choose an id for a schema that it imports.

    The users of a context share its ids. So users without a right on the whole context choose only ids above the
    highest one, but not far above it, and ids of what they may read. Other ids are refused alike, whether or not they
    exist.

    Args:
        access: the rights of the request.
        state: the State to decide on.
        subject: the subject.
        schema_id: the id.

    Raises:
        RegistryError: 40301 for an id that is far above the highest; 42205, as for one that has another schema, for
            other ids that it may not choose.
    """
    context = context_of(subject)
    scope, highest = f":{context}:", state.context(context).high_water
    if access.may(Operation.ALTER_CONFIGS, ResourceType.REGISTRY) or access.may_all(
        Operation.ALTER_CONFIGS, ResourceType.SUBJECT, scope
    ):
        return
    if schema_id > min(highest + _FARTHEST, _LAST_NEAR_ID):
        raise access.refuse_id(schema_id, _FARTHEST, _LAST_NEAR_ID)
    if schema_id > highest or access.may_all(Operation.READ, ResourceType.SUBJECT, scope):
        return
    held = state.schema(context, schema_id)
    if held is None or readable_use(access, state, held, None) is None:
        raise errors.id_overwrite(schema_id, subject)


def readable_use(access: Access, state: State, entry: IdEntry, first: SchemaVersion | None) -> SchemaVersion | None:
    """Return a version that uses an id and may be read; None if there is none.

    Args:
        access: the rights of the request.
        state: the State that holds the id.
        entry: the schema of the id and its uses.
        first: the version to return if it may be read.
    """
    if first is not None and (access.is_unlimited or is_readable(access, state, first.subject, first.version)):
        return first
    readable = (place for place in entry.used_by if access.reads(place[0]))
    through = (place for place in entry.used_by[:_MOST_USES] if is_readable(access, state, *place))
    place = next(readable, None) or next(through, None)
    return state.version(*place) if place else None


def unknown_schema(access: Access, identity: object, context: str | None = None) -> errors.RegistryError:
    """Return the error for a schema that does not exist, or of which nothing may be read.

    Only a request that may read every subject of the context learns which of both it is.

    Args:
        access: the rights of the request.
        identity: the id or GUID.
        context: the context; None for all.
    """
    if access.may_all(Operation.READ, ResourceType.SUBJECT, "" if context is None else f":{context}:"):
        return errors.schema_not_found(identity)
    return access.refuse_schema(identity)
