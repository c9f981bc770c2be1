"""Every error of the service: one function per case, with its code and exact wording.

The HTTP status is the first three digits of a five-digit code. The wording is the reference's, because clients and
scripts match it; this includes oddities such as the missing space in 40404. Any code below the routes may raise these
errors; `app.py` alone turns them into responses.
"""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "RegistryError",
    "TooExpensive",
    "association_for_resource_exists",
    "association_for_subject_exists",
    "association_frozen",
    "association_not_found",
    "config_not_found",
    "context_not_empty",
    "empty_schema",
    "foreign_host",
    "foreign_origin",
    "forward_mode_is_global",
    "http_error",
    "id_overwrite",
    "import_with_subjects",
    "incompatible_schema",
    "internal",
    "invalid_association",
    "invalid_key",
    "invalid_level",
    "invalid_mode",
    "invalid_rule_set",
    "invalid_schema",
    "invalid_subject",
    "invalid_version",
    "invalid_version_order",
    "key_exists",
    "key_not_found",
    "key_not_soft_deleted",
    "key_referenced",
    "key_soft_deleted",
    "log_unreadable",
    "media_type",
    "missing_body",
    "mode_not_found",
    "no_active_version",
    "no_key_management",
    "no_such_reference",
    "not_acceptable",
    "not_found",
    "not_import_mode",
    "not_read_write",
    "not_the_writer",
    "not_written",
    "operation_not_permitted",
    "read_only",
    "referenced",
    "schema_not_found",
    "schema_too_large",
    "strong_association_exists",
    "strongly_associated",
    "subject_not_found",
    "subject_not_soft_deleted",
    "subject_soft_deleted",
    "too_large",
    "too_many_keys",
    "unreadable_body",
    "unsupported_policy",
    "version_not_found",
    "version_not_soft_deleted",
    "version_soft_deleted",
    "write_forwarding_failed",
    "write_refused",
    "write_timed_out",
]


_RETRY_AFTER_S = "1"


