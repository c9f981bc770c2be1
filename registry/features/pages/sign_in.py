"""Sign-in and sign-out: by a name and password of the auth file, or by the identity provider."""

import base64
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response

from strata.registry.api.views.addresses import local_path
from strata.registry.core.errors import Unauthorized
from strata.registry.core.rights.authentication import Authenticator, CodeFlow, SignInFailed
from strata.registry.core.rights.principal import Principal
from strata.registry.core.rights.request_access import Signing
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.features.pages.forms import read_form
from strata.registry.features.pages.headers import HTML, PAGE_HEADERS
from strata.registry.features.pages.rendering import render
from strata.registry.features.pages.sessions import COOKIE, Session, Sessions, TooManyGroups, cookie_of
from strata.registry.http.asgi import Scope
from strata.registry.http.exchange import Exchange
from strata.registry.http.page_paths import PAGES
from strata.registry.http.route_facts import DeclaredRoute, RouteFacts

__all__ = ["SignIn"]

_HERE = f"{PAGES}/sign-in"
_ATTEMPT, _ATTEMPT_S = "strata_sign_in", 600.0
_TOLD, _TOLD_S = "strata_told", 60.0
_WRONG = "The name or the password is wrong."
_FAILED = "The sign-in did not succeed. Try again, or ask an administrator to look into the log of the registry."
_TOO_MANY = "You are in too many groups for a session. Ask an administrator to let the provider send fewer."
_LONGEST_REASON = 300
_log = logging.getLogger("strata.access")
_Respond = Callable[[Exchange], Awaitable[Response]]


