"""Exporters as a feature."""

from collections.abc import Iterator, Sequence
from functools import partial

from strata.registry.core.decide.exporters import exporter_counts
from strata.registry.core.writer import Writer
from strata.registry.features.exporters import routes
from strata.registry.features.exporters.assembly import exporters_of
from strata.registry.features.exporters.credentials import Credentials
from strata.registry.features.exporters.settings import ExporterSettings
from strata.registry.features.feature import Feature, Measured, Node, Part, settings_of

__all__ = ["EXPORTERS"]


def _part(node: Node) -> Part:
    settings = settings_of(node.settings, ExporterSettings)
    credentials = Credentials(settings.read_exporter_secret())
    measured: Measured = {"strata_exporters": partial(_counted, node.writer)}
    if not node.seat.writes:
        return Part(keeps=credentials, measured=measured)
    every_s, tls = settings.exporter_seconds, node.calling
    exporters = exporters_of(
        node.settings, node.writer, node.cluster_id, node.tally, credentials, every_s=every_s, tls=tls
    )
    return Part(watch=(exporters.watch,), keeps=credentials, measured=measured)


def _counted(writer: Writer) -> Iterator[tuple[Sequence[str], float]]:
    for state, number in exporter_counts(writer.state).items():
        yield (state,), number


EXPORTERS = Feature("exporters", _part, ExporterSettings, (routes.router,))
