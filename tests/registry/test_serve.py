"""`strata serve` as a process: settings, start, persistence, and shutdown."""

import http.client
import json
import signal
import socket
import subprocess

import pytest
from click.testing import CliRunner

from harness.processes import start_tied
from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.commands.cli import main
from strata.registry.settings import Settings


def call(node, method, path, body=None):
    """Send one request to a node."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def test_sigterm_ends_it_cleanly_and_nothing_is_lost(tmp_path):
    """SIGTERM gives exit code 0 and a last line; the next start finds the data. This is the program, not a fork."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", start=start_tied) as node:
        call(node, "POST", "/subjects/s/versions", {"schema": '"int"'})

        assert 0 == node.terminate()
        assert "stopped" in node.output
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db") as node:
        assert (200, ["s"]) == call(node, "GET", "/subjects")


def test_sigterm_lets_a_request_in_flight_finish(tmp_path):
    """A request that a client is sending when the signal arrives still gets its answer."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db") as node:
        body = json.dumps({"schema": '"int"'}).encode()
        with socket.create_connection(("127.0.0.1", node.port), 60) as wire:
            head = f"POST /subjects/s/versions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            wire.sendall(head.encode() + body[:5])
            call(node, "GET", "/")  # The server has read the first part by now.
            node.send(signal.SIGTERM)
            wire.sendall(body[5:])

            assert wire.recv(100).startswith(b"HTTP/1.1 200")
        assert 0 == node.wait()


def test_help_names_every_setting(program):
    """`--help` lists each flag with its variable."""
    text = subprocess.run([program, "serve", "--help"], capture_output=True, text=True, timeout=180, check=True).stdout

    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in text
        assert f"STRATA_{name.upper()}" in text
    assert text.index("--listen") < text.index("--exporter-secret"), "what every node needs comes first"


def test_the_read_lease():
    """A node has a read lease of 100 ms unless its settings say otherwise; 0 is none."""
    leases = [Settings(log="memory:", **given).read_lease for given in ({}, {"read_lease": "0"}, {"read_lease": "1s"})]
    assert [0.1, 0.0, 1.0] == leases


# name, arguments, environment, words of the message
BAD_SETTINGS = [
    ("no port", ["--listen=here"], {}, ["--listen", "STRATA_LISTEN", "'here'", "HOST:PORT"]),
    ("a port beyond", ["--listen=127.0.0.1:70000"], {}, ["--listen", "70000"]),
    ("no log", ["--log=redis://x"], {}, ["--log", "STRATA_LOG", "redis", "sqlite:///FILE", "kafka://"]),
    (
        "no level",
        [],
        {"STRATA_COMPATIBILITY_LEVEL": "SIDEWAYS"},
        ["STRATA_COMPATIBILITY_LEVEL", "SIDEWAYS", "BACKWARD"],
    ),
    ("no worker", ["--workers=0"], {}, ["--workers", "STRATA_WORKERS", "greater than 0"]),
    ("several workers in memory", ["--workers=2", "--log=memory:"], {}, ["--workers", "STRATA_WORKERS", "expected 1"]),
    ("no reads", ["--reads=stale"], {}, ["--reads", "'stale'", "linearizable", "local"]),
    ("no lease", ["--read-lease=2s"], {}, ["--read-lease", "'2s'", "100ms"]),
    ("no number", [], {"STRATA_MAX_BODY": "much"}, ["STRATA_MAX_BODY", "'much'", "a whole number"]),
    ("a number below", [], {"STRATA_MAX_BODY": "0"}, ["STRATA_MAX_BODY", "greater than 0"]),
    ("no URL", ["--advertised-url=me"], {}, ["--advertised-url", "'me'", "http://"]),
    ("no file", ["--kafka-config=/nowhere"], {}, ["--kafka-config", "/nowhere", "NAME=VALUE"]),
    ("no SQLite file", ["--log=sqlite://"], {}, ["--log", "needs a file"]),
    ("no host name", ["--allowed-hosts=a.test,b.test:80"], {}, ["--allowed-hosts", "'b.test:80'", "without port"]),
    ("no origin", ["--allowed-origins=ui.test"], {}, ["--allowed-origins", "'ui.test'", "https://"]),
    ("two at once", ["--listen=x", "--reads=y"], {}, ["--listen", "--reads"]),
    (
        "half an address in the log",
        ["--log=postgresql://u:hunter2@[::1/db"],
        {},
        ["--log", "postgresql+psycopg://USER"],
    ),
    ("no port in the log", ["--log=postgresql://u:hunter2@h:x/db"], {}, ["--log", "postgresql+psycopg://USER"]),
    ("half an address in a URL", ["--advertised-url=http://[::1"], {}, ["--advertised-url", "http://[::1"]),
    ("no port in a URL", ["--advertised-url=http://a.test:x"], {}, ["--advertised-url", "http://a.test:x"]),
]


@pytest.mark.usefixtures("logging_as_before")
@pytest.mark.parametrize(
    ("arguments", "environment", "words"), [row[1:] for row in BAD_SETTINGS], ids=[row[0] for row in BAD_SETTINGS]
)
def test_bad_setting_says_which_why_and_what_is_allowed(arguments, environment, words):
    """An invalid setting ends the start with one sentence, before the node binds its address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = CliRunner(env={"STRATA_LISTEN": listen, **environment}).invoke(main, ["serve", *arguments])

    assert (2, SystemExit) == (ended.exit_code, type(ended.exception))
    assert "hunter2" not in ended.stderr
    for word in words:
        assert word in ended.stderr


