"""The log line of a signal that ends the service."""

import logging
import signal

__all__ = ["log_signal"]

_log = logging.getLogger("strata")


def log_signal(number: int, seconds: float) -> None:
    """Log a signal.

    Args:
        number: the signal.
        seconds: how long the node goes on serving.
    """
    _log.info(
        "received %(signal)s: serving for another %(seconds).1f s, then stopping",
        {"event": "signal", "signal": signal.Signals(number).name, "seconds": round(seconds, 1)},
    )
