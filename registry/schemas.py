"""What the service needs of `compat`: parse a request's schema, parse a stored one, and check levels over versions.

Parsing is lazy and cached, bounded; a stored schema is parsed leniently, so that old bad data still loads.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from compat.check import CheckResult, Previous, check
from compat.formats import FORMATS
from compat.levels import LEVELS, Level, Policy
from compat.schema import ParsedSchema, ResolvedReference, SchemaFormat, SchemaParseError
from registry import errors
from registry.references import pinned, resolved
from storage.fingerprint import fingerprint, guid_of
from storage.records import Reference
from storage.state import SchemaVersion, State

__all__ = ["Candidate", "SchemaRequest", "compare", "equivalent", "parse_request", "printed", "schema_types"]

_CACHED_SCHEMAS = 1000
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A schema as a request brings it; `version` and `schema_id` are given by imports."""

    text: str
    schema_type: str = SchemaFormat.AVRO.value
    references: tuple[Reference, ...] = ()
    version: int = 0
    schema_id: int | None = None

    @property
    def own_text(self) -> str | None:
        """The text that the answer repeats: a Protobuf descriptor in base64; None for all else.

        Clients that send descriptors keep the answer as the schema of its id, and can read nothing but descriptors.
        """
        descriptor = self.schema_type == SchemaFormat.PROTOBUF.value and _BASE64.fullmatch(self.text)
        return self.text if descriptor else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A request's schema, parsed: `text` is what would be stored, `digest` its identity."""

    parsed: ParsedSchema
    text: str
    digest: bytes
    references: tuple[Reference, ...] = ()

    @property
    def schema_type(self) -> str:
        """The format's name on the wire."""
        return self.parsed.format.value


def schema_types() -> list[str]:
    """Return the names of the formats that can be registered."""
    return [schema_format.value for schema_format in FORMATS]


def parse_request(state: State, subject: str, request: SchemaRequest, *, strict: bool, normalize: bool) -> Candidate:
    """Parse a request's schema.

    Raises:
        RegistryError: 42201 for an unknown format, a reference that leads nowhere, or a text that is no schema.
    """
    if request.schema_type not in schema_types():
        raise errors.invalid_schema(
            f"Invalid schema type {request.schema_type}: this registry takes {', '.join(schema_types())}"
        )
    references = pinned(state, subject, request.references)
    if normalize:
        references = tuple(sorted(set(references), key=lambda r: (r.name, r.subject, r.version)))
    try:
        request.text.encode()
        parsed = _parse(request.schema_type, request.text, strict, resolved(state, subject, references))
        text = FORMATS[parsed.format].normalize(parsed) if normalize else parsed.canonical
    except (SchemaParseError, UnicodeEncodeError) as error:
        raise errors.invalid_schema(_invalid(subject, request, str(error))) from None
    digest = fingerprint(text, [(r.name, r.subject, r.version) for r in references])
    return Candidate(parsed, text, digest, references)


def printed(state: State, entry: SchemaVersion, form: str) -> str:
    """Return a version's text in one of its format's forms; as it is stored when the format has no such form."""
    try:
        print_as = FORMATS[SchemaFormat(entry.schema.schema_type)].printed_as.get(form)
    except (KeyError, ValueError):
        return entry.schema.text
    if print_as is None:
        return entry.schema.text
    try:
        return print_as(_stored(state, entry))
    except SchemaParseError as error:
        raise errors.invalid_schema(f"The stored schema cannot be printed as {form!r}: {error}") from None


def equivalent(state: State, candidate: Candidate, entry: SchemaVersion) -> bool:
    """Tell whether a version holds the candidate under the weaker equality of look-ups.

    References written out in the text equal references by name; by name they must be the same ones.
    """
    if entry.schema.schema_type != candidate.schema_type:
        return False
    if candidate.references and set(candidate.references) != set(entry.schema.value.references):
        return False
    try:
        stored = _stored(state, entry)
    except (SchemaParseError, errors.RegistryError):
        return False
    return FORMATS[candidate.parsed.format].equivalent(candidate.parsed, stored)


def compare(
    state: State, candidate: Candidate, previous: Sequence[SchemaVersion], level: Level, policy: Policy
) -> CheckResult:
    """Check a candidate against some versions, oldest first.

    Raises:
        RegistryError: 42201 when a stored version cannot be parsed, or is of a format that cannot be compared.
    """
    looked_at = previous if LEVELS[level].transitive else previous[-1:]
    try:
        versions = [Previous(entry.version, _stored(state, entry)) for entry in looked_at]
        return check(candidate.parsed, versions, level, policy)
    except SchemaParseError as error:
        raise errors.invalid_schema(f"A previous version cannot be read: {error}") from None


def _stored(state: State, entry: SchemaVersion) -> ParsedSchema:
    references = resolved(state, entry.subject, entry.schema.value.references)
    return _parse(entry.schema.schema_type, entry.schema.text, False, references)


@lru_cache(_CACHED_SCHEMAS)
def _parse(schema_type: str, text: str, strict: bool, references: tuple[ResolvedReference, ...]) -> ParsedSchema:
    try:
        schema_format = FORMATS[SchemaFormat(schema_type)]
    except (KeyError, ValueError):
        raise SchemaParseError(f"schemas of type {schema_type} are not supported") from None
    return schema_format.parse(text, strict=strict, references=references)


def _invalid(subject: str, request: SchemaRequest, details: str) -> str:
    text = request.text.encode(errors="replace").decode()
    guid = guid_of(fingerprint(text, [(r.name, r.subject, r.version) for r in request.references]))
    references = ", ".join(
        f"{{name='{r.name}', subject='{r.subject}', version={r.version}}}" for r in request.references
    )
    return (
        f"Invalid schema {{subject={subject},version={request.version or 'null'},"
        f"id={-1 if request.schema_id is None else request.schema_id},guid={guid},"
        f"schemaType={request.schema_type},references=[{references}],metadata=null,ruleSet=null,schema={text},"
        f"schemaTags=null,ts=null,deleted=null}} with refs [{references}] of type {request.schema_type}, "
        f"details: {details}"
    )