def test_flag_wins_over_its_variable(forked, tmp_path):
    """STRATA_LISTEN sets the address, and --listen takes precedence."""
    ended = forked("serve", "--listen=nonsense", f"--log=sqlite:///{tmp_path}/s.db", STRATA_LISTEN="127.0.0.1:0")

    assert "nonsense" in ended.output


def test_taken_port_is_told(forked):
    """If the port is in use, the message names it and says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = forked("serve", f"--listen=127.0.0.1:{taken.getsockname()[1]}", "--log=memory:")

    assert 2 == ended.returncode
    assert "--listen" in ended.output


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("user:hunter2@127.0.0.1:1/db", id="before the host"),
        pytest.param("user:hunter2/2@127.0.0.1:1/db", id="with a slash"),
        pytest.param("user@127.0.0.1:1/db?password=hunter2", id="as a parameter"),
        pytest.param("127.0.0.1:1/db?user=u&sslpassword=hunter2&password=hunter2", id="as two parameters"),
    ],
)
def test_log_that_cannot_be_opened_is_told_without_its_password(forked, log):
    """An unreachable database gives one sentence, without traceback or password."""
    ended = forked("serve", f"--log=postgresql+psycopg://{log}", "--listen=127.0.0.1:0")

    assert 2 == ended.returncode
    assert "hunter2" not in ended.output
    assert "Traceback" not in ended.output


# name, the log, words of the message
UNREACHABLE = [
    ("Kafka", "kafka://no-host.invalid,[::1]:1/_schemas", ["no-host.invalid", "cannot resolve", "::1:1", "refused"]),
    ("PostgreSQL, no such host", "postgresql+psycopg://u:hunter2@no-host.invalid/db", ["no-host.invalid", "resolve"]),
    ("PostgreSQL, nothing there", "postgresql+psycopg://u:hunter2@127.0.0.1:1/db", ["127.0.0.1", "refused"]),
]
OTHER_COMMANDS = [["log", "LOG"], ["compact", "LOG"], ["export", "LOG", "-"], ["verify", "LOG", "LOG"]]


def check_one_line(ended, words):
    """Check that a command failed with one line that holds some words and no secret."""
    assert 2 == ended.returncode
    assert 1 == len(ended.output.splitlines()), ended.output
    assert "hunter2" not in ended.output
    for word in words:
        assert word in ended.output


@pytest.mark.parametrize(("log", "words"), [row[1:] for row in UNREACHABLE], ids=[row[0] for row in UNREACHABLE])
def test_a_log_that_cannot_be_reached_ends_a_start_with_one_line(forked, log, words):
    """One line names the address that cannot be resolved or refuses, without secrets."""
    check_one_line(forked("serve", "--listen=127.0.0.1:0", "--log-level=error", f"--log={log}"), words)


@pytest.mark.parametrize("command", OTHER_COMMANDS, ids=[command[0] for command in OTHER_COMMANDS])
def test_a_log_that_cannot_be_reached_ends_a_command_with_one_line(forked, command):
    """Every command that opens a log prints the same message."""
    _name, log, words = UNREACHABLE[-1]
    check_one_line(forked(*(log if word == "LOG" else word for word in command)), words)


def test_unknown_variables_are_warned_about(forked, tmp_path):
    """`serve` and other commands name a misspelt variable and the one that was meant."""
    for command in (
        ["serve", f"--log=sqlite:///{tmp_path}/no-folder/s.db", "--listen=127.0.0.1:0"],
        ["log", "memory:"],
    ):
        ended = forked(*command, STRATA_LOGS="memory:", STRATA_PORT="tcp://10.0.0.1:8081")

        assert 1 == ended.output.count("is not a setting"), ended.output
        assert "STRATA_LOGS is not a setting and is ignored; did you mean STRATA_LOG?" in ended.output


def test_a_new_log_is_told_with_its_place(tmp_path):
    """A start that creates the log says where; the next start does not."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db") as node:
        assert f"created a new log: table strata_log in the file {tmp_path}/strata.db" in node.output
        node.terminate()
        node.restart()
        assert 1 == node.output.count("created a new log")


