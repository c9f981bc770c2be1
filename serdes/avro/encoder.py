"""The compiler of Avro encoders for the payloads of registry frames.

    encode = compile_encoder(schema)
    payload = encode(value)

Like decoders, encoders are Python source for one schema (see `decoder_source.py`). A value that does not fit the
schema raises `EncodeError` with the path of the field and is never written as something else: no float becomes an int,
and no int of 40 bits is written as an `int`.

Rules of this file: source from nodes. `raw_values.py` has the functions that the source calls, `branches.py`
chooses union branches.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from strata.serdes.avro import schema as nodes
from strata.serdes.avro.bending import Bending, Report
from strata.serdes.avro.branches import chooser, takes_null
from strata.serdes.avro.logical_types import Shape, default_value
from strata.serdes.avro.raw_values import NAMES, lack, lowering
from strata.serdes.avro.source_lines import (
    PATHS,
    Explain,
    Listing,
    Part,
    SourceWriter,
    compile_listing,
    place,
    shorten,
)
from strata.serdes.errors import EncodeError, SchemaError, index_part, join_path, key_part, unknown_symbol
from strata.serdes.serde_settings import Missing

__all__ = ["Encoder", "compile_encoder"]

Encoder = Callable[[object], bytes]

_DEEPEST_BLOCK = 12
_NAMED = nodes.Record | nodes.Enum | nodes.Fixed
_BITS = {nodes.Kind.INT: 32, nodes.Kind.LONG: 64}
_PACK = {nodes.Kind.FLOAT: struct.Struct("<f").pack, nodes.Kind.DOUBLE: struct.Struct("<d").pack}


@dataclass(frozen=True, slots=True)
class _Options:
    """The choices of the caller of `compile_encoder`."""

    drop_unknown: bool = False
    round_times: bool = False
    missing: Missing = "default or null"
    bending: Bending | None = None


def compile_encoder(
    schema: str | nodes.Node,
    *,
    drop_unknown: bool = False,
    round_times: bool = False,
    missing: Missing = "default or null",
    bends: Report | None = None,
    drops_bent: bool = True,
) -> Encoder:
    """Return a function from a value to the payload of a frame; it raises `EncodeError`.

    A missing key of a record takes the field's default, or null if the field allows it. A key that is not a field is an
    error. A top-level `bytes` is written without a length, as every registry client does.

    Args:
        schema: the schema, as text or parsed; one with references must be parsed.
        drop_unknown: drop keys that are not fields instead.
        round_times: round times and timestamps that are finer than the schema's unit down, instead of raising.
        missing: what a missing key of a record may stand for.
        bends: write values that do not fit, and choose branches of unions, as confluent-kafka does, and report each
            change here; see `strata.serdes.avro.bending`.
        drops_bent: whether `bends` drops keys that are not fields.

    Raises:
        SchemaError: If the schema text cannot be used, or its types nest too deeply.
        TypeError: If the schema is neither a text nor a node.
    """
    try:
        bending = None if bends is None else Bending(bends, drops=drops_bent)
        options = _Options(drop_unknown, round_times or bending is not None, missing, bending)
        return _compiled(nodes.node_of(schema), {}, options)
    except RecursionError:
        raise SchemaError("the types of the schema are nested too deeply") from None


def _compiled(node: nodes.Node, branches: dict[int, Encoder], options: _Options) -> Encoder:
    """Return the encoder of a type; `branches` caches encoders of union branches, which explain errors."""
    writer = _EncoderWriter(branches, options)
    writer.write(node)
    bent = {} if options.bending is None else options.bending.names
    names = {**NAMES, **bent, PATHS: writer.listing.paths}
    return _guarded(compile_listing(writer.listing, "avro encoder", names), writer.listing)


def _guarded(namespace: dict[str, Any], listing: Listing) -> Encoder:
    write = namespace["encode"]

    def encode(value: object) -> bytes:
        try:
            payload: bytes = write(value)
        except Exception as error:  # noqa: BLE001 - a caller's objects may raise anything
            cause = None if isinstance(error, EncodeError) else error
            raise _located(error, namespace, listing) from cause
        return payload

    return encode


def _located(error: Exception, namespace: Mapping[str, object], listing: Listing) -> EncodeError:
    """Return the error with the path of the value that failed."""
    path, frame = place(error.__traceback__, namespace, listing.paths)
    if frame is not None and isinstance(error, LookupError | TypeError):
        explain = listing.explain.get(frame.f_lineno)
        error = error if explain is None else explain(frame.f_locals)
    if isinstance(error, EncodeError):
        return EncodeError(error.detail, path=shorten(join_path(path, error.path)))
    return EncodeError(_explain(error), path=path)


def _explain(error: Exception) -> str:
    match error:
        case RecursionError():
            return "the value is nested too deeply"
        case OverflowError():
            return "expected a number in the range of its type, got a larger one"
        case UnicodeEncodeError():
            return "expected a string that UTF-8 can hold, got one with a lone surrogate"
    return f"{type(error).__name__}: {error}"


class _EncoderWriter(SourceWriter):
    """The writer of `encode(value)` and of a function for each record that is used in several places."""

    def __init__(self, branches: dict[int, Encoder], options: _Options) -> None:
        super().__init__()
        self._branches = branches
        self._options = options
        self._bent = "" if options.bending is None else "bent_"
        self._functions: dict[tuple[int, str], str] = {}
        self._pending: list[tuple[nodes.Node, str]] = []
        self._shared: set[int] = set()

    def write(self, node: nodes.Node) -> None:
        self._find_shared(node, set())
        self.begin("def encode(value):")
        if isinstance(node, nodes.Primitive) and node.kind is nodes.Kind.BYTES:
            self._lower(node.logical, "value")
            self.line(f"return {self._bent}raw(value)")
            return
        self.line("out = bytearray()")
        self._write(node, "value")
        self.line("return bytes(out)")
        while self._pending:
            pending, self._bent = self._pending.pop()
            self.begin(f"def {self._functions[id(pending), self._bent]}(value, out):")
            self._write_here(pending, "value")

    @contextmanager
    def _in_union(self) -> Iterator[None]:
        """Write the types inside the `with` as the branches of a union, which bend logical types only."""
        outer, self._bent = self._bent, ""
        yield
        self._bent = outer

    def _find_shared(self, node: nodes.Node, seen: set[int]) -> None:
        """Collect the records that are used more than once, which includes recursive ones."""
        match node:
            case nodes.Record():
                if id(node) in seen:
                    self._shared.add(id(node))
                    return
                seen.add(id(node))
                for field in node.fields:
                    self._find_shared(field.type, seen)
            case nodes.Array(items=inner) | nodes.Map(values=inner):
                self._find_shared(inner, seen)
            case nodes.Union():
                for branch in node.branches:
                    self._find_shared(branch, seen)

    def _write(self, node: nodes.Node, name: str) -> None:
        is_deep = self.indent >= _DEEPEST_BLOCK and isinstance(
            node, nodes.Record | nodes.Array | nodes.Map | nodes.Union
        )
        if not is_deep and id(node) not in self._shared:
            self._write_here(node, name)
            return
        key = id(node), self._bent
        if key not in self._functions:
            self._functions[key] = f"f{len(self._functions)}"
            self._pending.append((node, self._bent))
        self.line(f"{self._functions[key]}({name}, out)")

    def _write_here(self, node: nodes.Node, name: str) -> None:
        match node:
            case nodes.Primitive():
                self._lower(node.logical, name)
                self._write_primitive(node.kind, name)
            case nodes.Fixed():
                self._lower(node.logical, name, node.size)
                self.line(f"if {name}.__class__ is not bytes: {name} = raw({name})")
                self.line(f"if len({name}) != {node.size}: bad_size({name}, {node.size})")
                self.line(f"out += {name}")
            case nodes.Enum():
                self._write_enum(node, name)
            case nodes.Array():
                self._write_array(node, name)
            case nodes.Map():
                self._write_map(node, name)
            case nodes.Union():
                self._write_union(node, name)
            case nodes.Record():
                self._write_record(node, name)

    def _lower(self, logical: nodes.Logical | None, name: str, size: int | None = None) -> None:
        lower = lowering(logical, size, round_times=self._options.round_times)
        if self._options.bending is not None:
            lower = self._options.bending.lowering(lower, logical)
        if lower is not None:
            self.line(f"{name} = {self.constant(lower)}({name})")

    def _number(self, expression: str) -> None:
        self.line(f"n = {expression}")
        self.lines("if n < 128: out.append(n)", "else: number(out, n)")

    def _write_primitive(self, kind: nodes.Kind, name: str) -> None:
        bent = self._bent
        match kind:
            case nodes.Kind.NULL:
                self.line(f"if {name} is not None: {bent}not_null({name})")
            case nodes.Kind.BOOLEAN:
                self.line(f"if {name}.__class__ is not bool: {name} = {bent}boolean({name})")
                self.line(f"out.append({name})")
            case nodes.Kind.INT | nodes.Kind.LONG:
                bound = 2 ** (_BITS[kind] - 1)
                self.line(f"if {name}.__class__ is not int: {name} = {bent}integer({name})")
                self.line(f"if not {-bound} <= {name} < {bound}: {bent}out_of_range({name}, {_BITS[kind]})")
                self._number(f"{name} << 1 if {name} >= 0 else ~({name} << 1)")
            case nodes.Kind.FLOAT | nodes.Kind.DOUBLE:
                self.line(f"if {name}.__class__ is not float: {name} = {bent}real({name})")
                self.line(f"out += {self.constant(self._pack(kind))}({name})")
            case nodes.Kind.BYTES:
                self.line(f"if {name}.__class__ is not bytes: {name} = raw({name})")
                self._number(f"len({name}) << 1")
                self.line(f"out += {name}")
            case nodes.Kind.STRING:
                self.line(f"if {name}.__class__ is not str: {name} = text({name})")
                self.line(f"e = {name}.encode()")
                self._number("len(e) << 1")
                self.line("out += e")

    def _pack(self, kind: nodes.Kind) -> Callable[[float], bytes]:
        bending, pack = self._options.bending, _PACK[kind]
        return pack if bending is None or kind is nodes.Kind.DOUBLE else bending.pack_float(pack)

    def _write_enum(self, node: nodes.Enum, name: str) -> None:
        indexes = self.constant({symbol: index for index, symbol in enumerate(node.symbols)})
        self.line(f"n = {indexes}.get({name})", lambda known: unknown_symbol(known[name], node.symbols))
        self.line(f"if n is None: n = symbol({name}, {indexes})")
        self._number("n << 1")

    def _write_array(self, node: nodes.Array, name: str) -> None:
        item = self.variable()
        self.line(f"if {name}.__class__ is not list: {name} = {self._bent}sequence({name})")
        with self.block(f"if {name}:"):
            self._number(f"len({name}) << 1")
            with self.block(f"for {item} in {name}:"), self.inside(_item_of(name, item)):
                self._write(node.items, item)
        self.line("out.append(0)")

    def _write_map(self, node: nodes.Map, name: str) -> None:
        key, value = self.variable(), self.variable()
        self.line(f"if {name}.__class__ is not dict: {name} = mapping({name})")
        with self.block(f"if {name}:"):
            self._number(f"len({name}) << 1")
            with self.block(f"for {key}, {value} in {name}.items():"), self.inside(_key_of(key)):
                self._write_primitive(nodes.Kind.STRING, key)
                self._write(node.values, value)
        self.line("out.append(0)")

    def _write_union(self, node: nodes.Union, name: str) -> None:
        if self._write_nullable(node, name):
            return
        self.line(f"u, {name} = {self.constant(self._chooser(node))}({name})")
        self._number("u << 1")
        positions = range(len(node.branches))
        with self._in_union():
            self.cases("u", positions, lambda u: self._write(node.branches[u], name), otherwise="pass")

    def _chooser(self, union: nodes.Union) -> Callable[[object], tuple[int, object]]:
        """Return the function that chooses a branch; to explain an error it tries the nearest branch."""
        encoders, options = self._branches, replace(self._options, bending=None)

        def explain(branch: nodes.Node, value: object) -> EncodeError | None:
            if id(branch) not in encoders:
                encoders[id(branch)] = _compiled(branch, encoders, options)
            try:
                encoders[id(branch)](value)
            except EncodeError as error:
                return error
            return None

        first = self._options.bending is not None
        return chooser(union, explain, round_times=self._options.round_times, first=first)

    def _write_nullable(self, node: nodes.Union, name: str, counter: str = "") -> bool:
        """Write null or the one other type, without a choice; a missing value decrements `counter`."""
        nulls = [takes_null(branch) for branch in node.branches]
        if len(nulls) != 2 or sum(nulls) != 1:
            return False
        other = nulls.index(False)
        branch = node.branches[other]
        null = 2 * nulls.index(True)
        with self.block(f"if {name} is None:"):
            self.line(f"out.append({null})")
        if counter:
            self.line(f"elif {name} is MISSING: out.append({null}); {counter} -= 1")
        with self.block("else:"):
            if isinstance(branch, _NAMED) or (
                self._options.bending is not None and isinstance(branch, nodes.Primitive)
            ):
                choose = self.constant(self._chooser(node))
                self.line(f"if {name}.__class__ is tuple: u, {name} = {choose}({name})")
            self.line(f"out.append({2 * other})")
            with self._in_union():
                self._write(branch, name)
        return True

    def _write_record(self, node: nodes.Record, name: str) -> None:
        """Write each field; a different number of keys reveals keys that are not fields."""
        self.line(f"if {name}.__class__ is not dict: {name} = mapping({name})")
        counts, names, left_out = not self._options.drop_unknown, _names(node), ""
        missing = self._options.missing
        if counts and any(_default(field, missing) is not nodes.MISSING for field in node.fields):
            left_out = self.variable()
            self.line(f"{left_out} = {len(node.fields)}")
        for field in node.fields:
            value, default = self.variable(), _default(field, missing)
            if default is nodes.MISSING:
                self.line(f"{value} = {name}[{field.name!r}]", _lack(name, field.name, names))
            elif counts:
                self.line(f"{value} = {name}.get({field.name!r}, MISSING)")
                if default is None and isinstance(field.type, nodes.Union) and self.indent < _DEEPEST_BLOCK:
                    with self.inside(f".{field.name}"):
                        if self._write_nullable(field.type, value, left_out):
                            continue
                self.line(f"if {value} is MISSING: {value} = {self.constant(default)}; {left_out} -= 1")
            else:
                self.line(f"{value} = {name}.get({field.name!r}, {self.constant(default)})")
            with self.inside(f".{field.name}"):
                self._write(field.type, value)
        if counts:
            called = self.constant((node.name, node.simple_name))
            self.line(
                f"if len({name}) != {left_out or len(node.fields)}: unknown({name}, {self.constant(names)}, {called})"
            )


def _names(record: nodes.Record) -> dict[str, str]:
    """Return the field that each field name or alias may mean."""
    aliases = {alias: field.name for field in record.fields for alias in field.aliases}
    return aliases | {field.name: field.name for field in record.fields}


def _lack(record: str, name: str, names: Mapping[str, str]) -> Explain:
    return lambda known: lack(known[record], name, names)


def _default(field: nodes.Field, missing: Missing) -> object:
    """Return the value for a missing key: the default, else null if the type allows it; MISSING is an error."""
    if field.default is not nodes.MISSING and missing != "error":
        try:
            return default_value(field.type, field.default, Shape())
        except (ValueError, OverflowError, RecursionError):
            pass
    return None if missing == "default or null" and takes_null(field.type) else nodes.MISSING


def _item_of(items: str, item: str) -> Part:
    """Return a path part: the index of the failed item, by identity; equal items fail alike, so the first will do."""

    def tell(known: Mapping[str, Any]) -> str:
        index = next((index for index, item_ in enumerate(known[items]) if item_ is known.get(item)), "")
        return index_part(index)

    return tell


def _key_of(key: str) -> Part:
    return lambda known: key_part(known.get(key))
