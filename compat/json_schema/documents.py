"""Where a `$ref` leads: inside its document, to a registered reference, or nowhere. Nothing is ever fetched."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from compat.json_schema.dialects import Dialect, dialect_of
from compat.json_schema.json_text import Json, excerpt
from compat.json_schema.metaschemas import metaschema_of
from compat.schema import SchemaParseError

__all__ = ["NOT_SCHEMAS", "Documents", "Place"]

NOT_SCHEMAS: Final = frozenset({"enum", "const", "default", "examples"})  # keywords that hold values


class Place(NamedTuple):
    """A schema in a document."""

    value: Json
    base: str  # the URI that relative ones are joined with
    document: int
    dialect: Dialect
    root: bool = False  # whether it is the whole of the document


class _Document(NamedTuple):
    root: Json
    uri: str
    dialect: Dialect


class Documents:
    """The schema itself (document 0) and what it refers to, with every name in them."""

    def __init__(self, root: Json, references: Mapping[str, Json]):
        self._documents = [self._document(root, "")]
        self._names: dict[str, Place] = {}
        self.has_references = bool(references)
        for name, value in references.items():
            self._documents.append(self._document(value, name))
        for number, document in enumerate(self._documents):
            if number:
                place = Place(document.root, document.uri, number, document.dialect)
                self._names.setdefault(document.uri.removesuffix("#"), place)
            for place, name in _named(Place(document.root, document.uri, number, document.dialect)):
                self._names.setdefault(name, place)

    @property
    def root(self) -> Place:
        """The schema itself."""
        document = self._documents[0]
        return Place(document.root, document.uri, 0, document.dialect, root=True)

    def resolve(self, reference: str, origin: Place) -> Place:
        """The schema that a reference means at a place."""
        target, fragment = urldefrag(reference)
        start = self._start(reference, target, origin)
        if fragment.startswith("/") or not fragment:
            return _pointed(start, unquote(fragment), reference)
        for name in (f"{start.base}#{fragment}", f"{origin.base}#{fragment}", f"#{fragment}"):
            if name in self._names:
                return self._names[name]
        if origin.dialect.modern:
            raise SchemaParseError(f"$ref {excerpt(reference)!r} leads to no schema")
        return start  # an anchor that nobody declares means the document, as the reference's older loader takes it

    @staticmethod
    def join(base: str, own: str) -> str:
        """The base inside a schema that names itself."""
        target, _ = urldefrag(own)
        return urljoin(base, target) if target else base

    def _start(self, reference: str, target: str, origin: Place) -> Place:
        if not target:
            if not reference:
                raise SchemaParseError("$ref '' leads to no schema")
            embedded = self._names.get(origin.base)
            if embedded is not None and embedded.document == origin.document:
                return embedded
            document = self._documents[origin.document]
            return Place(document.root, document.uri, origin.document, document.dialect)
        for name in (urljoin(origin.base, target), target):
            if name in self._names:
                return self._names[name]
        for number, document in enumerate(self._documents):
            if number == 0 and document.uri and document.uri in (target, urljoin(origin.base, target)):
                return self.root
        metaschema = metaschema_of(urljoin(origin.base, target)) or metaschema_of(target)
        if metaschema is not None:
            uri, root = metaschema
            return self._names.setdefault(uri, Place(root, uri, self._number_of(uri, root), dialect_of(root)))
        raise SchemaParseError(f"$ref {excerpt(reference)!r} is not among the references, and nothing is fetched")

    def _number_of(self, uri: str, root: Json) -> int:
        self._documents.append(self._document(root, uri))
        return len(self._documents) - 1

    @staticmethod
    def _document(root: Json, name: str) -> _Document:
        dialect = dialect_of(root)
        own = root.get(dialect.id_keyword) if isinstance(root, dict) else None
        uri = name or (urldefrag(own)[0] if isinstance(own, str) else "")
        return _Document(root, uri, dialect)


def _named(root: Place) -> Iterator[tuple[Place, str]]:
    """Every schema of a document that has a name of its own, with the name."""
    stack: list[tuple[Json, str]] = [(root.value, root.base)]
    while stack:
        value, base = stack.pop()
        if isinstance(value, list):
            stack += ((item, base) for item in value)
        if not isinstance(value, dict):
            continue
        own = value.get(root.dialect.id_keyword)
        if (isinstance(own, str) and "$ref" not in value) or (isinstance(own, str) and root.dialect.modern):
            target, fragment = urldefrag(own)
            base = urljoin(base, target) if target else base
            place = root._replace(value=value, base=base)
            yield place, f"{base}#{fragment}" if fragment else base
            if fragment:
                yield place, f"#{fragment}"
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = value.get(keyword)
            if isinstance(anchor, str) and root.dialect.modern:
                yield root._replace(value=value, base=base), f"{base}#{anchor}"
        stack += ((item, base) for key, item in value.items() if key not in NOT_SCHEMAS)


def _pointed(start: Place, pointer: str, reference: str) -> Place:
    value, base = start.value, start.base
    for token in pointer.split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif (
            isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            raise SchemaParseError(f"$ref {excerpt(reference)!r} leads to no schema: no {excerpt(step)!r}")
        own = value.get(start.dialect.id_keyword) if isinstance(value, dict) else None
        if isinstance(own, str):
            base = urljoin(base, urldefrag(own)[0])
    return start._replace(value=value, base=base)
