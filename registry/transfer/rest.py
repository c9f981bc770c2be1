"""HTTP to a registry: one request in, a status and a JSON value out. Knows retries and credentials, but no route.

It does not follow redirects, so credentials go only where the user sent them. An answer has a bounded size, after
decompression, and a bounded time: what it reads may be hostile.
"""

import base64
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

from strata.http.certificates import certificate_fault
from strata.http.retries import RETRIED, repeats_after_silence, repeats_after_status
from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.tls_files import TlsFiles
from strata.storage.addresses import without_password
from strata.storage.record_json import RecordError, from_properties
from strata.storage.records import Key, Value

__all__ = [
    "MOST_BYTES",
    "Answer",
    "AnswerTooLong",
    "Connection",
    "Forbidden",
    "Shape",
    "Tls",
    "is_list",
    "is_names",
    "is_object",
    "is_service",
    "parsed",
    "segment",
]

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_NO_KEY_MANAGEMENT = 40370  # a 403 that does not mean rejected credentials
_METHODS = ("GET", "POST", "PUT", "DELETE")
_RETRIES = 5
_BACKOFF_S = 0.3
_LONGEST_REST_S = (
    10.0  # between retries, whatever a service asks for: the caller reports what is wrong, and comes again
)
_SHOWN = 200  # characters of an odd answer
MOST_BYTES = 64 << 20
"""The longest answer that is read, after decompression, as in the clients."""
_CHUNK = 256 << 10
_WHOLE_ANSWER_S = 300.0
_CLIENT = re.compile(r"^(<.*?>|HTTPS?Connection(Pool)?\(.*?\)): ")  # what urllib3 puts before a reason
_TIMEOUT_S = 60.0
THREADS = 8
_KeyT = TypeVar("_KeyT", bound=Key)
_ValueT = TypeVar("_ValueT", bound=Value)
Shape = Callable[[Any], bool]
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


def is_object(body: Any) -> bool:
    """Return whether JSON is an object."""
    return isinstance(body, dict)


def is_list(body: Any) -> bool:
    """Return whether JSON is a list."""
    return isinstance(body, list)


def is_names(body: Any) -> bool:
    """Return whether JSON is a list of texts."""
    return isinstance(body, list) and all(isinstance(name, str) for name in body)


def _is_anything(_: Any) -> bool:
    return True


def segment(text: str) -> str:
    """Return a name as one path segment; encode `.` and `..`, which would otherwise mean directories."""
    return text.replace(".", "%2E") if text in (".", "..") else quote(text or ":.:", safe="")


class Forbidden(TransferError):
    """A registry does not allow a request."""


class AnswerTooLong(TransferError):
    """An answer has more bytes than are read."""


