"""The normalizer: the text of `normalize=true`, which is the same schema with one spelling and order.

Custom attributes and aliases are sorted at every level, in Java's order of strings; those of a logical type that Avro
knows come first. The default of a float or double is written as a floating-point number, and the keys of a default are
sorted. A type loses an empty doc (a field keeps it), and an error becomes a record. Nothing else changes: this is not
Avro's parsing canonical form.

The reference damages some schemas here; this module does not. It keeps an empty namespace inside another, and every
default (the reference loses one that belongs to a later branch of a union, and an integer beyond 64 bits for a double).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from strata.compat.avro import model
from strata.compat.avro.defaults import accepts
from strata.compat.avro.java_numbers import java_float, to_double, to_float
from strata.compat.avro.json_text import in_java_order
from strata.compat.avro.printer import print_schema
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.schema import SchemaParseError

__all__ = ["normalize"]

_LOGICAL_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {"time-micros"}
        | {f"{zone}timestamp-{unit}" for zone in ("", "local-") for unit in ("millis", "micros", "nanos")}
    ),
    "string": frozenset({"uuid"}),
    "bytes": frozenset({"decimal", "big-decimal"}),
    "fixed": frozenset({"decimal", "duration", "uuid"}),
}
_LOGICAL_SIZES: Final = {"duration": 12, "uuid": 16}
_JAVA_CLASSES: Final = ("avro.java.string", "java-class", "java-key-class", "java-element-class")
"""Avro ignores the logical type of a type that has one of these attributes."""


def normalize(schema: model.AvroSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the normalized text of a schema.

    Raises:
        SchemaParseError: The text is too long or nested too deeply.
        OutOfTime: The time of `limits` ran out.
    """
    try:
        normalizer = _Normalizer(schema.names, limits)
        names = {full: normalizer.named(node) for full, node in schema.names.items()}
        return print_schema(normalizer.node(schema.root), names, limits, external=schema.external)
    except RecursionError:
        raise SchemaParseError("The schema is nested too deeply") from None


class _Normalizer:
    def __init__(self, names: model.Names, limits: Limits):
        self._names = names
        self._limits = limits
        self._done: dict[int, model.NamedType] = {}

    def node(self, node: model.Node) -> model.Node:
        """Return a type in normal order."""
        if isinstance(node, model.Reference):
            return node
        if isinstance(node, model.PrimitiveType):
            return model.PrimitiveType(node.kind, _ordered(node)) if node.properties else node
        if isinstance(node, model.UnionType):
            return model.UnionType(tuple(map(self.node, node.branches)))
        if isinstance(node, model.ArrayType):
            return model.ArrayType(self.node(node.items), _ordered(node))
        if isinstance(node, model.MapType):
            return model.MapType(self.node(node.values), _ordered(node))
        return self.named(node)

    def named(self, node: model.NamedType) -> model.NamedType:
        """Return a named type in normal order; each definition is rebuilt once."""
        if id(node) not in self._done:
            self._done[id(node)] = self._rebuilt(node)
        return self._done[id(node)]

    def _rebuilt(self, node: model.NamedType) -> model.NamedType:
        doc, aliases = node.doc or None, _sorted_names(node.aliases, node.name.namespace)
        if isinstance(node, model.EnumType):
            return model.EnumType(node.name, doc, aliases, node.symbols, node.default, _ordered(node))
        if isinstance(node, model.FixedType):
            return model.FixedType(node.name, doc, aliases, node.size, _ordered(node))
        fields = tuple(map(self._field, node.fields))
        return model.RecordType(node.name, doc, aliases, fields, is_error=False, properties=_ordered(node))

    def _field(self, field: model.Field) -> model.Field:
        default = field.default
        if not isinstance(default, model.Missing):
            default = self._typed(field.type, default, inside=False)
        aliases = tuple(in_java_order(field.aliases))
        properties = _sorted_json(field.properties)
        return model.Field(field.name, self.node(field.type), field.doc, default, field.order, aliases, properties)

    def _typed(self, node: model.Node, value: model.Json, *, inside: bool = True) -> model.Json:
        """Return a default as a value of its type; only sort one that does not fit, as some stored schemas have.

        Inside another value, keep a number that rounds to infinity: infinity is legal only as a field's whole default.
        """
        node = model.resolve(node, self._names)
        if isinstance(node, model.UnionType):
            fitting = (branch for branch in node.branches if accepts(branch, value, self._names, self._limits))
            branch = next(fitting, None)
            return _sorted_json(value) if branch is None else self._typed(branch, value)
        if isinstance(node, model.ArrayType) and isinstance(value, list):
            return [self._typed(node.items, item) for item in value]
        if isinstance(node, model.MapType) and isinstance(value, dict):
            return {key: self._typed(node.values, value[key]) for key in in_java_order(value)}
        if isinstance(node, model.RecordType) and isinstance(value, dict):
            types = {field.name: field.type for field in node.fields}
            return {
                key: self._typed(types[key], value[key]) if key in types else _sorted_json(value[key])
                for key in in_java_order(value)
            }
        convert = _SCALARS.get(node.kind)
        typed = convert(value) if convert else _sorted_json(value)
        return value if inside and typed in (math.inf, -math.inf) else typed


