"""The logical type of a JSON Schema.

Attributes of Kafka Connect and Flink (`connect.type`, `flink.maxLength`, …) refine the plain types. Source: the policy
LOGICAL of the Confluent Schema Registry 8.5, from its answers.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from strata.compat.json_schema import model
from strata.compat.json_schema.json_text import Json, write_json
from strata.compat.limits import Limits
from strata.compat.logical import types
from strata.compat.logical.types import Column, Default, Kind, LogicalSchema, LogicalType, TranslationError, map_key

__all__ = ["translate"]

_CONNECT: Final = "org.apache.kafka.connect.data."
_NUMBERS: Final[Mapping[str, Kind]] = {
    "int8": Kind.TINYINT, "int16": Kind.SMALLINT, "int32": Kind.INT, "int64": Kind.BIGINT,
    "float32": Kind.FLOAT, "float64": Kind.DOUBLE,
}  # fmt: skip
_CONDITIONAL: Final = (
    "JSON Schema if/then/else and `not` are not supported: a property declared only under a condition has no column to "
    "be read into, so its values would be silently dropped"
)
_NO_VALUE: Final = 'Cannot invoke "org.everit.json.schema.Schema.getTitle()" because "<parameter1>" is null'
_DEFINITION: Final = re.compile(r"[^#]*#/(?:definitions|\$defs)/([^/]+)")
_UNTRANSLATED: Final[Mapping[type[model.Node], str]] = {
    model.ConstNode: "ConstSchema",
    model.NotNode: "NotSchema",
    model.NullNode: "NullSchema",
    model.FalseNode: "FalseSchema",
    model.ConditionalNode: "ConditionalSchema",
}


def translate(schema: model.JsonSchema, _union: str, limits: Limits) -> LogicalSchema:
    """Return the logical type of a schema.

    Args:
        schema: the schema with its references.
        _union: not read.
        limits: bounds on time.

    Raises:
        TranslationError: no table can hold the schema.
    """
    translation = _Translation(limits)
    root = translation.type(schema.root)
    for definition in schema.definitions:
        translation.type(definition)
    return LogicalSchema(root, translation.named)


class _Translation:
    """One translation: the bodies of the named types by name, and their names by target."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.named: dict[str, LogicalType] = {}
        self._names: dict[int, str] = {}  # by the identity of the target
        self._unnamed = 0

    def type(self, node: model.Node) -> LogicalType:
        """Return the logical type of a schema."""
        self._limits.look_at_clock()
        if reason := _UNTRANSLATED.get(type(node)):
            raise TranslationError(f"Unsupported JSON schema type org.everit.json.schema.{reason}")
        return _TYPES[type(node)](self, node)

    def _reference(self, node: model.ReferenceNode) -> LogicalType:
        target = node.target or model.EmptyNode()
        name = self._names.get(id(target))
        if name is None:
            name = self._names[id(target)] = self._new_name(node.reference)
            body = self.type(target)
            # A chain of references has one body, which is never a reference itself.
            self.named[name] = LogicalSchema(body, self.named).resolve(body)
        resolved = self.named.get(name)
        return types.reference(name, nullable=resolved is not None and resolved.nullable)

    def _new_name(self, reference: str) -> str:
        if (match := _DEFINITION.fullmatch(reference)) and match[1] not in self._names.values():
            return match[1]
        self._unnamed += 1
        return f"Ref{self._unnamed}"

    def _object(self, node: model.ObjectNode) -> LogicalType:
        if node.connect_type == "map":
            return self._map(node)
        return self._struct(node.properties, node.required.__contains__)

    def _struct(self, properties: Mapping[str, model.Node], is_required: Callable[[str], bool]) -> LogicalType:
        ordered = sorted(properties.items(), key=_place)
        return types.struct([self._column(name, node, is_required(name)) for name, node in ordered])

    def _column(self, name: str, node: model.Node, required: bool) -> Column:
        column = self.type(node)
        resolved = LogicalSchema(column, self.named).resolve(column)
        default = _default(model.follow(node), resolved)
        doc = node.written.get("description")
        text = doc if isinstance(doc, str) else ""
        return Column(name, column.or_null(column.nullable or not required), default, text)

    def _map(self, node: model.ObjectNode) -> LogicalType:
        if not isinstance(node.additional, model.Node):
            raise TranslationError(_NO_VALUE)
        return types.map_of(map_key(node.written), self.type(node.additional), node.written.get("flink.type"))

    def _array(self, node: model.ArrayNode) -> LogicalType:
        if node.tuple_items is not None:
            raise TranslationError("JSON tuples (i.e. arrays that contain items of different types) are not supported")
        if node.items is None:
            raise TranslationError("Array schema did not specify the items type")
        items = model.follow(node.items)
        if node.connect_type == "map" and isinstance(items, model.ObjectNode):
            if not {"key", "value"} <= items.properties.keys():
                raise TranslationError(_NO_VALUE)
            key, value = (self.type(items.properties[name]) for name in ("key", "value"))
            return types.map_of(key, value, node.written.get("flink.type"))
        return types.array(self.type(node.items))

    def _combined(self, node: model.CombinedNode) -> LogicalType:
        if node.criterion is model.Criterion.ALL:
            return self._all(node)
        branches = [branch for branch in node.branches if not isinstance(branch, model.NullNode)]
        nullable = len(branches) < len(node.branches)
        translated = [self.type(branch) for branch in branches]
        if len(branches) == 1:
            return translated[0].or_null(nullable or translated[0].nullable)
        return types.union(list(zip(_branch_names(node, branches), translated, strict=True)), nullable=nullable)

    def _all(self, node: model.CombinedNode) -> LogicalType:
        """Return the struct of all members' properties, or the one member that says which type it is."""
        members = list(_members(node))
        if any(isinstance(member, model.ConditionalNode | model.NotNode) for member in members):
            raise TranslationError(_CONDITIONAL)
        properties: dict[str, model.Node] = {}
        required: dict[str, bool] = {}
        for member in members:
            if isinstance(member, model.ObjectNode):
                for name, schema in member.properties.items():
                    properties[name] = schema
                    required[name] = name in member.required
        if properties:
            return self._struct(properties, required.__getitem__)
        chosen = _deciding(node)
        if chosen is None:
            text = write_json(node.written.get("allOf", dict(node.written)))
            raise TranslationError(f'Unsupported criterion allOf for {{"allOf":{text}}}')
        return self.type(chosen)


