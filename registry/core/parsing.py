"""The service's use of `compat`: parse schemas of requests and of the log, and check compatibility with versions.

Parsing is lazy, and bounded caches keep its results. Stored schemas are parsed leniently, so that old invalid ones
still load.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from strata.compat.entities import Tags
from strata.compat.formats import FORMATS, Format
from strata.compat.levels import LEVELS, Level, Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits, NotAtOnce, OutOfTime
from strata.compat.result import Finding, Incompatibility, Refusal
from strata.compat.schema import ParsedSchema, ResolvedReference, SchemaFormat, SchemaParseError
from strata.imports import deferred
from strata.registry.core import errors
from strata.registry.core.cache import Cache, Repeats
from strata.registry.core.references import pinned, resolved
from strata.registry.core.schema_request import NO_CONTRACT, Contract, SchemaRequest
from strata.registry.core.tally import Tally
from strata.storage.records import Metadata, Reference, fingerprint, guid_of
from strata.storage.state import SchemaVersion, State

if TYPE_CHECKING:
    from strata.compat import check, tags
    from strata.compat.check import CheckResult, Previous
    from strata.compat.witness import search
else:
    check, tags = deferred("strata.compat.check"), deferred("strata.compat.tags")
    search = deferred("strata.compat.witness.search")

__all__ = [
    "Candidate",
    "alike",
    "caches",
    "compare",
    "count_in",
    "equivalent",
    "inline_tags",
    "keep_as_stored",
    "parse_request",
    "parse_version",
    "printed",
    "prove",
    "refusals",
    "schema_types",
    "share_caches",
    "with_tags",
]

_BY_NAME: Final = {schema_format.value: schema_format for schema_format in FORMATS}
_SchemaKey = tuple[str, str, bool, tuple[ResolvedReference, ...]]
_VerdictKey = tuple[int, tuple[tuple[int, int, str], ...], Level, Policy, str]

_Outline = tuple[SchemaFormat, int]

_BYTES_PER_CHARACTER: Final = 20  # bytes of a parsed schema per character of its text, measured on dense schemas
_BYTES_AT_LEAST: Final = 4_000
_tallies = [Tally()]  # like the caches, what is counted here belongs to the process
_schemas: Final[Cache[_SchemaKey, ParsedSchema]] = Cache(128 << 20)
# Verdicts and normalized texts keep their schemas alive: the keys hold `id()`s, which must not be reused by other
# objects.
_outlines: Final[Cache[tuple[str, bytes], _Outline]] = Cache(16 << 20)
_BYTES_OF_OUTLINE: Final = 400
_new_texts: Final = Repeats(4096)  # of the event loop
_VERSIONS_A_LOOK: Final = 100  # how many versions are excluded between two looks at the clock
_normal_texts: Final[Cache[int, tuple[str, ParsedSchema]]] = Cache(16 << 20)
_verdicts: Final[Cache[_VerdictKey, tuple["CheckResult", ParsedSchema, list["Previous"]]]] = Cache(64 << 20)


def share_caches(processes: int) -> None:
    """Bound the caches of this module to the share of one of several processes; call it once, before their use."""
    for cache in (_schemas, _normal_texts, _verdicts):
        cache.share(processes)


def caches() -> Mapping[str, Cache[Any, Any]]:
    """Return the caches of this module by name."""
    return {"schemas": _schemas, "outlines": _outlines, "normal_texts": _normal_texts, "verdicts": _verdicts}


@dataclass(frozen=True, init=False)
class Candidate:
    """A parsed schema of a request: `text` is what would be stored."""

    parsed: ParsedSchema
    text: str
    references: tuple[Reference, ...]
    contract: Contract
    limits: Limits

    def __init__(
        self,
        parsed: ParsedSchema,
        text: str,
        references: tuple[Reference, ...] = (),
        contract: Contract = NO_CONTRACT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        own = self.__dict__  # what `dataclass` writes for a frozen class takes thrice as long
        own["parsed"], own["text"], own["references"] = parsed, text, references
        own["contract"], own["limits"] = contract, limits

    @property
    def schema_type(self) -> str:
        """The format's name on the wire."""
        return self.parsed.format.value

    @cached_property
    def digest(self) -> bytes:
        """The identity."""
        return _identity(self.text, self.references, self.contract)

    def under(self, contract: Contract) -> "Candidate":
        """Return the same schema with another contract, and so with another identity."""
        return self if contract == self.contract else replace(self, contract=contract)


