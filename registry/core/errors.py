"""Every error of the service: one row per case, with its code and exact wording.

The HTTP status is the first three digits of a five-digit code. The wording is the reference's, because clients and
scripts match it; this includes oddities such as the missing space in 40404. Any code below the routes may raise these
errors; `http/pipeline.py` alone turns them into answers. Every name without an underscore is public; an `__all__`
would only repeat the table.
"""

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

import orjson

from strata.storage.records import DEFAULT_CONTEXT, context_of

_RETRY_AFTER_S = "1"


class RegistryError(Exception):
    """An error response: its code, message and, for an incompatible schema, findings.

    Args:
        code: an HTTP status, or a five-digit code that begins with one.
        message: the sentence that the client gets.
        findings: the reasons for a compatibility verdict, as JSON objects.
    """

    limit = ""
    """The limit that the request has hit, as metrics name it; empty if it has hit none."""

    def __init__(self, code: int, message: str, findings: Sequence[Mapping[str, object]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.findings = findings

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of the response; after a 503, the client may retry in a moment."""
        return [("Retry-After", _RETRY_AFTER_S)] if self.status == 503 else []

    @property
    def status(self) -> int:
        """The HTTP status of the code."""
        return self.code if self.code < 1000 else self.code // 100


class TooExpensive(RegistryError):
    """The error for a request whose schemas need more computing than one request may use."""

    def __init__(self, reason: str) -> None:
        super().__init__(42201, reason)


class Unauthorized(RegistryError):
    """The error for a request whose credentials are missing or invalid.

    Args:
        challenges: the value of one `WWW-Authenticate` header for each scheme that the client may use.
        reason: why the credentials were rejected, for the service's own log; the client does not get it.
    """

    def __init__(self, challenges: Sequence[str], reason: str = "") -> None:
        super().__init__(401, "Unauthorized")
        self._challenges = challenges
        self.reason = reason

    @property
    def headers(self) -> list[tuple[str, str]]:
        """One header for each scheme."""
        return [("WWW-Authenticate", challenge) for challenge in self._challenges]


class TooManyRequests(RegistryError):
    """The error for a client that must wait.

    Args:
        message: the sentence that the client gets.
        wait_s: how long to wait, in seconds.
        limit: the limit that the request has hit.
    """

    def __init__(self, message: str, wait_s: float, limit: str = "login_rate") -> None:
        super().__init__(429, message)
        self.limit = limit
        self._wait_s = max(1, math.ceil(wait_s))

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The time to wait."""
        return [("Retry-After", str(self._wait_s))]


class _Case(NamedTuple):
    """A kind of error; a call with one argument per `{}` of the sentence returns the error."""

    code: int
    sentence: str

    def __call__(self, *details: object) -> RegistryError:
        return RegistryError(self.code, self.sentence.format(*details))


def error_body(code: int, message: str) -> bytes:
    """Return the JSON of an error without findings."""
    return orjson.dumps({"error_code": code, "message": message})


# --- HTTP errors without a five-digit code

unreadable_body = _Case(400, "{}")
not_found = _Case(404, "HTTP 404 Not Found")  # an unknown route, or a path or query parameter that is not an integer
not_acceptable = _Case(406, "HTTP 406 Not Acceptable")
too_large = _Case(413, "The request body is larger than {} bytes")
media_type = _Case(415, "HTTP 415 Unsupported Media Type")
missing_body = _Case(422, "The request body is missing")
unknown_property = _Case(422, "Unknown property '{}' in {}{}")
internal = _Case(500, "Internal Server Error")


def too_many_writes() -> RegistryError:
    """Return the error for a write that finds too many others waiting."""
    error = not_written("too many writes are waiting")
    error.limit = "waiting_writes"
    return error


def http_error(status: int, phrase: str) -> RegistryError:
    """Return the error for a request that HTTP itself rules out, with the reason phrase of its status."""
    return RegistryError(status, f"HTTP {status} {phrase}")


# --- 403

access_denied = _Case(40301, "User is denied operation {} on {}")

far_id = _Case(
    40301,
    "User is denied operation WriteCompatibility on Registry: schema id {} is more than {} above the highest id of its "
    "context, or above {}, which needs ALTER_CONFIGS on the context or on the registry",
)
foreign_host = _Case(
    403,
    "HTTP 403 Forbidden: the Host header names {!r}, but this registry listens on loopback. "
    "Use localhost or 127.0.0.1, or allow the name with --allowed-hosts",
)
# The reference answers 40370 if its key management service denies access; this registry has none for a shared KEK.
no_key_management = _Case(
    40370,
    "A key cannot be shared with this registry, which has no access to a key management service. "
    "Set shared to false: clients then generate and encrypt their data encryption keys themselves",
)


def foreign_origin(origin: str) -> RegistryError:
    """Return the error for a write from a web page of another site."""
    page = f"a web page of {origin!r}" if origin else "a web page of another site"
    return RegistryError(
        403, f"HTTP 403 Forbidden: {page} may not write to this registry. Allow its origin with --allowed-origins"
    )


# --- 404

subject_not_found = _Case(40401, "Subject '{}' not found.")
version_not_found = _Case(40402, "Version {} not found.")  # -1 for the latest
subject_soft_deleted = _Case(40404, "Subject '{}' was soft deleted.Set permanent=true to delete permanently")
subject_not_soft_deleted = _Case(40405, "Subject '{}' was not deleted first before being permanently deleted")
version_soft_deleted = _Case(40406, "Subject '{}' Version {} was soft deleted.Set permanent=true to delete permanently")
version_not_soft_deleted = _Case(
    40407, "Subject '{}' Version {} was not deleted first before being permanently deleted"
)
config_not_found = _Case(40408, "Subject '{}' does not have subject-level compatibility configured")
mode_not_found = _Case(40409, "Subject '{}' does not have subject-level mode configured")
association_not_found = _Case(40410, "Association for '{}' not found.")
exporter_not_found = _Case(40450, "Exporter '{}' not found")
key_not_found = _Case(40470, "Key '{}' not found")  # a KEK's name or a DEK's subject, as in all errors of keys
key_not_soft_deleted = _Case(40471, "Key '{}' was not deleted first before being permanently deleted")
key_soft_deleted = _Case(40472, "Key '{}' must be undeleted first")


def schema_not_found(identity: object = None) -> RegistryError:
    """Return the error for a schema that does not exist, with the id or GUID if it was looked up by one."""
    return RegistryError(40403, "Schema not found" if identity is None else f"Schema {identity} not found")


# --- 409

association_for_resource_exists = _Case(40903, "An association of type '{}' already exists for resource '{}'")
association_for_subject_exists = _Case(40904, "An association already exists for subject '{}'")
strong_association_exists = _Case(40905, "A strong association already exists for subject '{}'")
no_active_version = _Case(40907, "No active (non-deleted) version exists for subject '{}'")
association_frozen = _Case(40908, "The association of type  '{}' is frozen for subject '{}'")
registry_moved = _Case(40990, "The registry has changed since offset {}: it is at offset {}. Plan again")
plan_outdated = _Case(40990, "{}, or what its change depends on, has changed since the plan was made. Plan again")
# The reference answers what is wrong in an exporter with 409.
invalid_exporter_name = _Case(40950, "Missing or invalid exporter name: {}")
invalid_exporter_config = _Case(40951, "Missing or invalid exporter config: {}")
invalid_exporter_subjects = _Case(40952, "Invalid exporter subjects: {}")
exporter_exists = _Case(40960, "Exporter '{}' already exists")
exporter_not_paused = _Case(40963, "Exporter '{}' is not paused. Pause it before it is changed")
too_many_exporters = _Case(40964, "A maximum of {} exporters already exist")
key_exists = _Case(40971, "Key '{}' already exists; use a different value")
too_many_keys = _Case(40972, "A maximum of {} keys already exist")


def in_step(number: int, error: RegistryError) -> RegistryError:
    """Return the error of one step of a batch, with the step's number in front of its message."""
    if error.status == HTTPStatus.UNAUTHORIZED:  # its headers say how to authenticate
        return error
    return RegistryError(error.code, f"Step {number}: {error.message}", error.findings)


def incompatible_schema(
    subject: str, messages: Sequence[str], advice: Sequence[str], findings: Sequence[Mapping[str, object]]
) -> RegistryError:
    """Return the error for a schema that breaks the compatibility level of its subject.

    Args:
        subject: the subject.
        messages: the reference's messages, which end the reference's wording.
        advice: sentences added to it that say what would be accepted.
        findings: the reasons as JSON objects.
    """
    return RegistryError(
        40901,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(messages)}]' + "".join(f" {sentence}" for sentence in advice),
        findings,
    )


