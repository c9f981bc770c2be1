"""Every error that the service answers: one value per code, one constructor per case with its exact wording.

The HTTP status is the first three digits of a five-digit code. The wording is the reference's, since clients and
scripts match on it; oddities such as the missing space in 40404 are kept for that reason. Raised anywhere below the
routes, mapped to a response in one place (`app.py`).
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
    """An answer other than success: an error code, its HTTP status, a sentence, and the findings of a verdict."""

    def __init__(self, code: int, message: str, findings: Sequence[Mapping[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.findings = findings

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer: a client may repeat after a moment what is answered with 503."""
        return {"Retry-After": _RETRY_AFTER_S} if self.status == 503 else {}

    @property
    def status(self) -> int:
        """The HTTP status of the error's code."""
        return self.code if self.code < 1000 else self.code // 100


class TooExpensive(RegistryError):
    """The answer to a request whose schemas take more computing than one request may ask for."""

    def __init__(self, reason: str) -> None:
        super().__init__(42201, reason)


# --- 4xx without a code of their own


def http_error(status: int, phrase: str) -> RegistryError:
    """Return the error for what the HTTP layer itself refuses."""
    return RegistryError(status, f"HTTP {status} {phrase}")


def not_found() -> RegistryError:
    """No such route, or a path or query integer that is none."""
    return http_error(404, "Not Found")


def not_acceptable() -> RegistryError:
    """None of the media types in Accept is one of ours."""
    return http_error(406, "Not Acceptable")


def media_type() -> RegistryError:
    """The body's media type is not one of ours."""
    return http_error(415, "Unsupported Media Type")


def unreadable_body(reason: str) -> RegistryError:
    """The body is not the JSON that the route takes."""
    return RegistryError(400, reason)


def missing_body() -> RegistryError:
    """The route takes a body and there is none."""
    return RegistryError(422, "The request body is missing")


def too_large(limit: int) -> RegistryError:
    """The body is larger than the service takes."""
    return RegistryError(413, f"The request body is larger than {limit} bytes")


# --- 403


def foreign_host(name: str) -> RegistryError:
    """`Host` names a machine that this registry does not know itself by."""
    return RegistryError(
        403,
        f"HTTP 403 Forbidden: the Host header names {name!r}, but this registry listens on loopback. "
        "Use localhost or 127.0.0.1, or allow the name with --allowed-hosts",
    )


def foreign_origin(origin: str) -> RegistryError:
    """A web page of another site sends a write."""
    page = f"a web page of {origin!r}" if origin else "a web page of another site"
    return RegistryError(
        403, f"HTTP 403 Forbidden: {page} may not write to this registry. Allow its origin with --allowed-origins"
    )


def no_key_management() -> RegistryError:
    """A shared key encryption key, which this service would have to use itself.

    The reference's code for a key management service that refuses it.
    """
    return RegistryError(
        40370,
        "A key cannot be shared with this registry, which has no access to a key management service. "
        "Set shared to false: clients then generate and encrypt their data encryption keys themselves",
    )


# --- 404


