"""Association requests, and the checks that do not depend on what the registry holds."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.registry.core import errors
from strata.registry.core.schema_request import SchemaRequest

__all__ = ["TOPIC", "AssociationRequest", "Resource", "Wanted", "check_lifecycle", "check_request"]

TOPIC = "topic"
_TYPES = ("key", "value")
_LIFECYCLES = ("STRONG", "WEAK")
_OPERATIONS = ("CREATE", "UPSERT", "DELETE")
_MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource associated with subjects: a topic, with a name in a namespace (the Kafka cluster) and an id."""

    name: str
    namespace: str
    resource_id: str
    resource_type: str = TOPIC


@dataclass(frozen=True, slots=True)
class Wanted:
    """One change of an association; None leaves a property open.

    Attributes:
        op: CREATE, UPSERT or DELETE.
        association_type: key or value.
        subject: the subject; by default the resource's own.
        lifecycle: STRONG or WEAK.
        frozen: whether the association can no longer be changed.
        schema: a schema to register with it.
        normalize: whether to normalize the schema.
        cascade: whether DELETE also hard-deletes the subject of a STRONG association.
        guid: the GUID of the association if it is new.
    """

    op: str
    association_type: str = "value"
    subject: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: SchemaRequest | None = None
    normalize: bool = False
    cascade: bool = False
    guid: str = ""


@dataclass(frozen=True, slots=True)
class AssociationRequest:
    """The changes of one resource's associations, which are made all together or not at all."""

    resource: Resource
    wanted: Sequence[Wanted]
    dry_run: bool = False
    limits: Limits = DEFAULT_LIMITS

    def under(self, limits: Limits) -> "AssociationRequest":
        """Return the request with other limits, which all of its schemas share."""
        wanted = [
            replace(association, schema=association.schema.under(limits)) if association.schema else association
            for association in self.wanted
        ]
        return replace(self, wanted=wanted, limits=limits)


def check_lifecycle(lifecycle: str | None) -> None:
    """Reject an unknown lifecycle.

    Raises:
        RegistryError: 42212 if it is neither STRONG, WEAK nor None.
    """
    if lifecycle is not None and lifecycle not in _LIFECYCLES:
        raise errors.invalid_association("lifecycle", f"must be one of {', '.join(_LIFECYCLES)}")


def check_request(request: AssociationRequest) -> None:
    """Reject a request that is invalid in every State of the registry.

    Raises:
        RegistryError: 42212 if a property is missing or invalid, or properties contradict each other.
    """
    resource = request.resource
    _check_name("resourceName", resource.name)
    _check_name("resourceNamespace", resource.namespace)
    if not resource.resource_id and not request.dry_run:
        raise errors.invalid_association("resourceId", "cannot be null or empty")
    if resource.resource_type != TOPIC:
        raise errors.invalid_association("resourceType", f"must be '{TOPIC}'")
    if not request.wanted:
        raise errors.invalid_association("associations", "cannot be null or empty")
    for wanted in request.wanted:
        _check_wanted(wanted)
    types = [wanted.association_type for wanted in request.wanted]
    for repeated in (type_ for type_ in types if types.count(type_) > 1):
        raise errors.invalid_association(
            "associationType", f"may only appear once per request, but '{repeated}' appears more than once"
        )
    if len({wanted.frozen for wanted in request.wanted if wanted.frozen is not None}) > 1:
        raise errors.invalid_association(
            "frozen", "all associations for a resource must be consistently frozen or non-frozen"
        )


def _check_name(name: str, value: str) -> None:
    if not value:
        raise errors.invalid_association(name, "cannot be null or empty")
    if len(value) > _MAX_NAME:
        raise errors.invalid_association(name, f"exceeds max length of {_MAX_NAME}")
    # A colon would end the context in the default subject.
    bad = next((c for c in value if c == ":" or unicodedata.category(c)[0] == "C"), None)
    if bad:
        raise errors.invalid_association(name, f"illegal character {bad!r}")


def _check_wanted(wanted: Wanted) -> None:
    if wanted.op not in _OPERATIONS:
        raise errors.invalid_association("opType", f"must be one of {', '.join(_OPERATIONS)}")
    if wanted.association_type not in _TYPES:
        raise errors.invalid_association("associationType", "must be either 'key' or 'value'")
    check_lifecycle(wanted.lifecycle)
    if wanted.subject is not None and not wanted.subject:
        raise errors.invalid_association("subject", "must not be empty")
    if wanted.lifecycle == "WEAK" and wanted.schema:
        raise errors.invalid_association("lifecycle", "cannot be WEAK when schema is provided")
    if wanted.lifecycle == "WEAK" and wanted.frozen:
        raise errors.invalid_association("frozen", "association with lifecycle of WEAK cannot be frozen")
    if wanted.op == "CREATE" and wanted.schema and wanted.frozen is False:
        raise errors.invalid_association("frozen", "cannot be false when a schema is provided")
