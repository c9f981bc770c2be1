"""The printer: tree to canonical text.

The kinds of statements come in a fixed order, each kind as a block after a blank line. Nested blocks are indented,
including their blank lines. A file without a syntax line begins with a blank line. A oneof without a name is one that
`normalize` has dropped; it leaves its blank line.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf import model
from strata.compat.schema import SchemaParseError

__all__ = ["is_readable_default", "print_file", "quoted", "with_attributes"]

_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        "'": "\\'",
        '"': '\\"',
    }
)

_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]+")  # texts that can be read back without quotes

_NOTHING: Final = "\0"  # a placeholder for no lines: a block of it alone prints only the blank line before it

Lines = list[str]


def print_file(file: model.File, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the canonical text of a file, without weak imports.

    Raises:
        SchemaParseError: The text would be too long.
        OutOfTime: The time of `limits` ran out.
    """
    return _Printer(limits).file(file)


def quoted(text: str) -> str:
    """Return a text as a literal in double quotes; escape only quotes, backslashes and named control characters."""
    return f'"{text.translate(_ESCAPES)}"'


def with_attributes(field: model.Field) -> list[model.Option]:
    """Return the options of a field, with its default and its JSON name as further ones.

    The default has the kind of value that the field's type requires. The reference treats bytes like a number and
    prints them without quotes.
    """
    options = list(field.options)
    if field.default is not None:
        scalar_kind = _default_kind(field.type) if _WORD.fullmatch(field.default) else model.Kind.STRING
        options.append(model.Option("default", model.Scalar(scalar_kind, field.default)))
    if field.json_name is not None:
        options.append(model.Option("json_name", model.Scalar(model.Kind.STRING, field.json_name)))
    return options


def is_readable_default(field: model.Field) -> bool:
    """Return whether the default can be read back from the reference's text, which has quotes only for a string."""
    return field.default is None or field.type == "string" or _WORD.fullmatch(field.default) is not None


def _default_kind(type_name: str) -> model.Kind:
    if type_name in ("string", "bool"):
        return model.Kind.STRING if type_name == "string" else model.Kind.BOOLEAN
    return model.Kind.NUMBER if type_name in model.SCALARS else model.Kind.ENUM


def _ended(lines: Lines, end: str) -> Lines:
    return [*lines[:-1], lines[-1] + end]


def _reserved(reserved: model.Reserved) -> str:
    values = (quoted(value) if isinstance(value, str) else _tags(value) for value in reserved.values)
    return f"reserved {', '.join(values)};"


def _tags(tags: int | model.Range) -> str:
    if isinstance(tags, int):
        return str(tags)
    first, last = tags
    return f"{first} to {'max' if last == model.LARGEST_TAG else last}"


