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
from strata.serdes.avro.decoder import Decoder, DecoderOptions, compile_decoder
from strata.serdes.avro.encoder import compile_encoder
from strata.serdes.avro.logical_types import Branch, Shape, converter
from strata.serdes.avro.raw_values import lowering
from strata.serdes.avro.schema import Array, Enum, Field, Fixed, Kind, Logical, Map, Node, Primitive, Record, Union
from strata.serdes.errors import DecodeError, DecodeReason, EncodeError
from strata.serdes.model import Metadata, Rule, Schema
from strata.serdes.rules.executors import FieldTransform
from strata.serdes.rules.fields import Fields, Place, Values, Visit

__all__ = ["AvroShapes", "AvroValues"]

Leaf = Callable[[Node, Place | None, object, object], object]
"""Called with the type of a leaf, its field, the record around it, and its value."""

_MICRO = timedelta(microseconds=1)


class AvroValues(Values):
    """The values of an Avro schema."""

    def __init__(self, node: Node, metadata: Metadata | None = None, *, numeric_times: bool = False) -> None:
        self._node = node
        self._metadata = metadata
        self._shape = Shape(numeric_times=numeric_times)
        self._whole: _Walk | None = None

    @property
    def _everywhere(self) -> "_Walk":
        """The walk to every leaf."""
        if self._whole is None:
            self._whole = _Walk(self._node, None, tries=True)
        return self._whole

    def visitor(self, rule: Rule, *, loosely: bool = False) -> Visit:
        """Return the visitor of the fields that a rule selects; `loosely` also visits branches that do not fit."""
        walk = _Walk(self._node, Fields(self._metadata, rule), loosely=loosely)

        def visit(transform: FieldTransform, value: object) -> object:
            def leaf(node: Node, place: Place | None, message: object, inner: object) -> object:
                return inner if place is None else transform(place.context(_type_name(node), message), inner)

            return walk(value, leaf)

        return visit

    def lower(self, value: object) -> object:
        """Return a value as JSON."""
        return self._everywhere(value, lambda node, _, __, inner: _lowered(node, inner))

    def lift(self, value: object) -> object:
        """Convert the result of a rule to a value of the schema, as far as it fits."""
        return self._everywhere(value, lambda node, _, __, inner: self._lifted(node, inner))

    def _lifted(self, node: Node, value: object) -> object:
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

    def _lifted_time(self, logical: Logical, value: object) -> object:
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


_Step = Callable[[object, object, Leaf], object]
"""A part of a walk: takes the record around a value, the value, and what to call with leaves; returns the new value."""


