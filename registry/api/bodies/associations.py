"""The JSON of associations: models that parse bodies and describe the API, and functions that build answers."""

from uuid import uuid4

from pydantic import Field

from strata.compat.limits import Limits
from strata.registry.api.bodies.contracts import Answer, Body
from strata.registry.api.bodies.failures import ErrorAnswer
from strata.registry.api.bodies.schemas import SchemaAnswer, SchemaBody, registered, schema_version
from strata.registry.core.decide.association_requests import TOPIC, AssociationRequest, Resource, Wanted
from strata.registry.core.decide.associations import Settled
from strata.registry.core.errors import RegistryError
from strata.registry.core.lookup import Visible
from strata.registry.http.bodies import Truth, Word
from strata.storage.associations import Association
from strata.storage.record_json import properties_of
from strata.storage.records import qualified
from strata.storage.state import State

__all__ = [
    "AssociationAnswer",
    "BatchAnswer",
    "BatchBody",
    "GetBatchBody",
    "ResourceAnswer",
    "ResourceBody",
    "associated",
    "batch_answer",
    "found_answer",
    "named",
    "resource_answer",
    "select",
]


ANY = "-"


class WantedBody(Body):
    """An association to create, change or (in a batch) delete."""

    op: Word | None = Field(None, alias="opType", description="in a batch: CREATE, UPSERT or DELETE")
    subject: Word | None = None
    association_type: Word | None = Field(None, description="key or value, value when absent")
    lifecycle: Word | None = Field(None, description="STRONG or WEAK, WEAK when absent")
    frozen: Truth | None = None
    schema_body: SchemaBody | None = Field(None, alias="schema", description="a schema to register with it")
    normalize: Truth | None = None
    cascade: Truth | None = Field(None, alias="cascadeLifecycle")

    def wanted(self, op: str, context: str, limits: Limits) -> Wanted:
        """Return the change that this body describes.

        Args:
            op: CREATE, UPSERT or DELETE.
            context: the context of a plain subject.
            limits: the limits for processing its schema.
        """
        return Wanted(
            op,
            self.association_type or "value",
            None if self.subject is None else qualified(self.subject, context),
            self.lifecycle,
            self.frozen,
            self.schema_body.request(limits) if self.schema_body else None,
            normalize=bool(self.normalize),
            cascade=bool(self.cascade),
            guid=str(uuid4()),
        )


class ResourceBody(Body):
    """A resource and the changes of its associations."""

    name: Word = Field("", alias="resourceName")
    namespace: Word = Field("", alias="resourceNamespace", description="the Kafka cluster's id")
    resource_id: Word | None = None
    resource_type: Word | None = Field(None, description="topic when absent")
    associations: list[WantedBody] | None = None

    def request(self, op: str | None, context: str, limits: Limits, *, dry_run: bool) -> AssociationRequest:
        """Return the association request that this body describes.

        Args:
            op: the operation of all changes; None if each association names its own.
            context: the context of plain subjects.
            limits: the limits for processing the schemas.
            dry_run: whether to check only.
        """
        resource = Resource(self.name, self.namespace, self.resource_id or "", self.resource_type or TOPIC)
        wanted = [body.wanted(op or body.op or "", context, limits) for body in self.associations or ()]
        return AssociationRequest(resource, wanted, dry_run=dry_run)


class BatchBody(Body):
    """Changes of the associations of several resources."""

    requests: list[ResourceBody] | None = None


class GetBody(Body):
    """A query for associations, by resource id or by name and namespace."""

    name: Word | None = Field(None, alias="resourceName")
    namespace: Word | None = Field(None, alias="resourceNamespace", description="`-`: any")
    resource_id: Word | None = None
    resource_type: Word | None = None
    association_types: list[Word] | None = None
    lifecycle: Word | None = None


class GetBatchBody(Body):
    """Queries for associations, one per resource."""

    requests: list[GetBody] | None = None


class AssociationAnswer(Answer):
    """An association."""

    subject: str
    guid: str
    name: str = Field(alias="resourceName")
    namespace: str = Field(alias="resourceNamespace")
    resource_id: str
    resource_type: str
    association_type: str
    lifecycle: str
    frozen: bool | None = Field(None, description="absent for a frozen STRONG association, which is the default")
    created: int = Field(alias="createTs")
    updated: int = Field(alias="updateTs")


