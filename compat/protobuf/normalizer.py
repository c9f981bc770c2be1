"""The normalizer: the text of `normalize=true`, which is the same schema in one order and spelling.

Types have full names with a leading dot. Fields are sorted by tag, oneofs by their smallest tag, enum constants by tag
and name, options and imports by name. Reserved tags and names are sorted, each in a separate statement. Messages, enums
and methods keep their order, because message indexes depend on it. `syntax = "proto2"` is omitted.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Final, TypeVar

from strata.compat.limits import DEFAULT_LIMITS, Limits, check_printed
from strata.compat.protobuf import model
from strata.compat.protobuf.names import Names, inside
from strata.compat.protobuf.option_merging import OptionMerger
from strata.compat.protobuf.printer import print_file, with_attributes
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.schema import SchemaParseError

__all__ = ["normalize", "normalize_file"]

_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]-?[0-9]{1,3})?[fF]?")
_WHOLE: Final = re.compile(r"-?[0-9]+")


_ItemT = TypeVar("_ItemT")


def normalize(schema: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the text that `normalize=true` stores.

    Raises:
        SchemaParseError: The text is too long or nested too deeply.
        OutOfTime: The time of `limits` ran out.
    """
    try:
        text = print_file(normalize_file(schema.file, schema.names, limits), limits)
    except RecursionError:
        raise SchemaParseError("The schema is nested too deeply") from None
    check_printed(text, limits)
    return text