class RegistryError(Exception):
    """An error response: its code, message and, for an incompatible schema, findings.

    Args:
        code: an HTTP status, or a five-digit code that begins with one.
        message: the sentence that the client gets.
        findings: the reasons for a compatibility verdict, as JSON objects.
    """

    def __init__(self, code: int, message: str, findings: Sequence[Mapping[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.findings = findings

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response; after a 503, the client may retry in a moment."""
        return {"Retry-After": _RETRY_AFTER_S} if self.status == 503 else {}

    @property
    def status(self) -> int:
        """The HTTP status of the code."""
        return self.code if self.code < 1000 else self.code // 100


class TooExpensive(RegistryError):
    """The error for a request whose schemas need more computing than one request may use."""

    def __init__(self, reason: str) -> None:
        super().__init__(42201, reason)


# --- HTTP errors without a five-digit code


def http_error(status: int, phrase: str) -> RegistryError:
    """Return the error for a request that HTTP itself rules out.

    Args:
        status: the HTTP status.
        phrase: the status's reason phrase.
    """
    return RegistryError(status, f"HTTP {status} {phrase}")


def not_found() -> RegistryError:
    """Return the error for an unknown route, or for a path or query parameter that is not an integer."""
    return http_error(404, "Not Found")


def not_acceptable() -> RegistryError:
    """Return the error for an `Accept` header without any of our media types."""
    return http_error(406, "Not Acceptable")


def media_type() -> RegistryError:
    """Return the error for a body in an unsupported media type or encoding."""
    return http_error(415, "Unsupported Media Type")


def unreadable_body(reason: str) -> RegistryError:
    """Return the error for a body that is not the JSON that the route takes."""
    return RegistryError(400, reason)


def missing_body() -> RegistryError:
    """Return the error for a request without the body that the route takes."""
    return RegistryError(422, "The request body is missing")


def too_large(limit: int) -> RegistryError:
    """Return the error for a body of more than `limit` bytes."""
    return RegistryError(413, f"The request body is larger than {limit} bytes")


# --- 403


def foreign_host(name: str) -> RegistryError:
    """Return the error for a `Host` header with a name that is not one of this registry's."""
    return RegistryError(
        403,
        f"HTTP 403 Forbidden: the Host header names {name!r}, but this registry listens on loopback. "
        "Use localhost or 127.0.0.1, or allow the name with --allowed-hosts",
    )


def foreign_origin(origin: str) -> RegistryError:
    """Return the error for a write from a web page of another site."""
    page = f"a web page of {origin!r}" if origin else "a web page of another site"
    return RegistryError(
        403, f"HTTP 403 Forbidden: {page} may not write to this registry. Allow its origin with --allowed-origins"
    )


def no_key_management() -> RegistryError:
    """Return the error for a shared key encryption key, which the registry itself would have to use.

    The reference answers 40370 if its key management service denies access.
    """
    return RegistryError(
        40370,
        "A key cannot be shared with this registry, which has no access to a key management service. "
        "Set shared to false: clients then generate and encrypt their data encryption keys themselves",
    )


# --- 404


def subject_not_found(subject: str) -> RegistryError:
    """Return the error for a subject that does not exist or is soft-deleted."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    """Return the error for a version that does not exist; `latest` is -1."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(identity: object = None) -> RegistryError:
    """Return the error for a schema that does not exist, with the id or GUID if it was looked up by one."""
    return RegistryError(40403, "Schema not found" if identity is None else f"Schema {identity} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """Return the error for a second soft deletion of a subject."""
    return RegistryError(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """Return the error for a hard deletion of a subject that is not soft-deleted."""
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """Return the error for a second soft deletion of a version."""
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """Return the error for a hard deletion of a version that is not soft-deleted."""
    return RegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def config_not_found(subject: str) -> RegistryError:
    """Return the error for a scope without a configuration of its own."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_found(subject: str) -> RegistryError:
    """Return the error for a scope without a mode of its own."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def association_not_found(name: str) -> RegistryError:
    """Return the error for an association that does not exist."""
    return RegistryError(40410, f"Association for '{name}' not found.")


def key_not_found(name: str) -> RegistryError:
    """Return the error for an encryption key that does not exist: a KEK by its name, or a DEK by its subject."""
    return RegistryError(40470, f"Key '{name}' not found")


def key_not_soft_deleted(name: str) -> RegistryError:
    """Return the error for a hard deletion of an encryption key that is not soft-deleted."""
    return RegistryError(40471, f"Key '{name}' was not deleted first before being permanently deleted")


def key_soft_deleted(name: str) -> RegistryError:
    """Return the error for undeleting a DEK while its KEK is soft-deleted."""
    return RegistryError(40472, f"Key '{name}' must be undeleted first")


# --- 409


def incompatible_schema(
    subject: str, messages: Sequence[str], advice: Sequence[str], findings: Sequence[Mapping[str, Any]]
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


def association_for_resource_exists(association_type: str, resource: str) -> RegistryError:
    """Return the error for a second association of a type for a resource."""
    return RegistryError(40903, f"An association of type '{association_type}' already exists for resource '{resource}'")


def association_for_subject_exists(subject: str) -> RegistryError:
    """Return the error for deleting, or associating as STRONG, a subject that already has an association."""
    return RegistryError(40904, f"An association already exists for subject '{subject}'")


def strong_association_exists(subject: str) -> RegistryError:
    """Return the error for associating a resource with a subject that has a STRONG association with another."""
    return RegistryError(40905, f"A strong association already exists for subject '{subject}'")


def no_active_version(subject: str) -> RegistryError:
    """Return the error for an association with a subject that has no live version."""
    return RegistryError(40907, f"No active (non-deleted) version exists for subject '{subject}'")


def association_frozen(association_type: str, subject: str) -> RegistryError:
    """Return the error for changing a frozen association, or for deleting it without cascade."""
    return RegistryError(40908, f"The association of type  '{association_type}' is frozen for subject '{subject}'")


def key_exists(name: str) -> RegistryError:
    """Return the error for an encryption key that exists: a KEK name, or a DEK subject, algorithm and version."""
    return RegistryError(40971, f"Key '{name}' already exists; use a different value")


def too_many_keys(limit: int) -> RegistryError:
    """Return the error for more than `limit` encryption keys of a kind."""
    return RegistryError(40972, f"A maximum of {limit} keys already exist")


# --- 422


def invalid_schema(reason: str) -> RegistryError:
    """Return the error for a schema that does not parse, or whose type or references are not supported."""
    return RegistryError(42201, reason)


def no_such_reference(subject: str, version: int) -> RegistryError:
    """Return the error for a reference to a version that does not exist or is soft-deleted."""
    return RegistryError(42201, f'No schema reference found for subject "{subject}" and version {version}')


def empty_schema() -> RegistryError:
    """Return the error for a blank schema in a subject without a version to copy."""
    return RegistryError(42201, "Empty schema")


def invalid_version_order() -> RegistryError:
    """Return the error for an explicit version that is not the next one."""
    return RegistryError(42201, "Version is not one more than previous version")


def invalid_version(version: str) -> RegistryError:
    """Return the error for a version in the path that is neither a positive number nor `latest`."""
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    """Return the error for an unknown compatibility level."""
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def unsupported_policy(policy: str) -> RegistryError:
    """Return the error for a compatibility policy whose checks this registry does not have."""
    return RegistryError(
        42203,
        f"The compatibilityPolicy {policy} is not supported: this registry does not have its checks of table formats. "
        "Set compatibilityPolicy to STRICT or LENIENT",
    )


def invalid_mode() -> RegistryError:
    """Return the error for an unknown mode."""
    return RegistryError(42204, "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.")


def forward_mode_is_global() -> RegistryError:
    """Return the error for setting FORWARD on anything but the global scope."""
    return RegistryError(42204, "Forward mode only supported on global level")


def operation_not_permitted(reason: str) -> RegistryError:
    """Return the error for an operation that the mode or the state of the scope does not permit."""
    return RegistryError(42205, reason)


def _prefix_of(context: str) -> str:
    """Return a context as the reference prints it: `:.c:`, or an empty string for the default context."""
    return "" if context == "." else f":{context}:"


def read_only(subject: str, context: str) -> RegistryError:
    """Return the error for a write in a read-only scope."""
    return operation_not_permitted(f"Subject {subject} in context {_prefix_of(context)} is in read-only mode")


def not_read_write(subject: str, context: str) -> RegistryError:
    """Return the error for a registration without an id in a scope in IMPORT mode."""
    return operation_not_permitted(f"Subject {subject} in context {_prefix_of(context)} is not in read-write mode")


def not_import_mode(subject: str, context: str) -> RegistryError:
    """Return the error for a registration with an id in a scope that is not in IMPORT mode."""
    return operation_not_permitted(f"Subject {subject} in context {_prefix_of(context)} is not in import mode")


def id_overwrite(schema_id: int, context: str) -> RegistryError:
    """Return the error for an import under an id that another schema has."""
    return operation_not_permitted(
        f"Overwrite new schema with id {schema_id} in context {_prefix_of(context)} is not permitted."
    )


def import_with_subjects() -> RegistryError:
    """Return the error for setting IMPORT on a scope with live schemas."""
    return operation_not_permitted("Cannot import since found existing subjects")


def strongly_associated(subject: str) -> RegistryError:
    """Return the error for a reference to a subject that has a STRONG association."""
    return operation_not_permitted(
        f"Subject {subject} has a strong association, so no other subject may refer to its schemas"
    )


def referenced(subject: str, version: int) -> RegistryError:
    """Return the error for deleting a version that another schema refers to."""
    return RegistryError(
        42206,
        f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RegistryError:
    """Return the error for a subject with control characters or a reserved name."""
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def schema_too_large() -> RegistryError:
    """Return the error for a record that is too large for the log."""
    return RegistryError(42209, "Register operation failed because schema is too large")


def invalid_rule_set(reason: str) -> RegistryError:
    """Return the error for a rule set with an invalid rule."""
    return RegistryError(42210, f"Invalid rule set: {reason}")


def context_not_empty(context: str) -> RegistryError:
    """Return the error for deleting a context that still has subjects or associations."""
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def invalid_association(name: str, detail: str) -> RegistryError:
    """Return the error for an invalid property of an association."""
    return RegistryError(42212, f"The association specified an invalid value for property: '{name}', detail: {detail}")


def invalid_key(field: str) -> RegistryError:
    """Return the error for a missing or invalid property of an encryption key."""
    return RegistryError(42271, f"Invalid or missing value for field '{field}' of key")


def key_referenced(name: str) -> RegistryError:
    """Return the error for deleting a KEK that still has DEKs."""
    return RegistryError(42272, f"One or more references exist to the key {name}")


# --- 5xx


def internal() -> RegistryError:
    """Return the error for an unexpected failure; the service's log has the details."""
    return RegistryError(500, "Internal Server Error")


def write_refused(reason: str) -> RegistryError:
    """Return the error for a log that does not accept writes and will not recover by itself; nothing was written."""
    return RegistryError(50001, f"Error while writing to the log: {reason}. Nothing was written")


def write_timed_out() -> RegistryError:
    """Return the error for a log that did not respond in time; the outcome of the write is unknown."""
    return RegistryError(50002, "Write to the log timed out: it is not known whether it was written")


def write_forwarding_failed() -> RegistryError:
    """Return the error for a pen holder that did not respond; the outcome of the write is unknown."""
    return RegistryError(
        50003,
        "Error while forwarding the request: the node that writes did not answer, "
        "and it is not known whether it was written",
    )


def not_the_writer() -> RegistryError:
    """Return the error for a write while another node holds the pen or the pen keeps moving; nothing was written."""
    return RegistryError(50004, "Leader not known. Nothing was written")


def log_unreadable(reason: str) -> RegistryError:
    """Return the error for a log that cannot be read, so no answer would be known to be up to date."""
    return RegistryError(50301, f"The log cannot be read: {reason}. Try again later")


def not_written(reason: str) -> RegistryError:
    """Return the error for a write that was given up before the log had it."""
    return RegistryError(50302, f"Nothing was written: {reason}. Try again later")
