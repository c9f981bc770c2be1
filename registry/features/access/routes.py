"""`/security/acls`: the rules of access in the log, as Redpanda's registry serves them; `rpk security acl` works."""

import time
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.bodies.acls import (
    AclAnswer,
    AclsBody,
    VerdictAnswer,
    matching,
    parse_filters,
    parse_question,
    parse_rules,
    parse_wanted,
    rules_json,
)
from strata.registry.api.router import Router
from strata.registry.core.decide.acls import create_rules, delete_rules, listed_rules
from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.route_rights import on_cluster
from strata.registry.core.rights.rules import FIELDS, Operation, rule_json
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import Kept

__all__ = ["router"]

router = Router("/security/acls", "access control", place=230)
Wanted = Annotated[str | None, Query(description="only rules with this value")]


@router.reads("GET", "", list[AclAnswer], (400,), need=on_cluster(Operation.DESCRIBE))
async def listed(
    exchange: ExchangeDep,
    principal: Wanted = None,
    resource: Wanted = None,
    resource_type: Wanted = None,
    pattern_type: Wanted = None,
    host: Wanted = None,
    operation: Wanted = None,
    permission: Wanted = None,
) -> Response:
    """List the rules of the log; those of the auth file are not among them."""
    values = (principal, resource, resource_type, pattern_type, host, operation, permission)
    matches = matching(
        [parse_wanted({name: value for name, value in zip(FIELDS, values, strict=True) if value is not None})]
    )
    return answer(rules_json(filter(matches, listed_rules(await exchange.fresh()))))


@router.writes("POST", "", list[AclAnswer], (400,), status=201, body=AclsBody, need=on_cluster(Operation.ALTER))
async def create(request: Request, exchange: ExchangeDep) -> Response:
    """Add rules; those that exist stay."""
    rules, now = parse_rules(await request.body()), time.time_ns() // 1_000_000
    await exchange.change(lambda state: create_rules(state, rules, now))
    return answer(rules_json(rules), 201)


@router.writes("DELETE", "", list[AclAnswer], (400,), body=AclsBody, need=on_cluster(Operation.ALTER))
async def delete(request: Request, exchange: ExchangeDep) -> Response:
    """Delete the rules that have all fields of one of some objects, and return them."""
    matches = matching(parse_filters(await request.body()))
    gone = await exchange.change(lambda state: delete_rules(state, matches))
    return answer(rules_json(gone))


@router.reads("GET", "/verdict", VerdictAnswer, (400,), kept=Kept.NO, need=on_cluster(Operation.DESCRIBE))
async def verdict(
    exchange: ExchangeDep,
    principal: Annotated[str, Query(description="User:NAME or Anonymous")] = "Anonymous",
    group: Annotated[list[str], Query(description="a group of the user; repeatable")] = [],  # noqa: B006 - copied
    operation: Annotated[str, Query(description="what the principal wants to do")] = "READ",
    resource_type: Annotated[str, Query(description="the type of the resource")] = "SUBJECT",
    resource: Annotated[str, Query(description="the name of the resource")] = "",
    host: Annotated[str, Query(description="the address of the client")] = "",
) -> Response:
    """Say what a principal may do, by the rules of the log and of this node's auth file, and by which rule.

    The answer is not kept, because the rules of an auth file are not part of the State.
    """
    user, asked = parse_question(principal, operation, resource_type, resource)
    who = Principal(user, frozenset(group))
    decision = exchange.service.rights(await exchange.fresh()).decide(
        who, asked.operation, asked.resource, host or None
    )
    content = {"enabled": exchange.service.control is not None, "allowed": decision.allowed}
    return answer(content | ({"rule": rule_json(decision.rule)} if decision.rule else {}))
