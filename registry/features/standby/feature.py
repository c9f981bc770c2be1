"""A standby as a feature: a registry that copies another one."""

import math
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from strata.imports import deferred
from strata.registry.core.subject_names import context_name
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.standby.health import StandbyHealth
from strata.registry.features.standby.scope import Scope
from strata.registry.features.standby.settings import FollowSettings
from strata.registry.node.setting_types import listed
from strata.registry.node.settings import CoreSettings, SettingRefused, properties_in
from strata.registry.transfer.same_registry import is_same_registry
from strata.registry.transfer.tls_files import TlsFiles
from strata.storage.records import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from strata.registry.features.standby import follower as following
    from strata.registry.features.standby import sources
else:
    following = deferred("strata.registry.features.standby.follower")
    sources = deferred("strata.registry.features.standby.sources")

__all__ = ["STANDBY", "follower_of", "scope_of", "source_of"]


def follower_of(
    settings: FollowSettings,
    writer: Writer,
    tally: Tally,
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
) -> "following.Follower | None":
    """Return the follower of a node, whose log is marked as a standby; None if it follows nothing.

    Args:
        settings: the settings of the node.
        writer: its writer.
        tally: the numbers of the process.
        tls: returns the TLS context for calls to other nodes.

    Raises:
        FollowRefused: if the log holds something of its own.
        LogError: if the log cannot be read or written.
        SettingRefused: if the file with the settings of a Kafka client cannot be used.
        TransferError: if the URL of a service or a file of certificates cannot be used.
    """
    if settings.follow is None:
        return None
    follower = following.Follower(
        writer, source_of(settings), scope_of(settings), every_s=settings.follow_pause_s, tally=tally, tls=tls
    )
    follower.begin()
    return follower


def source_of(settings: FollowSettings) -> "sources.Source":
    """Return the source that the settings name; see `follower_of`."""
    url = settings.follow or ""
    if not settings.follows_service:
        return sources.LogSource(url, properties_in(settings.follow_kafka_config))
    return sources.ServiceSource(
        url,
        _text(settings.follow_auth_file),
        TlsFiles(settings.follow_ca_file),
        most_per_s=settings.follow_rate or math.inf,
        full_every_s=settings.follow_full_seconds,
    )


def scope_of(settings: FollowSettings) -> Scope:
    """Return the part of the source that the settings choose."""
    return Scope(
        listed(settings.follow_subjects),
        tuple(map(context_name, listed(settings.follow_contexts))),
        context_name(settings.follow_context) if settings.follow_context else DEFAULT_CONTEXT,
    )


def _text(file: Path | None) -> str | None:
    return None if file is None else file.read_text().strip()


def _part(node: Node) -> Part:
    settings, writer = settings_of(node.settings, FollowSettings), node.writer
    follower = follower_of(settings, writer, node.tally, node.calling) if node.seat.writes else None
    health = StandbyHealth(lambda: writer.state, node.seat.board)
    watch = () if follower is None else (follower.watch,)
    return Part(watch=watch, health=health.condition, measured=health.measured)


def _check(settings: CoreSettings) -> None:
    own = settings_of(settings, FollowSettings)
    if own.follow and is_same_registry(own.follow, settings.log):
        raise SettingRefused("--follow (or STRATA_FOLLOW) is the log of --log; expected another registry")
    try:
        properties_in(own.follow_kafka_config)
    except SettingRefused as error:
        raise SettingRefused(f"--follow-kafka-config (or STRATA_FOLLOW_KAFKA_CONFIG): {error}") from None


def _prepare(settings: CoreSettings, writer: Writer) -> None:
    """Mark the State, so that every worker starts from one that says what is copied."""
    follower_of(settings_of(settings, FollowSettings), writer, Tally())


STANDBY = Feature("standby", _part, FollowSettings, check=_check, prepare=_prepare)
