"""What Protobuf refuses in a file that the reference stores: the rules of protoc's linker, each with line and column.

Protobuf's own pool has the last word, but it takes much that protoc refuses, and it has no lines. So the rules that it
lacks, and those that people break most, come first; the pool judges a file in which they find nothing. A type or an
option must be defined in the file itself, in an import, or in a public import of one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, TypeAlias

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf import model
from strata.compat.protobuf.builtin import builtin_files
from strata.compat.protobuf.names import inside
from strata.compat.protobuf.option_rules import Holder, option_fault
from strata.compat.protobuf.pool import pool_error
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.result import Refusal

__all__ = ["refusals"]

_MOST: Final = 100
_OWN_TAGS: Final = range(19_000, 20_000)  # of Protobuf itself
_PACKAGE: Final = "package"
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTIONS: Final = "google.protobuf."

_Symbol: TypeAlias = model.TypeDefinition | model.Field | str  # a string for a package


def refusals(schema: ProtobufSchema, *, path: str = "", limits: Limits = DEFAULT_LIMITS) -> list[Refusal]:
    """Return what protoc would refuse in a schema, in the order of the rules; at most a hundred.

    Args:
        schema: The schema.
        path: The path of its file, if it has one.
        limits: Bounds on time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    linker = _Linker(schema, path, limits)
    return linker.file() or linker.judged_by_the_pool()


class _Symbols:
    """The symbols that a file sees in its imports, by full name, packages included."""

    def __init__(self, files: Iterable[model.File]):
        self.by_name: dict[str, _Symbol] = {}
        for file in files:
            self._package(file.package or "")
            self._types(file.types, file.package or "")
            self._extends(file.extends, file.package or "")

    def _package(self, package: str) -> None:
        while package:
            self.by_name.setdefault(package, _PACKAGE)
            package = package.rpartition(".")[0]

    def _types(self, types: Iterable[model.TypeDefinition], scope: str) -> None:
        for definition in types:
            full = inside(scope, definition.name)
            self.by_name[full] = definition
            if isinstance(definition, model.Message):
                self._types(definition.types, full)
                self._extends(definition.extends, full)

    def _extends(self, extends: Iterable[model.Extend], scope: str) -> None:
        for extend in extends:
            for field in extend.fields:
                self.by_name[inside(scope, field.name)] = field


