"""`/health`: probes of load balancers and orchestrators, answered from memory whatever the state of the log.

With access control, the details of an answer are for those who may describe the cluster, as the log's are.
"""

from starlette.responses import Response

from strata.registry.api.bodies.operations import LiveAnswer, ReadyAnswer
from strata.registry.api.router import Router
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import Exchange, ExchangeDep

__all__ = ["router"]

router = Router("/health", "operations", place=130)


@router.reads("GET", "/live", LiveAnswer, needs_log=False, need=OPEN)
async def live() -> Response:
    """Report that the process responds; restart a node that does not."""
    return answer({"live": True})


_ANSWERS: dict[int | str, dict[str, object]] = {503: {"model": ReadyAnswer}}


@router.reads("GET", "/ready", ReadyAnswer, needs_log=False, responses=_ANSWERS, need=OPEN)
async def ready(exchange: ExchangeDep) -> Response:
    """Report whether to send requests here: 503 before the first copy of a standby and while the node shuts down.

    While the log does not respond, the node serves what never changes, and is ready.
    """
    return _answer(exchange, exchange.service.health.reason())


@router.reads("GET", "/write", ReadyAnswer, needs_log=False, responses=_ANSWERS, need=OPEN)
async def write(exchange: ExchangeDep) -> Response:
    """Report whether to send writes here: 503 also while the log does not respond or takes no writes, and on a standby.

    A node on Kafka that does not hold the pen passes writes on, and is ready for them.
    """
    return _answer(exchange, exchange.service.health.write_reason())


def _answer(exchange: Exchange, reason: str | None) -> Response:
    health = exchange.service.health
    status, can_write = 503 if reason else 200, not health.write_reason()
    if not exchange.access.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return answer({"ready": reason is None, "canWrite": can_write}, status)
    content = {"ready": reason is None, **({"reason": reason} if reason else {}), "canWrite": can_write}
    content |= health.progress()
    return answer(content | health.details(), status)
