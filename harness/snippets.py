"""Runs the commands and snippets of a Markdown file in order, as a reader who pastes them does.

    run(Path("README.md"), tmp_path, {"localhost:8081": f"127.0.0.1:{free_port()}"})

The language of a fenced block says how it is run:

| block | how |
| --- | --- |
| `python` | in one interpreter for the file; the comment right below a statement shows its output, value or error |
| `sh` | by bash, in a scratch folder; `strata serve` and the programs of Kafka Connect go on in the background |
| `sql` | in PostgreSQL |
| `text`, `json` | not run: the output of the block before it |
| `yaml` | not run: a configuration file, which must parse |
| none | not run: a listing of files or a diagram |

An indented block is an error, since nothing would say what it is.

Output is compared as a whole, except for line breaks, what `MASKS` replaces, and text that the document leaves out and
marks with `…`. A command that fails is an error, unless the document shows the failure. A block below the comment
`<!-- not run: REASON -->` is skipped, and its reason returned, unless the test provides what it needs.
"""

import ast
import http.client
import json
import os
import re
import shlex
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg
import yaml

from harness.processes import Process, start_tied, stop_process, tail

__all__ = ["Block", "SnippetError", "parse", "run"]

_BIN: Final = Path(sys.executable).parent
_READY_S: Final = 180.0
_SHELL_S: Final = 300.0
# What differs from run to run, and what both sides show instead.
MASKS: Final = (
    (re.compile(r"[A-Za-z0-9+/]{40,}={0,2}"), "<ciphertext>"),
    (re.compile(r"'ts': \d{13}"), "'ts': <time>"),
    (re.compile(r"#\d+"), "#<expression>"),
)
_INDENTED: Final = re.compile(r"(?: {4}|\t) *\S")
_FENCE: Final = re.compile(r"( *)```(\w*)$")
_NOT_RUN: Final = re.compile(r"<!-- not run: (.+) -->$")
_SHOWN: Final = {"text", "json"}
_FILES: Final = {"yaml"}
_LEFT_OUT: Final = "…"
_SERVER: Final = re.compile(r"^strata serve\b", re.MULTILINE)
_CONNECT: Final = re.compile(r"^connect-[a-z-]+\.sh\b", re.MULTILINE)


class SnippetError(AssertionError):
    """A snippet does not run, or does not print what the document shows."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, the line of its first line, and why it is not run."""

    language: str
    text: str
    line: int
    not_run: str | None = None


def parse(markdown: str) -> list[Block]:
    """Return the fenced blocks of a document, in order.

    Raises:
        SnippetError: a block does not end, has no fences, has a language that this module cannot run, or shows the
            output of nothing.
    """
    lines = iter(enumerate(markdown.splitlines(), 1))
    blocks: list[Block] = []
    reason: str | None = None
    blank = True
    for number, line in lines:
        if opened := _FENCE.fullmatch(line):
            text = _until_the_end(lines, number, len(opened[1]))
            blocks.append(_checked(Block(opened[2], text, number + 1, reason), blocks))
            reason = None
        elif marked := _NOT_RUN.match(line.strip()):
            reason = marked[1]
        elif blank and _INDENTED.match(line):
            raise SnippetError(f"line {number}: an indented block; put it between fences")
        elif line.strip():
            reason = None
        blank = not line.strip()
    return blocks


def run(
    document: Path,
    folder: Path,
    live: Mapping[str, str],
    *,
    sql: str = "",
    provided: Collection[str] = (),
    program: Path | None = None,
    without: str | None = None,
) -> list[str]:
    """Run the blocks of a document, and return the reasons of those that are marked as not run.

    Args:
        document: the Markdown file.
        folder: an empty folder, in which the commands run.
        live: addresses in the text, and the addresses of the services that the test has started or will start.
        sql: the connection string for `sql` blocks.
        provided: reasons for not running a block that do not hold here.
        program: the command `strata`; by default the one beside Python.
        without: a word; blocks with it are left out.

    Raises:
        SnippetError: a block does not run, or prints something other than the document shows.
    """
    blocks = [block for block in parse(document.read_text()) if without is None or without not in block.text]
    with _Reader(document.name, folder, live, sql, program) as reader:
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            if (block.not_run is None or block.not_run in provided) and block.language in _RUNS:
                reader.run(block, following if following and following.language in _SHOWN else None)
    if reader.faults:
        raise SnippetError("\n\n".join(reader.faults))
    return [block.not_run for block in blocks if block.not_run and block.not_run not in provided]


