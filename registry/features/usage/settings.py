"""The settings of `strata serve` about the usage of versions."""

from typing import Annotated

from pydantic import Field

from strata.registry.node.setting_types import Lowered, SettingGroup, Switch

__all__ = ["UsageSettings"]


class UsageSettings(SettingGroup):
    """Whether fetches are noted; each field is a flag and a variable, as in `Settings`."""

    usage: Annotated[Switch, Lowered] = Field(
        Switch.ON, description="note which versions are fetched and by whom, in memory, for /v1/usage"
    )
