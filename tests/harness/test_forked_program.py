"""The program `strata` that forks is to its caller what the program itself is."""

import os
import signal
import socket
import subprocess

import pytest

from harness.processes import free_port
from harness.waiting import until


def run(program, *arguments, **options):
    """Run the program to its end; return its exit code, its output and its errors."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def test_streams_folder_and_exit_code(program, tmp_path):
    """Output and errors are apart, paths are relative to the folder of the caller, and the exit code is passed on."""
    (tmp_path / "a.avsc").write_text("{")
    assert (0, "") == run(program, "--version")[::2]
    code, output, errors = run(program, "check", cwd=tmp_path)
    assert (1, True) == (code, "a.avsc:1:2: error" in output + errors)
    assert (2, "") == run(program, "log", "sqlite:///none.db", cwd=tmp_path)[:2]


def test_variables_and_input(program, tmp_path):
    """The command has the variables and the standard input of the caller, and nothing of another one."""
    file = tmp_path / "auth.yaml"
    added = ["user", "add", "ann", "--password-stdin", "--auth-file", file]
    assert 0 == run(program, *added, input="open sesame\n")[0]
    assert "name: ann" in file.read_text()
    assert "--no-such" in run(program, "serve", "--no-such", env={"PATH": os.environ["PATH"]})[2]
    assert "'here'" in run(program, "serve", env={"PATH": os.environ["PATH"], "STRATA_LISTEN": "here"})[2]


def listens(port):
    """Return whether a process listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_a_signal_reaches_the_command(program, tmp_path, number, code):
    """SIGTERM ends a node as it ends the program itself; if the program is killed, no process is left behind."""
    port = free_port()
    command = [program, "serve", f"--listen=127.0.0.1:{port}", "--log=memory:", "--drain-seconds=0"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stderr=log) as node:
        until(lambda: listens(port))
        node.send_signal(number)
        assert code == node.wait(60)
    until(lambda: not listens(port))
