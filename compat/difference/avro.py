"""The edits between two Avro schemas.

The walk goes through both schemas side by side, as the checker does: from the root along the fields, each pair of named
types once. Its addresses are the `where` of the checker's findings.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from strata.compat.avro.json_text import write_json
from strata.compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    FixedType,
    Json,
    MapType,
    Missing,
    NamedType,
    Node,
    PrimitiveType,
    Properties,
    RecordType,
    Reference,
    UnionType,
    resolve,
)
from strata.compat.difference.edits import Edit, EditKind, Edits, below, cut
from strata.compat.entities import TAGS
from strata.compat.limits import Limits
from strata.compat.result import Incompatibility

__all__ = ["PREFERRED", "addresses", "edits"]

_LONGEST_UNION: Final = 50  # branches in the text of a type
_LOGICAL: Final = frozenset({"logicalType", "precision", "scale"})
_Step: TypeAlias = tuple[Node, Node, str, str]  # the previous type and the new one, with their addresses

# The edits that can be the reason of a finding, by its kind; any edit can where the kind is missing.
_ONE_SIDED: Final = frozenset(
    {EditKind.FIELD_ADDED, EditKind.FIELD_REMOVED, EditKind.FIELD_RENAMED, EditKind.DEFAULT_REMOVED}
)
_TYPES: Final = frozenset({EditKind.TYPE_CHANGED, EditKind.BRANCH_ADDED, EditKind.BRANCH_REMOVED})
PREFERRED: Final = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": _ONE_SIDED,
    "TYPE_MISMATCH": _TYPES,
    "MISSING_UNION_BRANCH": _TYPES,
    "NAME_MISMATCH": frozenset({EditKind.TYPE_RENAMED}),
    "MISSING_ENUM_SYMBOLS": frozenset({EditKind.SYMBOL_ADDED, EditKind.SYMBOL_REMOVED}),
    "FIXED_SIZE_MISMATCH": frozenset({EditKind.CONSTRAINT_CHANGED}),
}


def edits(previous: AvroSchema, new: AvroSchema, limits: Limits) -> Edits:
    """Return the edits from one schema to another.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Walk(previous, new, limits).run()


def addresses(finding: Incompatibility) -> tuple[str, ...]:
    """Return where a finding is, in the form of the edits' addresses."""
    return (finding.where,)


