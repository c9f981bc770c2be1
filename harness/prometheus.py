"""A real Prometheus on loopback that scrapes registries, and `promtool`, which checks rules.

    with Prometheus(["127.0.0.1:8081"], env="test") as prometheus:
        prometheus.query("sum(strata_requests_total)")

Both come with Debian's package `prometheus`; it is installed if that is possible.
"""

import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.processes import Process, free_port, start_tied, stop_process, tail

__all__ = ["Prometheus", "find_tool"]

_HOST = "127.0.0.1"
_READY_S = 180.0
_INSTALL_S = 300
_POLL_S = 0.05


@functools.cache
def find_tool(name: str) -> str | None:
    """Return the path of `prometheus` or `promtool`; None if it is not there and cannot be installed."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "--yes", "--no-install-recommends", "prometheus"]
        subprocess.run(command, capture_output=True, timeout=_INSTALL_S, check=False)
        found = shutil.which(name)
    return found


class Prometheus:
    """A Prometheus that scrapes some targets twice a second, in the job `schema-registry`.

    Args:
        targets: the addresses, as HOST:PORT.
        labels: further labels of all targets.

    Attributes:
        moment: the time of all queries, in seconds since the epoch; None for now.
    """

    def __init__(self, targets: Sequence[str], **labels: str) -> None:
        self._targets, self._labels = list(targets), labels
        self._port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="strata-prometheus-"))
        self._process: Process | None = None
        self.moment: float | None = None

    def __enter__(self) -> Self:
        binary = find_tool("prometheus")
        assert binary, "there is no prometheus"
        jobs = [{"job_name": "schema-registry", "static_configs": [{"targets": self._targets, "labels": self._labels}]}]
        config = self._folder / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "500ms"}, "scrape_configs": jobs}))
        log = self._folder / "prometheus.log"
        command = [binary, f"--config.file={config}", f"--storage.tsdb.path={self._folder / 'data'}",
                   f"--web.listen-address={_HOST}:{self._port}"]  # fmt: skip
        self._process = start_tied(command, log=log)
        deadline = time.monotonic() + _READY_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Prometheus did not start:\n{tail(log)}")
            time.sleep(_POLL_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            stop_process(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the series of an expression, now or at `moment`: labels and value.

        Raises:
            RuntimeError: Prometheus rejects the expression.
        """
        at = {} if self.moment is None else {"time": repr(self.moment)}
        found = self._get("query", query=expression, **at)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def label_values(self, label: str, series: str) -> list[str]:
        """Return the values of a label of some series."""
        return list(self._get(f"label/{label}/values", **{"match[]": series}))

    def _get(self, what: str, **query: str) -> Any:
        url = f"http://{_HOST}:{self._port}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{query}: {error.read().decode()}") from None

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._port}/-/ready", timeout=1) as response:
                return bool(response.status == 200)
        except OSError:
            return False
