"""Sessions of botocore that share what they read of AWS's services, and moto's fakes for them.

Each session would parse megabytes of JSON again, which takes longer than the calls of a test.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

__all__ = ["fake_aws", "shared_descriptions"]


@cache
def _loader(_path: str | None) -> Any:
    from botocore.loaders import create_loader  # here and below, for the imports take long

    return create_loader()


@contextmanager
def shared_descriptions() -> Iterator[None]:
    """Let all sessions of this process read the descriptions once, until the block ends."""
    from botocore import session

    with patch.object(session, "create_loader", _loader):
        yield


@contextmanager
def fake_aws() -> Iterator[None]:
    """Fake the services of AWS in this process, until the block ends."""
    from moto import mock_aws

    with shared_descriptions(), mock_aws():
        yield
