"""The JSON Schema parser: text to schema, and the normalized text of a schema.

Strict and lenient parsing are the same here: the reference refuses a schema that it cannot load, whether new or stored.
"""

from collections.abc import Sequence

from strata.compat.json_schema.documents import Documents
from strata.compat.json_schema.json_text import Json, excerpt, read_json, write_json
from strata.compat.json_schema.loader import Loader
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import DEFAULT_LIMITS, Limits, check_references
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

__all__ = ["normalize", "parse"]


def parse(
    text: str,
    *,
    strict: bool,  # noqa: ARG001 - the same either way
    references: Sequence[ResolvedReference] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> JsonSchema:
    """Parse a schema.

    Args:
        text: The schema text, which is JSON.
        strict: Ignored.
        references: The referenced schemas.
        limits: Bounds on size and time.

    Raises:
        SchemaParseError: The text or a reference is not a valid schema or exceeds a bound.
        OutOfTime: The time of `limits` ran out.
    """
    check_references(references, limits)
    json = read_json(text, limits)
    if not isinstance(json, bool | dict):
        raise SchemaParseError(f"Expected a JSON Schema (an object, true or false), got {excerpt(write_json(json))}")
    others: dict[str, Json] = {}
    for reference in references:
        others.setdefault(reference.name, read_json(reference.text, limits))
    try:
        documents = Documents(json, others)
        loader = Loader(documents, limits)
        root = loader.load()
    except RecursionError:
        raise SchemaParseError("The schema is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, SchemaParseError):
            raise
        raise SchemaParseError(f"Expected a URI as name or reference: {error}") from None
    return JsonSchema(SchemaFormat.JSON, write_json(json), json, root, documents, loader.definitions)


def normalize(schema: JsonSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the text with the keys of every object sorted; arrays do not change.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    limits.look_at_clock()
    return write_json(schema.json, sort=True)
