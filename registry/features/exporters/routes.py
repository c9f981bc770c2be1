"""`/exporters`: exporters, which copy subjects to other registries, as Confluent's registry serves them."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.parameters import ExporterPath
from strata.registry.api.router import Router
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.exporters import (
    auto_context,
    change_exporter,
    create_exporter,
    delete_exporter,
    exporter_of,
    progress_of,
    reset_exporter,
    set_paused,
)
from strata.registry.core.rights.route_rights import on_cluster
from strata.registry.core.rights.rules import Operation
from strata.registry.features.exporters.bodies import (
    ExporterAnswer,
    ExporterBody,
    ExporterChange,
    ExporterConfig,
    ExporterNameAnswer,
    ExporterStatusAnswer,
    exporter_answer,
    parse_config,
    parse_name,
    status_answer,
)
from strata.registry.features.exporters.credentials import Credentials, shown
from strata.registry.http.bodies import answer, read_body
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.storage.state import State

__all__ = ["router"]

router = Router("/exporters", "exporters", place=220)
_SEES, _CHANGES = on_cluster(Operation.DESCRIBE), on_cluster(Operation.ALTER)
_MISSING = (40450,)


@router.reads("GET", "", list[str], need=_SEES)
async def names(exchange: ExchangeDep) -> Response:
    """List the names of the exporters."""
    return answer(sorted((await exchange.fresh()).exporters))


@router.writes(
    "POST",
    "",
    ExporterNameAnswer,
    (400, 40950, 40951, 40952, 40960, 40964, 422, 42205),
    body=ExporterBody,
    need=_CHANGES,
)
async def create(request: Request, exchange: ExchangeDep) -> Response:
    """Create an exporter, which starts to copy at once."""
    body = await read_body(request, ExporterBody)
    name = parse_name(body.name)
    exporter = body.exporter(parse_config(name, body.config, _credentials(exchange)))
    return await _changed(exchange, name, lambda state: create_exporter(state, name, exporter))


@router.reads("GET", "/{exporter}", ExporterAnswer, _MISSING, need=_SEES)
async def one(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Return an exporter; credentials in its configuration are hidden."""
    known = exporter_of(await exchange.fresh(), exporter)
    return answer(exporter_answer(exporter, known, auto_context(exchange.service.cluster_id)))


@router.writes(
    "PUT",
    "/{exporter}",
    ExporterNameAnswer,
    (400, *_MISSING, 40951, 40952, 40963, 422, 42205),
    body=ExporterChange,
    need=_CHANGES,
)
async def update(request: Request, exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Change an exporter that is paused; what is absent or empty stays."""
    body = await read_body(request, ExporterChange)
    config = parse_config(exporter, body.config, _credentials(exchange)) if body.config else None
    return await _changed(
        exchange, exporter, lambda state: change_exporter(state, exporter, lambda held: body.changed(held, config))
    )


@router.writes("DELETE", "/{exporter}", ExporterNameAnswer, (*_MISSING, 42205), need=_CHANGES)
async def delete(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Delete an exporter; what it has copied stays, and so does the mode of the destination."""
    return await _changed(exchange, exporter, lambda state: delete_exporter(state, exporter))


@router.reads("GET", "/{exporter}/config", dict[str, str], _MISSING, need=_SEES)
async def config(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Return the configuration of an exporter, with credentials hidden."""
    return answer(shown(exporter_of(await exchange.fresh(), exporter).config))


@router.writes(
    "PUT",
    "/{exporter}/config",
    ExporterNameAnswer,
    (400, *_MISSING, 40951, 40963, 422, 42205),
    body=ExporterConfig,
    need=_CHANGES,
)
async def set_config(request: Request, exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Replace the configuration of an exporter that is paused; a credential sent as it was shown stays."""
    wanted = (await read_body(request, ExporterConfig)).values()
    config, change = parse_config(exporter, wanted, _credentials(exchange)), ExporterChange()
    return await _changed(
        exchange, exporter, lambda state: change_exporter(state, exporter, lambda held: change.changed(held, config))
    )


@router.reads("GET", "/{exporter}/config/clusterlink", dict[str, str], _MISSING, need=_SEES)
async def cluster_link_config(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Return the configuration with which a cluster link reaches the same destination, credentials hidden."""
    return answer(shown(exporter_of(await exchange.fresh(), exporter).config))


@router.reads("GET", "/{exporter}/status", ExporterStatusAnswer, _MISSING, need=_SEES)
async def status(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Return how far an exporter has come, and why it failed if it did."""
    state = await exchange.fresh()
    return answer(status_answer(exporter, exporter_of(state, exporter), progress_of(state, exporter)))


@router.writes("PUT", "/{exporter}/pause", ExporterNameAnswer, (*_MISSING, 42205), need=_CHANGES)
async def pause(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Pause an exporter; it may be paused already."""
    return await _changed(exchange, exporter, lambda state: set_paused(state, exporter, paused=True))


@router.writes("PUT", "/{exporter}/resume", ExporterNameAnswer, (*_MISSING, 42205), need=_CHANGES)
async def resume(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Let an exporter continue where it left off; it may run already."""
    return await _changed(exchange, exporter, lambda state: set_paused(state, exporter, paused=False))


@router.writes("PUT", "/{exporter}/reset", ExporterNameAnswer, (*_MISSING, 42205), need=_CHANGES)
async def reset(exchange: ExchangeDep, exporter: ExporterPath) -> Response:
    """Let an exporter start over: it compares everything with the destination, and copies what is missing there."""
    return await _changed(exchange, exporter, lambda state: reset_exporter(state, exporter))


def _credentials(exchange: Exchange) -> Credentials:
    return exchange.service.part(Credentials) or Credentials(None)


async def _changed(exchange: Exchange, name: str, decide: Callable[[State], Decision[None]]) -> Response:
    await exchange.change(decide)
    return answer({"name": name})
