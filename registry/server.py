"""Runs one node: opens socket and log, replays the log, serves in one or several processes until SIGTERM or SIGINT."""

import gc
import hashlib
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn
from urllib.parse import urlsplit

from strata import __version__
from strata.registry.app import FEATURES, create_app
from strata.registry.core.log_reader import RecentRecords
from strata.registry.core.parsing import load, share_caches
from strata.registry.core.writer import Writer
from strata.registry.features.access.auth_file import AuthFileError
from strata.registry.features.access.watched_file import is_exposed
from strata.registry.http.link import Followers, Link
from strata.registry.http.pipeline import Pipeline
from strata.registry.http.server import HttpServer
from strata.registry.http.tls import TlsContexts
from strata.registry.node.board import Board, Seat
from strata.registry.node.hosts import is_loopback
from strata.registry.node.log_opening import StartError, open_for
from strata.registry.node.logs.lines import set_up_logging
from strata.registry.node.parent import Lines, Parent
from strata.registry.node.process import end_start, process_age
from strata.registry.node.settings import LogFormat, SettingRefused
from strata.registry.settings import Settings
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.same_registry import is_same_registry
from strata.registry.variables import unknown_variables
from strata.storage.addresses import without_password
from strata.storage.lease import ReadLease
from strata.storage.log import Log, LogError
from strata.storage.open_log import check_url, is_memory
from strata.storage.state import State

__all__ = ["report_failure", "run"]

_SHARED_S = 5.0  # a State read longer ago is not read on from: the log may have been compacted or replaced since
_MOST_APART = 2  # workers that import by themselves what the start leaves out; further ones would take 4 MiB each
_SECRET_FILES = ("auth_file", "node_secret", "exporter_secret", "tls_keyfile", "oidc_client_secret", "kafka_config")
_log = logging.getLogger("strata")


class _Ended(SystemExit):
    """The end of the process by a signal that came before it served."""

    def __init__(self, number: int) -> None:
        super().__init__(0)
        self.signal = signal.Signals(number).name