def _deciding(node: model.CombinedNode) -> model.Node | None:
    """Return the member of an `allOf` without properties that says which type it is."""
    members = node.branches
    for member in members:
        if isinstance(member, model.CombinedNode) and member.criterion is not model.Criterion.ALL:
            return member
    kinds = {type(member): member for member in members}
    scalar = kinds.get(model.StringNode) or kinds.get(model.NumberNode)
    if scalar and (model.EnumNode in kinds or model.ConstNode in kinds):
        return scalar
    if model.StringNode in kinds and model.NumberNode in kinds:
        return kinds[model.NumberNode]
    if len(members) == 2:
        return next((schema for schema in members if isinstance(schema, model.ObjectNode) and schema.implied), None)
    return None


def _members(node: model.CombinedNode) -> Iterator[model.Node]:
    """Yield the members of an `allOf`, those of inner ones and of the targets of references instead of these."""
    seen: set[int] = set()
    todo: list[model.Node] = [node]
    while todo:
        member = model.follow(todo.pop())
        if isinstance(member, model.CombinedNode) and member.criterion is model.Criterion.ALL:
            if id(member) not in seen:
                seen.add(id(member))
                todo += reversed(member.branches)
        else:
            yield member


def _branch_names(node: model.CombinedNode, branches: list[model.Node]) -> list[str]:
    written = node.written.get("confluent:union")
    names = (
        [
            str(written_branch["name"])
            for written_branch in written
            if isinstance(written_branch, dict) and "name" in written_branch
        ]
        if isinstance(written, list)
        else []
    )
    if len(names) == len(branches):
        return names
    return [branch.title or f"connect_union_field_{i}" for i, branch in enumerate(branches)]


def _number(node: model.NumberNode) -> LogicalType:
    if node.connect_type is None:
        return LogicalType(Kind.BIGINT if node.integer else Kind.DOUBLE)
    if node.connect_type == "bytes":
        return _decimal(node)
    number = _NUMBERS.get(node.connect_type) if isinstance(node.connect_type, str) else None
    if number is None:
        raise TranslationError(f"Unsupported type {node.connect_type}")
    if number is Kind.INT and node.title == f"{_CONNECT}Date":
        return LogicalType(Kind.DATE)
    if number is Kind.INT and node.title == f"{_CONNECT}Time":
        return types.temporal(Kind.TIME, _precision(node))
    if number is Kind.BIGINT and node.title == f"{_CONNECT}Timestamp":
        return types.temporal(Kind.TIMESTAMP_LTZ, _precision(node))
    if number is Kind.BIGINT and node.written.get("flink.type") == "timestamp":
        return types.temporal(Kind.TIMESTAMP, _precision(node))
    return LogicalType(number)


