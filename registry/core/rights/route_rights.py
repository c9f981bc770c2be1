"""What each route needs: the rights that `api/router.py` makes every route declare.

One declaration serves the step that enforces it (`http/pipeline.py`), the OpenAPI document, the table in
docs/access.md and the tests.
"""

from dataclasses import dataclass
from enum import Enum

from strata.registry.core.rights.rules import Operation, ResourceType

__all__ = [
    "OPEN",
    "How",
    "Need",
    "Right",
    "by_id",
    "in_body",
    "listed",
    "on_cluster",
    "on_dek",
    "on_kek",
    "on_registry",
    "on_subject",
    "one_of",
    "referred_to",
]


class How(Enum):
    """How a right is checked."""

    OPEN = "no credentials"
    NAMED = "on what the path names, before the body is read"
    ONE_OF = "one of the rights on what the path names, before the body is read"
    REFERRED_TO = "on what the path names, or on a version that refers to it"
    LISTED = "the answer holds only what the right covers"
    BY_ID = "on at least one subject that has the schema, deleted versions included"
    IN_BODY = "on what the body names"


@dataclass(frozen=True, slots=True)
class Right:
    """An operation on resources of a type."""

    resource_type: ResourceType
    operation: Operation

    def __str__(self) -> str:
        """Return the right as the documents show it."""
        return f"{self.operation} {self.resource_type.value.lower()}"


@dataclass(frozen=True, slots=True)
class Need:
    """What a route needs.

    Attributes:
        how: how the rights are checked.
        rights: the rights; all of them, unless `how` says otherwise.
        more: what else the route needs, for the documents.
    """

    how: How
    rights: tuple[Right, ...] = ()
    more: str = ""

    @property
    def text(self) -> str:
        """The need as the documents show it."""
        joint = " or " if self.how is How.ONE_OF else " and "
        rights = joint.join(map(str, self.rights))
        stated = rights if self.how is How.NAMED else f"{rights} ({self.how.value})" if rights else self.how.value
        return f"{stated}; {self.more}" if self.more else stated


OPEN = Need(How.OPEN)
"""For routes that say nothing about what the registry holds."""


def on_subject(*operations: Operation, more: str = "") -> Need:
    """Return the need of a route whose path names a subject; the registry itself is one of the scopes in its place."""
    return Need(How.NAMED, tuple(Right(ResourceType.SUBJECT, operation) for operation in operations), more)


def one_of(*operations: Operation, more: str = "") -> Need:
    """Return the need of a route whose path names a subject, on which one of some operations suffices."""
    return Need(How.ONE_OF, tuple(Right(ResourceType.SUBJECT, operation) for operation in operations), more)


def referred_to(operation: Operation) -> Need:
    """Return the need of a route whose path names a version, which may be read through a version that refers to it."""
    return Need(How.REFERRED_TO, (Right(ResourceType.SUBJECT, operation),))


def on_kek(operation: Operation, more: str = "") -> Need:
    """Return the need of a route whose path names a key encryption key."""
    return Need(How.NAMED, (Right(ResourceType.KEK, operation),), more)


def on_dek(operation: Operation) -> Need:
    """Return the need of a route whose path names a key encryption key and a subject."""
    return Need(How.NAMED, (Right(ResourceType.KEK, operation), Right(ResourceType.SUBJECT, operation)))


def on_registry(operation: Operation) -> Need:
    """Return the need of a route about the registry as a whole."""
    return Need(How.NAMED, (Right(ResourceType.REGISTRY, operation),))


def on_cluster(operation: Operation) -> Need:
    """Return the need of a route about the log and the rules in it."""
    return Need(How.NAMED, (Right(ResourceType.CLUSTER, operation),))


def listed(operation: Operation, resource_type: ResourceType = ResourceType.SUBJECT, more: str = "") -> Need:
    """Return the need of a route whose answer is filtered."""
    return Need(How.LISTED, (Right(resource_type, operation),), more)


def by_id(operation: Operation, more: str = "") -> Need:
    """Return the need of a route that names a schema by its id or GUID."""
    return Need(How.BY_ID, (Right(ResourceType.SUBJECT, operation),), more)


def in_body(resource_type: ResourceType, operation: Operation, more: str = "") -> Need:
    """Return the need of a route whose body names the resources."""
    return Need(How.IN_BODY, (Right(resource_type, operation),), more)
