"""What the principal of one request may do. Layers and routes ask it, and it remembers what it refused, for the audit.

Rights are decided three times, each for a reason: by the path, before the body is read and before anything is looked
up; by the names that the State leads to (an alias, another context, a reference); and, for a write, by the records that
would be written, with the rules of the State that they are decided on. So no write lands after its right was revoked.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import NamedTuple

from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.core.rights.principal import ANONYMOUS, Principal, RejectedCredentials
from strata.registry.core.rights.rights import Rights, View
from strata.registry.core.rights.route_rights import How, Need
from strata.registry.core.rights.rules import Operation, ResourceType, Rule
from strata.registry.core.subject_names import GLOBAL_SCOPE, subject_name
from strata.storage.log import Record
from strata.storage.record_json import decode_key, decode_value
from strata.storage.records import (
    AclKey,
    AssociationKey,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DekKey,
    DekValue,
    DeleteSubjectKey,
    ExporterKey,
    ExportKey,
    KekKey,
    KekValue,
    LoweredKey,
    ModeKey,
    SchemaKey,
    SchemaValue,
    Value,
)
from strata.storage.state import State

__all__ = ["EVERYTHING", "UNLIMITED", "Access", "AskedBy", "Refusal", "Signing"]

_WORDS = {
    Operation.DESCRIBE_CONFIGS: "ReadCompatibility",
    Operation.ALTER_CONFIGS: "WriteCompatibility",
}
_KINDS = {ResourceType.KEK: "KEK"}
_RightsOf = Callable[[State], Rights]
AskedBy = tuple[str | None, tuple[str, ...], str, str | None]
"""A principal (user, groups, mechanism) and the address of its client."""
_Needed = tuple[tuple[Operation, ...], ResourceType, str]
_WRITE, _DELETE, _ALTER = (Operation.WRITE,), (Operation.DELETE,), (Operation.ALTER_CONFIGS,)
_SUBJECT, _KEK, _REGISTRY = ResourceType.SUBJECT, ResourceType.KEK, ResourceType.REGISTRY


class Refusal(NamedTuple):
    """What was refused, and the rule that denied it; None if no rule allowed it."""

    operation: Operation
    resource_type: ResourceType
    name: str
    rule: Rule | None = None


class Signing(NamedTuple):
    """What a person did who signed in or out, or tried to.

    Attributes:
        event: `sign_in`, `sign_out` or `auth_failure`.
        who: the person; `ANONYMOUS` after a failure.
        mechanism: how the person tried to sign in; empty for a success.
        name: the name that the person gave with a password that is wrong.
    """

    event: str
    who: Principal = ANONYMOUS
    mechanism: str = ""
    name: str | None = None


class Access:
    """The rights of one request.

    Attributes:
        principal: who asks.
        address: the client's address; None if it is unknown.
        error: why the credentials were rejected; None if they were not.
        rejected: the credentials that were rejected; None if they were not.
        refusal: what was refused last; None if nothing was.
        allowed_by: the rules that allow the records that were checked last; none for those who may do everything.
        body_digest: the digest that the body of a write must have that another node has signed; None for others.
        number: a number that this request shares only with requests of the same rights; caches use it in their keys.
        is_off: whether the request may do everything because access control is off.
        is_unlimited: whether the request may do everything.

    Args:
        view: the rights of the principal.
        rights: the rights of all principals by a State, for `renew`; None if they never change.
        challenge: returns the error for an anonymous client that must say who it is.
    """

    __slots__ = (
        "_challenge",
        "_kek",
        "_need",
        "_rights",
        "_subject",
        "_view",
        "address",
        "allowed_by",
        "body_digest",
        "error",
        "is_off",
        "is_unlimited",
        "number",
        "principal",
        "refusal",
        "rejected",
    )

    def __init__(
        self,
        principal: Principal,
        view: View,
        *,
        address: str | None = None,
        error: RegistryError | None = None,
        rejected: RejectedCredentials | None = None,
        rights: _RightsOf | None = None,
        challenge: Callable[[], RegistryError] | None = None,
    ) -> None:
        self.principal, self.address, self.error, self.rejected = principal, address, error, rejected
        self.refusal: Refusal | None = None
        self.allowed_by: tuple[Rule, ...] = ()
        self.body_digest: str | None = None
        self._rights, self._challenge = rights, challenge
        self._see(view)
        self._need: Need | None = None
        self._subject = self._kek = ""

    def _see(self, view: View) -> None:
        self._view, self.number = view, view.number
        self.is_off, self.is_unlimited = view is EVERYTHING, view.superuser

    @property
    def asked_by(self) -> AskedBy:
        """The principal and its address as plain values, for another process."""
        who = self.principal
        return who.user, tuple(sorted(who.groups)), who.mechanism, self.address

    # --- the route

    def enter(self, need: Need, subject: str = "", kek: str = "") -> None:
        """Check what a route needs as far as its path shows.

        Args:
            need: what the route needs.
            subject: the subject in the path; empty if there is none.
            kek: the key encryption key in the path; empty if there is none.

        Raises:
            RegistryError: if the credentials were rejected, 401 if an anonymous client must say who it is, or 40301.
        """
        if self.error is not None:
            raise self.error
        self._need, self._subject, self._kek = need, subject, kek
        if self._view.superuser:
            return
        if self.principal.user is None and self._view.is_empty and self._challenge is not None:
            raise self._challenge()
        if need.how is How.NAMED:
            for right in need.rights:
                self.check(
                    right.operation, right.resource_type, kek if right.resource_type is ResourceType.KEK else subject
                )
        elif need.how is How.ONE_OF:
            self.check_one_of([right.operation for right in need.rights], ResourceType.SUBJECT, subject)

    def renew(self, state: State) -> None:
        """Decide again what `enter` decided, if the rules of a newer State differ.

        Raises:
            RegistryError: 40301 if the right was revoked.
        """
        if self._rights is None:
            return
        view = self._rights(state).view(self.principal, self.address)
        if view is not self._view:
            self._see(view)
            if self._need is not None:
                self.enter(self._need, self._subject, self._kek)

    async def reconsider(self, check: Callable[[], None], newest: Callable[[], Awaitable[State]]) -> None:
        """Carry out a check; if it refuses, read the log and check again: another node may have granted the right.

        Args:
            check: raises if a right is missing.
            newest: returns a State with every write acknowledged before this call.

        Raises:
            RegistryError: the refusal, or 50301 if the log cannot be read.
        """
        try:
            check()
        except RegistryError:
            # What anyone can send does not make the node read its log.
            if self.error is not None or self.principal.user is None:
                raise
            number = self.number
            self.renew(await newest())
            if self.number == number:
                raise
            check()

    def check_target(self, target: str) -> None:
        """Check the need of the route for the subject that its path leads to by an alias.

        Raises:
            RegistryError: 40301, with the name in the path: it says nothing about the target.
        """
        need = self._need
        if need is None or self._view.superuser:
            return
        for right in need.rights if need.how in (How.NAMED, How.ONE_OF) else ():
            if right.resource_type is ResourceType.SUBJECT and not self.may(
                right.operation, right.resource_type, target
            ):
                raise self._refused(right.operation, right.resource_type, self._subject)

    def covers(self, name: str) -> bool:
        """Return whether the rights that the route needs on a subject cover a name."""
        need = self._need
        if need is None or self._view.superuser:
            return True
        about = [right.operation for right in need.rights if right.resource_type is ResourceType.SUBJECT]
        some = any if need.how is How.ONE_OF else all
        return some(self.may(operation, ResourceType.SUBJECT, name) for operation in about)

    def for_target(self, operation: Operation, subject: str) -> Callable[[str], None]:
        """Return a check, as `check_target`, for the target of an alias that the body names.

        Args:
            operation: what the request wants to do with the target.
            subject: the name in the body.
        """

        def check(target: str) -> None:
            if not self.may(operation, ResourceType.SUBJECT, target):
                raise self.refuse(operation, subject)

        return check

    # --- questions

    def may(self, operation: Operation, resource_type: ResourceType, name: str = "") -> bool:
        """Return whether the request may do something."""
        return self._view.decide(operation, *_meant(resource_type, name)).allowed

    def denies(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Return whether a rule denies the request something, however it asks."""
        verdict = self._view.decide(operation, *_meant(resource_type, name))
        return not verdict.allowed and verdict.rule is not None

    def reads(self, subject: str) -> bool:
        """Return whether the request may read a subject."""
        return self._view.decide(Operation.READ, ResourceType.SUBJECT, subject).allowed

    def describes(self, subject: str) -> bool:
        """Return whether the request may know that a subject exists."""
        return self._view.decide(Operation.DESCRIBE, ResourceType.SUBJECT, subject).allowed

    def may_all(self, operation: Operation, resource_type: ResourceType, prefix: str = "") -> bool:
        """Return whether the request may do something with everything whose name begins with a prefix."""
        return self._view.allows_all(operation, resource_type, prefix)

    def may_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether a rule allows the request something with at least some names, unless others deny those."""
        return self._view.allows_some(operation, resource_type)

    # --- checks

    def check(self, operation: Operation, resource_type: ResourceType, name: str = "") -> None:
        """Check that the request may do something.

        Raises:
            RegistryError: 40301, or 401 if an anonymous client must say who it is.
        """
        self.check_one_of((operation,), resource_type, name)

    def check_one_of(self, operations: Iterable[Operation], resource_type: ResourceType, name: str = "") -> None:
        """Check that the request may do one of some things; the error names the first of them.

        Raises:
            RegistryError: 40301, or 401 if an anonymous client must say who it is.
        """
        first: tuple[Operation, Rule | None] | None = None
        for operation in operations:
            verdict = self._view.decide(operation, *_meant(resource_type, name))
            if verdict.allowed:
                return
            first = first or (operation, verdict.rule)
        if first is not None:
            raise self._refused(first[0], resource_type, name, first[1])

    def check_records(self, records: Iterable[Record]) -> None:
        """Check that the request may write some records.

        Raises:
            RegistryError: 40301 for the first that it may not; it names no subject that the request may not know.
        """
        if self._view.superuser:
            return
        used: dict[Rule, None] = {}
        for record in records:
            for operations, resource_type, name in rights_of(record):
                verdicts = (self._view.decide(operation, *_meant(resource_type, name)) for operation in operations)
                allowed = next((verdict for verdict in verdicts if verdict.allowed), None)
                if allowed is None:
                    known = self.may(Operation.DESCRIBE, resource_type, name)
                    raise self._refused(operations[0], resource_type, name if known else self._subject)
                if allowed.rule is not None:
                    used[allowed.rule] = None
        self.allowed_by = tuple(used)

    def refuse_schema(self, identity: object) -> RegistryError:
        """Return the error for a schema that the request may not read, whether or not it exists.

        Args:
            identity: its id or GUID.
        """
        self.refusal = Refusal(Operation.READ, ResourceType.SUBJECT, "")
        return self._denial(Operation.READ, f"Schema: {identity}")

    def refuse_id(self, schema_id: int, farthest: int, last: int) -> RegistryError:
        """Return the error for an id that is too far above the highest one of its context to be chosen.

        Args:
            schema_id: the id.
            farthest: how far above the highest it might be.
            last: the last id that might be chosen.
        """
        self.refusal = Refusal(Operation.ALTER_CONFIGS, ResourceType.REGISTRY, "")
        return errors.far_id(schema_id, farthest, last)

    def refuse(self, operation: Operation, subject: str) -> RegistryError:
        """Return the error for an operation on a subject that the request may not do, whether or not it exists."""
        return self._refused(operation, ResourceType.SUBJECT, subject)

    def _refused(
        self, operation: Operation, resource_type: ResourceType, name: str, rule: Rule | None = None
    ) -> RegistryError:
        resource_type, name = _meant(resource_type, name)
        self.refusal = Refusal(operation, resource_type, name, rule)
        shown = _KINDS.get(resource_type, resource_type.value.capitalize())
        return self._denial(operation, f"{shown}: {name}" if name else shown)

    def _denial(self, operation: Operation, resource: str) -> RegistryError:
        if self.principal.user is None and self._challenge is not None:
            return self._challenge()
        return errors.access_denied(_WORDS.get(operation, operation.value.capitalize()), resource)


def _meant(resource_type: ResourceType, name: str) -> tuple[ResourceType, str]:
    """Return the resource that a name in the place of a subject means: the registry itself is one of the scopes."""
    if resource_type is not ResourceType.SUBJECT:
        return resource_type, name
    subject = subject_name(name)
    return (ResourceType.REGISTRY, "") if subject in ("", GLOBAL_SCOPE) else (resource_type, subject)


EVERYTHING = View((), superuser=True)
"""The right to do everything."""

UNLIMITED = Access(ANONYMOUS, EVERYTHING)
"""The rights of every request while access control is off."""


def rights_of(record: Record) -> Iterator[_Needed]:
    """Yield what a record needs: operations of which one suffices, and the type and name of the resource.

    A record that undoes another needs less than it would alone: deleting a subject also takes away its configuration.
    """
    key = decode_key(record.key)
    value = decode_value(key, record.value)
    match key:
        case SchemaKey(subject, _):
            yield _DELETE if _is_gone(value) else _WRITE, _SUBJECT, subject
        case DeleteSubjectKey(subject) | ClearSubjectKey(subject):
            yield _DELETE, _SUBJECT, subject or ""
        case ConfigKey(subject) | ModeKey(subject):
            yield (*_ALTER, *_DELETE) if value is None else _ALTER, _SUBJECT, subject or ""
        case AssociationKey():
            yield _DELETE if value is None else _WRITE, _SUBJECT, key.subject
        case KekKey(name):
            yield _of_key(value), _KEK, name
        case DekKey():
            yield _of_key(value), _KEK, key.kek
            yield _of_key(value), _SUBJECT, key.subject
        case ContextKey() if value is None:
            yield _DELETE, _REGISTRY, ""
        case AclKey() | ExporterKey() | ExportKey() | LoweredKey():
            yield (Operation.ALTER,), ResourceType.CLUSTER, ""


def _of_key(value: Value) -> tuple[Operation, ...]:
    """Return the operations for a key: those who delete it may also undelete it."""
    return _DELETE if _is_gone(value) else (*_WRITE, *_DELETE)


def _is_gone(value: Value) -> bool:
    return value is None or (isinstance(value, SchemaValue | KekValue | DekValue) and value.deleted)