# --- 422

invalid_schema = _Case(42201, "{}")
no_such_reference = _Case(42201, 'No schema reference found for subject "{}" and version {}')
empty_schema = _Case(42201, "Empty schema")
invalid_version_order = _Case(42201, "Version is not one more than previous version")
invalid_version = _Case(
    42202,
    "The specified version '{}' is not a valid version id. "
    'Allowed values are between [1, 2^31-1] and the string "latest"',
)
invalid_level = _Case(
    42203,
    "Invalid compatibility level. Valid values are none, backward, forward, full, "
    "backward_transitive, forward_transitive, and full_transitive",
)
invalid_mode = _Case(42204, "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.")
forward_mode_is_global = _Case(42204, "Forward mode only supported on global level")
operation_not_permitted = _Case(42205, "{}")
standby = _Case(
    42205,
    "This {} is a standby of {}: it serves reads and refuses writes. Write there, or make it the writer with "
    "`strata promote`",
)
import_with_subjects = _Case(42205, "Cannot import since found existing subjects")
ids_used_up = _Case(
    42205,
    "The ids of context {} are used up: 2147483647 was assigned. Ids that no version has any more are assigned again "
    "after `strata ids lower`",
)
id_in_use = _Case(
    42205, "Schema id {} is in use by subject '{}' version {}: hard-delete what uses it before ids are lowered below it"
)
strongly_associated = _Case(42205, "Subject '{}' has a strong association and cannot be referenced")
referenced = _Case(
    42206, "One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={},version={}}}."
)
subject_referenced = _Case(42206, "One or more references exist to the schema {}.")
invalid_subject = _Case(42208, "The specified subject '{}' is not a valid.")
schema_too_large = _Case(42209, "Register operation failed because schema is too large")
invalid_rule_set = _Case(42210, "Invalid rule set: {}")
context_not_empty = _Case(42211, "The specified context '{}' is not empty.")
invalid_association = _Case(42212, "The association specified an invalid value for property: '{}', detail: {}")
invalid_key = _Case(42271, "Invalid or missing value for field '{}' of key")
key_referenced = _Case(42272, "One or more references exist to the key {}")


