"""Requests to a registry: one request in, a status and a JSON value out. Knows the errors of a registry, but no route.

Connections, retries, credentials and the bounds of answers are those of `strata.http`, as in the clients.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar
from urllib.parse import unquote, urlencode, urlsplit

from strata.http import errors as http_errors
from strata.http.client import Answer as HttpAnswer
from strata.http.client import Client
from strata.http.credentials import credentials_in
from strata.http.retries import RETRIED, repeats_after_status
from strata.http.settings import HttpSettings, check_files, split_userinfo
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.tls_files import TlsFiles
from strata.storage.addresses import without_password
from strata.storage.record_json import RecordError, from_properties
from strata.storage.records import Key, Value

__all__ = [
    "Answer",
    "AnswerTooLong",
    "Connection",
    "Forbidden",
    "Shape",
    "is_list",
    "is_names",
    "is_object",
    "is_service",
    "parsed",
]

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_NO_KEY_MANAGEMENT = 40370  # a 403 that does not mean rejected credentials
_RETRIES = 5
_BACKOFF_S = 0.3
_LONGEST_REST_S = (
    10.0  # between retries, whatever a service asks for: the caller reports what is wrong, and comes again
)
_SHOWN = 200  # characters of an odd answer
_SETTING = re.compile(r"(?:^|(?<=needs ))(ca|cert|key)_file\b")  # errors name it as its option
_TIMEOUT_S = 60.0
THREADS = 8
_KeyT = TypeVar("_KeyT", bound=Key)
_ValueT = TypeVar("_ValueT", bound=Value)
Shape = Callable[[object], bool]
"""Whether the JSON of a success is what a caller expects."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A registry's response: status, error code (0 for a success) and JSON body."""

    status: int
    code: int
    body: Any

    @property
    def good(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """What the registry says about an error."""
        return _message(self.body)

    @property
    def missing(self) -> bool:
        """Whether the requested thing does not exist."""
        return self.status == 404


def is_service(where: str) -> bool:
    """Return whether a text is the URL of a service, not that of a log."""
    return where.lower().startswith(("http://", "https://"))


def is_object(body: object) -> TypeGuard[dict[str, object]]:
    """Return whether JSON is an object."""
    return isinstance(body, dict)


def is_list(body: object) -> TypeGuard[list[object]]:
    """Return whether JSON is a list."""
    return isinstance(body, list)


def is_names(body: object) -> TypeGuard[list[str]]:
    """Return whether JSON is a list of texts."""
    return isinstance(body, list) and all(isinstance(name, str) for name in body)


def _is_anything(_: object) -> bool:
    return True


class Forbidden(TransferError):
    """A registry does not allow a request."""


class AnswerTooLong(TransferError):
    """An answer has more bytes than are read."""


class Connection:
    """A registry at a base URL, or at several of them; thread-safe.

    Args:
        url: the base URL, or several with commas between them, tried in turn; `USER:PASSWORD@` before a host
            authenticates.
        auth: `USER:PASSWORD`, a bearer token, or lines of NAME=VALUE (see `strata.http.credentials`); it takes
            precedence over the URL's.
        tls: the files for https.
        retries: how often to repeat a request that fails.
        timeout_s: how long to wait for a connection and for each part of an answer.
        **more: further settings of `HttpSettings`.

    Raises:
        TransferError: if the URL is malformed, or credentials or a file cannot be used.
    """

    def __init__(
        self,
        url: str,
        auth: str | None = None,
        tls: TlsFiles | None = None,
        *,
        retries: int = _RETRIES,
        timeout_s: float = _TIMEOUT_S,
        **more: object,
    ) -> None:
        bases, userinfo = _addresses(url)
        self.name = ",".join(bases)
        self._retries = retries
        try:
            options: dict[str, Any] = {**(tls or TlsFiles()).settings(), **credentials_in(auth), **more}
            if userinfo is not None and options.keys().isdisjoint({"username", "token", "token_url"}):
                options |= {"username": userinfo[0], "password": userinfo[1]}
            self._settings = HttpSettings(
                urls=bases,
                timeout=timeout_s,
                retries=retries,
                backoff=_BACKOFF_S,
                max_backoff=_LONGEST_REST_S,
                pool_size=THREADS,
                **options,
            )
            check_files(self._settings)
            self._client = Client(self._settings, {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE})
        except ValueError as error:
            raise TransferError(_SETTING.sub(r"--\1-file", str(error))) from None

    def ask(
        self, method: str, path: str, body: object = None, shape: Shape = _is_anything, /, **query: str | int
    ) -> Answer:
        """Send a request, with retries, and return the response.

        Args:
            method: the HTTP method.
            path: the path below the base URL.
            body: the JSON body, if any.
            shape: what the JSON of a success must be.
            query: the query parameters.

        Raises:
            AnswerTooLong: if the response is longer than what is read.
            TransferError: if there is no response, retries do not help, it is not a registry's, or it rejects the
                credentials.
        """
        target = path + (f"?{urlencode(query)}" if query else "")
        response = self._send(method, target, None if body is None else json.dumps(body).encode())
        content = _content(response.data)
        code = _code(content, response.status)
        if response.status in (401, 403) and code != _NO_KEY_MANAGEMENT:
            refused = "rejected the credentials" if response.status == 401 else f"forbids {method} {unquote(path)}"
            why = f"{_message(content)}; " if _message(content) else ""
            error_class = Forbidden if response.status == 403 else TransferError
            raise error_class(f"the registry {self.name} {refused} ({why}status {response.status})")
        if response.status in RETRIED:
            repeated = self._retries and repeats_after_status(method, response.status)
            tries = f" after {self._retries} retries" if repeated else ""
            raise TransferError(f"the registry {self.name} answered {response.status}{tries}: {_message(content)}")
        if response.status not in (204, *range(400, 500)) and (response.status >= 300 or content is None):
            raise TransferError(
                f"{self.name} answered {method} {path} with {response.status} and no JSON; expected a schema registry"
            )
        if response.status < 300 and not shape(content):
            raise TransferError(
                f"{self.name} answered {method} {unquote(path)} with other JSON than a registry: "
                f"{json.dumps(content)[:_SHOWN]}"
            )
        return Answer(response.status, 0 if response.status < 300 else code, content)

    def _send(self, method: str, target: str, body: bytes | None) -> HttpAnswer:
        request = f"{method} {unquote(urlsplit(target).path)}"
        try:
            return self._client.send(method, target, body)
        except http_errors.NoAnswer as silence:
            if silence.fault:
                raise TransferError(f"the certificate of {silence.base} is not accepted: {silence.fault}") from None
            raise TransferError(f"the registry {self.name} does not answer: {silence.reason}") from None
        except http_errors.AnswerTooLong:
            most = self._settings.max_answer_bytes
            raise AnswerTooLong(f"{self.name} answered {request} with more than {most >> 20} MiB") from None
        except http_errors.AnswerTooSlow as error:
            raise TransferError(f"{self.name} did not end its answer to {request}: {error}") from None
        except http_errors.HttpFailure as error:  # of the token endpoint
            raise TransferError(str(error)) from None

    def get(self, path: str, shape: Shape = _is_anything, /, **query: str | int) -> Any:
        """Return the JSON at a path.

        Raises:
            TransferError: if the request fails, or the JSON has another shape.
        """
        return self.must("GET", path, None, shape, **query)

    def must(
        self, method: str, path: str, body: object = None, shape: Shape = _is_anything, /, **query: str | int
    ) -> Any:
        """Return the JSON of a successful response.

        Raises:
            TransferError: if the request fails, or the JSON has another shape; the message includes the registry's.
        """
        answer = self.ask(method, path, body, shape, **query)
        if not answer.good:
            raise TransferError(
                f"{self.name} rejected {method} {unquote(path)}: {_message(answer.body)} (error {answer.code})"
            )
        return answer.body


def parsed(
    name: str,
    key: type[_KeyT],
    value: type[_ValueT],
    body: Mapping[str, object],
    known: Callable[[Mapping[str, object]], Mapping[str, object]],
) -> tuple[_KeyT, _ValueT]:
    """Return a key and a value of the log from a registry's answer, which has the properties of both.

    Args:
        name: the name of the registry, for error messages.
        key: the type of the key.
        value: the type of the value.
        body: the answer.
        known: takes the answer and returns properties that replace its own.

    Raises:
        TransferError: if a property is missing or of the wrong type.
    """
    try:
        content = {**body, **known(body)}
        return from_properties(key, content), from_properties(value, content)
    except (RecordError, AttributeError, KeyError, TypeError) as error:
        raise TransferError(f"{name} returned an invalid answer ({error!r}): {body}") from None


def _addresses(url: str) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the base URLs in a text, and the first credentials in them."""
    bases, userinfo = [], None
    for address in url.split(","):
        try:
            base, own = split_userinfo(address.strip())
            is_whole = urlsplit(base).port != 0
        except ValueError:
            is_whole = False
        if not is_whole:
            raise TransferError(
                f"{without_password(address)} is not the URL of a registry; expected a URL such as "
                "http://localhost:8081"
            )
        bases.append(base)
        userinfo = userinfo or own
    return tuple(bases), userinfo


def _content(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _code(content: object, status: int) -> int:
    code = content.get("error_code") if isinstance(content, dict) else None
    return code if type(code) is int else status


def _message(content: object) -> str:
    return str(content.get("message", "")) if isinstance(content, dict) else "no reason given"
