"""The contract of a new version: its metadata and rules, put together from the request, the past and the settings.

Metadata and rules are those of the request or else of the latest version, on top of the defaults of the configuration
and below its overrides. The property `confluent:version` of the metadata says which version a schema was meant to be;
it is kept up to date, and a schema that does not ask for it is found whatever it says.
"""

from collections.abc import Mapping
from typing import Any

from registry.rule_sets import PHASES
from registry.schemas import Contract, SchemaRequest
from storage.fingerprint import fingerprint
from storage.state import SchemaVersion

__all__ = [
    "agrees",
    "has_defaults_or_overrides",
    "merged_contract",
    "merged_metadata",
    "merged_rules",
    "names_version",
    "property_of",
    "with_version",
    "without_version",
]

_VERSION = "confluent:version"
_LAYERS = ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet")

_Object = Mapping[str, Any] | None


def merged_contract(request: SchemaRequest, previous: SchemaVersion | None, config: Mapping[str, Any]) -> Contract:
    """Return the metadata and rules that a request leads to."""
    before = previous.schema.value if previous else None
    metadata = request.metadata if request.metadata is not None or before is None else before.metadata
    rule_set = request.rule_set if request.rule_set is not None or before is None else before.rule_set
    first_metadata, last_metadata, first_rules, last_rules = (_object(config.get(name)) for name in _LAYERS)
    return Contract(
        merged_metadata(first_metadata, metadata, last_metadata), merged_rules(first_rules, rule_set, last_rules)
    )


def has_defaults_or_overrides(config: Mapping[str, Any]) -> bool:
    """Tell whether a configuration adds to what requests bring."""
    return any(config.get(name) for name in _LAYERS)


def merged_metadata(*layers: _Object) -> _Object:
    """Merge metadata, a later layer over an earlier one: tags and sensitive names add up, a later property wins."""
    tags: dict[str, set[str]] = {}
    properties: dict[str, str] = {}
    sensitive: set[str] = set()
    for layer in filter(None, layers):
        for path, names in (layer.get("tags") or {}).items():
            tags.setdefault(path, set()).update(names)
        properties |= layer.get("properties") or {}
        sensitive.update(layer.get("sensitive") or ())
    merged = {
        "tags": {path: sorted(names) for path, names in sorted(tags.items())},
        "properties": dict(sorted(properties.items())),
        "sensitive": sorted(sensitive),
    }
    return {name: value for name, value in merged.items() if value} or None


def merged_rules(*layers: _Object) -> _Object:
    """Merge rule sets phase by phase: a later rule takes the place of the earlier one of its name, at the end."""
    merged: dict[str, Any] = {}
    for layer in filter(None, layers):
        for phase in PHASES:
            rules = layer.get(phase) or []
            names = {rule.get("name") for rule in rules}
            merged[phase] = [rule for rule in merged.get(phase, ()) if rule.get("name") not in names] + list(rules)
        merged["enableAt"] = layer.get("enableAt") or merged.get("enableAt")
    return {name: value for name, value in merged.items() if value} or None


def with_version(contract: Contract, version: int) -> Contract:
    """Return a contract whose metadata names a version."""
    metadata = merged_metadata(contract.metadata, {"properties": {_VERSION: str(version)}})
    return Contract(metadata, contract.rule_set)


def without_version(contract: Contract) -> Contract:
    """Return a contract whose metadata names no version."""
    return Contract(_unversioned(contract.metadata), contract.rule_set)


def names_version(contract: Contract) -> bool:
    """Tell whether a contract's metadata names a version."""
    return property_of(contract.metadata, _VERSION) is not None


def property_of(metadata: _Object, name: str) -> str | None:
    """Return a property of some metadata."""
    properties = (metadata or {}).get("properties") or {}
    return properties.get(name)


def agrees(contract: Contract, entry: SchemaVersion) -> bool:
    """Tell whether a version has a contract, `confluent:version` left aside.

    A contract that names a version agrees with that version only, whether its metadata names it or not.
    """
    value, asked = entry.schema.value, property_of(contract.metadata, _VERSION)
    if contract == Contract(value.metadata, value.rule_set):
        return True
    if asked is not None and asked != str(entry.version):
        return False
    ours, theirs = _unversioned(contract.metadata), _unversioned(value.metadata)
    return _digest(ours, contract.rule_set) == _digest(theirs, value.rule_set)


def _unversioned(metadata: _Object) -> _Object:
    if property_of(metadata, _VERSION) is None:
        return metadata
    properties = {name: value for name, value in (metadata or {})["properties"].items() if name != _VERSION}
    return merged_metadata({**(metadata or {}), "properties": properties})


def _object(value: Any) -> _Object:
    """What another registry's log may have put in a field's place counts as nothing."""
    return value if isinstance(value, Mapping) else None


def _digest(metadata: _Object, rule_set: _Object) -> bytes:
    """Equal for what means the same, however another registry may have written it."""
    return fingerprint("", (), metadata, rule_set)