class AssociationInfoAnswer(Answer):
    """An association of a resource, with the schema that came with it or was asked for."""

    subject: str
    association_type: str
    lifecycle: str
    frozen: bool | None = Field(None, description="absent for a frozen STRONG association, which is the default")
    schema_answer: SchemaAnswer | None = Field(None, alias="schema")


class ResourceAnswer(Answer):
    """A resource and its associations."""

    name: str | None = Field(None, alias="resourceName")
    namespace: str | None = Field(None, alias="resourceNamespace")
    resource_id: str | None = None
    resource_type: str
    associations: list[AssociationInfoAnswer] | None = None


class ResultAnswer(Answer):
    """The outcome of one request of a batch."""

    result: ResourceAnswer | None = None
    error: ErrorAnswer | None = None


class BatchAnswer(Answer):
    """The outcomes of a batch's requests, in order."""

    results: list[ResultAnswer]


def associated(association: Association, model: type[Answer] = AssociationAnswer) -> dict[str, object]:
    """Return the JSON of an association, without `frozen` if it is true and STRONG, where that is the rule.

    Args:
        association: the association.
        model: the model of the answer, which names the properties to show.
    """
    content = properties_of(association.key) | properties_of(association.value) | {"updateTs": association.updated}
    if association.value.lifecycle == "STRONG" and association.value.frozen:
        del content["frozen"]
    names = (field.alias or name for name, field in model.model_fields.items())
    return {name: content[name] for name in names if name in content}


def resource_answer(settled: Settled) -> dict[str, object]:
    """Return the JSON of a resource's associations after a change."""
    infos = []
    for placed in settled.placed:
        info = associated(placed.association, AssociationInfoAnswer)
        if placed.registered:
            info["schema"] = {"subject": placed.association.key.subject} | registered(placed.registered)
        infos.append(info)
    return _resource(settled.resource, infos)


def batch_answer(outcomes: list[Settled | RegistryError]) -> dict[str, object]:
    """Return the JSON of a batch's outcomes."""
    return {
        "results": [
            {"error": {"error_code": outcome.code, "message": outcome.message}}
            if isinstance(outcome, RegistryError)
            else {"result": resource_answer(outcome)}
            for outcome in outcomes
        ]
    }


def select(
    associations: list[Association], resource_type: str, types: list[str], lifecycle: str | None
) -> list[Association]:
    """Return the associations that match all filters.

    Args:
        associations: the associations to filter.
        resource_type: the resource type; empty means topic.
        types: the association types; empty means all.
        lifecycle: the lifecycle; None means both.
    """
    return [
        a
        for a in associations
        if a.key.resource_type == (resource_type or TOPIC)
        and (not types or a.key.association_type in types)
        and lifecycle in (None, a.value.lifecycle)
    ]


def named(state: State, name: str, namespace: str) -> list[Association]:
    """Return the associations of a resource name in a namespace; `-` stands for any name or namespace."""
    return state.associations.of_name(None if name == ANY else name, None if namespace == ANY else namespace)


def found_answer(
    body: GetBody, state: State, *, include_schemas: bool, visible: Visible, readable: Visible
) -> dict[str, object]:
    """Return the JSON of the associations that a query selects.

    Args:
        body: the query.
        state: the State to search.
        include_schemas: whether to add the latest schema of each subject.
        visible: which subjects to show.
        readable: of which subjects to show the schema.
    """
    if body.resource_id:
        held = state.associations.of_resource_id(body.resource_id)
    else:
        held = named(state, body.name or "", body.namespace or ANY)
    held = [association for association in held if visible(association.key.subject)]
    chosen = select(held, body.resource_type or "", body.association_types or [], body.lifecycle)
    infos = []
    for chosen_association in chosen:
        latest = (
            state.latest(chosen_association.key.subject)
            if include_schemas and readable(chosen_association.key.subject)
            else None
        )
        infos.append(
            associated(chosen_association, AssociationInfoAnswer)
            | ({"schema": schema_version(latest)} if latest else {})
        )
    first = chosen[0] if chosen else None
    resource = Resource(
        first.key.resource_name if first else body.name or "",
        first.key.resource_namespace if first else body.namespace or "",
        first.value.resource_id if first else body.resource_id or "",
        body.resource_type or TOPIC,
    )
    return _resource(resource, infos)


def _resource(resource: Resource, infos: list[dict[str, object]]) -> dict[str, object]:
    content = {
        "resourceName": resource.name,
        "resourceNamespace": resource.namespace,
        "resourceId": resource.resource_id,
        "resourceType": resource.resource_type,
        "associations": infos,
    }
    return {name: value for name, value in content.items() if value}
