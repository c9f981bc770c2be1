"""Avro schema texts as a graph of nodes with every name resolved.

What a registry holds must be readable, so the parser is lenient where the wire does not depend on it: names may come
before their definition, a logical type that does not fit its type is ignored, defaults are not parsed, comments are
skipped. `compat` and the registry decide whether a schema is valid.

Rules of this file: text in, nodes out; nothing about bytes or values. Nodes compare by identity and may form cycles,
always through a record.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from strata.compat.avro.model import make_name
from strata.serdes.errors import SchemaError, wrong_schema

__all__ = [
    "MISSING",
    "Array",
    "Enum",
    "Field",
    "Fixed",
    "Kind",
    "Logical",
    "Map",
    "Named",
    "Node",
    "Primitive",
    "Record",
    "Union",
    "describe",
    "node_of",
    "parse",
]

MAX_NESTING = 120
"""How deep types may nest in a schema text."""

MISSING: object = object()
"""The default of a field without a default; None is the default null."""


class Kind(StrEnum):
    """The primitive types."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type that fits its underlying type; precision and scale are those of a decimal."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(eq=False, slots=True)
class Primitive:
    """A primitive type."""

    kind: Kind
    logical: Logical | None = None


@dataclass(eq=False, slots=True)
class Named:
    """The common part of record, enum and fixed."""

    name: str
    aliases: tuple[str, ...] = ()

    @property
    def simple_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]


@dataclass(eq=False, slots=True)
class Fixed(Named):
    """A fixed number of bytes."""

    size: int = 0
    logical: Logical | None = None


@dataclass(eq=False, slots=True)
class Enum(Named):
    """An enum."""

    symbols: tuple[str, ...] = ()
    default: str | None = None


@dataclass(eq=False, slots=True)
class Field:
    """A field of a record.

    Attributes:
        name: its name.
        type: its type.
        aliases: its former names.
        default: the JSON value of the text, `MISSING` if it has none.
        tags: its `confluent:tags`.
        doc: its documentation; empty if it has none.
    """

    name: str
    type: "Node"
    aliases: tuple[str, ...] = ()
    default: object = MISSING
    tags: frozenset[str] = frozenset()
    doc: str = ""


@dataclass(eq=False, slots=True)
class Record(Named):
    """A record."""

    fields: list[Field] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Array:
    """An array."""

    items: "Node"


@dataclass(eq=False, slots=True)
class Map:
    """A map with string keys."""

    values: "Node"


@dataclass(eq=False, slots=True)
class Union:
    """A union of types."""

    branches: tuple["Node", ...]


Node = Primitive | Fixed | Enum | Record | Array | Map | Union

_LOGICAL_TYPES: dict[Kind, tuple[str, ...]] = {
    Kind.INT: ("date", "time-millis"),
    Kind.LONG: (
        *("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"),
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    ),
    Kind.STRING: ("uuid",),
    Kind.BYTES: ("decimal",),
}
_PRIMITIVES = frozenset(Kind)
_UUID_SIZE = 16
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)', re.DOTALL)
"""A string (kept) or a comment; an unclosed one ends with the text, so that nothing is scanned twice."""


def parse(text: str, references: Sequence[str] = ()) -> Node:
    """Parse a schema text into its root node.

    Args:
        text: the schema, as JSON; comments are allowed.
        references: the texts of the schemas that define the names it uses but does not define.

    Raises:
        SchemaError: If the text is not JSON, is nested too deeply, lacks a part or uses an undefined name.
        TypeError: If the text is not a str.
    """
    try:
        return _Parser(_load(text), [_load(reference) for reference in references]).root
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None


def describe(node: Node) -> str:
    """Return the name of a type for error messages, such as `record shop.Order`."""
    match node:
        case Primitive(logical=Logical(name=name)):
            return f"{node.kind} ({name})"
        case Primitive():
            return str(node.kind)
        case Named():
            return f"{type(node).__name__.lower()} {node.name}"
        case Union():
            return "union of " + ", ".join(describe(branch) for branch in node.branches)
        case _:
            return type(node).__name__.lower()


