"""The decision whether two texts are one version of a subject.

They are if their canonical texts are equal, including the order of keys. A text is also the same version as a stored
one if, in place of a `$ref`, it writes out the registered reference (or the part of it) to which the `$ref` leads.
"""

from collections.abc import Iterator

from strata.compat.json_schema.documents import NOT_SCHEMAS, Documents, Place
from strata.compat.json_schema.json_text import Json, write_json
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.schema import SchemaParseError

__all__ = ["equivalent"]


def equivalent(left: JsonSchema, right: JsonSchema, *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether two schemas are one version of a subject.

    Args:
        left: The new schema, which may write out references of the stored one.
        right: The stored schema.
        limits: Bounds on time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    if left.canonical == right.canonical:
        return True
    return right.documents.has_references and _written_out(left.json, right.documents, limits)


def _written_out(text: Json, documents: Documents, limits: Limits) -> bool:
    """Walk both at once, so that the walk is no longer than the text, even if references form cycles."""
    work = [(text, documents.root)]
    while work:
        limits.look_at_clock()
        ours, place = work.pop()
        try:
            theirs = _target(place, documents)
        except SchemaParseError:
            return False
        if isinstance(ours, dict) and isinstance(theirs.value, dict):
            if ours.keys() != theirs.value.keys():
                return False
        elif isinstance(ours, list) and isinstance(theirs.value, list):
            if len(ours) != len(theirs.value):
                return False
        elif isinstance(ours, dict | list) or write_json(ours) != write_json(theirs.value):
            return False
        for part, inner, is_data in _parts(ours, theirs, documents):
            if not is_data:
                work.append((part, inner))
            elif write_json(part, sort=True) != write_json(inner.value, sort=True):
                return False
    return True


def _parts(ours: Json, theirs: Place, documents: Documents) -> Iterator[tuple[Json, Place, bool]]:
    """Yield the parts of both, and whether a part is a value and not a schema."""
    if isinstance(ours, list) and isinstance(theirs.value, list):
        for part, inner in zip(ours, theirs.value, strict=True):
            yield part, theirs._replace(value=inner, root=False), False
    if isinstance(ours, dict) and isinstance(theirs.value, dict):
        own = theirs.value.get(theirs.dialect.id_keyword)
        base = documents.join(theirs.base, own) if isinstance(own, str) and not theirs.root else theirs.base
        for key, inner in theirs.value.items():
            yield ours[key], theirs._replace(value=inner, base=base, root=False), key in NOT_SCHEMAS


def _target(place: Place, documents: Documents) -> Place:
    """Follow a chain of `$ref` as long as it does not lead into the schema itself.

    Raises:
        SchemaParseError: The chain leads to no schema, or is a cycle.
    """
    seen: set[int] = set()
    while isinstance(place.value, dict) and place.value.keys() == {"$ref"}:
        reference = place.value["$ref"]
        if not isinstance(reference, str):
            return place
        target = documents.resolve(reference, place)
        if target.document == 0:
            return place
        if id(target.value) in seen:
            raise SchemaParseError("a circle of references")
        seen.add(id(target.value))
        place = target
    return place