class _Printer:
    """The printer of one file; it bounds the total indentation, which grows with each level of nesting."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._indentation = 0  # total indentation of all lines so far, in characters

    def file(self, file: model.File) -> str:
        lines = [f'syntax = "{file.syntax}";'] if file.syntax else []
        if file.package is not None:
            lines.append(f"package {file.package};")
        blocks = (
            [
                *(f"import {quoted(path)};" for path in file.imports),
                *(f"import public {quoted(path)};" for path in file.public_imports),
            ],
            self._option_statements(file.options),
            [line for message in file.messages for line in self._message(message)]
            + [line for enum in file.enums for line in self._enum(enum)],
            [line for extend in file.extends for line in self._extend(extend)],
            [line for service in file.services for line in self._service(service)],
        )
        for block in blocks:
            if block:
                lines += ["", *block]
        return "".join(f"{line}\n" for line in lines)

    def _indented(self, lines: Iterable[str]) -> Lines:
        indented = [f"  {line}" for line in lines]
        self._limits.look_at_clock()
        self._indentation += 2 * len(indented)
        if self._indentation > self._limits.text:
            raise SchemaParseError(f"The printed schema has more than {self._limits.text} characters")
        return indented

    def _body(self, head: str, blocks: Sequence[Lines]) -> Lines:
        """Return blocks in braces, separated by blank lines that are not indented at this level."""
        lines: Lines = []
        for block in filter(None, blocks):
            lines += ["", *self._indented(line for line in block if line != _NOTHING)]
        return [f"{head} {{", *lines[1:], "}"] if lines else [f"{head} {{}}"]

    def _message(self, message: model.Message) -> Lines:
        return self._body(
            f"message {message.name}",
            (
                [_reserved(reserved) for reserved in message.reserved],
                self._option_statements(message.options),
                [line for field in message.fields for line in self._field(field)],
                [line for oneof in message.oneofs for line in self._oneof(oneof)],
                [line for group in message.groups for line in self._group(group)],
                [line for extensions in message.extensions for line in self._extensions(extensions)],
                [line for extend in message.extends for line in self._extend(extend)],
                [line for nested in message.messages for line in self._message(nested)]
                + [line for nested in message.enums for line in self._enum(nested)],
            ),
        )

    def _enum(self, enum: model.Enum) -> Lines:
        constants = [
            line
            for constant in enum.constants
            for line in self._with_options(f"{constant.name} = {constant.tag}", constant.options)
        ]
        block = [
            *(_reserved(reserved) for reserved in enum.reserved),
            *self._option_statements(enum.options),
            *constants,
        ]
        return self._body(f"enum {enum.name}", (block,))

    def _oneof(self, oneof: model.OneOf) -> Lines:
        if not oneof.name:
            return [_NOTHING]
        return self._body(
            f"oneof {oneof.name}",
            (
                self._option_statements(oneof.options),
                [line for field in oneof.fields for line in self._field(field)],
                [line for group in oneof.groups for line in self._group(group)],
            ),
        )

    def _group(self, group: model.Group) -> Lines:
        label = f"{group.label} " if group.label else ""
        lines = [line for field in group.fields for line in self._field(field)]
        return self._body(f"{label}group {group.name} = {group.tag}", (lines,))

    def _extend(self, extend: model.Extend) -> Lines:
        return self._body(f"extend {extend.name}", ([line for field in extend.fields for line in self._field(field)],))

    def _service(self, service: model.Service) -> Lines:
        return self._body(
            f"service {service.name}",
            (self._option_statements(service.options), [line for rpc in service.rpcs for line in self._rpc(rpc)]),
        )

    def _rpc(self, rpc: model.Rpc) -> Lines:
        request = f"stream {rpc.request}" if rpc.request_streams else rpc.request
        response = f"stream {rpc.response}" if rpc.response_streams else rpc.response
        head = f"rpc {rpc.name} ({request}) returns ({response})"
        if not rpc.options:
            return [f"{head};"]
        return [f"{head} {{", *self._indented(self._option_statements(rpc.options)), "};"]

    def _field(self, field: model.Field) -> Lines:
        label = f"{field.label} " if field.label else ""
        return self._with_options(f"{label}{field.type} {field.name} = {field.tag}", with_attributes(field))

    def _with_options(self, head: str, options: Sequence[model.Option]) -> Lines:
        """Append options to a line: one option on the same line, several on separate lines."""
        if not options:
            return [f"{head};"]
        if len(options) == 1:
            first, *rest = self._option(options[0])
            return _ended([f"{head} [{first}", *rest], "];")
        lines: Lines = []
        for option in options[:-1]:
            lines += _ended(self._option(option), ",")
        return [f"{head} [", *self._indented(lines + self._option(options[-1])), "];"]

    def _option_statements(self, options: Iterable[model.Option]) -> Lines:
        lines: Lines = []
        for option in options:
            first, *rest = self._option(option)
            lines += _ended([f"option {first}", *rest], ";")
        return lines

    def _option(self, option: model.Option) -> Lines:
        name = f"({option.name})" if option.custom else option.name
        first, *rest = self._value(option.value)
        return [f"{'.'.join((name, *option.path))} = {first}", *rest]

    def _value(self, value: model.Value) -> Lines:
        if isinstance(value, model.Scalar):
            return [quoted(value.text) if value.kind is model.Kind.STRING else value.text]
        opening, closing = "{}" if isinstance(value, model.MapValue) else "[]"
        entries: list[Lines] = []
        if isinstance(value, model.MapValue):
            for key, inner in value.entries:
                first, *rest = self._value(inner)
                entries.append([f"{key}: {first}", *rest])
        else:
            entries = [self._value(inner) for inner in value.items]
        lines = [line for entry in entries[:-1] for line in _ended(entry, ",")]
        return [opening, *self._indented(lines + (entries[-1] if entries else [])), closing]

    def _extensions(self, extensions: model.Extensions) -> Lines:
        return self._with_options(f"extensions {', '.join(map(_tags, extensions.values))}", extensions.options)