def subject_not_found(subject: str) -> RegistryError:
    """No such subject, or none that is not soft-deleted."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    """No such version; `latest` is -1."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(identity: object = None) -> RegistryError:
    """No such schema: by id or GUID when given, else by content."""
    return RegistryError(40403, "Schema not found" if identity is None else f"Schema {identity} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """A second soft delete of a subject."""
    return RegistryError(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """A hard delete of a subject that was not soft-deleted."""
    return RegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """A second soft delete of a version."""
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """A hard delete of a version that was not soft-deleted."""
    return RegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def config_not_found(subject: str) -> RegistryError:
    """No configuration at this level."""
    return RegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def mode_not_found(subject: str) -> RegistryError:
    """No mode at this level."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def association_not_found(name: str) -> RegistryError:
    """No such association."""
    return RegistryError(40410, f"Association for '{name}' not found.")


def key_not_found(name: str) -> RegistryError:
    """No such encryption key: a KEK by its name, a DEK by its subject."""
    return RegistryError(40470, f"Key '{name}' not found")


def key_not_soft_deleted(name: str) -> RegistryError:
    """A hard delete of an encryption key that was not soft-deleted."""
    return RegistryError(40471, f"Key '{name}' was not deleted first before being permanently deleted")


def key_soft_deleted(name: str) -> RegistryError:
    """The undeletion of a DEK whose KEK is soft-deleted."""
    return RegistryError(40472, f"Key '{name}' must be undeleted first")


# --- 409


def incompatible_schema(
    subject: str, messages: Sequence[str], advice: Sequence[str], findings: Sequence[Mapping[str, Any]]
) -> RegistryError:
    """The schema breaks the subject's compatibility level.

    The reference's wording ends with the list; what follows it tells a person what would be accepted.
    """
    return RegistryError(
        40901,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(messages)}]' + "".join(f" {sentence}" for sentence in advice),
        findings,
    )


def association_for_resource_exists(association_type: str, resource: str) -> RegistryError:
    """A second association of a type for a resource."""
    return RegistryError(40903, f"An association of type '{association_type}' already exists for resource '{resource}'")


def association_for_subject_exists(subject: str) -> RegistryError:
    """A subject that something is associated with cannot be deleted, nor become strongly associated with more."""
    return RegistryError(40904, f"An association already exists for subject '{subject}'")


def strong_association_exists(subject: str) -> RegistryError:
    """A subject that belongs to one resource cannot be associated with another."""
    return RegistryError(40905, f"A strong association already exists for subject '{subject}'")


def no_active_version(subject: str) -> RegistryError:
    """An association with a subject that has no live version."""
    return RegistryError(40907, f"No active (non-deleted) version exists for subject '{subject}'")


def association_frozen(association_type: str, subject: str) -> RegistryError:
    """A change of an association that is frozen, or its deletion without cascade."""
    return RegistryError(40908, f"The association of type  '{association_type}' is frozen for subject '{subject}'")


def key_exists(name: str) -> RegistryError:
    """A second encryption key of a name, or of a subject, algorithm and version."""
    return RegistryError(40971, f"Key '{name}' already exists; use a different value")


def too_many_keys(limit: int) -> RegistryError:
    """More encryption keys of a kind than the service keeps."""
    return RegistryError(40972, f"A maximum of {limit} keys already exist")


# --- 422


def invalid_schema(reason: str) -> RegistryError:
    """The schema does not parse, or its type or references are not supported."""
    return RegistryError(42201, reason)


def no_such_reference(subject: str, version: int) -> RegistryError:
    """A reference that leads nowhere, or to a soft-deleted version."""
    return RegistryError(42201, f'No schema reference found for subject "{subject}" and version {version}')


def empty_schema() -> RegistryError:
    """A blank schema, and no previous version to copy."""
    return RegistryError(42201, "Empty schema")


def invalid_version_order() -> RegistryError:
    """An explicit version that is not the next one."""
    return RegistryError(42201, "Version is not one more than previous version")


def invalid_version(version: str) -> RegistryError:
    """A version in the path that is neither a number from 1 on nor `latest`."""
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    """A compatibility level that is none."""
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def unsupported_policy(policy: str) -> RegistryError:
    """A compatibility policy whose checks this registry does not have."""
    return RegistryError(
        42203,
        f"The compatibilityPolicy {policy} is not supported: this registry does not have its checks of table formats. "
        "Set compatibilityPolicy to STRICT or LENIENT",
    )


def invalid_mode() -> RegistryError:
    """A mode that is none."""
    return RegistryError(42204, "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.")


def forward_mode_is_global() -> RegistryError:
    """FORWARD asked for below the global level."""
    return RegistryError(42204, "Forward mode only supported on global level")


def operation_not_permitted(reason: str) -> RegistryError:
    """The mode, or the state of the scope, forbids the operation."""
    return RegistryError(42205, reason)


