"""Data contracts: the metadata and rules of a new version, merged from request, latest version and settings.

Metadata and rules come from the request or else from the latest version, on top of the configuration's defaults and
below its overrides. The metadata property `confluent:version` says which version a schema was meant to be: each new
version updates it, and look-ups that do not name it ignore it.
"""

import re
from collections.abc import Mapping
from typing import Any

from strata.registry.core.effective_settings import EffectiveConfig
from strata.registry.core.rule_sets import PHASES
from strata.registry.core.schema_request import Contract, SchemaRequest
from strata.storage.fingerprint import fingerprint
from strata.storage.state import SchemaVersion

__all__ = [
    "agrees",
    "merged_contract",
    "merged_metadata",
    "merged_rules",
    "names_version",
    "property_of",
    "with_version",
    "without_version",
]

_VERSION = "confluent:version"
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")

_Object = Mapping[str, Any] | None


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


def merged_metadata(*layers: _Object) -> _Object:
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
    merged = {
        "tags": {path: sorted(names) for path, names in sorted(tags.items())},
        "properties": dict(sorted(properties.items())),
        "sensitive": sorted(sensitive),
    }
    return {name: value for name, value in merged.items() if value} or None


def merged_rules(*layers: _Object) -> _Object:
    """Merge rule sets by phase: a later rule replaces an earlier one of its name, and moves to the end."""
    if not any(layers):
        return None
    merged: dict[str, Any] = {}
    for layer in filter(None, layers):
        for phase in PHASES:
            rules = layer.get(phase) or []
            names = {rule.get("name") for rule in rules}
            merged[phase] = [rule for rule in merged.get(phase, ()) if rule.get("name") not in names] + list(rules)
        merged["enableAt"] = layer.get("enableAt") or merged.get("enableAt")
    return {name: value for name, value in merged.items() if value} or None


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


def property_of(metadata: _Object, name: str) -> str | None:
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


def _unversioned(metadata: _Object) -> _Object:
    if property_of(metadata, _VERSION) is None:
        return metadata
    properties = {name: value for name, value in (metadata or {})["properties"].items() if name != _VERSION}
    return merged_metadata({**(metadata or {}), "properties": properties})


def _digest(metadata: _Object, rule_set: _Object) -> bytes:
    """Return a digest that does not depend on how a registry formats the contract."""
    return fingerprint("", (), metadata, rule_set)
