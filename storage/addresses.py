"""Find out within seconds whether anything listens at some addresses, and say why not.

Clients of databases and brokers go on trying for long, and then say only that they had no answer.
"""

import queue
import socket
import threading
import time
from collections.abc import Sequence

__all__ = ["broker_addresses", "why_unreachable"]

_PAUSE_S = 0.25
_BROKER_PORT = 9092


def broker_addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Split a list of brokers, each `HOST[:PORT]` or `[IPV6]:PORT`, perhaps with a protocol before it."""
    found = []
    for server in bootstrap.split(","):
        name = server.strip().rpartition("://")[2]
        host, _, port = name.rpartition(":")
        found.append((host.strip("[]"), int(port)) if port.isdecimal() and host else (name.strip("[]"), _BROKER_PORT))
    return found


def why_unreachable(addresses: Sequence[tuple[str, int]], patience_s: float) -> str | None:
    """Return why no address takes a connection, or None when one does or leaves the question open.

    A name that is not found and a refused connection are tried again until the time is over: what is started at the
    same moment may need it.
    """
    deadline = time.monotonic() + patience_s
    while True:
        reasons = _tried(addresses, deadline)
        if reasons is None or time.monotonic() + _PAUSE_S > deadline:
            return reasons
        time.sleep(_PAUSE_S)


def _tried(addresses: Sequence[tuple[str, int]], deadline: float) -> str | None:
    # Threads, since a name server that does not answer holds up a look-up for longer than we want to wait.
    outcomes: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    for host, port in addresses:
        threading.Thread(target=lambda h=host, p=port: outcomes.put(_reason(h, p, deadline)), daemon=True).start()
    reasons = []
    for _ in addresses:
        try:
            reason = outcomes.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if reason is None:
            return None
        reasons.append(reason)
    return "; ".join(sorted(reasons))


def _reason(host: str, port: int, deadline: float) -> str | None:
    try:
        with socket.create_connection((host, port), max(0.1, deadline - time.monotonic())):
            return None
    except TimeoutError:
        return None
    except socket.gaierror as error:
        return f"the host name {host} cannot be resolved ({error.strerror})"
    except (OSError, UnicodeError, OverflowError) as error:
        return f"{host}:{port}: {getattr(error, 'strerror', None) or error}"
