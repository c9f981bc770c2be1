"""`/subjects`: registration, look-up, versions and deletion."""

from functools import partial
from typing import Annotated

from starlette.responses import Response

from strata.compat.limits import Limits
from strata.registry.api.bodies.schemas import (
    RegisteredAnswer,
    SchemaAnswer,
    SchemaBody,
    TagsChange,
    registered,
    schema_version,
)
from strata.registry.api.parameters import (
    Deleted,
    DeletedOnly,
    FindTags,
    Force,
    Form,
    GivenSchema,
    Limit,
    Normalize,
    Offset,
    Paging,
    Permanent,
    ReferenceFormat,
    SubjectPath,
    VersionPath,
    WritableSubjectPath,
    body_first,
)
from strata.registry.api.router import Router, TextAnswer
from strata.registry.core import lookup
from strata.registry.core.decide.content import version_with
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.delete import delete_subject, delete_version
from strata.registry.core.decide.register import Registered, Rules, register
from strata.registry.core.decide.tag import change_tags
from strata.registry.core.logical_form import LOGICAL, posted_refusal, stored_refusal
from strata.registry.core.lookup import LATEST
from strata.registry.core.rights.route_rights import listed, on_subject, one_of, referred_to
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.rights.visibility import check_chosen_id, check_references, check_version, is_readable
from strata.registry.core.subject_names import aliased, writable_subject
from strata.registry.http.bodies import Flag, answer, text_answer
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import ContextForm, Kept
from strata.storage.records import Subject
from strata.storage.state import SchemaVersion, State

__all__ = ["router"]

router = Router("/subjects", "subjects", place=20)
_AT_ONCE = 1000
"""How many names are listed without a thread."""


