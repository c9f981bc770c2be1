"""Exporters as a feature."""

from strata.registry.features.exporters import routes
from strata.registry.features.exporters.assembly import exporters_of
from strata.registry.features.exporters.credentials import Credentials
from strata.registry.features.exporters.settings import ExporterSettings
from strata.registry.features.feature import Feature, Node, Part, settings_of

__all__ = ["EXPORTERS"]


def _part(node: Node) -> Part:
    settings = settings_of(node.settings, ExporterSettings)
    credentials = Credentials(settings.read_exporter_secret())
    if not node.seat.writes:
        return Part(keeps=credentials)
    every_s, tls = settings.exporter_seconds, node.calling
    exporters = exporters_of(
        node.settings, node.writer, node.cluster_id, node.tally, credentials, every_s=every_s, tls=tls
    )
    return Part(watch=(exporters.watch,), keeps=credentials)


EXPORTERS = Feature("exporters", _part, ExporterSettings, (routes.router,))
