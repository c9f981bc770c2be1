"""Avro values as rules see them: their fields, their JSON, and conversions between schemas.

In JSON an Avro value has its underlying type: dates, times and timestamps are numbers in the unit of the schema, bytes
are a string with one character per byte, a decimal is a string of its digits, a uuid a string.

Rules of this file: the schema decides; a value that does not fit it is left for the encoder to reject.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from strata.serdes.avro.branches import chooser, fit
from strata.serdes.avro.decoder import Decoder, compile_decoder
from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.avro.logical_types import Branch, Shape, converter
from strata.serdes.avro.raw_values import lowering
from strata.serdes.avro.schema import Array, Enum, Fixed, Kind, Logical, Map, Node, Primitive, Record, Union
from strata.serdes.errors import DecodeError, DecodeReason, EncodeError
from strata.serdes.model import Metadata, Rule, Schema
from strata.serdes.rules.executors import FieldTransform
from strata.serdes.rules.fields import Fields, Place, Values, Visit

__all__ = ["AvroShapes", "AvroValues"]

Leaf = Callable[[Node, Place | None, Any, Any], Any]
"""Called with the type of a leaf, its field, the record around it, and its value."""

_MICRO = timedelta(microseconds=1)


class AvroValues(Values):
    """The values of an Avro schema."""

    def __init__(self, node: Node, metadata: Metadata | None = None, *, numeric_times: bool = False) -> None:
        self._node = node
        self._metadata = metadata
        self._shape = Shape(numeric_times=numeric_times)
        self._everywhere = _Walk(Fields(None, Rule(name="", type="")), tries=True)

    def visitor(self, rule: Rule, *, loosely: bool = False) -> Visit:
        """Return the visitor of the fields that a rule selects; `loosely` also visits branches that do not fit."""
        walk = _Walk(Fields(self._metadata, rule), loosely=loosely)

        def visit(transform: FieldTransform, value: Any) -> Any:
            def leaf(node: Node, place: Place | None, message: Any, inner: Any) -> Any:
                if place is None or not place.selected:
                    return inner
                return transform(place.context(_type_name(node), message), inner)

            return walk(self._node, None, None, value, leaf)

        return visit

    def lower(self, value: Any) -> Any:
        """Return a value as JSON."""
        return self._everywhere(self._node, None, None, value, lambda node, _, __, inner: _lowered(node, inner))

    def lift(self, value: Any) -> Any:
        """Convert the result of a rule to a value of the schema, as far as it fits."""
        return self._everywhere(self._node, None, None, value, lambda node, _, __, inner: self._lifted(node, inner))

    def _lifted(self, node: Node, value: Any) -> Any:
        if not isinstance(node, Primitive | Fixed):
            return value
        logical = node.logical
        try:
            if logical is None:
                return _lifted_plain(node, value)
            if logical.name in ("decimal", "uuid"):
                return _lifted_text(logical, value)
            return self._lifted_time(logical, value)
        except (DecodeError, ValueError, OverflowError, InvalidOperation):
            return value

    def _lifted_time(self, logical: Logical, value: Any) -> Any:
        if isinstance(value, timedelta):
            value = value // (_MICRO * 1000 if logical.name.endswith("millis") else _MICRO)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, datetime):
            return (
                value.astimezone(UTC).replace(tzinfo=None)
                if logical.name.startswith("local") and value.tzinfo
                else value
            )
        convert = converter(logical, logical, self._shape)
        return convert(value) if convert is not None and type(value) is int else value


class _Walk:
    """A walk through a value along its schema, which builds a new value.

    A value that fits no branch of a union does not change, with two exceptions: with `tries` the first branch wins
    whose result fits, and with `loosely` all branches run.
    """

    def __init__(self, fields: Fields, *, tries: bool = False, loosely: bool = False) -> None:
        self._fields = fields
        self._tries = tries or loosely
        self._loosely = loosely
        self._choosers: dict[int, Callable[[Any], tuple[int, Any]]] = {}

    def __call__(self, node: Node, place: Place | None, message: Any, value: Any, leaf: Leaf) -> Any:
        match node:
            case Union():
                return self._union(node, place, message, value, leaf)
            case Record():
                return self._record(node, value, leaf) if isinstance(value, Mapping) else value
            case Array():
                if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
                    return value
                return [self(node.items, place, message, one, leaf) for one in value]
            case Map():
                if not isinstance(value, Mapping):
                    return value
                return {key: self(node.values, place, message, one, leaf) for key, one in value.items()}
        return leaf(node, place, message, value)

    def _record(self, node: Record, value: Mapping[str, Any], leaf: Leaf) -> dict[str, Any]:
        made = dict(value)
        for one in node.fields:
            if one.name in made:
                place = self._fields.place(f"{node.name}.{one.name}", one.name, one.tags)
                made[one.name] = self(one.type, place, made, made[one.name], leaf)
        return made

    def _union(self, node: Union, place: Place | None, message: Any, value: Any, leaf: Leaf) -> Any:
        choose = self._choosers.get(id(node))
        if choose is None:
            choose = self._choosers[id(node)] = chooser(node)
        try:
            position, inner = choose(value)
        except EncodeError:
            for branch in node.branches if self._tries else ():
                made = self(branch, place, message, value, leaf)
                if self._loosely:
                    value = made
                elif fit(branch, made):
                    return made
            return value
        made = self(node.branches[position], place, message, inner, leaf)
        if inner is value or not fit(node.branches[position], made):
            return made
        return Branch(position, made) if isinstance(value, Branch) else (value[0], made)


def _type_name(node: Node) -> str:
    return str(node.kind).upper() if isinstance(node, Primitive) else type(node).__name__.upper()


def _lowered(node: Node, value: Any) -> Any:
    if isinstance(node, Enum) or not isinstance(node, Primitive | Fixed):
        return value
    if isinstance(value, Decimal | UUID):
        return str(value)
    lower = lowering(node.logical)
    try:
        raw = value if lower is None else lower(value)
    except (EncodeError, ValueError, OverflowError):
        return value
    if not isinstance(raw, bytes | bytearray | memoryview):
        return raw
    if node.logical is not None and node.logical.name == "decimal":
        return str(Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-node.logical.scale))
    return bytes(raw).decode("latin-1")


def _lifted_plain(node: Primitive | Fixed, value: Any) -> Any:
    if isinstance(node, Fixed) or node.kind is Kind.BYTES:
        return value.encode("latin-1") if isinstance(value, str) else value
    if node.kind in (Kind.INT, Kind.LONG) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _lifted_text(logical: Logical, value: Any) -> Any:
    if isinstance(value, str):
        return Decimal(value) if logical.name == "decimal" else UUID(value)
    if logical.name == "decimal" and isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(str(value))
    if isinstance(value, bytes):
        convert = converter(logical, logical, Shape())
        return value if convert is None else convert(value)
    return value


@dataclass(frozen=True, slots=True)
class AvroShapes:
    """Conversions of Avro values between schemas.

    Attributes:
        node: parses a schema with its references.
        written: the writer schema.
        reader: the reader schema of the caller, if any.
        options: those of `compile_decoder`.
    """

    node: Callable[[Schema], Node]
    written: Schema
    reader: Node | None
    options: Mapping[str, Any]

    def values(self, schema: Schema) -> AvroValues:
        """Return the values of a schema as rules see them."""
        return AvroValues(self.node(schema), schema.metadata, numeric_times=self.options["numeric_times"])

    def decoder(self, shape: Schema) -> Decoder:
        """Return the decoder of payloads to values of a schema.

        Raises:
            SchemaError: If a schema cannot be used.
        """
        reader = None if shape.bare == self.written.bare else self.node(shape)
        return compile_decoder(self.node(self.written), reader, **self.options)

    first = decoder

    def between(self, have: Schema, want: Schema) -> Callable[[Any], Any]:
        """Return the conversion of a migration's result to another schema.

        Raises:
            SchemaError: If a schema cannot be used.
            DecodeError: From the returned function, if the result does not fit the schema.
        """
        return self._converted(self.node(have), self.node(want))

    adopted = between

    def wanted(self, shape: Schema) -> Callable[[Any], Any] | None:
        """Return the conversion of a value of a schema to the caller's reader schema; None without one.

        Raises:
            SchemaError: If a schema cannot be used.
            DecodeError: From the returned function, if the value does not fit the reader schema.
        """
        return None if self.reader is None else self._converted(self.node(shape), self.reader)

    def _converted(self, have: Node, want: Node) -> Callable[[Any], Any]:
        lift = AvroValues(have).lift
        encode, decode = compile_encoder(have, drop_unknown=True), compile_decoder(have, want, **self.options)

        def convert(value: Any) -> Any:
            try:
                payload = encode(lift(value))
            except EncodeError as error:
                detail = f"the result of the rules does not fit the schema: {error.detail}"
                raise DecodeError(DecodeReason.INVALID_VALUE, detail, path=error.path) from None
            return decode(payload)

        return convert
