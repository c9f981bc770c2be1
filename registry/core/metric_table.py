"""The table of all metrics of our own: names, kinds, labels with all their values, and what each one means.

A label's values are a closed set that is written here, so that no client can make the number of series grow: no
subject, path, principal or address is ever a label. Routes are a closed set too; `requests.py` counts them. Confluent's
names are in `features/metrics/confluent.py`. docs/metrics.md repeats this table, and a test compares the two.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from strata.registry.core import errors

__all__ = ["CACHES", "CLASSES", "FORMATS", "METRICS", "SECONDS", "Kind", "Metric", "other"]


class Kind(StrEnum):
    """The type of a metric, as Prometheus knows it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One metric.

    Attributes:
        name: the name; that of a counter ends in `_total`.
        kind: the type.
        help: what it counts.
        labels: the labels; with all their values for what processes count in cells (`tally.py`), otherwise empty.
        bounds: the upper bounds of a histogram's buckets; empty for other kinds.
        in_cells: whether processes count it in cells; otherwise it is read when the metrics are.
    """

    name: str
    kind: Kind
    help: str
    labels: Mapping[str, tuple[str, ...]] = {}
    bounds: tuple[float, ...] = ()
    in_cells: bool = False


SECONDS: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The bounds of all histograms of durations, in seconds."""
_SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
CLASSES: Final = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")
"""The classes of statuses; `none` if the client left before the answer."""
FORMATS: Final = ("AVRO", "PROTOBUF", "JSON", "other")
CACHES: Final = ("hot_answers", "kept_answers", "schemas", "outlines", "normal_texts", "verdicts")
_CODES: Final = (*map(str, errors.codes()), "other")
_LIMITS: Final = (
    "body_size", "computing_time", "connections", "header_size", "login_rate", "request_rate", "request_time",
    "target_size", "waiting_writes",
)  # fmt: skip
_MECHANISMS: Final = ("basic", "bearer", "mtls", "proxy", "none", "other")
_ACCESS_OUTCOMES: Final = ("allowed", "unauthorized", "forbidden", "throttled", "failed")
_NOT_IN_CELLS: Final[tuple[str, ...]] = ()

_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM


def _counter(name: str, text: str, **labels: tuple[str, ...]) -> Metric:
    return Metric(name, _C, text, labels, in_cells=True)


def _histogram(name: str, text: str, bounds: tuple[float, ...] = SECONDS, **labels: tuple[str, ...]) -> Metric:
    return Metric(name, _H, text, labels, bounds, in_cells=True)


def _read(name: str, text: str, *labels: str, kind: Kind = _G) -> Metric:
    return Metric(name, kind, text, dict.fromkeys(labels, _NOT_IN_CELLS))


