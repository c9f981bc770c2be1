"""Source code of classes for an Avro schema, the way back from `schemas`.

`schema_of` of the written root class is the schema again, but for what has no place in a class: properties that Avro
does not know, and the order of a union's branches where a default decides it.

Rules of this file: a parsed schema in, Python source out. Names that are words of Python get an underscore and keep
their spelling in the schema by `Field(name=…)`; texts of a schema appear as literals only.
"""

import json
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strata.compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    FixedType,
    MapType,
    Missing,
    Node,
    PrimitiveType,
    RecordType,
    UnionType,
    resolve,
)
from strata.serdes.errors import SchemaError

__all__ = ["STYLES", "class_source"]

_PRIMITIVES: Final[Mapping[str, str]] = {
    "null": "None",
    "boolean": "bool",
    "int": "Annotated[int, Int32]",
    "long": "int",
    "float": "Annotated[float, Float32]",
    "double": "float",
    "bytes": "bytes",
    "string": "str",
}
_LOGICAL: Final[Mapping[tuple[str, str], str]] = {
    ("int", "date"): "date",
    ("int", "time-millis"): "Annotated[time, Millis]",
    ("long", "time-micros"): "time",
    ("long", "timestamp-millis"): "Annotated[datetime, Millis]",
    ("long", "timestamp-micros"): "datetime",
    ("long", "local-timestamp-millis"): "Annotated[datetime, Local, Millis]",
    ("long", "local-timestamp-micros"): "Annotated[datetime, Local]",
    ("string", "uuid"): "UUID",
}
_WITHOUT_CLASS: Final = ("timestamp-nanos", "local-timestamp-nanos", "duration")
_MODULES: Final = (
    ("dataclasses", ("dataclass", "field")),
    ("datetime", ("date", "datetime", "time")),
    ("decimal", ("Decimal",)),
    ("enum", ("StrEnum",)),
    ("typing", ("Annotated",)),
    ("uuid", ("UUID",)),
)
_MARKERS: Final = ("Digits", "Field", "Fixed", "Float32", "Int32", "Local", "Millis", "named")


@dataclass(frozen=True, slots=True)
class _Style:
    """How a library writes classes.

    Attributes:
        head: the lines before a class, and its first line.
        imports: its imports.
        factory: the form of a default that is a new list or dict each time.
    """

    head: str
    imports: str
    factory: str


STYLES: Final[Mapping[str, _Style]] = {
    "dataclass": _Style("@dataclass(kw_only=True, slots=True)\nclass {}:", "", "field(default_factory=lambda: {})"),
    "pydantic": _Style("class {}(BaseModel):", "from pydantic import BaseModel", "{}"),
    "msgspec": _Style(
        "class {}(msgspec.Struct, kw_only=True):", "import msgspec", "msgspec.field(default_factory=lambda: {})"
    ),
}
"""The libraries by the names of `--as`."""


def class_source(schema: AvroSchema, style: str, title: str) -> str:
    """Return the source of a module with a class for each record and enum of a schema.

    Args:
        schema: the schema with its references.
        style: one of `STYLES`.
        title: what the module is made from, for its docstring.

    Raises:
        SchemaError: If a type has no class; the error names the field.
    """
    return _Writer(schema, STYLES[style]).module(title)


