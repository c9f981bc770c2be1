"""The choice of random examples; and real services, one of each per session, started when the first test needs one."""

import gc
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from socketserver import BaseServer, StreamRequestHandler
from ssl import SSLContext
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import certifi
import pytest
from _pytest.logging import catching_logs
from hypothesis import HealthCheck, settings
from hypothesis.internal import entropy
from hypothesis.internal.conjecture import providers

from faults.nursery import Nursery
from harness.commands import Command
from harness.environments import build_wheel
from harness.forked_program import forked_program
from harness.groups import group_of, ordered, turn_of
from harness.jars import protobuf_jars, wire_jars
from harness.java_probes import JavaProbes, RunJava
from harness.kafka import KafkaBroker
from harness.logs import SHARED_LOGS, new_log_url
from harness.postgres import Postgres
from harness.processes import Process
from harness.registry import RegistryNode
from harness.reports import FewReports
from harness.scratch import use_memory
from harness.spark_jar import compiled, small_java

if TYPE_CHECKING:
    from harness.oidc import OidcProvider

# By default a test of random examples uses the same examples every time, so that only a change of the code makes it
# fail. `--hypothesis-profile=explore`, which `make test-all` uses, draws new ones.
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")  # no randomness, no deadline, no health check for slow machines

# Servers of tests write the head and the body of an answer apart: the body would wait 40 ms for the client to
# acknowledge the head.
StreamRequestHandler.disable_nagle_algorithm = True
# And they look for the end each 20 ms instead of 500: a test that ends its server waits for that.
BaseServer.serve_forever.__defaults__ = (0.02,)

_SLOW_S = 1800
_catch = catching_logs.__enter__


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory, report little, and leave constants of Strata's source to `explore`.

    Reading them takes a tenth of the collection's time; and examples that are to stay the same must not depend on which
    modules other tests have imported.
    """
    use_memory()
    entropy.NP_RANDOM = False  # no test draws NumPy's global numbers, whose state takes long to restore
    if config.getoption("--hypothesis-profile") != "explore":
        providers._get_local_constants = lambda: providers._local_constants
    _trust_one_authority(config)
    catching_logs.__enter__ = _catch_at_root
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(FewReports())


def _catch_at_root(caught: Any) -> Any:
    """Catch what reaches the root logger, unless a level is asked for.

    Six times a test, pytest also looks for loggers that do not propagate, among a thousand of them.
    """
    if caught.level is not None:
        return _catch(caught)
    logging.getLogger().addHandler(caught.handler)
    caught.attached_loggers.append(logging.getLogger())
    return caught.handler


def _trust_one_authority(config: pytest.Config) -> None:
    """Let clients in this process trust one public authority instead of a hundred.

    Each client of httpx or confluent-kafka reads all of them when it is made, also one that never speaks TLS: that
    takes 25 ms of CPU time and more.
    """
    folder = TemporaryDirectory(prefix="strata-authority-")
    config.add_cleanup(folder.cleanup)
    bundles, one = {certifi.where(), os.environ.get("SSL_CERT_FILE", "")}, Path(folder.name) / "one.pem"
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    one.write_text(first + end)
    load = SSLContext.load_verify_locations

    def load_fewer(context: SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        load(context, str(one) if cafile in bundles else cafile, capath, cadata)

    SSLContext.load_verify_locations = load_fewer


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow and long tests more time, unless a test sets its own time-out; group the tests that share fixtures.

    With `--dist loadgroup` a group runs in one process.
    """
    groups = {item: group_of(item) for item in items}
    places = {group: place for place, group in enumerate(ordered(groups.values()))}
    items.sort(key=lambda item: (places[groups[item]], turn_of(item)))
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
        if any(map(item.get_closest_marker, ("slow", "long"))) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SLOW_S))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without garbage collection, which would take a quarter of the time, and leave them out of it later.

    It would look again and again at half a million objects that stay. What tests leave behind is looked at less often
    than by default, which takes half of that time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
        gc.enable()


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    """Yield the session's one-node cluster; a test that kills nodes starts its own."""
    # It is never restarted. With a short session, the controller would take it for dead after a pause of the machine.
    session = {"broker.session.timeout.ms": "60000", "broker.heartbeat.interval.ms": "2000"}
    with KafkaBroker(config=session) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Yield the session's server; a test that kills it starts it again."""
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def run_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunJava]:
    """Yield a function that runs a class which asks a library: JSON values in, JSON values out, a line each."""
    tests, jars = Path(__file__).parent, [*wire_jars(), *protobuf_jars()]
    folders = tests / "serdes/java", tests / "compat/java", tests / "compat/avro/java"
    sources = [path for folder in folders for path in sorted(folder.rglob("*.java"))]
    sources += [tests / "spark/java/strata/spark/Probes.java", tests.parent / "harness/jvm/ProtobufMessages.java"]
    command = [*small_java(compiled(sources, *jars), *jars), "strata.spark.Probes"]
    with JavaProbes(command, tmp_path_factory.mktemp("libraries") / "jvm.log") as jvm:
        yield jvm.run


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Yield the session's process that forks nodes."""
    with Nursery() as process:
        yield process


@pytest.fixture(scope="session", autouse=True)
def forked_nodes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork the nodes of all tests; a cold start takes most of a second of CPU time."""

    def start(command: Sequence[str], *, log: Path) -> Process:
        nursery: Nursery = request.getfixturevalue("nursery")  # started by the first node
        return nursery.start(command, log=log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RegistryNode, "starter", staticmethod(start))
        yield


@pytest.fixture(scope="session")
def forked(nursery: Nursery) -> Command:
    """Return the command `strata` in forked processes: exit code and output, of which errors are a part."""
    return Command(nursery)


@pytest.fixture(scope="session")
def program(nursery: Nursery) -> Iterator[Path]:
    """Yield the path of a program `strata` that runs in forked processes, for what starts it by its name or path."""
    with TemporaryDirectory(prefix="strata-program-") as folder:
        yield forked_program(nursery, Path(folder))


@pytest.fixture(scope="session")
def identity_providers() -> "type[OidcProvider]":
    """Return the class of identity providers: tests that use it run in one process, where providers share another."""
    from harness.oidc import OidcProvider  # here, because it takes long to import

    return OidcProvider


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> str:
    """Return an empty database on the session's server."""
    return postgres_server.new_database()


@pytest.fixture(params=SHARED_LOGS)
def log_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a fresh log that several processes can share, of each kind."""
    return new_log_url(request.param, tmp_path, request)


@pytest.fixture(scope="session")
def strata_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the session's wheel of this checkout; `harness.environments` installs it."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))
