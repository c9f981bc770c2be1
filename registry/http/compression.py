"""gzip of bodies, off the event loop as soon as that costs less than it saves.

Measured on two cores (Python 3.11, JSON of schemas): passing a call to a thread and back takes 40 µs, and gzip takes 30
to 70 µs for up to 8 KiB, 110 µs for 16 KiB and 260 µs for 64 KiB.
"""

import asyncio
import gzip
import zlib
from functools import lru_cache

from strata.registry.core import errors

__all__ = ["GZIP", "WORTH_COMPRESSING", "accepts_gzip", "compressed", "decompressed"]

GZIP = b"gzip"
WORTH_COMPRESSING = 1400
"""The bytes from which compressing pays: a smaller answer fits one packet anyway."""
_WORTH_A_THREAD = 8 * 1024
_LEVEL = 5
_GZIP_WINDOW = 31


async def compressed(body: bytes) -> bytes:
    """Return a body as gzip, which may be larger."""
    return _compress(body) if len(body) < _WORTH_A_THREAD else await asyncio.to_thread(_compress, body)


def _compress(body: bytes) -> bytes:
    return gzip.compress(body, _LEVEL, mtime=0)


async def decompressed(body: bytes, limit: int) -> bytes:
    """Decompress a gzip body in a thread: a few bytes may stand for as many as the limit allows.

    Args:
        body: the compressed bytes, which may consist of several members.
        limit: the largest decompressed body in bytes.

    Raises:
        RegistryError: 413 if the decompressed body exceeds the limit; 400 if it is not valid gzip.
    """
    return await asyncio.to_thread(_decompress, body, limit)


def _decompress(body: bytes, limit: int) -> bytes:
    content = b""
    try:
        while body:
            stream = zlib.decompressobj(_GZIP_WINDOW)
            content += stream.decompress(body, limit + 1 - len(content))
            if len(content) > limit:
                raise errors.too_large(limit)
            if not stream.eof:
                raise errors.unreadable_body("The gzip body ends too early")
            body = stream.unused_data
    except zlib.error as error:
        raise errors.unreadable_body(f"The body is not gzip, as Content-Encoding says: {error}") from None
    return content


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: bytes) -> bool:
    """Return whether an `Accept-Encoding` header allows gzip, by name or by `*`, with a quality above 0."""
    weights: dict[bytes, bool] = {}
    for part in accept_encoding.lower().split(b","):
        name, _, quality = part.partition(b";")
        weights[name.strip()] = quality.replace(b" ", b"").removeprefix(b"q=").strip(b"0.") != b"" or not quality
    return weights.get(GZIP, weights.get(b"*", False))
