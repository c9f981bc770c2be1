"""`/schemas`: all versions of all subjects, in pages."""

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response

from strata.registry.aliases import aliases_of
from strata.registry.decide.association_requests import check_lifecycle
from strata.registry.lookup import page, schemas
from strata.registry.routes.associations import AssociationType
from strata.registry.routes.parameters import Deleted, Limit, Offset
from strata.registry.routes.router import Router
from strata.registry.rule_sets import PHASES
from strata.registry.service import ServiceDep
from strata.registry.transport.route_facts import ContextForm
from strata.registry.wire.associations import AssociationAnswer, associated, select
from strata.registry.wire.json_bodies import Flag, answer
from strata.registry.wire.schemas import SchemaAnswer, schema_version
from strata.storage.state import SchemaVersion

__all__ = ["router"]

router = Router("/schemas", "schemas")
_MOST = 1000
_NONE = "NONE"


class ListedSchema(SchemaAnswer):
    """A version of a subject, with the subject's aliases and associations if the request asks for them."""

    aliases: list[str] | None = None
    associations: list[AssociationAnswer] | None = None


@router.reads("GET", "", list[ListedSchema], (404, 42212), context=ContextForm.SUBJECT_PREFIX)
async def all_schemas(
    service: ServiceDep,
    subject_prefix: Annotated[
        str, Query(alias="subjectPrefix", description="empty: the default context; `:*:`: every context")
    ] = "",
    aliases: Annotated[
        Flag,
        Query(description="include the aliases of each subject, and list the subjects of aliases with the prefix"),
    ] = False,
    deleted: Deleted = False,
    latest_only: Annotated[
        Flag, Query(alias="latestOnly", description="only the newest version of each subject")
    ] = False,
    rule_type: Annotated[str, Query(alias="ruleType", description="only versions with a rule of this type")] = "",
    resource_type: Annotated[
        str, Query(alias="resourceType", description="only subjects associated with such a resource: `topic`")
    ] = "",
    association_type: AssociationType = [],  # noqa: B006 - FastAPI copies it
    lifecycles: Annotated[
        list[str], Query(alias="lifecycle", description="STRONG, WEAK, or NONE: subjects without an association")
    ] = [],  # noqa: B006 - FastAPI copies it
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """List versions by subject and version, at most 1000 at a time."""
    for lifecycle in lifecycles:
        check_lifecycle(None if lifecycle == _NONE else lifecycle)
    state = await service.fresh()
    names = aliases_of(state, subject_prefix) if aliases else {}
    found = schemas(state, subject_prefix, names, include_deleted=deleted, latest_only=latest_only)
    if rule_type:
        found = [entry for entry in found if _has_rule(entry, rule_type)]
    more: dict[str, dict[str, Any]] = {}
    if resource_type or association_type or lifecycles:
        for subject in {entry.subject for entry in found}:
            held = select(state.associations.of_subject(subject), resource_type, association_type, None)
            chosen = [one for one in held if not lifecycles or one.value.lifecycle in lifecycles]
            if chosen:
                more[subject] = {"associations": [associated(one) for one in chosen]}
            elif not held and _NONE in lifecycles:
                more[subject] = {}
        found = [entry for entry in found if entry.subject in more]
    taken = page(found, offset, limit if 0 < limit <= _MOST else _MOST)
    return answer(
        [
            schema_version(entry)
            | more.get(entry.subject, {})
            | ({"aliases": names[entry.subject]} if entry.subject in names else {})
            for entry in taken
        ]
    )


def _has_rule(entry: SchemaVersion, rule_type: str) -> bool:
    rules = entry.schema.value.rule_set or {}
    return any(rule.get("type") == rule_type for phase in PHASES for rule in rules.get(phase) or ())
