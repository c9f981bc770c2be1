"""The form `format=logical`: schemas as SQL types.

The reference shows and takes its SQL types on three routes. Its errors are known, its grammar is not: a request that
would need the grammar is refused instead of being answered in another form.
"""

from typing import TYPE_CHECKING, Final

from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.schema import SchemaFormat
from strata.imports import deferred
from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.core.parsing import parse_version
from strata.storage.state import SchemaVersion, State

if TYPE_CHECKING:
    from strata.compat.logical import policy, types
else:
    policy, types = deferred("strata.compat.logical.policy"), deferred("strata.compat.logical.types")

__all__ = ["LOGICAL", "posted_refusal", "stored_refusal"]

LOGICAL: Final = "logical"
_FORMATS: Final = ", ".join(SchemaFormat)
_UNSUPPORTED: Final = "format=logical is not supported: the grammar of its SQL types is not published. "


def posted_refusal(text: str | None, schema_type: str | None) -> RegistryError:
    """Return why a schema cannot be registered from its SQL types."""
    if not schema_type:
        return errors.invalid_schema(f"schemaType is required when format=logical, and must be one of {_FORMATS}")
    if schema_type.upper() not in SchemaFormat.__members__:
        return errors.invalid_schema(
            f"Unsupported schemaType '{schema_type}' for format=logical; must be one of {_FORMATS}"
        )
    if not (text or "").strip():
        return errors.invalid_schema("Schema is required when format=logical")
    return errors.invalid_schema(f"{_UNSUPPORTED}Post the schema as {schema_type.upper()}, without format=logical.")


def stored_refusal(state: State, entry: SchemaVersion) -> RegistryError:
    """Return why a version cannot be shown as its SQL types.

    Raises:
        TooExpensive: if this takes too long.
        RegistryError: 42201 if the version cannot be parsed.
    """
    try:
        limits = DEFAULT_LIMITS.started()
        policy.translate(parse_version(state, entry, limits), "", limits)
    except types.TranslationError as error:
        return errors.invalid_schema(f"Stored schema cannot be represented as a logical type: {error}")
    return errors.invalid_schema(f"{_UNSUPPORTED}`strata table-ddl` prints the table of a version for six engines.")
