"""The settings of `strata serve` for exporters, which copy subjects to other registries."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from strata.registry.node.setting_types import SettingGroup, secret_file

__all__ = ["ExporterSettings"]


class ExporterSettings(SettingGroup):
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