def _until_the_end(lines: Iterator[tuple[int, str]], start: int, indent: int) -> str:
    text: list[str] = []
    for _, line in lines:
        if line.strip() == "```":
            return "\n".join(text)
        text.append(line[indent:])
    raise SnippetError(f"line {start}: the block does not end")


def _checked(block: Block, before: list[Block]) -> Block:
    if block.language not in {*_RUNS, *_SHOWN, *_FILES, ""}:
        raise SnippetError(f"line {block.line}: nothing runs a block of language {block.language!r}")
    if block.language in _FILES:
        try:
            yaml.safe_load(block.text)
        except yaml.YAMLError as error:
            raise SnippetError(f"line {block.line}: {error}") from None
    if re.search(r"^\$ ", block.text, re.MULTILINE):
        raise SnippetError(f"line {block.line}: a prompt cannot be pasted; use a block `sh`, and `text` for its output")
    if block.language in _SHOWN and not block.not_run and not (before and before[-1].language in _RUNS):
        raise SnippetError(f"line {block.line}: this output follows no block that prints it")
    return block


class _Reader:
    """A reader of one document: a shell, a Python session, and the servers that the document starts.

    Attributes:
        faults: what does not run, and what prints something else than the document shows.
    """

    def __init__(self, name: str, folder: Path, live: Mapping[str, str], sql: str, program: Path | None) -> None:
        self._bin = [str(program.parent), str(_BIN)] if program else [str(_BIN)]
        self._name, self._folder, self._live, self._sql = name, folder, dict(live), sql
        self._python: subprocess.Popen[str] | None = None
        self._servers: dict[str, Process] = {}
        self.faults: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._python is not None:
            assert self._python.stdin
            assert self._python.stdout
            self._python.stdin.close()  # the session ends at the end of its input
            self._python.stdout.close()
            try:
                self._python.wait(60)
            except subprocess.TimeoutExpired:
                stop_process(self._python)
        for server in self._servers.values():
            stop_process(server, grace_s=60)

    def run(self, block: Block, shown: Block | None) -> None:
        """Run a block, and compare its output with the block that shows it."""
        {"python": self._run_python, "sh": self._run_shell, "sql": self._run_sql}[block.language](block, shown)

    def _run_python(self, block: Block, shown: Block | None) -> None:
        try:
            body = ast.parse(block.text).body
        except SyntaxError as error:
            self._fault(block.line + (error.lineno or 1) - 1, error.msg)
            return
        lines = block.text.split("\n")
        printed = []
        for statement in body:
            assert statement.end_lineno
            line = block.line + statement.lineno - 1
            first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
            answer = self._ask_python(line, "\n".join(lines[first - 1 : statement.end_lineno]))
            output = answer["output"] + (answer["value"] or "")
            if expected := _comment(lines, statement.end_lineno):
                self._compare(line, expected, answer["error"] or output)
            elif answer["error"]:
                self._fault(line, answer["traceback"])
            else:
                printed.append(answer["output"])
        if shown:
            self._compare(shown.line, shown.text, "".join(printed))

    def _ask_python(self, line: int, source: str) -> dict[str, str]:
        if self._python is None:
            with (self._folder / "python.log").open("w") as log:
                self._python = subprocess.Popen(
                    [sys.executable, "-m", "harness.snippet_session"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self._folder,
                    env=self._environment(),
                    text=True,
                )
        assert self._python.stdin
        assert self._python.stdout
        request = {"name": f"{self._name}:{line}", "source": self._with_services(source)}
        self._python.stdin.write(json.dumps(request) + "\n")
        self._python.stdin.flush()
        answer = self._python.stdout.readline()
        if not answer:
            raise SnippetError(f"{self._name}:{line}: the session ended\n{tail(self._folder / 'python.log')}")
        parsed: dict[str, str] = json.loads(answer)
        return parsed

    def _run_shell(self, block: Block, shown: Block | None) -> None:
        if _SERVER.search(block.text):
            self._serve(block)
            return
        if _CONNECT.search(block.text):
            self._begin(block, f"line {block.line}")
            return
        command = ["bash", "-e", "-o", "pipefail", "-c", self._with_services(block.text)]
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            timeout=_SHELL_S,
            cwd=self._folder,
            env=self._environment(),
        )
        if shown:
            self._compare(shown.line, shown.text, done.stdout, is_json=shown.language == "json")
        elif done.returncode:
            self._fault(block.line, f"the command ended with {done.returncode}:\n{done.stdout}")

    def _serve(self, block: Block) -> None:
        """Start a server, in place of the one that has its address, and wait until it is ready."""
        words = self._words(block)
        address = words[words.index("--listen") + 1] if "--listen" in words else self._live["localhost:8081"]
        if address in self._servers:
            stop_process(self._servers.pop(address), grace_s=60)
        server, log = self._begin(block, address)
        deadline = time.monotonic() + _READY_S
        while not _is_ready(address):
            if server.poll() is not None or time.monotonic() > deadline:
                raise SnippetError(f"{self._name}:{block.line}: the server is not ready\n{tail(log)}")
            time.sleep(0.05)

    def _begin(self, block: Block, name: str) -> tuple[Process, Path]:
        """Start a command that goes on in the background; return its process and its log."""
        log = self._folder / f"server-{block.line}.log"
        variables = [f"{name}={value}" for name, value in self._environment().items()]
        command = ["env", "-C", str(self._folder), *variables, *self._words(block)]
        self._servers[name] = start_tied(command, log=log)
        return self._servers[name], log

    def _words(self, block: Block) -> list[str]:
        text = block.text.replace("\\\n", " ").strip()
        if "\n" in text:
            raise SnippetError(f"{self._name}:{block.line}: a server needs a terminal, and so a block, of its own")
        return shlex.split(self._with_services(text))

    def _run_sql(self, block: Block, shown: Block | None) -> None:
        assert shown is None
        with psycopg.connect(self._sql, autocommit=True) as connection:
            try:
                connection.execute(block.text.encode())
            except psycopg.Error as error:
                self._fault(block.line, str(error))

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": os.pathsep.join([*self._bin, os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYSPARK_PYTHON": sys.executable,
            "STRATA_LISTEN": self._live.get("localhost:8081", ""),
            "STRATA_DRAIN_SECONDS": "0",
        }

    def _with_services(self, text: str) -> str:
        for written, live in self._live.items():
            text = text.replace(written, live)
        return text

    def _compare(self, line: int, expected: str, actual: str, *, is_json: bool = False) -> None:
        for written, live in self._live.items():
            actual = actual.replace(live, written)
        if is_json:
            expected, actual = _canonical(expected), _canonical(actual)
        pattern = _LEFT_OUT.join(map(re.escape, _plain(expected).split(_LEFT_OUT))).replace(_LEFT_OUT, ".*?")
        if not re.fullmatch(pattern, _plain(actual), re.DOTALL):
            self._fault(line, f"the document shows\n{expected}\nand the output is\n{actual}")

    def _fault(self, line: int, text: str) -> None:
        self.faults.append(f"{self._name}:{line}: {text}")


_RUNS: Final = {"python", "sh", "sql"}


def _comment(lines: list[str], end: int) -> str:
    """Return the comment directly below a line, without its signs."""
    shown = []
    for line in lines[end:]:
        if not line.startswith("#"):
            break
        shown.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(shown)


def _plain(text: str) -> str:
    """Return a text with its masks applied, in one line."""
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return " ".join(text.split())


def _canonical(text: str) -> str:
    """Return a JSON text in one form; any other text as it is, so that a comparison shows it."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _is_ready(address: str) -> bool:
    return any(_answers(f"{scheme}://{address}/health/ready") for scheme in ("http", "https"))


def _answers(url: str) -> bool:
    unverified = ssl._create_unverified_context()  # noqa: S323 - a document may have made the certificate itself
    try:
        with urllib.request.urlopen(url, timeout=5, context=unverified):  # noqa: S310 - a URL of this file
            return True
    except (OSError, http.client.HTTPException):
        return False
