"""Request ids (`X-Request-ID`), which connect an answer with the log lines of every node that took part in it."""

import itertools
import re
from uuid import uuid4

__all__ = ["HEADER", "RequestIds"]

HEADER = b"x-request-id"
_USABLE = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


class RequestIds:
    """A source of ids that look like UUIDs: a random part for the process, and a counter."""

    def __init__(self) -> None:
        self._prefix = str(uuid4())[:24].encode()
        self._count = itertools.count(1)

    def next(self) -> bytes:
        """Return a new id."""
        return b"%b%012x" % (self._prefix, next(self._count))

    def choose(self, given: bytes) -> bytes:
        """Return the client's id if it is usable, else a new one."""
        return given if _USABLE.fullmatch(given) else self.next()
