"""What Google's Java and Python libraries read from the bytes of a message, in one form.

A value is a list of the fields that are set, each a number and the list of its parts. A part is a value again for a
message, else a text: the digits of an integer or of the bits of a float, the hex digits of text and bytes.
"""

import base64
import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from harness.java_probes import RunJava

__all__ = ["Task", "in_java", "in_python"]

_TASKS_AT_ONCE: Final = 4000  # each brings its descriptors


class Task(NamedTuple):
    """A message to read."""

    type: Descriptor
    payload: bytes


def in_java(run: RunJava, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Return what the Java library reads for each task, as `value` or `error`.

    Args:
        run: runs a class in the JVM of the fixture `run_library`.
        tasks: the messages.
    """
    answers: list[dict[str, Any]] = []
    for at in range(0, len(tasks), _TASKS_AT_ONCE):
        jobs = [
            {"files": _files(kind.file), "message": kind.full_name, "payload": payload.hex()}
            for kind, payload in tasks[at : at + _TASKS_AT_ONCE]
        ]
        answers += run("ProtobufMessages", jobs)
    return answers


def in_python(task: Task) -> dict[str, Any]:
    """Return what the Python library reads for a task, as `value` or `error`."""
    message = GetMessageClass(task.type)()
    try:
        message.ParseFromString(task.payload)
        value = _fields(message)
    except (DecodeError, UnicodeDecodeError) as error:
        return {"error": repr(error)}
    return {"value": value} if message.IsInitialized() else {"error": "a required field is missing"}


def _files(file: FileDescriptor) -> list[str]:
    """Return the descriptors of a file and of its imports, each after those that it imports."""
    made: dict[str, str] = {}

    def add(one: FileDescriptor) -> None:
        for inner in one.dependencies:
            if inner.name not in made:
                add(inner)
        proto = FileDescriptorProto()
        one.CopyToProto(proto)
        made[one.name] = base64.b64encode(proto.SerializeToString()).decode()

    add(file)
    return list(made.values())


def _fields(message: Any) -> list[Any]:
    return [[field.number, list(_parts(field, value))] for field, value in message.ListFields()]


def _parts(field: FieldDescriptor, value: Any) -> Iterable[Any]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        key, inner = kind.fields_by_number[1], kind.fields_by_number[2]
        entries = [[[1, [_part(key, name)]], [2, [_part(inner, value[name])]]] for name in value]
        return sorted(entries, key=lambda entry: str(entry[0][1][0]))
    return [_part(field, one) for one in (value if field.is_repeated else [value])]


def _part(field: FieldDescriptor, value: Any) -> Any:
    if field.message_type is not None:
        return _fields(value)
    if isinstance(value, str | bytes):
        return (value.encode() if isinstance(value, str) else value).hex()
    if isinstance(value, float):
        double = field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE
        return str(struct.unpack("<q" if double else "<i", struct.pack("<d" if double else "<f", value))[0])
    return str(value).lower()
