"""The findings of a check: short notes for the rules, and full reports for the caller.

Most notes are never reported: a union branch that does not fit does not matter if another one does. So the rules only
note what they met and where, and the text is built later, for the notes that are reported.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from strata.compat.avro.json_text import in_java_order
from strata.compat.avro.model import EnumType, FixedType, Node, RecordType, Reference, UnionType
from strata.compat.avro.wording import Kind, describe
from strata.compat.result import Incompatibility, Value
from strata.compat.schema import SchemaFormat

__all__ = ["ROOT", "Findings", "Note", "Place", "report", "start"]


class Place(NamedTuple):
    """A position in the schemas: a step down from another place. A step without a token starts a new path."""

    above: "Place | None"
    token: str | None
    label: str


ROOT: Final = Place(None, None, "")


class Note(NamedTuple):
    """A short finding: its kind, the place, the two types, and a detail that they do not contain."""

    kind: Kind
    place: Place
    reader: Node
    writer: Node
    word: str = ""


Findings: TypeAlias = tuple[Note, ...]
_Detail: TypeAlias = Callable[[Note], str]
_Values: TypeAlias = Callable[[Note], tuple[Value, Value]]


def start(above: Place) -> Place:
    """Return a place below another one whose path starts again at the root."""
    return Place(above, None, "")


def report(note: Note) -> Incompatibility:
    """Return the full finding for a note."""
    path, where = _pointer_and_label(note.place)
    detail_of, values_of = _FACTS.get(note.kind, _WORD_ONLY)
    detail, (reader_value, writer_value) = detail_of(note), values_of(note)
    return Incompatibility(
        format=SchemaFormat.AVRO,
        kind=note.kind,
        path=path,
        message=describe(note.kind, path, detail),
        detail=detail,
        where=where,
        reader=_type_name(note.reader),
        writer=_type_name(note.writer),
        reader_value=reader_value,
        writer_value=writer_value,
    )


def _pointer_and_label(place: Place) -> tuple[str, str]:
    """Return the pointer as on the wire, and the same place by field names, across unions too."""
    tokens: list[str] = []
    labels: list[str] = []
    pointing = True
    here: Place | None = place
    while here is not None:
        labels.append(here.label)
        if here.token is None:
            pointing = False
        elif pointing:
            tokens.append(here.token)
        here = here.above
    return "/" + "/".join(reversed(tokens)), "".join(reversed(labels)).removeprefix(".")


def _type_name(node: Node) -> str:
    return f"{node.kind} {_full_name(node)}" if hasattr(node, "name") else node.kind


def _full_name(node: Node) -> str:
    name = getattr(node, "name", None)
    return name.full if name is not None else ""


def _missing_symbols(note: Note) -> str:
    missing: set[str] = set()
    if isinstance(note.reader, EnumType) and isinstance(note.writer, EnumType):
        missing = set(note.writer.symbols).difference(note.reader.symbols)
    return f"[{', '.join(in_java_order(missing))}]"


def _sizes(note: Note) -> str:
    sizes = [node.size if isinstance(node, FixedType) else 0 for node in (note.writer, note.reader)]
    return "expected: {}, found: {}".format(*sizes)


def _unlike_types(note: Note) -> str:
    return f"reader type: {note.reader.kind.upper()} not compatible with writer type: {note.writer.kind.upper()}"


def _type(node: Node) -> Value:
    """Return the name of a type for people; for a union, the list of its branches."""
    if isinstance(node, UnionType):
        return [_type(branch) for branch in node.branches]
    return node.full if isinstance(node, Reference) else _type_name(node)


def _both(value: Callable[[Node], Value]) -> _Values:
    return lambda note: (value(note.reader), value(note.writer))


def _missing_field(note: Note) -> tuple[Value, Value]:
    """Return the type of the reader's field, and None for the writer, which lacks the field."""
    fields = note.reader.fields if isinstance(note.reader, RecordType) else ()
    return next((_type(field.type) for field in fields if field.name == note.word), None), None


_BOTH_TYPES: Final = _both(_type)
_BOTH_SIZES: Final = _both(lambda node: node.size if isinstance(node, FixedType) else None)
_BOTH_SYMBOLS: Final = _both(lambda node: list(node.symbols) if isinstance(node, EnumType) else None)
_WORD_ONLY: Final[tuple[_Detail, _Values]] = (lambda note: note.word, lambda _: (None, None))
# The `additionalInfo` of a finding, and what the reader and the writer schema have at the place, by kind.
_FACTS: Final[Mapping[Kind, tuple[_Detail, _Values]]] = {
    Kind.NAME_MISMATCH: (lambda note: f"expected: {_full_name(note.writer)}", _BOTH_TYPES),
    Kind.FIXED_SIZE_MISMATCH: (_sizes, _BOTH_SIZES),
    Kind.MISSING_ENUM_SYMBOLS: (_missing_symbols, _BOTH_SYMBOLS),
    Kind.READER_FIELD_MISSING_DEFAULT_VALUE: (lambda note: note.word, _missing_field),
    Kind.TYPE_MISMATCH: (_unlike_types, _BOTH_TYPES),
    Kind.MISSING_UNION_BRANCH: (
        lambda note: f"reader union lacking writer type: {note.writer.kind.upper()}",
        _BOTH_TYPES,
    ),
}
