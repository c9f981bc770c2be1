"""The exit codes of the commands."""

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from strata.registry.commands.exit_codes import ExitCode, reporting
from strata.storage.log import START
from strata.storage.open_log import open_log
from strata.storage.record_json import encode
from strata.storage.records import ModeKey

COMMANDS = [["log", "LOG"], ["export", "LOG", "-"], ["verify", "LOG", "LOG", "--output=json"], ["compact", "LOG"]]


@pytest.fixture
def log(tmp_path):
    """Return the URL of a log with a record."""
    url = f"sqlite:///{tmp_path}/strata.db"
    with closing(open_log(url)) as opened:
        opened.append(START, [encode(ModeKey("s"), "READONLY")])
    return url


def run(program, arguments, log, output):
    """Run a command with the given standard output; return its exit code and errors."""
    command = [program, *(log if argument == "LOG" else argument for argument in arguments)]
    ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=[row[0] for row in COMMANDS])
@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="the system has no /dev/full")
def test_an_output_that_takes_nothing_is_a_failure(program, log, arguments):
    """If standard output has no space left, the command prints one line and exits with the code of an error."""
    with Path("/dev/full").open("wb") as full:
        code, errors = run(program, arguments, log, full)

    assert (2, True) == (code, errors.endswith("strata: No space left on device\n")), errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("arguments", COMMANDS, ids=[row[0] for row in COMMANDS])
def test_an_output_that_nobody_reads_is_a_failure(program, log, arguments):
    """If the reader of its pipe is gone, the command prints no traceback and exits with the code of an error."""
    head = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    head.wait()

    code, errors = run(program, arguments, log, head.stdin)

    head.stdin.close()
    assert (2, False) == (code, "Traceback" in errors or "BrokenPipe" in errors), errors


USER = ["user", "add", "ann", "--auth-file", "FILE"]
MISTAKES = [
    ([*USER, "--on", "x"], 2, "Error: --on needs --role"),
    ([*USER, "--generate", "--password-stdin"], 2, "Error: --generate and --password-stdin exclude each other"),
    (USER, 130, "strata: interrupted"),  # standard input is empty
    (["user", "list", "--auth-file", "FILE"], 2, "strata: FILE: No such file or directory"),
    (["acl", "remove", "http://127.0.0.1:1"], 2, "Error: name the rules to remove, or --all"),
    (
        ["acl", "list", "http://127.0.0.1:1", "--auth", "hunter2\nX"],
        2,
        "strata: token has a character that no HTTP header may contain, such as a space or a line break",
    ),
]


@pytest.mark.parametrize(("arguments", "code", "message"), MISTAKES, ids=[row[2] for row in MISTAKES])
def test_a_mistake_is_explained_without_a_traceback(program, tmp_path, arguments, code, message):
    """The last line says what is wrong, and with which file."""
    path = str(tmp_path / "auth.yaml")
    command = [program, *(path if one == "FILE" else one for one in arguments)]

    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    last = ended.stderr.splitlines()[-1].removeprefix("Password: ")
    assert (code, message.replace("FILE", path)) == (ended.returncode, last)
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stderr


def test_what_nobody_expected_is_a_failure(capsys):
    """A defect prints its traceback and exits with the code of an error."""

    @reporting
    def command() -> ExitCode:
        raise RuntimeError("unheard of")

    with pytest.raises(SystemExit) as ended:
        command()

    assert ExitCode.FAILED == ended.value.code
    assert "RuntimeError: unheard of" in capsys.readouterr().err
