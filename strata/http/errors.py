"""Failures of the client that are not an answer; callers turn them into their own errors."""

import re
from typing import Final

from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProxyError

from strata.http.tls import certificate_fault

__all__ = ["AnswerTooLong", "AnswerTooSlow", "HttpFailure", "NoAnswer", "TokenRefused", "TokenUnavailable"]

_NEVER_SENT = (NewConnectionError, ConnectTimeoutError, ProxyError)
_REASON_LENGTH = 300
# What urllib3 and the system put before the words for people.
_MACHINERY: Final = re.compile(
    r"^(?:<[^>]*>: |HTTPS?Connection(?:Pool)?\(.*?\): )?"
    r"(?:Failed to establish a new connection: )?(?:\[Errno -?\d+\] )?"
)


class HttpFailure(Exception):
    """No usable answer; the message says why."""


class NoAnswer(HttpFailure):
    """An address gave no whole answer.

    Attributes:
        base: the address.
        error: the error of urllib3.
        fault: why the certificate of the address is not accepted; None if that is not the reason.
        is_open: whether the request was sent, is not repeated, and may have been carried out.
    """

    def __init__(self, base: str, error: HTTPError, *, is_open: bool = False) -> None:
        self.base, self.error, self.fault = base, error, certificate_fault(error)
        self.is_open = is_open and self.fault is None and not isinstance(error, _NEVER_SENT)
        super().__init__(f"{base} does not answer: {self.reason}")

    @property
    def reason(self) -> str:
        """The error in words, without what only programmers read, as one line of bounded length."""
        said = str(getattr(self.error, "reason", None) or self.error)
        return (_MACHINERY.sub("", said) or type(self.error).__name__)[:_REASON_LENGTH]


class AnswerTooLong(HttpFailure):
    """An answer has more bytes, after decompression, than the settings allow."""


class AnswerTooSlow(HttpFailure):
    """An answer takes more time as a whole than the settings allow."""


class TokenRefused(HttpFailure):
    """The OAuth token endpoint rejected the request, or its answer has no usable token."""


class TokenUnavailable(HttpFailure):
    """The OAuth token endpoint does not answer; a later request may succeed."""
