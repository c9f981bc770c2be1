"""A standby as a feature: a registry that copies another one."""

from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.standby.assembly import follower_of
from strata.registry.features.standby.health import StandbyHealth
from strata.registry.features.standby.settings import FollowSettings
from strata.registry.node.settings import CoreSettings, SettingRefused, properties_in
from strata.registry.transfer.same_registry import is_same_registry

__all__ = ["STANDBY"]


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
