"""Opens the log of a node or a command, and explains why it cannot be opened."""

from strata.registry.node.settings import CoreSettings, SettingRefused
from strata.storage.addresses import without_password
from strata.storage.lease import ReadLease
from strata.storage.log import Log, LogError
from strata.storage.open_log import not_opened, open_log

__all__ = ["StartError", "open_for"]


class StartError(Exception):
    """A failure to start the node or open its log; the message says why and what to do."""


def open_for(
    settings: CoreSettings,
    url: str | None = None,
    *,
    must_exist: bool = False,
    named: str = "--log (or STRATA_LOG)",
    signature: tuple[int, bytes, bytes, int] | None = None,
    lease: ReadLease | None = None,
) -> Log:
    """Open the log of the settings.

    Args:
        settings: the settings that name the log.
        url: the URL under which other nodes reach this one; None for a command.
        must_exist: whether to fail, instead of creating the log, if it does not exist.
        named: what the user calls the setting or argument, for error messages.
        signature: the newest signature of a pen's holder in the State from which the caller reads on.
        lease: the read lease of the node; by default it has none.

    Raises:
        StartError: if it cannot be opened; the message says why and what to do, without a password.
    """
    try:
        return open_log(
            settings.log,
            advertised_url=url,
            fencing=settings.fencing,
            kafka_config=settings.kafka_settings(),
            must_exist=must_exist,
            signature=signature,
            lease=lease,
        )
    except SettingRefused as error:
        raise StartError(f"--kafka-config (or STRATA_KAFKA_CONFIG): {error}") from None
    except ValueError as error:
        raise StartError(f"{named} is {without_password(settings.log)!r}: {error}") from None
    except LogError as error:
        raise StartError(not_opened(settings.log, error)) from None
