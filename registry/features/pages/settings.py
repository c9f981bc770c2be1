"""The settings of `strata serve` about the web pages."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from strata.registry.node.setting_types import Lowered, SettingGroup, base_url

__all__ = ["PageSettings", "Ui"]


class Ui(StrEnum):
    """Which web pages are served."""

    OFF = "off"
    READ = "read"
    FULL = "full"


class PageSettings(SettingGroup):
    """Which pages there are, and where; each field is a flag and a variable, as in `Settings`."""

    ui: Annotated[Ui, Lowered] = Field(
        Ui.READ, description="web pages below /ui: none, pages to read, or also actions that change what is stored"
    )
    ui_url: Annotated[str | None, AfterValidator(base_url)] = Field(
        None, description="base URL by which people reach the pages, if a proxy changes it  [that of each request]"
    )
    ui_session_minutes: float = Field(
        480.0, gt=0, le=10_080, description="minutes after which a person must sign in to the pages again"
    )
