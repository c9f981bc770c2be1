"""The decision whether two texts are one version of a subject.

They are if they have the same content in the same order, however they spell type names, maps and numbers: for example,
a schema that came as text, and the descriptor that a client made of it. A different order makes another version.

A text is also the same version as a stored one if it writes out, after its own types, the types of its package that the
stored one takes from references. Its own messages must come first, because payloads identify messages by index.
"""

from collections.abc import Iterable
from dataclasses import replace

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf.model import File, Message, Options, TypeDefinition, is_map_entry
from strata.compat.protobuf.names import Names, inside
from strata.compat.protobuf.normalizer import normalize_file
from strata.compat.protobuf.printer import print_file
from strata.compat.protobuf.schema import ProtobufSchema

__all__ = ["equivalent"]


def equivalent(left: ProtobufSchema, right: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether two schemas are one version of a subject.

    Args:
        left: The new schema, which may write out types to which the stored one refers.
        right: The stored schema.
        limits: Bounds on size and time.

    Raises:
        SchemaParseError: A text would be too long.
        OutOfTime: The time of `limits` ran out.
    """
    if left.canonical == right.canonical:
        return True
    if _outline(left.file) == _outline(right.file):
        return _order(left.file, left.names) == _order(right.file, right.names) and (
            _spelled_out(left.file, left.names, limits) == _spelled_out(right.file, right.names, limits)
        )
    return _written_out(left, right, limits)


def _outline(file: File) -> tuple[object, ...]:
    """Return the parts that differ most often and are quick to compare."""
    return (
        file.package or "",
        tuple((message.name, _tags(message)) for message in file.messages),
        tuple((enum.name, len(enum.constants)) for enum in file.enums),
    )


def _tags(message: Message) -> tuple[int, ...]:
    return tuple(field.tag for field in message.fields)


def _order(file: File, names: Names) -> tuple[object, ...]:
    """Return the imports and option names in their order, because `_spelled_out` sorts them."""
    scope = file.package or ""
    messages = (_order_in(message, names, inside(scope, message.name)) for message in file.messages)
    return (file.imports, file.public_imports, _option_names(file.options, names, scope), *messages)


def _order_in(message: Message, names: Names, scope: str) -> tuple[object, ...]:
    nested = (inner for inner in message.messages if not is_map_entry(inner))
    return (
        _option_names(message.options, names, scope),
        tuple((field.tag, _option_names(field.options, names, scope)) for field in message.all_fields),
        *(_order_in(inner, names, inside(scope, inner.name)) for inner in nested),
    )


def _option_names(options: Options, names: Names, scope: str) -> tuple[str, ...]:
    """Return the full names, each once, since an option may have parts; repeated extensions come last.

    An earlier normal form had repeated extensions last, beside options with dots, and is still stored.
    """
    known = (names.extension_of(option.name, scope) or option.name for option in options)
    return tuple(sorted(dict.fromkeys(known), key=names.is_repeated))


def _spelled_out(file: File, names: Names, limits: Limits) -> str:
    return print_file(normalize_file(file, names, limits, keep_order=True), limits)


def _written_out(text: ProtobufSchema, stored: ProtobufSchema, limits: Limits) -> bool:
    own = {definition.name for definition in stored.file.types}
    further = [definition for definition in text.file.types if definition.name not in own]
    scope = stored.file.package or ""
    known = [stored.names.type_of(f".{inside(scope, definition.name)}", "") for definition in further]
    referenced = [message.definition for message in known if message is not None]
    if not further or len(referenced) < len(further):
        return False
    ours = _alone(text.file, (definition for definition in text.file.types if definition.name in own))
    theirs = _alone(stored.file, stored.file.types)
    if _outline(ours) != _outline(theirs) or list(text.file.messages)[: len(list(ours.messages))] != list(
        ours.messages
    ):
        return False
    return _spelled_out(ours, text.names, limits) == _spelled_out(theirs, stored.names, limits) and _spelled_out(
        File(scope, types=tuple(further)), text.names, limits
    ) == _spelled_out(File(scope, types=tuple(referenced)), stored.names, limits)


def _alone(file: File, types: Iterable[TypeDefinition]) -> File:
    """Return the file with some types and no imports, which only say where types come from."""
    return replace(file, types=tuple(types), imports=(), public_imports=(), weak_imports=())
