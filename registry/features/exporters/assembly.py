"""Makes the part of a node that runs exporters, from its settings."""

import socket
import ssl
import uuid
from collections.abc import Callable

from strata.registry.core.decide.exporters import auto_context
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.exporters.credentials import Credentials
from strata.registry.features.exporters.runner import Exporters
from strata.registry.node.settings import CoreSettings

__all__ = ["exporters_of"]


def exporters_of(
    settings: CoreSettings,
    writer: Writer,
    cluster_id: str,
    tally: Tally,
    credentials: Credentials,
    *,
    every_s: float,
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
) -> Exporters:
    """Return what runs the exporters of a log on this node.

    Args:
        settings: the settings of the node.
        writer: its writer.
        cluster_id: the name of the log in `/v1/metadata/id`.
        tally: the numbers of the process.
        credentials: opens the credentials of exporters.
        every_s: the seconds between two checks of the log for changes to export.
        tls: returns the TLS context for calls to other nodes.
    """
    # A node that starts again under its name continues at once; with a port of the system's choice it has no name.
    address = settings.listen if settings.port else uuid.uuid4().hex
    return Exporters(
        writer,
        credentials,
        auto_context(cluster_id),
        me=f"{socket.gethostname()} {address}",
        every_s=every_s,
        tally=tally,
        tls=tls,
    )
