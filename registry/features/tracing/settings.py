"""The settings of `strata serve` about traces, which the variables of OpenTelemetry switch on."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from strata.registry.node.setting_types import Lowered, SettingGroup

__all__ = ["TraceSettings", "TraceSubjects"]


class TraceSubjects(StrEnum):
    """How spans name a subject."""

    HASH = "hash"
    NAME = "name"
    NONE = "none"


class TraceSettings(SettingGroup):
    """What spans say; each field is a flag and a variable, as in `Settings`."""

    trace_subjects: Annotated[TraceSubjects, Lowered] = Field(
        TraceSubjects.HASH, description="how the spans of traces, which OTEL_… variables switch on, name subjects"
    )
