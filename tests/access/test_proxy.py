"""Headers of reverse proxies: the user and the address of the client, from trusted addresses only."""

import pytest

from strata.registry.features.access.proxy import InvalidProxyHeader, TrustedProxies, parse_networks

PROXIES = TrustedProxies(parse_networks("10.0.0.0/8, ::1"), b"x-forwarded-user", b"x-forwarded-groups")
PROXY, OTHER = "10.0.0.1", "192.0.2.1"


def scope(client, **headers):
    """Return the scope of a request with these headers, of which a list is repeated."""
    lines = [
        (name.replace("_", "-").encode(), one)
        for name, value in headers.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return {"client": client and (client, 1), "headers": lines}


# the connection's address, X-Forwarded-For, the client's address
ADDRESSES = [
    ("no proxy", OTHER, [], OTHER),
    ("an invented header", OTHER, [b"198.51.100.7"], OTHER),
    ("a proxy without the header", PROXY, [], PROXY),
    ("one hop", PROXY, [b"198.51.100.7"], "198.51.100.7"),
    ("an invented hop before", PROXY, [b"203.0.113.9, 198.51.100.7"], "198.51.100.7"),
    ("two proxies", PROXY, [b"203.0.113.9, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
    ("two headers", PROXY, [b"203.0.113.9", b"198.51.100.7"], "198.51.100.7"),
    ("proxies only", PROXY, [b"10.0.0.3,10.0.0.2"], "10.0.0.3"),
    ("no address", PROXY, [b"unknown"], PROXY),
    ("no address behind a proxy", PROXY, [b"evil, 10.0.0.2"], "10.0.0.2"),
    ("with a port", PROXY, [b"198.51.100.7:1234"], "198.51.100.7"),
    ("IPv6", "::1", [b"2001:db8::7"], "2001:db8::7"),
    ("IPv6 with a port", "::1", [b"[2001:db8::7]:1234"], "2001:db8::7"),
    ("a mapped proxy", "::ffff:10.0.0.1", [b"198.51.100.7"], "198.51.100.7"),
    ("bytes", PROXY, [b"\xff\xfe"], PROXY),
    ("empty", PROXY, [b""], PROXY),
    ("a socket without address", None, [b"198.51.100.7"], ""),
]


@pytest.mark.parametrize(
    ("client", "hops", "expected"), [row[1:] for row in ADDRESSES], ids=[row[0] for row in ADDRESSES]
)
def test_the_address_of_the_client(client, hops, expected):
    """It is the last hop that no trusted proxy has; what a client adds itself comes before that."""
    assert expected == PROXIES.address(scope(client, x_forwarded_for=hops))


USERS = [
    ("a user", PROXY, {"x_forwarded_user": b"alice"}, ("alice", set())),
    (
        "with groups",
        PROXY,
        {"x_forwarded_user": b"alice", "x_forwarded_groups": b"a, b,,c d"},
        ("alice", {"a", "b", "c d"}),
    ),
    ("repeated groups", PROXY, {"x_forwarded_user": b"a", "x_forwarded_groups": [b"a", b"b"]}, ("a", {"a", "b"})),
    ("UTF-8", PROXY, {"x_forwarded_user": "jürgen".encode()}, ("jürgen", set())),
    ("no header", PROXY, {"x_forwarded_groups": b"a"}, None),
    ("from elsewhere", OTHER, {"x_forwarded_user": b"alice"}, None),
    ("from no address", None, {"x_forwarded_user": b"alice"}, None),
    ("from elsewhere, by way of a proxy", OTHER, {"x_forwarded_user": b"alice", "x_forwarded_for": b"10.0.0.1"}, None),
]  # fmt: skip
WRONG = [
    ("empty", {"x_forwarded_user": b""}),
    ("twice", {"x_forwarded_user": [b"alice", b"bob"]}),
    ("every user", {"x_forwarded_user": b"*"}),
    ("not UTF-8", {"x_forwarded_user": b"\xff"}),
    ("a group of all", {"x_forwarded_user": b"alice", "x_forwarded_groups": b"a,*"}),
    ("too many groups", {"x_forwarded_user": b"alice", "x_forwarded_groups": b",".join([b"a"] * 1001)}),
]


@pytest.mark.parametrize(("client", "headers", "expected"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
def test_the_user_that_a_proxy_names(client, headers, expected):
    """The header counts from trusted addresses of connections only."""
    found = PROXIES.principal(scope(client, **headers))

    assert expected == (found and (found.user, set(found.groups)))
    assert found is None or found.mechanism == "proxy"


@pytest.mark.parametrize("headers", [row[1] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_header_that_names_nobody(headers):
    """A trusted proxy that names no user gets an error, not the rights of `Anonymous`."""
    with pytest.raises(InvalidProxyHeader):
        PROXIES.principal(scope(PROXY, **headers))


def test_trust_alone_switches_nothing_on():
    """Proxies that are trusted for addresses name no users unless the header is set."""
    proxies = TrustedProxies(parse_networks("10.0.0.0/8"))

    assert proxies.principal(scope(PROXY, x_forwarded_user=b"alice")) is None
