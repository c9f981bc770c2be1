"""`/dek-registry/v1/keks`: key encryption keys (KEKs) for CSFLE, which name keys in a key management service (KMS)."""

import time
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.parameters import Deleted, KekPath, Paging, Permanent
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.decide.keks import Kek, create_kek, delete_kek, kek_of, undelete_kek, update_kek
from strata.registry.core.lookup import page
from strata.registry.core.rights.route_rights import in_body, listed, on_kek
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.features.keys.bodies import KekAnswer, KekBody, KekChange, kek_answer
from strata.registry.http.bodies import answer, read_body
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import ContextForm

__all__ = ["router"]

router = Router("/dek-registry/v1/keks", "encryption keys", place=90)


@router.reads(
    "GET", "", list[str], (404,), context=ContextForm.SUBJECT_PREFIX, need=listed(Operation.DESCRIBE, ResourceType.KEK)
)
async def names(
    exchange: ExchangeDep,
    paging: Paging,
    subject_prefix: Annotated[
        list[str], Query(alias="subjectPrefix", description="only KEKs with DEKs of subjects with this prefix")
    ] = [],  # noqa: B006 - FastAPI copies it
    deleted: Deleted = False,
) -> Response:
    """List the names of the key encryption keys."""
    keys, describable = (await exchange.fresh()).encryption_keys, exchange.describable
    prefixes = tuple(prefix for prefix in subject_prefix if prefix)
    if prefixes:
        shown = [
            name
            for name in keys.deks
            if any(
                subject.startswith(prefixes) and describable(subject)
                for subject in keys.subjects(name, include_deleted=deleted)
            )
        ]
    else:
        shown = [name for name, value in keys.keks.items() if deleted or not value.deleted]
    shown = [name for name in shown if exchange.access.may(Operation.DESCRIBE, ResourceType.KEK, name)]
    return answer(page(sorted(shown), *paging))


@router.writes(
    "POST",
    "",
    KekAnswer,
    (400, 40370, 40971, 40972, 422, 42205, 42209, 42271),
    body=KekBody,
    context=ContextForm.SUBJECT_PREFIX,
    need=in_body(ResourceType.KEK, Operation.WRITE),
)
async def create(request: Request, exchange: ExchangeDep) -> Response:
    """Create a key encryption key, or restore a soft-deleted one."""
    body = await read_body(request, KekBody)
    await exchange.require(Operation.WRITE, ResourceType.KEK, body.name or "")
    asked, now, most = body.kek(), time.time_ns() // 1_000_000, exchange.service.settings.max_keys
    return answer(kek_answer(await exchange.change(lambda state: create_kek(state, asked, now, most))))


@router.reads("GET", "/{name}", KekAnswer, (40470, 42271), need=on_kek(Operation.READ))
async def one(exchange: ExchangeDep, name: KekPath, deleted: Deleted = False) -> Response:
    """Return a key encryption key."""
    return answer(kek_answer(Kek(name, kek_of(await exchange.fresh(), name, include_deleted=deleted))))


@router.writes(
    "PUT",
    "/{name}",
    KekAnswer,
    (400, 40370, 40470, 422, 42205, 42209, 42271),
    body=KekChange,
    need=on_kek(Operation.WRITE),
)
async def update(request: Request, exchange: ExchangeDep, name: KekPath) -> Response:
    """Change the properties or the description of a key encryption key."""
    body = await read_body(request, KekChange)
    change = body.change()
    return answer(kek_answer(await exchange.change(lambda state: update_kek(state, name, change))))


@router.writes(
    "DELETE", "/{name}", None, (40470, 40471, 42205, 42271, 42272), status=204, need=on_kek(Operation.DELETE)
)
async def delete(exchange: ExchangeDep, name: KekPath, permanent: Permanent = False) -> Response:
    """Delete a key encryption key that has no data encryption keys."""
    await exchange.change(lambda state: delete_kek(state, name, permanent=permanent))
    return Response(status_code=204)


@router.writes("POST", "/{name}/undelete", None, (40470, 42205, 42271), status=204, need=on_kek(Operation.DELETE))
async def undelete(exchange: ExchangeDep, name: KekPath) -> Response:
    """Undo the soft deletion of a key encryption key."""
    await exchange.change(lambda state: undelete_kek(state, name))
    return Response(status_code=204)


@router.reads("POST", "/{name}/test", KekAnswer, (40370, 40470, 42271), need=on_kek(Operation.READ))
async def test(exchange: ExchangeDep, name: KekPath) -> Response:
    """Test a shared key encryption key, which always fails: this service has no access to a KMS."""
    if kek_of(await exchange.fresh(), name, include_deleted=False).shared:
        raise errors.no_key_management()
    raise errors.invalid_key("shared")
