"""`/v1/apply`: changes of several subjects at once, all of them or none."""

import time
from collections.abc import Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from strata.compat.limits import Limits
from strata.registry.api.bodies.batches import BatchBody, BatchResultAnswer, batch_result
from strata.registry.api.router import Router
from strata.registry.core.decide.batch import Permits, Result, Step, StepKind, decide_batch
from strata.registry.core.decide.decision import Decision
from strata.registry.core.rights.request_access import Access
from strata.registry.core.rights.route_rights import in_body
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.core.rights.visibility import check_references
from strata.registry.http.bodies import answer, read_body
from strata.registry.http.exchange import ExchangeDep
from strata.storage.log import Record
from strata.storage.state import State

__all__ = ["router"]

router = Router("/v1/apply", "batches", place=170)
_RIGHTS = {
    StepKind.REGISTER: (ResourceType.SUBJECT, Operation.READ, Operation.WRITE),
    StepKind.SETTINGS: (ResourceType.SUBJECT, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
    StepKind.DELETE: (ResourceType.SUBJECT, Operation.READ, Operation.DELETE),
    StepKind.RIGHTS: (ResourceType.CLUSTER, Operation.DESCRIBE, Operation.ALTER),
}
_BODIES = 16
"""How many times as large as another request a batch may be."""


@router.writes(
    "POST",
    "",
    BatchResultAnswer,
    (400, 40901, 40904, 40990, 422, 42201, 42203, 42204, 42205, 42206, 42208, 42209, 42210),
    body=BatchBody,
    bodies=_BODIES,
    need=in_body(
        ResourceType.SUBJECT,
        Operation.WRITE,
        more="READ suffices for a version that exists; READ on each subject that a schema refers to; ALTER_CONFIGS for "
        "settings, DELETE for deletions, ALTER cluster for rights; a dry run needs READ, DESCRIBE_CONFIGS for "
        "settings, and DESCRIBE cluster for rights",
    ),
)
async def apply(request: Request, exchange: ExchangeDep) -> Response:
    """Carry out all steps in one write, or none if one is rejected; with `dryRun`, only say what would happen."""
    body = await read_body(request, BatchBody)
    dry_run, access, now = body.dry_run is True, exchange.access, time.time_ns() // 1_000_000
    batch = body.batch(exchange.service.settings.compatibility_level, exchange.limits, now)
    permits = Permits(partial(_check, access, dry_run=dry_run), _nothing if dry_run else access.check_records)

    def decide(state: State, limits: Limits) -> Decision[Result]:
        return decide_batch(state, batch, limits, permits, now=now, dry_run=dry_run)

    if dry_run:
        state = await exchange.fresh_on_miss()
        return answer(batch_result((await exchange.computed(lambda limits: decide(state, limits))).answer))
    return answer(batch_result(await exchange.write(decide)))


def _check(access: Access, state: State, step: Step, *, dry_run: bool) -> None:
    """Check the rights for a step that its records, if any, do not show; a dry run needs those to read.

    Raises:
        RegistryError: 40301 if a right is missing.
    """
    resource_type, reads, writes = _RIGHTS[step.kind]
    operations = (reads, writes) if dry_run or step.request is not None else (writes,)
    access.check_one_of(operations if dry_run else operations[::-1], resource_type, step.subject or "")
    if step.request is not None:
        check_references(access, state, step.subject or "", step.request.references)


def _nothing(_: Sequence[Record]) -> None:
    """Accept records that are not written."""
