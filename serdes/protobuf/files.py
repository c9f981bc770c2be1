"""Protobuf schema texts as linked descriptors.

A text is `.proto` source or a base64 descriptor. `compat` parses both, and protobuf's descriptor pool links them. A
missing import is an error; nothing is fetched.

Rules of this file: texts in, descriptors out; no payloads and no registry.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message

from strata.compat.protobuf.builtin import builtin_files, builtin_names
from strata.compat.protobuf.names import Names
from strata.compat.protobuf.parser import parse
from strata.compat.protobuf.to_descriptor import file_to_descriptor
from strata.compat.schema import ResolvedReference, SchemaParseError
from strata.serdes.errors import NoMessage, SchemaError
from strata.serdes.model import PROTOBUF, Schema

__all__ = ["copied", "entry_of", "find_message", "imports_of", "indexes_of", "is_known", "link", "message_named"]
__all__ += ["text_of"]

_ROOT = "the schema itself"
_KNOWN = ("google/protobuf/", "google/type/", "confluent/")


def link(schema: Schema, references: Mapping[str, Schema]) -> FileDescriptor:
    """Return the descriptor of a schema, linked with its references and the well-known files.

    Args:
        schema: the schema.
        references: the schemas that it refers to, in order of dependency, by import path.

    Raises:
        SchemaError: If a text cannot be parsed or linked.
    """
    try:
        pool = _Pool(schema, references)
        linked: FileDescriptor = pool.add(_ROOT)
    except (SchemaParseError, TypeError, KeyError, RecursionError) as error:
        raise SchemaError(f"the Protobuf schema cannot be linked: {str(error)[:300]}") from None
    return linked


class _Pool:
    """A descriptor pool, and the files that may be added to it."""

    def __init__(self, schema: Schema, references: Mapping[str, Schema]) -> None:
        self._pool = DescriptorPool()
        self._files: dict[str, FileDescriptorProto] = {}
        self._added: set[str] = set()
        resolved = [ResolvedReference(name, reference.text) for name, reference in references.items()]
        for number, reference in enumerate(resolved):
            self._read(reference.name, reference.text, resolved[:number])
        self._read(_ROOT, schema.text, resolved)

    def _read(self, name: str, text: str, references: Sequence[ResolvedReference]) -> None:
        parsed = parse(text, strict=False, references=references)
        self._files[name] = file_to_descriptor(parsed.file, parsed.names)

    def add(self, name: str) -> FileDescriptor:
        """Add a file after its imports; a missing import is dropped, and linking fails only if the file uses it."""
        file = self._files.get(name) or _builtin(name)
        self._added.add(name)
        imports = []
        for dependency in file.dependency:
            if dependency not in self._added and (dependency in self._files or dependency in builtin_files()):
                self.add(dependency)
            if dependency in self._added:
                imports.append(dependency)
        names = dict.fromkeys([*imports, *(self._unasked() if name == _ROOT else ())])
        del file.dependency[:], file.public_dependency[:], file.weak_dependency[:]
        file.dependency.extend(names)
        file.name = name
        _drop_options(file)
        for message in file.message_type:
            _name_entries(message)
            _part_json_names(message)
        self._pool.AddSerializedFile(file.SerializeToString())
        return self._pool.FindFileByName(name)

    def _unasked(self) -> list[str]:
        """Add the references that no file imports, and return them; the registry finds types in them too."""
        names = [name for name in self._files if name not in self._added]
        for name in names:
            if name not in self._added:
                self.add(name)
        return names


def _builtin(name: str) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(_serialized(name))


@cache
def _serialized(name: str) -> bytes:
    return file_to_descriptor(builtin_files()[name], Names(builtin_names())).SerializeToString()


def _drop_options(file: FileDescriptorProto) -> None:
    """Drop options, services and extensions, which do not affect payloads and may not link."""
    file.ClearField("options")
    file.ClearField("service")
    file.ClearField("extension")


def _name_entries(message: DescriptorProto) -> None:
    """Name the map entries as protoc does, since other readers of descriptors require that."""
    for nested in message.nested_type:
        _name_entries(nested)
        if not nested.options.map_entry:
            continue
        for field in message.field:
            front, dot, last = field.type_name.rpartition(".")
            if last == nested.name:
                name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
                field.type_name, nested.name = f"{front}{dot}{name}", name
                break


def _part_json_names(message: DescriptorProto) -> None:
    """Use the schema's field names in JSON where two JSON names would collide (`a_b`, `aB`)."""
    for nested in message.nested_type:
        _part_json_names(nested)
    names = [_json_name(field.name) for field in message.field]
    if len(set(names)) < len(names):
        for field in message.field:
            field.json_name = field.name