def load() -> None:
    """Import what schemas of any format need; a start does not wait for it."""
    for schema_format in FORMATS:
        FORMATS[schema_format].parse  # noqa: B018 - the look-up imports the format
    check.check, tags.tags_of  # noqa: B018 - likewise


def schema_types() -> list[str]:
    """Return the names of the formats that can be registered."""
    return list(_BY_NAME)


def parse_request(
    state: State, subject: str, request: SchemaRequest, *, strict: bool, normalize: bool, new: bool = True
) -> Candidate:
    """Parse the schema of a request.

    Args:
        state: the State that references are resolved in.
        subject: the subject, whose context plain references belong to.
        request: the request.
        strict: whether to apply the rules for new schemas.
        normalize: whether to normalize the text and sort the references.
        new: whether the schema is new: it may then refer to live versions only, and each reference name to one version.

    Raises:
        RegistryError: 42201 for an unknown format, a reference that does not resolve, or a text that does not parse.
        TooExpensive: if this takes too long.
    """
    if request.schema_type not in _BY_NAME:
        raise errors.invalid_schema(
            f"Invalid schema type {request.schema_type}: this registry takes {', '.join(schema_types())}"
        )
    limits = request.limits
    references = request.references
    if references:
        references = pinned(state, subject, references, limits, include_deleted=not new)
    if normalize:
        references = tuple(sorted(set(references), key=lambda r: (r.subject, r.version, r.name)))
    try:
        if not request.text.isascii():
            request.text.encode()
        known = resolved(state, subject, references, limits, one_place_a_name=new) if references else ()
        parsed = _parse_cached(request.schema_type, request.text, strict, known, limits)
        text = _normalized(parsed, limits) if normalize else parsed.canonical
    except OutOfTime as error:
        raise errors.TooExpensive(f"The schema cannot be read: {error}") from None
    except (SchemaParseError, UnicodeEncodeError) as error:
        raise errors.invalid_schema(_invalid_message(subject, request, str(error))) from None
    return Candidate(parsed, text, references, request.contract, limits)


def keep_as_stored(candidate: Candidate) -> None:
    """Let the version that is about to hold a schema be found in the cache, where the next version will look for it."""
    parsed = candidate.parsed
    if not candidate.references and candidate.text == parsed.canonical and parsed.is_read_alike:
        _schemas.put((candidate.schema_type, candidate.text, False, ()), parsed, _size(candidate.text))


def parse_version(state: State, entry: SchemaVersion, limits: Limits) -> ParsedSchema:
    """Return the parsed schema of a version.

    Raises:
        TooExpensive: if this takes too long.
        RegistryError: 42201 if it cannot be parsed, or something that it refers to is missing.
    """
    try:
        return _parse_stored(state, entry, limits)
    except OutOfTime as error:
        raise errors.TooExpensive(f"The schema cannot be read: {error}") from None
    except SchemaParseError as error:
        raise errors.invalid_schema(f"The stored schema cannot be read: {error}") from None


def inline_tags(state: State, entry: SchemaVersion, limits: Limits) -> Tags:
    """Return the tags in the text of a version; empty if it cannot be parsed.

    Raises:
        TooExpensive: if this takes too long.
    """
    try:
        return tags.tags_of(_parse_stored(state, entry, limits))
    except OutOfTime as error:
        raise errors.TooExpensive(f"The tags cannot be read: {error}") from None
    except (SchemaParseError, errors.RegistryError):
        return {}


