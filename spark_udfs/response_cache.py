"""Cache of registry responses, shared by the Python workers of an executor.

Spark runs many workers and gives a task to any of them. Responses are cached in files of the application, so that an id
that one worker has met is decoded in all of them while the registry does not answer. The files are read only in that
case, so a cached response never hides a newer one; and only requests whose responses never change are sent here.

Rules of this file: responses in, responses out; nothing here knows what they mean.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pyspark import SparkFiles, TaskContext

from strata.serdes.errors import RegistryUnavailable
from strata.serdes.observer import Observer
from strata.serdes.settings import ClientSettings
from strata.serdes.transport import Transport

__all__ = ["SharedResponses", "application_folder"]


def application_folder() -> Path | None:
    """Return the folder where this executor keeps files of the application, or None outside a task."""
    return None if TaskContext.get() is None else Path(SparkFiles.getRootDirectory(), "strata-responses")


class SharedResponses(Transport):
    """A transport with a fallback: if the first attempt fails, it reads another worker's response, or else retries."""

    def __init__(self, settings: ClientSettings, folder: Path, observer: Observer | None = None) -> None:
        super().__init__(settings, observer=observer)
        self._once = Transport(replace(settings, retries=0, wait=0))
        self._folder = folder
        self._registry = _digest(settings)

    def close(self) -> None:
        """Close the connections; the files stay for the other workers."""
        super().close()
        self._once.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
        """Return the registry's response, or the cached one if the registry does not answer.

        Args:
            method: the HTTP method.
            path: the path of the request.
            query: the query parameters.
            body: the body, sent as JSON.

        Raises:
            RegistryUnavailable: If the registry does not answer after all retries, and no worker has cached a response.
            RegistryError: If the registry answers with an error.
        """
        key = json.dumps([self._registry, method, path, query or {}, body])
        file = self._folder / hashlib.sha256(key.encode()).hexdigest()
        try:
            response = self._once.request(method, path, query=query, body=body)
        except RegistryUnavailable:
            with suppress(OSError, ValueError):
                return json.loads(file.read_bytes())
            response = super().request(method, path, query=query, body=body)
        with suppress(OSError):  # a full disk only costs the other workers a request
            self._keep(file, response)
        return response

    def _keep(self, file: Path, response: object) -> None:
        """Write a response atomically."""
        self._folder.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "w") as made:
            json.dump(response, made)
        Path(name).replace(file)


def _digest(settings: ClientSettings) -> str:
    """Return the part of the cache key that is the settings': with other ones the registry may answer something else.

    The names of the files show the key, so secrets are hashed slowly.
    """
    secrets = repr((settings.password, settings.token, settings.client_secret)).encode()
    return hashlib.scrypt(secrets, salt=repr(settings).encode(), n=2**14, r=8, p=1).hex()
