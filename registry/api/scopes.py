"""`/v1/scopes` and `/v1/settings`: names with a configuration or a mode of their own, with versions or without."""

from starlette.responses import Response

from strata.registry.api.bodies.configuration import ScopeAnswer
from strata.registry.api.parameters import Paging
from strata.registry.api.router import Router
from strata.registry.core.lookup import page
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.subject_names import GLOBAL_SCOPE
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.route_facts import Kept
from strata.storage.records import Subject
from strata.storage.state import State

__all__ = ["router"]

router = Router("/v1", "config", place=190)


@router.reads("GET", "/scopes", list[str], (404,), kept=Kept.NO, need=listed(Operation.DESCRIBE_CONFIGS))
async def scopes(exchange: ExchangeDep, paging: Paging) -> Response:
    """List the subjects and contexts (`:.name:`) with settings of their own, such as names that are only aliases."""
    state = await exchange.fresh()
    return answer(page(await exchange.service.writer.in_thread(_visible, exchange, state), *paging))


@router.reads("GET", "/settings", list[ScopeAnswer], (404,), kept=Kept.NO, need=listed(Operation.DESCRIBE_CONFIGS))
async def settings(exchange: ExchangeDep, paging: Paging) -> Response:
    """List the names of `/v1/scopes` with their own configurations and modes, so that a copy needs few requests."""
    state = await exchange.fresh()

    def shown() -> list[dict[str, object]]:
        return [_settings(state, name) for name in page(_visible(exchange, state), *paging)]

    return answer(await exchange.service.writer.in_thread(shown))


def _visible(exchange: Exchange, state: State) -> list[Subject]:
    may = exchange.access.may
    names = {name for name in (*state.configs, *state.modes) if name is not None and name != GLOBAL_SCOPE}
    return sorted(scope for scope in names if may(Operation.DESCRIBE_CONFIGS, ResourceType.SUBJECT, scope))


def _settings(state: State, name: Subject) -> dict[str, object]:
    config, mode = state.configs.get(name), state.modes.get(name)
    return {"name": name, **({"config": config.fields} if config else {}), **({"mode": mode} if mode else {})}
