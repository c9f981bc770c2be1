"""Sign-in by an OpenID Connect provider: the authorization code flow with PKCE (RFC 6749, RFC 7636, OpenID Core).

The browser is sent to the provider with a random state, a nonce and the digest of a secret; it comes back with a code
that is worth nothing without that secret. The id token that the code is exchanged for is checked as any token is, must
be meant for this client, and must hold the nonce.
"""

import asyncio
import base64
import hashlib
import secrets
from dataclasses import replace
from urllib.parse import urlencode

import orjson
import urllib3

from strata.registry.core.rights.authentication import SignInFailed
from strata.registry.core.rights.principal import Principal
from strata.registry.features.access.bearer import InvalidToken, TokenCheck
from strata.registry.features.access.identity_keys import (
    KeysUnavailable,
    ProviderKeys,
    UnknownKey,
    check_url,
    fetch_json,
)
from strata.registry.features.access.options import CodeFlowOptions, OidcOptions

__all__ = ["Attempt", "CodeFlow"]

_WELL_KNOWN = "/.well-known/openid-configuration"
_TIMEOUT = urllib3.Timeout(connect=5.0, read=10.0)
_MOST_BYTES = 256 << 10
Attempt = dict[str, str]
"""What the browser keeps of a sign-in that has begun: `state`, `nonce` and `verifier`."""


class CodeFlow:
    """The sign-in by one provider.

    Args:
        oidc: the provider, and which of its tokens are accepted.
        flow: the client that this registry is to the provider.
        keys: the keys of the provider.
    """

    def __init__(self, oidc: OidcOptions, flow: CodeFlowOptions, keys: ProviderKeys) -> None:
        self._oidc, self._flow = oidc, flow
        self._tokens = TokenCheck(replace(oidc.rules, audiences=(flow.client_id,)), keys)
        self._discovered: dict[str, str] | None = None

    async def begin(self, redirect_uri: str) -> tuple[str, Attempt]:
        """Return the address to send the browser to, and what it must bring back.

        Raises:
            SignInFailed: if the provider does not answer.
        """
        known = await self._discover()
        attempt = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        challenge = hashlib.sha256(attempt["verifier"].encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._flow.client_id,
            "redirect_uri": redirect_uri,
            "scope": self._flow.scopes,
            "state": attempt["state"],
            "nonce": attempt["nonce"],
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        address = known["authorization_endpoint"]
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}", attempt

    async def finish(self, attempt: Attempt, parameters: dict[str, str], redirect_uri: str) -> Principal:
        """Return who has signed in.

        Args:
            attempt: what `begin` returned, as the browser kept it.
            parameters: the parameters that the browser brings from the provider.
            redirect_uri: the address to which it came back.

        Raises:
            SignInFailed: if the person has not signed in.
        """
        if not secrets.compare_digest(attempt.get("state", "").encode(), parameters.get("state", "-").encode()):
            raise SignInFailed("the answer belongs to another sign-in")
        if "code" not in parameters:
            raise SignInFailed(
                f"the provider refused: {parameters.get('error', 'no code')}: {parameters.get('error_description')}"
            )
        if parameters.get("iss", self._oidc.rules.issuer) != self._oidc.rules.issuer:
            raise SignInFailed("the answer comes from another issuer")
        known = await self._discover()
        token = await asyncio.to_thread(
            self._exchange, known["token_endpoint"], parameters["code"], attempt, redirect_uri
        )
        try:
            principal, _ = await self._tokens.principal(token.encode())
        except (InvalidToken, UnknownKey, KeysUnavailable) as error:
            raise SignInFailed(str(error)) from None
        claims = _claims(token)
        if not secrets.compare_digest(str(claims.get("nonce")).encode(), attempt["nonce"].encode()):
            raise SignInFailed("the token belongs to another sign-in")
        if claims.get("azp", self._flow.client_id) != self._flow.client_id:
            raise SignInFailed("the token was made for another client")
        return principal

    async def _discover(self) -> dict[str, str]:
        if self._discovered is None:
            self._discovered = await asyncio.to_thread(self._read)
        return self._discovered

    def _read(self) -> dict[str, str]:
        issuer = self._oidc.rules.issuer
        try:
            configuration = fetch_json(issuer.rstrip("/") + _WELL_KNOWN, self._oidc.ca_file)
            if not isinstance(configuration, dict) or configuration.get("issuer") != issuer:
                raise SignInFailed("the discovery document of the provider names another issuer")
            endpoints = {name: str(configuration.get(name)) for name in ("authorization_endpoint", "token_endpoint")}
            for url in endpoints.values():
                check_url(url, allow_http=self._oidc.allow_http)
        except (KeysUnavailable, ValueError) as error:
            raise SignInFailed(f"the provider cannot be used: {error}") from None
        return endpoints

    def _exchange(self, url: str, code: str, attempt: Attempt, redirect_uri: str) -> str:
        """Return the id token for a code; blocks."""
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt["verifier"],
            "client_id": self._flow.client_id,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if self._flow.client_secret:
            pair = urlencode({self._flow.client_id: self._flow.client_secret}).replace("=", ":", 1)
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            del fields["client_id"]
        try:
            with urllib3.PoolManager(1, retries=False, timeout=_TIMEOUT, ca_certs=self._oidc.ca_file) as pool:
                body = urlencode(fields)
                answer = pool.request("POST", url, body=body, headers=headers, redirect=False, preload_content=False)
                data = answer.read(_MOST_BYTES)
            content = orjson.loads(data)
        except (urllib3.exceptions.HTTPError, OSError, orjson.JSONDecodeError) as error:
            raise SignInFailed(f"the provider did not exchange the code: {error}") from None
        token = content.get("id_token") if isinstance(content, dict) else None
        if answer.status != 200 or not isinstance(token, str):
            raise SignInFailed(f"the provider answered {answer.status} to the code: {str(content)[:300]}")
        return token


def _claims(token: str) -> dict[str, object]:
    """Return the claims of a token whose signature has been checked."""
    part = token.split(".")[1]
    claims: dict[str, object] = orjson.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims
