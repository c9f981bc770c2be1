"""`/config`: the compatibility level and other settings, registry-wide and per subject."""

from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.bodies.configuration import ConfigAnswer, ConfigChange
from strata.registry.api.parameters import DefaultToGlobal, SubjectPath
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.decide.config import delete_config, set_config
from strata.registry.core.effective_settings import config_answer
from strata.registry.core.rights.route_rights import on_registry, on_subject
from strata.registry.core.rights.rules import Operation
from strata.registry.core.subject_names import scope, writable_scope
from strata.registry.http.bodies import answer, read_body
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.route_facts import ContextForm

__all__ = ["router"]

router = Router("/config", "config", context=ContextForm.SCOPE, place=40)


@router.reads("GET", "", ConfigAnswer, need=on_registry(Operation.DESCRIBE_CONFIGS))
async def registry_config(exchange: ExchangeDep, default_to_global: DefaultToGlobal = False) -> Response:  # noqa: ARG001 - always complete
    """Return the registry-wide configuration."""
    return answer(config_answer(await exchange.fresh(), None, exchange.service.settings.compatibility_level))


@router.reads("GET", "/{subject}", ConfigAnswer, (40408,), need=on_subject(Operation.DESCRIBE_CONFIGS))
async def subject_config(
    exchange: ExchangeDep, subject: SubjectPath, default_to_global: DefaultToGlobal = False
) -> Response:
    """Return a subject's own configuration or, with `defaultToGlobal`, the one in force."""
    state, name = await exchange.fresh(), scope(subject)
    default = exchange.service.settings.compatibility_level
    own = state.configs.get(name)
    if default_to_global or name is None:
        return answer(config_answer(state, name, default))
    if own is None:
        raise errors.config_not_found(subject)
    return answer({"compatibilityLevel": default.value, **own.fields})


@router.writes(
    "PUT",
    "",
    ConfigChange,
    (400, 422, 42203, 42205, 42210),
    body=ConfigChange,
    need=on_registry(Operation.ALTER_CONFIGS),
)
async def set_registry_config(request: Request, exchange: ExchangeDep) -> Response:
    """Change the registry-wide configuration."""
    return await _set(request, exchange, "")


@router.writes(
    "PUT",
    "/{subject}",
    ConfigChange,
    (400, 422, 42203, 42205, 42208, 42210),
    body=ConfigChange,
    need=on_subject(Operation.ALTER_CONFIGS),
)
async def set_subject_config(request: Request, exchange: ExchangeDep, subject: SubjectPath) -> Response:
    """Change a subject's configuration."""
    return await _set(request, exchange, subject)


@router.writes("DELETE", "", ConfigAnswer, (42205,), need=on_registry(Operation.ALTER_CONFIGS))
async def delete_registry_config(exchange: ExchangeDep) -> Response:
    """Reset the registry-wide configuration to the service's default; return the one that was in force."""
    default = exchange.service.settings.compatibility_level
    return answer(await exchange.change(lambda state: delete_config(state, None, default)))


@router.writes("DELETE", "/{subject}", ConfigAnswer, (40401, 42205), need=on_subject(Operation.ALTER_CONFIGS))
async def delete_subject_config(exchange: ExchangeDep, subject: SubjectPath) -> Response:
    """Delete a subject's own configuration."""
    name, default = scope(subject), exchange.service.settings.compatibility_level
    deleted = await exchange.change(lambda state: delete_config(state, name, default))
    return answer({"compatibilityLevel": default.value, **deleted})


async def _set(request: Request, exchange: Exchange, subject: str) -> Response:
    body = await read_body(request, ConfigChange)
    name, change = writable_scope(subject), body.change()
    return answer(await exchange.change(lambda state: set_config(state, name, change)))
