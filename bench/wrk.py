"""The load generator `wrk`, which costs a fraction of a server's time for each request.

Each run is one thread that keeps some connections busy, each with one request at a time. A request is a Lua expression
in which `n` is the number of the request and `run` a number that no other run has, so that requests can differ.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

__all__ = ["Load", "Request", "check_installed", "start", "waited_for"]

_SCRIPT = """
local n, run = 0, {run}
local headers = {{ ["Content-Type"] = "application/vnd.schemaregistry.v1+json"{headers} }}
request = function()
  n = n + 1
  return wrk.format("{method}", {path}, headers, {body})
end
{pace}
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("\\nresult %d %d %.3f %.3f %d\\n", summary.requests, summary.duration,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, e.connect + e.read + e.write + e.status + e.timeout))
end
"""
# Slots of one rate for all connections of the run: a request waits for its slot, and its latency begins there.
_PACE = """
local ffi = require("ffi")
ffi.cdef("typedef struct {{ long s; long us; }} moment; int gettimeofday(moment *, void *);")
local moment, due = ffi.new("moment"), 0
delay = function()
  ffi.C.gettimeofday(moment, nil)
  local now = tonumber(moment.s) * 1000 + tonumber(moment.us) / 1000
  if due < now - 100 then due = now end
  due = due + {interval_ms}
  return math.max(0, math.floor(due - now))
end
"""
_RESULT = re.compile(r"^result (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)$", re.MULTILINE)
_runs = itertools.count(os.getpid() * 1000)
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `path` and `body` are Lua expressions."""

    method: str
    path: str
    body: str = "nil"


@dataclass(frozen=True, slots=True)
class Load:
    """How many requests were answered in which time, and how long an answer took."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        """The answers per second."""
        return self.requests / self.seconds


def check_installed() -> None:
    """End the process if there is no `wrk`."""
    if shutil.which("wrk") is None:
        sys.exit("this measurement needs the load generator wrk (apt install wrk)")


def start(
    address: str,
    request: Request,
    connections: int,
    seconds: int,
    headers: Mapping[str, str] = _NO_HEADERS,
    *,
    rate: float = 0.0,
) -> "subprocess.Popen[str]":
    """Start to send requests to a loopback address for some seconds; `waited_for` returns the result.

    Args:
        address: the scheme, host and port, such as `https://127.0.0.1:8081`; no certificate is checked.
        request: what is asked.
        connections: how many connections send one request at a time.
        seconds: for how long.
        headers: further headers of each request, such as credentials.
        rate: how many requests are sent a second; by default as many as are answered.
    """
    pace = _PACE.format(interval_ms=1000 / rate) if rate else ""
    more = "".join(f', ["{name}"] = "{value}"' for name, value in headers.items())
    with tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False) as script:
        script.write(
            _SCRIPT.format(
                run=next(_runs), method=request.method, path=request.path, body=request.body, headers=more, pace=pace
            )
        )
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout=30s", f"-s{script.name}"]
    return subprocess.Popen([*command, address], stdout=subprocess.PIPE, text=True)


def waited_for(wrk: "subprocess.Popen[str]") -> Load:
    """Wait until a run has ended, and return its result; end this process if a request failed."""
    output, _ = wrk.communicate(timeout=120)
    Path(str(wrk.args[-2]).removeprefix("-s")).unlink()  # type: ignore[index]
    found = _RESULT.search(output)
    if found is None or int(found[5]):
        sys.exit(f"requests failed:\n{output}")
    return Load(int(found[1]), int(found[2]) / 1e6, float(found[3]), float(found[4]))
