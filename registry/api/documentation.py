"""The parts of the OpenAPI document that FastAPI cannot derive: bodies that routes parse themselves, and errors."""

from typing import Any

from pydantic import BaseModel

from strata.registry.api.bodies.failures import ErrorAnswer
from strata.registry.http.media_types import BODY_TYPES

__all__ = ["SECURITY", "SECURITY_SCHEMES", "body_of", "failures"]

SECURITY_SCHEMES: dict[str, dict[str, str]] = {
    "basic": {"type": "http", "scheme": "basic", "description": "a user of the auth file"},
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "a token of an OIDC provider"},
    "certificate": {"type": "mutualTLS", "description": "a client certificate"},
}
"""How clients say who they are."""

SECURITY: list[dict[str, list[str]]] = [{}, {"basic": []}, {"bearer": []}, {"certificate": []}]
"""The alternatives for a route that needs a right; none of them while access control is off."""

_ERRORS_OF_THE_LOG = (500, 50001, 50002, 50003, 50004, 50301, 50302)


def body_of(model: type[BaseModel]) -> dict[str, object]:
    """Return the OpenAPI description of a body that the route parses itself."""
    schema = _inlined(model.model_json_schema())
    content = {media_type.decode(): {"schema": schema} for media_type in BODY_TYPES}
    return {"requestBody": {"required": True, "content": content}}


def _inlined(schema: dict[str, Any]) -> dict[str, object]:
    """Replace the references to a model's definitions by the definitions, none of which is recursive."""
    definitions = schema.pop("$defs", {})

    def replaced(node: object) -> Any:
        if isinstance(node, list):
            return [replaced(item) for item in node]
        if not isinstance(node, dict):
            return node
        rest = {name: replaced(item) for name, item in node.items() if name != "$ref"}
        return rest if "$ref" not in node else {**replaced(definitions[node["$ref"].rpartition("/")[2]]), **rest}

    inlined: dict[str, object] = replaced(schema)
    return inlined


def failures(*codes: int, needs_log: bool = True) -> dict[int | str, dict[str, object]]:
    """Return the OpenAPI description of the errors that a route may answer.

    Args:
        codes: the error codes of the route itself.
        needs_log: whether to add those of all routes that use the log.
    """
    by_status: dict[int | str, list[int]] = {}
    for code in (*codes, *(_ERRORS_OF_THE_LOG if needs_log else ())):
        by_status.setdefault(code if code < 1000 else code // 100, []).append(code)
    return {
        status: {"model": ErrorAnswer, "description": "error_code " + ", ".join(map(str, sorted(errors_)))}
        for status, errors_ in by_status.items()
    }
