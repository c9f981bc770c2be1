"""The content of a version: the contract that a request results in, and the version that holds a schema under one.

A contract is metadata and rules. They come from the request or else from the latest version, on top of the
configuration's defaults and below its overrides. The metadata property `confluent:version` says which version a schema
was meant to be: each new version updates it, and look-ups that do not name it ignore it.

A version holds a schema by identity (same text, references, metadata and rules), or by a weaker equality: the same
schema spelled differently, references written out, or metadata that differs only in `confluent:version`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strata.registry.core import errors
from strata.registry.core.effective_settings import EffectiveConfig, config_in_force
from strata.registry.core.lookup import Visible, everything, namesakes, use_of, versions_of
from strata.registry.core.parsing import Candidate, alike, equivalent, parse_request
from strata.registry.core.rule_sets import PHASES
from strata.registry.core.schema_request import Contract, SchemaRequest
from strata.storage.records import Metadata, Phase, Rule, RuleSet, Subject, context_of, fingerprint
from strata.storage.state import SchemaVersion, State

__all__ = [
    "Found",
    "agrees",
    "equal_version",
    "find",
    "merged_contract",
    "merged_metadata",
    "merged_rules",
    "names_version",
    "property_of",
    "rule_set_of",
    "version_with",
    "with_version",
    "without_version",
]


_VERSION = "confluent:version"
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


def merged_contract(request: SchemaRequest, previous: SchemaVersion | None, config: EffectiveConfig) -> Contract:
    """Return the contract that a request results in.

    Args:
        request: the request.
        previous: the latest version of the subject, if any.
        config: the configuration in force.
    """
    before = previous.schema.value if previous else None
    metadata = request.metadata if request.metadata is not None or before is None else before.metadata
    rule_set = request.rule_set if request.rule_set is not None or before is None else before.rule_set
    return Contract(
        merged_metadata(config.default_metadata, metadata, config.override_metadata),
        merged_rules(config.default_rules, rule_set, config.override_rules),
    )


def merged_metadata(*layers: Metadata | None) -> Metadata | None:
    """Merge layers of metadata: tags and sensitive names add up, a later property replaces an earlier one."""
    if not any(layers):
        return None
    tags: dict[str, set[str]] = {}
    properties: dict[str, str] = {}
    sensitive: set[str] = set()
    for layer in filter(None, layers):
        for path, names in (layer.get("tags") or {}).items():
            tags.setdefault(path, set()).update(names)
        properties |= layer.get("properties") or {}
        sensitive.update(layer.get("sensitive") or ())
    merged: Metadata = {}
    if tags:
        merged["tags"] = {path: sorted(names) for path, names in sorted(tags.items())}
    if properties:
        merged["properties"] = dict(sorted(properties.items()))
    if sensitive:
        merged["sensitive"] = sorted(sensitive)
    return merged or None


def merged_rules(*layers: RuleSet | None) -> RuleSet | None:
    """Merge rule sets by phase: a later rule replaces an earlier one of its name, and moves to the end."""
    if not any(layers):
        return None
    phases: dict[Phase, list[Rule]] = {phase: [] for phase in PHASES}
    enable_at: str | None = None
    for layer in filter(None, layers):
        for phase in PHASES:
            rules = layer.get(phase) or []
            names = {rule.get("name") for rule in rules}
            phases[phase] = [rule for rule in phases[phase] if rule.get("name") not in names] + list(rules)
        enable_at = layer.get("enableAt") or enable_at
    return rule_set_of(phases, enable_at) or None


def rule_set_of(phases: Mapping[Phase, Sequence[Rule]], enable_at: str | None) -> RuleSet:
    """Return a rule set without empty parts."""
    rule_set: RuleSet = {}
    for phase, rules in phases.items():
        if rules:
            rule_set[phase] = rules
    if enable_at:
        rule_set["enableAt"] = enable_at
    return rule_set


def with_version(contract: Contract, version: int) -> Contract:
    """Return a contract whose metadata has a `confluent:version`."""
    metadata = merged_metadata(contract.metadata, {"properties": {_VERSION: str(version)}})
    return Contract(metadata, contract.rule_set)


def without_version(contract: Contract) -> Contract:
    """Return a contract whose metadata has no `confluent:version`."""
    return Contract(_unversioned(contract.metadata), contract.rule_set)


def names_version(contract: Contract) -> bool:
    """Return whether a contract's metadata has a `confluent:version`."""
    return property_of(contract.metadata, _VERSION) is not None


def property_of(metadata: Metadata | None, name: str) -> str | None:
    """Return a metadata property; None if it is absent."""
    properties = (metadata or {}).get("properties") or {}
    return properties.get(name)


