"""The tags of a .proto file. An entity is a message, by its name in the package, or a field, by message name and name.

Tags are in the options `(confluent.message_meta)` and `(confluent.field_meta)`, as `.tags = "PII"` or in braces; this
module writes them in braces. A group has no options and so no tags.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from strata.compat.entities import Entity, EntityType, Tags, changed
from strata.compat.protobuf.model import Field, File, Kind, ListValue, MapValue, Message, Option, Scalar, Value
from strata.compat.protobuf.printer import print_file

__all__ = ["retagged", "tags_of"]

_META: Final = {EntityType.RECORD: "confluent.message_meta", EntityType.FIELD: "confluent.field_meta"}
_TAGS: Final = "tags"

_Options = tuple[Option, ...]
_Change = Callable[[Entity, _Options], _Options]


def tags_of(file: File) -> "dict[Entity, list[str]]":
    """Return the tags of the tagged messages and fields of a file."""
    by_entity: dict[Entity, list[str]] = {}

    def note(entity: Entity, options: _Options) -> _Options:
        if tags := _tags(entity, options):
            by_entity[entity] = tags
        return options

    _changed_file(file, note)
    return by_entity


def retagged(file: File, add: Tags, remove: Tags) -> tuple[str, set[Entity]]:
    """Return the text of a file after tags were added and then others removed, and all entities of the file.

    Args:
        file: The file.
        add: The tags to add, by entity.
        remove: The tags to remove, by entity.

    Raises:
        SchemaParseError: The text would be too long.
    """
    seen: set[Entity] = set()

    def change(entity: Entity, options: _Options) -> _Options:
        seen.add(entity)
        if entity not in add and entity not in remove:
            return options
        return _with_tags(entity, options, changed(_tags(entity, options), add.get(entity, ()), remove.get(entity, ())))

    return print_file(_changed_file(file, change)), seen


def _changed_file(file: File, change: _Change) -> File:
    types = tuple(
        _message(definition, "", change) if isinstance(definition, Message) else definition for definition in file.types
    )
    return replace(file, types=types)


def _message(message: Message, around: str, change: _Change) -> Message:
    path = f"{around}{message.name}"

    def field(inner: Field) -> Field:
        return replace(inner, options=change(Entity(f"{path}.{inner.name}", EntityType.FIELD), inner.options))

    return replace(
        message,
        options=change(Entity(path, EntityType.RECORD), message.options),
        fields=tuple(map(field, message.fields)),
        oneofs=tuple(replace(oneof, fields=tuple(map(field, oneof.fields))) for oneof in message.oneofs),
        types=tuple(
            _message(definition, f"{path}.", change) if isinstance(definition, Message) else definition
            for definition in message.types
        ),
    )


def _tags(entity: Entity, options: _Options) -> list[str]:
    return [tag for option in options if _is_meta(entity, option) for tag in _in_option(option)]


def _is_meta(entity: Entity, option: Option) -> bool:
    return option.custom and option.name.removeprefix(".") == _META[entity.type]


def _in_option(option: Option) -> Iterator[str]:
    if option.path == (_TAGS,):
        yield from _strings(option.value)
    elif not option.path and isinstance(option.value, MapValue):
        for name, value in option.value.entries:
            if name == _TAGS:
                yield from _strings(value)


def _strings(value: Value) -> Iterator[str]:
    for item in value.items if isinstance(value, ListValue) else (value,):
        if isinstance(item, Scalar) and item.kind is Kind.STRING:
            yield item.text


def _with_tags(entity: Entity, options: _Options, tags: list[str]) -> _Options:
    """Return the options with exactly these tags; keep the other metadata."""
    kept = [option for option in options if not (_is_meta(entity, option) and option.path == (_TAGS,))]
    value = ListValue(tuple(Scalar(Kind.STRING, tag) for tag in tags))
    entry = ((_TAGS, value),) if tags else ()
    for at, option in enumerate(kept):
        if _is_meta(entity, option) and not option.path and isinstance(option.value, MapValue):
            others = tuple((name, item) for name, item in option.value.entries if name != _TAGS)
            meta = replace(option, value=MapValue(others + entry))
            return (*kept[:at], *([meta] if others or entry else []), *kept[at + 1 :])
    return (*kept, *([Option(_META[entity.type], MapValue(entry), custom=True)] if tags else []))
