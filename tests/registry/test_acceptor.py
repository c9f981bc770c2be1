"""What an acceptor does when another process at its socket ends."""

import asyncio
import socket
from contextlib import closing

import pytest

from strata.registry.http.server import Acceptor

pytestmark = pytest.mark.anyio


async def test_another_process_shuts_the_socket_down(caplog: pytest.LogCaptureFixture) -> None:
    """When all processes at a socket end, the first one shuts it down; the others say nothing and try nothing again."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener, closing(listener.dup()) as shared:
        first, second = (
            Acceptor(at, asyncio.Protocol, connections=(), limit=10, leaves=lambda: True) for at in (listener, shared)
        )
        first.close()
        await asyncio.sleep(0.3)  # longer than an acceptor waits before it tries again
        second.close()
    await asyncio.sleep(0.3)

    assert [] == [record.getMessage() for record in caplog.records]
