"""Source code of classes for shapes, the way back from `schemas`.

`schema_of` of the written root class is the schema again, but for what has no place in a class: properties that Avro
does not know, the order of a union's branches where a default decides it, and bounds in JSON Schema.

Rules of this file: shapes in, Python source out. Names that are not identifiers get one and keep their spelling in the
schema by `Field(name=…)`; texts of a schema appear as literals only.
"""

import json
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strata.serdes.classes.shapes import MISSING, Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import SchemaError

__all__ = ["STYLES", "class_source"]

_SCALARS: Final[Mapping[str, str]] = {
    "null": "None",
    "bool": "bool",
    "int": "int",
    "int32": "Annotated[int, Int32]",
    "float": "float",
    "float32": "Annotated[float, Float32]",
    "str": "str",
    "bytes": "bytes",
    "datetime": "datetime",
    "datetime-millis": "Annotated[datetime, Millis]",
    "local": "Annotated[datetime, Local]",
    "local-millis": "Annotated[datetime, Local, Millis]",
    "date": "date",
    "time": "time",
    "time-millis": "Annotated[time, Millis]",
    "uuid": "UUID",
}
_MODULES: Final = (
    ("dataclasses", ("dataclass", "field")),
    ("datetime", ("date", "datetime", "time")),
    ("decimal", ("Decimal",)),
    ("enum", ("Enum", "StrEnum")),
    ("typing", ("Annotated",)),
    ("uuid", ("UUID",)),
)
_MARKERS: Final = ("Absent", "Digits", "Field", "Fixed", "Float32", "Int32", "Local", "Millis", "Wire", "named")


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


def class_source(roots: Sequence[Shape], style: str, title: str) -> str:
    """Return the source of a module with a class for each class and enum of some shapes.

    Args:
        roots: the shapes.
        style: one of `STYLES`.
        title: what the module is made from, for its docstring.

    Raises:
        SchemaError: If a type has no class; the error names the field.
    """
    return _Writer(STYLES[style]).module(roots, title)


