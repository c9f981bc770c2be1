"""What a view gets and what it is: a row of the table of views, and the request that it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import QueryParams
from starlette.responses import Response

from strata.registry.api.views.addresses import with_query
from strata.registry.core.rights.request_access import Access
from strata.registry.core.rights.route_rights import Need
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.http.asgi import Scope
from strata.registry.http.exchange import Exchange
from strata.storage.state import State

__all__ = ["Page", "View", "names_of"]


@dataclass(frozen=True, slots=True)
class Page:
    """A request for a page, as views and templates see it.

    Attributes:
        exchange: the request.
        state: the State that the whole page is made from.
        path: the path of the request, percent-encoded.
        names: the segments of the path that have a name, decoded.
        query: the parameters of the query string, or the fields of a form that a view takes.
        origin: scheme and host by which the person reaches this registry, such as `http://localhost:8081`.
        form_token: the token that every form of this page sends.
        may_act: whether the pages have actions at all.
        signed_in: the name of the person who has signed in to a session; None if there is none.
        upload: the content of the file that a form sends; empty if there is none.
        told: what the person did last, which the page says once; empty if it was said already.
        answered: what the API answered to the request of the view, as JSON; None if it made none, or got an error.
    """

    exchange: Exchange
    state: State
    path: str
    names: Mapping[str, str]
    query: QueryParams
    origin: str
    form_token: str
    may_act: bool = False
    signed_in: str | None = None
    upload: bytes = b""
    told: str = ""
    answered: Any = None

    @property
    def access(self) -> Access:
        """What the person who looks at the page may do."""
        return self.exchange.access

    @property
    def user(self) -> str | None:
        """The name of the person; None if they are anonymous, or access control is off."""
        return self.access.principal.user

    @property
    def is_guarded(self) -> bool:
        """Whether access control is on."""
        return self.exchange.service.control is not None

    def offers(self, operation: Operation, subject: str = "") -> bool:
        """Return whether to offer an action on a subject or a scope, empty for the registry; the API decides again."""
        return self.may_act and self.access.may(operation, ResourceType.SUBJECT, subject)

    def leads_to(self, view: "View") -> bool:
        """Return whether to offer a view in the navigation: only views of the cluster are refused as a whole."""
        return all(
            right.resource_type is not ResourceType.CLUSTER or self.access.may(right.operation, right.resource_type)
            for right in view.need.rights
        )

    def offers_some(self, operation: Operation) -> bool:
        """Return whether to offer an action before its subject is known."""
        return self.may_act and self.access.may_some(operation, ResourceType.SUBJECT)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter of the query string without spaces around it."""
        return self.query.get(name, default).strip()

    def at(self, **query: object) -> str:
        """Return the address of this page with other parameters."""
        return with_query(self.path, query)

    def number(self, name: str, default: int, least: int = 1) -> int:
        """Return a parameter as a number; the default if it is not one, or out of range."""
        text = self.query.get(name, "")
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default
        return number if number >= least else default


@dataclass(frozen=True, slots=True)
class View:
    """A row of the table of views.

    Attributes:
        path: the path, with names in braces.
        template: the name of the template, in the folder `templates`.
        need: the rights that the view needs, as a route of the API declares them.
        show: returns the values for the template, or the whole response; it runs in a thread, and may raise
            `RegistryError`.
        label: the label in the navigation; empty if the view is not in it.
        takes_form: whether the view also answers a form that is sent to it, for input too large or secret for a link.
        place: its place among all views, by which the navigation is sorted.
        asks: returns the path and query string of what the view asks of the API, which may ask another process.
    """

    path: str
    template: str
    need: Need
    show: Callable[[Page], Mapping[str, object] | Response]
    label: str = ""
    takes_form: bool = False
    place: int = 0
    asks: Callable[[Page], str] | None = None


def names_of(scope: Scope, segments: list[str]) -> dict[str, str]:
    """Return the segments of a request's path that have a name, decoded."""
    parts = scope["path"].split("/")
    return {part[1:-1]: unquote(parts[place]) for place, part in enumerate(segments) if part[:1] == "{"}
