"""Which requests are sent again after an error.

Deleting twice leaves the same state as deleting once, but the second answer is another one: it says that there is
nothing to delete, or deletes for good what the first request deleted softly. So a DELETE is repeated only if the
registry cannot have carried it out: it was never sent, or a status says so.
"""

__all__ = ["NOT_CARRIED_OUT", "RETRIED", "repeats_after_silence", "repeats_after_status"]

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