class _Linker:
    def __init__(self, schema: ProtobufSchema, path: str, limits: Limits):
        self._schema, self._path, self._limits = schema, path, limits
        self._file = schema.file
        self._is_proto3 = schema.file.syntax == "proto3"
        self._files = {**builtin_files(), **schema.imports}
        self._found: list[Refusal] = []
        self._lacks_imports = False
        self._known: dict[str, _Symbol] = {}  # what the file sees in its imports
        self._own: dict[str, _Symbol] = {}
        self._defined: dict[str, int] = {}  # full name -> its place
        self._extensions: dict[tuple[str, int], str] = {}  # extended message and tag -> name

    def file(self) -> list[Refusal]:
        file = self._file
        if file.second_package_at >= 0:
            message = "The file has several package statements; keep one"
            self.refuse("PACKAGE_TWICE", message, file.second_package_at)
        self._imports()
        visible = [self._files[path] for path in _visible(file, self._files)]
        self._known = _Symbols([*visible, model.File(file.package)]).by_name
        self._own = _Symbols([file]).by_name
        scope = file.package or ""
        self._options(file.options, "FileOptions", scope)
        self._types(file.types, scope)
        self._extends(file.extends, scope)
        for service in file.services:
            self._service(service, scope)
        return self._found

    def judged_by_the_pool(self) -> list[Refusal]:
        """Return what Protobuf's own pool says, at the place of a name that it names."""
        error = pool_error(self._schema, self._limits)
        if error is None:
            return []
        reason, path = error
        paths = (*self._file.imports, *self._file.public_imports)
        if path:
            at = dict(zip(paths, self._file.imported_at, strict=False)).get(path, -1)
            return [Refusal("IMPORT_INVALID", f'Protobuf refuses "{path}": {reason}', *self._place(at))]
        words = sorted(re.findall(r"[\w.]+", reason), key=len, reverse=True)
        named = [self._defined[word] for word in words if word in self._defined]
        last = [at for word in words for full, at in self._defined.items() if full.endswith(f".{word}")]
        at = next(iter((*named, *last)), -1)
        return [Refusal("DESCRIPTOR_INVALID", f"Protobuf refuses the file: {reason}", *self._place(at))]

    def _place(self, at: int) -> tuple[int, int]:
        """Return line and column, from 1; 0 and 0 for a file that came as a descriptor."""
        source = self._schema.source
        return (source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at)) if at >= 0 else (0, 0)

    def refuse(self, rule: str, message: str, at: int) -> None:
        if len(self._found) < _MOST:
            self._found.append(Refusal(rule, message, *self._place(at)))

    def _imports(self) -> None:
        file = self._file
        paths = (*file.imports, *file.public_imports)
        seen: set[str] = set()
        for number, path in enumerate(paths):
            at = file.imported_at[number] if number < len(file.imported_at) else -1
            if path in seen:
                self.refuse("IMPORT_TWICE", f'"{path}" is imported twice', at)
            elif path and f"/{self._path}".endswith(f"/{path}"):
                self.refuse("IMPORT_OF_ITSELF", f'The file imports itself as "{path}"', at)
                self._lacks_imports = True
            elif path not in self._files:
                self.refuse("IMPORT_MISSING", f'No file and no reference has the name "{path}", which is imported', at)
                self._lacks_imports = True
            seen.add(path)

    # --- definitions

    def _define(self, name: str, scope: str, at: int) -> None:
        """Note a symbol; refuse a name that the scope has already."""
        self._limits.look_at_clock()
        full = inside(scope, name)
        if not _IDENTIFIER.fullmatch(name):
            self.refuse("NAME_INVALID", f'"{name}" is not a name; expected letters, digits and "_"', at)
        if full in self._defined:
            self.refuse("NAME_TWICE", f'"{name}" is defined twice in {scope or "the file"}', at)
        elif full in self._known:
            what = "the name of a package" if self._known[full] == _PACKAGE else "defined in an import"
            self.refuse("NAME_TWICE", f'"{full}" is also {what}', at)
        self._defined[full] = at

    def _types(self, types: Iterable[model.TypeDefinition], scope: str) -> None:
        for definition in types:
            self._define(definition.name, scope, definition.at)
            if isinstance(definition, model.Enum):
                self._enum(definition, scope)
            else:
                self._message(definition, inside(scope, definition.name))

    def _message(self, message: model.Message, scope: str) -> None:
        self._options(message.options, "MessageOptions", scope)
        oneof_groups = (group for oneof in message.oneofs for group in oneof.groups)
        members: list[model.Field | model.Group] = [*message.all_fields, *message.groups, *oneof_groups]
        self._numbers(message, members, scope)
        for field in message.all_fields:
            self._define(field.name, scope, field.at)
            self._field(field, scope)
            if model.map_types(field.type):
                self._define(_entry(field.name), scope, field.at)
        for oneof in message.oneofs:
            self._oneof(oneof, scope)
        for group in (member for member in members if isinstance(member, model.Group)):
            self._group(group, scope)
        self._extends(message.extends, scope)
        self._types(message.types, scope)

    def _numbers(self, message: model.Message, members: Sequence[model.Field | model.Group], scope: str) -> None:
        """Check the tags of a message against each other and against reserved and extended ones."""
        reserved = _Ranges(self, message.reserved, "reserved")
        extended = _Ranges(self, message.extensions, "extension")
        if message.extensions and self._is_proto3:
            self.refuse("EXTENSIONS_IN_PROTO3", "A proto3 message cannot have extensions", message.extensions[0].at)
        for tags, at in extended.ranges:
            if reserved.holds(tags):
                self.refuse("RANGES_OVERLAP", f"The extensions {_shown(tags)} overlap with reserved numbers", at)
        first: dict[int, str] = {}
        for member in members:
            name, tag = member.name, member.tag
            self._tag(name, tag, member.at)
            if tag in first:
                message_ = f'Field number {tag} of "{name}" is that of "{first[tag]}" in {scope}'
                self.refuse("FIELD_NUMBER_TWICE", message_, member.at)
            elif reserved.holds((tag, tag)):
                self.refuse("FIELD_NUMBER_RESERVED", f'Field "{name}" uses the reserved number {tag}', member.at)
            elif extended.holds((tag, tag)):
                rule = "FIELD_NUMBER_OF_EXTENSIONS"
                self.refuse(rule, f'Field "{name}" uses the number {tag}, which is left to extensions', member.at)
            if name in reserved.names:
                self.refuse("FIELD_NAME_RESERVED", f'Field "{name}" uses a reserved name', member.at)
            first.setdefault(tag, name)

    def _tag(self, name: str, tag: int, at: int) -> None:
        expected = f"expected a number from 1 to {model.LARGEST_TAG}"
        if not 1 <= tag <= model.LARGEST_TAG:
            self.refuse("FIELD_NUMBER_OUT_OF_RANGE", f'Field "{name}" has the number {tag}; {expected}', at)
        elif tag in _OWN_TAGS:
            expected += ", but not from 19000 to 19999, which Protobuf keeps for itself"
            self.refuse("FIELD_NUMBER_OUT_OF_RANGE", f'Field "{name}" has the number {tag}; {expected}', at)

    def _oneof(self, oneof: model.OneOf, scope: str) -> None:
        self._define(oneof.name, scope, oneof.at)
        self._options(oneof.options, "OneofOptions", scope)
        if not oneof.fields and not oneof.groups:
            self.refuse("ONEOF_EMPTY", f'The oneof "{oneof.name}" has no fields', oneof.at)

    def _group(self, group: model.Group, scope: str) -> None:
        if self._is_proto3:
            self.refuse("GROUP_IN_PROTO3", f'The group "{group.name}" is in a proto3 file', group.at)
        if not group.name[:1].isupper():
            self.refuse("GROUP_NAME", f'The name of the group "{group.name}" must begin with a capital', group.at)
        self._define(group.name, scope, group.at)
        self._define(group.name.lower(), scope, group.at)
        self._message(model.Message(group.name, group.fields), inside(scope, group.name))

    def _field(self, field: model.Field, scope: str) -> None:
        self._options(field.options, "FieldOptions", scope)
        self._default(field)
        types = model.map_types(field.type)
        known = self._type(types[1] if types else field.type, scope, field.at)
        if isinstance(known, model.Enum) and self._is_proto3 and self._is_closed(known):
            message = f'Field "{field.name}" is in a proto3 file and has the enum {field.type} of a proto2 file'
            self.refuse("ENUM_OF_PROTO2", message, field.at)
        packs = any(_is_true(option, "packed") for option in field.options)
        packable = field.label == "repeated" and not types and field.type not in ("string", "bytes")
        if packs and not (packable and not isinstance(known, model.Message)):
            message = f'Field "{field.name}" cannot be packed; only repeated numbers, bools and enums can'
            self.refuse("FIELD_PACKED", message, field.at)

    def _default(self, field: model.Field) -> None:
        if field.default is None:
            return
        if self._is_proto3:
            self.refuse("DEFAULT_IN_PROTO3", f'Field "{field.name}" of a proto3 file has a default', field.at)
        elif field.label == "repeated":
            self.refuse("DEFAULT_OF_REPEATED", f'Repeated field "{field.name}" has a default', field.at)

    def _is_closed(self, enum: model.Enum) -> bool:
        owner = self._homes.get(id(enum))
        return owner is not None and self._files[owner].syntax != "proto3"

    def _enum(self, enum: model.Enum, scope: str) -> None:
        self._options(enum.options, "EnumOptions", scope)
        reserved = _Ranges(self, enum.reserved, "reserved", smallest=-(2**31), largest=model.LARGEST_CONSTANT)
        allows_alias = any(_is_true(option, "allow_alias") for option in enum.options)
        first: dict[int, str] = {}
        for constant in enum.constants:
            name, tag, at = constant.name, constant.tag, constant.at
            self._define(name, scope, at)
            self._options(constant.options, "EnumValueOptions", scope)
            if tag in first and not allows_alias:
                message = f'"{name}" has the number {tag} of "{first[tag]}"; `option allow_alias = true;` allows that'
                self.refuse("ENUM_NUMBER_TWICE", message, at)
            elif reserved.holds((tag, tag)):
                self.refuse("ENUM_NUMBER_RESERVED", f'"{name}" uses the reserved number {tag}', at)
            if name in reserved.names:
                self.refuse("ENUM_NAME_RESERVED", f'"{name}" is a reserved name', at)
            first.setdefault(tag, name)
        if not enum.constants:
            self.refuse("ENUM_EMPTY", f'The enum "{enum.name}" has no values', enum.at)
        elif self._is_proto3 and enum.constants[0].tag != 0:
            zero = enum.constants[0]
            message = f'The first value of a proto3 enum must be 0; "{zero.name}" is {zero.tag}'
            self.refuse("ENUM_FIRST_VALUE", message, zero.at)
        if self._is_proto3:
            self._alike(enum)
        if allows_alias and len(first) == len(enum.constants):
            self.refuse("ENUM_ALIAS_UNUSED", f'"{enum.name}" allows aliases and has none', enum.at)

    def _alike(self, enum: model.Enum) -> None:
        """Refuse names that some languages cannot tell apart: they leave out the name of the enum, and underscores."""
        known: dict[str, model.Constant] = {}
        for constant in enum.constants:
            other = known.setdefault(_pascal_case(constant.name, enum.name), constant)
            if other.tag != constant.tag and other.name != constant.name:
                message = f'"{constant.name}" and "{other.name}" differ only in case, underscores or the enum\'s name'
                self.refuse("ENUM_NAMES_ALIKE", message, constant.at)

    def _extends(self, extends: Iterable[model.Extend], scope: str) -> None:
        for extend in extends:
            self._type(extend.name, scope, extend.at)
            extended = self._full(extend.name, scope) or ""
            if self._is_proto3 and not (extended.startswith(_OPTIONS) and extended.endswith("Options")):
                message = f"A proto3 file can extend options only, not {extend.name}"
                self.refuse("EXTENSION_IN_PROTO3", message, extend.at)
            for field in extend.fields:
                self._define(field.name, scope, field.at)
                self._field(field, scope)
                self._tag(field.name, field.tag, field.at)
                other = self._extensions.setdefault((extended, field.tag), field.name)
                if other != field.name:
                    message = f'Number {field.tag} of the extension "{field.name}" is that of "{other}"'
                    self.refuse("FIELD_NUMBER_TWICE", message, field.at)
                if field.label == "required":
                    self.refuse("EXTENSION_REQUIRED", f'The extension "{field.name}" cannot be required', field.at)
                if field.json_name is not None:
                    message = f'The extension "{field.name}" cannot have a json_name'
                    self.refuse("EXTENSION_JSON_NAME", message, field.at)
                if model.map_types(field.type):
                    self.refuse("EXTENSION_MAP", f'The extension "{field.name}" cannot be a map', field.at)

    def _service(self, service: model.Service, scope: str) -> None:
        self._define(service.name, scope, service.at)
        full = inside(scope, service.name)
        self._options(service.options, "ServiceOptions", scope)
        for rpc in service.rpcs:
            self._define(rpc.name, full, rpc.at)
            self._options(rpc.options, "MethodOptions", full)
            for name in (rpc.request, rpc.response):
                if isinstance(self._type(name, scope, rpc.at), model.Enum):
                    self.refuse("METHOD_TYPE", f'"{name}" of the method {rpc.name} is not a message', rpc.at)

    # --- names

    def _symbol(self, full: str) -> _Symbol | None:
        return self._own.get(full) or self._known.get(full)

    def _full(self, name: str, scope: str, *, extension: bool = False) -> str | None:
        """Return the full name that a name means to protoc: the innermost scope that has its first part decides."""
        if name.startswith("."):
            return name[1:] if self._symbol(name[1:]) else None
        wanted = model.Field if extension else (model.Message, model.Enum)
        first, *rest = name.split(".", 1)
        while True:
            symbol = self._symbol(inside(scope, first))
            if rest and (symbol == _PACKAGE or isinstance(symbol, model.Message | model.Enum)):
                full = inside(scope, name)
                return full if self._symbol(full) else None
            if not rest and isinstance(symbol, wanted):
                return inside(scope, name)
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def _type(self, name: str, scope: str, at: int) -> _Symbol | None:
        """Return the type that a name means; refuse a name that the file does not see."""
        if name in model.SCALARS:
            return None
        full = self._full(name, scope)
        if full is not None:
            return self._symbol(full)
        known = self._schema.names.type_of(name, scope)
        if known is None:
            self.refuse("TYPE_UNKNOWN", f'The type "{name}" is not defined', at)
        elif known.full in self._own or known.full in self._known:
            message = f'"{name}" means another name here, since an inner scope has its first part; write .{known.full}'
            self.refuse("TYPE_SHADOWED", message, at)
        elif not self._lacks_imports:
            where = self._where(known.definition)
            message = f'"{name}" is defined in {where}, which the file does not import'
            self.refuse("TYPE_NOT_IMPORTED", message, at)
        return None

    def _where(self, definition: model.TypeDefinition) -> str:
        path = self._homes.get(id(definition))
        return f'"{path}"' if path else "another file"

    @cached_property
    def _homes(self) -> dict[int, str]:
        return {id(definition): path for path, file in self._files.items() for definition in _all_types(file.types)}

    def _options(self, options: Sequence[model.Option], holder: Holder, scope: str) -> None:
        seen: set[str] = set()
        for option in options:
            self._limits.look_at_clock()
            if not option.custom:
                fault = option_fault(holder, option, seen, is_proto3=self._is_proto3)
                if fault is not None:
                    self.refuse(*fault, option.at)
                continue
            full = self._full(option.name, scope, extension=True)
            if full is None and not self._lacks_imports:
                message = f'The option "({option.name})" is unknown; import the file that defines it'
                self.refuse("OPTION_UNKNOWN", message, option.at)
            elif full in seen and not option.path and not self._is_repeated(full):
                self.refuse("OPTION_TWICE", f'The option "({option.name})" is set twice', option.at)
            seen.add(full or "")

    def _is_repeated(self, full: str) -> bool:
        symbol = self._symbol(full)
        return isinstance(symbol, model.Field) and symbol.label == "repeated"


