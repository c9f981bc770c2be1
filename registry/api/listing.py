"""`/schemas`: all versions of all subjects, in pages."""

from typing import Annotated, NamedTuple

from starlette.responses import Response

from strata.registry.api.bodies.associations import AssociationAnswer, associated, select
from strata.registry.api.bodies.schemas import SchemaAnswer, schema_version
from strata.registry.api.parameters import AssociationType, Deleted, Limit, Offset
from strata.registry.api.router import Router
from strata.registry.core.decide.association_requests import check_lifecycle
from strata.registry.core.lookup import Visible, page, schemas, schemas_of, subjects
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.core.rule_sets import PHASES
from strata.registry.core.subject_names import aliases_of
from strata.registry.http.bodies import Flag, answer
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import ContextForm
from strata.storage.records import Subject
from strata.storage.state import SchemaVersion, State

__all__ = ["router"]

router = Router("/schemas", "schemas", place=110)
_MOST = 1000
_NONE = "NONE"


class ListedSchema(SchemaAnswer):
    """A version of a subject, with the subject's aliases and associations if the request asks for them."""

    aliases: list[str] | None = None
    associations: list[AssociationAnswer] | None = None


@router.reads(
    "GET", "", list[ListedSchema], (404, 42212), context=ContextForm.SUBJECT_PREFIX, need=listed(Operation.READ)
)
async def all_schemas(
    exchange: ExchangeDep,
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
    state = await exchange.fresh()
    most = limit if 0 < limit <= _MOST else _MOST
    chosen = _Chosen(subject_prefix, aliases, rule_type, resource_type, tuple(association_type), tuple(lifecycles))
    if chosen == _Chosen(subject_prefix):
        entries = schemas(
            state,
            subject_prefix,
            include_deleted=deleted,
            latest_only=latest_only,
            offset=offset,
            limit=most,
            visible=exchange.readable,
        )
        return answer([schema_version(entry) for entry in entries])
    # The order of the names does not lead to these, so all subjects are searched, without holding up other requests.
    visible = exchange.readable
    rows = await exchange.service.writer.in_thread(
        lambda: _rows(state, chosen, visible, deleted=deleted, latest_only=latest_only)
    )
    return answer([schema_version(entry) | more for entry, more in page(rows, offset, most)])


class _Chosen(NamedTuple):
    """What a request asks for besides the plain list."""

    prefix: str
    aliases: bool = False
    rule_type: str = ""
    resource_type: str = ""
    association_types: tuple[str, ...] = ()
    lifecycles: tuple[str, ...] = ()


def _rows(
    state: State, chosen: _Chosen, visible: Visible, *, deleted: bool, latest_only: bool
) -> list[tuple[SchemaVersion, dict[str, object]]]:
    """Return all versions that a request asks for, with what else to show of their subjects."""
    prefix, with_aliases, rule_type, resource_type, association_types, lifecycles = chosen
    found_aliases = aliases_of(state, prefix) if with_aliases else {}
    seen = {target: [*filter(visible, names)] for target, names in found_aliases.items() if visible(target)}
    aliases = {target: names for target, names in seen.items() if names}
    names = {*subjects(state, prefix, include_deleted=deleted, deleted_only=False, visible=visible), *aliases}
    more: dict[Subject, dict[str, object]] = {
        name: {"aliases": aliases[name]} if name in aliases else {} for name in sorted(names)
    }
    if resource_type or association_types or lifecycles:
        for name in tuple(more):
            held = select(state.associations.of_subject(name), resource_type, list(association_types), None)
            kept = [association for association in held if not lifecycles or association.value.lifecycle in lifecycles]
            if kept:
                more[name] = {"associations": [associated(association) for association in kept]} | more[name]
            elif held or _NONE not in lifecycles:
                del more[name]
    rows = schemas_of(state, more, include_deleted=deleted, latest_only=latest_only)
    return [(entry, more[entry.subject]) for entry in rows if not rule_type or _has_rule(entry, rule_type)]


def _has_rule(entry: SchemaVersion, rule_type: str) -> bool:
    rules = entry.schema.value.rule_set or {}
    return any(rule.get("type") == rule_type for phase in PHASES for rule in rules.get(phase) or ())
