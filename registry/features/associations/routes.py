"""`/associations`: the subjects under which topics keep their schemas.

Clients ask for a topic's associations before they send the first record, and use `topic-value` if the list is empty
(associated subject name strategy).
"""

import time
from collections.abc import Callable, Iterable
from typing import Annotated
from urllib.parse import unquote

from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from strata.compat.limits import Limits
from strata.registry.api.bodies.associations import (
    AssociationAnswer,
    BatchAnswer,
    BatchBody,
    GetBatchBody,
    ResourceAnswer,
    ResourceBody,
    associated,
    batch_answer,
    found_answer,
    named,
    resource_answer,
    select,
)
from strata.registry.api.parameters import AssociationType, Paging, SubjectPath
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.decide.association_requests import TOPIC, AssociationRequest, Resource, check_lifecycle
from strata.registry.core.decide.associations import (
    Settled,
    change_associations,
    change_batch,
    default_subject,
    delete_associations,
)
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.register import Rules
from strata.registry.core.errors import RegistryError
from strata.registry.core.lookup import page
from strata.registry.core.rights.request_access import Access
from strata.registry.core.rights.route_rights import in_body, listed, on_subject
from strata.registry.core.rights.rules import Operation
from strata.registry.core.rights.rules import ResourceType as Kind
from strata.registry.core.rights.visibility import check_references
from strata.registry.core.subject_names import aliased
from strata.registry.http.bodies import Flag, answer, read_body
from strata.registry.http.context_prefix import context_name
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.parameter_marks import Depends, Path, Query
from strata.registry.http.route_facts import ContextForm
from strata.storage.associations import Association
from strata.storage.records import DEFAULT_CONTEXT
from strata.storage.state import State

__all__ = ["Lifecycle", "router"]

router = Router(tag="associations", place=80)


def _decoded(value: object) -> str:
    return unquote(str(value))


ResourceType = Annotated[str, Query(alias="resourceType", description="`topic`")]
Lifecycle = Annotated[str | None, Query(description="STRONG or WEAK")]
ResourceId = Annotated[str, BeforeValidator(_decoded), Path(description="the resource's id, percent-encoded")]
Context = Annotated[str, Query(description="the context of subjects without one")]
DryRun = Annotated[Flag, Query(alias="dryRun", description="check the request without a write")]


async def _listed(
    exchange: ExchangeDep,
    paging: Paging,
    resource_type: ResourceType = TOPIC,
    association_type: AssociationType = [],  # noqa: B006 - FastAPI copies it
    lifecycle: Lifecycle = None,
) -> Callable[[list[Association]], Response]:
    """Return a function that answers with those of some associations that the query selects."""
    check_lifecycle(lifecycle)

    def shown(associations: list[Association]) -> Response:
        seen = [association for association in associations if exchange.access.describes(association.key.subject)]
        chosen = select(seen, resource_type, association_type, lifecycle)
        return answer([associated(association) for association in page(chosen, *paging)])

    return shown


Listed = Annotated[Callable[[list[Association]], Response], Depends(_listed)]
_ON_CHANGE = in_body(Kind.SUBJECT, Operation.WRITE, more="deleting an association needs DELETE")
_CHANGES = (400, 40901, 40903, 40904, 40905, 40907, 40908, 422, 42201, 42205, 42206, 42208, 42209, 42212)


@router.reads(
    "GET",
    "/associations/subjects/{subject}",
    list[AssociationAnswer],
    (404, 42212),
    need=on_subject(Operation.DESCRIBE),
)
async def of_subject(exchange: ExchangeDep, subject: SubjectPath, listed: Listed) -> Response:
    """List the associations of a subject."""
    state = await exchange.fresh()
    return listed(state.associations.of_subject(aliased(state, subject)))


@router.reads(
    "GET",
    "/associations/resources/{resource_namespace}/{resource_name}",
    list[AssociationAnswer],
    (404, 42212),
    need=listed(Operation.DESCRIBE),
)
async def of_name(
    exchange: ExchangeDep,
    resource_namespace: Annotated[str, BeforeValidator(_decoded), Path(description="the Kafka cluster; `-`: any")],
    resource_name: Annotated[str, BeforeValidator(_decoded), Path(description="percent-encoded; `-`: any")],
    listed: Listed,
) -> Response:
    """List the associations of a resource by its name."""
    return listed(named(await exchange.fresh(), resource_name, resource_namespace))


@router.reads(
    "GET",
    "/associations/resources/{resource_id}",
    list[AssociationAnswer],
    (404, 42212),
    need=listed(Operation.DESCRIBE),
)
async def of_resource_id(exchange: ExchangeDep, resource_id: ResourceId, listed: Listed) -> Response:
    """List the associations of a resource by its id."""
    return listed((await exchange.fresh()).associations.of_resource_id(resource_id))


@router.writes(
    "POST",
    "/associations",
    ResourceAnswer,
    _CHANGES,
    body=ResourceBody,
    context=ContextForm.CONTEXT_PARAMETER,
    need=_ON_CHANGE,
)
async def create(
    request: Request, exchange: ExchangeDep, context: Context = DEFAULT_CONTEXT, dry_run: DryRun = False
) -> Response:
    """Associate a resource with subjects; a schema in the request is registered as the subject's first."""
    body = await read_body(request, ResourceBody)
    return await _changed(exchange, body, "CREATE", context, dry_run=dry_run)


