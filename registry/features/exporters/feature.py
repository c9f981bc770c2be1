"""Exporters as a feature."""

import asyncio
import socket
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from strata.imports import deferred
from strata.registry.core.decide.exporters import auto_context, exporter_counts
from strata.registry.core.writer import Writer
from strata.registry.features.exporters import routes
from strata.registry.features.exporters.credentials import Credentials
from strata.registry.features.exporters.settings import ExporterSettings
from strata.registry.features.feature import Feature, Measured, Node, Part, settings_of

if TYPE_CHECKING:
    from strata.registry.features.exporters import runner
else:
    runner = deferred("strata.registry.features.exporters.runner")

__all__ = ["EXPORTERS"]


def _part(node: Node) -> Part:
    settings = settings_of(node.settings, ExporterSettings)
    credentials = Credentials(settings.read_exporter_secret())
    measured: Measured = {"strata_exporters": partial(_counted, node.writer)}
    if not node.seat.writes:
        return Part(keeps=credentials, measured=measured)
    return Part(watch=(partial(_copy, node, settings, credentials),), keeps=credentials, measured=measured)


async def _copy(node: Node, settings: ExporterSettings, credentials: Credentials) -> None:
    """Copy until cancelled, from the first exporter on."""
    writer = node.writer
    while not writer.state.exporters:  # noqa: ASYNC110 - nothing tells of a new State
        await asyncio.sleep(settings.exporter_seconds)
    # A node that starts again under its name continues at once; with a port of the system's choice it has no name.
    address = node.settings.listen if node.settings.port else uuid.uuid4().hex
    exporters = runner.Exporters(
        writer,
        credentials,
        auto_context(node.cluster_id),
        me=f"{socket.gethostname()} {address}",
        every_s=settings.exporter_seconds,
        tally=node.tally,
        tls=node.calling,
    )
    await exporters.watch()


def _counted(writer: Writer) -> Iterator[tuple[Sequence[str], float]]:
    for state, number in exporter_counts(writer.state).items():
        yield (state,), number


EXPORTERS = Feature("exporters", _part, ExporterSettings, (routes.router,))
