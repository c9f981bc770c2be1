"""`/schemas/ids`: schemas by id. The schema of an id never changes, so memory answers unless the id is new."""

from typing import Annotated

from starlette.responses import Response

from strata.registry.api.bodies.schemas import SchemaStringAnswer, SubjectVersionAnswer, schema_string
from strata.registry.api.parameters import (
    Deleted,
    FindTags,
    Form,
    IdPath,
    Paging,
    ReferenceFormat,
    SubjectQuery,
)
from strata.registry.api.router import Router, TextAnswer
from strata.registry.core.lookup import page, schema_by_id, uses_of
from strata.registry.core.rights.route_rights import by_id
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.rights.visibility import readable_use, unknown_schema
from strata.registry.core.subject_names import PathSubject, aliased, is_scope_name, subject_name
from strata.registry.http.bodies import Flag, answer, text_answer
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import ContextForm, Kept
from strata.storage.records import Subject, context_of
from strata.storage.state import SchemaVersion, State

__all__ = ["router"]

router = Router("/schemas/ids/{schema_id}", "schemas", context=ContextForm.SUBJECT_PARAMETER, place=10)
_AT_ONCE = 1000
"""How many users of an id are sorted without a thread."""


@router.reads("GET", "", SchemaStringAnswer, (40403,), kept=Kept.FOR_GOOD, need=by_id(Operation.READ))
async def schema(
    exchange: ExchangeDep,
    schema_id: IdPath,
    subject: SubjectQuery,
    form: Form = "",
    reference_format: ReferenceFormat = "",
    find_tags: FindTags = [],  # noqa: B006 - FastAPI copies it
    fetch_max_id: Annotated[Flag, Query(alias="fetchMaxId", description="include the highest id in use")] = False,
) -> Response:
    """Return the schema of an id, even if it is soft-deleted."""
    state, shown = await _found(exchange, schema_id, subject)
    max_id, context = None, context_of(shown.subject)
    if fetch_max_id:
        # How many ids were given is for those who may see what has them.
        if exchange.access.may_all(Operation.READ, ResourceType.SUBJECT, f":{context}:"):
            max_id = state.context(context).high_water
        exchange.forget()  # memory answers this even while the log cannot be read
    else:
        _keep(exchange, state, shown, subject)
    _note(exchange, shown, subject)
    text, tags = await exchange.text_of(state, shown, form), await exchange.tags_of(state, shown, find_tags)
    return answer(
        schema_string(shown, named=True, max_id=max_id, text=text, tags=tags, reference_format=reference_format)
    )


@router.reads("GET", "/schema", TextAnswer, (40403,), kept=Kept.FOR_GOOD, need=by_id(Operation.READ))
async def schema_text(exchange: ExchangeDep, schema_id: IdPath, subject: SubjectQuery, form: Form = "") -> Response:
    """Return the text of a schema as it is."""
    state, shown = await _found(exchange, schema_id, subject)
    _keep(exchange, state, shown, subject)
    _note(exchange, shown, subject)
    return text_answer(await exchange.text_of(state, shown, form))


@router.reads(
    "GET",
    "/subjects",
    list[str],
    (40403,),
    need=by_id(Operation.DESCRIBE, more="the answer holds only what the right covers"),
)
async def subjects(
    exchange: ExchangeDep, schema_id: IdPath, subject: SubjectQuery, paging: Paging, deleted: Deleted = False
) -> Response:
    """List the subjects that use a schema."""
    uses = await _uses(exchange, schema_id, subject, deleted)
    return answer(page(sorted({entry.subject for entry in uses}), *paging))


@router.reads(
    "GET",
    "/versions",
    list[SubjectVersionAnswer],
    (40403,),
    need=by_id(Operation.DESCRIBE, more="the answer holds only what the right covers"),
)
async def versions(
    exchange: ExchangeDep, schema_id: IdPath, subject: SubjectQuery, paging: Paging, deleted: Deleted = False
) -> Response:
    """List the subjects and versions that use a schema."""
    uses = await _uses(exchange, schema_id, subject, deleted)
    pairs = [{"subject": entry.subject, "version": entry.version} for entry in uses]
    return answer(page(pairs, *paging))


async def _uses(exchange: Exchange, schema_id: int, subject: PathSubject, deleted: bool) -> list[SchemaVersion]:
    state, describable = await exchange.fresh(), exchange.describable
    name = _named(state, subject)
    known = schema_by_id(state, schema_id, name, describable)

    def uses() -> list[SchemaVersion]:
        every = uses_of(state, known[0], include_deleted=True) if known else []
        seen = [entry for entry in every if describable(entry.subject)]
        if not seen:
            raise unknown_schema(exchange.access, schema_id, context_of(name))
        return [entry for entry in seen if deleted or not entry.deleted]

    return (
        uses() if known is None or len(known[0].used_by) <= _AT_ONCE else await exchange.service.writer.in_thread(uses)
    )


async def _found(exchange: Exchange, schema_id: int, subject: PathSubject) -> tuple[State, SchemaVersion]:
    """Return the version to show for an id, which the request may read, and the State that holds it."""
    state = exchange.service.writer.known
    name = _named(state, subject)
    entry = _shown(exchange, state, schema_id, name)
    if entry and _is_settled(entry, name):
        return state, entry
    state = await (exchange.fresh() if entry else exchange.fresh_on_miss())
    name = _named(state, subject)
    entry = _shown(exchange, state, schema_id, name)
    if entry is None:
        raise unknown_schema(exchange.access, schema_id, context_of(name))
    return state, entry


def _shown(exchange: Exchange, state: State, schema_id: int, name: Subject) -> SchemaVersion | None:
    known = schema_by_id(state, schema_id, name, exchange.readable)
    return readable_use(exchange.access, state, *known) if known else None


def _keep(exchange: Exchange, state: State, shown: SchemaVersion, subject: PathSubject) -> None:
    if _is_settled(shown, _named(state, subject)):
        exchange.keep()


def _note(exchange: Exchange, shown: SchemaVersion, subject: PathSubject) -> None:
    """Record what was fetched: the version, if the request names its subject."""
    if subject_name(subject) == shown.subject:
        exchange.fetch(shown)
    else:
        exchange.fetch_id(shown)


def _is_settled(shown: SchemaVersion, subject: Subject) -> bool:
    """Return whether no later registration can change the schema or the version shown with it."""
    return not subject or is_scope_name(subject) or shown.subject == subject


def _named(state: State, subject: PathSubject) -> Subject:
    return subject_name(aliased(state, subject))
