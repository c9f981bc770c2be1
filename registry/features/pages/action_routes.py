"""The pages of actions: a form, a review with the command lines that do the same, and the action itself.

A form is sent twice: for the review, and then, confirmed, for good. While a person types a schema, its form is also
sent for the verdict, which stores nothing.
"""

import json
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus

from starlette.responses import RedirectResponse, Response

from strata.registry.api.views.view import Page, View
from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.core.subject_names import subject_name
from strata.registry.features.pages.actions import ACTIONS, Action, Call, Place, reference_lines
from strata.registry.features.pages.forms import Form, read_form
from strata.registry.features.pages.headers import HTML, PAGE_HEADERS
from strata.registry.features.pages.rendering import render
from strata.registry.features.pages.sessions import Session
from strata.registry.features.pages.sign_in import SignIn
from strata.registry.http.asgi import Answer
from strata.registry.http.exchange import Exchange
from strata.registry.http.page_paths import PAGES
from strata.registry.http.route_facts import DeclaredRoute, RouteFacts

__all__ = ["MakePage", "action_routes"]

_PATH = f"{PAGES}/do/{{action}}"
_NEED = listed(Operation.DESCRIBE, more="the API decides on the action")
MakePage = Callable[[Exchange, list[str], Session], Awaitable[Page]]
"""Returns the page of a request, given the segments of its path and its session."""


def action_routes(views: Sequence[View], sign_in: SignIn, make_page: MakePage) -> list[DeclaredRoute]:
    """Return the routes of the actions.

    Args:
        views: all views, for the navigation.
        sign_in: the sessions of people.
        make_page: returns the page of a request, given the segments of its path and its session.
    """
    segments = _PATH.split("/")

    async def show(exchange: Exchange) -> Response:
        session, cookie = sign_in.session(exchange.scope)
        page = await make_page(exchange, segments, session)
        action, place = _action(page), Place(page.text("subject"), page.text("version"))
        response = await page.exchange.service.writer.in_thread(
            lambda: _shown(views, page, action, place, values=action.start(page, place))
        )
        sign_in.keep(response, exchange.scope, cookie)
        return response

    async def do(exchange: Exchange) -> Response:
        page, form = await sent(exchange)
        action, place = _action(page), Place(form.text("subject").strip(), form.text("version"))
        in_thread = page.exchange.service.writer.in_thread
        values = {field.name: form.text(field.name) for field in action.fields}
        values |= {"schema": text} if (text := form.file("file")) else {}
        values["references"] = "\n".join(reference_lines(form))
        again = partial(_shown, views, page, action, place, values=values)
        try:
            call = await in_thread(action.call, page, place, form)
        except RegistryError as error:
            return await in_thread(partial(again, fault=error))
        again = partial(again, call=call, verdict=await _verdict(exchange, call) if action.checks else None)
        if not form.text("confirmed"):
            return await in_thread(again)
        if (wanted := action.typed(place)) is not None and form.text("typed") != wanted:
            return await in_thread(partial(again, fault=errors.unreadable_body(f"Type {wanted!r} to confirm")))
        status, _, body = await _ask(exchange, call)
        if status >= HTTPStatus.BAD_REQUEST:
            return await in_thread(partial(again, fault=_error(status, body)))
        response = RedirectResponse(action.after(place), 303, headers=PAGE_HEADERS)
        sign_in.tell(response, exchange.scope, _outcome(page, action, place, body))
        return response

    async def check(exchange: Exchange) -> Response:
        page, form = await sent(exchange)
        action, place = ACTIONS["register"], Place(form.text("subject").strip())
        try:
            verdict = await _verdict(exchange, action.call(page, place, form))
        except RegistryError as error:
            verdict = {"fault": error}
        return Response(render("verdict.html", {"verdict": verdict}), media_type=HTML, headers=PAGE_HEADERS)

    async def sent(exchange: Exchange) -> tuple[Page, Form]:
        session = sign_in.sessions.read(dict(exchange.scope["headers"]))
        form = await read_form(exchange, sign_in.sessions, session)
        return await make_page(exchange, segments, session or sign_in.sessions.begin()[0]), form

    shows = RouteFacts(any_media_type=True, need=_NEED)
    takes = RouteFacts(any_media_type=True, need=_NEED, takes_forms=True)
    return [
        DeclaredRoute("GET", _PATH, shows, show),
        DeclaredRoute("POST", f"{PAGES}/do/register/check", takes, check),
        DeclaredRoute("POST", _PATH, takes, do),
    ]


