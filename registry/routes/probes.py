"""`/health`: what a load balancer or an orchestrator asks. Answered from memory, whatever the log does."""

from fastapi import APIRouter
from fastapi.responses import Response

from registry.service import ServiceDep
from registry.wire import LiveAnswer, ReadyAnswer, answer

__all__ = ["router"]

router = APIRouter(prefix="/health", tags=["operations"])


@router.get("/live", responses={200: {"model": LiveAnswer}})
async def live() -> Response:
    """Answer that the process answers: a node that does not should be restarted."""
    return answer({"live": True})


@router.get("/ready", responses={200: {"model": ReadyAnswer}, 503: {"model": ReadyAnswer}})
async def ready(service: ServiceDep) -> Response:
    """Tell whether requests had better come here: 503 while the log does not answer, or when the node is to end."""
    reason = service.health.reason()
    content = {"ready": reason is None, **({"reason": reason} if reason else {}), **service.health.progress()}
    return answer(content, 503 if reason else 200)
