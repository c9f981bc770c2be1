"""Lines of NAME=VALUE: the settings of librdkafka in a file, and credentials.

    bootstrap.servers=broker.example:9092
    # empty lines, and lines that begin like this one, do not count
    sasl.password=secret

Rules of this file: text in, settings out. No message shows a value: it may be a secret.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["PropertiesRefused", "properties_of", "read_properties"]

_LARGEST: Final = 1 << 20


class PropertiesRefused(ValueError):
    """A text that is not lines of NAME=VALUE; the message says where."""


def properties_of(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the settings of a text: the number of the line, the name and the value, without spaces around them.

    Args:
        text: the text.

    Raises:
        PropertiesRefused: If a line is not NAME=VALUE.
    """
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if name.startswith("#") or not (name or equals):
            continue
        if not name or not equals:
            raise PropertiesRefused(f"line {number}: expected NAME=VALUE")
        yield number, name, value


def read_properties(file: Path) -> dict[str, str]:
    """Return the settings in a file; the last one of a name counts.

    Args:
        file: the file, UTF-8 of at most a mebibyte.

    Raises:
        PropertiesRefused: If the file cannot be read, or is not lines of NAME=VALUE; the message names it.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except OSError as error:
        raise PropertiesRefused(f"{file} cannot be read: {error.strerror or error}") from None
    if len(content) > _LARGEST:
        raise PropertiesRefused(f"{file} is larger than {_LARGEST:,} bytes; expected one NAME=VALUE per line")
    try:
        return {name: value for _, name, value in properties_of(content.decode("utf-8-sig"))}
    except UnicodeDecodeError as error:
        raise PropertiesRefused(f"{file} cannot be read as text: byte {error.start} is not UTF-8") from None
    except PropertiesRefused as error:
        raise PropertiesRefused(f"{file}, {error}") from None
