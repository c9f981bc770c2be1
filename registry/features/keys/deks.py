"""`/dek-registry/v1/keks/{name}/deks`: data encryption keys (DEKs) for CSFLE, encrypted by a KEK."""

import time
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.parameters import Deleted, KekPath, Paging, Permanent, SubjectPath, VersionPath
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.decide.deks import (
    AES256_GCM,
    ALGORITHMS,
    check_subject,
    create_dek,
    dek_of,
    delete_deks,
    undelete_deks,
)
from strata.registry.core.decide.keks import kek_of
from strata.registry.core.lookup import page
from strata.registry.core.rights.route_rights import on_dek, on_kek
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.subject_names import PathSubject, aliased_for_deks, subject_name
from strata.registry.features.keys.bodies import Algorithm, DekAnswer, DekBody, dek_answer
from strata.registry.http.bodies import Flag, answer, read_body
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.parameter_marks import Depends, Query
from strata.storage.records import Subject
from strata.storage.state import State

__all__ = ["router"]

router = Router("/dek-registry/v1/keks/{name}/deks", "encryption keys", place=100)


def _algorithm(value: object) -> object:
    """Return an algorithm; answer 404 for an unknown one, as the reference does."""
    if value not in ("", *ALGORITHMS):
        raise errors.not_found()
    return value or AES256_GCM


Cipher = Annotated[
    Algorithm, BeforeValidator(_algorithm), Query(alias="algorithm", description="the algorithm of the key")
]


@dataclass(frozen=True, slots=True)
class _Named:
    """What names a data encryption key in a request, without its version."""

    kek: str
    subject: PathSubject
    algorithm: str

    def target(self, state: State) -> tuple[str, Subject, str]:
        """Return the name with the subject that an alias stands for."""
        return self.kek, aliased_for_deks(state, self.subject), self.algorithm


async def _named(name: KekPath, subject: SubjectPath, algorithm: Cipher = "AES256_GCM") -> _Named:
    return _Named(name, subject, algorithm)


DekPath = Annotated[_Named, Depends(_named)]
Rewrap = Annotated[Flag, Query(description="replace the stored material: the same key, encrypted again")]
_CREATION = (400, 40370, 40470, 40971, 40972, 422, 42205, 42209, 42271)


@router.reads(
    "GET",
    "",
    list[str],
    (40470, 42271),
    need=on_kek(Operation.DESCRIBE, more="the answer holds only subjects with DESCRIBE"),
)
async def subjects(exchange: ExchangeDep, name: KekPath, paging: Paging, deleted: Deleted = False) -> Response:
    """List the subjects that have data encryption keys under a key encryption key."""
    state = await exchange.fresh()
    kek_of(state, name, include_deleted=deleted)
    held = state.encryption_keys.subjects(name, include_deleted=deleted)
    names = sorted(filter(exchange.describable, set(held)))
    return answer(page(names, *paging))


@router.writes(
    "POST",
    "",
    DekAnswer,
    _CREATION,
    body=DekBody,
    deprecated=True,
    need=on_kek(Operation.WRITE, more="WRITE on the subject in the body"),
)
async def create_by_body(request: Request, exchange: ExchangeDep, name: KekPath, rewrap: Rewrap = False) -> Response:
    """Store a data encryption key for the subject that the body names."""
    body = await read_body(request, DekBody)
    subject = subject_name(body.subject or "")
    await exchange.require(Operation.WRITE, ResourceType.SUBJECT, subject)
    named = PathSubject(subject, check=exchange.access.for_target(Operation.WRITE, subject))
    return await _create(exchange, body, name, named, rewrap=rewrap)


@router.reads("GET", "/{subject}", DekAnswer, (40470, 42271), need=on_dek(Operation.READ))
async def first(exchange: ExchangeDep, dek: DekPath, deleted: Deleted = False) -> Response:
    """Return the first version of a data encryption key."""
    return await _one(exchange, dek, 1, deleted=deleted)


