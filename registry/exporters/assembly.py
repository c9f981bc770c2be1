"""Makes the part of a node that runs exporters, from its settings."""

import socket
import ssl
import uuid
from collections.abc import Callable

from strata.registry.decide.exporters import auto_context
from strata.registry.destinations.credentials import Credentials
from strata.registry.exporters.runner import Exporters
from strata.registry.metrics.tally import Tally
from strata.registry.settings import Settings
from strata.registry.writer import Writer

__all__ = ["exporters_of"]


def exporters_of(
    settings: Settings,
    writer: Writer,
    cluster_id: str,
    tally: Tally,
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
) -> Exporters:
    """Return what runs the exporters of a log on this node.

    Args:
        settings: the settings of the node.
        writer: its writer.
        cluster_id: the name of the log in `/v1/metadata/id`.
        tally: the numbers of the process.
        tls: returns the TLS context for calls to other nodes.
    """
    # A node that starts again under its name continues at once; with a port of the system's choice it has no name.
    address = settings.listen if settings.port else uuid.uuid4().hex
    return Exporters(
        writer,
        Credentials(settings.read_exporter_secret()),
        auto_context(cluster_id),
        me=f"{socket.gethostname()} {address}",
        every_s=settings.exporter_seconds,
        tally=tally,
        tls=tls,
    )
