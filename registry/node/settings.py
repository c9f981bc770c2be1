"""The settings of the service that belong to no feature."""

import os
import re
import socket
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.properties import PropertiesRefused, read_properties
from strata.registry.node.hosts import ANY, host_and_port, host_name, is_loopback
from strata.registry.node.setting_types import Lowered, base_url, listed, secret_file
from strata.registry.node.tls_settings import TlsSettings
from strata.storage.kafka.fencing import Fencing
from strata.storage.lease import LONGEST_LEASE_S
from strata.storage.open_log import is_memory

__all__ = [
    "PREFIX",
    "CoreSettings",
    "LogFormat",
    "LogLevel",
    "Reads",
    "SettingRefused",
    "properties_in",
    "usable_cores",
]

PREFIX = "STRATA_"
_MOST_WORKERS = 256
_OWN_PORTS = {"http": ":80", "https": ":443"}
_DURATION, _UNITS = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s)"), {"ms": 0.001, "s": 1.0}


def usable_cores(cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Return how many cores this process may use, at least 1.

    A quota of control groups, version 1 or 2, counts as its rounded number of cores. A container sees its own group at
    the root of the file system; a service of the machine finds it by its path. The smallest quota on that path counts.

    Args:
        cgroups: where the control groups are mounted.
        own: the file that names the groups of this process.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = (quota for folder in _folders(cgroups, own) if (quota := _quota(folder)) is not None)
    return max(1, min([cores, *map(round, quotas)]))


def _folders(cgroups: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of the groups that can limit this process, up to the roots."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    for line in ("0::/", "0:cpu:/", *lines):
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            root = cgroups / "cpu" if controllers else cgroups
            group = PurePosixPath(path.lstrip("/"))
            yield from (root / part for part in (group, *group.parents))


def _quota(folder: Path) -> float | None:
    """Return the quota of a group in cores; None if it has none."""
    for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / file).read_text() for file in files).split()
            return int(quota) / int(period) if int(quota) > 0 else None
        except (OSError, ValueError):  # no such group; the quota is "max"
            continue
    return None


def _lease(value: object) -> object:
    """Return a duration such as 100ms or 0.1s in seconds; a number alone is refused, unless it is 0."""
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    seconds = 0.0 if value in ("0", 0) else float(match[1]) * _UNITS[match[2]] if match else -1.0
    if not 0 <= seconds <= LONGEST_LEASE_S:
        raise ValueError(f"expected a duration from 0ms to {LONGEST_LEASE_S * 1000:.0f}ms, such as 100ms")
    return seconds


class Reads(StrEnum):
    """Whether reads of mutable data first catch up with the log."""

    LINEARIZABLE = "linearizable"
    LOCAL = "local"