def node_of(schema: str | Node) -> Node:
    """Return a schema as a node; parse it if it is a text.

    Raises:
        SchemaError: If the text cannot be used.
    """
    return schema if isinstance(schema, Node) else parse(schema)


def _load(text: str) -> object:
    if not isinstance(text, str):
        raise wrong_schema(text)
    try:
        return json.loads(text)
    except ValueError as error:
        try:
            return json.loads(_COMMENT.sub(lambda match: match[1] or " ", text))
        except ValueError:
            raise SchemaError(f"the schema is not JSON: {error}") from None


class _Parser:
    """A parser in two passes over a text and its references: the first declares the named types, the second builds."""

    def __init__(self, tree: object, references: Sequence[object] = ()) -> None:
        self._named: dict[str, Record | Enum | Fixed] = {}
        self._shells: dict[int, Record | Enum | Fixed] = {}
        for text_tree in (tree, *references):
            self._declare(text_tree, "", 0)
        for text_tree in references:
            self._build(text_tree, "")
        self.root = self._build(tree, "")

    def _declare(self, tree: object, namespace: str, depth: int) -> None:
        if depth > MAX_NESTING:
            raise SchemaError(f"the schema is nested deeper than {MAX_NESTING} types")
        if isinstance(tree, list):
            for branch in tree:
                self._declare(branch, namespace, depth + 1)
        elif isinstance(tree, dict):
            name = tree.get("type")
            if isinstance(name, str) and name in _SHELLS:
                namespace = self._declare_named(tree, _SHELLS[name], namespace)
            for inner in _inner_types(tree):
                self._declare(inner, namespace, depth + 1)

    def _declare_named(self, tree: dict[str, object], shell: type[Record | Enum | Fixed], outer: str) -> str:
        name = tree.get("name")
        if not isinstance(name, str) or not name:
            raise SchemaError(f"a {shell.__name__.lower()} without a name")
        stated = tree.get("namespace")
        full = _full_name(name, stated if isinstance(stated, str) else outer)
        namespace = full.rpartition(".")[0]
        aliases = tuple(_full_name(alias, namespace) for alias in _aliases(tree))
        self._shells[id(tree)] = shell(full, aliases)
        self._named.setdefault(full, self._shells[id(tree)])  # texts may repeat equal definitions
        return namespace

    def _build(self, tree: object, namespace: str) -> Node:
        if isinstance(tree, str):
            return self._find(tree, namespace)
        if isinstance(tree, list):
            return Union(tuple(self._build(branch, namespace) for branch in tree))
        if not isinstance(tree, dict) or "type" not in tree:
            raise SchemaError(f"expected a type, got {json.dumps(tree)[:100]}")
        name = tree["type"]
        if not isinstance(name, str):
            return self._build(name, namespace)
        if name in _PRIMITIVES:
            return Primitive(Kind(name), _logical(tree, Kind(name)))
        if name in ("array", "map"):
            return self._build_collection(tree, name, namespace)
        shell = self._shells.get(id(tree))
        if shell is None:
            return self._find(name, namespace)
        self._fill(shell, tree)
        return shell

    def _build_collection(self, tree: dict[str, object], kind: str, namespace: str) -> Node:
        key = "items" if kind == "array" else "values"
        if key not in tree:
            raise SchemaError(f"the {kind} has no {key}")
        inner = self._build(tree[key], namespace)
        return Array(inner) if kind == "array" else Map(inner)

    def _fill(self, shell: Record | Enum | Fixed, tree: dict[str, object]) -> None:
        match shell:
            case Record():
                shell.fields = self._fields(shell, tree)
            case Enum():
                symbols = tree.get("symbols")
                if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
                    raise SchemaError(f"the enum {shell.name} has no list of symbols")
                shell.symbols = tuple(symbols)
                default = tree.get("default")
                shell.default = default if isinstance(default, str) and default in symbols else None
            case Fixed():
                size = tree.get("size")
                if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                    raise SchemaError(f"the fixed {shell.name} has no valid size")
                shell.size = size
                shell.logical = _fixed_logical(tree, size)

    def _fields(self, record: Record, tree: dict[str, object]) -> list[Field]:
        fields = tree.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"the record {record.name} has no list of fields")
        namespace = record.name.rpartition(".")[0]
        built: dict[str, Field] = {}
        for field_ in fields:
            name = field_.get("name") if isinstance(field_, dict) else None
            if not isinstance(name, str) or "type" not in field_:
                raise SchemaError(f"a field of the record {record.name} has no name or no type")
            if name in built:
                raise SchemaError(f"the record {record.name} has two fields {name}")
            default = field_.get("default", MISSING)
            inner = self._build(field_["type"], namespace)
            doc = field_.get("doc")
            text = doc if isinstance(doc, str) else ""
            built[name] = Field(name, inner, tuple(_aliases(field_)), default, _tags(field_), text)
        return list(built.values())

    def _find(self, name: str, namespace: str) -> Node:
        if name in _PRIMITIVES:
            return Primitive(Kind(name))
        for full in (_full_name(name, namespace), name):
            if full in self._named:
                return self._named[full]
        raise SchemaError(f"the type {name} is not defined in the schema")


