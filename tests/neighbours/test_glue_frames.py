"""AWS's own serializer makes the frames that the quick tests read."""

import zlib

import pytest

from harness.glue_frames import VECTORS, framed_by_aws

HEADER = 18


def opened(frame):
    """Return the header and the inflated rest, since another zlib may compress in another way."""
    rest = frame[HEADER:]
    return frame[:HEADER], zlib.decompress(rest) if frame[1] else rest


@pytest.mark.slow
def test_the_vectors_are_those_of_aws():
    """The frames of the table are what schema-registry-serde writes, in all formats, compressed and not."""
    frames = framed_by_aws(VECTORS)

    assert [(one.name, *opened(one.frame)) for one in VECTORS] == [
        (one.name, *opened(frame)) for one, frame in zip(VECTORS, frames, strict=True)
    ]
