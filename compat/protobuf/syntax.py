"""The parser from text to tree: recursive descent over proto2 and proto3 as the reference's parser reads them.

It is more lenient than protoc (keywords as names, options of any name, file-level order) and in a few places stricter
(a block comment after a field must end its line; groups contain only fields). It refuses editions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Final, TypeVar

from strata.compat.limits import Limits
from strata.compat.protobuf import model
from strata.compat.protobuf.option_text import read_option, read_options, strip_option
from strata.compat.protobuf.reader import PlainField, Reader
from strata.compat.schema import SchemaParseError

__all__ = ["read_file"]

_FILE, _MESSAGE, _ENUM, _RPC, _EXTEND, _SERVICE = "file", "message", "enum", "rpc", "extend", "service"
_SYNTAXES: Final = ("proto2", "proto3")
_LABELS: Final = ("required", "optional", "repeated")
_UNLABELLED: Final = frozenset({None})
_PLAIN_LABELS: Final = {  # of the fields in a body that are read in one step
    (context, is_proto3): frozenset({None, "optional", "repeated"} if is_proto3 else _LABELS)
    for context in (_MESSAGE, _EXTEND)
    for is_proto3 in (False, True)
}

_PartT = TypeVar("_PartT")


def read_file(text: str, limits: Limits) -> model.File:
    """Parse a .proto file without resolving names.

    Raises:
        SchemaParseError: The text is not a .proto file or exceeds a bound.
        OutOfTime: The time of `limits` ran out.
    """
    if len(text) > limits.text:
        raise SchemaParseError(f"The schema has {len(text)} characters; at most {limits.text} are allowed")
    return _FileReader(text, limits).read()


@dataclass
class _Parts:
    """The declarations of one body, by their kind."""

    by_type: dict[type, list[object]] = field(default_factory=dict)

    def add(self, part: object) -> None:
        if part is not None:
            self.by_type.setdefault(type(part), []).append(part)

    def of(self, type_: type[_PartT]) -> tuple[_PartT, ...]:
        return tuple(part for part in self.by_type.get(type_, ()) if isinstance(part, type_))


class _FileReader:
    def __init__(self, text: str, limits: Limits):
        self._reader = Reader(text, limits)
        self._syntax: str | None = None
        self._package: str | None = None
        self._packages_at: list[int] = []
        self._imports: dict[str, list[tuple[str, int]]] = {"": [], "public": [], "weak": []}
        self._declarations = 0
        self._indentation = 0  # total indentation of the declarations when printed, in characters
        self._start = 0  # the position of the last declaration
        self._depth = 0
        self._counts = {"types": 0, "fields": 0, "symbols": 0}

    def read(self) -> model.File:
        parts = _Parts()
        defined: dict[tuple[bool, str], model.TypeDefinition | model.Service] = {}
        while not self._reader.at_end():
            part = self._declaration(_FILE)
            if isinstance(part, model.Message | model.Enum | model.Service):
                name = (isinstance(part, model.Service), part.name)  # a service may be called like a type
                if name in defined:
                    raise self._reader.fault(f"{part.name[:60]} is defined twice; rename one of the two")
                defined[name] = part
            parts.add(part)
        imports, public, weak = (tuple(path for path, _ in self._imports[modifier]) for modifier in self._imports)
        return model.File(
            self._package,
            self._syntax,
            imports,
            public,
            weak,
            tuple(part for part in defined.values() if isinstance(part, model.TypeDefinition)),
            parts.of(model.Service),
            parts.of(model.Extend),
            parts.of(model.Option),
            tuple(at for modifier in ("", "public") for _, at in self._imports[modifier]),
            self._packages_at[1] if len(self._packages_at) > 1 else -1,
        )

    def _declaration(self, context: str) -> object:
        self._count_declaration()
        reader = self._reader
        if reader.take(";"):
            return None
        reader.peek()
        start = self._start = reader.position
        word = reader.word(leading_digit=context != _ENUM)
        if word == "option":
            option = read_option(reader, self._depth_left())
            reader.require(";")
            return option
        if word == "reserved":
            return self._reserved()
        read = _STATEMENTS[context].get(word)
        if read is not None:
            return read(self)
        if context in (_MESSAGE, _EXTEND):
            return self._labelled(word, start)
        if context == _ENUM:
            return self._constant(word)
        if word == "edition" and context == _FILE:
            raise reader.fault(
                'Editions are not supported; write syntax = "proto3" or syntax = "proto2" instead', start
            )
        expected = ", ".join(sorted((*_STATEMENTS[context], "option")))
        raise reader.fault(f"{word[:60]} does not begin a statement here; expected {expected}", start)

    def _count_declaration(self) -> None:
        self._declarations += 1
        limits = self._reader.limits
        limits.look_at_clock()
        self._indentation += 2 * self._depth
        if self._indentation > limits.text:
            raise self._reader.fault(f"The printed schema has more than {limits.text} characters")

    def _plain_declaration(self, plain: PlainField) -> model.Field:
        self._count_declaration()
        self._start = plain.start
        return self._plain_field(plain)

    def _plain_field(self, plain: PlainField) -> model.Field:
        self._count("fields")
        return model.Field(plain.label, plain.type_name, plain.name, plain.tag, (), None, None, plain.at)

    def _body(self, context: str) -> _Parts:
        """Read the declarations between braces."""
        self._enter()
        parts = _Parts()
        labels = _PLAIN_LABELS.get((context, self._syntax == "proto3"))
        while True:
            plain = self._reader.plain_field(labels) if labels else None
            if plain is None and self._reader.take("}"):
                break
            parts.add(self._declaration(context) if plain is None else self._plain_declaration(plain))
        self._depth -= 1
        return parts

    def _read_syntax(self) -> None:
        reader = self._reader
        if self._syntax is not None:
            raise reader.fault("The syntax is given twice; remove one of the two statements", self._start)
        reader.require("=")
        if self._declarations != 1:
            raise reader.fault("Move the syntax statement to the beginning of the file", self._start)
        syntax = reader.literal()
        if syntax not in _SYNTAXES:
            raise reader.fault(f'Unknown syntax "{syntax[:60]}"; expected "proto2" or "proto3"', self._start)
        self._syntax = syntax
        reader.require(";")

    def _read_package(self) -> None:
        self._package = self._reader.name()
        self._packages_at.append(self._start)
        self._reader.require(";")

    def _read_import(self) -> None:
        reader = self._reader
        modifier = "" if reader.peek() in "\"'" else reader.word()
        if modifier not in self._imports:
            raise reader.fault("An import needs a path in quotes; only public or weak may come before it", self._start)
        self._imports[modifier].append((_plain_path(reader.literal()), self._start))
        reader.require(";")

    def _name(self, *, leading_digit: bool = True) -> tuple[str, int]:
        """Read a name; return it with its place."""
        self._reader.peek()
        at = self._reader.position
        return self._reader.name(leading_digit=leading_digit), at

    def _block(self, context: str) -> tuple[str, _Parts, int]:
        """Read a name and the statements in braces after it."""
        name, at = self._name()
        if context in (_MESSAGE, _ENUM):
            self._count("types")
        self._reader.require("{")
        return name, self._body(context), at

    def _message(self) -> model.Message:
        name, parts, at = self._block(_MESSAGE)
        return model.Message(
            name,
            parts.of(model.Field),
            parts.of(model.OneOf),
            parts.of(model.Group),
            (*parts.of(model.Message), *parts.of(model.Enum)),
            parts.of(model.Option),
            parts.of(model.Reserved),
            parts.of(model.Extensions),
            parts.of(model.Extend),
            at,
        )

    def _enum(self) -> model.Enum:
        name, parts, at = self._block(_ENUM)
        return model.Enum(name, parts.of(model.Constant), parts.of(model.Option), parts.of(model.Reserved), at)

    def _service(self) -> model.Service:
        name, parts, at = self._block(_SERVICE)
        return model.Service(name, parts.of(model.Rpc), parts.of(model.Option), at)

    def _extend(self) -> model.Extend:
        name, parts, at = self._block(_EXTEND)
        return model.Extend(name, parts.of(model.Field), at)

    def _rpc(self) -> model.Rpc:
        reader = self._reader
        self._count("fields")
        name, at = self._name()
        request, request_streams = self._rpc_type()
        if reader.word() != "returns":
            raise reader.fault(f"Method {name[:60]} has no response type; add returns (Type)", self._start)
        response, response_streams = self._rpc_type()
        options: tuple[model.Option, ...] = ()
        if reader.take("{"):
            options = self._body(_RPC).of(model.Option)
        else:
            reader.require(";")
        return model.Rpc(name, request, response, request_streams, response_streams, options, at)

    def _rpc_type(self) -> tuple[str, bool]:
        self._reader.require("(")
        word = self._reader.word()
        streams = word == "stream"
        name = self._data_type() if streams else self._data_type(word)
        self._reader.require(")")
        return name, streams

    def _oneof(self) -> model.OneOf:
        reader = self._reader
        parts = _Parts()
        name, at = self._name()
        reader.require("{")
        while True:
            plain = reader.plain_field(_UNLABELLED)
            if plain is not None:
                parts.add(self._plain_field(plain))
                continue
            if reader.take("}"):
                break
            reader.peek()
            type_name = self._data_type()
            if type_name == "group":
                parts.add(self._group(None))
            elif type_name == "option":
                parts.add(read_option(reader, self._depth_left()))
                reader.require(";")
            else:
                parts.add(self._field(None, type_name))
        return model.OneOf(name, parts.of(model.Field), parts.of(model.Group), parts.of(model.Option), at)

    def _labelled(self, word: str, start: int) -> model.Field | model.Group:
        reader = self._reader
        if word == "required" and self._syntax == "proto3":
            raise reader.fault("A proto3 field cannot be required; remove the word", start)
        label = word if word in _LABELS else None
        if label is None and self._syntax != "proto3" and not (word == "map" and reader.peek() == "<"):
            raise reader.fault(
                "Expected optional, required or repeated before a field "
                f'(or syntax = "proto3" at the beginning of the file), got {word[:60]}',
                start,
            )
        type_name = self._data_type() if label else self._data_type(word)
        if label and type_name.startswith("map<"):
            raise reader.fault(f"A map cannot be {label}; remove the word", start)
        return self._group(label) if type_name == "group" else self._field(label, type_name)

    def _field(self, label: str | None, type_name: str) -> model.Field:
        reader = self._reader
        self._count("fields")
        name, at = self._name(leading_digit=False)
        reader.require("=")
        tag = reader.integer()
        reader.peek()
        start = reader.position
        options = read_options(reader, self._depth_left())
        default, options = strip_option(reader, start, "default", options)
        json_name, options = strip_option(reader, start, "json_name", options)
        reader.require(";")
        reader.trailing_comment()
        return model.Field(label, type_name, name, tag, options, default, json_name, at)

    def _group(self, label: str | None) -> model.Group:
        reader = self._reader
        reader.peek()
        at = reader.position
        name = reader.word()
        self._count("fields")
        reader.require("=")
        tag = reader.integer()
        reader.require("{")
        self._enter()
        fields: list[model.Field] = []
        while not reader.take("}"):
            reader.peek()
            start = reader.position
            part = self._labelled(reader.word(), start)
            if not isinstance(part, model.Field):
                raise reader.fault("A group may hold only fields, not another group", start)
            fields.append(part)
        self._depth -= 1
        return model.Group(label, name, tag, tuple(fields), at)

    def _data_type(self, word: str | None = None) -> str:
        reader = self._reader
        word = reader.word() if word is None else word
        if word != "map":
            while reader.take("."):
                word += f".{reader.word()}"
            return word
        self._enter()
        reader.require("<")
        key = self._data_type()
        reader.require(",")
        value = self._data_type()
        reader.require(">")
        self._depth -= 1
        return f"map<{key}, {value}>"

    def _reserved(self) -> model.Reserved:
        reader, at = self._reader, self._start
        values = self._listed(";", lambda: reader.literal() if reader.peek() in "\"'" else self._tags(",;"))
        reader.require(";")
        reader.trailing_comment()
        return model.Reserved(values, at)

    def _extensions(self) -> model.Extensions:
        at = self._start
        values = self._listed(";[", lambda: self._tags(",;["))
        options = read_options(self._reader, self._depth_left())
        self._reader.require(";")
        return model.Extensions(values, options, at)

    def _listed(self, ends: str, read: Callable[[], _PartT]) -> tuple[_PartT, ...]:
        """Read values with commas between them, up to one of the characters that end the list."""
        values: list[_PartT] = []
        while True:
            values.append(read())
            self._count("symbols")
            if self._reader.peek() in ends:
                return tuple(values)
            if not self._reader.take(","):
                raise self._reader.fault("',' or ';' is missing after a tag, range or name")

    def _tags(self, ends: str) -> int | model.Range:
        """Read `5` or `5 to 7` or `5 to max`."""
        reader = self._reader
        first = reader.integer()
        if reader.peek() in ends:
            return first
        if reader.word() != "to":
            raise reader.fault("Expected 'to' after the first number of a range")
        word = reader.word()
        return first, model.LARGEST_TAG if word == "max" else reader.as_integer(word)

    def _constant(self, name: str) -> model.Constant:
        reader, at = self._reader, self._start
        self._count("symbols")
        reader.require("=")
        tag = reader.integer()
        options = read_options(reader, self._depth_left())
        reader.require(";")
        reader.trailing_comment()
        return model.Constant(name, tag, options, at)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > self._reader.limits.depth:
            raise self._reader.fault(f"Messages and maps are nested more than {self._reader.limits.depth} deep")

    def _depth_left(self) -> int:
        """Return the depth left for option values, which share one bound with messages."""
        return self._reader.limits.depth - self._depth

    def _count(self, what: str) -> None:
        self._counts[what] += 1
        allowed: int = getattr(self._reader.limits, what)
        if self._counts[what] > allowed:
            raise self._reader.fault(f"The schema has more than {allowed} {what}")


_Statement = Callable[[_FileReader], object]
_NESTED: Final[Mapping[str, _Statement]] = {
    "message": _FileReader._message,
    "enum": _FileReader._enum,
    "extend": _FileReader._extend,
}
_STATEMENTS: Final[Mapping[str, Mapping[str, _Statement]]] = {
    _FILE: {
        **_NESTED,
        "syntax": _FileReader._read_syntax,
        "package": _FileReader._read_package,
        "import": _FileReader._read_import,
        "service": _FileReader._service,
    },
    _MESSAGE: {**_NESTED, "oneof": _FileReader._oneof, "extensions": _FileReader._extensions},
    _SERVICE: {"rpc": _FileReader._rpc},
    _ENUM: {},
    _RPC: {},
    _EXTEND: {},
}


def _plain_path(path: str) -> str:
    """Return a path with single slashes and without `.` parts, or a dot for an empty path."""
    path = path.replace("\\", "/")
    root = "/" if path.startswith("/") else ""
    parts = (part for part in path.split("/") if part not in ("", "."))
    return root + "/".join(dropwhile("..".__eq__, parts) if root else parts) or "."
