"""The settings of `strata serve` about metrics."""

from typing import Annotated

from pydantic import AfterValidator, Field

from strata.registry.node.hosts import host_and_port
from strata.registry.node.setting_types import Lowered, SettingGroup, Switch

__all__ = ["MetricsSettings"]


def _listen(value: str | None) -> str | None:
    return None if value is None else host_and_port(value)


class MetricsSettings(SettingGroup):
    """What is counted; each field is a flag and a variable, as in `Settings`."""

    metrics: Annotated[Switch, Lowered] = Field(
        Switch.ON, description="count requests and work, and serve the numbers at /metrics"
    )
    metrics_listen: Annotated[str | None, AfterValidator(_listen)] = Field(
        None,
        description="address at which /metrics is served to any client instead, without credentials, as HOST:PORT  "
        "[that of the registry, for clients with DESCRIBE on the cluster]",
    )