def with_tags(
    state: State,
    subject: str,
    request: SchemaRequest,
    add: Tags,
    remove: Tags = MappingProxyType({}),
    *,
    must_exist: bool,
) -> SchemaRequest:
    """Return a request with tags added to its text, and then others removed.

    Args:
        state: the State that references are resolved in.
        subject: the subject of the request.
        request: the request.
        add: the tags to add.
        remove: the tags to remove.
        must_exist: whether every record and field that a tag names must exist.

    Raises:
        RegistryError: 42201 if the text does not parse, or lacks a record or field that must exist.
    """
    if not add and not remove:
        return request
    parsed = parse_request(state, subject, request, strict=False, normalize=False).parsed
    try:
        return request._replace(text=tags.retagged(parsed, add, remove, must_exist=must_exist))
    except SchemaParseError as error:
        raise errors.invalid_schema(str(error)) from None


def printed(state: State, entry: SchemaVersion, form: str) -> str:
    """Return the text of a version in one of its format's forms, or as stored if the format lacks that form.

    Raises:
        RegistryError: 42201 if the stored schema cannot be printed.
    """
    schema_format = _BY_NAME.get(entry.schema.schema_type)
    print_as = FORMATS[schema_format].printed_as.get(form) if schema_format else None
    if print_as is None:
        return entry.schema.text
    try:
        limits = DEFAULT_LIMITS.started()
        return print_as(_parse_stored(state, entry, limits), limits=limits)
    except SchemaParseError as error:
        raise errors.invalid_schema(f"The stored schema cannot be printed as {form!r}: {error}") from None


def alike(candidate: Candidate, versions: Iterable[SchemaVersion]) -> Iterator[SchemaVersion]:
    """Yield the versions that may hold the candidate, if only in other words; a glance excludes most others."""
    ours, limits = _outline(candidate.parsed), candidate.limits
    for number, entry in enumerate(versions):  # a subject may have thousands
        if limits.at_once and number % _VERSIONS_A_LOOK == 0:
            limits.look_at_clock()
        known = _outlines.peek((entry.schema.schema_type, entry.schema.fingerprint))
        if known is None or known == ours:
            yield entry


def equivalent(state: State, candidate: Candidate, entry: SchemaVersion) -> bool:
    """Return whether a version holds the candidate under the weaker equality of look-ups.

    A candidate that writes its references out equals a version that names them; references that it names must be the
    same.

    Raises:
        TooExpensive: if this takes too long.
    """
    if entry.schema.schema_type != candidate.schema_type:
        return False
    if candidate.references and set(candidate.references) != set(entry.schema.value.references):
        return False
    try:
        ours = candidate.parsed
        if candidate.text != ours.canonical:  # normalized: parse what would be stored
            known = resolved(state, entry.subject, candidate.references, candidate.limits)
            ours = _parse_cached(candidate.schema_type, candidate.text, False, known, candidate.limits)
        stored = _parse_stored(state, entry, candidate.limits)
        outline = _outline(stored)
        _outlines.put((entry.schema.schema_type, entry.schema.fingerprint), outline, _BYTES_OF_OUTLINE)
        return outline == _outline(ours) and FORMATS[ours.format].equivalent(ours, stored, limits=candidate.limits)
    except OutOfTime as error:
        raise errors.TooExpensive(f"The schema cannot be looked up: {error}") from None
    except (SchemaParseError, errors.RegistryError):
        return False


def compare(
    state: State, candidate: Candidate, previous: Sequence[SchemaVersion], level: Level, policy: Policy
) -> "CheckResult":
    """Check a candidate against versions of its subject.

    Args:
        state: the State that references are resolved in.
        candidate: the schema.
        previous: the versions, oldest first; a level that is not transitive uses the last one only.
        level: the compatibility level.
        policy: how strictly differences count.

    Raises:
        RegistryError: 42201 if a stored version cannot be parsed or its format cannot be compared.
        TooExpensive: if this takes too long.
    """
    try:
        return _check_cached(candidate, _versions(state, candidate, previous, level), level, policy)
    except OutOfTime as error:
        raise errors.TooExpensive(f"The schema cannot be compared with the previous versions: {error}") from None
    except SchemaParseError as error:
        raise errors.invalid_schema(f"A previous version cannot be read: {error}") from None


