"""Objects of classes as messages, and messages as objects: functions compiled from a class and a message type.

Writing fills a message of the class's own schema. Reading finds the fields by name in the schema that a message was
written with, or by a former name, so its numbers need not be those of the class.

Rules of this file: it writes source from shapes and descriptors. Names of attributes are identifiers, since Python has
taken them; names of a schema appear as string literals, or as attributes if they are identifiers.
"""

import copy
import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.classes.conversion import argument_of, takes_positions
from strata.serdes.classes.protobuf_schema import Branch, Slot, layout_of, value_names
from strata.serdes.classes.shapes import MISSING, Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import DecodeError, DecodeReason, EncodeError, SchemaError, expected, missing_field
from strata.serdes.protobuf import known_types
from strata.serdes.protobuf.files import descriptor_of, entry_of
from strata.serdes.subject_name_strategies import RecordContext

__all__ = ["check_numbers", "lifting", "lowering"]

_F: Final = FieldDescriptor
_INTEGERS: Final = (
    _F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_SINT32, _F.TYPE_SINT64, _F.TYPE_FIXED32,
    _F.TYPE_FIXED64, _F.TYPE_SFIXED32, _F.TYPE_SFIXED64,
)  # fmt: skip
_FLOATS: Final = (_F.TYPE_DOUBLE, _F.TYPE_FLOAT)
_TYPES: Final[Mapping[str, tuple[int, ...]]] = {
    "bool": (_F.TYPE_BOOL,),
    "int": _INTEGERS,
    "int32": _INTEGERS,
    "float": _FLOATS,
    "float32": _FLOATS,
    "str": (_F.TYPE_STRING,),
    "bytes": (_F.TYPE_BYTES,),
    "fixed": (_F.TYPE_BYTES,),
    "local": (_F.TYPE_STRING,),
    "local-millis": (_F.TYPE_STRING,),
    "uuid": (_F.TYPE_STRING,),
}
_ZEROS: Final[Mapping[str, str]] = {
    "bool": "False",
    "int": "0",
    "int32": "0",
    "float": "0.0",
    "float32": "0.0",
    "str": "''",
    "bytes": "b''",
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double", "String", "Bytes")
)
_NOT_A: Final[Mapping[str, str]] = {
    "int": "bool",
    "int32": "bool",
    "float": "bool",
    "float32": "bool",
    "str": "bytes",
    "bytes": "str",
}
"""The Python type that the library would take for the one that a kind of value has."""
_WORDS: Final[Mapping[str, str]] = {
    "bool": "a bool",
    "int": "an integer",
    "int32": "an integer",
    "float": "a number",
    "float32": "a number",
    "str": "text",
    "bytes": "bytes",
    "fixed": "bytes",
}


def lowering(shape: Object, descriptor: Descriptor) -> Callable[[object, RecordContext], object]:
    """Return the function from an object to a message, as `to_dict` of a serializer; it raises `EncodeError`.

    Args:
        shape: the class.
        descriptor: the message of its own schema.

    Raises:
        SchemaError: If the branches of a union cannot be told apart.
    """
    source = _Lowering(shape.name)
    fill, make = source.compiled(shape, descriptor), GetMessageClass(descriptor)
    cls = _class_of(shape)

    def lower(value: object, _context: RecordContext) -> object:
        message = make()
        try:
            fill(value, message)
        except (AttributeError, EncodeError, KeyError, OverflowError, TypeError, ValueError) as error:
            if not isinstance(value, cls):
                raise EncodeError(f"expected {shape.cls.__name__}, got {type(value).__name__}") from None
            raise source.diagnosed(error) from None
        return message

    return lower


def lifting(shape: Object) -> Callable[[Message, RecordContext], object]:
    """Return the function from a message of any type to an object, as `from_dict` of a deserializer.

    It raises `SchemaError` if the message has another type for a field than the class, and `DecodeError` for a value
    that the class cannot have. Errors of the class pass through.
    """
    functions: dict[type, tuple[_Lifting, Callable[..., object]]] = {}

    def lift(message: Message, _context: RecordContext) -> object:
        known = functions.get(type(message))
        if known is None:
            if len(functions) >= _MOST_TYPES:
                functions.clear()
            made = _Lifting(shape.name)
            known = functions[type(message)] = made, made.compiled(shape, descriptor_of(message))
        source, convert = known
        try:
            return convert(message)
        except DecodeError as error:
            error.path = source.path(error)
            raise

    return lift


_MOST_TYPES: Final = 1000