def read_only(subject: str) -> RegistryError:
    """Return the error for a write in a read-only scope; an empty subject is the registry as a whole."""
    return _wrong_mode(subject, "in read-only mode")


def not_read_write(subject: str) -> RegistryError:
    """Return the error for a registration without an id in a scope in IMPORT mode."""
    return _wrong_mode(subject, "not in read-write mode")


def not_import_mode(subject: str) -> RegistryError:
    """Return the error for a registration with an id in a scope that is not in IMPORT mode."""
    return _wrong_mode(subject, "not in import mode")


def id_overwrite(schema_id: int, subject: str) -> RegistryError:
    """Return the error for an import under an id that another schema has."""
    return operation_not_permitted(
        f"Overwrite new schema with id {schema_id} in context {_shown_context(subject)} is not permitted."
    )


def _wrong_mode(subject: str, fault: str) -> RegistryError:
    return operation_not_permitted(f"Subject {subject} in context {_shown_context(subject)} is {fault}")


def _shown_context(subject: str) -> str:
    """Return the context of a subject as the reference prints it: `:.c:`, or nothing for the default context."""
    context = context_of(subject)
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


# --- 5xx: the log

write_refused = _Case(50001, "Error while writing to the log: {}. Nothing was written")
write_timed_out = _Case(50002, "Write to the log timed out: it is not known whether it was written")
write_forwarding_failed = _Case(
    50003,
    "Error while forwarding the request: the node that writes did not answer, "
    "and it is not known whether it was written",
)
not_the_writer = _Case(50004, "Leader not known. Nothing was written")  # the pen is elsewhere, or keeps moving
log_unreadable = _Case(50301, "The log cannot be read: {}. Try again later")
audit_unavailable = _Case(50304, "Nothing was written: the audit cannot be written. Try again later")
not_written = _Case(50302, "Nothing was written: {}. Try again later")  # given up before the log had it
identity_provider_silent = _Case(50303, "The keys of the identity provider cannot be read. Try again later")


def codes() -> list[int]:
    """Return every code that an answer of the service may have."""
    others = (400, 401, 403, 404, 405, 406, 408, 413, 414, 415, 422, 429, 431, 500, 503, 40403)
    return sorted({*others, *(case.code for case in globals().values() if isinstance(case, _Case))})
