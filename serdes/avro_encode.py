"""Compiling encoders for the payloads of registry frames.

    encode = compile_encoder(schema)
    payload = encode(value)

Like decoders, encoders are source written for one schema (see `serdes.avro_source`). A value that does not fit the
schema raises `EncodeError` with the path of the field, and never writes something else in silence: no float becomes an
int, no int of 40 bits goes out as an `int`.

Rules of this file: source from nodes. What the source calls is in `serdes.avro_raw`, the choice of a union's branch in
`serdes.avro_choice`.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from serdes.avro_choice import chooser, takes_null
from serdes.avro_raw import NAMES, lowering
from serdes.avro_schema import MISSING, Array, Enum, Field, Fixed, Kind, Map, Node, Primitive, Record, Union, parse
from serdes.avro_text import Listing, Part, SourceWriter, compile_listing, place
from serdes.avro_values import Shape, default_value
from serdes.errors import EncodeError, SchemaError

__all__ = ["Encoder", "compile_encoder"]

Encoder = Callable[[Any], bytes]

_DEEPEST_BLOCK = 12
_BITS = {Kind.INT: 32, Kind.LONG: 64}
_PACK = {Kind.FLOAT: struct.Struct("<f").pack, Kind.DOUBLE: struct.Struct("<d").pack}


def compile_encoder(schema: str | Node) -> Encoder:
    """A function from a value to the payload of a frame; a schema with references comes as `parse` read it.

    A missing key of a record takes the field's default, or null where the field allows it; keys that are no fields are
    ignored. A top-level `bytes` is written without a length, as every registry client does.

    Raises:
        SchemaError: the schema text cannot be used.
    """
    try:
        node = parse(schema) if isinstance(schema, str) else schema
        writer = _EncoderWriter()
        writer.write(node)
        listing = writer.listing
    except RecursionError:
        raise SchemaError("the types of the schema are nested too deeply") from None
    return _guarded(compile_listing(listing, "avro encoder", NAMES), listing)


def _guarded(namespace: dict[str, Any], listing: Listing) -> Encoder:
    write = namespace["encode"]

    def encode(value: Any) -> bytes:
        try:
            payload: bytes = write(value)
        except Exception as error:  # noqa: BLE001 - values are objects of others, which may raise anything
            path, _ = place(error.__traceback__, namespace, listing.paths)
            raise EncodeError(_explain(error), path=path) from (None if isinstance(error, EncodeError) else error)
        return payload

    return encode


def _explain(error: Exception) -> str:
    match error:
        case EncodeError():
            return error.detail
        case KeyError():
            return "there is no value, and the schema has no default"
        case RecursionError():
            return "the value is nested too deeply"
    return f"{type(error).__name__}: {error}"


class _EncoderWriter(SourceWriter):
    """Writes `encode(value)` and a function for each record that is used in several places."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: dict[int, str] = {}
        self._pending: list[Node] = []
        self._shared: set[int] = set()

    def write(self, node: Node) -> None:
        self._find_shared(node, set())
        self.begin("def encode(value):")
        if isinstance(node, Primitive) and node.kind is Kind.BYTES:
            self._lower(lowering(node.logical), "value")
            self.line("return raw(value)")
            return
        self.line("out = bytearray()")
        self._write(node, "value")
        self.line("return bytes(out)")
        while self._pending:
            pending = self._pending.pop()
            self.begin(f"def {self._functions[id(pending)]}(value, out):")
            self._write_here(pending, "value")

    def _find_shared(self, node: Node, seen: set[int]) -> None:
        """Note the records that are met more than once; a record that holds itself is."""
        match node:
            case Record():
                if id(node) in seen:
                    self._shared.add(id(node))
                    return
                seen.add(id(node))
                for one in node.fields:
                    self._find_shared(one.type, seen)
            case Array(items=inner) | Map(values=inner):
                self._find_shared(inner, seen)
            case Union():
                for branch in node.branches:
                    self._find_shared(branch, seen)

    def _write(self, node: Node, name: str) -> None:
        is_deep = self.indent >= _DEEPEST_BLOCK and isinstance(node, Record | Array | Map | Union)
        if not is_deep and id(node) not in self._shared:
            self._write_here(node, name)
            return
        if id(node) not in self._functions:
            self._functions[id(node)] = f"f{len(self._functions)}"
            self._pending.append(node)
        self.line(f"{self._functions[id(node)]}({name}, out)")

    def _write_here(self, node: Node, name: str) -> None:
        match node:
            case Primitive():
                self._lower(lowering(node.logical), name)
                self._write_primitive(node.kind, name)
            case Fixed():
                self._lower(lowering(node.logical, node.size), name)
                self.line(f"if {name}.__class__ is not bytes: {name} = raw({name})")
                self.line(f"if len({name}) != {node.size}: bad_size({name}, {node.size})")
                self.line(f"out += {name}")
            case Enum():
                self._write_enum(node, name)
            case Array():
                self._write_array(node, name)
            case Map():
                self._write_map(node, name)
            case Union():
                self._write_union(node, name)
            case Record():
                self._write_record(node, name)

    def _lower(self, lower: Callable[[Any], Any] | None, name: str) -> None:
        if lower is not None:
            self.line(f"{name} = {self.constant(lower)}({name})")

    def _number(self, expression: str) -> None:
        self.line(f"n = {expression}")
        self.lines("if n < 128: out.append(n)", "else: number(out, n)")

    def _write_primitive(self, kind: Kind, name: str) -> None:
        match kind:
            case Kind.NULL:
                self.line(f"if {name} is not None: not_null({name})")
            case Kind.BOOLEAN:
                self.line(f"if {name}.__class__ is not bool: {name} = boolean({name})")
                self.line(f"out.append({name})")
            case Kind.INT | Kind.LONG:
                bound = 2 ** (_BITS[kind] - 1)
                self.line(f"if {name}.__class__ is not int: {name} = integer({name})")
                self.line(f"if not {-bound} <= {name} < {bound}: out_of_range({name}, {_BITS[kind]})")
                self._number(f"{name} << 1 if {name} >= 0 else ~({name} << 1)")
            case Kind.FLOAT | Kind.DOUBLE:
                self.line(f"if {name}.__class__ is not float: {name} = real({name})")
                self.line(f"out += {self.constant(_PACK[kind])}({name})")
            case Kind.BYTES:
                self.line(f"if {name}.__class__ is not bytes: {name} = raw({name})")
                self._number(f"len({name}) << 1")
                self.line(f"out += {name}")
            case Kind.STRING:
                self.line(f"if {name}.__class__ is not str: {name} = text({name})")
                self.line(f"e = {name}.encode()")
                self._number("len(e) << 1")
                self.line("out += e")

    def _write_enum(self, node: Enum, name: str) -> None:
        indexes = {symbol: index for index, symbol in enumerate(node.symbols)}
        self.line(f"n = {self.constant(indexes)}.get({name})")
        self.line(f"if n is None: no_symbol({name})")
        self._number("n << 1")

    def _write_array(self, node: Array, name: str) -> None:
        item = self.variable()
        self.line(f"if {name}.__class__ is not list: {name} = sequence({name})")
        with self.block(f"if {name}:"):
            self._number(f"len({name}) << 1")
            with self.block(f"for {item} in {name}:"), self.inside(_item_of(name, item)):
                self._write(node.items, item)
        self.line("out.append(0)")

    def _write_map(self, node: Map, name: str) -> None:
        key, value = self.variable(), self.variable()
        self.line(f"if {name}.__class__ is not dict: {name} = mapping({name})")
        with self.block(f"if {name}:"):
            self._number(f"len({name}) << 1")
            with self.block(f"for {key}, {value} in {name}.items():"), self.inside(_key_of(key)):
                self._write_primitive(Kind.STRING, key)
                self._write(node.values, value)
        self.line("out.append(0)")

    def _write_union(self, node: Union, name: str) -> None:
        if self._write_nullable(node, name):
            return
        self.line(f"u, {name} = {self.constant(chooser(node))}({name})")
        self._number("u << 1")
        positions = range(len(node.branches))
        self.cases("u", positions, lambda u: self._write(node.branches[u], name), otherwise="pass")

    def _write_nullable(self, node: Union, name: str) -> bool:
        """Null or one other type, which cannot be given in another way: no choice is to be made."""
        nulls = [takes_null(branch) for branch in node.branches]
        if len(nulls) != 2 or sum(nulls) != 1:
            return False
        other = nulls.index(False)
        branch = node.branches[other]
        with self.block(f"if {name} is None:"):
            self.line(f"out.append({2 * nulls.index(True)})")
        with self.block("else:"):
            if isinstance(branch, Record | Enum | Fixed):
                choose = self.constant(chooser(node))
                self.line(f"if {name}.__class__ is tuple: u, {name} = {choose}({name})")
            self.line(f"out.append({2 * other})")
            self._write(branch, name)
        return True

    def _write_record(self, node: Record, name: str) -> None:
        self.line(f"if {name}.__class__ is not dict: {name} = mapping({name})")
        for one in node.fields:
            value = self.variable()
            with self.inside(f".{one.name}"):
                default = _default(one)
                if default is MISSING:
                    self.line(f"{value} = {name}[{one.name!r}]")
                else:
                    self.line(f"{value} = {name}.get({one.name!r}, {self.constant(default)})")
                self._write(one.type, value)


def _default(one: Field) -> Any:
    """What stands in for a missing key: the default, else null where it is allowed."""
    if one.default is not MISSING:
        try:
            return default_value(one.type, one.default, Shape())
        except (ValueError, OverflowError, RecursionError):
            pass
    return None if takes_null(one.type) else MISSING


def _item_of(items: str, item: str) -> Part:
    """The index of the item that failed, by identity: equal items fail alike, so the first is as good."""

    def tell(known: Mapping[str, Any]) -> str:
        index = next((index for index, one in enumerate(known[items]) if one is known.get(item)), "")
        return f"[{index}]"

    return tell


def _key_of(key: str) -> Part:
    def tell(known: Mapping[str, Any]) -> str:
        return f"[{str(known.get(key))[:40]!r}]"

    return tell
