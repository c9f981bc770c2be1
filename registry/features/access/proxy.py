"""What a reverse proxy says about its client: the user that it has authenticated, and the client's address.

Anyone can send these headers, so they count only from the networks that the settings name. A trusted proxy must set or
remove them itself, never pass on those of its client.
"""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from strata.registry.core.rights.principal import Principal
from strata.registry.features.access.names import InvalidName, check_name
from strata.registry.http.asgi import Scope

__all__ = ["NO_PROXIES", "InvalidProxyHeader", "TrustedProxies", "network_of", "parse_networks"]

_FORWARDED_FOR = b"x-forwarded-for"
_MOST_GROUPS = 1000


class InvalidProxyHeader(Exception):
    """A header of a trusted proxy that names no user; the message is for the service's own log."""


def parse_networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks of a comma-separated list such as `10.0.0.0/8,::1`.

    Raises:
        ValueError: if one of them is not a network or address.
    """
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def network_of(address: str) -> str:
    """Return what an address counts as: itself, or for IPv6 the network of 64 bits that one host has to itself."""
    return _network_of_ipv6(address) if ":" in address else address


@lru_cache(maxsize=4096)
def _network_of_ipv6(address: str) -> str:
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The proxies whose headers count.

    Attributes:
        networks: their addresses.
        user_header: the header with the user's name, in lower case; None if proxies authenticate no users.
        groups_header: the header with the groups, separated by commas, in lower case.
    """

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    user_header: bytes | None = None
    groups_header: bytes | None = None

    def address(self, scope: Scope) -> str:
        """Return the address of the client: the last one in `X-Forwarded-For` that is not a trusted proxy's.

        Without a trusted proxy it is the address of the connection; empty if there is none.
        """
        peer = _peer(scope)
        if not self._trusts(peer):
            return peer
        hops = b",".join(_values(scope, _FORWARDED_FOR)).decode("latin-1").split(",")
        for hop in reversed(hops):
            address = _plain(hop.strip())
            if not _is_address(address):
                return peer
            if not self._trusts(address):
                return address
            peer = address
        return peer

    def principal(self, scope: Scope) -> Principal | None:
        """Return the principal that a trusted proxy names; None if there is no such header from one.

        Raises:
            InvalidProxyHeader: if the header is repeated, or holds no name.
        """
        if self.user_header is None:
            return None
        users = _values(scope, self.user_header)
        if not users or not self._trusts(_peer(scope)):
            return None
        groups = b",".join(_values(scope, self.groups_header)) if self.groups_header else b""
        names = [part.strip() for part in groups.split(b",") if part.strip()]
        if len(users) > 1 or len(names) > _MOST_GROUPS:
            raise InvalidProxyHeader("the proxy's header is repeated, or names too many groups")
        try:
            user, *members = [check_name(part.decode()) for part in (users[0], *names)]
        except (InvalidName, UnicodeDecodeError) as error:
            raise InvalidProxyHeader(f"the proxy's header does not name a user: {error}") from None
        return Principal(user, frozenset(members), "proxy")

    def _trusts(self, address: str) -> bool:
        if not self.networks:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        parsed = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(parsed in network for network in self.networks)


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _plain(hop: str) -> str:
    """Return the address of a hop, which may be in brackets or have a port."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


NO_PROXIES = TrustedProxies()
"""No trusted proxies: clients connect themselves."""
