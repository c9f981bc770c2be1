"""The canonical text: what Avro Java's `Schema.toString` prints.

Attributes come in a fixed order, custom ones after them in input order; a primitive without any is a bare name;
`order` is printed unless ascending; a name loses the namespace it stands in; a type is defined where it is first met,
which for a forward reference is the place of the reference, and named from then on.
"""

from collections.abc import Callable, Iterable
from typing import Final

from compat.avro.json_text import quote, write_json
from compat.avro.model import (
    ArrayType,
    EnumType,
    Field,
    FixedType,
    MapType,
    Missing,
    Name,
    Names,
    Node,
    PrimitiveType,
    Properties,
    RecordType,
    UnionType,
    resolve,
)
from compat.avro.names import printed
from compat.limits import Limits
from compat.schema import SchemaParseError

__all__ = ["print_schema"]


def print_schema(root: Node, names: Names, limits: Limits) -> str:
    """Print a schema."""
    printer = _Printer(names, limits)
    printer.put(root, "", 1)
    return "".join(printer.parts)


class _Printer:
    def __init__(self, names: Names, limits: Limits):
        self.parts: list[str] = []
        self._names = names
        self._defined: set[str] = set()
        self._deepest = limits.depth

    def put(self, node: Node, namespace: str, depth: int) -> None:
        """Append a type; depth is how deep in JSON brackets it stands, which forward references can make large."""
        if depth > self._deepest:
            raise SchemaParseError(f"The schema is nested deeper than {self._deepest} levels")
        node = resolve(node, self._names)
        if isinstance(node, PrimitiveType):
            self._put_primitive(node)
        elif isinstance(node, UnionType):
            self._put_union(node, namespace, depth)
        elif isinstance(node, ArrayType):
            self._put_container('{"type":"array","items":', node.items, node.properties, namespace, depth)
        elif isinstance(node, MapType):
            self._put_container('{"type":"map","values":', node.values, node.properties, namespace, depth)
        elif isinstance(node, EnumType | FixedType | RecordType):
            if node.name.full in self._defined:
                self.parts.append(quote(printed(node.name, namespace)))
            else:
                self._defined.add(node.name.full)
                _DEFINITIONS[type(node)](self, node, namespace, depth)

    def _put_primitive(self, node: PrimitiveType) -> None:
        if node.properties:
            self.parts.append(f'{{"type":"{node.kind}"{_properties(node.properties)}}}')
        else:
            self.parts.append(f'"{node.kind}"')

    def _put_union(self, node: UnionType, namespace: str, depth: int) -> None:
        separator = "["
        for branch in node.branches:
            self.parts.append(separator)
            self.put(branch, namespace, depth + 1)
            separator = ","
        self.parts.append("]" if node.branches else "[]")

    def _put_container(self, head: str, inner: Node, properties: Properties, namespace: str, depth: int) -> None:
        self.parts.append(head)
        self.put(inner, namespace, depth + 1)
        self.parts.append(f"{_properties(properties)}}}")

    def _put_enum(self, node: EnumType, namespace: str, _depth: int) -> None:
        symbols = ",".join(map(quote, node.symbols))
        default = f',"default":{quote(node.default)}' if node.default is not None else ""
        self.parts.append(
            f'{{"type":"enum"{_name(node.name, namespace)}{_doc(node.doc)},"symbols":[{symbols}]{default}'
            f"{_properties(node.properties)}{_aliases(node.name, node.aliases)}}}"
        )

    def _put_fixed(self, node: FixedType, namespace: str, _depth: int) -> None:
        self.parts.append(
            f'{{"type":"fixed"{_name(node.name, namespace)}{_doc(node.doc)},"size":{node.size}'
            f"{_properties(node.properties)}{_aliases(node.name, node.aliases)}}}"
        )

    def _put_record(self, node: RecordType, namespace: str, depth: int) -> None:
        kind = "error" if node.is_error else "record"
        self.parts.append(f'{{"type":"{kind}"{_name(node.name, namespace)}{_doc(node.doc)},"fields":[')
        for position, field in enumerate(node.fields):
            self.parts.append(f'{"," if position else ""}{{"name":{quote(field.name)},"type":')
            self.put(field.type, node.name.namespace, depth + 3)
            self.parts.append(_after_type(field))
        self.parts.append(f"]{_properties(node.properties)}{_aliases(node.name, node.aliases)}}}")


_DEFINITIONS: Final[dict[type, Callable[..., None]]] = {
    EnumType: _Printer._put_enum,
    FixedType: _Printer._put_fixed,
    RecordType: _Printer._put_record,
}


def _after_type(field: Field) -> str:
    default = "" if isinstance(field.default, Missing) else f',"default":{write_json(field.default)}'
    order = "" if field.order == "ascending" else f',"order":"{field.order}"'
    return f"{_doc(field.doc)}{default}{order}{_alias_list(field.aliases)}{_properties(field.properties)}}}"


def _name(name: Name, namespace: str) -> str:
    text = f',"name":{quote(name.simple)}'
    return text if name.namespace == namespace else f'{text},"namespace":{quote(name.namespace)}'


def _doc(doc: str | None) -> str:
    return "" if doc is None else f',"doc":{quote(doc)}'


def _aliases(name: Name, aliases: Iterable[Name]) -> str:
    return _alias_list(printed(alias, name.namespace) for alias in aliases)


def _alias_list(aliases: Iterable[str]) -> str:
    texts = ",".join(map(quote, aliases))
    return f',"aliases":[{texts}]' if texts else ""


def _properties(properties: Properties) -> str:
    return "".join(f",{quote(key)}:{write_json(value)}" for key, value in properties.items()) if properties else ""
