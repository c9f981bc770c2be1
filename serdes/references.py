"""The schemas that a schema refers to, in order of dependency.

Rules of this file: it asks the client within bounds and knows no format.
"""

from strata.compat.schema import ResolvedReference
from strata.serdes.client import context_of
from strata.serdes.errors import SchemaError
from strata.serdes.model import Schema
from strata.serdes.registry_protocol import Registry

__all__ = ["MAX_DEPTH", "MAX_REFERENCES", "resolve", "resolved"]

MAX_REFERENCES = 1000
MAX_DEPTH = 50
MAX_CHARACTERS = 16 * 1024 * 1024


def resolve(client: Registry, schema: Schema, subject: str | None = None) -> dict[str, Schema]:
    """Return all schemas that a schema refers to, directly or not, by reference name.

    A schema comes after the schemas that it refers to. Of two references with one name, the first in depth-first order
    counts, as in the registry. Soft-deleted versions are still found.

    Args:
        client: the registry.
        schema: the schema.
        subject: the subject of the schema; references without a context belong to its context.

    Raises:
        SchemaError: If there are more than 1000 references, they are more than 50 deep or longer than 16 Mi characters.
        RegistryError: If the registry does not know a reference.
        RegistryUnavailable: If the registry gives no usable answer after all retries.
    """
    references: dict[str, Schema] = {}
    _resolve(client, schema, context_of(subject), references, set(), 0)
    return references


def resolved(client: Registry, schema: Schema) -> list[ResolvedReference]:
    """Return what a schema refers to, as the parsers of `strata.compat` take it; the errors are those of `resolve`."""
    return [ResolvedReference(name, other.text) for name, other in resolve(client, schema).items()]


def _resolve(
    client: Registry, schema: Schema, context: str, references: dict[str, Schema], seen: set[str], depth: int
) -> None:
    if depth > MAX_DEPTH:
        raise SchemaError(f"the schema has references more than {MAX_DEPTH} deep")
    for reference in schema.references:
        if reference.name in seen:
            continue
        seen.add(reference.name)
        if len(seen) > MAX_REFERENCES:
            raise SchemaError(f"the schema has more than {MAX_REFERENCES} references")
        subject = reference.subject if context_of(reference.subject) else context + reference.subject
        other = client.get_version(subject, reference.version, deleted=True).schema
        _resolve(client, other, context_of(subject), references, seen, depth + 1)
        references[reference.name] = other
        if sum(len(schema.text) for schema in references.values()) > MAX_CHARACTERS:
            raise SchemaError(f"the schema and its references are longer than {MAX_CHARACTERS} characters")