def check_numbers(shape: Object, registered: Descriptor) -> None:
    """Compare the numbers of a class's fields with those of a message in the registry.

    A class whose fields changed places would write values that others read as those of another field; if their types
    are alike, no rule of compatibility finds that.

    Raises:
        SchemaError: If a number is that of a field of another name, which is not a former one either.
    """
    pending: list[tuple[Object, Descriptor]] = [(shape, registered)]
    seen = set()
    while pending:
        part, message = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for slot in layout_of(part):
            for branch in slot.branches:
                field = message.fields_by_number.get(branch.number)
                if field is None:
                    continue
                if field.name not in (branch.name, *slot.member.aliases):
                    raise SchemaError(
                        f"{part.name}.{branch.name}: {branch.number} is the number of {field.name} in the registry; "
                        f"give the field another by Field(number=…), or the former name by Field(aliases=…)"
                    )
                inner, target = _inner(branch.shape), _message_of(field)
                if isinstance(inner, Object) and target is not None:
                    pending.append((inner, target))


def _inner(shape: Shape) -> Shape:
    if isinstance(shape, Items):
        return shape.item
    return shape.value if isinstance(shape, Values) else shape


def _message_of(field: FieldDescriptor) -> Descriptor | None:
    entry = entry_of(field)
    return field.message_type if entry is None else entry.fields_by_name["value"].message_type


class _Source(ABC):
    """Source of functions, each of a class and a message type, and the field that each line is about."""

    def __init__(self, name: str) -> None:
        self._file = f"<messages of {name} {id(self)}>"
        self._names: dict[str, Any] = {"refuse": known_types.refuse}
        self._functions: dict[tuple[int, str], str] = {}
        self._lines: list[str] = []
        self._places: dict[int, str] = {}

    def compiled(self, shape: Shape, descriptor: Descriptor) -> Callable[..., object]:
        """Return the function of a class and a message type."""
        name = self._function(shape, descriptor)
        exec(compile("\n".join(self._lines), self._file, "exec"), self._names)  # noqa: S102 - our own source
        function: Callable[..., object] = self._names[name]
        return function

    def path(self, error: BaseException) -> str:
        """Return the path of the field at which a function raised an error."""
        return ".".join(filter(None, (self._places.get(line, "") for line, _ in self._steps(error))))

    def _steps(self, error: BaseException) -> list[tuple[int, Mapping[str, object]]]:
        """Return the lines of the functions that an error passed, outermost first, with their variables."""
        steps: list[tuple[int, Mapping[str, object]]] = []
        step = error.__traceback__
        while step is not None:
            code = step.tb_frame.f_code
            if code.co_filename == self._file and not code.co_name.startswith("<"):  # that of a comprehension
                steps.append((step.tb_lineno, step.tb_frame.f_locals))
            step = step.tb_next
        return steps

    def _function(self, shape: Any, descriptor: Descriptor) -> str:
        key = id(shape), descriptor.full_name
        name = self._functions.get(key)
        if name is None:
            name = self._functions[key] = f"f{len(self._functions)}"
            lines = self._body(shape, descriptor)
            self._lines.append(f"def {name}({self._parameters}):")
            for line, member in lines:
                self._lines.append(f"    {line}")
                if member is not None:
                    self._note(len(self._lines), shape, member)
        return name

    def _note(self, line: int, shape: Object, member: Member) -> None:  # noqa: ARG002 - an interface
        self._places[line] = member.name

    _parameters = ""

    @abstractmethod
    def _body(self, shape: Object, descriptor: Descriptor) -> list[tuple[str, Member | None]]:
        """Return the lines of a function, each with the member that it is about."""

    def _constant(self, value: object) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name


