"""Bearer authentication: tokens of an OpenID Connect provider (RFC 6750, RFC 7519, RFC 8725).

A token must be signed by a published key of the issuer with an algorithm that the settings name, be meant for this
registry, and be valid now. Its claims say who the user is and which groups the user belongs to. PyJWT checks signatures
and times.
"""

import re
from collections.abc import Mapping
from typing import Any

import jwt

from strata.registry.core.rights.principal import Principal
from strata.registry.features.access.identity_keys import ProviderKeys
from strata.registry.features.access.names import InvalidName, check_name
from strata.registry.features.access.options import TokenRules

__all__ = ["InvalidToken", "TokenCheck"]

_MOST_BYTES = 16 << 10
_MOST_GROUPS = 1000
_LAST = 1 << 53  # beyond it, numbers of JSON may not fit a float
_TYPES = ("", "jwt", "at+jwt", "application/at+jwt")
"""The types of tokens that may be access tokens, in lower case; others say that they are not (RFC 8725, 3.11)."""

_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


class InvalidToken(Exception):
    """A token that is not accepted; the message is for the service's own log.

    Args:
        reason: the message.
        told: what the client gets to know; empty unless the issuer has signed the token.
    """

    def __init__(self, reason: str, told: str = "") -> None:
        super().__init__(reason)
        self.told = told


class TokenCheck:
    """Checks tokens.

    Args:
        rules: which tokens are accepted.
        keys: the keys of the provider.
    """

    def __init__(self, rules: TokenRules, keys: ProviderKeys) -> None:
        self._rules, self._keys = rules, keys

    async def principal(self, token: bytes) -> tuple[Principal, float]:
        """Return the principal of a token, and until when it is valid, in seconds since 1970.

        Raises:
            InvalidToken: if it is not accepted.
            KeysUnavailable: if the provider does not answer, and no keys are known.
            UnknownKey: if the provider has no such key.
        """
        algorithm, kid = self._header(token)
        key = await self._keys.find(kid, _KINDS[algorithm[:2]], algorithm)
        if key.get("alg", algorithm) != algorithm:
            raise InvalidToken(f"the key of the token is not for {algorithm}")
        claims = self._claims(token, key, algorithm)
        try:
            return self._principal(claims), min(int(claims["exp"]), _LAST) + self._rules.leeway_s
        except InvalidName as error:
            raise InvalidToken(f"the token does not name a user: {error}", "The token does not name a user") from None

    def _header(self, token: bytes) -> tuple[str, str | None]:
        """Return algorithm and key name of a token whose signature is still to be checked."""
        if len(token) > _MOST_BYTES:
            raise InvalidToken("the token is too long")
        try:
            parts = jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise InvalidToken(f"the token is malformed: {error}") from None
        header, claims = parts["header"], parts["payload"]
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in self._rules.algorithms:
            raise InvalidToken(f"the token's algorithm is {algorithm!r}")
        if str(header.get("typ", "")).lower() not in _TYPES:
            raise InvalidToken(f"the token's type is {header['typ']!r}")
        if claims.get("iss") != self._rules.issuer:  # before the provider is asked for a key
            raise InvalidToken(f"the token's issuer is {claims.get('iss')!r}")
        return algorithm, kid

    def _claims(self, token: bytes, key: Mapping[str, object], algorithm: str) -> dict[str, Any]:
        rules = self._rules
        try:
            return jwt.decode(
                token,
                jwt.PyJWK(dict(key), algorithm),
                algorithms=[algorithm],
                audience=rules.audiences,
                issuer=rules.issuer,
                leeway=rules.leeway_s,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
        except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError) as error:
            raise InvalidToken(str(error), "The token has expired, or is not valid yet") from None
        except (jwt.InvalidAudienceError, jwt.MissingRequiredClaimError) as error:
            raise InvalidToken(str(error), "The token is not for this registry") from None
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise InvalidToken(f"the token is not accepted: {error}") from None

    def _principal(self, claims: Mapping[str, object]) -> Principal:
        groups = _claim(claims, self._rules.groups_claim)
        names = [groups] if isinstance(groups, str) else groups or []
        if not isinstance(names, list) or len(names) > _MOST_GROUPS:
            raise InvalidName(f"expected a list of at most {_MOST_GROUPS} groups")
        user = check_name(_claim(claims, self._rules.principal_claim))
        return Principal(user, frozenset(map(check_name, names)), "bearer")


def _claim(claims: Mapping[str, object], path: str) -> object:
    """Return a claim.

    Args:
        claims: the claims of a token.
        path: the name of the claim, or a path such as `realm_access.roles`; a step that holds a dot is put in
            brackets: `resource_access.[my.client].roles`.

    Returns:
        The claim; None if there is none.
    """
    if path in claims:
        return claims[path]
    claim: object = claims
    for step in _STEP.finditer(path):
        claim = claim.get(step[1] if step[1] is not None else step[2]) if isinstance(claim, dict) else None
    return claim