def _decimal(node: model.Node) -> LogicalType:
    if node.title != f"{_CONNECT}Decimal":
        raise TranslationError("Expected decimal type")
    parameters = node.written.get("connect.parameters")
    options = parameters if isinstance(parameters, dict) else {}
    return types.decimal(_integer(options.get("connect.decimal.precision"), 38), _integer(options.get("scale"), 18))


def _precision(node: model.Node) -> int:
    return _integer(node.written.get("flink.precision"), 3)


def _integer(value: Json, default: int) -> int:
    """Return an attribute that is a number or the text of one.

    Raises:
        TranslationError: it is a text of another kind.
    """
    if value is None or isinstance(value, list | dict):
        return default
    try:
        return int(value)
    except (ValueError, OverflowError):
        raise TranslationError(f'For input string: "{value}"') from None


def _string(node: model.StringNode) -> LogicalType:
    if node.connect_type == "bytes":
        return _bytes(node.written)
    least, most = (node.bounds.get(word) for word in ("minLength", "maxLength"))
    if most is None:
        return types.sized(Kind.VARCHAR)
    return types.sized(Kind.CHAR if least == most else Kind.VARCHAR, int(most))


def _bytes(written: Mapping[str, Json]) -> LogicalType:
    least, most = written.get("flink.minLength"), written.get("flink.maxLength")
    if most is None:
        return types.sized(Kind.VARBINARY)
    return types.sized(Kind.BINARY if least == most else Kind.VARBINARY, _integer(most, types.UNBOUNDED))


def _enum(node: model.EnumNode) -> LogicalType:
    written = node.written.get("enum")
    values = written if isinstance(written, list) else []
    if None in values:
        raise TranslationError(
            'Cannot invoke "Object.toString()" because the return value of "java.util.List.get(int)" is null'
        )
    texts = dict.fromkeys(value if isinstance(value, str) else write_json(value) for value in values)
    return types.enum(iter(texts))


_TYPES: Final[Mapping[type[model.Node], Callable[[_Translation, Any], LogicalType]]] = {
    model.BooleanNode: lambda _, _node: LogicalType(Kind.BOOLEAN),
    model.NumberNode: lambda _, node: _number(node),
    model.StringNode: lambda _, node: _string(node),
    model.EnumNode: lambda _, node: _enum(node),
    model.CombinedNode: _Translation._combined,
    model.ArrayNode: _Translation._array,
    model.ObjectNode: _Translation._object,
    model.EmptyNode: lambda _, _node: LogicalType(Kind.VARIANT),
    model.ReferenceNode: _Translation._reference,
}


def _place(item: tuple[str, model.Node]) -> tuple[bool, int, bytes]:
    """Return what orders properties: `connect.index`, then the name as Java orders texts."""
    name, node = item
    index = node.written.get("connect.index")
    place = index if isinstance(index, int) and not isinstance(index, bool) else None
    return place is None, place or 0, name.encode("utf-16-be", "surrogatepass")


def _default(node: model.Node, column: LogicalType) -> Default:
    """Return whether a property has a default that fits its type; those of containers count as absent."""
    if node.default is None:
        return Default.ABSENT
    value = json.loads(node.default, parse_float=Decimal)
    fits = _FITS.get(column.kind)
    return Default.VALUE if fits is not None and fits(value) else Default.ABSENT


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_iso(read: Callable[[str], object]) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        try:
            return isinstance(value, str) and bool(read(value) or True)
        except ValueError:
            return False

    return fits


_FITS: Final[Mapping[Kind, Callable[[object], bool]]] = {
    Kind.BOOLEAN: lambda value: isinstance(value, bool),
    Kind.TINYINT: _is_integer, Kind.SMALLINT: _is_integer, Kind.INT: _is_integer, Kind.BIGINT: _is_integer,
    Kind.FLOAT: _is_number, Kind.DOUBLE: _is_number, Kind.DECIMAL: _is_number,
    Kind.CHAR: _is_text, Kind.VARCHAR: _is_text, Kind.ENUM: _is_text,
    Kind.BINARY: _is_text, Kind.VARBINARY: _is_text,
    Kind.DATE: _is_iso(date.fromisoformat), Kind.TIME: _is_iso(time.fromisoformat),
    Kind.TIMESTAMP: _is_iso(datetime.fromisoformat), Kind.TIMESTAMP_LTZ: _is_iso(datetime.fromisoformat),
}  # fmt: skip