class _Walk:
    def __init__(self, previous: AvroSchema, new: AvroSchema, limits: Limits):
        self._previous = previous
        self._new = new
        self._limits = limits
        self._edits = Edits()
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}  # pairs of named types, with their first addresses
        self._stack: list[_Step] = []

    def run(self) -> Edits:
        self._stack = [(self._previous.root, self._new.root, "", "")]
        while self._stack:
            self._limits.look_at_clock()
            before, after, old, new = self._stack.pop()
            self._types(resolve(before, self._previous.names), resolve(after, self._new.names), old, new)
        self._one_sided_types()
        return self._edits

    def _one_sided_types(self) -> None:
        """Add the types that only one schema defines, without addresses; a renamed type is in both."""
        gone, came = (set(schema.names) - schema.external for schema in (self._previous, self._new))
        for name in sorted(gone - self._new.names.keys() - {old for old, _ in self._pairs}):
            self._edits.kept.append(Edit(EditKind.TYPE_REMOVED, cut(name), before=self._previous.names[name].kind))
        for name in sorted(came - self._previous.names.keys() - {new for _, new in self._pairs}):
            self._edits.kept.append(Edit(EditKind.TYPE_ADDED, cut(name), after=self._new.names[name].kind))

    def _types(self, before: Node, after: Node, old: str, new: str) -> None:
        if isinstance(before, UnionType) or isinstance(after, UnionType):
            self._unions(before, after, old, new)
        elif before.kind != after.kind:
            self._retyped(before, after, old, new)
        elif isinstance(before, NamedType) and isinstance(after, NamedType):
            self._named(before, after, old, new)
        else:
            self._attributes(before, after, old, new)
            if isinstance(before, ArrayType) and isinstance(after, ArrayType):
                self._stack.append((before.items, after.items, below(old, "[]"), below(new, "[]")))
            if isinstance(before, MapType) and isinstance(after, MapType):
                self._stack.append((before.values, after.values, below(old, "{}"), below(new, "{}")))

    def _retyped(self, before: Node, after: Node, old: str, new: str) -> None:
        self._edits.add(EditKind.TYPE_CHANGED, old, new, before=_text(before), after=_text(after))

    def _attributes(self, before: Node, after: Node, old: str, new: str) -> None:
        ours, theirs = (getattr(node, "properties", {}) for node in (before, after))
        if ours or theirs:
            self._logical_types(before, after, old, new)
            self._properties(_others(ours), _others(theirs), old, new)

    def _logical_types(self, before: Node, after: Node, old: str, new: str) -> None:
        texts = _logical_text(before), _logical_text(after)
        if texts[0] != texts[1]:
            self._edits.add(EditKind.LOGICAL_TYPE_CHANGED, old, new, "", *texts)

    def _properties(self, before: Properties, after: Properties, old: str, new: str) -> None:
        ours, theirs = (
            {name: write_json(value) for name, value in properties.items()} for properties in (before, after)
        )
        tags = ours.pop(TAGS, None), theirs.pop(TAGS, None)
        if tags[0] != tags[1]:
            self._edits.add(EditKind.TAGS_CHANGED, old, new, TAGS, *tags)
        self._edits.attributes(ours, theirs, old, new)

    def _unions(self, before: Node, after: Node, old: str, new: str) -> None:
        ours, theirs = _branches(before), _branches(after)
        left, paired = self._paired(ours, theirs)
        self._stack += [(mine, other_branch, old, new) for mine, other_branch in reversed(paired)]
        if not isinstance(before, UnionType) or not isinstance(after, UnionType):
            self._retyped(before, after, old, new)
            return
        for branch in ours:
            if id(branch) not in left:
                self._edits.add(EditKind.BRANCH_REMOVED, old, new, _text(branch), before=_text(branch))
        matched = set(left.values())
        for branch in theirs:
            if id(branch) not in matched:
                self._edits.add(EditKind.BRANCH_ADDED, old, new, _text(branch), after=_text(branch))
        order = [left[id(branch)] for branch in ours if id(branch) in left]
        if order != [id(branch) for branch in theirs if id(branch) in matched]:
            self._edits.add(EditKind.ORDER_CHANGED, old, new, before=_text(before), after=_text(after))

    def _paired(self, ours: Sequence[Node], theirs: Sequence[Node]) -> tuple[dict[int, int], list[tuple[Node, Node]]]:
        """Match branches: by name or alias if they have one, else by kind; return the ids of pairs, and the pairs."""
        branches = {_key(resolve(branch, self._previous.names)): branch for branch in ours}
        pairs: list[tuple[Node, Node]] = []
        for branch in theirs:
            node = resolve(branch, self._new.names)
            keys = (
                [_key(node), *(alias.full for alias in node.aliases)] if isinstance(node, NamedType) else [_key(node)]
            )
            match = next((branches.pop(key) for key in keys if key in branches), None)
            if match is not None:
                pairs.append((match, branch))
        return {id(mine): id(other) for mine, other in pairs}, pairs

    def _named(self, before: NamedType, after: NamedType, old: str, new: str) -> None:
        key = before.name.full, after.name.full
        if key in self._pairs:
            self._edits.again_old[old], self._edits.again_new[new] = self._pairs[key]
            return
        self._pairs[key] = old, new
        self._names(before, after, old, new)
        self._doc(before.doc, after.doc, old, new)
        self._aliases([alias.full for alias in before.aliases], [alias.full for alias in after.aliases], old, new)
        self._logical_types(before, after, old, new)
        self._properties(_others(before.properties), _others(after.properties), old, new)
        if isinstance(before, EnumType) and isinstance(after, EnumType):
            self._enums(before, after, old, new)
        elif isinstance(before, FixedType) and isinstance(after, FixedType):
            if before.size != after.size:
                self._edits.add(EditKind.CONSTRAINT_CHANGED, old, new, "size", str(before.size), str(after.size))
        elif isinstance(before, RecordType) and isinstance(after, RecordType):
            self._records(before, after, old, new)

    def _names(self, before: NamedType, after: NamedType, old: str, new: str) -> None:
        if before.name != after.name:
            is_renamed = before.name.simple != after.name.simple
            change = EditKind.TYPE_RENAMED if is_renamed else EditKind.NAMESPACE_CHANGED
            self._edits.add(change, old, new, "name", before.name.full, after.name.full)

    def _doc(self, before: str | None, after: str | None, old: str, new: str) -> None:
        if before != after:
            self._edits.add(EditKind.DOC_CHANGED, old, new, "doc", before, after)

    def _aliases(self, before: Sequence[str], after: Sequence[str], old: str, new: str) -> None:
        if set(before) != set(after):
            self._edits.add(EditKind.ALIASES_CHANGED, old, new, "aliases", ", ".join(before), ", ".join(after))

    def _enums(self, before: EnumType, after: EnumType, old: str, new: str) -> None:
        ours, theirs = dict.fromkeys(before.symbols), dict.fromkeys(after.symbols)
        for symbol in ours:
            if symbol not in theirs:
                self._edits.add(EditKind.SYMBOL_REMOVED, old, new, symbol, before=symbol)
        for symbol in theirs:
            if symbol not in ours:
                self._edits.add(EditKind.SYMBOL_ADDED, old, new, symbol, after=symbol)
        self._order([name for name in ours if name in theirs], [name for name in theirs if name in ours], old, new)
        self._edits.default(before.default, after.default, old, new)

    def _order(self, before: Sequence[str], after: Sequence[str], old: str, new: str) -> None:
        if before != after:
            self._edits.add(EditKind.ORDER_CHANGED, old, new, before=_listed(before), after=_listed(after))

    def _records(self, before: RecordType, after: RecordType, old: str, new: str) -> None:
        if before.is_error != after.is_error:
            kinds = ("error" if record.is_error else "record" for record in (before, after))
            self._edits.add(EditKind.ATTRIBUTE_CHANGED, old, new, "type", *kinds)
        sources = _sources(before, after)
        steps: list[_Step] = []
        for field in after.fields:
            source = sources.get(field.name)
            at = below(new, f".{field.name}").removeprefix(".")
            if source is None:
                self._edits.add(EditKind.FIELD_ADDED, None, at, field.name, after=_described(field))
            elif source.text is None or source.text != field.text:
                was = below(old, f".{source.name}").removeprefix(".")
                self._fields(source, field, was, at)
                steps.append((source.type, field.type, was, at))
        kept = {source.name for source in sources.values()}
        for field in before.fields:
            if field.name not in kept:
                at = below(old, f".{field.name}").removeprefix(".")
                self._edits.add(EditKind.FIELD_REMOVED, at, None, field.name, before=_described(field))
        names = [sources[field.name].name for field in after.fields if field.name in sources]
        self._order([field.name for field in before.fields if field.name in kept], names, old, new)
        self._stack += reversed(steps)

    def _fields(self, before: Field, after: Field, old: str, new: str) -> None:
        if before.name != after.name:
            self._edits.add(EditKind.FIELD_RENAMED, old, new, after.name, before.name, after.name)
        self._edits.default(_default(before), _default(after), old, new)
        self._doc(before.doc, after.doc, old, new)
        self._aliases(before.aliases, after.aliases, old, new)
        if before.order != after.order:
            self._edits.add(EditKind.ATTRIBUTE_CHANGED, old, new, "order", before.order, after.order)
        self._properties(before.properties, after.properties, old, new)