def _outcome(page: Page, action: Action, place: Place, body: bytes) -> str:
    """Return what an action has done; a registration may find the schema where it was already."""
    answer = json.loads(body)
    number = answer.get("version") if isinstance(answer, dict) else None
    if number is None:
        return f"Done: {action.label}."
    before = page.state.version(subject_name(place.subject), number)
    if before is not None and not before.deleted:
        return f"Nothing changed: the schema was already registered as version {number}."
    return f"Done: {action.label}. It is version {number}."


def _action(page: Page) -> Action:
    action = ACTIONS.get(page.names["action"])
    if action is None:
        raise errors.not_found()
    return action


def _shown(
    views: Sequence[View],
    page: Page,
    action: Action,
    place: Place,
    *,
    values: Mapping[str, str],
    call: Call | None = None,
    verdict: Mapping[str, object] | None = None,
    fault: RegistryError | None = None,
) -> Response:
    """Return the form of an action, with the review if it was sent."""
    may_know = page.exchange.describable(subject_name(place.subject))
    shown = {
        "page": page,
        "views": views,
        "view": None,
        "name": page.names["action"],
        "action": action,
        "place": place,
        "values": values,
        "lines": _command_lines(page, call) if call else None,
        "typed": action.typed(place),
        "notes": action.notes(page, place) if may_know else (),
        "refusal": action.refusal(page, place) if may_know else "",
        "verdict": verdict,
        "fault": fault,
    }
    status = fault.status if fault else 200
    return Response(render("action.html", shown), status, media_type=HTML, headers=PAGE_HEADERS)


async def _verdict(exchange: Exchange, call: Call) -> dict[str, object]:
    """Return what the API says to the schema of a registration, without storing it."""
    path, _, query = call.target.partition("?")
    target = f"/compatibility{path}?verbose=true{'&' if query else ''}{query}"
    status, _, body = await _ask(exchange, call._replace(target=target))
    return {"fault": _error(status, body)} if status >= HTTPStatus.BAD_REQUEST else {"answer": json.loads(body)}


async def _ask(exchange: Exchange, call: Call) -> Answer:
    body = b"" if call.body is None else json.dumps(call.body, ensure_ascii=False).encode(errors="replace")
    return await exchange.ask(call.method, call.target, body)


def _error(status: int, body: bytes) -> RegistryError:
    content = json.loads(body)
    return RegistryError(content.get("error_code", status), content.get("message", ""))


def _command_lines(page: Page, call: Call) -> list[tuple[str, str]]:
    """Return the lines that make the same request in a shell: of curl, and of `strata` if it has such a command."""
    line, login = ["curl", "-X", call.method, page.origin + call.target], []
    if page.is_guarded and page.user:
        is_basic = page.access.principal.mechanism == "basic"
        line += ["-u", page.user] if is_basic else ["-H", "Authorization: Bearer TOKEN"]
        login = ["--auth", f"{page.user}:PASSWORD" if is_basic else "TOKEN"]
    if call.body is not None:
        line += ["-H", "Content-Type: application/json", "--data", json.dumps(call.body, ensure_ascii=False)]
    lines = [("curl", shlex.join(line))]
    if call.command:
        lines.append(
            ("strata", shlex.join(["strata", call.command[0], "--url", page.origin, *login, *call.command[1:]]))
        )
    return lines
