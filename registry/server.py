"""Runs one node: opens socket and log, replays the log, serves, and shuts down cleanly on SIGTERM and SIGINT."""

import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from pathlib import PurePath
from types import FrameType
from typing import NoReturn
from urllib.parse import urlsplit

import orjson
import uvicorn

from strata.registry.app import create_app
from strata.registry.hosts import is_loopback
from strata.registry.process import end_start
from strata.registry.settings import LogFormat, SettingRefused, Settings
from strata.registry.transport.acceptor import Acceptor, room_for
from strata.registry.transport.protocol import ConnectionLimits, HttpProtocol
from strata.registry.variables import unknown_variables
from strata.storage.addresses import without_password
from strata.storage.log import Log, LogError
from strata.storage.open_log import check_url, not_opened, open_log

__all__ = ["StartError", "open_for", "run"]

_SHUTDOWN_SECONDS = 10
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
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn shuts down gracefully on either signal, and then raises it again for the previous handler.
        signal.signal(number, _end)
    listener = _bind(settings)
    port = listener.getsockname()[1]
    url = settings.url_for(port)
    if not is_loopback(settings.host):
        _log.warning(
            "there is no access control: every client that can reach %s can register and delete schemas",
            settings.listen,
        )
    _log.info("opening %s", without_password(settings.log))
    log = open_for(settings, url)
    draining = threading.Event()
    try:
        app = create_app(log, settings, cluster_id=_log_name(settings.log), draining=draining.is_set)
    except LogError as error:
        log.close()
        raise StartError(f"the log {without_password(settings.log)} cannot be read: {error}") from None
    end_start()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        timeout_keep_alive=settings.idle_seconds,
        proxy_headers=False,
        ws="none",
    )
    _log.info("serving %s on %s, ready in %.2f s", without_password(settings.log), url, time.monotonic() - started)
    try:
        _Server(config, settings, draining).run(sockets=[listener])
    finally:
        log.close()
        _log.info("stopped")


class _Server(uvicorn.Server):
    """A server that keeps serving for a while after SIGTERM, not ready, so that load balancers stop sending requests.

    SIGINT shuts it down at once.
    """

    def __init__(self, config: uvicorn.Config, settings: Settings, draining: threading.Event) -> None:
        super().__init__(config)
        self._draining, self._drain_s = draining, settings.drain_seconds
        self._ends_at = math.inf
        self._limits = ConnectionLimits(
            connections=room_for(settings.max_connections),
            headers=settings.max_headers,
            head_bytes=settings.max_header_bytes,
            seconds=settings.request_seconds,
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, then accept connections on the sockets."""
        await super().startup(sockets=[])
        for listener in sockets or []:
            acceptor = Acceptor(
                listener,
                self._connection,
                count=lambda: len(self.server_state.connections),
                limit=self._limits.connections,
                tls=self.config.ssl,
            )
            self.servers.append(acceptor)  # type: ignore[arg-type]  # uvicorn closes it like a server

    def _connection(self) -> HttpProtocol:
        return HttpProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            limits=self._limits,
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start draining on SIGTERM; a second signal ends it."""
        if sig == signal.SIGTERM and self._drain_s and not self._draining.is_set():
            self._draining.set()
            self._ends_at = time.monotonic() + self._drain_s
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Shut down when draining is over."""
        if time.monotonic() >= self._ends_at:
            self._ends_at = math.inf
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)


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

    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(content).decode()


def _set_up_logging(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(_JsonLines() if settings.log_format is LogFormat.JSON else text)
    logging.basicConfig(level=settings.log_level.value.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
