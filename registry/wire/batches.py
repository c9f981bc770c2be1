"""The JSON of batches: the steps of `POST /v1/apply`, and what became of each."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.registry import errors
from strata.registry.access.rules import EVERY_USER, Operation, RuleError, parse_new_rule
from strata.registry.decide.batch import Batch, Outcome, Result, Step, deletion, registration, rights, settings
from strata.registry.decide.register import Rules
from strata.registry.subject_names import writable_scope, writable_subject
from strata.registry.wire.acls import AclAnswer, rules_json
from strata.registry.wire.configuration import ConfigChange
from strata.registry.wire.contracts import Answer, Body, Number, Truth, Word
from strata.registry.wire.failures import FindingAnswer
from strata.registry.wire.schemas import SchemaBody

__all__ = ["BatchBody", "BatchResultAnswer", "batch_result"]

MAX_STEPS = 10_000


class RightBody(Body):
    """A rule about the resource of a step."""

    principal: Word = Field(description="User:NAME, User:*, Group:NAME or Anonymous")
    operation: Word
    permission: Word | None = Field(None, description="ALLOW, which is the default, or DENY")
    host: Word | None = Field(None, description="*, an IP address or a network")


class StepBody(Body):
    """One change: a schema, the settings of a subject, context or registry, a deletion, or rules of access."""

    action: Literal["register", "settings", "delete", "rights"]
    subject: Word = Field("", description="empty: the registry as a whole")
    body: SchemaBody | None = Field(None, alias="schema", description="of `register`; its id and version are ignored")
    normalize: Truth | None = Field(None, description="of `register`")
    config: ConfigChange | None = Field(None, description="of `settings`, as in PUT /config")
    mode: Word | None = Field(None, description="of `settings`")
    resource_type: Word | None = Field(None, alias="resource_type", description="of `rights`: SUBJECT, KEK and so on")
    resource: Word | None = Field(None, description="of `rights`: a name or its beginning; * for all")
    pattern_type: Word | None = Field(None, alias="pattern_type", description="of `rights`: LITERAL or PREFIXED")
    rules: list[RightBody] = Field(default_factory=list, description="of `rights`: rules about the resource")
    only: Truth | None = Field(None, description="of `rights`: delete other rules about the resource")

    def step(self, level: Level, limits: Limits, now: int) -> Step:
        """Return the step that this body describes.

        Raises:
            RegistryError: 42208 for an invalid subject; 400 if the schema of a registration is missing, or a rule
                cannot be used.
        """
        if self.action == "rights":
            return self._rights(now)
        if self.action == "settings":
            change = None if self.config is None else self.config.change()
            return settings(writable_scope(self.subject), change, self.mode, level)
        subject = writable_subject(self.subject)
        if self.action == "delete":
            return deletion(subject)
        if self.body is None:
            raise errors.unreadable_body(f"The step that registers '{subject}' has no schema")
        return registration(subject, self.body.request(limits), Rules(level, normalize=self.normalize is True))

    def _rights(self, now: int) -> Step:
        given = {"resource_type": self.resource_type, "resource": self.resource, "pattern_type": self.pattern_type}
        about = {name: value for name, value in given.items() if value is not None}
        try:
            # The resource is known without any rule about it.
            resource = parse_new_rule({**about, "principal": EVERY_USER, "operation": Operation.ALL.value}).resource
            rules = [parse_new_rule({**about, **rule.model_dump(exclude_none=True)}) for rule in self.rules]
        except RuleError as error:
            raise errors.unreadable_body(f"The rights cannot be used: {error}") from None
        return rights(resource, rules, now, only=self.only is True)


class BatchBody(Body):
    """Changes that are written together or not at all."""

    offset: Number | None = Field(None, description="refuse if anything changed after it; from a dry run")
    dry_run: Truth | None = Field(None, description="return what would happen, and write nothing")
    steps: list[StepBody] = Field(default_factory=list, max_length=MAX_STEPS)

    def batch(self, level: Level, limits: Limits, now: int) -> Batch:
        """Return the batch that this body describes.

        Args:
            level: the compatibility level of subjects that have none.
            limits: the limits on each schema.
            now: the time of new rules, in milliseconds since the epoch.

        Raises:
            RegistryError: as `StepBody.step`.
        """
        return Batch([step.step(level, limits, now) for step in self.steps], self.offset)


class StepErrorAnswer(Answer):
    """Why a step is rejected, as its own route would answer."""

    error_code: int = Field(alias="error_code")
    message: str
    findings: list[FindingAnswer] | None = None


class StepAnswer(Answer):
    """What became of one step: `version` and `id` of a schema, `added` and `removed` rules, `error` in a dry run."""

    changed: bool
    version: int | None = None
    id: int | None = None
    added: list[AclAnswer] | None = None
    removed: list[AclAnswer] | None = None
    error: StepErrorAnswer | None = None


class BatchResultAnswer(Answer):
    """The offset of the log on which the batch was decided, and the results in the order of the steps."""

    offset: int
    results: list[StepAnswer]


def batch_result(result: Result) -> dict[str, Any]:
    """Return the JSON of the result of a batch."""
    return {"offset": result.offset, "results": _results(result.outcomes)}


def _results(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {"changed": one.changed}
        | ({"version": one.entry.version, "id": one.entry.schema.schema_id} if one.entry else {})
        | ({"added": rules_json(one.rules.added), "removed": rules_json(one.rules.removed)} if one.rules else {})
        | ({"error": _error(one.error)} if one.error else {})
        for one in outcomes
    ]


def _error(error: errors.RegistryError) -> dict[str, Any]:
    content: dict[str, Any] = {"error_code": error.code, "message": error.message}
    return content if error.findings is None else content | {"findings": error.findings}
