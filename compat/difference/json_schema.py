"""The edits between two JSON Schemas.

The walk goes through both documents side by side, through `$ref` into definitions and references, each pair of schemas
once. Addresses are the paths of the checker's findings: `$ref` and synthetic combinations are not steps.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from strata.compat.difference.edits import EditKind, Edits, below, changed
from strata.compat.entities import TAGS
from strata.compat.json_schema.documents import Documents, Place
from strata.compat.json_schema.json_text import Json, json_key, write_json
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import Limits
from strata.compat.result import Incompatibility
from strata.compat.schema import SchemaParseError

__all__ = ["addresses", "edits", "without_branches"]

_DOC: Final = frozenset({"title", "description", "$comment", "examples"})
_DEFINITIONS: Final = ("definitions", "$defs")
_MAPS: Final = {  # keywords whose values are schemas, or lists of names, by name; and the word in addresses
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "dependentRequired": "dependencies",
    "dependentSchemas": "dependencies",
}
_SCHEMAS: Final = (
    *("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains"),
    *("propertyNames", "not", "if", "then", "else"),
)
_LISTS: Final = {"items": "items", "prefixItems": "items"}
_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_CONSTRAINTS: Final = frozenset(
    {
        *("maxLength", "minLength", "pattern", "format", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"),
        *("multipleOf", "maxProperties", "minProperties", "maxItems", "minItems", "maxContains", "minContains"),
        *("uniqueItems", "contentEncoding", "contentMediaType"),
    }
)
_WALKED: Final = frozenset(
    {
        *("properties", "required", "type", "enum", "const", "default", "$ref"),
        *(*_DOC, TAGS, *_DEFINITIONS, *_MAPS, *_SCHEMAS, *_LISTS, *_COMBINED),
    }
)
_SYNTHETIC: Final = re.compile(r"/(?:allOf|anyOf|oneOf)/\d+")
_MOST_JUMPS: Final = 100  # from a `$ref` to the next one
_LONGEST_LIST: Final = 50  # values of an enum in the text of a type


class _Step(NamedTuple):
    """The previous schema and the new one, and their place."""

    before: Place
    after: Place
    at: str


def edits(previous: JsonSchema, new: JsonSchema, limits: Limits) -> Edits:
    """Return the edits from one schema to another.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Walk(previous.documents, new.documents, limits).run()


def addresses(finding: Incompatibility) -> tuple[str, ...]:
    """Return where a finding is, in the form of the edits' addresses."""
    path = finding.path.rstrip("/")
    return path, without_branches(path)


def without_branches(path: str) -> str:
    """Return a path without its steps into branches, which lead to the same value."""
    return _SYNTHETIC.sub("", path)