class _Lowering(_Source):
    """Functions that fill a message from an object."""

    _parameters = "o, m"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._expected: dict[int, tuple[type, Shape | None]] = {}

    def diagnosed(self, error: Exception) -> EncodeError:
        """Return the error of a value that does not fit, with the path of the field."""
        path = self.path(error)
        steps = self._steps(error)
        if isinstance(error, EncodeError) or not steps:
            return EncodeError(getattr(error, "detail", str(error)), path=path)
        line, variables = steps[-1]
        cls, shape = self._expected.get(line, (object, None))
        if not isinstance(variables.get("o"), cls):
            outer = path.rpartition(".")[0]
            return expected(f"an object of {cls.__name__}", variables.get("o"), path=outer)
        if isinstance(error, KeyError):
            return missing_field(path.rpartition(".")[2], path.rpartition(".")[0])
        if isinstance(error, TypeError | AttributeError) and isinstance(shape, Scalar | Symbols):
            return expected(_words(shape), variables.get("v"), path=path)
        return EncodeError(
            str(error).partition(":")[0].lower() if isinstance(error, ValueError) else str(error), path=path
        )

    def _body(self, shape: Object, descriptor: Descriptor) -> list[tuple[str, Member | None]]:
        lines: list[tuple[str, Member | None]] = []
        for slot in layout_of(shape):
            member = slot.member
            get = f"o[{member.attribute!r}]" if shape.is_dict else f"o.{member.attribute}"
            body = [f"v = {get}", *self._slot(slot, descriptor)]
            if shape.is_dict and member.attribute not in shape.required:
                body = [f"if {member.attribute!r} in o:", *_indented(body)]
            lines += [(line, member) for line in body]
        return lines or [("pass", None)]

    def _note(self, line: int, shape: Object, member: Member) -> None:
        super()._note(line, shape, member)
        inner = member.shape
        if isinstance(inner, Choice):
            branches = [branch for branch in inner.branches if _words(branch) != "null"]
            inner = branches[0] if len(branches) == 1 else inner
        self._expected[line] = _class_of(shape), inner

    def _slot(self, slot: Slot, descriptor: Descriptor) -> list[str]:
        if not slot.is_union:
            lines = self._value(slot.branches[0], descriptor)
            return ["if v is not None:", *_indented(lines)] if slot.is_nullable else lines
        types: dict[type, Branch] = {}
        for branch in slot.branches:
            cls = _class_of(branch.shape)
            if cls in types:
                raise SchemaError(f"{slot.member.name}: two branches of the union are of the type {cls.__name__}")
            types[cls] = branch
        lines = ["t = v.__class__", "if v is None:", "    pass"] if slot.is_nullable else ["t = v.__class__"]
        for cls, branch in types.items():
            word = "elif" if len(lines) > 1 else "if"
            lines += [f"{word} t is {self._constant(cls)}:", *_indented(self._value(branch, descriptor))]
        names = " or ".join(cls.__name__ for cls in types)
        return [*lines, "else:", f"    refuse({names!r}, v)"]

    def _value(self, branch: Branch, descriptor: Any) -> list[str]:
        """Return the lines that put `v` into a field of `m`."""
        shape, field, target = branch.shape, descriptor.fields_by_name[branch.name], _attribute("m", branch.name)
        match shape:
            case Items():
                return ["if v.__class__ is str: refuse('a list', v)", *self._items(shape, field, target)]
            case Values():
                return self._map(shape, field, target)
            case Scalar() | Symbols() if field.message_type is None:
                other = _NOT_A.get(shape.kind) if isinstance(shape, Scalar) else None
                lines = [f"if v.__class__ is {other}: refuse({_words(shape)!r}, v)"] if other else []
                value = self._plain(shape, "v")
                is_name = not keyword.iskeyword(branch.name)
                return [*lines, f"{target} = {value}" if is_name else f"setattr(m, {branch.name!r}, {value})"]
        present = self._constant(GetMessageClass(field.message_type).SetInParent)
        return [f"n = {target}", f"{present}(n)", f"{self._fill(shape, field.message_type)}(v, n)"]

    def _items(self, shape: Items, field: FieldDescriptor, target: str) -> list[str]:
        if field.message_type is None:
            value = self._plain(shape.item, "x")
            return [f"{target}.extend({'v' if value == 'x' else f'[{value} for x in v]'})"]
        return [f"a = {target}.add", f"for x in v: {self._fill(shape.item, field.message_type)}(x, a())"]

    def _map(self, shape: Values, field: Any, target: str) -> list[str]:
        inner = field.message_type.fields_by_name["value"]
        if inner.message_type is None:
            value = self._plain(shape.value, "x")
            return [f"{target}.update({'v' if value == 'x' else f'{{k: {value} for k, x in v.items()}}'})"]
        return [f"n = {target}", f"for k, x in v.items(): {self._fill(shape.value, inner.message_type)}(x, n[k])"]

    def _fill(self, shape: Shape, descriptor: Descriptor) -> str:
        """Return the function that fills a message from a value."""
        if isinstance(shape, Scalar):
            return self._constant(known_types.filling(descriptor.full_name, shape.numbers))
        return self._function(shape, descriptor)

    def _plain(self, shape: Shape, name: str) -> str:
        """Return a value without a message of its own as protobuf takes it."""
        if isinstance(shape, Symbols):
            by_symbol = {symbol: number for number, symbol in value_names(shape).values() if symbol}
            if shape.cls is None:
                return f"{self._constant(known_types.Numbers(by_symbol))}[{name}]"
            values = {member.value: by_symbol[_symbol(shape, member)] for member in shape.cls}
            return f"{self._constant(known_types.Numbers(values))}[{name}._value_]"
        kind, numbers = (shape.kind, shape.numbers) if isinstance(shape, Scalar) else ("", ())
        convert = known_types.sized(numbers[0]) if kind == "fixed" else known_types.TO_TEXT.get(kind)
        return name if convert is None else f"{self._constant(convert)}({name})"