def normalize_file(file: model.File, names: Names, limits: Limits, *, keep_order: bool = False) -> model.File:
    """Return the file in its normal form.

    Args:
        file: The file.
        names: The names to which types and options resolve.
        limits: Bounds on time.
        keep_order: Unify the spelling, but keep the order of fields, oneofs, groups and enum constants.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Normalizer(names, limits, keep_order=keep_order).file(file)


class _Normalizer:
    def __init__(self, names: Names, limits: Limits, *, keep_order: bool):
        self._names = names
        self._limits = limits
        self._merger = OptionMerger(names, limits, spelled_out=keep_order)
        self._keep_order = keep_order

    def _sort(self, items: Iterable[_ItemT], key: Callable[[_ItemT], object]) -> tuple[_ItemT, ...]:
        return tuple(items) if self._keep_order else tuple(sorted(items, key=key))  # type: ignore[arg-type]

    def file(self, file: model.File) -> model.File:
        scope = file.package or ""
        return model.File(
            file.package,
            None if file.syntax == "proto2" else file.syntax,
            tuple(sorted(set(file.imports))),
            tuple(sorted(set(file.public_imports))),
            (),
            tuple(self._definition(definition, scope) for definition in file.types),
            tuple(self._service(service, scope) for service in file.services),
            tuple(self._extend(extend, scope) for extend in file.extends),
            self._options(file.options, scope),
        )

    def _definition(self, definition: model.TypeDefinition, outer: str) -> model.TypeDefinition:
        if isinstance(definition, model.Enum):
            return self._enum(definition, outer)
        return self._message(definition, inside(outer, definition.name))

    def _message(self, message: model.Message, scope: str) -> model.Message:
        entries = {inside(scope, nested.name): nested for nested in message.messages if model.is_map_entry(nested)}
        oneofs = [self._oneof(oneof, scope) for oneof in message.oneofs]
        return model.Message(
            message.name,
            self._fields((self._folded(field, entries, scope) for field in message.fields), scope),
            _without_empty(self._sort(oneofs, _first_tag)),
            self._groups(message.groups, scope),
            tuple(
                self._definition(nested, scope)
                for nested in message.types
                if not (isinstance(nested, model.Message) and model.is_map_entry(nested))
            ),
            self._options(message.options, scope),
            _reserved(message.reserved),
            self._extensions(message.extensions, scope),
            tuple(self._extend(extend, scope) for extend in message.extends),
        )

    def _folded(self, field: model.Field, entries: dict[str, model.Message], scope: str) -> model.Field:
        """Return a field of map entries as a map field; return any other field unchanged."""
        known = self._names.type_of(field.type, scope) if entries and field.label == "repeated" else None
        entry = entries.get(known.full) if known else None
        if entry is None:
            return field
        types = {part.tag: part.type for part in entry.fields}
        if not types.keys() >= {1, 2}:
            return field
        value = types[2] if types[2] in model.SCALARS else self._type(types[2], inside(scope, entry.name))
        return replace(field, label=None, type=f"map<{types[1]}, {value}>")

    def _fields(self, fields: Iterable[model.Field], scope: str) -> tuple[model.Field, ...]:
        return self._sort((self._field(field, scope) for field in fields), lambda field: field.tag)

    def _field(self, field: model.Field, scope: str) -> model.Field:
        """Return a field with its default and JSON name among the options, to be sorted with them."""
        options = self._options(with_attributes(field), scope)
        return model.Field(field.label, self._type(field.type, scope), field.name, field.tag, options)

    def _oneof(self, oneof: model.OneOf, scope: str) -> model.OneOf:
        return model.OneOf(
            oneof.name,
            self._fields(oneof.fields, scope),
            self._groups(oneof.groups, scope),
            self._options(oneof.options, scope),
        )

    def _groups(self, groups: Iterable[model.Group], scope: str) -> tuple[model.Group, ...]:
        return tuple(
            model.Group(group.label, group.name, group.tag, self._fields(group.fields, scope))
            for group in self._sort(groups, lambda group: group.tag)
        )

    def _enum(self, enum: model.Enum, scope: str) -> model.Enum:
        constants = (replace(constant, options=self._options(constant.options, scope)) for constant in enum.constants)
        return model.Enum(
            enum.name,
            self._sort(constants, lambda constant: (constant.tag, constant.name)),
            self._options(enum.options, scope),
            _reserved(enum.reserved),
        )

    def _extend(self, extend: model.Extend, scope: str) -> model.Extend:
        return model.Extend(self._type(extend.name, scope), self._fields(extend.fields, scope))

    def _service(self, service: model.Service, scope: str) -> model.Service:
        return model.Service(
            service.name,
            tuple(self._rpc(rpc, scope) for rpc in service.rpcs),
            self._options(service.options, scope),
        )

    def _rpc(self, rpc: model.Rpc, scope: str) -> model.Rpc:
        return replace(
            rpc,
            request=self._type(rpc.request, scope),
            response=self._type(rpc.response, scope),
            options=self._options(rpc.options, scope),
        )

    def _extensions(self, statements: Iterable[model.Extensions], scope: str) -> tuple[model.Extensions, ...]:
        return tuple(
            model.Extensions((tags,), self._options(statement.options, scope))
            for tags, statement in sorted(
                ((_plain(tags), statement) for statement in statements for tags in statement.values),
                key=lambda pair: model.bounds(pair[0]),
            )
        )

    def _type(self, name: str, scope: str) -> str:
        self._limits.look_at_clock()
        types = model.map_types(name)
        if types is not None:
            return f"map<{types[0]}, {self._type(types[1], scope)}>"
        known = None if name in model.SCALARS else self._names.type_of(name, scope)
        return f".{known.full}" if known else name

    def _options(self, options: Iterable[model.Option], scope: str) -> tuple[model.Option, ...]:
        """Return the options sorted by name, custom ones under their full names and merged if possible."""
        own: list[model.Option] = []
        custom: dict[str, list[model.Option]] = {}
        for option in options:
            value = self._value(option.value, scope)
            if not option.custom:
                own.append(replace(option, value=self._merger.tidy(value)))
                continue
            name = self._names.extension_of(option.name, scope) or option.name
            path = tuple(self._part(part, scope) for part in option.path)
            custom.setdefault(name, []).append(model.Option(name, value, custom=True, path=path))
        merged = own + [statement for statements in custom.values() for statement in self._merger.merged(statements)]
        merged.sort(key=lambda option: (option.name, option.custom))
        return tuple(merged)

    def _part(self, part: str, scope: str) -> str:
        """Return a part of a dotted name, with the full name for an extension (in brackets or parentheses)."""
        full = self._names.extension_of(part[1:-1], scope) if part.startswith(("[", "(")) else None
        return f"{part[0]}{full}{part[-1]}" if full else part

    def _value(self, value: model.Value, scope: str) -> model.Value:
        """Return the value with map keys sorted, extensions by full name, and numbers in one spelling."""
        if isinstance(value, model.MapValue):
            entries = [(self._part(key, scope), self._value(inner, scope)) for key, inner in value.entries]
            return model.MapValue(tuple(sorted(entries, key=lambda pair: pair[0])))
        if isinstance(value, model.ListValue):
            return model.ListValue(tuple(self._value(item, scope) for item in value.items))
        return model.Scalar(value.kind, _number(value.text)) if value.kind is model.Kind.NUMBER else value


def _number(text: str) -> str:
    """Return a number without an exponent and without superfluous zeros."""
    if _WHOLE.fullmatch(text):
        digits = text.lstrip("-").lstrip("0") or "0"
        return f"-{digits}" if text.startswith("-") and digits != "0" else digits
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text.rstrip("fF"))
    if number in (float("inf"), float("-inf")):
        return text
    plain = format(Decimal(repr(number)), "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _without_empty(oneofs: tuple[model.OneOf, ...]) -> tuple[model.OneOf, ...]:
    """Drop oneofs without members; if all are empty, return one without a name, which prints a blank line."""
    kept = tuple(oneof for oneof in oneofs if oneof.fields or oneof.groups)
    return kept if kept or not oneofs else (model.OneOf(""),)


def _first_tag(oneof: model.OneOf) -> int:
    return min([field.tag for field in oneof.fields] + [group.tag for group in oneof.groups], default=0)


def _reserved(statements: Iterable[model.Reserved]) -> tuple[model.Reserved, ...]:
    values = [value for statement in statements for value in statement.values]
    tags = sorted((_plain(value) for value in values if not isinstance(value, str)), key=model.bounds)
    return tuple(
        model.Reserved((value,)) for value in (*tags, *sorted(value for value in values if isinstance(value, str)))
    )


def _plain(tags: int | model.Range) -> int | model.Range:
    return tags[0] if isinstance(tags, tuple) and tags[0] == tags[1] else tags