@router.writes("POST", "/{subject}", DekAnswer, _CREATION, body=DekBody, need=on_dek(Operation.WRITE))
async def create(
    request: Request, exchange: ExchangeDep, name: KekPath, subject: SubjectPath, rewrap: Rewrap = False
) -> Response:
    """Store a version of a data encryption key that the client has generated and encrypted."""
    body = await read_body(request, DekBody)
    return await _create(exchange, body, name, subject, rewrap=rewrap)


@router.writes("DELETE", "/{subject}", None, (40470, 40471, 42205, 42271), status=204, need=on_dek(Operation.DELETE))
async def delete(exchange: ExchangeDep, dek: DekPath, permanent: Permanent = False) -> Response:
    """Delete all versions of a data encryption key."""
    return await _delete(exchange, dek, None, permanent=permanent)


@router.writes(
    "POST", "/{subject}/undelete", None, (40470, 40472, 42205, 42271), status=204, need=on_dek(Operation.DELETE)
)
async def undelete(exchange: ExchangeDep, dek: DekPath) -> Response:
    """Undo the soft deletion of all versions of a data encryption key."""
    return await _undelete(exchange, dek, None)


@router.reads("GET", "/{subject}/versions", list[int], (40470, 42271), need=on_dek(Operation.READ))
async def versions(exchange: ExchangeDep, dek: DekPath, paging: Paging, deleted: Deleted = False) -> Response:
    """List the versions of a data encryption key."""
    check_subject(dek.subject)
    state = await exchange.fresh()
    kek_of(state, dek.kek, include_deleted=deleted)
    held = state.encryption_keys.versions(*dek.target(state), include_deleted=deleted)
    return answer(page([key.version for key, _ in held], *paging))


@router.reads("GET", "/{subject}/versions/{version}", DekAnswer, (40470, 42202, 42271), need=on_dek(Operation.READ))
async def version(exchange: ExchangeDep, dek: DekPath, version: VersionPath, deleted: Deleted = False) -> Response:
    """Return a version of a data encryption key."""
    return await _one(exchange, dek, version, deleted=deleted)


@router.writes(
    "DELETE",
    "/{subject}/versions/{version}",
    None,
    (40470, 40471, 42202, 42205, 42271),
    status=204,
    need=on_dek(Operation.DELETE),
)
async def delete_version(
    exchange: ExchangeDep, dek: DekPath, version: VersionPath, permanent: Permanent = False
) -> Response:
    """Delete a version of a data encryption key."""
    return await _delete(exchange, dek, version, permanent=permanent)


@router.writes(
    "POST",
    "/{subject}/versions/{version}/undelete",
    None,
    (40470, 40472, 42202, 42205, 42271),
    status=204,
    need=on_dek(Operation.DELETE),
)
async def undelete_version(exchange: ExchangeDep, dek: DekPath, version: VersionPath) -> Response:
    """Undo the soft deletion of a version of a data encryption key."""
    return await _undelete(exchange, dek, version)


async def _one(exchange: Exchange, dek: _Named, version: int, *, deleted: bool) -> Response:
    state = await exchange.fresh()
    return answer(dek_answer(dek_of(state, *dek.target(state), version, include_deleted=deleted)))


async def _create(exchange: Exchange, body: DekBody, kek: str, subject: str, *, rewrap: bool) -> Response:
    now, most = time.time_ns() // 1_000_000, exchange.service.settings.max_keys
    made = await exchange.change(
        lambda state: create_dek(state, body.dek(kek, aliased_for_deks(state, subject)), now, most, rewrap=rewrap)
    )
    return answer(dek_answer(made))


async def _delete(exchange: Exchange, dek: _Named, version: int | None, *, permanent: bool) -> Response:
    await exchange.change(lambda state: delete_deks(state, *dek.target(state), version, permanent=permanent))
    return Response(status_code=204)


async def _undelete(exchange: Exchange, dek: _Named, version: int | None) -> Response:
    await exchange.change(lambda state: undelete_deks(state, *dek.target(state), version))
    return Response(status_code=204)
