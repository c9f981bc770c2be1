"""The forms in which `format=` returns a stored schema."""

import base64
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final, TypeVar

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf.printer import print_file
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.to_descriptor import file_to_descriptor

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["ignore_extensions", "serialized"]


def serialized(schema: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the descriptor of the file in base64, for `format=serialized`.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    descriptor = file_to_descriptor(schema.file, schema.names, limits)
    return base64.b64encode(descriptor.SerializeToString(deterministic=True)).decode()


def ignore_extensions(schema: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the text without custom options, `extend` blocks and extension ranges, for `format=ignore_extensions`.

    Raises:
        SchemaParseError: The text would be too long.
        OutOfTime: The time of `limits` ran out.
    """
    return print_file(_without_custom(schema.file), limits)


_PLAIN: Final = (str, int, tuple)  # imports, tags and ranges

_PartT = TypeVar("_PartT", bound="DataclassInstance")


def _without_custom(part: _PartT) -> _PartT:
    """Return a part of a file, and all parts in it, without custom options, `extend` blocks and extension ranges."""
    changes: dict[str, object] = {}
    for attribute in fields(part):
        values = getattr(part, attribute.name)
        if attribute.name in ("extends", "extensions"):
            changes[attribute.name] = ()
        elif attribute.name == "options":
            changes[attribute.name] = tuple(option for option in values if not option.custom)
        elif values and isinstance(values, tuple):
            changes[attribute.name] = tuple(
                value if isinstance(value, _PLAIN) else _without_custom(value) for value in values
            )
    return replace(part, **changes)
