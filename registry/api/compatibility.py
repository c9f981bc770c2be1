"""`/compatibility`: check whether a registration would be accepted."""

from starlette.responses import Response

from strata.compat.result import Finding
from strata.registry.api.bodies.schemas import CompatibilityAnswer, SchemaBody
from strata.registry.api.parameters import (
    GivenSchema,
    Normalize,
    SubjectPath,
    Verbose,
    VersionPath,
    Witness,
)
from strata.registry.api.router import Router
from strata.registry.core.decide.content import merged_contract
from strata.registry.core.decide.register import Verdict, check_fields, check_history
from strata.registry.core.effective_settings import config_in_force
from strata.registry.core.errors import RegistryError, TooExpensive
from strata.registry.core.findings import findings_json
from strata.registry.core.lookup import version_to_compare
from strata.registry.core.parsing import parse_request
from strata.registry.core.rights.route_rights import on_subject
from strata.registry.core.rights.rules import Operation
from strata.registry.core.rights.visibility import check_references
from strata.registry.core.schema_request import SchemaRequest
from strata.registry.core.subject_names import aliased
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.storage.records import Subject
from strata.storage.state import SchemaVersion, State

__all__ = ["router"]

router = Router("/compatibility/subjects/{subject}/versions", "compatibility", place=30)


@router.reads(
    "POST",
    "",
    CompatibilityAnswer,
    (400, 422, 42201),
    body=SchemaBody,
    need=on_subject(Operation.READ, more="READ on each subject that it refers to"),
)
async def check_all(
    exchange: ExchangeDep,
    body: GivenSchema,
    subject: SubjectPath,
    normalize: Normalize = False,
    verbose: Verbose = False,
    witness: Witness = False,
) -> Response:
    """Check a schema as its registration would, against the versions that the subject's level requires."""
    state = await exchange.fresh()
    name = aliased(state, subject)
    previous = state.versions(name, include_deleted=False)
    return await _checked(exchange, state, name, previous, body, normalize=normalize, verbose=verbose, witness=witness)


@router.reads(
    "POST",
    "/{version}",
    CompatibilityAnswer,
    (400, 40402, 422, 42201, 42202),
    body=SchemaBody,
    need=on_subject(Operation.READ, more="READ on each subject that it refers to"),
)
async def check_one(
    exchange: ExchangeDep,
    body: GivenSchema,
    subject: SubjectPath,
    version: VersionPath,
    normalize: Normalize = False,
    verbose: Verbose = False,
    witness: Witness = False,
) -> Response:
    """Check a schema against one version, in the direction of the subject's level."""
    state = await exchange.fresh()
    name = aliased(state, subject)
    previous = version_to_compare(state, name, version)
    return await _checked(exchange, state, name, previous, body, normalize=normalize, verbose=verbose, witness=witness)


async def _checked(
    exchange: Exchange,
    state: State,
    subject: Subject,
    previous: list[SchemaVersion],
    body: SchemaBody,
    *,
    normalize: bool,
    verbose: bool,
    witness: bool,
) -> Response:
    verbose = verbose or witness
    if body.references:
        check_references(exchange.access, state, subject, body.cited)
    verdict = await exchange.computed(
        lambda limits: _verdict(exchange, state, subject, previous, body.request(limits), normalize, verbose, witness)
    )
    shown: dict[str, object] = {"is_compatible": not verdict.messages}
    if verbose:
        unknown = [] if previous or verdict.messages else [_unknown(subject)]
        findings = findings_json([*unknown, *verdict.findings], exchange.limits.messages)
        shown |= {"messages": list(verdict.messages)} | ({"findings": findings} if findings else {})
    return answer(shown)


def _verdict(
    exchange: Exchange,
    state: State,
    subject: Subject,
    previous: list[SchemaVersion],
    request: SchemaRequest,
    normalize: bool,
    verbose: bool,
    witness: bool,
) -> Verdict:
    config = config_in_force(state, subject)
    strict = config.validate_new_schemas
    try:
        candidate = parse_request(state, subject, request, strict=strict, normalize=normalize)
        check_fields(candidate, config)
    except RegistryError as error:
        if not verbose:
            raise
        if isinstance(error, TooExpensive):
            exchange.forget()
        return Verdict((error.message,), others=(Finding("INVALID_SCHEMA", error.message),))
    contract = merged_contract(request, state.latest(subject), config)
    default = exchange.service.settings.compatibility_level
    return check_history(state, candidate.under(contract), previous, config, default, witness=witness)


def _unknown(subject: Subject) -> Finding:
    return Finding(
        "NO_PREVIOUS_VERSION",
        f"Subject {subject!r} has no version that is not deleted, so nothing was compared. If it should have one, look "
        "for a mistake in the name, its context included.",
    )