def run(settings: Settings) -> None:
    """Serve until a signal ends the process.

    Raises:
        SettingRefused: if a setting cannot be used.
        StartError: if the address is taken, or the log cannot be opened or read.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn shuts down gracefully on either signal, and then raises it again for the previous handler.
        signal.signal(number, _end)
    set_up_logging(settings.log_level, as_json=settings.log_format is LogFormat.JSON)
    try:
        _run(settings)
    except _Ended as ended:
        _log.info("received %(signal)s during the start", {"event": "signal", "signal": ended.signal, "seconds": 0})
    _log.info("stopped", {"event": "stopped"})


def report_failure(error: Exception) -> None:
    """Log as JSON why `run` failed, or was not called."""
    set_up_logging("info", as_json=True)
    is_expected = isinstance(error, StartError | SettingRefused | TransferError | LogError | AuthFileError | OSError)
    reason = str(error) or type(error).__name__
    _log.error(
        "not serving: %(reason)s",
        {"event": "serve_failed", "reason": reason},
        exc_info=None if is_expected else error,
    )


def _run(settings: Settings) -> None:
    _check(settings)
    for sentence in unknown_variables(os.environ):
        _log.warning("%(text)s", {"event": "variable_unknown", "text": sentence})
    tls = TlsContexts(settings)
    listener = _bind(settings.listen, "--listen")
    metrics_at = _bind(settings.metrics_listen, "--metrics-listen") if settings.metrics_listen else None
    if metrics_at is not None:
        host, port = metrics_at.getsockname()[:2]
        _log.info("metrics at %(host)s:%(port)d", {"event": "metrics_at", "host": host, "port": port})
    url = settings.url_for(listener.getsockname()[1])
    if settings.follow and is_same_registry(settings.follow, url):
        raise StartError(f"--follow (or STRATA_FOLLOW) is {url}, which is this node; expected another registry")
    if not is_loopback(settings.host):
        _warn_of_clients(settings)
    _warn_of_files(settings)
    log = without_password(settings.log)
    _log.info("opening %(log)s", {"event": "log_opening", "log": log})

    def tell_started() -> None:
        _log.info(
            "serving %(log)s on %(url)s, ready in %(seconds).2f s",
            {"event": "ready", "log": log, "url": url, "seconds": round(process_age(), 3), "version": __version__},
        )

    if settings.worker_count > 1:
        _serve_in_workers(settings, tls, url, listener, metrics_at, tell_started)
    else:
        _serve_alone(settings, tls, url, listener, metrics_at, tell_started)


def _warn_of_files(settings: Settings) -> None:
    """Warn of files with secrets or rights that every user of the machine may read or change."""
    for flag in _SECRET_FILES:
        path = getattr(settings, flag)
        if path is not None and is_exposed(Path(path)):
            _log.warning(
                "every user of this machine may read or change the file of --%(flag)s, %(path)s; run chmod o-rw on it",
                {"event": "file_exposed", "flag": flag.replace("_", "-"), "path": str(path)},
            )


def _warn_of_clients(settings: Settings) -> None:
    """Warn of what clients on the network can do, or can be robbed of."""
    if not settings.identity.is_on:
        _log.warning(
            "there is no access control: every client that can reach %(listen)s can register and delete schemas; "
            "docs/guides/access.md sets it up",
            {"event": "access_open", "listen": settings.listen},
        )
    elif not settings.tls_certfile:
        _log.warning(
            "clients send passwords and tokens to %(listen)s without encryption; set --tls-certfile, unless a reverse "
            "proxy on this machine encrypts",
            {"event": "tls_missing", "listen": settings.listen},
        )


def _serve_alone(
    settings: Settings,
    tls: TlsContexts,
    url: str,
    listener: socket.socket,
    metrics_at: socket.socket | None,
    started: Callable[[], None],
) -> None:
    """Serve in this process."""
    seat = Seat()
    with closing(open_for(settings, url, lease=ReadLease(settings.read_lease))) as log:
        app = _app(log, settings, seat, tls)
        end_start()
        with suppress(_Ended):  # uvicorn raises the signal again that ended it
            HttpServer(app, settings, seat, tls=tls, started=started, metrics_at=metrics_at, counts=app.counts).run(
                sockets=[listener]
            )


def _serve_in_workers(
    settings: Settings,
    tls: TlsContexts,
    url: str,
    listener: socket.socket,
    metrics_at: socket.socket | None,
    started: Callable[[], None],
) -> None:
    """Serve in several processes that share the socket and the State as replayed here.

    Nothing that a fork would copy in a broken state is left when the workers start: the log is closed, with its
    connections and threads: Kafka's clients end their threads with the last reference to them.
    """
    with closing(open_for(settings, url)) as log:
        state, recent = _replayed(log, settings)
        signature = log.status().signature
    del log
    replayed_at = time.monotonic()
    if settings.worker_count > _MOST_APART:
        load()
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
            set_up_logging(settings.log_level, as_json=settings.log_format is LogFormat.JSON, worker=seat.number)
            share_caches(board.workers)
            tls.refresh(settled=True)  # this worker may replace one that died long after the start
            fresh = time.monotonic() - replayed_at < _SHARED_S
            known, newest, signed = (state, recent, signature) if fresh else (None, None, None)
            lease = ReadLease(settings.read_lease, board.lease)
            with closing(open_for(settings, url if seat.writes else None, signature=signed, lease=lease)) as log:
                link = None if seat.writes else Link(path)
                followers = Followers() if seat.writes else None
                app = _app(log, share, seat, tls, state=known, recent=newest, link=link, followers=followers)
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
                    followers=followers,
                    metrics_at=metrics_at,
                    counts=app.counts,
                ).run(sockets=[listener])

        Parent(board, work, started=started, drain_s=settings.drain_seconds).run()


def _replayed(log: Log, settings: Settings) -> tuple[State, RecentRecords]:
    """Return the State at the end of a log, and its newest records.

    Raises:
        StartError: if the log cannot be read.
    """
    writer = Writer(log)
    with _reading(settings):
        writer.replay()
        for feature in FEATURES:
            feature.prepare(settings, writer)
    return writer.state, writer.recent


def _app(
    log: Log,
    settings: Settings,
    seat: Seat,
    tls: TlsContexts,
    *,
    state: State | None = None,
    recent: RecentRecords | None = None,
    link: Link | None = None,
    followers: Followers | None = None,
) -> Pipeline:
    """Return the app over a log; see `create_app`.

    Raises:
        StartError: if the log cannot be read.
    """
    with _reading(settings):
        name = _log_name(settings.log)
        return create_app(
            log,
            settings,
            cluster_id=name,
            state=state,
            recent=recent,
            seat=seat,
            link=link,
            followers=followers,
            calling=tls.calling,
            certificates=lambda: tls.ends,
            variables=os.environ,
        )


@contextmanager
def _reading(settings: Settings) -> Iterator[None]:
    try:
        yield
    except LogError as error:
        raise StartError(f"the log {without_password(settings.log)} cannot be read: {error}") from None


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise _Ended(number)


def _bind(address: str, flag: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(port)))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise StartError(
            f"cannot listen on {address}: {error.strerror}. Choose another address with {flag} HOST:PORT"
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
    for feature in FEATURES:
        feature.check(settings)
    if settings.worker_count > 1 and is_memory(settings.log):
        raise SettingRefused(
            f"--workers (or STRATA_WORKERS) is {settings.workers}: a log in memory belongs to one process; expected 1"
        )


def _log_name(log_url: str) -> str:
    """Return a name for `/v1/metadata/id` that tells logs apart, without a secret and without their place."""
    parts = urlsplit(log_url)
    server = hashlib.sha256((parts.hostname or "").encode()).hexdigest()[:12] + ":" if parts.hostname else ""
    return f"{parts.scheme}:{server}{PurePath(parts.path).name}"
