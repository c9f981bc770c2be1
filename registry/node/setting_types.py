"""What several groups of settings share: types of values, and lists in a text."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

__all__ = ["ExistingFile", "Lowered", "SettingGroup", "Switch", "base_url", "listed", "secret_file"]

_LEAST_SECRET = 32


class Switch(StrEnum):
    """Whether something is done."""

    ON = "on"
    OFF = "off"


class SettingGroup(BaseModel):
    """A group of settings, which is read as a part of those of the service, and not built by itself."""

    model_config = ConfigDict(extra="ignore", frozen=True, validate_default=True, defer_build=True)


def _file(value: Path | None) -> Path | None:
    if value is not None and not value.is_file():
        raise ValueError("no such file")
    return value


ExistingFile = Annotated[Path | None, AfterValidator(_file)]
"""The path of a file, or None."""


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Lowered = BeforeValidator(_lower)
"""Lets the words of a setting be written in upper case too."""


def listed(value: str | None, separator: str = ",") -> tuple[str, ...]:
    """Return the items of a list in a text, without spaces around them and without empty ones."""
    return tuple(item.strip() for item in (value or "").split(separator) if item.strip())


def base_url(value: str | None) -> str | None:
    """Return the base URL of a service without a slash at its end."""
    if value is not None and not (value.startswith(("http://", "https://")) and _has_address(value)):
        raise ValueError("expected a URL that the other nodes can reach, such as http://10.0.0.5:8081")
    return value.rstrip("/") if value else None


def _has_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def secret_file(value: Path | None) -> Path | None:
    """Return the path of a file with a secret, which must be long enough to resist guessing."""
    try:
        if value is not None and len(value.read_bytes().strip()) < _LEAST_SECRET:
            raise ValueError(f"the file holds fewer than {_LEAST_SECRET} characters")
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from None
    return value
