"""The functions on strings that every client of the registry adds to CEL."""

import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit
from uuid import UUID

from cel_expr_python import cel

__all__ = ["FUNCTIONS"]

_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_LOCAL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")
_LONGEST_NAME = 253
_LONGEST_MAIL = 254
_URI = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]*")


def _is_hostname(text: str) -> bool:
    labels = text.removesuffix(".").split(".")
    return len(text) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()


def _is_email(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    return len(text) <= _LONGEST_MAIL and _LOCAL.fullmatch(local) is not None and _is_hostname(domain)


def _is_uri(text: str) -> bool:
    return _is_uri_ref(text) and bool(urlsplit(text).scheme)


def _is_uri_ref(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return _URI.fullmatch(text) is not None


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return test


def _member(name: str, test: Callable[[str], bool]) -> cel.FunctionDecl:
    return cel.FunctionDecl(name, [cel.Overload(name, cel.Type.BOOL, [cel.Type.STRING], True, test)])


FUNCTIONS = [
    _member(name, test)
    for name, test in (
        ("isEmail", _is_email),
        ("isHostname", _is_hostname),
        ("isIpv4", _reads(ipaddress.IPv4Address)),
        ("isIpv6", _reads(ipaddress.IPv6Address)),
        ("isUri", _is_uri),
        ("isUriRef", _is_uri_ref),
        ("isUuid", _reads(UUID)),
    )
]
"""Member functions of strings."""
