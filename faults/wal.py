"""Damage to a SQLite write-ahead log as a power cut leaves it: the last write is partly there.

SQLite with synchronous=FULL forces a commit's frames to disk before it acknowledges the commit. So on an honest disk,
no damage is possible before the end of the last commit, and everything after it may be damaged. The torn write goes
where the next frame would have gone: after the last frame with the salts of the file's header (frames with other salts
are leftovers of an earlier round).
"""

import random
import struct
from pathlib import Path

__all__ = ["next_frame", "tear"]

_HEADER = 32
_FRAME_HEADER = 24
_SALTS = slice(16, 24)
_FRAME_SALTS = slice(8, 16)


def next_frame(content: bytes) -> int:
    """Return the position after the last frame of the file's current round."""
    if len(content) < _HEADER:
        return len(content)
    (page_size,) = struct.unpack(">I", content[8:12])
    salts, place = content[_SALTS], _HEADER
    while content[place:][:_FRAME_HEADER][_FRAME_SALTS] == salts:
        place += _FRAME_HEADER + page_size
    return min(place, len(content))


def tear(database: Path, rng: random.Random) -> int:
    """Append a torn frame to the write-ahead log of a database that no process has open; return its length in bytes."""
    log = database.with_name(f"{database.name}-wal")
    if not log.exists() or log.stat().st_size < _HEADER:
        return 0
    content = log.read_bytes()
    place = next_frame(content)
    (page_size,) = struct.unpack(">I", content[8:12])
    # A commit frame: page number, number of pages, the right salts, wrong checksums, part of a page.
    head = struct.pack(">II", rng.randint(1, 4), rng.randint(1, 9)) + content[_SALTS] + rng.randbytes(8)
    torn = head + rng.randbytes(rng.randint(1, page_size))
    with log.open("r+b") as file:
        file.seek(place)
        file.write(torn)
    return len(torn)
