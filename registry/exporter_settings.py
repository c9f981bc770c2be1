"""The settings of `strata serve` for exporters, which copy subjects to other registries."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

__all__ = ["ExporterSettings", "secret_file"]

_LEAST_SECRET = 32


def secret_file(value: Path | None) -> Path | None:
    """Return the path of a file with a secret, which must be long enough to resist guessing."""
    try:
        if value is not None and len(value.read_bytes().strip()) < _LEAST_SECRET:
            raise ValueError(f"the file holds fewer than {_LEAST_SECRET} characters")
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from None
    return value


class ExporterSettings(BaseSettings):
    """How exporters run; each field is a flag and a variable, as in `Settings`."""

    exporter_secret: Annotated[Path | None, AfterValidator(secret_file)] = Field(
        None,
        description="file with a secret of 32 characters or more that all nodes share, with which the credentials of "
        "exporters are encrypted; without it, exporters cannot have any",
    )
    exporter_seconds: float = Field(
        1.0, gt=0, le=3600, description="seconds between two checks of the log for changes to export"
    )

    def read_exporter_secret(self) -> bytes | None:
        """Return the secret for the credentials of exporters; None if there is none."""
        return self.exporter_secret.read_bytes().strip() if self.exporter_secret else None