class _Ranges:
    """The tags and names of `reserved` or `extensions` statements; overlapping ones are refused."""

    def __init__(
        self,
        linker: _Linker,
        statements: Iterable[model.Reserved | model.Extensions],
        what: str,
        *,
        smallest: int = 1,
        largest: int = model.LARGEST_TAG,
    ):
        self.names: set[str] = set()
        self.ranges: list[tuple[model.Range, int]] = []
        for statement in statements:
            for value in statement.values:
                if isinstance(value, str):
                    if value in self.names:
                        linker.refuse("NAME_RESERVED_TWICE", f'"{value}" is reserved twice', statement.at)
                    self.names.add(value)
                    continue
                first, last = model.bounds(value)
                last = largest if last == model.LARGEST_TAG else last
                if not smallest <= first <= last <= largest:
                    expected = f"expected a number from {smallest} to {largest}, or two in ascending order"
                    message = f"The {what} numbers {_shown((first, last))} are not a range; {expected}"
                    linker.refuse("RANGE_INVALID", message, statement.at)
                else:
                    self.ranges.append(((first, last), statement.at))
        previous: model.Range | None = None
        self.ranges.sort()
        for tags, at in self.ranges:
            if previous is not None and tags[0] <= previous[1]:
                linker.refuse("RANGES_OVERLAP", f"The {what} numbers {_shown(tags)} and {_shown(previous)} overlap", at)
            previous = tags if previous is None or tags[1] > previous[1] else previous
        self._starts = [first for (first, _), _ in self.ranges]
        self._ends = list(accumulate((last for (_, last), _ in self.ranges), max))

    def holds(self, tags: model.Range) -> bool:
        """Return whether some number of a range is in one of these."""
        before = bisect_right(self._starts, tags[1])
        return before > 0 and self._ends[before - 1] >= tags[0]


