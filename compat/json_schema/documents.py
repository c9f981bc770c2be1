"""Resolution of `$ref`: to its own document, a registered reference or a known metaschema. Nothing is fetched."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple
from urllib.parse import unquote_plus, urldefrag, urljoin

from strata.compat.json_schema.dialects import Dialect, dialect_of, dialect_within
from strata.compat.json_schema.json_text import Json, excerpt, write_json
from strata.compat.json_schema.uris import check_uri
from strata.compat.schema import SchemaParseError

__all__ = ["NOT_SCHEMAS", "Documents", "Place", "metaschema_of"]

NOT_SCHEMAS: Final = frozenset({"enum", "const", "default", "examples"})  # keywords with values, not schemas
_MODERN_VALUES: Final = frozenset({"enum", "const"})  # the newer loader also finds names in `default` and `examples`
_FILE: Final = "metaschemas.json"  # an object: URI to document


class Place(NamedTuple):
    """A schema in a document."""

    value: Json
    base: str  # the base of relative URIs
    document: int
    dialect: Dialect
    root: bool = False  # whether the schema is the root of the document


class _Document(NamedTuple):
    root: Json
    uri: str
    dialect: Dialect


class Documents:
    """The schema itself (document 0) and the referenced documents, with every name in them.

    Args:
        root: The schema.
        references: The referenced documents by name.

    Raises:
        SchemaParseError: A `$schema` or `$id` is invalid, or two schemas have the same name.
    """

    def __init__(self, root: Json, references: Mapping[str, Json]):
        self._dialect = dialect_of(root)
        self._documents = [self._document(root, "", self._dialect)]
        self._names: dict[str, Place] = {}
        self.has_references = bool(references)
        self._referenced = len(references)
        for name, value in references.items():
            self._documents.append(self._document(value, name, dialect_within(value, self._dialect)))
        self._taken: dict[str, Json] = {}  # the schemas of the documents in use, by name
        self._in_use: set[int] = set()
        for number in range(len(self._documents)):
            whole = self._whole(number)
            if number:
                for name in (whole.base, urljoin(self._documents[0].uri, whole.base)):
                    self._names.setdefault(name.removesuffix("#"), whole)
            for place, name in _named(whole):
                self._names.setdefault(name, place)
        self._use(0)

    @property
    def root(self) -> Place:
        """The schema itself."""
        document = self._documents[0]
        return Place(document.root, document.uri, 0, document.dialect, root=True)

    @property
    def dialect(self) -> Dialect | None:
        """The dialect of all documents, metaschemas included; None if they differ."""
        dialects = {document.dialect for document in self._documents}
        return self._dialect if len(dialects) == 1 else None

    @property
    def texts(self) -> Mapping[str, str]:
        """The referenced documents by name, as text."""
        return {document.uri: write_json(document.root) for document in self._documents[1 : self._referenced + 1]}

    def resolve(self, reference: str, origin: Place) -> Place:
        """Return the schema that a reference means at a place.

        Args:
            reference: The value of the `$ref`.
            origin: The schema that contains it.

        Raises:
            SchemaParseError: There is no such schema, or its document uses a name that is already taken.
        """
        place = self._resolved(reference, origin)
        self._use(place.document)
        return place

    def pointer(self, place: Place) -> str:
        """Return the location of a schema as a URI with a JSON Pointer; slow, so for error messages only."""
        whole = self._documents[place.document]
        stack: list[tuple[Json, str]] = [(whole.root, "#")]
        while stack:
            value, path = stack.pop()
            if value is place.value:
                return (whole.uri if place.document else "") + path
            if isinstance(value, dict):
                stack += ((item, f"{path}/{_escaped(key)}") for key, item in value.items())
            elif isinstance(value, list):
                stack += ((item, f"{path}/{index}") for index, item in enumerate(value))
        return place.base

    def _whole(self, number: int) -> Place:
        document = self._documents[number]
        return Place(document.root, document.uri, number, document.dialect)

    def _use(self, number: int) -> None:
        """Mark a document as used; refuse it if it uses a name that is already taken.

        The newer loader reads a document and all its names when the first `$ref` leads to it.
        """
        if number in self._in_use:
            return
        self._in_use.add(number)
        whole = self._whole(number)
        if not whole.dialect.modern:
            return
        for place, name in ((whole, whole.base), *_named(whole)):
            if not _is_dynamic(place, name) and self._taken.setdefault(name, place.value) is not place.value:
                raise SchemaParseError(f"Two references are named {excerpt(name)!r}; rename one")

    def _resolved(self, reference: str, origin: Place) -> Place:
        check_uri(reference)
        target, _, fragment = reference.partition("#")
        start = self._start(reference, target, origin)
        if fragment.startswith("/") or not fragment:
            return _pointed(start, fragment, reference)
        for name in (f"{start.base}#{fragment}", f"{origin.base}#{fragment}", f"#{fragment}"):
            if name in self._names:
                return self._names[name]
        if origin.dialect.modern:
            raise SchemaParseError(f"$ref {excerpt(reference)!r} not found")
        # The reference's older loader takes an undeclared anchor for its document.
        return _pointed(start, "/".join(["", *fragment.split("/")[1:]]), reference)

    @staticmethod
    def join(base: str, own: str) -> str:
        """Return the base URI inside a schema whose id is `own`."""
        target, _ = urldefrag(own)
        return urljoin(base, target) if target else base

    def _start(self, reference: str, target: str, origin: Place) -> Place:
        if not target:
            if not reference:
                raise SchemaParseError("$ref '' not found")
            embedded = self._names.get(origin.base)
            if embedded is not None and embedded.document == origin.document:
                return embedded
            return self._whole(origin.document)
        for name in (urljoin(origin.base, target), target):
            if name in self._names:
                return self._names[name]
        for number, document in enumerate(self._documents):
            if number == 0 and document.uri and document.uri in (target, urljoin(origin.base, target)):
                return self.root
        metaschema = metaschema_of(urljoin(origin.base, target)) or metaschema_of(target)
        if metaschema is not None:
            uri, root = metaschema
            dialect = dialect_within(root, self._dialect)
            self._documents.append(self._document(root, uri, dialect))
            whole = Place(root, uri, len(self._documents) - 1, dialect)
            for place, name in _named(whole):  # its anchors too
                self._names.setdefault(name, place)
            return self._names.setdefault(uri, whole)
        raise SchemaParseError(
            f"$ref {excerpt(reference)!r} not found; add a reference with that name (URLs are not fetched)"
        )

    @staticmethod
    def _document(root: Json, name: str, dialect: Dialect) -> _Document:
        own = root.get(dialect.id_keyword) if isinstance(root, dict) else None
        if dialect.modern and isinstance(own, str) and urldefrag(own)[1]:
            raise SchemaParseError(f"Expected a root $id without a fragment, got {excerpt(own)!r}")
        uri = name or (urldefrag(own)[0] if isinstance(own, str) else "")
        return _Document(root, uri, dialect)


def _named(root: Place) -> Iterator[tuple[Place, str]]:
    """Yield every schema of a document that has a name, with the name."""
    modern, id_keyword = root.dialect.modern, root.dialect.id_keyword
    values = _MODERN_VALUES if modern else NOT_SCHEMAS
    stack: list[tuple[Json, str]] = [(root.value, root.base)]
    while stack:
        value, base = stack.pop()
        if isinstance(value, list):
            stack += [(item, base) for item in value if isinstance(item, dict | list)]
        if not isinstance(value, dict):
            continue
        own = value.get(id_keyword)
        if isinstance(own, str) and (modern or "$ref" not in value):
            target, fragment = urldefrag(own)
            base = urljoin(base, target) if target else base
            place = root._replace(value=value, base=base)
            yield place, f"{base}#{fragment}" if fragment else base
            if fragment:
                yield place, f"#{fragment}"
        for keyword in ("$anchor", "$dynamicAnchor") if modern else ():
            anchor = value.get(keyword)
            if isinstance(anchor, str):
                yield root._replace(value=value, base=base), f"{base}#{anchor}"
        stack += [(item, base) for key, item in value.items() if isinstance(item, dict | list) and key not in values]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _is_dynamic(place: Place, name: str) -> bool:
    """Return whether a name is a `$dynamicAnchor`, which several schemas may have."""
    anchor = place.value.get("$dynamicAnchor") if isinstance(place.value, dict) else None
    return isinstance(anchor, str) and name.endswith(f"#{anchor}")


def _pointed(start: Place, pointer: str, reference: str) -> Place:
    value, base = start.value, start.base
    steps = pointer.split("/")[1:]
    while steps and not steps[-1] and not start.dialect.modern:  # the older loader ignores trailing slashes
        steps.pop()
    for token in steps:
        step = unquote_plus(token).replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif (
            isinstance(value, list) and step.isascii() and step.isdigit() and len(step) < 10 and int(step) < len(value)
        ):
            value = value[int(step)]
        else:
            raise SchemaParseError(f"$ref {excerpt(reference)!r} not found: there is no {excerpt(step)!r}")
        own = value.get(start.dialect.id_keyword) if isinstance(value, dict) else None
        if isinstance(own, str):
            base = urljoin(base, urldefrag(own)[0])
    return start._replace(value=value, base=base)


def metaschema_of(uri: str) -> tuple[str, Json] | None:
    """Return the metaschema that a URI names, with its own URI, or None.

    The metaschemas are those of the five dialects and their vocabularies, as json-schema.org publishes them.

    Args:
        uri: The URI without a fragment; http and https are equivalent.
    """
    host_and_path = uri.partition("://")[2]
    for scheme in ("http", "https") if host_and_path.startswith("json-schema.org/") else ():
        own = f"{scheme}://{host_and_path}"
        document = _documents().get(own)
        if document is not None:
            return own, document
    return None


@cache
def _documents() -> dict[str, Json]:
    documents: dict[str, Json] = json.loads(
        files("strata.compat.json_schema").joinpath(_FILE).read_text(encoding="utf-8")
    )
    return documents