class SignIn:
    """How people sign in to the pages, and the cookies of their sessions.

    Args:
        sessions: the sessions.
        authenticator: the authenticator of the API.
        flow: the sign-in by the identity provider; None without one.
        by_password: whether people can sign in with a password.
        url: the address by which people reach this registry; None: the one of each request.
    """

    def __init__(
        self,
        sessions: Sessions,
        authenticator: Authenticator,
        flow: CodeFlow | None,
        url: str | None,
        *,
        by_password: bool,
    ) -> None:
        self.sessions = sessions
        self._authenticator, self._flow, self._url, self._by_password = authenticator, flow, url, by_password

    @property
    def routes(self) -> list[DeclaredRoute]:
        """The routes of the sign-in."""
        rows: tuple[tuple[str, str, _Respond], ...] = (
            ("GET", _HERE, self._show),
            ("POST", _HERE, self._enter),
            ("GET", f"{_HERE}/provider", self._to_provider),
            ("GET", f"{_HERE}/callback", self._from_provider),
            ("POST", f"{PAGES}/sign-out", self._leave),
        )
        return [
            DeclaredRoute(
                method, path, RouteFacts(any_media_type=True, need=OPEN, takes_forms=method == "POST"), respond
            )
            for method, path, respond in rows
        ]

    def origin(self, scope: Scope) -> str:
        """Return scheme and host by which the person reaches this registry."""
        if self._url:
            return self._url
        host = dict(scope["headers"]).get(b"host", b"localhost")
        return f"{scope['scheme']}://{host.decode('latin-1')}"

    def session(self, scope: Scope) -> tuple[Session, str | None]:
        """Return the session of a request, and the cookie to set if it is a new one."""
        session = self.sessions.read(dict(scope["headers"]))
        return (session, None) if session else self.sessions.begin()

    def keep(self, response: Response, scope: Scope, cookie: str | None) -> None:
        """Let the browser keep the cookie of a session, if there is a new one."""
        if cookie is not None:
            self._set_cookie(response, scope, COOKIE, cookie, self.sessions.seconds)

    def tell(self, response: Response, scope: Scope, text: str) -> None:
        """Let the next page of this session say what was done.

        A signed cookie holds it, so it cannot be forged, shared by its address, or come back with a reload.
        """
        session, _ = self.session(scope)
        content = {"told": text, "session": self.sessions.form_token(session)}
        self._set_cookie(response, scope, _TOLD, self.sessions.sign(content, _TOLD_S), _TOLD_S)

    def told(self, scope: Scope, session: Session) -> str:
        """Return what the page reports as done; empty if there is nothing."""
        content = self.sessions.verify(cookie_of(dict(scope["headers"]), _TOLD))
        is_own = self.sessions.accepts(session, str(content.get("session", "")))
        return str(content.get("told", "")) if is_own else ""

    def forget(self, response: Response) -> None:
        """Let no further page say what was done."""
        response.delete_cookie(_TOLD, path=PAGES)

    # --- routes

    async def _show(self, exchange: Exchange) -> Response:
        scope = exchange.scope
        to = local_path(QueryParams(scope["query_string"]).get("to", ""))
        # A browser sends the session only to what was asked for from this site. A person who comes by a link of another
        # site gets here without it, and asks again from here, once.
        if dict(scope["headers"]).get(b"sec-fetch-site") == b"cross-site" and "to=" in scope["query_string"].decode():
            return self._onward(to)
        return self._form(scope, to)

    async def _enter(self, exchange: Exchange) -> Response:
        scope = exchange.scope
        form = await read_form(exchange, self.sessions, self.sessions.read(dict(scope["headers"])))
        to = local_path(form.text("to"))
        pair = base64.b64encode(f"{form.text('name')}:{form.text('password')}".encode())
        kept = [header for header in scope["headers"] if header[0] not in (b"authorization", b"cookie")]
        asked = {**scope, "headers": [*kept, (b"authorization", b"Basic " + pair)]}
        exchange.signing = Signing("auth_failure", mechanism="basic", name=form.text("name"))
        try:
            principal = await self._authenticator.authenticate(asked)
        except Unauthorized:
            return self._form(scope, to, _WRONG, 401)
        return self._welcome(exchange, principal, to, RedirectResponse(to, 303, headers=PAGE_HEADERS))

    async def _to_provider(self, exchange: Exchange) -> Response:
        scope = exchange.scope
        to = local_path(QueryParams(scope["query_string"]).get("to", ""))
        if self._flow is None:
            return self._form(scope, to)
        try:
            address, attempt = await self._flow.begin(self._callback(scope))
        except SignInFailed as error:
            return self._failed(exchange, to, error)
        response = RedirectResponse(address, 303, headers=PAGE_HEADERS)
        cookie = self.sessions.sign({**attempt, "to": to}, _ATTEMPT_S)
        # Lax: the browser must bring it along when it comes back from the provider.
        self._set_cookie(response, scope, _ATTEMPT, cookie, _ATTEMPT_S, same_site="lax")
        return response

    async def _from_provider(self, exchange: Exchange) -> Response:
        scope = exchange.scope
        attempt = self.sessions.verify(cookie_of(dict(scope["headers"]), _ATTEMPT))
        to = local_path(str(attempt.get("to", "")))
        if self._flow is None or "state" not in attempt:
            return self._failed(
                exchange, to, SignInFailed("the browser did not begin this sign-in, or began it too long ago")
            )
        try:
            parameters = dict(QueryParams(scope["query_string"]))
            principal = await self._flow.finish(attempt, parameters, self._callback(scope))
        except SignInFailed as error:
            return self._failed(exchange, to, error)
        response = self._welcome(exchange, principal, to, self._onward(to))
        response.delete_cookie(_ATTEMPT, path=PAGES)
        return response

    async def _leave(self, exchange: Exchange) -> Response:
        scope = exchange.scope
        await read_form(exchange, self.sessions, self.sessions.read(dict(scope["headers"])))
        exchange.signing = Signing("sign_out", exchange.access.principal)
        response = RedirectResponse(_HERE, 303, headers=PAGE_HEADERS)
        response.delete_cookie(COOKIE, path=PAGES)
        return response

    # --- answers

    def _welcome(self, exchange: Exchange, principal: Principal, to: str, response: Response) -> Response:
        scope = exchange.scope
        try:
            _, cookie = self.sessions.begin(principal)
        except TooManyGroups:
            return self._form(scope, to, _TOO_MANY, 403)
        exchange.signing = Signing("sign_in", principal)
        self.keep(response, scope, cookie)
        return response

    def _failed(self, exchange: Exchange, to: str, error: SignInFailed) -> Response:
        scope = exchange.scope
        exchange.signing = Signing("auth_failure", mechanism="provider")
        address = self._authenticator.address(scope) or "an unknown address"
        _log.info(
            "sign-in failed from %(address)s: %(reason)s",
            {"event": "sign_in_failed", "address": address, "reason": str(error)[:_LONGEST_REASON]},
        )
        return self._form(scope, to, _FAILED, 401)

    def _form(self, scope: Scope, to: str, fault: str = "", status: int = 200) -> Response:
        session, cookie = self.session(scope)
        values: dict[str, object] = {
            "page": None,
            "views": (),
            "to": to,
            "fault": fault,
            "form_token": self.sessions.form_token(session),
            "by_password": self._by_password,
            "by_provider": self._flow is not None,
        }
        response = Response(render("sign_in.html", values), status, media_type=HTML, headers=PAGE_HEADERS)
        self.keep(response, scope, cookie)
        return response

    def _onward(self, to: str) -> Response:
        """Return a page that goes on by itself, as a request from this site."""
        return Response(render("onward.html", {"page": None, "to": to}), media_type=HTML, headers=PAGE_HEADERS)

    def _callback(self, scope: Scope) -> str:
        return f"{self.origin(scope)}{_HERE}/callback"

    def _set_cookie(
        self,
        response: Response,
        scope: Scope,
        name: str,
        value: str,
        seconds: float,
        same_site: Literal["strict", "lax"] = "strict",
    ) -> None:
        headers = dict(scope["headers"])
        is_secure = self.origin(scope).startswith("https:") or headers.get(b"x-forwarded-proto") == b"https"
        response.set_cookie(
            name, value, max_age=int(seconds), path=PAGES, secure=is_secure, httponly=True, samesite=same_site
        )
