"""The inline tags of a schema text (`confluent:tags`): read, add and remove them.

An entity is a record or a field, identified by a path of names separated by dots; a leading dot is ignored. Each
format's module defines the paths of its entities.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from strata.compat.avro import json_text as avro_json
from strata.compat.avro import tags as avro_tags
from strata.compat.entities import TAGS, Entity, EntityType, Tags, changed
from strata.compat.json_schema import json_text
from strata.compat.json_schema import tags as json_tags
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.protobuf import tags as protobuf_tags
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.schema import ParsedSchema, SchemaFormat, SchemaParseError

__all__ = ["Entity", "EntityType", "Tags", "retagged", "tags_of"]

_Nodes = Iterable[tuple[Entity, dict[str, object]]]


def tags_of(schema: ParsedSchema) -> Tags:
    """Return the tags of a schema's tagged entities, in the order of its text."""
    if isinstance(schema, ProtobufSchema):
        return protobuf_tags.tags_of(schema.file)
    read, nodes, _ = _JSON_FORMATS[schema.format]
    tagged = ((entity, _tags(node)) for entity, node in nodes(read(schema.canonical)))
    return {entity: tags for entity, tags in tagged if tags}


def retagged(schema: ParsedSchema, add: Tags, remove: Tags, *, must_exist: bool = True) -> str:
    """Return the text of a schema after tags were added to its entities, and then others removed.

    Args:
        schema: The schema.
        add: The tags to add, by entity.
        remove: The tags to remove, by entity.
        must_exist: Refuse entities that the schema does not have.

    Raises:
        SchemaParseError: An entity must exist but does not.
    """
    missing = {*add, *remove}
    if isinstance(schema, ProtobufSchema):
        text, seen = protobuf_tags.retagged(schema.file, add, remove)
    else:
        text, seen = _retagged_json(schema, add, remove)
    missing -= seen
    if missing and must_exist:
        entity = min(missing)
        raise SchemaParseError(f"The schema has no {entity.type.value.removeprefix('sr_')} {entity.path!r} to tag")
    return text


def _retagged_json(schema: ParsedSchema, add: Tags, remove: Tags) -> tuple[str, set[Entity]]:
    read, nodes, write = _JSON_FORMATS[schema.format]
    tree = read(schema.canonical)
    seen = set()
    for entity, node in list(nodes(tree)):
        seen.add(entity)
        if entity not in add and entity not in remove:
            continue
        tags = changed(_tags(node), add.get(entity, ()), remove.get(entity, ()))
        node.pop(TAGS, None) if not tags else node.update({TAGS: tags})
    return write(tree), seen


def _tags(node: Mapping[str, object]) -> list[str]:
    tags = node.get(TAGS)
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _json_nodes(tree: object) -> Iterator[tuple[Entity, dict[str, object]]]:
    return json_tags.entities(tree, DEFAULT_LIMITS)


# Functions that read the text, find its entities and print it.
_JSON_FORMATS: Final[
    Mapping[SchemaFormat, tuple[Callable[[str], object], Callable[[object], _Nodes], Callable[[Any], str]]]
] = {
    SchemaFormat.AVRO: (
        lambda text: avro_json.read_json(text, DEFAULT_LIMITS),
        avro_tags.entities,
        avro_json.write_json,
    ),
    SchemaFormat.JSON: (lambda text: json_text.read_json(text, DEFAULT_LIMITS), _json_nodes, json_text.write_json),
}
