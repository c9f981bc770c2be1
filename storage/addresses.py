"""Addresses of logs: display without passwords, and a quick check whether anything listens, with the reason if not.

Clients of databases and brokers retry for a long time and then report only a timeout.
"""

import queue
import re
import socket
import threading
import time
from collections.abc import Sequence

__all__ = ["broker_addresses", "why_unreachable", "without_password"]

_PAUSE_S = 0.25
_MOMENT_S = 0.5  # for answers that are on their way when the time is up, since this process may have paused
_BROKER_PORT = 9092
# As far as the last @: a password may hold one, and a slash.
_USER = re.compile(r"(?<=://)([^:/?@]*):.*@")
_PARAMETER = re.compile(r"(?<=[?&])((?:ssl)?password=)[^&]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """Return a log's URL with its passwords replaced by `***`; it need not be well-formed."""
    return _PARAMETER.sub(r"\1***", _USER.sub(r"\1:***@", url))


def broker_addresses(bootstrap: str, default_port: int = _BROKER_PORT) -> list[tuple[str, int]]:
    """Split a comma-separated list of servers into hosts and ports.

    Args:
        bootstrap: Servers as `HOST[:PORT]` or `[IPV6]:PORT`, each optionally after a protocol (`PLAINTEXT://`).
        default_port: The port of a server that names none.
    """
    brokers = []
    for server in bootstrap.split(","):
        name = server.strip().rpartition("://")[2]
        host, _, port = name.rpartition(":")
        brokers.append((host.strip("[]"), int(port)) if port.isdecimal() and host else (name.strip("[]"), default_port))
    return brokers


def why_unreachable(addresses: Sequence[tuple[str, int]], patience_s: float) -> str | None:
    """Return why no address accepts a connection, or None if one does or if the check remains undecided.

    A name that cannot be resolved and a refused connection are retried, because the service may be starting.

    Args:
        addresses: Hosts and ports.
        patience_s: How long to retry, in seconds.
    """
    deadline = time.monotonic() + patience_s
    reasons = None
    while True:
        try:
            reasons = _tried(addresses, deadline)
        except queue.Empty:
            return reasons  # those of the previous attempt
        if reasons is None or time.monotonic() + _PAUSE_S > deadline:
            return reasons
        time.sleep(_PAUSE_S)


def _tried(addresses: Sequence[tuple[str, int]], deadline: float) -> str | None:
    """Try each address once.

    Raises:
        queue.Empty: The time is up while an address is still being tried.
    """
    # Use threads: a name server that does not answer blocks a look-up for longer than we want to wait.
    outcomes: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    for host, port in addresses:
        threading.Thread(target=lambda h=host, p=port: outcomes.put(_reason(h, p, deadline)), daemon=True).start()
    reasons = []
    for _ in addresses:
        reason = outcomes.get(timeout=max(_MOMENT_S, deadline - time.monotonic()))
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
        return f"cannot resolve the host name {host} ({error.strerror})"
    except (OSError, UnicodeError, OverflowError) as error:
        return f"{host}:{port}: {getattr(error, 'strerror', None) or error}"
