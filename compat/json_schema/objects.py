"""The rules for objects: required names, dependencies, content models and properties."""

from strata.compat.json_schema.comparison import Comparison
from strata.compat.json_schema.content import compare_covered, compare_removed, compare_rests, covering, is_open
from strata.compat.json_schema.findings import Findings, change_of_set, described
from strata.compat.json_schema.model import EmptyNode, ObjectNode, follow

__all__ = ["compare_objects"]


def compare_objects(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    """Compare two object schemas; add the differences to `into`."""
    _required(context, reader, writer, into)
    compare_rests(context, reader, writer, into, "PROPERTIES", "Properties")
    _dependencies(context, reader, writer, into)
    for name in {**writer.properties, **reader.properties}:
        if name not in reader.properties:
            compare_removed(context, reader, writer.properties[name], into, "PROPERTY", "properties", name)
        elif name not in writer.properties:
            _added(context, reader, writer, into, "properties", name)
        else:
            context.descend(into, reader.properties[name], writer.properties[name], "properties", name)


def _required(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    for name in reader.properties.keys() & writer.properties.keys():
        if name in reader.required and name not in writer.required:
            by_default = reader.properties[name].default is not None
            kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if by_default else "REQUIRED_ATTRIBUTE_ADDED"
            context.note(into, kind, "required", name, reader=True, writer=False)
        elif name in writer.required and name not in reader.required:
            context.note(into, "REQUIRED_ATTRIBUTE_REMOVED", "required", name, reader=False, writer=True)


def _dependencies(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    for name in reader.property_dependencies.keys() | writer.property_dependencies.keys():
        new, old = reader.property_dependencies.get(name), writer.property_dependencies.get(name)
        if new == old:
            continue
        change = "ADDED" if old is None else "REMOVED" if new is None else change_of_set(new, old)
        needs, needed = (None if names is None else sorted(names) for names in (new, old))
        context.note(into, f"DEPENDENCY_ARRAY_{change}", "dependencies", name, reader=needs, writer=needed)
    for name in reader.schema_dependencies.keys() | writer.schema_dependencies.keys():
        if name not in writer.schema_dependencies:
            demand = described(reader.schema_dependencies[name])
            context.note(into, "DEPENDENCY_SCHEMA_ADDED", "dependencies", name, reader=demand)
        elif name not in reader.schema_dependencies:
            context.note(into, "DEPENDENCY_SCHEMA_REMOVED", "dependencies", name)
        else:
            context.descend(
                into, reader.schema_dependencies[name], writer.schema_dependencies[name], "dependencies", name
            )


def _added(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings, *steps: str) -> None:
    name = steps[-1]
    new = reader.properties[name]
    is_writer_open = is_open(writer)
    if is_writer_open and isinstance(follow(new), EmptyNode):
        context.note(into, "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", *steps)
        return
    if not is_writer_open and (rest := covering(context, writer, name)) is not None:
        compare_covered(context, new, rest, into, "PROPERTY_ADDED", *steps)
    demand = "REQUIRED_PROPERTY" if name in reader.required else "OPTIONAL_PROPERTY"
    if name in reader.required and new.default is not None:
        demand += "_WITH_DEFAULT"
    place = "OPEN" if is_writer_open else "UNOPEN"
    context.note(into, f"{demand}_ADDED_TO_{place}_CONTENT_MODEL", *steps, reader=described(new))
