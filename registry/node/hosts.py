"""Host names: the name in a `Host` header, and which names and addresses are those of loopback. Pure."""

from ipaddress import ip_address

__all__ = ["ANY", "host_and_port", "host_name", "is_loopback"]

ANY = "*"
"""The setting that allows every host or origin."""


def host_name(host: str) -> str:
    """Return the name or address in a `Host` header or a URL's authority, without its port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name if name.count(":") > 1 else name.partition(":")[0].rstrip(".")


def is_loopback(name: str) -> bool:
    """Return whether a host name or address is a loopback one."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def host_and_port(value: str) -> str:
    """Return an address to listen on, unchanged.

    Raises:
        ValueError: if it is not HOST:PORT.
    """
    host, colon, port = value.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError("expected HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:8081 or [::1]:8081")
    return value
