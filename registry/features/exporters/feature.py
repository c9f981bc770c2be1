"""Exporters as a feature."""

import socket
import uuid
from collections.abc import Iterator, Sequence
from functools import partial

from strata.registry.core.decide.exporters import auto_context, exporter_counts
from strata.registry.core.writer import Writer
from strata.registry.features.exporters import routes
from strata.registry.features.exporters.credentials import Credentials
from strata.registry.features.exporters.runner import Exporters
from strata.registry.features.exporters.settings import ExporterSettings
from strata.registry.features.feature import Feature, Measured, Node, Part, settings_of

__all__ = ["EXPORTERS"]


def _part(node: Node) -> Part:
    settings = settings_of(node.settings, ExporterSettings)
    credentials = Credentials(settings.read_exporter_secret())
    measured: Measured = {"strata_exporters": partial(_counted, node.writer)}
    if not node.seat.writes:
        return Part(keeps=credentials, measured=measured)
    # A node that starts again under its name continues at once; with a port of the system's choice it has no name.
    address = node.settings.listen if node.settings.port else uuid.uuid4().hex
    exporters = Exporters(
        node.writer,
        credentials,
        auto_context(node.cluster_id),
        me=f"{socket.gethostname()} {address}",
        every_s=settings.exporter_seconds,
        tally=node.tally,
        tls=node.calling,
    )
    return Part(watch=(exporters.watch,), keeps=credentials, measured=measured)


def _counted(writer: Writer) -> Iterator[tuple[Sequence[str], float]]:
    for state, number in exporter_counts(writer.state).items():
        yield (state,), number


EXPORTERS = Feature("exporters", _part, ExporterSettings, (routes.router,))