class _Writer:
    def __init__(self, style: _Style) -> None:
        self._style = style
        self._classes: dict[str, str] = {}
        self._texts: list[str] = []
        self._open: set[str] = set()

    def module(self, roots: Sequence[Shape], title: str) -> str:
        for root in roots:
            self._type(root)
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
        word = self._style.imports.rpartition(" ")[2]
        library = f"\n{self._style.imports}\n" if word and _uses(body, word) else ""
        head = f'"""Classes of {title}, written by `strata codegen`."""\n\n{imports}{library}{own}'
        listed = ", ".join(json.dumps(name) for name in names)
        return f"{head}\n__all__ = [{listed}]\n\n\n{body}\n"

    def _type(self, shape: Shape) -> str:
        match shape:
            case Scalar(kind="decimal", numbers=(precision, scale)):
                return f"Annotated[Decimal, Digits({precision}, {scale})]"
            case Scalar(kind="fixed", numbers=(size,), name=name):
                return f"Annotated[bytes, Fixed({size}, {_literal(name)})]"
            case Scalar(wire=wire) if wire:
                return f"Annotated[{_SCALARS[shape.kind]}, Wire({_literal(wire)})]"
            case Scalar():
                return _SCALARS[shape.kind]
            case Items():
                return f"{shape.make.__name__}[{self._type(shape.item)}]"
            case Values():
                return f"dict[str, {self._type(shape.value)}]"
            case Choice():
                return self._union(shape)
            case Symbols():
                return self._once(shape.name, lambda name: self._enum(shape, name))
            case Object():
                return self._once(shape.name, lambda name: self._record(shape, name))
        raise AssertionError(shape)

    def _union(self, shape: Choice) -> str:
        branches = []
        for position, branch in enumerate(shape.branches):
            written = self._type(branch)
            field = shape.fields[position] if position < len(shape.fields) else None
            about = _about(field.doc, field.name, (), field.number) if field else []
            branches.append(f"Annotated[{written}, Field({', '.join(about)})]" if about else written)
        union = " | ".join(branch.strip('"') for branch in branches)
        return f'"{union}"' if any(branch.startswith('"') for branch in branches) else union

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

    def _enum(self, shape: Symbols, name: str) -> str:
        more = [f"default={_literal(shape.default)}"] if shape.default is not None else []
        more += [f"prefix={_literal(shape.prefix)}"] if shape.prefix is not None else []
        values: Sequence[object] = shape.numbers or shape.symbols
        pairs = zip(shape.symbols, values, strict=True)
        lines = [
            f"    {_identifier(symbol)} = {json.dumps(value) if shape.by_value else value}" for symbol, value in pairs
        ]
        base = "StrEnum" if shape.by_value else "Enum"
        head = _named(shape, name, *more)
        return "\n".join([f"{head}class {name}({base}):", *_docstring(shape.doc), *lines])

    def _record(self, shape: Object, name: str) -> str:
        attributes: set[str] = set()
        fields = []
        for member in shape.members:
            attribute = _identifier(member.name)
            while attribute in attributes:
                attribute = f"{attribute}_"
            attributes.add(attribute)
            fields.append(self._field(member, attribute))
        lines = [*_docstring(shape.doc), *fields] or ["    pass"]
        head = _named(shape, name, *(["is_open=True"] if shape.is_open else []))
        return "\n".join([f"{head}{self._style.head.format(name)}", *lines])

    def _field(self, member: Member, attribute: str) -> str:
        hint = self._type(member.shape)
        about = _about(member.doc, member.name if attribute != member.name else "", member.aliases, member.number)
        marks = [f"Field({', '.join(about)})"] if about else []
        marks += ["Absent"] if member.is_absent else []
        if marks:
            hint = f"Annotated[{', '.join([hint, *marks])}]"
        return f"    {attribute}: {hint}{self._default(member)}"

    def _default(self, member: Member) -> str:
        """Return the default of a field as source; none where a value has a class."""
        value, shape = member.default, member.shape
        if isinstance(shape, Choice):
            shape = shape.branches[0] if value is not None else Scalar("null")
        match shape:
            case _ if value is MISSING:
                return ""
            case Symbols() if isinstance(value, str):
                return f" = {self._classes[shape.name]}.{_identifier(value)}"
            case Items() | Values() if not value or _is_plain(value):
                return f" = {self._style.factory.format(repr(value))}"
            case Scalar(kind=kind) if kind in _PLAIN:
                is_text = isinstance(value, str | bytes)
                return f" = {_literal(value) if is_text else repr(value)}"
        return ""


_PLAIN: Final = ("null", "bool", "int", "int32", "float", "float32", "str", "bytes", "fixed")


def _about(doc: str, name: str, aliases: Sequence[str], number: int) -> list[str]:
    about = [f"doc={_literal(doc)}"] if doc else []
    about += [f"name={_literal(name)}"] if name else []
    about += [f"aliases={_names(aliases)}"] if aliases else []
    return about + ([f"number={number}"] if number else [])


def _is_plain(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return all(isinstance(part, bool | int | float) or part is None for part in parts)


def _named(shape: Object | Symbols, name: str, *more: str) -> str:
    parts = [f"aliases={_names(shape.aliases)}"] if shape.aliases else []
    parts += [f"doc={_literal(shape.doc)}"] if shape.doc and not _fits_docstring(shape.doc) else []
    parts += more
    if shape.name == name and not parts:
        return ""
    return f"@named({', '.join([_literal(shape.name), *parts])})\n"


def _docstring(doc: str) -> list[str]:
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
    """Return a name as one of Python, which no library takes for a private one."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_") or "field"
    plain = f"f_{plain}" if plain[0].isdigit() else plain
    return f"{plain}_" if keyword.iskeyword(plain) else plain


_TEXT: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


def _uses(body: str, word: str) -> bool:
    """Return whether code uses a name outside of texts."""
    return re.search(rf"(?<![\w.]){word}\b", _TEXT.sub('""', body)) is not None