class LogLevel(StrEnum):
    """The lowest severity that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


class SettingRefused(ValueError):
    """A setting that cannot be used; the message says which, why and what is allowed."""


def _properties(value: Path | None) -> Path | None:
    if value is not None and not value.is_file():
        raise ValueError("no such file; expected a file with one NAME=VALUE per line")
    return value


def _hosts(value: str | None) -> str | None:
    for name in _listed(value):
        if name != ANY and host_name(name) != name.strip("[]"):
            raise ValueError(f"expected host names without port, separated by commas, or {ANY}; got {name!r}")
    return value


def _origins(value: str | None) -> str | None:
    for origin in _listed(value):
        scheme, _, authority = origin.partition("://")
        if origin != ANY and (scheme not in ("http", "https") or not authority or "/" in authority):
            raise ValueError(
                f"expected origins such as https://ui.example.com, separated by commas, or {ANY}; got {origin!r}"
            )
        if authority.endswith(_OWN_PORTS.get(scheme, ANY)):
            raise ValueError(f"browsers leave out the port of {origin!r}; write the origin without it")
    return value


def _listed(value: str | None) -> list[str]:
    return [item.lower() for item in listed(value)]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class CoreSettings(TlsSettings):
    """The settings that belong to no feature; each field is a flag and a variable, as in `Settings`."""

    listen: Annotated[str, AfterValidator(host_and_port)] = Field(
        "127.0.0.1:8081", description="address to listen on, as HOST:PORT; port 0 picks a free port"
    )
    log: str = Field(
        "sqlite:///strata.db",
        description="log that stores the schemas: sqlite:///FILE, postgresql+psycopg://…, "
        "kafka://HOST:PORT[,…]/_schemas or memory:",
    )
    advertised_url: Annotated[str | None, AfterValidator(base_url)] = Field(
        None, description="base URL at which other nodes reach this one  [http://LISTEN, or https://LISTEN with TLS]"
    )
    node_secret: Annotated[Path | None, AfterValidator(secret_file)] = Field(
        None,
        description="file with a secret of 32 characters or more that all nodes share, to tell each other who asks for "
        "a forwarded write; with access control, a node without it forwards no writes",
    )
    fencing: Annotated[Fencing, Lowered] = Field(
        Fencing.PEN,
        description="how a Kafka log prevents two nodes from writing at once; with `none`, run one writing node only",
    )
    kafka_config: Annotated[Path | None, AfterValidator(_properties)] = Field(
        None, description="file with librdkafka settings for a Kafka log (TLS, SASL), one NAME=VALUE per line"
    )
    reads: Annotated[Reads, Lowered] = Field(
        Reads.LINEARIZABLE,
        description="`local` answers without checking the log for new records: faster, but possibly stale",
    )
    read_lease: Annotated[float, BeforeValidator(_lease)] = Field(
        "100ms",
        validate_default=True,
        description="how long the Kafka node that writes may answer from memory after it last asked the log; a new "
        "writer waits as long. 0 beside nodes that know no leases (docs/decisions/0030): it then always asks",
    )
    compatibility_level: Annotated[Level, BeforeValidator(_upper)] = Field(
        Level.BACKWARD, description="compatibility level of subjects without their own"
    )
    allowed_hosts: Annotated[str | None, AfterValidator(_hosts)] = Field(
        None,
        description="comma-separated host names that requests may use, besides LISTEN, the advertised URL and "
        "loopback; `*` allows any  [on a loopback address none, otherwise any]",
    )
    allowed_origins: Annotated[str | None, AfterValidator(_origins)] = Field(
        None,
        description="comma-separated origins whose web pages may write, besides the registry's own; `*` allows any",
    )
    cors_origins: Annotated[str | None, AfterValidator(_origins)] = Field(
        None,
        description="comma-separated origins whose web pages may call this registry from a browser (CORS); `*` allows "
        "any  [none]",
    )
    workers: int | None = Field(
        None,
        gt=0,
        le=_MOST_WORKERS,
        description="number of processes that serve together; more than one needs a shared log  "
        "[the number of usable cores; 1 for memory:]",
    )
    max_connections: int = Field(4096, gt=0, description="maximum number of open client connections")
    max_headers: int = Field(100, gt=0, description="maximum number of headers in a request")
    max_header_bytes: int = Field(
        32 << 10, gt=0, description="maximum size of a request's target and headers, in bytes"
    )
    request_seconds: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="seconds to wait for a complete request, or for a client that does not read its response",
    )
    idle_seconds: int = Field(75, gt=0, le=3600, description="seconds that a connection may stay idle between requests")
    max_body: int = Field(1 << 20, gt=0, description="maximum size of a request body, in bytes")
    max_depth: int = Field(200, gt=0, le=200, description="maximum nesting depth of a schema")
    max_fields: int = Field(100_000, gt=0, description="maximum number of fields or subschemas in a schema")
    max_branches: int = Field(10_000, gt=0, description="maximum number of branches in a union, oneOf, anyOf or allOf")
    max_references: int = Field(
        1_000, gt=0, description="maximum number of schemas that one schema refers to, directly or indirectly"
    )
    max_pattern: int = Field(10_000, gt=0, description="maximum length of a regular expression, in characters")
    max_backtracks: int = Field(
        1_000, gt=0, description="maximum number of backtracking steps when a regular expression is matched"
    )
    max_seconds: float = Field(5.0, gt=0, description="maximum computing time for the schemas of a request, in seconds")
    max_waiting: int = Field(2_000, gt=0, description="maximum number of waiting writes; further ones get status 503")
    max_waiting_bytes: int = Field(
        128 << 20, gt=0, description="maximum total size of the bodies of waiting writes, in bytes"
    )
    write_timeout: float = Field(
        30.0, gt=0, le=3600, description="seconds after which a write that has not reached the log fails"
    )
    read_timeout: float = Field(
        5.0, gt=0, le=3600, description="seconds after which a read that waits for the log gets status 503"
    )
    max_keys: int = Field(
        10_000, gt=0, description="maximum number of key encryption keys, and of data encryption keys"
    )
    drain_seconds: float = Field(
        1.0,
        ge=0,
        le=600,
        description="seconds that a node continues to serve after SIGTERM, while it reports not ready",
    )
    log_level: Annotated[LogLevel, Lowered] = Field(LogLevel.INFO, description="lowest severity to log")
    log_format: Annotated[LogFormat, Lowered] = Field(LogFormat.TEXT, description="format of the log lines")
    access_log: bool = Field(False, description="log every request (reduces throughput)")
    slow_request: float = Field(
        5.0, ge=0, le=3600, description="log requests that take this many seconds or more as slow; 0 logs none"
    )

    @cached_property
    def limits(self) -> Limits:
        """The limits on schemas in one request."""
        return Limits(
            depth=self.max_depth,
            fields=self.max_fields,
            branches=self.max_branches,
            references=self.max_references,
            pattern=self.max_pattern,
            backtracks=self.max_backtracks,
            seconds=self.max_seconds,
        )

    @cached_property
    def worker_count(self) -> int:
        """The number of processes that serve: by default one for each usable core."""
        if self.workers is not None:
            return self.workers
        return 1 if is_memory(self.log) else min(usable_cores(), _MOST_WORKERS)

    def shared_by(self, workers: int) -> Self:
        """Return the settings of one of several workers: its share of what is limited for the whole node."""
        return self.model_copy(update={"max_connections": -(-self.max_connections // workers)})

    @property
    def hosts(self) -> frozenset[str] | None:
        """Host names that requests may use besides those of loopback; None allows any."""
        if self.allowed_hosts is None and not is_loopback(self.host):
            return None
        return frozenset({self.host, urlsplit(self.advertised_url or "").netloc, *_listed(self.allowed_hosts)})

    @property
    def origins(self) -> frozenset[str]:
        """Origins whose pages may write besides those of the same host."""
        own = urlsplit(self.advertised_url or "")
        return frozenset({f"{own.scheme}://{own.netloc}", *_listed(self.allowed_origins), *self.cors})

    @property
    def cors(self) -> list[str]:
        """Origins whose pages may read answers and write."""
        return _listed(self.cors_origins)

    @property
    def host(self) -> str:
        """The address to listen on."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port to listen on."""
        return int(self.listen.rpartition(":")[2])

    def read_node_secret(self) -> bytes | None:
        """Return the secret that all nodes share; None if there is none."""
        return self.node_secret.read_bytes().strip() if self.node_secret else None

    def kafka_settings(self) -> dict[str, str]:
        """Return the librdkafka settings from the file that `kafka_config` names.

        Raises:
            SettingRefused: if the file cannot be read, or a line is not NAME=VALUE.
        """
        return properties_in(self.kafka_config)

    def url_for(self, port: int) -> str:
        """Return the base URL under which other nodes reach this one, given the port in use."""
        if self.advertised_url:
            return self.advertised_url
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared, not bound
        scheme = "https" if self.tls_certfile else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def properties_in(file: Path | None) -> dict[str, str]:
    """Return the properties in a file of lines NAME=VALUE; none without a file.

    Raises:
        SettingRefused: if the file cannot be read, or a line is not NAME=VALUE.
    """
    try:
        return read_properties(file) if file else {}
    except PropertiesRefused as error:
        raise SettingRefused(str(error)) from None