class _Lifting(_Source):
    """Functions that make an object of a message."""

    _parameters = "m"

    def _body(self, shape: Object, descriptor: Descriptor) -> list[tuple[str, Member | None]]:
        has = self._constant(GetMessageClass(descriptor).HasField)
        lines: list[tuple[str, Member | None]] = []
        pairs = []
        for number, slot in enumerate(layout_of(shape)):
            member, name = slot.member, f"v{number}"
            body = self._slot(slot, descriptor, name, has)
            if body is None:
                continue
            pairs.append((member, name))
            lines += [(line, member) for line in body]
        return [*lines, (f"return {self._made(shape, pairs)}", None)]

    def _made(self, shape: Object, named: Sequence[tuple[Member, str]]) -> str:
        pairs = [(argument_of(shape, member), member, name) for member, name in named]
        if shape.is_dict:
            optional = [pair for pair in pairs if pair[1].attribute not in shape.required]
            always = [pair for pair in pairs if pair not in optional]
            written = ", ".join(f"{attribute!r}: {name}" for attribute, _, name in always)
            more = "".join(f" | ({{{key!r}: {name}}} if {name} is not c_none else {{}})" for key, _, name in optional)
            self._names["c_none"] = MISSING
            return f"{{{written}}}{more}"
        cls = self._constant(shape.cls)
        if len(pairs) == len(shape.members) and takes_positions(shape):
            return f"{cls}({', '.join(name for _, _, name in pairs)})"
        are_names = all(attribute.isidentifier() and not keyword.iskeyword(attribute) for attribute, _, _ in pairs)
        if are_names:
            return f"{cls}({', '.join(f'{attribute}={name}' for attribute, _, name in pairs)})"
        return f"{cls}(**{{{', '.join(f'{attribute!r}: {name}' for attribute, _, name in pairs)}}})"

    def _slot(self, slot: Slot, descriptor: Descriptor, name: str, has: str) -> list[str] | None:
        """Return the lines that read a member; None if the class has to use its own default."""
        fields = [(branch, _field_of(slot, branch, descriptor)) for branch in slot.branches]
        known = [(branch, field) for branch, field in fields if field is not None]
        if not known:
            return None if slot.member.default is not MISSING else [f"{name} = {self._absent(slot, has_field=False)}"]
        branch, field = known[0]
        value = self._value(branch.shape, field, branch.name)
        is_object = isinstance(branch.shape, Object) and not slot.is_optional and slot.member.default is MISSING
        if not slot.is_union and (not field.has_presence or is_object):
            return [f"{name} = {value}"]
        lines: list[str] = []
        for branch, field in known:
            word = "elif" if lines else "if"
            test = f"{has}(m, {field.name!r})"
            lines += [f"{word} {test}: {name} = {self._value(branch.shape, field, branch.name)}"]
        return [*lines, f"else: {name} = {self._absent(slot, has_field=True)}"]

    def _absent(self, slot: Slot, *, has_field: bool) -> str:
        """Return what stands for a field that a message has not."""
        member, shape = slot.member, slot.branches[0].shape
        if slot.is_nullable:
            return "None"
        if member.default is not MISSING:
            default = self._constant(member.default)
            return default if isinstance(shape, Scalar | Symbols) else f"{self._constant(copy.deepcopy)}({default})"
        match shape:
            case _ if slot.is_optional and not slot.is_union:
                self._names["c_none"] = MISSING
                return "c_none"  # a key of a TypedDict
            case Items():
                return f"{self._constant(shape.make)}()"
            case Values():
                return "{}"
            case Symbols():
                return f"{self._constant(_symbols_of(shape, None))}[0]"
            case Scalar() if not slot.is_union and shape.kind in _ZEROS:
                return _ZEROS[shape.kind]
        why = "it is not there" if has_field else "the schema has no such field"
        return f"{self._constant(_missing)}({f'{why}, and the class has no default for it'!r})"

    def _value(self, shape: Shape, field: FieldDescriptor, where: str) -> str:
        """Return the value of a field of `m`."""
        value, entry = _attribute("m", field.name), entry_of(field)
        is_list = field.is_repeated and entry is None
        if is_list != isinstance(shape, Items) or (entry is not None) != isinstance(shape, Values):
            raise SchemaError(f"{where}: expected {_words(shape)}, the schema has {_described(field)}")
        match shape:
            case Items():
                item = self._single(shape.item, field, "x", where)
                listed = f"list({value})" if item == "x" else f"[{item} for x in {value}]"
                return listed if shape.make is list else f"{self._constant(shape.make)}({listed})"
            case Values() if entry is not None:
                if entry.fields_by_name["key"].type != _F.TYPE_STRING:
                    raise SchemaError(f"{where}: expected a map of strings, the schema has {_described(field)}")
                inner = self._single(shape.value, entry.fields_by_name["value"], "x", where)
                return f"dict({value})" if inner == "x" else f"{{k: {inner} for k, x in {value}.items()}}"
        return self._single(shape, field, value, where)

    def _single(self, shape: Shape, field: FieldDescriptor, value: str, where: str) -> str:
        message = field.message_type
        match shape:
            case Object() if message is not None and field.type == _F.TYPE_MESSAGE:
                return f"{self._function(shape, message)}({value})"
            case Symbols() if field.enum_type is not None:
                return f"{self._constant(_symbols_of(shape, field.enum_type))}[{value}]"
            case Scalar() if message is not None and message.full_name in known_types.READING:
                kind, read = known_types.READING[message.full_name]
                if shape.kind.removesuffix("-millis") == kind:
                    return f"{self._constant(read)}({value})"
            case Scalar() if message is not None and message.full_name in _WRAPPERS:
                return self._single(shape, message.fields_by_name["value"], f"{value}.value", where)
            case Scalar() if message is None and field.type in _TYPES.get(shape.kind, ()):
                convert = known_types.FROM_TEXT.get(shape.kind)
                return value if convert is None else f"{self._constant(convert)}({value})"
        raise SchemaError(f"{where}: expected {_words(shape)}, the schema has {_described(field)}")