@router.writes(
    "PUT",
    "/associations/resources/{resource_id}",
    ResourceAnswer,
    _CHANGES,
    body=ResourceBody,
    context=ContextForm.CONTEXT_PARAMETER,
    need=_ON_CHANGE,
)
async def create_or_update(
    request: Request,
    exchange: ExchangeDep,
    resource_id: ResourceId,
    context: Context = DEFAULT_CONTEXT,
    dry_run: DryRun = False,
) -> Response:
    """Associate a resource with subjects, or change the lifecycle of its associations."""
    body = await read_body(request, ResourceBody)
    if body.resource_id not in (None, "", resource_id):
        raise errors.invalid_association("resourceId", "is not the one of the path")
    body.resource_id = resource_id
    return await _changed(exchange, body, "UPSERT", context, dry_run=dry_run)


@router.writes(
    "DELETE",
    "/associations/resources/{resource_id}",
    None,
    (40908, 42205, 42206),
    status=204,
    need=in_body(Kind.SUBJECT, Operation.DELETE, more="on each subject associated with the resource"),
)
async def delete(
    exchange: ExchangeDep,
    resource_id: ResourceId,
    resource_type: ResourceType = TOPIC,
    association_type: AssociationType = [],  # noqa: B006 - FastAPI copies it
    cascade: Annotated[
        Flag, Query(alias="cascadeLifecycle", description="also delete the subjects of STRONG associations")
    ] = False,
    dry_run: DryRun = False,
) -> Response:
    """Delete the associations of a resource."""
    now = _now()

    def decide(state: State) -> Decision[None]:
        associations = state.associations.of_resource_id(resource_id)
        if not any(exchange.access.describes(association.key.subject) for association in associations):
            return Decision(None)  # as for a resource without associations
        check_associations(exchange.access, associations, Operation.DELETE, Resource("", "", resource_id))
        return delete_associations(
            state, resource_id, resource_type or TOPIC, association_type, now, cascade=cascade, dry_run=dry_run
        )

    await exchange.change(decide)
    return Response(status_code=204)


@router.reads(
    "POST",
    "/associations:batchGet",
    BatchAnswer,
    (400, 422, 42212),
    status=207,
    body=GetBatchBody,
    need=listed(Operation.DESCRIBE, more="schemas need READ"),
)
async def batch_get(
    request: Request,
    exchange: ExchangeDep,
    include_schemas: Annotated[
        Flag, Query(alias="includeSchemas", description="include the latest schema of each subject")
    ] = False,
) -> Response:
    """List the associations of several resources."""
    body = await read_body(request, GetBatchBody)
    for asked in body.requests or ():
        check_lifecycle(asked.lifecycle)
    state = await exchange.fresh()
    results = [
        {
            "result": found_answer(
                asked,
                state,
                include_schemas=include_schemas,
                visible=exchange.describable,
                readable=exchange.readable,
            )
        }
        for asked in body.requests or ()
    ]
    return answer({"results": results}, 207)


@router.writes(
    "POST",
    "/associations:batchMutate",
    BatchAnswer,
    (400, 422, 42201),
    status=207,
    body=BatchBody,
    context=ContextForm.CONTEXT_PARAMETER,
    need=_ON_CHANGE,
)
async def batch_mutate(
    request: Request, exchange: ExchangeDep, context: Context = DEFAULT_CONTEXT, dry_run: DryRun = False
) -> Response:
    """Change the associations of several resources; each resource's changes are made all together or not at all."""
    body = await read_body(request, BatchBody)
    place = context_name(context)
    requests = [asked.request(None, place, exchange.limits, dry_run=dry_run) for asked in body.requests or ()]
    rules, now = Rules(exchange.service.settings.compatibility_level), _now()

    def decide(state: State, limits: Limits) -> Decision[list[Settled | RegistryError]]:
        for request in requests:
            check_change(exchange.access, state, request)
        return change_batch(state, [request.under(limits) for request in requests], rules, now)

    outcomes = await exchange.write(decide)
    return answer(batch_answer(outcomes), 207)


async def _changed(exchange: Exchange, body: ResourceBody, op: str, context: str, *, dry_run: bool) -> Response:
    request = body.request(op, context_name(context), exchange.limits, dry_run=dry_run)
    rules, now = Rules(exchange.service.settings.compatibility_level), _now()

    def decide(state: State, limits: Limits) -> Decision[Settled]:
        check_change(exchange.access, state, request)
        return change_associations(state, request.under(limits), rules, now)

    return answer(resource_answer(await exchange.write(decide)))


def _now() -> int:
    return time.time_ns() // 1_000_000


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
            access.check(Operation.WRITE, Kind.SUBJECT, subject)
        if wanted.schema is not None:
            check_references(access, state, subject, wanted.schema.references)
    by_name = state.associations.of_name(resource.name, resource.namespace) if resource.name else []
    by_id = state.associations.of_resource_id(resource.resource_id) if resource.resource_id else []
    operation = Operation.DELETE if any(wanted.op == "DELETE" for wanted in request.wanted) else Operation.WRITE
    check_associations(access, [*by_name, *by_id], operation, resource)


def check_associations(
    access: Access, associations: Iterable[Association], operation: Operation, resource: Resource
) -> None:
    """Check that a request may change existing associations of a resource.

    Args:
        access: the rights of the request.
        associations: the associations.
        operation: what the request wants to do.
        resource: the resource, which the error names in place of a subject that the request may not know of.

    Raises:
        RegistryError: 40301 if it may not.
    """
    for association in associations:
        if not access.describes(association.key.subject):
            raise access.refuse(operation, f":.{resource.namespace}:{resource.name}")
        access.check(operation, Kind.SUBJECT, association.key.subject)