def _visible(file: model.File, files: Mapping[str, model.File]) -> Iterator[str]:
    """Yield the paths of the imports of a file, and of their public imports, each once."""
    left, seen = [*file.imports, *file.public_imports, *file.weak_imports], set[str]()
    while left:
        path = left.pop()
        if path in files and path not in seen:
            seen.add(path)
            yield path
            left += files[path].public_imports


def _all_types(types: Iterable[model.TypeDefinition]) -> Iterator[model.TypeDefinition]:
    for definition in types:
        yield definition
        if isinstance(definition, model.Message):
            yield from _all_types(definition.types)


def _is_true(option: model.Option, name: str) -> bool:
    value = option.value
    return option.name == name and not option.custom and isinstance(value, model.Scalar) and value.text == "true"


def _pascal_case(name: str, enum: str) -> str:
    """Return the name of a constant without that of its enum, as protoc compares the names of constants."""
    prefix, rest = enum.replace("_", "").lower(), name
    while prefix and rest and (rest[0] == "_" or rest[0].lower() == prefix[0]):
        prefix = prefix if rest[0] == "_" else prefix[1:]
        rest = rest[1:]
    kept = rest.lstrip("_") if not prefix and rest.strip("_") else name
    return "".join(part[:1].upper() + part[1:].lower() for part in kept.split("_"))


def _entry(field: str) -> str:
    """Return the name of the message that protoc makes for a map field."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _shown(tags: model.Range) -> str:
    return str(tags[0]) if tags[0] == tags[1] else f"{tags[0]} to {tags[1]}"
