"""Access control as a feature: who sends a request, what they may do, and how often they may ask."""

import logging
from functools import partial

from strata.registry.core.rights.authentication import KnownUser
from strata.registry.core.rights.rules import Rule
from strata.registry.features.access import routes
from strata.registry.features.access.auth_file import AuthFileError
from strata.registry.features.access.authenticator import Authenticator
from strata.registry.features.access.control import AccessControl
from strata.registry.features.access.rate_limit import RateLimit
from strata.registry.features.access.settings import IdentitySettings
from strata.registry.features.access.watched_file import WatchedFile
from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.http.admission import Admission
from strata.registry.http.node_signature import NodeSecret
from strata.registry.node.buckets import Buckets
from strata.registry.node.health import Condition
from strata.registry.node.settings import CoreSettings, SettingRefused

__all__ = ["ACCESS"]

_log = logging.getLogger("strata.access")


def _part(node: Node) -> Part:
    """Return who asks, for a node; it is always on, because every page may ask who a person is."""
    settings = settings_of(node.settings, IdentitySettings)
    authenticator = Authenticator(settings.identity, buckets=node.seat.board.buckets)
    file = authenticator.file
    node.authenticator, node.code_flow, node.by_password = authenticator, authenticator.code_flow(), file is not None
    node.known_users = partial(_known_user, authenticator)
    if node.control is None and authenticator.is_on:
        node.control = _control(node.settings, settings, authenticator)
    control, rate, writer = node.control, _rate_limit(settings, node.seat.board.buckets), node.writer
    return Part(
        watch=(authenticator.watch,),
        close=authenticator.close,
        health=None if file is None else Condition(details=lambda: {"auth": "stale"} if file.failure else {}),
        counted={} if file is None else {("strata_auth_file_failures_total",): lambda: file.failures},
        facts={} if file is None else {"auth_in_force": lambda: file.failure is None},
        admission=Admission(control, rate, lambda: writer.state, authenticator.address) if control or rate else None,
    )


def _check(settings: CoreSettings) -> None:
    own = settings_of(settings, IdentitySettings)
    try:
        if own.auth_file:
            WatchedFile(own.auth_file)
    except AuthFileError as error:
        raise SettingRefused(f"--auth-file (or STRATA_AUTH_FILE): {error}") from None


def _control(settings: CoreSettings, own: IdentitySettings, authenticator: Authenticator) -> AccessControl:
    node_secret = settings.read_node_secret()
    secret = NodeSecret(node_secret) if node_secret else None
    if secret is None and settings.log.startswith("kafka:"):
        _log.warning(
            "without --node-secret this node forwards no writes, but takes the right to write for each; set it on all "
            "nodes",
            {"event": "node_secret_missing"},
        )
    return AccessControl(authenticator, partial(_file_rules, authenticator), own.superuser_names, secret)


def _rate_limit(settings: IdentitySettings, buckets: Buckets) -> RateLimit | None:
    per_user, per_address = settings.rate_limit, settings.address_rate_limit
    if not per_user and not per_address:
        return None
    return RateLimit(buckets, per_user=per_user, per_address=per_address, burst_s=settings.rate_burst_seconds)


def _file_rules(authenticator: Authenticator) -> tuple[Rule, ...]:
    return authenticator.file.content.rules if authenticator.file else ()


def _known_user(authenticator: Authenticator, name: str) -> KnownUser | None:
    return authenticator.file.content.users.get(name) if authenticator.file else None


ACCESS = Feature("access", _part, IdentitySettings, (routes.router,), check=_check)
