"""The rights of requests about associations, whose bodies name the subjects."""

from collections.abc import Iterable

from strata.registry.core.decide.association_requests import AssociationRequest, Resource
from strata.registry.core.decide.associations import default_subject
from strata.registry.core.rights.request_access import Access
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.rights.visibility import check_references
from strata.storage.associations import Association
from strata.storage.state import State

__all__ = ["check_associations", "check_change"]


def check_change(access: Access, state: State, request: AssociationRequest) -> None:
    """Check that a request may change what it names, before it is decided.

    Raises:
        RegistryError: 40301 for the first subject that it may not write to, or if the resource is associated with a
            subject that the request may not know of.
    """
    if access.is_unlimited:
        return
    resource = request.resource
    for wanted in request.wanted:
        subject = default_subject(resource, wanted) if wanted.subject is None else wanted.subject
        if wanted.op != "DELETE":
            access.check(Operation.WRITE, ResourceType.SUBJECT, subject)
        if wanted.schema is not None:
            check_references(access, state, subject, wanted.schema.references)
    by_name = state.associations.of_name(resource.name, resource.namespace) if resource.name else []
    by_id = state.associations.of_resource_id(resource.resource_id) if resource.resource_id else []
    operation = Operation.DELETE if any(wanted.op == "DELETE" for wanted in request.wanted) else Operation.WRITE
    check_associations(access, [*by_name, *by_id], operation, resource)


def check_associations(access: Access, found: Iterable[Association], operation: Operation, resource: Resource) -> None:
    """Check that a request may change existing associations of a resource.

    Args:
        access: the rights of the request.
        found: the associations.
        operation: what the request wants to do.
        resource: the resource, which the error names in place of a subject that the request may not know of.

    Raises:
        RegistryError: 40301 if it may not.
    """
    for one in found:
        if not access.describes(one.key.subject):
            raise access.refuse(operation, f":.{resource.namespace}:{resource.name}")
        access.check(operation, ResourceType.SUBJECT, one.key.subject)