def _prefix_of(context: str) -> str:
    """Return a context as the reference prints it: `:.c:`, and nothing for the default one."""
    return "" if context == "." else f":{context}:"


def read_only(subject: str, context: str) -> RegistryError:
    """A write in a read-only scope."""
    return operation_not_permitted(f"Subject {subject} in context {_prefix_of(context)} is in read-only mode")


def not_read_write(subject: str, context: str) -> RegistryError:
    """A registration without id in a scope that takes imports only."""
    return operation_not_permitted(f"Subject {subject} in context {_prefix_of(context)} is not in read-write mode")


def not_import_mode(subject: str, context: str) -> RegistryError:
    """A registration with an id in a scope that is not in IMPORT mode."""
    return operation_not_permitted(f"Subject {subject} in context {_prefix_of(context)} is not in import mode")


def id_overwrite(schema_id: int, context: str) -> RegistryError:
    """An import under an id that names another schema."""
    return operation_not_permitted(
        f"Overwrite new schema with id {schema_id} in context {_prefix_of(context)} is not permitted."
    )


def import_with_subjects() -> RegistryError:
    """IMPORT asked for where live schemas stand."""
    return operation_not_permitted("Cannot import since found existing subjects")


def strongly_associated(subject: str) -> RegistryError:
    """A reference to, or a strong association of, what belongs to one resource alone."""
    return operation_not_permitted(
        f"Subject {subject} has a strong association, so no other subject may refer to its schemas"
    )


def referenced(subject: str, version: int) -> RegistryError:
    """A deletion of what another schema refers to."""
    return RegistryError(
        42206,
        f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> RegistryError:
    """A subject with control characters or a reserved name."""
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def schema_too_large() -> RegistryError:
    """The log refuses a record of this size."""
    return RegistryError(42209, "Register operation failed because schema is too large")


def invalid_rule_set(reason: str) -> RegistryError:
    """A rule set with a rule that cannot be."""
    return RegistryError(42210, f"Invalid rule set: {reason}")


def context_not_empty(context: str) -> RegistryError:
    """A deletion of a context that still holds something."""
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def invalid_association(name: str, detail: str) -> RegistryError:
    """A property of an association that cannot be."""
    return RegistryError(42212, f"The association specified an invalid value for property: '{name}', detail: {detail}")


def invalid_key(field: str) -> RegistryError:
    """A property of an encryption key that is missing or cannot be."""
    return RegistryError(42271, f"Invalid or missing value for field '{field}' of key")


def key_referenced(name: str) -> RegistryError:
    """The deletion of a KEK under which there are DEKs."""
    return RegistryError(42272, f"One or more references exist to the key {name}")


# --- 5xx


def internal() -> RegistryError:
    """What should not have happened; the log has the details."""
    return RegistryError(500, "Internal Server Error")


def write_refused(reason: str) -> RegistryError:
    """The log takes no writes, and will not by itself: nothing was written."""
    return RegistryError(50001, f"Error while writing to the log: {reason}. Nothing was written")


def write_timed_out() -> RegistryError:
    """The log did not answer in time: the write may or may not have happened."""
    return RegistryError(50002, "Write to the log timed out: it is not known whether it was written")


def write_forwarding_failed() -> RegistryError:
    """The node that holds the right to write did not answer: the write may or may not have happened."""
    return RegistryError(
        50003,
        "Error while forwarding the request: the node that writes did not answer, "
        "and it is not known whether it was written",
    )


def not_the_writer() -> RegistryError:
    """Another node has the right to write, or it goes from node to node: nothing was written."""
    return RegistryError(50004, "Leader not known. Nothing was written")


def log_unreadable(reason: str) -> RegistryError:
    """The log could not be read, so nothing can be answered that is sure to be up to date."""
    return RegistryError(50301, f"The log cannot be read: {reason}. Try again later")


def not_written(reason: str) -> RegistryError:
    """A write was given up before it was handed to the log."""
    return RegistryError(50302, f"Nothing was written: {reason}. Try again later")
