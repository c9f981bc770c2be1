"""Writes all metrics of the node in the format that a scraper accepts."""

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

__all__ = ["Scrape"]


class Scrape:
    """All metrics of a node.

    Args:
        collectors: what collects the metrics.
    """

    def __init__(self, *collectors: Collector) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        for collector in collectors:
            self._registry.register(collector)

    def __call__(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their media type.

        Args:
            accept: the value of the header `Accept`; OpenMetrics is sent to those that ask for it.
        """
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type