@router.reads("GET", "", list[str], (404,), context=ContextForm.SUBJECT_PREFIX, need=listed(Operation.DESCRIBE))
async def subjects(
    exchange: ExchangeDep,
    subject_prefix: Annotated[
        str, Query(alias="subjectPrefix", description="empty: the default context; `:*:`: every context")
    ] = ":*:",
    deleted: Deleted = False,
    deleted_only: DeletedOnly = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """List the subjects."""
    state = await exchange.fresh()
    visible = exchange.describable
    listed = partial(
        lookup.subjects, state, subject_prefix, include_deleted=deleted, deleted_only=deleted_only, visible=visible
    )
    at_once = 0 < limit <= _AT_ONCE and exchange.access.is_unlimited
    if at_once or len(state.subjects) <= _AT_ONCE:
        return answer(listed(offset=offset, limit=limit))
    return await exchange.service.writer.in_thread(lambda: answer(listed(offset=offset, limit=limit)))


@router.reads(
    "POST",
    "/{subject}",
    SchemaAnswer,
    (400, 40401, 40403, 422, 42201),
    body=SchemaBody,
    need=on_subject(Operation.READ, more="READ on each subject that it refers to"),
)
async def look_up(
    exchange: ExchangeDep,
    body: GivenSchema,
    subject: SubjectPath,
    normalize: Normalize = False,
    deleted: Deleted = False,
    form: Form = "",
) -> Response:
    """Find the version of a subject that holds a schema; a plain subject is also searched for in other contexts."""
    state, asked = await exchange.fresh(), body.request(exchange.limits)
    name, visible = aliased(state, subject), exchange.readable
    if asked.references:
        check_references(exchange.access, state, name, asked.references)
    computed = await exchange.computed(
        lambda limits: version_with(
            state, name, asked.under(limits), normalize=normalize, include_deleted=deleted, visible=visible
        )
    )
    exchange.fetch(computed.entry)
    text = await exchange.text_of(state, computed.entry, form or ("serialized" if asked.own_text else ""))
    return answer(schema_version(computed.entry, stored=not computed.identical, text=text))


@router.reads("GET", "/{subject}/metadata", SchemaAnswer, (40401, 40403), need=on_subject(Operation.READ))
async def with_metadata(
    exchange: ExchangeDep,
    subject: SubjectPath,
    key: Annotated[list[str], Query(description="names of metadata properties")] = [],  # noqa: B006 - FastAPI copies it
    value: Annotated[list[str], Query(description="their values, in the same order")] = [],  # noqa: B006 - FastAPI copies it
    deleted: Deleted = False,
    form: Form = "",
) -> Response:
    """Return the newest version whose metadata has all given properties."""
    state, wanted = await exchange.fresh(), list(zip(key, value, strict=False))
    entry = lookup.version_with_properties(state, aliased(state, subject), wanted, include_deleted=deleted)
    exchange.fetch(entry)
    return answer(schema_version(entry, text=await exchange.text_of(state, entry, form)))


@router.writes(
    "DELETE", "/{subject}", list[int], (40401, 40404, 40405, 40904, 42205, 42206), need=on_subject(Operation.DELETE)
)
async def delete(exchange: ExchangeDep, subject: SubjectPath, permanent: Permanent = False) -> Response:
    """Soft-delete a subject or, with `permanent`, hard-delete a soft-deleted one."""
    return answer(
        await exchange.change(lambda state: delete_subject(state, aliased(state, subject), permanent=permanent))
    )


@router.reads("GET", "/{subject}/versions", list[int], (40401,), need=on_subject(Operation.DESCRIBE))
async def versions(
    exchange: ExchangeDep,
    subject: SubjectPath,
    paging: Paging,
    deleted: Deleted = False,
    deleted_only: DeletedOnly = False,
    deleted_as_negative: Annotated[
        Flag, Query(alias="deletedAsNegative", description="list soft-deleted versions as negative numbers")
    ] = False,
) -> Response:
    """List the versions of a subject, oldest first."""
    state = await exchange.fresh()
    numbers = lookup.version_numbers(
        state,
        aliased(state, subject),
        include_deleted=deleted,
        deleted_only=deleted_only,
        deleted_as_negative=deleted_as_negative,
    )
    return answer(lookup.page(numbers, *paging))


@router.writes(
    "POST",
    "/{subject}/versions",
    RegisteredAnswer,
    (400, 40901, 422, 42201, 42205, 42208, 42209, 42210),
    body=SchemaBody,
    need=one_of(
        Operation.WRITE,
        Operation.READ,
        more="READ suffices if the version exists; READ on each subject that it refers to; ALTER_CONFIGS for "
        "`force` and for an id, on the context or registry for one far above the highest",
    ),
)
async def register_schema(
    exchange: ExchangeDep,
    body: GivenSchema,
    subject: WritableSubjectPath,
    normalize: Normalize = False,
    force: Force = False,
    form: Form = "",
) -> Response:
    """Register a schema under a subject; return the existing version if it is already registered."""
    if form == LOGICAL:
        raise posted_refusal(body.text, body.schema_type)
    asked = body.request(exchange.limits)
    if force or asked.schema_id is not None:
        await exchange.require(Operation.ALTER_CONFIGS, ResourceType.SUBJECT, subject)
    rules = Rules(
        exchange.service.settings.compatibility_level,
        normalize=normalize,
        force=force,
        check_id=partial(check_chosen_id, exchange.access),
    )

    def decide(state: State, limits: Limits) -> Decision[Registered]:
        target = _target(state, subject)
        if asked.references:
            check_references(exchange.access, state, target, asked.references)
        return register(state, target, body.request(limits), rules)

    placed = await exchange.write(decide)
    text = await exchange.text_of(exchange.service.state, placed.entry, form) if form else asked.own_text
    return answer(registered(placed, text))


@router.reads(
    "GET",
    "/{subject}/versions/{version}",
    SchemaAnswer,
    (40401, 40402, 42201, 42202),
    kept=Kept.FOR_GOOD,
    need=referred_to(Operation.READ),
)
async def version(
    exchange: ExchangeDep,
    subject: SubjectPath,
    version: VersionPath,
    deleted: Deleted = False,
    form: Form = "",
    reference_format: ReferenceFormat = "",
    find_tags: FindTags = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Return a version of a subject."""
    state, entry = await _version(exchange, subject, version, deleted)
    text, tags = await _text(exchange, state, entry, form), await exchange.tags_of(state, entry, find_tags)
    return answer(schema_version(entry, text=text, tags=tags, reference_format=reference_format))


@router.writes(
    "POST",
    "/{subject}/versions/{version}/tags",
    RegisteredAnswer,
    (400, 40401, 40402, 40901, 422, 42201, 42202, 42205, 42208, 42209, 42210),
    body=TagsChange,
    need=on_subject(Operation.READ, Operation.WRITE),
)
async def tags(
    exchange: ExchangeDep,
    body: Annotated[TagsChange, body_first(TagsChange)],
    subject: WritableSubjectPath,
    version: VersionPath,
) -> Response:
    """Create a new version from an existing one, with other tags, metadata or rules."""
    change, rules = body.request(exchange.limits), Rules(exchange.service.settings.compatibility_level)
    placed = await exchange.write(
        lambda state, limits: change_tags(state, _target(state, subject), version, change.under(limits), rules)
    )
    return answer(registered(placed))


@router.reads(
    "GET",
    "/{subject}/versions/{version}/schema",
    TextAnswer,
    (40401, 40402, 42201, 42202),
    kept=Kept.FOR_GOOD,
    need=referred_to(Operation.READ),
)
async def version_text(
    exchange: ExchangeDep,
    subject: SubjectPath,
    version: VersionPath,
    deleted: Deleted = False,
    form: Form = "",
) -> Response:
    """Return the text of a version as it is."""
    state, entry = await _version(exchange, subject, version, deleted)
    return text_answer(await _text(exchange, state, entry, form))


@router.reads(
    "GET",
    "/{subject}/versions/{version}/referencedby",
    list[int],
    (40401, 40402, 42202),
    need=on_subject(Operation.READ, more="the answer holds only ids of subjects with READ"),
)
async def referenced_by(
    exchange: ExchangeDep, subject: SubjectPath, version: VersionPath, paging: Paging, deleted: Deleted = False
) -> Response:
    """List the ids of the schemas that refer to a version."""
    state = await exchange.fresh()
    readable = exchange.readable
    entry = lookup.version_anywhere(state, aliased(state, subject), version, include_deleted=True, visible=readable)
    referrers = [user for user in state.referred_by(entry.subject, entry.version) if readable(user.subject)]
    ids = sorted({referrer.schema.schema_id for referrer in referrers if deleted or not referrer.deleted})
    return answer(lookup.page(ids, *paging))


@router.writes(
    "DELETE",
    "/{subject}/versions/{version}",
    int,
    (40401, 40402, 40406, 40407, 40904, 42202, 42205, 42206),
    need=on_subject(Operation.DELETE),
)
async def delete_one(
    exchange: ExchangeDep, subject: SubjectPath, version: VersionPath, permanent: Permanent = False
) -> Response:
    """Soft-delete a version or, with `permanent`, hard-delete a soft-deleted one."""
    return answer(
        await exchange.change(
            lambda state: delete_version(state, aliased(state, subject), version, permanent=permanent)
        )
    )


async def _text(exchange: Exchange, state: State, entry: SchemaVersion, form: str) -> str:
    """Return the text of a version; these two routes know the form `logical`."""
    if form == LOGICAL:
        raise await exchange.service.writer.in_thread(stored_refusal, state, entry)
    return await exchange.text_of(state, entry, form)


def _target(state: State, subject: str) -> Subject:
    """Return the subject to write to; the name is checked again because an alias may name an invalid one."""
    return writable_subject(aliased(state, subject))


async def _version(exchange: Exchange, subject: str, version: int, deleted: bool) -> tuple[State, SchemaVersion]:
    """Return a version from memory if its number is known there, else from a fresh State; and that State.

    Raises:
        RegistryError: 40301 if the request may read neither the subject nor a version that refers to this one.
    """
    state, name, entry = exchange.service.writer.known, Subject(subject), None
    if version != LATEST:
        name = aliased(state, subject)
        entry = state.version(name, version)
        if entry is not None and not is_readable(exchange.access, state, name, version):
            entry = None
    if entry is None or (entry.deleted and not deleted):
        state = await exchange.fresh()
        name = aliased(state, subject)
        check_version(exchange.access, state, name, version, named=subject)
        entry = lookup.version_anywhere(state, name, version, include_deleted=deleted, visible=exchange.readable)
    if version != LATEST and entry.subject == name:
        exchange.keep()
    exchange.fetch(entry)
    return state, entry
