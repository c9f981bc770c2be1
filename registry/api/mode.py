"""`/mode`: the operations that the registry or a subject allows."""

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.bodies.configuration import ModeAnswer, ModeChange
from strata.registry.api.parameters import DefaultToGlobal, Force, SubjectPath
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.decide.mode import delete_mode, set_mode
from strata.registry.core.effective_settings import mode_in_force
from strata.registry.core.rights.route_rights import on_registry, on_subject
from strata.registry.core.rights.rules import Operation
from strata.registry.core.subject_names import scope, writable_scope
from strata.registry.http.bodies import Flag, answer, read_body
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import ContextForm

__all__ = ["router"]

router = Router("/mode", "mode", context=ContextForm.SCOPE, place=50)
Recursive = Annotated[Flag, Query(description="also delete the modes of all subjects in the context")]


@router.reads("GET", "", ModeAnswer, need=on_registry(Operation.DESCRIBE_CONFIGS))
async def registry_mode(exchange: ExchangeDep, default_to_global: DefaultToGlobal = False) -> Response:  # noqa: ARG001 - always complete
    """Return the registry-wide mode."""
    return answer({"mode": mode_in_force(await exchange.fresh(), None).value})


@router.reads("GET", "/{subject}", ModeAnswer, (40409,), need=on_subject(Operation.DESCRIBE_CONFIGS))
async def subject_mode(
    exchange: ExchangeDep, subject: SubjectPath, default_to_global: DefaultToGlobal = False
) -> Response:
    """Return a subject's own mode or, with `defaultToGlobal`, the one in force."""
    state, name = await exchange.fresh(), scope(subject)
    if default_to_global or name is None:
        return answer({"mode": mode_in_force(state, name).value})
    own = state.modes.get(name)
    if own is None:
        raise errors.mode_not_found(subject)
    return answer({"mode": own})


@router.writes(
    "PUT", "", ModeAnswer, (400, 422, 42204, 42205), body=ModeChange, need=on_registry(Operation.ALTER_CONFIGS)
)
async def set_registry_mode(request: Request, exchange: ExchangeDep, force: Force = False) -> Response:
    """Set the registry-wide mode."""
    return await _set(request, exchange, "", force=force)


@router.writes(
    "PUT",
    "/{subject}",
    ModeAnswer,
    (400, 422, 42204, 42205, 42208),
    body=ModeChange,
    need=on_subject(Operation.ALTER_CONFIGS),
)
async def set_subject_mode(
    request: Request, exchange: ExchangeDep, subject: SubjectPath, force: Force = False
) -> Response:
    """Set a subject's mode."""
    return await _set(request, exchange, subject, force=force)


@router.writes("DELETE", "", ModeAnswer, need=on_registry(Operation.ALTER_CONFIGS))
async def delete_registry_mode(exchange: ExchangeDep, recursive: Recursive = False) -> Response:
    """Delete the registry-wide mode and return it."""
    return await _delete(exchange, "", recursive=recursive)


@router.writes("DELETE", "/{subject}", ModeAnswer, (40401,), need=on_subject(Operation.ALTER_CONFIGS))
async def delete_subject_mode(exchange: ExchangeDep, subject: SubjectPath, recursive: Recursive = False) -> Response:
    """Delete a subject's own mode and return it."""
    return await _delete(exchange, subject, recursive=recursive)


async def _set(request: Request, exchange: Exchange, subject: str, *, force: bool) -> Response:
    body = await read_body(request, ModeChange)
    name = writable_scope(subject)
    await exchange.change(lambda state: set_mode(state, name, body.mode, force=force))
    return answer(_mode(body.mode))


async def _delete(exchange: Exchange, subject: str, *, recursive: bool) -> Response:
    name = scope(subject)
    return answer(_mode(await exchange.change(lambda state: delete_mode(state, name, recursive=recursive))))


def _mode(mode: str | None) -> dict[str, str]:
    return {} if mode is None else {"mode": mode}
