"""The Avro parser: text to model, as Avro Java 1.12 reads a schema.

There are two modes. Strict mode is for a schema that a client wants to register: names must follow the specification,
and defaults must fit their types. Lenient mode is for a schema that is already stored and must stay readable, whatever
its names and defaults. Both modes refuse a text that no version of Avro could have printed (a missing type, a field
twice, a union in a union).

A definition is known from its end on. A reference to a name that is not known yet is qualified and looked up again at
the end of the text. So a record may refer to itself and to types defined later, but then a short name inside a
namespace means a name of that namespace, never one of the null namespace. A name may be defined twice if both
definitions agree.

The types of referenced schemas are known from the start. They are read in lenient mode, because they are stored
already.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar, cast

from strata.compat.avro import model
from strata.compat.avro.defaults import DefaultCheck
from strata.compat.avro.equivalence import same_structure
from strata.compat.avro.java_numbers import parse_java_double
from strata.compat.avro.json_text import excerpt, read_json, read_plain_json, write_json
from strata.compat.avro.known_records import (
    LONGEST_KEY,
    Edit,
    KnownFields,
    KnownRecords,
    key_of_names,
    plain_field,
    starts_with_null,
)
from strata.compat.avro.printer import print_field, print_schema
from strata.compat.limits import DEFAULT_LIMITS, Limits, OutOfTime, check_references
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

__all__ = ["parse"]

_SCHEMA_WORDS: Final = frozenset(
    {"type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size", "items", "values"}
)
_ENUM_WORDS: Final = _SCHEMA_WORDS | {"default"}
_FIELD_WORDS: Final = frozenset({"type", "name", "doc", "default", "order", "aliases"})
_ORDERS: Final = {"ASCENDING": "ascending", "DESCENDING": "descending", "IGNORE": "ignore"}
_LARGEST_SIZE: Final = 2**31 - 9  # the longest array of the JVM
_NAMED: Final = (model.EnumType, model.FixedType, model.RecordType)
_MOST_TYPES: Final = 8  # that a known field defines

_Object = dict[str, model.Json]
_NamedT = TypeVar("_NamedT", model.EnumType, model.FixedType, model.RecordType)


_KNOWN_FIELDS: Final = {True: KnownFields(), False: KnownFields()}
"""The fields read in strict mode, and those read in lenient mode."""
_KNOWN_RECORDS: Final = {True: KnownRecords(), False: KnownRecords()}
"""The same of records at the root of a text without references."""


def parse(
    text: str, *, strict: bool, references: Sequence[ResolvedReference] = (), limits: Limits = DEFAULT_LIMITS
) -> model.AvroSchema:
    """Parse a schema.

    Args:
        text: The schema text, which is JSON.
        strict: Apply the rules for a new schema; a stored schema is read leniently.
        references: The referenced schemas, each after those that it refers to.
        limits: Bounds on size and time.

    Raises:
        SchemaParseError: The text or a reference is not a valid schema or exceeds a bound.
        OutOfTime: The time of `limits` ran out.
    """
    names: dict[str, model.NamedType] = {}
    external: frozenset[str] = frozenset()
    try:
        if not references and (edit := _KNOWN_RECORDS[strict].find(text, limits)) is not None:
            edited = _read_edit(text, edit, limits, strict=strict)
            if edited is not None:
                return edited
        if references:
            check_references(references, limits)
            roots = [
                _read(reference.text, read_plain_json(reference.text, limits), names, limits, strict=False)
                for reference in references
            ]
            external = frozenset(root.name.full for root in roots if isinstance(root, _NAMED))
        plain = read_plain_json(text, limits)
        read = _read(text, plain, names, limits, strict=strict)
        # If the text defines a type that is already known, the known definition counts: doc and aliases may differ.
        root = names[read.name.full] if isinstance(read, _NAMED) else read
        canonical = print_schema(root, names, limits, external=external)
    except RecursionError:
        raise SchemaParseError("The schema is nested too deeply") from None
    schema = _schema(text, canonical, root, names, external)
    if plain is not None and not references and root is read and isinstance(root, model.RecordType):
        _KNOWN_RECORDS[strict].put(text, plain["fields"], schema, limits)
    return schema


def _schema(
    text: str,
    canonical: str,
    root: model.Node,
    names: model.Names,
    external: frozenset[str] = frozenset(),
) -> model.AvroSchema:
    # Clients mostly send canonical text; caches then keep it once.
    return model.AvroSchema(SchemaFormat.AVRO, text if canonical == text else canonical, root, names, external)


def _read_edit(text: str, edit: Edit, limits: Limits, *, strict: bool) -> model.AvroSchema | None:
    """Return the schema of an edited text; None if it must be read whole, which words the errors."""
    names: dict[str, model.NamedType] = {}
    parser = _Parser(names, limits, strict=strict, known_fields=_KNOWN_FIELDS[strict])
    try:
        record = parser.edited(edit)
        if record is None:
            return None
        parser.finish()
        root = names[record.name.full]
        canonical = edit.printed(record) if root is record else None
        if canonical is None:
            canonical = print_schema(root, names, limits)
    except OutOfTime:
        raise
    except SchemaParseError:
        return None
    return _schema(text, canonical, root, names) if len(canonical) <= limits.text else None


def _read(
    text: str, plain: model.Json, names: dict[str, model.NamedType], limits: Limits, *, strict: bool
) -> model.Node:
    """Read one text and add the types that it defines to `names`; `plain` is what `read_plain_json` returns for it."""
    parser = _Parser(names, limits, strict=strict, known_fields=None if plain is None else _KNOWN_FIELDS[strict])
    root = parser.node(read_json(text, limits) if plain is None else plain, "")
    parser.finish()
    return root


class _Parser:
    def __init__(
        self, names: dict[str, model.NamedType], limits: Limits, *, strict: bool, known_fields: KnownFields | None
    ):
        self.names = names
        self._limits = limits
        self._strict = strict
        self._fields = 0
        self._defined: list[model.NamedType] = []  # in their order in the text
        self._uses: list[str] = []  # the names that were used; empty for one whose meaning depends on what is around it
        self._known_fields = known_fields
        self._path: list[str] = []  # the fields around the current position, for error messages
        self._open: tuple[str, ...] = ()  # the records around it
        self._forward: dict[int, tuple[model.Reference, str]] = {}  # by object id, each with the path of its field
        self._unsure: list[
            tuple[str, model.Node, model.Json, frozenset[str]]
        ] = []  # defaults to check again at the end

    def finish(self) -> None:
        """Check forward references and the defaults that depend on them, now that every name is known."""
        for reference, field in self._forward.values():
            if reference.full not in self.names:
                message = f"Unknown type {excerpt(reference.full)}: define it here, or refer to the schema that does"
                raise _fault(message, field)
        for field, node, value, unfinished in self._unsure:
            if not DefaultCheck(self.names, self._limits, unfinished=unfinished).accepts(node, value):
                raise self._invalid_default(field, node, value)

    def node(self, json: model.Json, namespace: str) -> model.Node:
        """Read a type: a name, an object or a union."""
        if isinstance(json, str):
            return self._reference(json, namespace)
        self._limits.look_at_clock()
        if isinstance(json, dict):
            type_name = json.get("type")
            if not isinstance(type_name, str):
                raise self._fault(f'A type written as an object needs a "type" that is a string: {_shown(json)}')
            if type_name in model.PRIMITIVES:
                return model.PrimitiveType(type_name, _properties(json, _SCHEMA_WORDS))
            build = _BUILDERS.get(type_name)
            return build(self, json, namespace) if build else self._reference(type_name, namespace)
        if isinstance(json, list):
            return self._union(json, namespace)
        raise self._fault(f"Expected a type (a name, an object or an array of types), got {_shown(json)}")

    def _reference(self, text: str, namespace: str) -> model.Node:
        bare = model.BARE.get(text)
        if bare is not None:
            return bare
        full = model.qualify(text, namespace)
        if full in self.names:
            self._uses.append(full)
            return model.Reference(full)
        self._uses.append("")
        if text in self.names:
            return model.Reference(text)
        reference = model.Reference(full)
        self._forward[id(reference)] = reference, self._field_path()
        return reference

    def _union(self, json: list[model.Json], namespace: str) -> model.Node:
        if (
            len(json) == 2
            and isinstance(json[0], str)
            and isinstance(json[1], str)
            and (json[0], json[1]) in model.PAIRS
        ):
            return model.PAIRS[json[0], json[1]]
        if len(json) > self._limits.branches:
            raise self._fault(f"A union of {len(json)} branches, more than the {self._limits.branches} allowed")
        branches = tuple(self.node(branch, namespace) for branch in json)
        seen: set[str] = set()
        for branch in branches:
            if isinstance(branch, model.UnionType):
                raise self._fault(
                    f"A union cannot be a branch of a union; list its branches in the outer one: {_shown(json)}"
                )
            name = _branch_name(branch)
            if name in seen:
                raise self._fault(f"The union has two branches of type {name}; keep one")
            seen.add(name)
        return model.UnionType(branches)

    def _array(self, json: _Object, namespace: str) -> model.Node:
        if "items" not in json:
            raise self._fault(f'An array needs "items", the type of its elements: {_shown(json)}')
        return model.ArrayType(self.node(json["items"], namespace), _properties(json, _SCHEMA_WORDS))

    def _map(self, json: _Object, namespace: str) -> model.Node:
        if "values" not in json:
            raise self._fault(f'A map needs "values", the type of its values: {_shown(json)}')
        return model.MapType(self.node(json["values"], namespace), _properties(json, _SCHEMA_WORDS))

    def _enum(self, json: _Object, namespace: str) -> model.Node:
        name = self._type_name(json, namespace)
        symbols = json.get("symbols")
        if not isinstance(symbols, list):
            raise self._fault(f'Enum {name.full} needs "symbols", an array of strings: {_shown(json)}')
        if len(symbols) > self._limits.symbols:
            raise self._fault(f"An enum of {len(symbols)} symbols, more than the {self._limits.symbols} allowed")
        for symbol in symbols:
            if not isinstance(symbol, str):
                raise self._fault(f"Symbols of enum {name.full} must be strings, got {_shown(symbol)}")
            self._check_name(symbol, "Enum symbol")
        if len(set(symbols)) < len(symbols):
            raise self._fault(f"Enum {name.full} lists the symbol {_first_repeated(symbols)} twice; keep one")
        default = _text(json, "default")
        if default is not None and default not in symbols:
            raise self._fault(f"The default of enum {name.full} must be one of its symbols, got {excerpt(default)!r}")
        properties = _properties(json, _ENUM_WORDS)
        aliases = self._type_aliases(json, name)
        return self._define(model.EnumType(name, _text(json, "doc"), aliases, tuple(symbols), default, properties))

    def _fixed(self, json: _Object, namespace: str) -> model.Node:
        name = self._type_name(json, namespace)
        size = json.get("size")
        if type(size) is not int or not 0 <= size <= _LARGEST_SIZE:
            raise self._fault(f'Fixed {name.full} needs "size", an integer from 0 to {_LARGEST_SIZE}: {_shown(json)}')
        properties = _properties(json, _SCHEMA_WORDS)
        return self._define(model.FixedType(name, _text(json, "doc"), self._type_aliases(json, name), size, properties))

    def _record(self, json: _Object, namespace: str) -> model.Node:
        name = self._type_name(json, namespace)
        texts = json.get("fields")
        if not isinstance(texts, list):
            raise self._fault(f'Record {name.full} needs "fields", an array: {_shown(json)}')
        self._fields += len(texts)
        if self._fields > self._limits.fields:
            raise self._fault(f"More than the {self._limits.fields} fields allowed")
        outside, self._open = self._open, (*self._open, name.full)
        table = self._known_fields
        fields: list[model.Field | None] = table.find(texts) if table else [None] * len(texts)
        around = len(self._path)
        for position, known in enumerate(fields):
            if known is None:
                try:
                    fields[position] = self._field(texts[position], name)
                except SchemaParseError:
                    del self._path[around:]
                    self._check_distinct(fields[:position], name)  # the first error counts
                    raise
        self._check_distinct(fields, name)
        self._open = outside
        properties = _properties(json, _SCHEMA_WORDS)
        aliases = self._type_aliases(json, name)
        is_error = json["type"] == "error"
        complete = tuple(cast("list[model.Field]", fields))
        return self._define(model.RecordType(name, _text(json, "doc"), aliases, complete, is_error, properties))

    def edited(self, edit: Edit) -> model.RecordType | None:
        """Return the record of an edited text; None if it must be read whole.

        Raises:
            SchemaParseError: The record is not valid, or must be read whole.
        """
        known, first, last, values = edit
        before, dependent = known.record, known.dependent
        name, fields = before.name, list(before.fields)
        self._fields += len(fields) - (last - first) + len(values)
        if self._fields > self._limits.fields:
            return None
        self._open = (name.full,)
        for position, json in dependent.items():
            if position < first:
                fields[position] = self._again(fields[position], json, name)
        edited = [self._field(json, name) for json in values]
        for position, json in dependent.items():
            if position >= last:
                fields[position] = self._again(fields[position], json, name)
        fields[first:last] = edited
        names = {field.name for field in edited}
        is_new = len(names) == len(edited) and known.names.isdisjoint(names)
        if not is_new and len({field.name for field in fields}) < len(fields):
            return None
        self._open = ()
        record = model.RecordType(name, before.doc, before.aliases, tuple(fields), before.is_error, before.properties)
        return self._define(record)

    def _again(self, field: model.Field, json: model.Json, record: model.Name) -> model.Field:
        """Return a field of a known record with its types defined, or what its JSON means among other definitions."""
        return field if field.text is not None and self._adopts(field) else self._field(json, record)

    def _check_distinct(self, fields: Sequence[model.Field | None], record: model.Name) -> None:
        if len({field and field.name for field in fields}) < len(fields):
            repeated = _first_repeated([field.name for field in fields if field is not None])
            raise self._fault(f"Record {record.full} has two fields called {repeated}; rename one")

    def _field(self, json: model.Json, record: model.Name) -> model.Field:
        """Return a field that was read before, or read it.

        A field is kept if its type means the same wherever its JSON is read: if it uses no names, or only names that
        it defines itself, in a record of the same namespace.
        """
        self._limits.look_at_clock()
        table, key = self._known_fields, b""
        if table is not None:
            key = table.key(json)
            known = self._known(table, key)
            if known is None and key.rfind(b"{"):  # a field that defines names holds an object
                known = self._known(table, key_of_names(key, record.namespace))
            if known is not None and self._adopts(known):
                return known
            if known is None and (plain := plain_field(json, strict=self._strict)) is not None:
                table.put(key, plain)
                return plain
        uses, defined = len(self._uses), len(self._defined)
        field = self._new_field(json, record)
        types = self._defined[defined:]
        names = {node.name.full: node for node in types} if types else {}
        is_closed = len(self._uses) == uses or names.keys() >= set(self._uses[uses:])
        # Fields inside a settled one have texts, too, so the names bound how often a part of the schema is printed.
        if is_closed and (not types or (len(types) <= _MOST_TYPES and 0 < len(key) <= LONGEST_KEY)):
            field.settle(print_field(field, record.namespace, names, self._limits), tuple(types))
            if table is not None:
                table.put(key_of_names(key, record.namespace) if types else key, field)
        return field

    def _known(self, table: KnownFields, key: bytes) -> model.Field | None:
        field = table.get(key)
        if field is None and not self._strict:  # what a new schema may have reads the same in a stored one
            field = _KNOWN_FIELDS[True].get(key)
            if field is not None:
                table.put(key, field)
        return field

    def _adopts(self, field: model.Field) -> bool:
        """Define the types that a known field defines; return whether this can be done without a look at its JSON."""
        types = field.types
        if not types:
            return True
        inner = sum(len(node.fields) for node in types if isinstance(node, model.RecordType))
        if (
            any(node.name.full in self.names for node in types)
            or len(self.names) + len(types) > self._limits.types
            or self._fields + inner > self._limits.fields
        ):
            return False
        self._fields += inner
        for node in types:
            self.names[node.name.full] = node
        self._defined += types
        return True

    def _new_field(self, json: model.Json, record: model.Name) -> model.Field:
        name = _text(json, "name") if isinstance(json, dict) else None
        if name is None:
            raise self._fault(f'A field needs a "name" that is a string: {_shown(json)}')
        self._path.append(name)
        if "type" not in json:
            raise self._fault(f'The field needs a "type": {_shown(json)}')
        node = self.node(json["type"], record.namespace)
        order = "ascending"
        if "order" in json:
            order = _ORDERS.get((_text(json, "order") or "").upper(), "")
            if not order:
                raise self._fault(f"Expected the order ascending, descending or ignore, got {_shown(json['order'])}")
        self._check_name(name, "Field name")
        default = self._default(node, json) if "default" in json else model.MISSING
        properties = _properties(json, _FIELD_WORDS)
        field = model.Field(name, node, _text(json, "doc"), default, order, self._alias_texts(json), properties)
        self._path.pop()
        return field

    def _default(self, node: model.Node, json: _Object) -> model.Json:
        value = json["default"]
        if isinstance(node, model.PrimitiveType) and node.kind in ("float", "double") and isinstance(value, str):
            number = parse_java_double(value)
            if number is None:
                raise self._invalid_default(self._field_path(), node, value)
            value = number
        if self._strict and not (value is None and starts_with_null(node)):
            check = DefaultCheck(self.names, self._limits, undefined=self._forward)
            if not check.accepts(node, value):
                raise self._invalid_default(self._field_path(), node, value)
            if check.undefined_seen:
                self._unsure.append((self._field_path(), node, value, frozenset(self._open)))
        return value

    def _type_name(self, json: _Object, namespace: str) -> model.Name:
        text = _text(json, "name")
        if text is None:
            raise self._fault(f'A type of kind {json["type"]} needs a "name" that is a string: {_shown(json)}')
        space = _text(json, "namespace")
        name = model.make_name(text, namespace if space is None else space)
        full = name.full
        is_legal = not self._strict or model.is_full_name(full)
        if not is_legal:
            self._check_name(name.simple, "Name")
        if full in model.PRIMITIVES:
            raise self._fault(f"A type cannot be called {full}, the name of a primitive type; choose another name")
        if not is_legal and name.namespace:
            for part in name.namespace.split("."):
                self._check_name(part, "Namespace part")
        return name

    def _type_aliases(self, json: _Object, name: model.Name) -> tuple[model.Name, ...]:
        texts = self._alias_texts(json)
        if not texts:
            return ()
        aliases = {alias.full: alias for alias in (model.make_name(text, name.namespace) for text in texts)}
        for alias in aliases.values():
            self._check_name(alias.simple, "Alias")
        return tuple(aliases.values())

    def _alias_texts(self, json: _Object) -> tuple[str, ...]:
        if "aliases" not in json:
            return ()
        texts = json["aliases"]
        if not isinstance(texts, list):
            raise self._fault(f'"aliases" must be an array of strings, got {_shown(texts)}')
        for text in texts:
            if not isinstance(text, str):
                raise self._fault(f'"aliases" must be an array of strings, got {_shown(text)} in it')
        return tuple(dict.fromkeys(texts))

    def _define(self, node: _NamedT) -> _NamedT:
        full = node.name.full
        known = self.names.get(full)
        if known is None:
            if len(self.names) >= self._limits.types:
                raise self._fault(f"More than the {self._limits.types} named types allowed")
            self.names[full] = node
            self._defined.append(node)
            return node
        self._uses.append("")
        if not same_structure(known, node, self.names, self._limits, forward=self._forward):
            raise self._fault(f"Type {full} is defined twice, in different ways; rename one, or repeat only the name")
        return node

    def _check_name(self, text: str, what: str) -> None:
        if self._strict and (fault := model.name_fault(text)):
            raise self._fault(f"{what} {excerpt(text)!r} is invalid: {fault}")

    def _fault(self, message: str) -> SchemaParseError:
        return _fault(message, self._field_path())

    def _field_path(self) -> str:
        return ".".join(self._path)

    def _invalid_default(self, field: str, node: model.Node, value: model.Json) -> SchemaParseError:
        try:
            expected = print_schema(node, self.names, self._limits)
        except OutOfTime:
            raise
        except (KeyError, SchemaParseError):  # the type uses a name that is not defined yet, or is nested too deeply
            expected = f'"{node.full}"' if isinstance(node, model.Reference) else f'"{node.kind}"'
        return _fault(f"The default must be of the type {excerpt(expected)}, got {_shown(value)}", field)


_BUILDERS: Final[Mapping[str, Callable[[_Parser, _Object, str], model.Node]]] = {
    "record": _Parser._record,
    "error": _Parser._record,
    "enum": _Parser._enum,
    "fixed": _Parser._fixed,
    "array": _Parser._array,
    "map": _Parser._map,
}


def _properties(json: _Object, words: frozenset[str]) -> model.Properties:
    """Return the custom attributes: those that Avro does not define. Most often there are none."""
    if json.keys() <= words:
        return model.NO_PROPERTIES
    return {key: value for key, value in json.items() if key not in words}


def _text(json: _Object, key: str) -> str | None:
    """Return a string attribute; an attribute of another type counts as absent."""
    value = json.get(key)
    return value if isinstance(value, str) else None


def _fault(message: str, field: str) -> SchemaParseError:
    return SchemaParseError(f"{message} (in field {excerpt(field)})" if field else message)


def _shown(json: model.Json) -> str:
    return excerpt(write_json(json))


def _branch_name(node: model.Node) -> str:
    if isinstance(node, model.Reference):
        return node.full
    return node.name.full if isinstance(node, _NAMED) else node.kind


def _first_repeated(symbols: list[str]) -> str:
    seen: set[str] = set()
    for symbol in symbols:
        if symbol in seen:
            break
        seen.add(symbol)
    return symbol
