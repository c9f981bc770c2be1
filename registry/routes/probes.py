"""`/health`: probes of load balancers and orchestrators, answered from memory whatever the state of the log."""

from fastapi.responses import Response

from strata.registry.access.needs import OPEN
from strata.registry.routes.router import Router
from strata.registry.service import ServiceDep
from strata.registry.wire.json_bodies import answer
from strata.registry.wire.operations import LiveAnswer, ReadyAnswer

__all__ = ["router"]

router = Router("/health", "operations")


@router.reads("GET", "/live", LiveAnswer, needs_log=False, need=OPEN)
async def live() -> Response:
    """Report that the process responds; restart a node that does not."""
    return answer({"live": True})


@router.reads("GET", "/ready", ReadyAnswer, needs_log=False, responses={503: {"model": ReadyAnswer}}, need=OPEN)
async def ready(service: ServiceDep) -> Response:
    """Report whether to route requests here: 503 while the log does not respond or the node is shutting down."""
    reason = service.health.reason()
    content = {"ready": reason is None, **({"reason": reason} if reason else {}), **service.health.progress()}
    if service.health.auth_is_stale():
        content["auth"] = "stale"
    if standby := service.health.standby():
        content["standby"] = standby
    return answer(content, 503 if reason else 200)