def _missing(why: str) -> NoReturn:
    raise DecodeError(DecodeReason.INVALID_VALUE, why)


def _field_of(slot: Slot, branch: Branch, descriptor: Descriptor) -> FieldDescriptor | None:
    names = [branch.name, *(() if slot.is_union else slot.member.aliases)]
    return next((descriptor.fields_by_name[name] for name in names if name in descriptor.fields_by_name), None)


def _symbols_of(shape: Symbols, type_: EnumDescriptor | None) -> known_types.Symbols:
    """Return the members of an enum by the numbers of a Protobuf type; the class's own type if there is none."""
    members: dict[str, object] = (
        {symbol: symbol for symbol in shape.symbols}
        if shape.cls is None
        else {_symbol(shape, member): member for member in shape.cls}
    )
    own = value_names(shape)
    names = {name: symbol for name, (_, symbol) in own.items()} | {symbol: symbol for symbol in shape.symbols}
    numbers = (
        dict(own.values())
        if type_ is None
        else {value.number: names.get(value.name, "") for value in reversed(type_.values)}
    )
    by_number = {number: members[symbol] for number, symbol in numbers.items() if symbol in members}
    return known_types.Symbols(by_number, members.get(shape.default or "", MISSING), shape.name)


def _symbol(shape: Symbols, member: Enum) -> str:
    return str(member.value if shape.by_value else member.name)


def _class_of(shape: Shape) -> type:
    match shape:
        case Object():
            return dict if shape.is_dict else shape.cls
        case Symbols():
            return shape.cls or str
        case Scalar():
            return known_types.CLASSES[shape.kind]
    return list


def _attribute(owner: str, name: str) -> str:
    return f"getattr({owner}, {name!r})" if keyword.iskeyword(name) else f"{owner}.{name}"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _words(shape: Shape) -> str:
    match shape:
        case Items():
            return f"a list of {_words(shape.item)}"
        case Values():
            return f"a map of {_words(shape.value)}"
        case Choice():
            return "a union"
        case Object() | Symbols():
            return shape.name
    return _WORDS.get(shape.kind, shape.kind)


def _described(field: FieldDescriptor) -> str:
    inner = field.message_type or field.enum_type
    names = {getattr(_F, name): name.removeprefix("TYPE_").lower() for name in vars(_F) if name.startswith("TYPE_")}
    type_ = inner.full_name if inner is not None else names.get(field.type, str(field.type))
    return f"repeated {type_}" if field.is_repeated else type_