def prove(
    state: State,
    candidate: Candidate,
    previous: Sequence[SchemaVersion],
    level: Level,
    refused: Sequence[Incompatibility],
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of `compare` with their proofs, and the changes of values that no rule refuses.

    Args:
        state: as for `compare`.
        candidate: as for `compare`.
        previous: as for `compare`.
        level: as for `compare`.
        refused: what `compare` found.

    Raises:
        RegistryError: 42201 if a stored version cannot be parsed.
        TooExpensive: if parsing takes too long; proofs end early instead.
        NotAtOnce: if an event loop cannot wait for it.
    """
    if candidate.limits.at_once and not search.is_loaded(candidate.parsed.format):
        raise NotAtOnce  # a thread imports what few registries ever need
    try:
        versions = _versions(state, candidate, previous, level)
    except OutOfTime as error:
        raise errors.TooExpensive(f"The schema cannot be compared with the previous versions: {error}") from None
    except SchemaParseError as error:
        raise errors.invalid_schema(f"A previous version cannot be read: {error}") from None
    budget = search.budget_within(candidate.limits)
    proofs = search.proven(candidate.parsed, versions, refused, budget)
    return proofs, search.silent_changes(candidate.parsed, versions, level, refused, budget)


def _versions(state: State, candidate: Candidate, previous: Sequence[SchemaVersion], level: Level) -> list["Previous"]:
    looked_at = previous if LEVELS[level].transitive else previous[-1:]
    return [
        check.Previous(
            entry.version, _parse_stored(state, entry, candidate.limits), _union(entry.schema.value.metadata)
        )
        for entry in looked_at
    ]


def refusals(candidate: Candidate) -> Sequence[Refusal]:
    """Return why the tools of its format would refuse a schema.

    Raises:
        TooExpensive: if this takes too long.
    """
    try:
        return FORMATS[candidate.parsed.format].refusals(candidate.parsed, limits=candidate.limits)
    except OutOfTime as error:
        raise errors.TooExpensive(f"The schema cannot be checked: {error}") from None


def _check_cached(candidate: Candidate, versions: list["Previous"], level: Level, policy: Policy) -> "CheckResult":
    """Return the verdict, from the cache if a dry run before the request's turn has computed it."""
    parsed, union = candidate.parsed, _union(candidate.contract.metadata)
    if candidate.limits.at_once:  # there was no dry run, and the check is brief
        return _timed_check(parsed, versions, level, policy, candidate.limits, union)
    compared = tuple((version.version, id(version.schema), version.union) for version in versions)
    key = (id(parsed), compared, level, policy, union)
    known = _verdicts.get(key)
    if known is None:
        known = _timed_check(parsed, versions, level, policy, candidate.limits, union), parsed, versions
        schemas = (parsed, *(version.schema for version in versions))
        size = sum(map(len, known[0].messages)) + sum(_size(schema.canonical) for schema in schemas)
        _verdicts.put(key, known, size)
    return known[0]


def _union(metadata: Metadata | None) -> str:
    """Return the names of the branches of a union at the root, which the policy LOGICAL reads."""
    names = (metadata.get("properties") or {}).get("confluent:union") if metadata else None
    return names if isinstance(names, str) else ""


def _parse_stored(state: State, entry: SchemaVersion, limits: Limits) -> ParsedSchema:
    limits.look_at_clock()
    references = entry.schema.value.references
    known = resolved(state, entry.subject, references, limits) if references else ()
    return _parse_cached(entry.schema.schema_type, entry.schema.text, False, known, limits)


def _parse_cached(
    schema_type: str, text: str, strict: bool, references: tuple[ResolvedReference, ...], limits: Limits
) -> ParsedSchema:
    key = (schema_type, text, strict, references)
    parsed = _schemas.get(key)
    if parsed is None:
        parsed = _parse_uncached(schema_type, text, strict, references, limits)
        # Most new texts that an event loop reads never come again, and room for them costs as much as to read them.
        if not (strict and limits.at_once) or _new_texts.repeat(hash(key)):
            _schemas.put(key, parsed, _size(text) + sum([_size(reference.text) for reference in references]))
    return parsed


def _outline(parsed: ParsedSchema) -> _Outline:
    return parsed.format, parsed.outline


def _normalized(parsed: ParsedSchema, limits: Limits) -> str:
    known = _normal_texts.get(id(parsed))
    if known is None:
        known = FORMATS[parsed.format].normalize(parsed, limits=limits), parsed
        _normal_texts.put(id(parsed), known, _size(parsed.canonical))
    return known[0]


def _size(text: str) -> int:
    return _BYTES_AT_LEAST + _BYTES_PER_CHARACTER * len(text)


def _parse_uncached(
    schema_type: str, text: str, strict: bool, references: tuple[ResolvedReference, ...], limits: Limits
) -> ParsedSchema:
    schema_format = _BY_NAME.get(schema_type)
    if schema_format is None:
        raise SchemaParseError(f"schemas of type {schema_type} are not supported")
    more = sum([len(reference.text) for reference in references]) if references else 0
    limits.look_at_text(len(text) + more)
    return _timed_parse(schema_type, FORMATS[schema_format], text, strict, references, limits)


def _identity(text: str, references: Sequence[Reference], contract: Contract) -> bytes:
    triples = [(r.name, r.subject, r.version) for r in references]
    return fingerprint(text, triples, contract.metadata, contract.rule_set)


def _invalid_message(subject: str, request: SchemaRequest, details: str) -> str:
    text = request.text.encode(errors="replace").decode()
    guid = guid_of(_identity(text, request.references, NO_CONTRACT))
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


# --- durations, by format and outcome


def count_in(tally: Tally) -> None:
    """Count in the numbers of this process from now on."""
    _tallies[0] = tally


def _timed_parse(
    schema_type: str,
    schema_format: Format[ParsedSchema],
    text: str,
    strict: bool,
    references: Sequence[ResolvedReference],
    limits: Limits,
) -> ParsedSchema:
    """Return a parsed schema, as `Format.parse` does.

    Raises:
        SchemaParseError: the text is not valid, or takes too long.
        NotAtOnce: an event loop cannot wait for it.
    """
    began, outcome = perf_counter(), "invalid"
    try:
        parsed: ParsedSchema = schema_format.parse(text, strict=strict, references=references, limits=limits)
    except (OutOfTime, NotAtOnce):
        outcome = "given_up"
        raise
    else:
        outcome = "ok"
        return parsed
    finally:
        _count("strata_schema_parse_duration_seconds", schema_type, outcome, perf_counter() - began)


def _timed_check(
    new: ParsedSchema, previous: Sequence["Previous"], level: Level, policy: Policy, limits: Limits, union: str
) -> "CheckResult":
    """Return the verdict on a new schema, as `check` does.

    Raises:
        OutOfTime: it takes too long.
        NotAtOnce: an event loop cannot wait for it.
    """
    began, verdict = perf_counter(), "given_up"
    try:
        result = check.check(new, previous, level, policy, limits, union)
        verdict = "compatible" if result.compatible else "incompatible"
        return result
    finally:
        _count("strata_compatibility_check_duration_seconds", new.format, verdict, perf_counter() - began)


def _count(name: str, schema_type: str, outcome: str, seconds: float) -> None:
    _tallies[0].observe(name, schema_type, outcome, value=seconds)
    if outcome == "given_up":
        _tallies[0].add("strata_limits_hit_total", "computing_time")
