"""What the registry has answered, shared by the Python workers of an executor.

Spark runs many workers and gives a task to any of them. So that an id that one of them has met goes on in all of them
while the registry is away, answers are kept in files of the application. They serve a registry that does not answer and
no other, so that nothing outlives the truth; the questions here are such that their answers never change.

Rules of this file: answers in, answers out; nothing here knows what they mean.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import SparkFiles, TaskContext

from serdes.errors import RegistryUnavailable
from serdes.settings import ClientSettings
from serdes.transport import Transport

__all__ = ["SharedAnswers", "application_folder"]


def application_folder() -> Path | None:
    """Where this executor keeps files of the application; None outside a task."""
    return None if TaskContext.get() is None else Path(SparkFiles.getRootDirectory(), "strata-answers")


class SharedAnswers(Transport):
    """Asks once; where no answer comes it takes the one of another worker, and asks patiently when there is none."""

    def __init__(self, settings: ClientSettings, folder: Path) -> None:
        super().__init__(settings)
        self._once = Transport(replace(settings, retries=0))
        self._folder = folder
        self._registry = repr(settings)  # whoever asks in another way has been told nothing; it shows no secrets

    def close(self) -> None:
        """Close the connections; the files stay for the others."""
        super().close()
        self._once.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """The registry's answer, or what it has answered before."""
        asked = json.dumps([self._registry, method, path, query or {}, body])
        file = self._folder / hashlib.sha256(asked.encode()).hexdigest()
        try:
            answer = self._once.request(method, path, query=query, body=body)
        except RegistryUnavailable:
            with suppress(OSError, ValueError):
                return json.loads(file.read_bytes())
            answer = super().request(method, path, query=query, body=body)
        with suppress(OSError):  # a full disk costs the others a question
            self._keep(file, answer)
        return answer

    def _keep(self, file: Path, answer: Any) -> None:
        """Whole or not at all."""
        self._folder.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "w") as made:
            json.dump(answer, made)
        Path(name).replace(file)