def _sources(before: RecordType, after: RecordType) -> dict[str, Field]:
    """Return, by the name of a new field, the field that it was: of the same name, else by an alias on either side."""
    names = before.by_name
    sources = {field.name: names[field.name] for field in after.fields if field.name in names}
    free = {field.name: field for field in before.fields if field.name not in sources}
    known_as = {alias: field for field in free.values() for alias in field.aliases}
    for field in after.fields:
        if field.name in sources or not free:
            continue
        source = next((free[alias] for alias in field.aliases if alias in free), known_as.get(field.name))
        if source is not None and source.name in free:
            sources[field.name] = free.pop(source.name)
    return sources


def _branches(node: Node) -> Sequence[Node]:
    return node.branches if isinstance(node, UnionType) else (node,)


def _key(node: Node) -> str:
    return node.name.full if isinstance(node, NamedType) else node.kind


def _default(field: Field) -> str | None:
    return None if isinstance(field.default, Missing) else write_json(field.default)


def _described(field: Field) -> str:
    default = _default(field)
    return _text(field.type) if default is None else f"{_text(field.type)} = {default}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _text(node: Node) -> str:
    """Return a type for people: a named type by its name."""
    if isinstance(node, UnionType):
        shown = [_text(branch) for branch in node.branches[:_LONGEST_UNION]]
        text = " | ".join(shown + ["…"] * (len(node.branches) > _LONGEST_UNION))
        return text if len(shown) > 1 else f"union [{text}]"
    if isinstance(node, ArrayType):
        return f"array<{_text(node.items)}>"
    if isinstance(node, MapType):
        return f"map<{_text(node.values)}>"
    if isinstance(node, Reference):
        return node.full
    if isinstance(node, PrimitiveType):
        logical = _logical_text(node)
        return node.kind if logical is None else f"{node.kind} ({logical})"
    return node.name.full


def _logical_text(node: Node) -> str | None:
    """Return the logical type of a type as its schema has it, whether or not readers apply it."""
    properties: Properties = getattr(node, "properties", {})
    logical: Json = properties.get("logicalType")
    if logical == "decimal":
        return f"decimal {properties.get('precision')}, {properties.get('scale', 0)}"
    return logical if isinstance(logical, str) else None


def _others(properties: Properties) -> Properties:
    """Return the attributes that do not belong to a logical type."""
    if not isinstance(properties.get("logicalType"), str):
        return properties
    return {name: value for name, value in properties.items() if name not in _LOGICAL}