def _json_name(name: str) -> str:
    front, *rest = name.split("_")
    return front + "".join(part[:1].upper() + part[1:] for part in rest)


def find_message(file: FileDescriptor, indexes: Sequence[int] | int) -> Descriptor:
    """Return the message at a path of message indexes.

    Map entries count where the schema spells them out as messages, as a text made from a descriptor does. Entries of
    `map<…>` come after all messages of the text and shift no index. In frames of AWS Glue all entries count.

    Args:
        file: the linked schema.
        indexes: the index of the message at each level, outermost first; or its place as AWS Glue counts.

    Raises:
        NoMessage: If the path leads to no message.
    """
    messages = list(file.message_types_by_name.values())
    if isinstance(indexes, int):
        everything = sorted(_with_nested(messages), key=lambda message: message.full_name)
        if indexes >= len(everything):
            raise NoMessage(f"the schema has no message {indexes} as AWS Glue counts")
        return everything[indexes]
    message: Descriptor | None = None
    for index in indexes:
        if index >= len(messages):
            raise NoMessage(f"the schema has no message at {list(indexes)[:5]}")
        message = messages[index]
        messages = list(message.nested_types)
    if message is None:
        raise NoMessage("expected message indexes, got none")
    return message


def _with_nested(messages: Iterable[Descriptor]) -> Iterator[Descriptor]:
    for message in messages:
        yield message
        yield from _with_nested(message.nested_types)


def message_named(file: FileDescriptor, name: str) -> Descriptor | None:
    """Return a message by its full name, from a linked file or its imports; None if there is none."""
    try:
        message: Descriptor = file.pool.FindMessageTypeByName(name)
    except KeyError:
        return None
    return message


def descriptor_of(message: Message | type[Message]) -> Descriptor:
    """Return the descriptor of a message or of a class, which has one of two equal types in the stubs of protobuf."""
    return cast("Descriptor", message.DESCRIPTOR)


def entry_of(field: FieldDescriptor) -> Descriptor | None:
    """Return the entry message of a `map<…>` field; None for any other field."""
    inner = field.message_type
    return inner if inner is not None and inner.GetOptions().map_entry else None


def indexes_of(message: Descriptor) -> tuple[int, ...]:
    """Return the message indexes of a message in its file, outermost first."""
    path = []
    while message.containing_type is not None:
        outer = message.containing_type
        path.append([type_.full_name for type_ in outer.nested_types].index(message.full_name))
        message = outer
    path.append(list(message.file.message_types_by_name).index(message.name))
    return tuple(reversed(path))


def copied(message: Descriptor, change: Callable[[FileDescriptorProto], None]) -> Descriptor:
    """Return a copy of a message in a pool of its own.

    Args:
        message: the message.
        change: changes the copy of its file, and those of all files that it imports.
    """
    pool = DescriptorPool()
    added: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in added:
            return
        added.add(file.name)
        for dependency in file.dependencies:
            add(dependency)
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        change(proto)
        pool.AddSerializedFile(proto.SerializeToString())

    add(message.file)
    return pool.FindMessageTypeByName(message.full_name)


def text_of(file: FileDescriptor) -> str:
    """Return a descriptor as base64 text, the form in which Confluent's Python serializer registers it."""
    return base64.b64encode(file.serialized_pb).decode()


def imports_of(file: FileDescriptor) -> dict[str, Schema]:
    """Return all direct and indirect imports of a file in order of dependency, except the well-known files."""
    imports: dict[str, Schema] = {}
    _add_imports(file, imports)
    return imports


def _add_imports(file: FileDescriptor, imports: dict[str, Schema]) -> None:
    for dependency in file.dependencies:
        if dependency.name not in imports and not is_known(dependency.name):
            _add_imports(dependency, imports)
            imports[dependency.name] = Schema(text_of(dependency), PROTOBUF)


def is_known(name: str) -> bool:
    """Return whether a file may be imported without a reference, such as those of google/protobuf."""
    return name.startswith(_KNOWN)
