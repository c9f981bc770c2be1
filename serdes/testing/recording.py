"""The answers of a registry as a file: recorded once, and replayed without the registry.

    with record("http://localhost:8081", "tests/answers.json") as client:
        run(client)

    run(replay("tests/answers.json"))

A request that is sent several times has as many answers, in order; the last one repeats. The file is JSON with
sorted keys, one request after the other, fit for a repository: it has paths, bodies and answers, and no credentials.

Rules of this file: requests and answers; it judges neither.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Required, TypedDict, Unpack

from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.conf_types import ClientOptions
from strata.serdes.errors import RegistryError, SerdeError
from strata.serdes.requests import AnyTransport
from strata.serdes.transport import Transport

__all__ = ["Unrecorded", "record", "replay"]

_VERSION = 1


class Unrecorded(SerdeError):
    """The recording has no answer to a request."""


class _Error(TypedDict):
    status: int
    error_code: int
    message: str


class _Noted(TypedDict, total=False):
    """A request and its answer."""

    method: Required[str]
    path: Required[str]
    query: dict[str, str]
    body: dict[str, object]
    answer: object
    error: _Error


class _Recording:
    """Sends requests, and notes each with its answer."""

    def __init__(self, transport: AnyTransport) -> None:
        self._transport, self._lock = transport, Lock()
        self.answers: list[_Noted] = []

    def close(self) -> None:
        self._transport.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
        noted = _request(method, path, query, body)
        try:
            answer = self._transport.request(method, path, query=query, body=body)
        except RegistryError as error:
            noted["error"] = {"status": error.status, "error_code": error.error_code, "message": error.message}
            raise
        else:
            noted["answer"] = answer
            return answer
        finally:
            if "answer" in noted or "error" in noted:  # no answer is not an answer
                with self._lock:
                    self.answers.append(noted)


class _Replay:
    """Answers requests from a recording."""

    def __init__(self, answers: list[_Noted], path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._answers: dict[str, list[_Noted]] = {}
        for answer in answers:
            request = {name: value for name, value in answer.items() if name not in ("answer", "error")}
            self._answers.setdefault(json.dumps(request, sort_keys=True), []).append(answer)

    def close(self) -> None:
        pass

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
        request = json.dumps(_request(method, path, query, body), sort_keys=True)
        with self._lock:
            answers = self._answers.get(request)
            if not answers:
                raise Unrecorded(f"{self._path} has no answer to {method} {path}; record it again")
            noted = answers.pop(0) if len(answers) > 1 else answers[0]
        if "error" in noted:
            error = noted["error"]
            raise RegistryError(error["status"], error["error_code"], error["message"])
        return json.loads(json.dumps(noted["answer"]))


def _request(method: str, path: str, query: Mapping[str, str] | None, body: Mapping[str, object] | None) -> _Noted:
    request: _Noted = {"method": method, "path": path}
    if query:
        request["query"] = dict(query)
    return request if body is None else {**request, "body": dict(body)}


@contextmanager
def record(url: Any, path: str | Path, **options: Unpack[ClientOptions]) -> Iterator[RegistryClient]:
    """Yield a client whose answers are written to a file at the end, also after an error.

    Args:
        url: the registry's address, or `ClientSettings`.
        path: the file; it is replaced.
        **options: options of `RegistryClient`, such as credentials, which the file does not get.

    Raises:
        OSError: If the file cannot be written.
    """
    settings = ClientSettings.of(url, **options)
    plain = RegistryClient.from_settings(settings) if settings.mock is not None else None
    recording = _Recording(Transport(settings) if plain is None else plain._transport)
    try:
        with RegistryClient.from_settings(settings, transport=recording) as client:
            yield client
    finally:
        _write(Path(path), {"version": _VERSION, "answers": recording.answers})


def _write(path: Path, content: object) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.write("\n")
    Path(name).replace(path)


def replay(path: str | Path) -> RegistryClient:
    """Return a client that gets its answers from a recording; what was not recorded raises `Unrecorded`.

    Args:
        path: the file from `record`.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not a recording.
    """
    try:
        content = json.loads(Path(path).read_text())
        answers = content["answers"]
        if content["version"] != _VERSION or not isinstance(answers, list):
            raise ValueError("version")  # noqa: TRY301 - the sentence below says what is wrong
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError(f"{path} is not a recording of strata.serdes.testing.record") from None
    settings = ClientSettings(urls=("http://recording.invalid",))
    return RegistryClient.from_settings(settings, transport=_Replay(answers, Path(path)))
