"""Waiting for a registry that does not answer: how long, and what is said meanwhile.

Driver and Python workers log to `strata.spark_udfs`, which Python shows on standard error unless logging is configured;
a worker's standard error is part of the executor's log. Executors that decode in the JVM log by `strata.spark.Waits`.

Rules of this file: no schemas, no columns.
"""

import logging
import threading
import time
from dataclasses import fields, replace

from strata.serdes.client import RegistryClient
from strata.serdes.observer import Observer
from strata.serdes.settings import ClientSettings

__all__ = ["WAIT_S", "WaitLog", "open_client", "patient"]

WAIT_S = 60.0
"""For how long Spark jobs wait for a registry, unless their settings say: longer than a node takes to restart."""
_LOG_EVERY_S = 10.0
_RETRIES = next(field.default for field in fields(ClientSettings) if field.name == "retries")

_log = logging.getLogger("strata.spark_udfs")


def patient(settings: ClientSettings) -> ClientSettings:
    """Return settings that wait for the registry for a minute, unless `wait` or `retries` has been chosen.

    Args:
        settings: the settings of the caller.
    """
    if settings.wait is not None or settings.retries != _RETRIES:
        return settings
    return replace(settings, wait=WAIT_S)


def open_client(settings: ClientSettings) -> RegistryClient:
    """Return a client for the driver, which logs when it waits.

    Args:
        settings: the settings of the registry.
    """
    return RegistryClient.from_settings(settings, observer=WaitLog())


class WaitLog(Observer):
    """Logs that a request is waiting, and for what: at its first failure, and then every ten seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0.0

    def retry(self, method: str, path: str, error: Exception, seconds: float) -> None:
        """Log that a request failed and is sent again, unless that was logged a moment ago.

        Args:
            method: the HTTP method.
            path: the path of the request.
            error: why it failed.
            seconds: how long ago the first attempt began.
        """
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                return
            self._next = now + _LOG_EVERY_S
        _log.warning("waiting for the registry for %.0f s now (%s %s): %s", seconds, method, path, error)
