"""What a record is counted under: short texts of names, values and errors.

Rules of this file: values in, texts out; nothing is read.
"""

from typing import Final

from strata.gitops.replay.outcome import UNREADABLE, Key
from strata.serdes.errors import DecodeError, FrameError, SerdeError
from strata.serdes.framing import SchemaName

__all__ = ["NO_FIELD", "OTHER_VALUE", "key_of", "label", "shortened", "shown"]

OTHER_VALUE: Final = "another value is read"
NO_FIELD: Final = "the candidate has no such field"
_LONGEST: Final = 200


def shortened(text: str) -> str:
    """Return a text of at most 200 characters."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def shown(value: object) -> str:
    """Return a value as a text that is not too long."""
    return shortened(repr(value))


def label(name: SchemaName | None) -> str:
    """Return the name of a schema as a text; empty if a frame has none."""
    return "" if name is None else str(name)


def key_of(error: SerdeError, name: SchemaName | None) -> Key:
    """Return what a record that cannot be read is counted under.

    Args:
        error: why it cannot be read.
        name: the name of the schema in its frame.
    """
    if isinstance(error, DecodeError):
        return Key(UNREADABLE, error.path, shortened(f"{error.reason}: {error.detail}"), label(name))
    return Key(UNREADABLE, "", shortened(error.reason if isinstance(error, FrameError) else str(error)), label(name))