_SHELLS: dict[str, type[Record | Enum | Fixed]] = {
    "record": Record,
    "error": Record,
    "enum": Enum,
    "fixed": Fixed,
}


def _inner_types(tree: dict[str, object]) -> list[object]:
    """Return the types written directly inside this one, in the order of the text."""
    kind = tree.get("type")
    match kind:
        case "record" | "error":
            fields = tree.get("fields")
            listed = fields if isinstance(fields, list) else []
            return [entry.get("type") for entry in listed if isinstance(entry, dict)]
        case "array":
            return [tree.get("items")]
        case "map":
            return [tree.get("values")]
        case str():
            return []
        case _:
            return [kind]


def _full_name(name: str, namespace: str) -> str:
    """Return the full name that a name means inside a namespace; `.X` is the type X without namespace."""
    return make_name(name, namespace).full.removeprefix(".")


def _aliases(tree: dict[str, object]) -> list[str]:
    aliases = tree.get("aliases")
    listed = [aliases] if isinstance(aliases, str) else aliases
    return [alias for alias in listed if isinstance(alias, str)] if isinstance(listed, list) else []


def _tags(tree: dict[str, object]) -> frozenset[str]:
    tags = tree.get("confluent:tags")
    return frozenset(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else frozenset()


def _logical(tree: dict[str, object], kind: Kind) -> Logical | None:
    name = tree.get("logicalType")
    if name not in _LOGICAL_TYPES.get(kind, ()):
        return None
    return _decimal(tree) if name == "decimal" else Logical(name)


def _fixed_logical(tree: dict[str, object], size: int) -> Logical | None:
    name = tree.get("logicalType")
    if name == "uuid" and size == _UUID_SIZE:
        return Logical(name)
    decimal = _decimal(tree) if name == "decimal" else None
    most_digits = math.floor(math.log10(2) * (8 * size - 1))
    return decimal if decimal is not None and decimal.precision <= most_digits else None


def _decimal(tree: dict[str, object]) -> Logical | None:
    precision, scale = _whole(tree.get("precision")), _whole(tree.get("scale", 0))
    return Logical("decimal", precision, scale) if precision > 0 and 0 <= scale <= precision else None


def _whole(number: object) -> int:
    """Return the number if it is an integer, else -1, which is never valid."""
    return number if isinstance(number, int) and not isinstance(number, bool) else -1
