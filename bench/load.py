"""A load generator for keep-alive HTTP/1.1 on loopback, light enough that the server is the bottleneck.

All answers to one request have the same length. So after the first one, an answer is complete when that many bytes have
arrived, and the loop needs no parsing. It runs in a separate process, for a limited time.
"""

import asyncio
import sys
import time
from dataclasses import dataclass
from functools import partial
from statistics import quantiles
from typing import Any

import uvloop

__all__ = ["Load", "main", "measure"]


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a run of requests."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        """The answers per second."""
        return self.requests / self.seconds


class _Client(asyncio.Protocol):
    """One connection that sends the next request when the answer to the last one is complete."""

    def __init__(self, request: bytes, latencies: list[float]) -> None:
        self._request = request
        self._latencies = latencies
        self._length = 0
        self._received = 0
        self._first = b""
        self._sent_at = 0.0
        self.stopped = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._send()

    def _send(self) -> None:
        self._received = 0
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._length:
            self._first += data
            self._length = _answer_length(self._first)
            self._received = len(self._first) - len(data)
        self._received += len(data)
        if self._length and self._received >= self._length:
            self._latencies.append(time.perf_counter() - self._sent_at)
            if not self.stopped:
                self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.stopped:
            sys.exit(f"the server closed a connection: {exc}")


def _answer_length(start: bytes) -> int:
    head, end, _ = start.partition(b"\r\n\r\n")
    if not end:
        return 0
    if not head.startswith(b"HTTP/1.1 200"):
        sys.exit(f"the server answered {head.splitlines()[0].decode()}")
    length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
    return len(head) + len(end) + int(length.split(b":")[1])


def _same(client: _Client) -> _Client:
    return client


async def _run(port: int, path: str, connections: int, seconds: float, credentials: str) -> Load:
    more = f"Authorization: {credentials}\r\n" if credentials else ""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n{more}\r\n".encode()
    latencies: list[float] = []
    clients = [_Client(request, latencies) for _ in range(connections)]
    loop = asyncio.get_running_loop()
    for client in clients:
        await loop.create_connection(partial(_same, client), "127.0.0.1", port)
    await asyncio.sleep(seconds / 4)  # warm-up
    latencies.clear()
    started = time.perf_counter()
    await asyncio.sleep(seconds)
    elapsed = time.perf_counter() - started
    taken = list(latencies)
    for client in clients:
        client.stopped = True
    cuts = quantiles(taken, n=100)
    return Load(len(taken), elapsed, cuts[49] * 1000, cuts[98] * 1000)


def measure(port: int, path: str, connections: int, seconds: float, credentials: str = "") -> Load:
    """Measure a server with GET requests.

    Args:
        port: the loopback port of the server.
        path: the path to request.
        connections: the number of connections, each with one request at a time.
        seconds: the duration, after a warm-up of a quarter of it.
        credentials: the value of `Authorization`; empty for none.
    """
    return uvloop.run(_run(port, path, connections, seconds, credentials))


def main() -> None:
    """Run as a process with the arguments PORT PATH CONNECTIONS SECONDS [CREDENTIALS]; print four numbers."""
    port, path, connections, seconds, *credentials = sys.argv[1:]
    load = measure(int(port), path, int(connections), float(seconds), *credentials)
    print(load.requests, load.seconds, load.p50_ms, load.p99_ms)


if __name__ == "__main__":
    main()
