"""Runs one node: opens socket and log, replays the log, serves in one or several processes until SIGTERM or SIGINT."""

import gc
import logging
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn
from urllib.parse import urlsplit

import orjson

from strata.registry.access.auth_file import AuthFileError
from strata.registry.access.watched_file import WatchedFile
from strata.registry.app import create_app
from strata.registry.hosts import is_loopback
from strata.registry.http_server import HttpServer
from strata.registry.parsing import share_caches
from strata.registry.process import end_start
from strata.registry.settings import LogFormat, SettingRefused, Settings
from strata.registry.transport.front import Front
from strata.registry.transport.link import Link
from strata.registry.transport.tls import TlsContexts
from strata.registry.variables import unknown_variables
from strata.registry.workers.board import Board, Seat
from strata.registry.workers.parent import Lines, Parent
from strata.registry.writer import Writer
from strata.storage.addresses import without_password
from strata.storage.log import Log, LogError
from strata.storage.open_log import check_url, is_memory, not_opened, open_log
from strata.storage.state import State

__all__ = ["StartError", "open_for", "run"]

_SHARED_S = 5.0  # a State read longer ago is not read on from: the log may have been compacted or replaced since
_log = logging.getLogger("strata")


class StartError(Exception):
    """A failure to start the node or open its log; the message says why and what to do."""


