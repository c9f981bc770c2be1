"""The choice between the JVM and Python workers, for `decode` and `encode`.

Rules of this file: no values and no schemas; the log says once why a path was chosen.
"""

import logging
from enum import StrEnum
from functools import cache
from typing import Literal

from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import active_session
from strata.spark_udfs.decoding.jvm_function import MISSING, NotInstalled, is_installed, is_installed_otherwise

__all__ = ["PathOption", "require_jvm", "runs_in_jvm"]

_log = logging.getLogger("strata.spark_udfs")


class PathOption(StrEnum):
    """The paths that a caller can ask for."""

    AUTO = "auto"
    JVM = "jvm"
    PYTHON = "python"


def require_jvm(registry: ClientSettings) -> None:
    """Raise NotInstalled unless `install` was called for a registry in this session."""
    if not is_installed(active_session(), registry):
        raise NotInstalled(MISSING)


def runs_in_jvm(
    option: PathOption,
    registry: ClientSettings,
    call: Literal["decode", "encode"],
    *,
    unsupported: str,
    workers: str = "Python workers",
) -> bool:
    """Return whether the path asked for, or the fastest one that the session supports, is the JVM's.

    Args:
        option: what the caller asked for.
        registry: the registry of the call.
        call: the call, for errors and the log.
        unsupported: what of the schema only Python workers support; empty if the JVM supports it all.
        workers: the other path, for the log.

    Raises:
        NotInstalled: If the JVM path is asked for, and `install` was not called for this registry.
        ValueError: If the JVM path is asked for, and it does not support the schema.
    """
    doing = f"{call[:-1]}ing"
    if option is PathOption.JVM and unsupported:
        raise ValueError(f"path='jvm' does not {call} {unsupported}")
    session = active_session()
    if option is not PathOption.PYTHON and not unsupported and is_installed(session, registry):
        _log_once(logging.INFO, f"{doing} in Spark's executors: install was called for this registry")
        return True
    if option is PathOption.JVM:
        raise NotInstalled(MISSING)
    reason = "install was not called with these registry settings in this session"
    if option is PathOption.PYTHON:
        reason = "path='python'"
    elif unsupported:
        reason = f"the JVM path does not {call} {unsupported}"
    elif is_installed_otherwise(session):
        _log_once(logging.WARNING, f"{reason}, but with others: pass the same settings to install and {call}")
    _log_once(logging.INFO, f"{doing} in {workers}: {reason}")
    return False


@cache
def _log_once(level: int, message: str) -> None:
    _log.log(level, message)
