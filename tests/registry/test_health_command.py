"""`strata health` asks a node for its health, over http and https, and loads little for it."""

import json
import os
import ssl
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from threading import Thread
from unittest.mock import patch

import pytest

from harness.certificates import Authority
from harness.processes import free_port
from strata.command import main

READY, DOWN = (200, {"ready": True}), (503, {"ready": False, "reason": "the node is shutting down"})


@contextmanager
def answering(status, body, tls=None):
    """Serve one answer at all paths; yield the port and the paths that were requested."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            """Keep quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()


def health(*arguments, **variables):
    """Run the command; return its exit code, its output and its errors."""
    output, errors = StringIO(), StringIO()
    with (
        patch.object(sys, "argv", ["strata", "health", *map(str, arguments)]),
        patch.dict(os.environ, variables, clear=True),
        redirect_stdout(output),
        redirect_stderr(errors),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return ended.value.code or 0, output.getvalue(), errors.getvalue()


@pytest.mark.parametrize(
    ("answer", "path", "asked", "code", "said"),
    [
        (READY, "", "/health/ready", 0, '{"ready": true}\n'),
        (READY, "/", "/health/ready", 0, '{"ready": true}\n'),
        (READY, "/health/live", "/health/live", 0, '{"ready": true}\n'),
        (DOWN, "/health/write", "/health/write", 1, "503 the node is shutting down\n"),
        ((404, ["?"]), "/health/ready", "/health/ready", 1, '404 ["?"]\n'),
    ],
)
def test_the_exit_code_is_the_answer(answer, path, asked, code, said):
    """200 ends with 0, any other status with 1 and the reason; the path is /health/ready or that of the URL."""
    with answering(*answer) as (port, paths):
        found = health(f"http://127.0.0.1:{port}{path}")

    assert ((code, said, ""), [asked]) == (found, paths)


def test_a_node_that_does_not_answer_is_not_healthy():
    """Without an answer the command ends with 1 and says so; no answer is waited for longer than asked."""
    code, said, errors = health(f"http://ann:secret@127.0.0.1:{(port := free_port())}")
    assert (1, "") == (code, said)
    assert f"strata: http://127.0.0.1:{port} does not answer: " in errors
    assert "secret" not in errors


@pytest.mark.parametrize("target", ["http://", "http://a:b", "https://[", "", "--no-such"])
def test_what_is_not_an_address_is_a_wrong_argument(target):
    """A target that is neither URL nor path ends with 2."""
    assert 2 == health(target, STRATA_LISTEN=":")[0]


def test_an_address_without_a_scheme_is_not_taken_for_a_path():
    """HOST:PORT is a wrong argument, and the message has the URL; before, the node of this machine was asked."""
    code, _, errors = health("10.1.2.3:8081")

    assert 2 == code
    assert "10.1.2.3:8081 is not a URL; expected http://10.1.2.3:8081 or a path such as /health/ready" in errors


def test_a_path_asks_the_node_of_this_machine():
    """Without a URL the command asks the address of STRATA_LISTEN, and 0.0.0.0 on the loopback interface."""
    with answering(*READY) as (port, paths):
        codes = [health(*path, STRATA_LISTEN=f"0.0.0.0:{port}")[0] for path in ((), ("/health/live",))]

    assert ([0, 0], ["/health/ready", "/health/live"]) == (codes, paths)


def test_https(tmp_path):
    """Certificates are checked with --ca-file, not with --insecure, nor for the node of this machine itself."""
    authority = Authority(tmp_path)
    pair = authority.issue("registry")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.cert, pair.key)
    with answering(*READY, tls) as (port, _):
        url, own = f"https://127.0.0.1:{port}", {"STRATA_LISTEN": f"0.0.0.0:{port}", "STRATA_TLS_CERTFILE": "x"}
        refused = health(url)
        trusted = [health(url, "--ca-file", authority.file), health(url, "--insecure"), health("/health/live", **own)]

    assert (1, True) == (refused[0], "certificate verify failed" in refused[2])
    assert [0, 0, 0] == [code for code, *_ in trusted]
    assert 2 == health(url, "--ca-file", tmp_path / "none")[0] == health(url, "--ca-file", pair.key)[0]


def test_it_loads_little():
    """The command runs every few seconds beside a node: it imports neither the service nor a log nor pydantic."""
    program = (
        "import sys; sys.argv = ['strata', 'health', 'http://127.0.0.1:1']\n"
        "from strata.command import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('strata', 'pydantic', 'fastapi', 'urllib3'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert {"strata", "strata.command", "strata.imports", "strata.registry", "strata.registry.commands",
            "strata.registry.commands.health"} == set(done.stdout.split())  # fmt: skip
