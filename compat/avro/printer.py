"""The printer: model to canonical text, as Avro Java's `Schema.toString` prints it.

- Avro's attributes come in a fixed order, custom ones after them in input order.
- A primitive without attributes is a bare name.
- `order` is printed unless it is ascending.
- A name is printed without the namespace that encloses it.
- A type is defined at its first use, even a forward reference, and named from then on.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final

from strata.compat.avro import model
from strata.compat.avro.json_text import check_bounds, quote, write_json
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError

__all__ = ["print_field", "print_plain_field", "print_schema"]


def print_schema(root: model.Node, names: model.Names, limits: Limits, *, external: Set[str] = frozenset()) -> str:
    """Print a schema.

    Args:
        root: The schema.
        names: The named types to which references lead.
        limits: Bounds on the text, so that it can be read again.
        external: Names of types that the text must not define.

    Raises:
        SchemaParseError: The text is too long or nested too deeply.
        KeyError: A reference's name is not in `names`.
    """
    printer = _Printer(names, limits, external)
    printer.put(root, "", 0)
    text = "".join(printer.parts)
    # A record that defines no other type is nested as the text that it was read from.
    if len(names) > 1 or len(text) > limits.text or not isinstance(root, model.RecordType):
        check_bounds(text, limits)
    return text


def print_field(field: model.Field, namespace: str, names: model.Names, limits: Limits) -> str:
    """Print a field of a record in a namespace that uses no names besides those that it defines, which are `names`."""
    printer = _Printer(names, limits, frozenset())
    printer.put_field(field, namespace, 0)
    return "".join(printer.parts)


def print_plain_field(field: model.Field) -> str:
    """Print a field of a primitive type, or of an optional one, which has neither order nor aliases nor properties."""
    default = "" if isinstance(field.default, model.Missing) else ',"default":null'
    return f'{{"name":{quote(field.name)},"type":{_PLAIN[field.type]}{_doc(field.doc)}{default}}}'


class _Printer:
    def __init__(self, names: model.Names, limits: Limits, external: Set[str]):
        self.parts: list[str] = []
        self._names = names
        self._defined: set[str] = set(external)
        self._deepest = limits.depth

    def put(self, node: model.Node, namespace: str, depth: int) -> None:
        """Append a type at a depth of JSON brackets; forward references can make the depth large."""
        _PUT[type(node)](self, node, namespace, depth)

    def _put_reference(self, node: model.Reference, namespace: str, depth: int) -> None:
        self._put_named(self._names[node.full], namespace, depth)

    def _put_named(self, node: model.NamedType, namespace: str, depth: int) -> None:
        """Append the definition of a type at its first use, its name afterwards."""
        full = node.name.full
        if full in self._defined:
            self.parts.append(quote(model.printed_name(node.name, namespace)))
            return
        if depth >= self._deepest:
            raise SchemaParseError(f"The schema is nested deeper than {self._deepest} levels")
        self._defined.add(full)
        if isinstance(node, model.RecordType):
            self._put_record(node, namespace, depth)
        elif isinstance(node, model.EnumType):
            self._put_enum(node, namespace)
        else:
            self._put_fixed(node, namespace)

    def _put_primitive(self, node: model.PrimitiveType, _namespace: str, _depth: int) -> None:
        if node.properties:
            self.parts.append(f'{{"type":"{node.kind}"{_properties(node.properties)}}}')
        else:
            self.parts.append(_BARE[node.kind])

    def _put_union(self, node: model.UnionType, namespace: str, depth: int) -> None:
        pair = _PAIRS.get(node)
        if pair is not None:
            self.parts.append(pair)
            return
        separator = "["
        for branch in node.branches:
            self.parts.append(separator)
            self.put(branch, namespace, depth + 1)
            separator = ","
        self.parts.append("]" if node.branches else "[]")

    def _put_array(self, node: model.ArrayType, namespace: str, depth: int) -> None:
        self.parts.append('{"type":"array","items":')
        self.put(node.items, namespace, depth + 1)
        self.parts.append(f"{_properties(node.properties)}}}")

    def _put_map(self, node: model.MapType, namespace: str, depth: int) -> None:
        self.parts.append('{"type":"map","values":')
        self.put(node.values, namespace, depth + 1)
        self.parts.append(f"{_properties(node.properties)}}}")

    def _put_enum(self, node: model.EnumType, namespace: str) -> None:
        symbols = ",".join(map(quote, node.symbols))
        default = f',"default":{quote(node.default)}' if node.default is not None else ""
        self.parts.append(
            f'{{"type":"enum"{_name(node.name, namespace)}{_doc(node.doc)},"symbols":[{symbols}]{default}'
            f"{_properties(node.properties)}{_aliases(node.name, node.aliases)}}}"
        )

    def _put_fixed(self, node: model.FixedType, namespace: str) -> None:
        self.parts.append(
            f'{{"type":"fixed"{_name(node.name, namespace)}{_doc(node.doc)},"size":{node.size}'
            f"{_properties(node.properties)}{_aliases(node.name, node.aliases)}}}"
        )

    def _put_record(self, node: model.RecordType, namespace: str, depth: int) -> None:
        word = "error" if node.is_error else "record"
        self.parts.append(f'{{"type":"{word}"{_name(node.name, namespace)}{_doc(node.doc)},"fields":[')
        plain = [field.text for field in node.fields if field.text is not None and not field.types]
        if len(plain) == len(node.fields):
            self.parts.append(",".join(plain))
        else:
            self._put_fields(node, depth)
        self.parts.append(f"]{_properties(node.properties)}{_aliases(node.name, node.aliases)}}}")

    def _put_fields(self, record: model.RecordType, depth: int) -> None:
        parts = self.parts
        for field in record.fields:
            if field.text is None or (field.types and not self._defines(field.types)):
                self.put_field(field, record.name.namespace, depth + 3)
            else:
                parts.append(field.text)
            parts.append(",")
        if record.fields:
            parts.pop()

    def _defines(self, types: Iterable[model.NamedType]) -> bool:
        """Note types as defined; return False, and note none, if one of them was printed or must not be."""
        names = [node.name.full for node in types]
        if not self._defined.isdisjoint(names):
            return False
        self._defined.update(names)
        return True

    def put_field(self, field: model.Field, namespace: str, depth: int) -> None:
        """Append a field whose type is at a depth of JSON brackets."""
        self.parts.append(f'{{"name":{quote(field.name)},"type":')
        self.put(field.type, namespace, depth)
        self.parts.append(_after_type(field))


_PUT: Final[Mapping[type, Callable[..., None]]] = {
    model.PrimitiveType: _Printer._put_primitive,
    model.Reference: _Printer._put_reference,
    model.UnionType: _Printer._put_union,
    model.ArrayType: _Printer._put_array,
    model.MapType: _Printer._put_map,
    model.EnumType: _Printer._put_named,
    model.FixedType: _Printer._put_named,
    model.RecordType: _Printer._put_named,
}
_BARE: Final = {kind: f'"{kind}"' for kind in model.PRIMITIVES}
_PAIRS: Final = {node: f'["{first}","{second}"]' for (first, second), node in model.PAIRS.items()}
_PLAIN: Final[dict[model.Node, str]] = {model.BARE[kind]: text for kind, text in _BARE.items()}
_PLAIN.update(_PAIRS.items())


def _after_type(field: model.Field) -> str:
    text = "" if field.doc is None else _doc(field.doc)
    if not isinstance(field.default, model.Missing):
        text += f',"default":{write_json(field.default)}'
    if field.order != "ascending":
        text += f',"order":"{field.order}"'
    if field.aliases:
        text += _alias_list(field.aliases)
    return f"{text}{_properties(field.properties)}}}"


def _name(name: model.Name, namespace: str) -> str:
    text = f',"name":{quote(name.simple)}'
    return text if name.namespace == namespace else f'{text},"namespace":{quote(name.namespace)}'


def _doc(doc: str | None) -> str:
    return "" if doc is None else f',"doc":{quote(doc)}'


def _aliases(name: model.Name, aliases: Iterable[model.Name]) -> str:
    return _alias_list(model.printed_name(alias, name.namespace) for alias in aliases)


def _alias_list(aliases: Iterable[str]) -> str:
    texts = ",".join(map(quote, aliases))
    return f',"aliases":[{texts}]' if texts else ""


def _properties(properties: model.Properties) -> str:
    return "".join(f",{quote(key)}:{write_json(value)}" for key, value in properties.items()) if properties else ""
