"""Open the log that a URL names.

The module of a log, with its driver, is imported only when that log is opened: a registry on SQLite runs without the
Kafka client and its extra.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

from strata.storage.addresses import without_password
from strata.storage.kafka.fencing import Fencing
from strata.storage.lease import ReadLease
from strata.storage.log import Log, LogError, MemoryLog
from strata.storage.reopening_log import ReopeningLog

__all__ = ["check_url", "is_memory", "not_opened", "open_log"]

_FORMS = (
    "sqlite:///FILE, postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, kafka://HOST:PORT[,HOST:PORT…]/TOPIC, or memory:"
)
_SCHEME = re.compile(r"([a-z][a-z0-9+]*):", re.IGNORECASE)
_KAFKA = re.compile(r"kafka://(?P<bootstrap>[^/?#\s]+)/(?P<topic>[A-Za-z0-9._-]{1,249})")
_SQL = {"sqlite", "sqlite+pysqlite", "postgresql", "postgres", "postgresql+psycopg"}
_SERVICE = ("http", "https")
_EXTRAS = {"confluent_kafka": "kafka", "google_crc32c": "kafka", "sqlalchemy": "server", "psycopg": "postgres"}


def open_log(
    url: str,
    *,
    advertised_url: str | None = None,
    fencing: Fencing = Fencing.PEN,
    kafka_config: Mapping[str, str] | None = None,
    must_exist: bool = False,
    signature: tuple[int, bytes, bytes, int] | None = None,
    lease: ReadLease | None = None,
) -> Log:
    """Open the log at a URL.

    Args:
        url: `sqlite:///FILE`, `postgresql+psycopg://…`, `kafka://HOST:PORT[,…]/TOPIC` or `memory:`.
        advertised_url: The URL at which other nodes reach this one; for logs to which one node writes at a time.
        fencing: How a Kafka log keeps a second writer out.
        kafka_config: Settings of librdkafka, for example for TLS and SASL.
        must_exist: Refuse a missing file, table or topic instead of creating it.
        signature: That of `LogStatus`, from the process whose State the caller reads on from.
        lease: The read lease of the node, for a Kafka log with the pen; by default it has none.

    Raises:
        ValueError: The URL has none of these forms.
        LogError: The log cannot be reached or used, or its driver is not installed.
    """
    try:
        return _open(url, advertised_url, fencing, kafka_config or {}, must_exist, signature, lease)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise LogError(
            f"missing package {error.name}; install strata-registry[{extra}] (docs/installing.md)"
        ) from error


def _open(
    url: str,
    advertised_url: str | None,
    fencing: Fencing,
    kafka_config: Mapping[str, str],
    must_exist: bool,
    signature: tuple[int, bytes, bytes, int] | None,
    lease: ReadLease | None,
) -> Log:
    scheme = _scheme(url)
    if scheme == "memory":
        return MemoryLog()
    if scheme in _SQL:
        from strata.storage.sql.log import SqlLog

        return SqlLog(url, must_exist=must_exist)
    from strata.storage.kafka.log import KafkaLog

    kafka = _KAFKA.fullmatch(url)
    assert kafka  # noqa: S101 - a URL with the scheme `kafka` has this form
    bootstrap, topic = unquote(kafka["bootstrap"]), kafka["topic"]

    known = iter([signature])  # for the first opening alone: a later one is of another topic

    def opened(must_exist: bool) -> Log:
        return KafkaLog(
            bootstrap,
            topic,
            advertised_url=advertised_url,
            fencing=fencing,
            config=kafka_config,
            must_exist=must_exist,
            signature=next(known, None),
            lease=lease,
        )

    return ReopeningLog(opened, must_exist=must_exist)


def check_url(url: str) -> None:
    """Check the form of a log's URL without opening the log.

    Raises:
        ValueError: The URL has none of the forms that `open_log` takes.
    """
    if _scheme(url) in _SQL:
        from strata.storage.sql.database import checked_url

        checked_url(url)


def is_memory(url: str) -> bool:
    """Return whether the log at a valid URL lives in the memory of the process that opens it."""
    return _scheme(url) == "memory"


def _scheme(url: str) -> str:
    """Return `memory`, one of `_SQL`, or `kafka`.

    Raises:
        ValueError: The URL is not that of a log.
    """
    match = _SCHEME.match(url)
    scheme = match[1].lower() if match else ""
    if scheme in _SQL or (scheme == "memory" and url[len("memory:") :].strip("/") == ""):
        return scheme
    kafka = _KAFKA.fullmatch(url)
    if kafka and "@" in unquote(kafka["bootstrap"]):  # librdkafka would name it, with the password, in its errors
        raise ValueError("a Kafka URL holds no credentials; expected sasl.username and sasl.password in --kafka-config")
    if kafka and _has_ports(unquote(kafka["bootstrap"])):
        return scheme
    if scheme in _SERVICE:
        raise ValueError(f"expected the URL of a log, got that of a service; a log is one of {_FORMS}")
    # The message repeats only the scheme: the rest may hold a password.
    raise ValueError(f"{scheme + ':…' if scheme else 'this'} is not the URL of a log; expected one of {_FORMS}")


def _has_ports(bootstrap: str) -> bool:
    """Return whether the text after the colon of each host is a number; a client would retry other hosts in vain."""
    ends = (server.rpartition(":") for server in bootstrap.split(","))
    return all(not colon or end.endswith("]") or end.isdecimal() for _, colon, end in ends)


def not_opened(url: str, error: LogError) -> str:
    """Return a one-line message that a log cannot be opened and why.

    The log's name occurs once, although some errors begin with it.
    """
    name = without_password(url)
    return f"cannot open the log {name}: {' '.join(str(error).removeprefix(f'{name}: ').split())}"