# content of the file, words of the message
KAFKA_SETTINGS = [
    pytest.param(b"abc", "line 1: expected NAME=VALUE", id="a line without a value"),
    pytest.param(b"\xff=1", "cannot be read as text", id="no text"),
    pytest.param(b"no.such.setting=1", 'No such configuration property: "no.such.setting"', id="unknown"),
]


@pytest.mark.parametrize(("content", "words"), KAFKA_SETTINGS)
def test_bad_kafka_settings_are_told(forked, tmp_path, content, words):
    """An invalid file of client settings ends the start with one sentence."""
    path = tmp_path / "kafka.conf"
    path.write_bytes(content)
    ended = forked("serve", "--listen=127.0.0.1:0", "--log=kafka://127.0.0.1:1/_schemas", f"--kafka-config={path}")

    assert 2 == ended.returncode
    assert words in ended.output.splitlines()[-1]
    assert "Traceback" not in ended.output
    assert "--log (or" not in ended.output


@pytest.mark.parametrize(
    ("listen", "has_users", "warning"),
    [
        ("127.0.0.1:0", False, None),
        ("localhost:0", False, None),
        ("0.0.0.0:0", False, "there is no access control"),
        ("127.0.0.1:0", True, None),
        ("0.0.0.0:0", True, "passwords and tokens to 0.0.0.0:0 without encryption"),
    ],
)
def test_listening_beyond_loopback_is_warned_of(forked, tmp_path, listen, has_users, warning):
    """The start warns of missing access control, or of missing encryption, if the node listens beyond loopback."""
    command = ["serve", f"--listen={listen}", "--log=memory:", "--drain-seconds=0"]
    if has_users:
        (tmp_path / "auth.yaml").touch(mode=0o600)
        command.append(f"--auth-file={tmp_path}/auth.yaml")
    with forked.start(*command) as running:
        until(lambda: "serving" in running.output)
        running.process.terminate()
        ended = running.wait()

    assert 0 == ended.returncode
    warnings = [line for line in ended.output.partition("serving")[0].splitlines() if "WARNING" in line]
    assert bool(warning) == bool(warnings)
    assert all(warning in line for line in warnings)


def test_json_log_lines(tmp_path):
    """`--log-format=json` logs one object per line."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--log-format=json") as node:
        lines = [json.loads(line) for line in node.output.splitlines()]

    assert {"time", "level", "logger", "message"} <= set(lines[0])


def test_access_log_names_method_path_and_status(tmp_path):
    """`--access-log` logs each request."""
    with RegistryNode(f"sqlite:///{tmp_path}/strata.db", "--access-log") as node:
        call(node, "GET", "/subjects/x/versions")
        node.terminate()

        assert "GET /subjects/x/versions 404" in node.output
