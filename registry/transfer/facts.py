"""The content of a registry as plain facts, and their comparison.

A fact is a thing (a version, a configuration, a mode, a context, a record of an unknown kind) with properties.
Timestamps do not count, since a restored log has its own, and neither do the GUIDs of associations, which each registry
assigns itself. A copy holds exporters paused and without credentials, so neither of these counts.

Rules of this file: pure.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

from strata.registry.core.decide.exporters import at_rest
from strata.storage.log import Record
from strata.storage.record_json import RecordError, decode_key, properties_of
from strata.storage.records import AssociationValue, DekValue, ExporterValue, KekValue, guid_of
from strata.storage.state import SchemaVersion, State

__all__ = [
    "REGISTRY",
    "Difference",
    "Facts",
    "Thing",
    "differences",
    "facts_of",
    "is_unknown",
    "without_shown_defaults",
]

# (kind, name, version number or 0), which sorts in the natural order of a report.
Thing = tuple[str, str, int]
Facts = Mapping[Thing, Mapping[str, object]]

_LONGEST = 60
_LEVEL = "compatibilityLevel"
REGISTRY = "the registry"


@dataclass(frozen=True, slots=True)
class Difference:
    """A property with different values in A and B, or a thing that is `only_in` one of them."""

    thing: Thing
    property: str = ""
    a: object = None
    b: object = None
    only_in: str = ""

    def __str__(self) -> str:
        if self.only_in:
            return f"{_named(self.thing)}: only in {self.only_in}"
        values = f"{_shown(self.a, self.b)} in A, {_shown(self.b, self.a)} in B"
        return f"{_named(self.thing)}: {self.property} is {values}"

    def as_json(self) -> dict[str, object]:
        """Return the difference as JSON with full values."""
        noun, name, number = self.thing
        content: dict[str, object] = {"kind": noun, "name": name} | ({"version": number} if number else {})
        if self.only_in:
            return content | {"onlyIn": self.only_in}
        return content | {"property": self.property, "a": _jsonable(self.a), "b": _jsonable(self.b)}


def facts_of(
    state: State, records: Sequence[Record], guids: Mapping[tuple[str, int], str]
) -> dict[Thing, Mapping[str, object]]:
    """Return everything that a registry holds.

    Args:
        state: its State.
        records: its live records, for those that State does not know.
        guids: GUIDs by subject and version that replace the computed ones.
    """
    facts: dict[Thing, Mapping[str, object]] = {}
    for name, context in state.contexts.items():
        facts["context", name, 0] = {"highest id": context.high_water}
    for subject, versions in state.subjects.items():
        for number, entry in versions.items():
            facts["subject", subject, number] = _version(entry, guids.get((subject, number)))
    for scope, config in state.configs.items():
        facts["config of", _scope(scope), 0] = dict(config.fields)
    for scope, mode in state.modes.items():
        facts["mode of", _scope(scope), 0] = {"mode": mode}
    facts.update(_associations(state))
    facts.update(_keys(state))
    facts.update({("exporter", name, 0): _exporter(exporter) for name, exporter in state.exporters.items()})
    facts.update({("rule of access", repr(astuple(key)), 0): {} for key in state.acls})
    for record in records:
        if is_unknown(record.key):
            facts["record", record.key.decode("utf-8", "backslashreplace"), 0] = {"value": record.value}
    return facts


def without_shown_defaults(facts: Facts, other: Facts, unlisted: Collection[str]) -> dict[Thing, Mapping[str, object]]:
    """Return the facts of a service without values that may be defaults and that the other side lacks.

    A service shows a compatibility level even where none is set, and does not list things of `unlisted` kinds; those
    come from the other side.

    Args:
        facts: the facts of the service.
        other: the facts of the other side.
        unlisted: the kinds of things that the service does not list.
    """
    kept_facts: dict[Thing, Mapping[str, object]] = {}
    for thing, properties in facts.items():
        kept = dict(properties)
        theirs = other.get(thing, {})
        if thing[0] == "config of" and _LEVEL not in theirs and (thing in other or thing[1] == REGISTRY):
            kept.pop(_LEVEL, None)
            if not kept and thing not in other:
                continue
        kept_facts[thing] = kept
    kept_facts.update({thing: properties for thing, properties in other.items() if thing[0] in unlisted})
    return kept_facts


def differences(a: Facts, b: Facts) -> Iterator[Difference]:
    """Yield each property that differs between two registries, and each thing that only one of them has."""
    for thing in sorted({*a, *b}):
        if thing not in b:
            yield Difference(thing, only_in="A")
        elif thing not in a:
            yield Difference(thing, only_in="B")
        else:
            for name in sorted({*a[thing], *b[thing]}):
                mine, theirs = a[thing].get(name), b[thing].get(name)
                if not _same(mine, theirs):
                    yield Difference(thing, name, mine, theirs)


def _exporter(exporter: ExporterValue) -> dict[str, object]:
    """Return what an exporter copies, and where to; whether it rests, and its credentials, are not content."""
    kept = properties_of(at_rest(exporter))
    return {name: value for name, value in kept.items() if name != "paused"}


def _associations(state: State) -> Iterator[tuple[Thing, dict[str, object]]]:
    for key, association in state.associations.by_key.items():
        name = f"{key.resource_namespace}/{key.resource_name} {key.resource_type} {key.association_type}"
        yield ("association", f"{name} with {key.subject}", 0), _properties(association.value)


def _keys(state: State) -> Iterator[tuple[Thing, dict[str, object]]]:
    for name, kek in state.encryption_keys.keks.items():
        yield ("key encryption key", name, 0), _properties(kek)
    for kek_name, series in state.encryption_keys.deks.items():
        for (subject, algorithm), versions in series.items():
            for number, dek in versions.items():
                yield ("data encryption key", f"{algorithm} of {subject} under {kek_name}", number), _properties(dek)


def _properties(value: AssociationValue | KekValue | DekValue) -> dict[str, object]:
    return {name: property_ for name, property_ in properties_of(value).items() if name not in ("guid", "createTs")}


def _version(entry: SchemaVersion, guid: str | None) -> dict[str, object]:
    value = entry.schema.value
    return {
        "id": entry.schema.schema_id,
        "guid": guid or guid_of(entry.schema.fingerprint),
        "schemaType": entry.schema.schema_type,
        "schema": entry.schema.text,
        "references": [[r.name, r.subject, r.version] for r in value.references],
        "metadata": value.metadata or None,
        "ruleSet": value.rule_set or None,
        "deleted": entry.deleted,
    }


def is_unknown(key: bytes) -> bool:
    """Return whether a key is of a kind that State does not know."""
    try:
        decode_key(key)
    except RecordError:
        return True
    return False


def _scope(scope: str | None) -> str:
    return REGISTRY if scope is None else repr(scope)


def _named(thing: Thing) -> str:
    noun, name, number = thing
    shown = repr(name) if noun in ("subject", "context") else name
    return f"{noun} {shown}" + (f" version {number}" if number else "")


def _jsonable(value: object) -> object:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _same(a: object, b: object) -> bool:
    # 1 and True are equal in Python but not in JSON.
    return a == b and _text(a) == _text(b)


def _shown(value: object, other: object) -> str:
    """Return a value on one line, cut around the first difference from the other value."""
    text, rest = _text(value), _text(other)
    if len(text) <= _LONGEST:
        return text
    same = next((i for i, (x, y) in enumerate(zip(text, rest, strict=False)) if x != y), min(len(text), len(rest)))
    start = max(0, min(same - _LONGEST // 2, len(text) - _LONGEST))
    return ("…" if start else "") + text[start : start + _LONGEST] + ("…" if start + _LONGEST < len(text) else "")


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return repr(value)
    return "absent" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