def agrees(contract: Contract, entry: SchemaVersion) -> bool:
    """Return whether a version has a contract, ignoring `confluent:version`.

    A contract that names a version agrees with that version only, even if that version's metadata does not name it.
    """
    value, asked = entry.schema.value, property_of(contract.metadata, _VERSION)
    if contract == Contract(value.metadata, value.rule_set):
        return True
    if asked is not None and _number(asked) != entry.version:
        return False
    ours, theirs = _unversioned(contract.metadata), _unversioned(value.metadata)
    return _digest(ours, contract.rule_set) == _digest(theirs, value.rule_set)


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _unversioned(metadata: Metadata | None) -> Metadata | None:
    if metadata is None or property_of(metadata, _VERSION) is None:
        return metadata
    properties = {name: value for name, value in (metadata.get("properties") or {}).items() if name != _VERSION}
    return merged_metadata({**metadata, "properties": properties})


def _digest(metadata: Metadata | None, rule_set: RuleSet | None) -> bytes:
    """Return a digest that does not depend on how a registry formats the contract."""
    return fingerprint("", (), metadata, rule_set)


@dataclass(frozen=True, slots=True)
class Found:
    """A version that holds a schema; if `identical`, by identity, so the answer repeats the request."""

    entry: SchemaVersion
    identical: bool


def version_with(
    state: State,
    subject: Subject,
    request: SchemaRequest,
    *,
    normalize: bool,
    include_deleted: bool,
    visible: Visible = everything,
) -> Found:
    """Return the version of a subject that holds a schema.

    If a plain subject does not hold it, the subjects of the same name in other contexts are searched.

    Args:
        state: the State to search.
        subject: the subject.
        request: the schema.
        normalize: whether to compare normalized texts, even if the subject's configuration does not ask for it.
        include_deleted: whether to find soft-deleted versions.
        visible: which subjects of other contexts to search.

    Raises:
        RegistryError: 40401 if the subject does not exist; 40403 if no version holds the schema; 42201 if it is
            invalid.
        TooExpensive: if this takes too long.
    """
    request = request.started()
    if version := _version_with(state, subject, request, normalize, include_deleted):
        return version
    for namesake in namesakes(state, subject, visible):
        try:
            version = _version_with(state, namesake, request, normalize, include_deleted)
        except errors.TooExpensive:
            raise
        except errors.RegistryError:
            continue
        if version:
            return version
    versions_of(state, subject, include_deleted=include_deleted)
    raise errors.schema_not_found()


def _version_with(
    state: State, subject: Subject, request: SchemaRequest, normalize: bool, include_deleted: bool
) -> Found | None:
    """Look a schema up under the request's contract, then under the contract that its registration would have.

    The rules for new schemas do not apply: it may have been stored under looser ones. As in the reference, there is no
    second look-up if no version is live.
    """
    if not request.text.strip():
        return None
    config = config_in_force(state, subject)
    normalize = normalize or config.normalize
    candidate = parse_request(state, subject, request, strict=False, normalize=normalize, new=False)
    version, latest = find(state, subject, candidate, include_deleted=include_deleted), state.latest(subject)
    if version or latest is None:
        return version
    merged = merged_contract(request, latest, config)
    if merged == candidate.contract:
        return None
    return find(state, subject, candidate.under(merged), include_deleted=include_deleted)


def find(state: State, subject: Subject, candidate: Candidate, *, include_deleted: bool) -> Found | None:
    """Return the version of a subject that holds a schema: by identity, else the newest equal one; else None.

    Args:
        state: the State to search.
        subject: the subject.
        candidate: the parsed schema.
        include_deleted: whether to find soft-deleted versions.

    Raises:
        TooExpensive: if this takes too long.
    """
    known = state.id_of(context_of(subject), candidate.schema_type, candidate.digest)
    held = state.schema(context_of(subject), known) if known is not None else None
    if held and (entry := use_of(state, subject, held)) and (include_deleted or not entry.deleted):
        return Found(entry, identical=True)
    equal = equal_version(state, candidate, state.versions(subject, include_deleted=include_deleted))
    return Found(equal, identical=False) if equal else None


def equal_version(state: State, candidate: Candidate, versions: Sequence[SchemaVersion]) -> SchemaVersion | None:
    """Return the newest version that holds a schema by the weaker equality; None without a match.

    Args:
        state: the State that references are resolved in.
        candidate: the parsed schema.
        versions: the versions to search, oldest first.

    Raises:
        TooExpensive: if this takes too long.
    """
    equal = (
        entry
        for entry in alike(candidate, reversed(versions))
        if agrees(candidate.contract, entry) and equivalent(state, candidate, entry)
    )
    return next(equal, None)
