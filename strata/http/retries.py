"""Which requests are sent again after an error, and how long to wait before.

Deleting twice leaves the same state as deleting once, but the second answer is another one: it says that there is
nothing to delete, or deletes for good what the first request deleted softly. So a DELETE is repeated only if the
registry cannot have carried it out: it was never sent, or a status says so.
"""

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

__all__ = ["NOT_CARRIED_OUT", "RETRIED", "backoff", "repeats_after_silence", "repeats_after_status", "retry_after"]

RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses that a later attempt may not get again."""

NOT_CARRIED_OUT = frozenset({429, 503})
"""Those of them by which a registry says that it did nothing."""


def repeats_after_status(method: str, status: int) -> bool:
    """Return whether to repeat a request that was answered with a status."""
    return status in (NOT_CARRIED_OUT if method == "DELETE" else RETRIED)


def repeats_after_silence(method: str) -> bool:
    """Return whether to repeat a request that was sent and got no whole answer."""
    return method != "DELETE"


def backoff(first: float, most: float, repetition: int, wished: float | None) -> float:
    """Return the seconds to wait before a retry: exponential with jitter.

    Args:
        first: seconds before the first retry; doubled for each further one.
        most: seconds of the longest wait, whatever the server asks for.
        repetition: the number of the retry, from 1.
        wished: the seconds that the server asked for.
    """
    ceiling: float = min(most, first * 2 ** min(repetition - 1, 64))
    jittered = ceiling * (0.5 + random.random() / 2)  # noqa: S311 - spreads load, keeps no secret
    return max(jittered, min(wished or 0.0, most))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the `Retry-After` header (RFC 9110, section 10.2.3); None without a usable one."""
    value = headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