class _Walk:
    """A walk through values along a schema, which builds new values.

    It is compiled once: what holds no selected field is not entered. A value that fits no branch of a union does not
    change, with two exceptions: with `tries` the first branch wins whose result fits, and with `loosely` all branches
    run.

    Args:
        root: the schema.
        fields: its fields, and whether they are selected; None visits every leaf.
        tries: see above.
        loosely: see above.
    """

    def __init__(self, root: Node, fields: Fields | None, *, tries: bool = False, loosely: bool = False) -> None:
        self._fields = fields
        self._tries = tries or loosely
        self._loosely = loosely
        self._records: dict[int, list[tuple[str, _Step]]] = {}
        self._wanted = None if fields is None else self._holding(root)
        self._root = root  # keeps the nodes alive whose ids are keys
        self._step = self._compiled(root, None)

    def __call__(self, value: object, leaf: Leaf) -> object:
        return value if self._step is None else self._step(None, value, leaf)

    def _place(self, record: Record, field: Field) -> Place | None:
        fields = self._fields
        return None if fields is None else fields.place(f"{record.name}.{field.name}", field.name, field.tags)

    def _holding(self, root: Node) -> set[int]:
        """Return the ids of the records that hold a selected field, at any depth."""
        inner: dict[int, set[int]] = {}  # the records directly inside each record
        holding: set[int] = set()

        def look(node: Node, place: Place | None, around: int | None) -> None:
            match node:
                case Record():
                    if around is not None:
                        inner[around].add(id(node))
                    if id(node) not in inner:
                        inner[id(node)] = set()
                        for field in node.fields:
                            look(field.type, self._place(node, field), id(node))
                case Array():
                    look(node.items, place, around)
                case Map():
                    look(node.values, place, around)
                case Union():
                    for branch in node.branches:
                        look(branch, place, around)
                case _:
                    if place is not None and place.selected and around is not None:
                        holding.add(around)

        look(root, None, None)
        size = -1
        while size != len(holding):
            size = len(holding)
            holding.update(record for record, held in inner.items() if held & holding)
        return holding

    def _compiled(self, node: Node, place: Place | None) -> _Step | None:
        match node:
            case Union():
                return self._union(node, place)
            case Record():
                if self._wanted is not None and id(node) not in self._wanted:
                    return None
                return self._record(node)
            case Array():
                item = self._compiled(node.items, place)
                return None if item is None else _over_items(item)
            case Map():
                entry = self._compiled(node.values, place)
                return None if entry is None else _over_entries(entry)
        if self._fields is not None and (place is None or not place.selected):
            return None
        return lambda message, value, leaf: leaf(node, place, message, value)

    def _record(self, node: Record) -> _Step:
        steps = self._records.get(id(node))
        if steps is None:
            steps = self._records[id(node)] = []  # a record inside itself finds the list that is being filled
            for field in node.fields:
                step = self._compiled(field.type, self._place(node, field))
                if step is not None:
                    steps.append((field.name, step))

        def walk(_message: object, value: object, leaf: Leaf) -> object:
            if not isinstance(value, Mapping):
                return value
            made = dict(value)
            for name, step in steps:
                if name in made:
                    made[name] = step(made, made[name], leaf)
            return made

        return walk

    def _union(self, node: Union, place: Place | None) -> _Step | None:
        steps = [self._compiled(branch, place) for branch in node.branches]
        if not any(steps):
            return None
        choose = chooser(node)

        def walk(message: object, value: Any, leaf: Leaf) -> object:
            try:
                position, inner = choose(value)
            except EncodeError:
                return self._unfit(node, steps, message, value, leaf)
            step = steps[position]
            if step is None:
                return value
            made = step(message, inner, leaf)
            if inner is value or not fit(node.branches[position], made):
                return made
            return Branch(position, made) if isinstance(value, Branch) else (value[0], made)

        return walk

    def _unfit(self, node: Union, steps: Sequence[_Step | None], message: object, value: object, leaf: Leaf) -> object:
        """Return a value that fits no branch of a union."""
        for branch, step in zip(node.branches, steps, strict=True) if self._tries else ():
            made = value if step is None else step(message, value, leaf)
            if self._loosely:
                value = made
            elif fit(branch, made):
                return made
        return value


def _over_items(item: _Step) -> _Step:
    def walk(message: object, value: object, leaf: Leaf) -> object:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
            return value
        return [item(message, item_, leaf) for item_ in value]

    return walk


def _over_entries(entry: _Step) -> _Step:
    def walk(message: object, value: object, leaf: Leaf) -> object:
        if not isinstance(value, Mapping):
            return value
        return {key: entry(message, item, leaf) for key, item in value.items()}

    return walk


def _type_name(node: Node) -> str:
    return str(node.kind).upper() if isinstance(node, Primitive) else type(node).__name__.upper()


def _lowered(node: Node, value: object) -> object:
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


def _lifted_plain(node: Primitive | Fixed, value: object) -> object:
    if isinstance(node, Fixed) or node.kind is Kind.BYTES:
        return value.encode("latin-1") if isinstance(value, str) else value
    if node.kind in (Kind.INT, Kind.LONG) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _lifted_text(logical: Logical, value: object) -> object:
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
    options: DecoderOptions

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

    def between(self, have: Schema, want: Schema) -> Callable[[object], object]:
        """Return the conversion of a migration's result to another schema.

        Raises:
            SchemaError: If a schema cannot be used.
            DecodeError: From the returned function, if the result does not fit the schema.
        """
        return self._converted(self.node(have), self.node(want))

    adopted = between

    def wanted(self, shape: Schema) -> Callable[[object], object] | None:
        """Return the conversion of a value of a schema to the caller's reader schema; None without one.

        Raises:
            SchemaError: If a schema cannot be used.
            DecodeError: From the returned function, if the value does not fit the reader schema.
        """
        return None if self.reader is None else self._converted(self.node(shape), self.reader)

    def _converted(self, have: Node, want: Node) -> Callable[[object], object]:
        lift = AvroValues(have).lift
        encode, decode = compile_encoder(have, drop_unknown=True), compile_decoder(have, want, **self.options)

        def convert(value: object) -> object:
            try:
                payload = encode(lift(value))
            except EncodeError as error:
                detail = f"the result of the rules does not fit the schema: {error.detail}"
                raise DecodeError(DecodeReason.INVALID_VALUE, detail, path=error.path) from None
            return decode(payload)

        return convert
