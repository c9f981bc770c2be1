"""The settings of `strata serve` about the audit."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from strata.registry.node.setting_types import Lowered, SettingGroup

__all__ = ["AuditFailure", "AuditSettings"]


class AuditFailure(StrEnum):
    """What happens while the audit cannot be written."""

    REFUSE = "refuse"
    DROP = "drop"


_SYSLOG = re.compile(r"syslog:(/.+|(?:[^/:]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5}))")
_LAST_PORT = 65535


def _place(value: str | None) -> str | None:
    if value and value != "stdout" and not (_is_syslog(value) or _is_file(value)):
        raise ValueError("expected a file in a folder that exists, stdout, syslog:/dev/log or syslog:HOST:PORT")
    return value


def _is_syslog(value: str) -> bool:
    match = _SYSLOG.fullmatch(value)
    return match is not None and (match[2] is None or 0 < int(match[2]) <= _LAST_PORT)


def _is_file(value: str) -> bool:
    return not value.startswith("syslog:") and Path(value).parent.is_dir() and not Path(value).is_dir()


class AuditSettings(SettingGroup):
    """What is noted of changes and refusals; each field is a flag and a variable, as in `Settings`."""

    audit: Annotated[str | None, AfterValidator(_place)] = Field(
        None,
        description="where to note changes and refusals as JSON lines: a file, stdout, syslog:/dev/log or "
        "syslog:HOST:PORT  [nowhere]",
    )
    audit_reads: bool = Field(False, description="note reads too (reduces throughput)")
    audit_on_failure: Annotated[AuditFailure, Lowered] = Field(
        AuditFailure.REFUSE, description="while the audit cannot be written: `refuse` changes, or `drop` its lines"
    )