def _as_double(value: model.Json) -> model.Json:
    return to_double(value) if type(value) in (int, float) else value


def _as_single(value: model.Json) -> model.Json:
    """Round a number to single precision, and return the double with the same digits."""
    return float(java_float(to_float(to_double(value)))) if type(value) in (int, float) else value


def _to_latin_1(value: model.Json) -> model.Json:
    """Replace characters above U+00FF by question marks, as Java does when it reads bytes."""
    return value.encode("latin-1", "replace").decode("latin-1") if isinstance(value, str) else value


_SCALARS: Final[Mapping[str, Callable[[model.Json], model.Json]]] = {
    "float": _as_single,
    "double": _as_double,
    "bytes": _to_latin_1,
    "fixed": _to_latin_1,
}


def _sorted_names(names: Iterable[model.Name], namespace: str) -> tuple[model.Name, ...]:
    """Return aliases sorted; one without a namespace is printed without a dot, and so gets the enclosing namespace."""
    by_full = {name.full: name for name in names}
    inside = [model.Name(by_full[full].simple, by_full[full].namespace or namespace) for full in in_java_order(by_full)]
    return tuple({name.full: name for name in inside}.values())


def _sorted_json(value: model.Json) -> model.Json:
    if isinstance(value, Mapping):
        return {key: _sorted_json(value[key]) for key in in_java_order(value)}
    if isinstance(value, list):
        return [_sorted_json(item) for item in value]
    return value


def _ordered(node: model.PrimitiveType | model.ArrayType | model.MapType | model.NamedType) -> model.Properties:
    """Return custom attributes sorted, but the attributes of a logical type that Avro knows first."""
    properties: model.Properties = _sorted_json(node.properties)
    first = [key for key in _logical_words(node) if key in properties]
    if not first:
        return properties
    return {key: properties[key] for key in (*first, *properties)}


def _logical_words(node: model.PrimitiveType | model.ArrayType | model.MapType | model.NamedType) -> tuple[str, ...]:
    logical = node.properties.get("logicalType")
    if not isinstance(logical, str) or logical not in _LOGICAL_TYPES.get(node.kind, ()):
        return ()
    if any(isinstance(node.properties.get(word), str) for word in _JAVA_CLASSES):
        return ()
    if isinstance(node, model.FixedType) and node.size != _LOGICAL_SIZES.get(logical, node.size):
        return ()
    if logical != "decimal":
        return ("logicalType",)
    if not _is_decimal(node):
        return ()
    return ("logicalType", "precision", "scale") if node.properties.get("scale") else ("logicalType", "precision")


def _is_decimal(node: model.PrimitiveType | model.ArrayType | model.MapType | model.NamedType) -> bool:
    precision, scale = node.properties.get("precision"), node.properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return False
    largest = _largest_precision(node.size) if isinstance(node, model.FixedType) else _LARGEST_INT
    return 0 < precision <= largest and 0 <= scale <= precision


def _largest_precision(size: int) -> int:
    """Return how many decimal digits always fit into this many bytes; the bit count wraps at 32 bits, as in Java."""
    bits = (8 * size - 1 + 2**31) % 2**32 - 2**31
    return math.floor(math.log10(2) * bits)


_LARGEST_INT: Final = 2**31 - 1