def run(settings: Settings) -> None:
    """Serve until a signal ends the process.

    Raises:
        SettingRefused: if a setting cannot be used.
        StartError: if the address is taken, or the log cannot be opened or read.
    """
    started = time.monotonic()
    _check(settings)
    _set_up_logging(settings)
    for sentence in unknown_variables(os.environ):
        _log.warning("%s", sentence)
    tls = TlsContexts(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn shuts down gracefully on either signal, and then raises it again for the previous handler.
        signal.signal(number, _end)
    listener = _bind(settings)
    url = settings.url_for(listener.getsockname()[1])
    if not is_loopback(settings.host):
        _warn_of_clients(settings)
    _log.info("opening %s", without_password(settings.log))

    def tell_started() -> None:
        _log.info("serving %s on %s, ready in %.2f s", without_password(settings.log), url, time.monotonic() - started)

    if settings.worker_count > 1:
        _serve_in_workers(settings, tls, url, listener, tell_started)
    else:
        _serve_alone(settings, tls, url, listener, tell_started)


def _warn_of_clients(settings: Settings) -> None:
    """Warn of what clients on the network can do, or can be robbed of."""
    if not settings.identity.is_on:
        _log.warning(
            "there is no access control: every client that can reach %s can register and delete schemas; "
            "docs/guides/access.md sets it up",
            settings.listen,
        )
    elif not settings.tls_certfile:
        _log.warning(
            "clients send passwords and tokens to %s without encryption; set --tls-certfile, unless a reverse proxy on "
            "this machine encrypts",
            settings.listen,
        )


@contextmanager
def _logging_the_end() -> Iterator[None]:
    """Log the end of serving; uvicorn raises the signal again that ended it, which leaves as SystemExit."""
    try:
        yield
    finally:
        _log.info("stopped")


def _serve_alone(
    settings: Settings, tls: TlsContexts, url: str, listener: socket.socket, started: Callable[[], None]
) -> None:
    """Serve in this process."""
    seat = Seat()
    with closing(open_for(settings, url)) as log:
        app = _app(log, settings, seat, tls)
        end_start()
        with _logging_the_end():
            HttpServer(app, settings, seat, tls=tls, started=started).run(sockets=[listener])


def _serve_in_workers(
    settings: Settings, tls: TlsContexts, url: str, listener: socket.socket, started: Callable[[], None]
) -> None:
    """Serve in several processes that share the socket and the State as replayed here.

    Nothing that a fork would copy in a broken state is left when the workers start: the log is closed, with its
    connections and threads: Kafka's clients end their threads with the last reference to them.
    """
    with closing(open_for(settings, url)) as log:
        state = _replayed(log, settings)
    del log
    replayed_at = time.monotonic()
    gc.freeze()
    board = Board(settings.worker_count)
    share = settings.shared_by(board.workers)
    with TemporaryDirectory(prefix="strata-") as folder, socket.socket(socket.AF_UNIX) as entrance:
        path = Path(folder, "writer")
        entrance.bind(str(path))
        entrance.listen(board.workers)

        def orphaned() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(1)

        def work(seat: Seat, lines: Lines) -> None:
            _set_up_logging(settings, worker=seat.number)
            share_caches(board.workers)
            tls.refresh(settled=True)  # this worker may replace one that died long after the start
            with closing(open_for(settings, url if seat.writes else None)) as log:
                fresh = time.monotonic() - replayed_at < _SHARED_S
                known, link = state if fresh else None, None if seat.writes else Link(path)
                app = _app(log, share, seat, tls, state=known, link=link)
                end_start()
                HttpServer(
                    app,
                    share,
                    seat,
                    tls=tls,
                    started=lines.tell_started,
                    parent=lines.from_parent,
                    orphaned=orphaned,
                    entrance=entrance if seat.writes else None,
                ).run(sockets=[listener])

        with _logging_the_end():
            Parent(board, work, started=started, drain_s=settings.drain_seconds).run()


def _replayed(log: Log, settings: Settings) -> State:
    """Return the State at the end of a log.

    Raises:
        StartError: if the log cannot be read.
    """
    writer = Writer(log)
    with _reading(settings):
        writer.replay()
    return writer.state


def _app(
    log: Log,
    settings: Settings,
    seat: Seat,
    tls: TlsContexts,
    *,
    state: State | None = None,
    link: Link | None = None,
) -> Front:
    """Return the app over a log; see `create_app`.

    Raises:
        StartError: if the log cannot be read.
    """
    with _reading(settings):
        name = _log_name(settings.log)
        return create_app(log, settings, cluster_id=name, state=state, seat=seat, link=link, calling=tls.calling)


@contextmanager
def _reading(settings: Settings) -> Iterator[None]:
    try:
        yield
    except LogError as error:
        raise StartError(f"the log {without_password(settings.log)} cannot be read: {error}") from None


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise StartError(
            f"cannot listen on {settings.listen}: {error.strerror}. Choose another address with --listen HOST:PORT"
        ) from None
    listener.set_inheritable(True)
    return listener


def _check(settings: Settings) -> None:
    """Validate the log's URL and the file with its client's settings before any socket or log is opened.

    Raises:
        SettingRefused: if one of them cannot be used; the message says which, why and what is allowed.
    """
    try:
        check_url(settings.log)
    except ValueError as error:
        raise SettingRefused(f"--log (or STRATA_LOG) is {without_password(settings.log)!r}: {error}") from None
    try:
        settings.kafka_settings()
    except SettingRefused as error:
        raise SettingRefused(f"--kafka-config (or STRATA_KAFKA_CONFIG): {error}") from None
    try:
        if settings.auth_file:
            WatchedFile(settings.auth_file)
    except AuthFileError as error:
        raise SettingRefused(f"--auth-file (or STRATA_AUTH_FILE): {error}") from None
    if settings.worker_count > 1 and is_memory(settings.log):
        raise SettingRefused(
            f"--workers (or STRATA_WORKERS) is {settings.workers}: a log in memory belongs to one process; expected 1"
        )


def open_for(
    settings: Settings, url: str | None = None, *, must_exist: bool = False, named: str = "--log (or STRATA_LOG)"
) -> Log:
    """Open the log of the settings.

    Args:
        settings: the settings that name the log.
        url: the URL under which other nodes reach this one; None for a command.
        must_exist: whether to fail, instead of creating the log, if it does not exist.
        named: what the user calls the setting or argument, for error messages.

    Raises:
        StartError: if it cannot be opened; the message says why and what to do, without a password.
    """
    try:
        return open_log(
            settings.log,
            advertised_url=url,
            fencing=settings.fencing,
            kafka_config=settings.kafka_settings(),
            must_exist=must_exist,
        )
    except SettingRefused as error:
        raise StartError(f"--kafka-config (or STRATA_KAFKA_CONFIG): {error}") from None
    except ValueError as error:
        raise StartError(f"{named} is {without_password(settings.log)!r}: {error}") from None
    except LogError as error:
        raise StartError(not_opened(settings.log, error)) from None


def _log_name(log_url: str) -> str:
    """Return a name for `/v1/metadata/id` that distinguishes logs and holds no secret."""
    parts = urlsplit(log_url)
    return f"{parts.scheme}:{parts.hostname or ''}{':' if parts.hostname else ''}{PurePath(parts.path).name}"


class _JsonLines(logging.Formatter):
    """A log formatter that writes one JSON object per line."""

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if self._worker is not None:
            content["worker"] = self._worker
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(content).decode()


def _set_up_logging(settings: Settings, *, worker: int | None = None) -> None:
    """Log to standard error, each record in one write, so that lines of several workers do not mix."""
    handler = logging.StreamHandler(sys.stderr)
    name = "%(name)s" if worker is None else f"worker {worker} %(name)s"
    text = logging.Formatter(f"%(asctime)s %(levelname)-7s {name}: %(message)s")
    handler.setFormatter(_JsonLines(worker) if settings.log_format is LogFormat.JSON else text)
    logging.basicConfig(level=settings.log_level.value.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