METRICS: Final = (
    # --- requests
    _read("strata_requests_total", "requests answered", "method", "route", "status", kind=_C),
    Metric(
        "strata_request_duration_seconds", _H, "time from a request's head to the end of its answer",
        dict.fromkeys(("method", "route", "status"), _NOT_IN_CELLS), SECONDS,
    ),
    _read("strata_request_bytes_total", "bytes of request bodies that were read", "method", "route", kind=_C),
    _read("strata_response_bytes_total", "bytes of response bodies", "method", "route", kind=_C),
    Metric("strata_requests_in_flight", _G, "requests that are being answered", in_cells=True),
    _counter("strata_errors_total", "error answers, by their error_code", code=_CODES),
    _read("strata_connections", "open connections of clients"),
    _counter("strata_connections_opened_total", "connections that clients have opened"),
    _counter("strata_limits_hit_total", "requests and connections refused because of a limit", limit=_LIMITS),
    # --- what is registered
    _read("strata_subjects", "subjects, by whether they have a live version", "state"),
    _read("strata_versions", "versions of subjects, live or soft-deleted", "state", "format"),
    _read("strata_schemas", "schemas with an id of their own in their context"),
    _read("strata_contexts", "contexts"),
    # --- the State of the node and the log
    _read("strata_ready", "1 if the node is ready for requests, as /health/ready says"),
    _read("strata_write_ready", "1 if the node can write, as /health/write says; 0 on a standby"),
    _read("strata_workers", "worker processes of the node"),
    _read("strata_build_info", "1, with the version of the service", "version"),
    _read("strata_log_records_read", "records of the log that the State was made from"),
    _read("strata_log_records_set_aside", "records that could not be read into the State"),
    _read("strata_log_foreign_records", "records that others wrote while this node held the pen"),
    _read("strata_log_offset", "offset up to which the slowest worker has read the log"),
    _read("strata_log_end_offset", "offset of the log's last record, when last looked at"),
    _read("strata_log_behind_offsets", "offsets between the slowest worker and the end of the log"),
    _read("strata_log_read_age_seconds", "time since the log was last read, of the worker that waits longest"),
    _read("strata_log_holds_pen", "1 if this node holds the pen; absent for logs without a pen"),
    _read("strata_log_pen_taken_total", "times that this node took the pen", kind=_C),
    _read("strata_log_pen_lost_total", "times that this node lost the pen", kind=_C),
    _histogram("strata_log_read_duration_seconds", "reads of the log to its end, with applying what was new",
               outcome=("ok", "failed")),
    _histogram("strata_log_append_duration_seconds", "appends to the log", outcome=("ok", "conflict", "failed")),
    _counter("strata_log_conflicts_total", "appends decided again because another writer came first"),
    _histogram("strata_write_group_requests", "requests of each group of writes", _SIZES),
    _counter("strata_log_records_written_total", "records appended by this node"),
    # --- a standby
    _read("strata_standby", "1 if this registry copies another one as a standby, 0 otherwise"),
    _read("strata_standby_behind_seconds", "age of the newest complete copy; absent if this node follows nothing"),
    _read("strata_standby_reading_done", "pages or names that the present step of reading a service has read", "step"),
    _read("strata_standby_reading_total", "pages or names of the present step, 0 if that is not known", "step"),
    _counter("strata_standby_failures_total", "times that the copied registry could not be read or copied"),
    # --- exporters
    _read("strata_exporters", "exporters of the log, by whether they are running, failing or paused", "state"),
    _counter("strata_exporter_failures_total", "times that an exporter of this node could not copy"),
    # --- work and caches
    _histogram("strata_schema_parse_duration_seconds", "parsing of schemas that were not in a cache",
               format=FORMATS, outcome=("ok", "invalid", "given_up")),
    _histogram("strata_compatibility_check_duration_seconds", "compatibility checks that were not in a cache",
               format=FORMATS, verdict=("compatible", "incompatible", "given_up")),
    _counter("strata_cache_hits_total", "look-ups that found something", cache=CACHES),
    _counter("strata_cache_misses_total", "look-ups that found nothing", cache=CACHES),
    _counter("strata_cache_evictions_total", "entries that gave way to others", cache=CACHES),
    _read("strata_cache_bytes", "estimated bytes of the entries of all workers", "cache"),
    _read("strata_cache_entries", "entries of all workers", "cache"),
    # --- access
    _counter("strata_access_requests_total", "requests while access control is on",
             mechanism=_MECHANISMS, outcome=_ACCESS_OUTCOMES),
    _counter("strata_audit_lines_total", "lines of the audit", outcome=("written", "dropped")),
    _read("strata_auth_file_in_force", "1 if the newest auth file is in force; absent without one"),
    _counter("strata_auth_file_failures_total", "changed auth files that could not be used"),
    _read("strata_certificate_expiry_timestamp_seconds", "when the first certificate of a file ends, since the epoch",
          "certificate"),
)  # fmt: skip
"""All metrics of our own. Those of the process and of Python have the names of prometheus-client."""


def other(value: str, known: tuple[str, ...]) -> str:
    """Return a label's value; `other` for one that is not known."""
    return value if value in known else "other"
