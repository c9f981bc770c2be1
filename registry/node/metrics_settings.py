"""The settings of `strata serve` about what the service counts."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

from strata.registry.node.hosts import host_and_port
from strata.registry.node.setting_types import Lowered

__all__ = ["MetricsSettings", "Switch"]


class Switch(StrEnum):
    """Whether something is done."""

    ON = "on"
    OFF = "off"


def _listen(value: str | None) -> str | None:
    return None if value is None else host_and_port(value)


class MetricsSettings(BaseSettings):
    """What is counted; each field is a flag and a variable, as in `Settings`."""

    metrics: Annotated[Switch, Lowered] = Field(
        Switch.ON, description="count requests and work, and serve the numbers at /metrics"
    )
    usage: Annotated[Switch, Lowered] = Field(
        Switch.ON, description="note which versions are fetched and by whom, in memory, for /v1/usage"
    )
    metrics_listen: Annotated[str | None, AfterValidator(_listen)] = Field(
        None,
        description="address at which /metrics is served to any client instead, without credentials, as HOST:PORT  "
        "[that of the registry, for clients with DESCRIBE on the cluster]",
    )