class _Retry(urllib3.Retry):
    """Retries by the rule of `strata.http.retries` that rest as long as a service asks, within a bound."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:  # noqa: ARG002 - urllib3's
        return bool(self.total) and repeats_after_status(method, status_code)

    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, _LONGEST_REST_S)


class Tls(Protocol):
    """What makes a TLS context, such as `TlsFiles`."""

    def context(self) -> ssl.SSLContext:
        """Return the context."""
        ...


class Connection:
    """A registry at a base URL; thread-safe.

    Args:
        url: the base URL; `USER:PASSWORD@` before the host authenticates.
        auth: `USER:PASSWORD` or a bearer token, which takes precedence over the URL's.
        tls: what makes the TLS context for https.
        retries: how often to repeat a request that fails.
        timeout_s: how long to wait for a connection and for each part of an answer.

    Raises:
        TransferError: if the URL is malformed, or a file cannot be used.
    """

    def __init__(
        self,
        url: str,
        auth: str | None = None,
        tls: Tls | None = None,
        *,
        retries: int = _RETRIES,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        try:
            parts = urlsplit(url)
            is_whole = bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_whole = False
        if not is_whole:
            raise TransferError(
                f"{without_password(url)} is not the URL of a registry; expected a URL such as http://localhost:8081"
            )
        if parts.username and auth is None:
            auth = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        self.name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
        self._retries = retries
        retrying = _Retry(
            retries,
            redirect=0,
            other=0,  # such as a certificate that is not trusted
            backoff_factor=_BACKOFF_S,
            backoff_jitter=_BACKOFF_S,
            allowed_methods=frozenset(filter(repeats_after_silence, _METHODS)),
            raise_on_status=False,
        )
        self._retrying = retrying
        context = (tls or TlsFiles()).context() if parts.scheme == "https" else None
        self._pool = urllib3.PoolManager(maxsize=THREADS, block=True, timeout=timeout_s, ssl_context=context)
        self._headers = {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE, **_authorization(auth)}

    def ask(
        self, method: str, path: str, body: Any = None, shape: Shape = _is_anything, /, **query: str | int
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
        target = f"{self.name}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        try:
            response, said = self._exchange(method, target, data)
        except HTTPError as error:
            if fault := certificate_fault(error):
                raise TransferError(f"the certificate of {self.name} is not accepted: {fault}") from None
            raise TransferError(f"the registry {self.name} does not answer: {_reason(error)}") from None
        content = _content(said)
        code = _code(content, response.status)
        if response.status in (401, 403) and code != _NO_KEY_MANAGEMENT:
            refused = "rejected the credentials" if response.status == 401 else f"forbids {method} {unquote(path)}"
            why = f"{_message(content)}; " if _message(content) else ""
            kind = Forbidden if response.status == 403 else TransferError
            raise kind(f"the registry {self.name} {refused} ({why}status {response.status})")
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

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[urllib3.BaseHTTPResponse, bytes]:
        """Send a request, again if the response breaks off, and return the response and its body."""
        retrying: urllib3.Retry = self._retrying
        while True:
            response = self._pool.request(
                method,
                target,
                body=data,
                headers=self._headers,
                redirect=False,
                retries=retrying,
                preload_content=False,
            )
            try:
                return response, self._body(response, f"{method} {unquote(urlsplit(target).path)}")
            except (ProtocolError, ReadTimeoutError) as error:
                retrying = (response.retries or retrying).increment(method, target, error=error)
                retrying.sleep()

    def _body(self, response: urllib3.BaseHTTPResponse, request: str) -> bytes:
        """Return the body of a response.

        Raises:
            AnswerTooLong: if it is too long.
            TransferError: if it takes too long.
            HTTPError: if it breaks off; urllib3's.
        """
        body, began = bytearray(), time.monotonic()
        while chunk := response.read1(_CHUNK, decode_content=True):
            body += chunk
            is_late = time.monotonic() > began + _WHOLE_ANSWER_S
            if len(body) > MOST_BYTES or is_late:
                response.close()
            if len(body) > MOST_BYTES:
                raise AnswerTooLong(f"{self.name} answered {request} with more than {MOST_BYTES >> 20} MiB")
            if is_late:
                raise TransferError(f"{self.name} did not end its answer to {request} in {_WHOLE_ANSWER_S:g} s")
        response.release_conn()
        return bytes(body)

    def get(self, path: str, shape: Shape = _is_anything, /, **query: str | int) -> Any:
        """Return the JSON at a path.

        Raises:
            TransferError: if the request fails, or the JSON has another shape.
        """
        return self.must("GET", path, None, shape, **query)

    def must(self, method: str, path: str, body: Any = None, shape: Shape = _is_anything, /, **query: str | int) -> Any:
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
    body: Mapping[str, Any],
    known: Callable[[Mapping[str, Any]], Mapping[str, Any]],
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


def _authorization(auth: str | None) -> dict[str, str]:
    if not auth:
        return {}
    if ":" not in auth:
        if re.fullmatch(r"[!-~]+", auth) is None:  # the HTTP library would show the token in its error
            raise TransferError(
                "the bearer token has a character that no HTTP header may contain, such as a line break"
            )
        return {"Authorization": f"Bearer {auth}"}
    return {"Authorization": f"Basic {base64.b64encode(auth.encode()).decode()}"}


def _content(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _code(content: Any, status: int) -> int:
    code = content.get("error_code") if isinstance(content, dict) else None
    return code if type(code) is int else status


def _message(content: Any) -> str:
    return str(content.get("message", "")) if isinstance(content, dict) else "no reason given"


def _reason(error: HTTPError) -> str:
    return _CLIENT.sub("", str(getattr(error, "reason", None) or error))
