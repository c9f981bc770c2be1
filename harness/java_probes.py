"""A JVM that runs probes in Java one after the other, such as those of `tests/spark/java`, and loads classes once."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.processes import tail

__all__ = ["JavaProbes", "RunJava"]

RunJava = Callable[[str, Sequence[Any]], list[Any]]
"""What runs a probe: its name and tasks in, answers out; see `JavaProbes.run`."""

_EXIT_S = 30.0


class JavaProbes:
    """The JVM, which the first probe starts.

    Args:
        command: starts the class `strata.spark.Probes`.
        log: the file for what the JVM says besides answers.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log = command, log
        self._jvm: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._jvm is not None:
            self._jvm.communicate(timeout=_EXIT_S)

    def run(self, probe: str, tasks: Sequence[Any]) -> list[Any]:
        """Return the answers of a probe to tasks, which are values of JSON, as the answers are.

        Args:
            probe: the name of the class.
            tasks: what it is asked.

        Raises:
            AssertionError: the probe failed; the message is its stack trace.
        """
        if self._jvm is None or self._jvm.poll() is not None:
            with self._log.open("ab") as log:
                self._jvm = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert self._jvm.stdin
        lines = "".join(json.dumps(task) + "\n" for task in tasks)
        self._jvm.stdin.write(f"{probe}\n{lines}\n".encode())
        self._jvm.stdin.flush()
        return [json.loads(answer) for answer in [*self._answers(self._jvm)]]

    def _answers(self, jvm: subprocess.Popen[bytes]) -> Iterator[bytes]:
        assert jvm.stdout
        for line in jvm.stdout:
            if line.startswith(b"end "):
                failure = line[4:].decode().strip().replace("\r", "\n")
                assert not failure, failure
                return
            yield line
        raise AssertionError(f"the JVM of the probes has exited:\n{tail(self._log)}")
