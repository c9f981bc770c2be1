"""Why the certificate of the other side is not accepted."""

import ssl

from urllib3.exceptions import SSLError

__all__ = ["certificate_fault"]


def certificate_fault(error: Exception) -> str | None:
    """Return why the certificate of the other side is not accepted; None if that is not the reason of an error.

    Args:
        error: the error of urllib3, or the error after its retries, which holds the last one as its reason.
    """
    reason = getattr(error, "reason", error)
    cause = reason.args[0] if isinstance(reason, SSLError) and reason.args else None
    return cause.verify_message.rstrip(".") if isinstance(cause, ssl.SSLCertVerificationError) else None