class _Writer:
    def __init__(self, schema: AvroSchema, style: _Style) -> None:
        self._schema, self._style = schema, style
        self._classes: dict[str, str] = {}
        self._texts: list[str] = []
        self._open: set[str] = set()

    def module(self, title: str) -> str:
        self._type(self._schema.root, "")
        if not self._texts:
            raise SchemaError("a class needs a record or an enum, and the schema is neither")
        body = "\n\n\n".join(self._texts)
        names = sorted(self._classes.values())
        imports = "".join(
            f"from {module} import {', '.join(used)}\n"
            for module, words in _MODULES
            if (used := [word for word in words if _uses(body, word)])
        )
        markers = [word for word in _MARKERS if _uses(body, word)]
        own = f"\nfrom strata.serdes.classes import {', '.join(markers)}\n" if markers else ""
        library = f"\n{self._style.imports}\n" if self._style.imports else ""
        head = f'"""Classes of {title}, written by `strata codegen`."""\n\n{imports}{library}{own}'
        listed = ", ".join(json.dumps(name) for name in names)
        return f"{head}\n__all__ = [{listed}]\n\n\n{body}\n"

    def _type(self, node: Node, where: str) -> str:
        node = resolve(node, self._schema.names)
        match node:
            case PrimitiveType():
                return self._primitive(node, where)
            case FixedType():
                return self._fixed(node, where)
            case ArrayType():
                return f"list[{self._type(node.items, f'{where}[]')}]"
            case MapType():
                return f"dict[str, {self._type(node.values, f'{where}{{}}')}]"
            case UnionType():
                branches = [self._type(branch, where) for branch in node.branches]
                union = " | ".join(branch.strip('"') for branch in branches)
                return f'"{union}"' if any(branch.startswith('"') for branch in branches) else union
            case EnumType():
                return self._once(node.name.full, lambda name: self._enum(node, name))
            case RecordType():
                return self._once(node.name.full, lambda name: self._record(node, name))
        raise AssertionError(node)

    def _primitive(self, node: PrimitiveType, where: str) -> str:
        logical = node.properties.get("logicalType")
        if logical == "decimal" and node.kind == "bytes":
            return f"Annotated[Decimal, Digits({node.properties.get('precision')}, {node.properties.get('scale', 0)})]"
        if logical in _WITHOUT_CLASS:
            raise SchemaError(f"{where}: {logical} has no type in Python that keeps all its values")
        return _LOGICAL.get((node.kind, str(logical)), _PRIMITIVES[node.kind])

    def _fixed(self, node: FixedType, where: str) -> str:
        if node.properties.get("logicalType") in ("decimal", "duration", "uuid"):
            raise SchemaError(f"{where}: a fixed with a logical type has no class")
        return f"Annotated[bytes, Fixed({node.size}, {_literal(node.name.full)})]"

    def _once(self, full: str, write: Callable[[str], str]) -> str:
        known = self._classes.get(full)
        if known is not None:
            return f'"{known}"' if full in self._open else known
        name = self._free(full.rpartition(".")[2])
        self._classes[full] = name
        self._open.add(full)
        text = write(name)
        self._open.discard(full)
        self._texts.append(text)
        return name

    def _free(self, simple: str) -> str:
        name, number = _identifier(simple), 2
        while name in self._classes.values():
            name, number = f"{_identifier(simple)}{number}", number + 1
        return name

    def _enum(self, node: EnumType, name: str) -> str:
        more = [f"default={_literal(node.default)}"] if node.default is not None else []
        lines = [f"    {_identifier(symbol)} = {json.dumps(symbol)}" for symbol in node.symbols]
        head = _named(node, name, *more)
        return "\n".join([f"{head}class {name}(StrEnum):", *_docstring(node.doc), *lines])

    def _record(self, node: RecordType, name: str) -> str:
        fields = [self._field(field, name) for field in node.fields]
        lines = [*_docstring(node.doc), *fields] or ["    pass"]
        return "\n".join([f"{_named(node, name)}{self._style.head.format(name)}", *lines])

    def _field(self, field: Field, record: str) -> str:
        where = f"{record}.{field.name}"
        attribute, hint = _identifier(field.name), self._type(field.type, where)
        about = [f"doc={_literal(field.doc)}"] if field.doc else []
        about += [f"name={_literal(field.name)}"] if attribute != field.name else []
        about += [f"aliases={_names(field.aliases)}"] if field.aliases else []
        if about:
            hint = f"Annotated[{hint}, Field({', '.join(about)})]"
        return f"    {attribute}: {hint}{self._default(field)}"

    def _default(self, field: Field) -> str:
        if isinstance(field.default, Missing):
            return ""
        node = resolve(field.type, self._schema.names)
        if isinstance(node, UnionType):
            node = resolve(node.branches[0], self._schema.names)
        value: Any = field.default
        if value is None or isinstance(value, bool | int | float):
            has_class = isinstance(node, PrimitiveType) and isinstance(node.properties.get("logicalType"), str)
            return "" if has_class and value is not None else f" = {value!r}"
        if isinstance(value, str):
            return self._text_default(node, value)
        is_plain = isinstance(node, ArrayType | MapType) and (not value or _is_plain(value))
        return f" = {self._style.factory.format(repr(value))}" if is_plain else ""

    def _text_default(self, node: Node, value: str) -> str:
        match node:
            case EnumType():
                return f" = {self._classes[node.name.full]}.{_identifier(value)}"
            case FixedType() | PrimitiveType(kind="bytes"):
                is_decimal = node.properties.get("logicalType") == "decimal"
                return "" if is_decimal else f" = {_literal(value.encode('latin-1'))}"
            case PrimitiveType() if node.properties.get("logicalType") is None:
                return f" = {_literal(value)}"
        return ""


def _is_plain(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return all(isinstance(part, bool | int | float) or part is None for part in parts)


def _named(node: RecordType | EnumType, name: str, *more: str) -> str:
    parts = [f"aliases={_names([alias.full for alias in node.aliases])}"] if node.aliases else []
    parts += [f"doc={_literal(node.doc)}"] if node.doc and not _fits_docstring(node.doc) else []
    parts += more
    if node.name.full == name and not parts:
        return ""
    return f"@named({', '.join([_literal(node.name.full), *parts])})\n"


def _docstring(doc: str | None) -> list[str]:
    return [f'    """{doc}"""', ""] if doc and _fits_docstring(doc) else []


def _fits_docstring(doc: str) -> bool:
    """Return whether a text can stand between three quotes as it is, and be found there again."""
    return doc == " ".join(doc.split()) and doc.isprintable() and not set(doc) & set('"\\')


def _names(names: Sequence[str]) -> str:
    listed = ", ".join(map(_literal, names))
    return f"({listed},)" if len(names) == 1 else f"({listed})"


def _literal(value: object) -> str:
    """Return a value as source, a text in double quotes where it holds none, as formatters write it."""
    text = repr(value)
    start = text.find("'")
    if isinstance(value, str | bytes) and start in (0, 1) and '"' not in text:
        return f'{text[:start]}"{text[start + 1 : -1]}"'
    return text


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


_TEXT: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


def _uses(body: str, word: str) -> bool:
    """Return whether code uses a name outside of texts."""
    return re.search(rf"(?<![\w.]){word}\b", _TEXT.sub('""', body)) is not None