class _Walk:
    def __init__(self, previous: Documents, new: Documents, limits: Limits):
        self._previous = previous
        self._new = new
        self._limits = limits
        self._edits = Edits()
        self._seen: dict[tuple[int, int], str] = {}
        self._stack: list[_Step] = []

    def run(self) -> Edits:
        root = _Step(self._previous.root, self._new.root, "#")
        self._definitions(root)
        self._stack.append(root)
        while self._stack:
            self._limits.look_at_clock()
            before, after, at = self._stack.pop()
            self._schemas(_follow(before, self._previous), _follow(after, self._new), at)
        return self._edits

    def _definitions(self, root: _Step) -> None:
        """Note definitions that only one schema has; put the others on the stack, for those that nothing uses."""
        for word in _DEFINITIONS:
            ours, theirs = (_mapping(place.value, word) for place in root[:2])
            for name in dict.fromkeys((*theirs, *ours)):
                at = below(f"#/{word}", f"/{name}")
                if name not in theirs:
                    self._edits.add(EditKind.TYPE_REMOVED, at, at, name, before=_text(ours[name]))
                elif name not in ours:
                    self._edits.add(EditKind.TYPE_ADDED, at, at, name, after=_text(theirs[name]))
                else:
                    self._push(root, ours[name], theirs[name], at)

    def _push(self, above: _Step, before: Json, after: Json, at: str) -> None:
        self._stack.append(_Step(_inside(above.before, before), _inside(above.after, after), at))

    def _schemas(self, before: Place, after: Place, at: str) -> None:
        ours, theirs = before.value, after.value
        pair = id(ours), id(theirs)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            if pair in self._seen:
                self._edits.again_old[at] = self._edits.again_new[at] = self._seen[pair]
            else:
                self._seen[pair] = at
                self._objects(_Step(before, after, at), ours, theirs)
        elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
            self._edits.add(EditKind.TYPE_CHANGED, at, at, "", _text(ours), _text(theirs))

    def _objects(self, step: _Step, before: dict[str, Json], after: dict[str, Json]) -> None:
        at = step.at
        self._keywords(before, after, at)
        self._types(before, after, at)
        self._required(before, after, at)
        for word in _COMBINED:
            self._combined(step, word, _list(before, word), _list(after, word))
        for word in _MAPS:
            self._maps(step, word, _mapping(before, word), _mapping(after, word))
        for word in _SCHEMAS:
            self._inner(step, word, before, after)
        for word, name in _LISTS.items():
            self._tuples(step, name, _list(before, word), _list(after, word))
        self._properties(step, _mapping(before, "properties"), _mapping(after, "properties"))

    def _keywords(self, before: dict[str, Json], after: dict[str, Json], at: str) -> None:
        texts = [{word: write_json(side[word]) for word in side if word not in _WALKED} for side in (before, after)]
        for word, was, becomes in changed(*texts):
            if word in _CONSTRAINTS:
                self._edits.add(EditKind.CONSTRAINT_CHANGED, f"{at}/{word}", f"{at}/{word}", word, was, becomes)
            else:
                self._edits.add(EditKind.ATTRIBUTE_CHANGED, at, at, word, was, becomes)
        docs = [{word: _plain(side[word]) for word in side if word in _DOC} for side in (before, after)]
        for word, was, becomes in changed(*docs):
            self._edits.add(EditKind.DOC_CHANGED, at, at, word, was, becomes)
        tags = [write_json(side[TAGS]) if TAGS in side else None for side in (before, after)]
        if tags[0] != tags[1]:
            self._edits.add(EditKind.TAGS_CHANGED, at, at, TAGS, tags[0], tags[1])
        defaults = [write_json(side["default"]) if "default" in side else None for side in (before, after)]
        self._edits.default(defaults[0], defaults[1], at, at)

    def _types(self, before: dict[str, Json], after: dict[str, Json], at: str) -> None:
        ours, theirs = (_names(side.get("type")) for side in (before, after))
        if set(ours) != set(theirs):
            texts = (" | ".join(names) or "anything" for names in (ours, theirs))
            self._edits.add(EditKind.TYPE_CHANGED, at, at, "type", *texts)
        self._enums(_values(before), _values(after), f"{at}/enum")
        constants = [json_key(side["const"]) if "const" in side else None for side in (before, after)]
        if constants[0] != constants[1]:
            self._edits.add(EditKind.CONSTRAINT_CHANGED, f"{at}/const", f"{at}/const", "const", *constants)

    def _enums(self, before: dict[str, None] | None, after: dict[str, None] | None, at: str) -> None:
        if before is None or after is None:
            if before is not after:
                shown = (None if values is None else _shortened(values) for values in (before, after))
                self._edits.add(EditKind.CONSTRAINT_CHANGED, at, at, "enum", *shown)
            return
        for value in before:
            if value not in after:
                self._edits.add(EditKind.SYMBOL_REMOVED, at, at, value, before=value)
        for value in after:
            if value not in before:
                self._edits.add(EditKind.SYMBOL_ADDED, at, at, value, after=value)

    def _required(self, before: dict[str, Json], after: dict[str, Json], at: str) -> None:
        """Note the properties of both schemas that only one of them requires."""
        ours, theirs = (dict.fromkeys(_names(side.get("required"))) for side in (before, after))
        properties, others = (_mapping(side, "properties") for side in (before, after))
        for name in dict.fromkeys((*theirs, *ours)):
            if (name in ours) != (name in theirs) and (name in properties) == (name in others):
                words = ("required" if name in names else "optional" for names in (ours, theirs))
                place = below(f"{at}/required", f"/{name}")
                self._edits.add(EditKind.REQUIRED_CHANGED, place, place, name, *words)

    def _combined(self, step: _Step, word: str, before: Sequence[Json], after: Sequence[Json]) -> None:
        """Pair equal branches, then the others in order."""
        ours, theirs = ({json_key(branch): branch for branch in branches} for branches in (before, after))
        left = [branch for key, branch in ours.items() if key not in theirs]
        right = [branch for key, branch in theirs.items() if key not in ours]
        for number, (old, new) in enumerate(zip(left, right, strict=False)):
            self._push(step, old, new, f"{step.at}/{word}/{number}")
        for branch in left[len(right) :]:
            self._edits.add(EditKind.BRANCH_REMOVED, step.at, step.at, word, before=_text(branch))
        for branch in right[len(left) :]:
            self._edits.add(EditKind.BRANCH_ADDED, step.at, step.at, word, after=_text(branch))

    def _maps(self, step: _Step, word: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> None:
        for name in dict.fromkeys((*after, *before)):
            self._values(
                step, word, f"{below(f'{step.at}/{_MAPS[word]}', f'/{name}')}", before.get(name), after.get(name)
            )

    def _inner(self, step: _Step, word: str, before: dict[str, Json], after: dict[str, Json]) -> None:
        ours, theirs = before.get(word), after.get(word)
        if isinstance(ours, list) or isinstance(theirs, list):
            return
        if word == "items" and ("prefixItems" in before or "prefixItems" in after):
            word = "additionalItems"  # as the rules call the schema of further items
        if word == "contains" and (ours is None or theirs is None):
            word = "minContains"  # the bound that the rules compare
        self._values(step, word, f"{step.at}/{word}", ours, theirs)

    def _values(self, step: _Step, word: str, at: str, before: Json, after: Json) -> None:
        """Compare two schemas, or two values of which at least one is not an object."""
        if isinstance(before, dict) and isinstance(after, dict):
            self._push(step, before, after, at)
        elif before != after or isinstance(before, bool) != isinstance(after, bool):
            texts = (None if value is None else _text(value) for value in (before, after))
            self._edits.add(EditKind.CONSTRAINT_CHANGED, at, at, word, *texts)

    def _tuples(self, step: _Step, word: str, before: Sequence[Json], after: Sequence[Json]) -> None:
        for number in range(max(len(before), len(after))):
            place = f"{step.at}/{word}/{number}"
            if number >= len(before):
                self._edits.add(EditKind.FIELD_ADDED, place, place, str(number), after=_text(after[number]))
            elif number >= len(after):
                self._edits.add(EditKind.FIELD_REMOVED, place, place, str(number), before=_text(before[number]))
            else:
                self._push(step, before[number], after[number], place)

    def _properties(self, step: _Step, before: Mapping[str, Json], after: Mapping[str, Json]) -> None:
        required = [
            frozenset(_names(place.value.get("required"))) for place in step[:2] if isinstance(place.value, dict)
        ]
        for name in reversed(dict.fromkeys((*after, *before))):
            place = below(f"{step.at}/properties", f"/{name}")
            if name in before and name in after:
                self._push(step, before[name], after[name], place)
            elif name in after:
                text = _text(after[name]) + ", required" * (name in required[1])
                self._edits.add(EditKind.FIELD_ADDED, place, place, name, after=text)
            else:
                text = _text(before[name]) + ", required" * (name in required[0])
                self._edits.add(EditKind.FIELD_REMOVED, place, place, name, before=text)


def _inside(above: Place, value: Json) -> Place:
    own = value.get(above.dialect.id_keyword) if isinstance(value, dict) else None
    base = Documents.join(above.base, own) if isinstance(own, str) else above.base
    return above._replace(value=value, base=base, root=False)


def _follow(place: Place, documents: Documents) -> Place:
    """Return the schema at the end of a chain of references; one with other keywords beside `$ref` ends it."""
    for _ in range(_MOST_JUMPS):
        value = place.value
        if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
            return place
        if place.dialect.modern and not value.keys() <= {"$ref", *_DOC}:
            return place
        try:
            place = documents.resolve(str(value["$ref"]), place)
        except SchemaParseError:
            return place
    return place


def _mapping(value: Json, word: str) -> Mapping[str, Json]:
    inner = value.get(word) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _list(value: Mapping[str, Json], word: str) -> Sequence[Json]:
    inner = value.get(word)
    return inner if isinstance(inner, list) else ()


def _names(value: Json) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else ()


def _values(value: Mapping[str, Json]) -> dict[str, None] | None:
    values = value.get("enum")
    return dict.fromkeys(map(json_key, values)) if isinstance(values, list) else None


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else write_json(value)


def _text(value: Json) -> str:
    """Return a schema in a word or two for people."""
    if isinstance(value, bool):
        return "anything" if value else "nothing"
    if not isinstance(value, dict):
        return write_json(value)
    if isinstance(value.get("$ref"), str):
        return str(value["$ref"]).rpartition("/")[2] or str(value["$ref"])
    if names := _names(value.get("type")):
        return " | ".join(names)
    if (values := _values(value)) is not None:
        return _shortened(values)
    if "const" in value:
        return json_key(value["const"])
    word = next((word for word in _COMBINED if _list(value, word)), None)
    return f"{word} of {len(_list(value, word))}" if word else "anything"


def _shortened(values: Iterable[str]) -> str:
    shown = list(values)
    return ", ".join(shown[:_LONGEST_LIST] + ["…"] * (len(shown) > _LONGEST_LIST))
