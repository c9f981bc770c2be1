"""The settings of `strata serve` that make it a standby: a copy of another registry."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from strata.registry.node.setting_types import ExistingFile, SettingGroup
from strata.storage.open_log import check_url, is_memory

__all__ = ["FollowSettings"]

_SERVICE = ("http://", "https://")
_LOG_PAUSE_S, _SERVICE_PAUSE_S = 1.0, 10.0


def _source(value: str | None) -> str | None:
    if value is None or value.lower().startswith(_SERVICE):
        return value
    check_url(value)
    if is_memory(value):
        raise ValueError("a log in memory belongs to its process; expected the URL of a service or of a shared log")
    return value


class FollowSettings(SettingGroup):
    """What a standby copies; each field is a flag and a variable, as in `Settings`."""

    follow: Annotated[str | None, AfterValidator(_source)] = Field(
        None,
        description="registry to copy, as a standby that serves reads and refuses writes: the URL of a service "
        "(Strata, Confluent, Karapace, …) or of a log (sqlite, postgresql or kafka)  [none: this is a writer]",
    )
    follow_subjects: str | None = Field(
        None,
        description="comma-separated subjects to copy, with what they refer to; a trailing * matches any rest  [all]",
    )
    follow_contexts: str | None = Field(None, description="comma-separated contexts to copy, such as .staging  [all]")
    follow_context: str | None = Field(
        None,
        description="context that receives the copy: the source's default context becomes it, and its context .a "
        "becomes .CONTEXT.a  [the same contexts as at the source]",
    )
    follow_auth_file: ExistingFile = Field(
        None,
        description="file for a service that is copied: USER:PASSWORD, a bearer token, or settings such as those of "
        "OAuth and a proxy, one NAME=VALUE per line",
    )
    follow_ca_file: ExistingFile = Field(
        None, description="CA certificates to trust for a service that is copied over https (PEM)  [the system's]"
    )
    follow_kafka_config: ExistingFile = Field(
        None, description="file with librdkafka settings for a Kafka log that is copied, one NAME=VALUE per line"
    )
    follow_seconds: float | None = Field(
        None,
        gt=0,
        le=3600,
        description="seconds between two reads of the source  [1 for a log, 10 for a service]",
    )
    follow_full_seconds: float = Field(
        300.0,
        gt=0,
        le=86_400,
        description="seconds after which the settings, keys and associations of a service are read again",
    )
    follow_rate: float | None = Field(
        None,
        gt=0,
        le=10_000,
        description="maximum number of requests per second to a service that is copied  [as many as it answers]",
    )

    @model_validator(mode="after")
    def _check_follow(self) -> Self:
        follow_settings = [name for name in self.model_fields_set if name.startswith("follow_")]
        if self.follow is None and follow_settings:
            raise ValueError(f"--{min(follow_settings).replace('_', '-')} needs --follow")
        return self

    @property
    def follows_service(self) -> bool:
        """Whether the source is a service, not a log."""
        return (self.follow or "").lower().startswith(_SERVICE)

    @property
    def follow_pause_s(self) -> float:
        """The seconds between two reads of the source."""
        return self.follow_seconds or (_SERVICE_PAUSE_S if self.follows_service else _LOG_PAUSE_S)
