"""`/v1/log`: the content of the log, and how much of it this node has read and set aside."""

from starlette.responses import Response

from strata.registry.api.bodies.operations import LogAnswer
from strata.registry.api.parameters import Limit, Offset
from strata.registry.api.router import Router
from strata.registry.core.lookup import page
from strata.registry.core.rights.route_rights import on_cluster
from strata.registry.core.rights.rules import Operation
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.route_facts import Kept
from strata.storage.state import State

__all__ = ["router"]

router = Router("/v1/log", "operations", place=140)


@router.reads("GET", "", LogAnswer, (404,), kept=Kept.NO, about_writer=True, need=on_cluster(Operation.DESCRIBE))
async def log(exchange: ExchangeDep, offset: Offset = 0, limit: Limit = 100) -> Response:
    """Describe the log; `offset` and `limit` page through the last 1000 records set aside, newest first."""
    state = exchange.service.state
    counts = await exchange.service.writer.in_thread(_counts, state)
    aside = page(state.set_aside[::-1], offset, limit)
    return answer(
        {
            **_writing(exchange),
            **exchange.service.health.progress(),
            "records": state.records,
            "counts": counts,
            "setAside": {
                "count": state.set_aside_count,
                "records": [{"offset": item.offset, "reason": item.reason} for item in aside],
            },
        }
    )


def _writing(exchange: Exchange) -> dict[str, object]:
    status, holder = exchange.service.writer.log.status(), exchange.service.writer.log.holder()
    content: dict[str, object] = {"backend": status.backend, "foreignRecords": status.foreign_records}
    if status.holds_pen is not None:
        content["holdsPen"] = status.holds_pen
    return content | ({"holder": holder} if holder else {})


def _counts(state: State) -> dict[str, int]:
    return {
        "subjects": len(state.subjects),
        "versions": sum(len(versions) for versions in state.subjects.values()),
        "schemas": sum(len(context.schemas) for context in state.contexts.values()),
        "contexts": len(state.contexts),
        "configs": len(state.configs),
        "modes": len(state.modes),
        "keks": len(state.encryption_keys.keks),
        "deks": state.encryption_keys.dek_count,
    }
