"""The seam between the service and its features.

A feature is a folder with one `Feature`, which states the settings and routes of the feature, what it checks before a
node starts, and its part of a node: what runs beside the service, what it says about the health of the node, what it
counts, what it does with each request. `app.py` has the list. The core knows no feature, and no feature imports
another; what one finds out that others need, such as who sends a request, it puts into the `Node` that is being made.
"""

import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from strata.registry.api.router import Router
from strata.registry.api.views.view import View
from strata.registry.core.errors import RegistryError
from strata.registry.core.rights.authentication import Anyone, Authenticator, CodeFlow, KnownUsers, no_user
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.http.admission import Admission
from strata.registry.http.asgi import Answer
from strata.registry.http.exchange import Exchange
from strata.registry.http.link import Link
from strata.registry.http.pipeline import Auditor, Pipeline
from strata.registry.http.route_facts import DeclaredRoute
from strata.registry.http.service import Control
from strata.registry.node.board import Seat
from strata.registry.node.health import WITH_RIGHTS_S, Condition, Health
from strata.registry.node.setting_types import SettingGroup
from strata.registry.node.settings import CoreSettings

__all__ = ["Counted", "Feature", "Measured", "Node", "Part", "settings_of"]

_SettingsT = TypeVar("_SettingsT", bound=SettingGroup)

Counted = Mapping[tuple[str, ...], Callable[[], float]]
"""Counts that a feature keeps, by the name of their metric and the values of its labels."""

Measured = Mapping[str, Callable[[], Iterator[tuple[Sequence[str], float]]]]
"""What a feature measures at a scrape, by the name of the metric: the values of its labels, and the number."""


@dataclass
class Node:
    """A node that is being made.

    Attributes:
        settings: its settings.
        seat: the place of this process among its workers.
        tally: the numbers of this process.
        writer: the writer, which holds the State.
        cluster_id: the name of the log in `/v1/metadata/id`.
        link: the connection to the worker that writes, if this is not the one.
        calling: returns the TLS context for calls to other nodes.
        certificates: returns when the first certificate of each TLS file ends, in seconds since the epoch.
        variables: the environment.
        routers: the groups of routes of all features, and those of the reference.
        views: the views of all features.
        control: access control; None if it is off.
        authenticator: says who sends a request.
        code_flow: the sign-in by an identity provider; None without one.
        known_users: returns the users of the auth file.
        by_password: whether users sign in by password.
        counted: what the features made so far count.
        measured: what they measure.
        facts: the facts of this process that they publish, by their names in `FACTS`.
    """

    settings: CoreSettings
    seat: Seat
    tally: Tally
    writer: Writer
    cluster_id: str
    link: Link | None
    calling: Callable[[], ssl.SSLContext]
    certificates: Callable[[], Mapping[str, float]]
    variables: Mapping[str, str]
    routers: Sequence[Router]
    views: Sequence[View]
    control: Control | None = None
    authenticator: Authenticator = field(default_factory=Anyone)
    code_flow: CodeFlow | None = None
    known_users: KnownUsers = no_user
    by_password: bool = False
    counted: dict[tuple[str, ...], Callable[[], float]] = field(default_factory=dict)
    measured: dict[str, Callable[[], Iterator[tuple[Sequence[str], float]]]] = field(default_factory=dict)
    facts: dict[str, Callable[[], float]] = field(default_factory=dict)

    @cached_property
    def health(self) -> Health:
        """The health of the node; the feature of access comes before all that ask for it."""
        every_s = WITH_RIGHTS_S if self.control else None
        return Health(self.writer, self.seat, every_s=every_s)

    def progress(self) -> tuple[int, int]:
        """Return the offset read, and how many offsets the log is ahead."""
        progress = self.health.progress()
        return progress["offset"], progress["behind"]


@dataclass
class Part:
    """What a feature adds to a node.

    Attributes:
        watch: what runs beside the service, until cancelled.
        close: closes what the part has opened, after the last write.
        keeps: what the routes of the feature find in `Service.parts`.
        routes: routes besides those of its groups; they are matched first.
        health: what it says about the health of the node.
        counted: what it counts.
        measured: what it measures.
        facts: what it publishes about this process.
        begin: is called with each request before its first step.
        end: is called with it after the last one.
        sees_passed_on: whether both are called with requests that other workers pass on, too.
        admission: finds out who asks.
        audit: notes changes, refusals and reads.
        failure_page: returns the answer to a request for a page that failed.
        news: takes what other workers report to the one that writes.
        join: is called with the pipeline, once it is made.
    """

    watch: Sequence[Callable[[], Awaitable[None]]] = ()
    close: Callable[[], object] | None = None
    keeps: object = None
    routes: Sequence[DeclaredRoute] = ()
    health: Condition | None = None
    counted: Counted = field(default_factory=dict)
    measured: Measured = field(default_factory=dict)
    facts: Mapping[str, Callable[[], float]] = field(default_factory=dict)
    begin: Callable[[Exchange], None] | None = None
    end: Callable[[Exchange], None] | None = None
    sees_passed_on: bool = False
    admission: Admission | None = None
    audit: Auditor | None = None
    failure_page: Callable[[Exchange, RegistryError], Answer] | None = None
    news: Callable[[Any], None] | None = None
    join: Callable[[Pipeline], None] | None = None


def _nothing(*_arguments: object) -> None:
    pass


def _present(_node: Node) -> Part:
    return Part()


@dataclass(frozen=True)
class Feature:
    """What a registry can do besides.

    Attributes:
        name: its name.
        part: returns its part of a node; None if the settings switch it off.
        settings: its settings; None if it has none.
        routers: its groups of routes.
        views: its pages.
        check: raises `SettingRefused` for settings that cannot be used, before any socket or log is opened.
        prepare: prepares the State of a node before its workers begin.
    """

    name: str
    part: Callable[[Node], Part | None] = _present
    settings: type[SettingGroup] | None = None
    routers: Sequence[Router] = ()
    views: Sequence[View] = ()
    check: Callable[[CoreSettings], None] = _nothing
    prepare: Callable[[CoreSettings, Writer], None] = _nothing


def settings_of(settings: CoreSettings, of_type: type[_SettingsT]) -> _SettingsT:
    """Return settings as those of a feature, which are part of `Settings`."""
    if not isinstance(settings, of_type):
        raise TypeError(f"expected settings with those of {of_type.__name__}")
    return settings
